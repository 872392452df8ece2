"""``influence``: what every row does to every other row's value, exactly, by leaving it out.

The models without one row each are those of leave-one-out; what they say of the *other* rows,

    change_ij = u_j without row i  -  u_j with all rows,

costs one product with the kernel matrix more.  Approximations by derivatives (influence functions)
have no meaning for the hinge loss where a row changes its state, which is where it matters.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from ..exceptions import InputError, Interrupted, MemoryLimitError, UnsupportedError
from ..judge.certificate import warn_if_short
from ..problem import checks, inputs
from ..problem.kernels import kernel_between
from ..problem.problem import Task
from ..runtime.memory import shortage
from ..runtime.progress import following
from ..runtime.threads import Workers
from ..runtime.user_line import user_level
from ..types import (
    ClassWeight,
    FloatArray,
    GammaRule,
    IntArray,
    KernelFunction,
    KernelName,
    Matrix,
    MemoryLimit,
    Vector,
)
from .fold_models import FoldModels, fold_changes, models_and_ledger
from .influence_result import Influence
from .requests import Given, KernelRequest
from .run import Plan

__all__ = ["influence"]

# Rows whose influence is worked out at a time.
BLOCK = 256
OF_TWO = "influence is that of two classes on each other: take the rows of two at a time"


def influence(
    X: Matrix,
    y: Vector,
    *,
    C: float,
    gamma: float | GammaRule = "median",
    kernel: KernelName | KernelFunction = "rbf",
    degree: int = 3,
    coef0: float = 0.0,
    X_test: Matrix | None = None,
    y_test: Vector | None = None,
    sample_weight: Vector | None = None,
    class_weight: ClassWeight | None = None,
    fit_intercept: bool = True,
    n_jobs: int | None = None,
    tol: float = 1e-8,
    progress: bool = False,
    memory_limit: MemoryLimit | None = None,
) -> Influence:
    """The exact influence of every row of a kernel SVM on every other row, by leaving it out.

    For each row i the model is solved without it, as in leave-one-out, and its decision values of
    the other rows, their errors and their loss are compared with those of the model of all rows.
    Takes about the time of one leave-one-out with decision values, and with ``X_test`` a matrix
    product besides.

    Parameters
    ----------
    X, y : array-like
        As in ``exactcv.cross_validate``; two classes, with at least two rows of each.
    C : float
    kernel, gamma, degree, coef0, sample_weight, class_weight, fit_intercept :
        As in ``exactcv.cross_validate``.  Errors and losses are counted unweighted.
    X_test, y_test : array-like, optional
        Rows on which models are compared instead of the training rows: what leaving a row out does
        to a validation set.  With ``kernel="precomputed"`` ``X_test`` are their kernel values with
        the training rows.
    n_jobs, tol, progress, memory_limit :
        As in ``exactcv.cross_validate``.  The result has n x n numbers, beside the kernel matrix,
        which has as many; with ``X_test`` n x m beside that and the models, n x n more.  If they
        do not fit, this is said before anything is computed.

    Returns
    -------
    Influence

    Raises
    ------
    Interrupted
        On Ctrl-C, without a partial result.

    Examples
    --------
    >>> import exactcv
    >>> X, y = exactcv.datasets.make_mixture(60, 4, random_state=0)
    >>> found = exactcv.influence(X, y, C=1.0)
    >>> found.change.shape, found.certificate.exact
    ((60, 60), True)
    >>> found.helps_most(3)
    array([48, 43, 11])
    """
    start = perf_counter()
    plan = Plan.of(
        method="exact", loss="hinge", fit_intercept=fit_intercept, want_decision=True, tol=tol
    )
    given = Given(
        X=X,
        y=y,
        kernel=inputs.check_kernel(kernel, gamma, degree, coef0),
        Cs=[checks.check_positive("C", C)],
        lambdas=None,
        cv="loo",
        groups=None,
        sample_weight=sample_weight,
        class_weight=class_weight,
        random_state=None,
        memory_limit=memory_limit,
    )
    checks.check_flag("progress", progress)
    n_threads = checks.check_n_threads(n_jobs)
    _check_rows(y, sample_weight)
    request = KernelRequest.read(given, plan)
    watched, signs = _read_test(X_test, y_test, request)
    _check_memory(request, watched, memory_limit)
    try:
        with following(progress) as watch, Workers(n_threads, watch) as workers:
            task, used_gamma = request.task(plan, workers)
            _check_convex(task)
            watch.say(f"{task.problem.n} rows, each left out once")
            if watched is None:
                change, ran = fold_changes(task, "exact", workers)
                ledger, certificate = ran.ledger, ran.certificate
                value = ledger.h[0] + ledger.intercept[0]
            else:
                models, ledger = models_and_ledger(task, "exact", workers)
                K, certificate = _kernel_with(watched, request, used_gamma), models.certificate
                coef, b = ledger.coef[0], float(ledger.intercept[0])
                value, change = K @ coef + b, _changes(models, coef, b, K, workers)
    except KeyboardInterrupt as stop:
        raise Interrupted("interrupted before all rows were left out") from stop
    result = Influence.of(
        request.present,
        None if watched is None else signs,
        change=change,
        value=value,
        left_out=ledger.decision[0],
        classes=request.classes,
        C=float(C),
        kernel=given.kernel.label,
        gamma=used_gamma,
        certificate=certificate,
        seconds=perf_counter() - start,
    )
    warn_if_short(
        result.certificate, np.array([C]), task.problem.n + 1, stacklevel=user_level() + 1
    )
    return result


def _changes(
    models: FoldModels, coef: FloatArray, b: float, K: FloatArray, workers: Workers
) -> FloatArray:
    """u of every model less that of all rows, (n, m); K are the kernel values (m, n)."""
    change = np.empty((len(models.coef), len(K)))

    def some(rows: IntArray) -> None:
        moved = models.coef[rows] - coef
        touched = np.flatnonzero(moved.any(axis=0))
        if 2 * len(touched) < K.shape[1]:
            np.matmul(moved[:, touched], K[:, touched].T, out=change[rows[0] : rows[-1] + 1])
        else:
            np.matmul(moved, K.T, out=change[rows[0] : rows[-1] + 1])
        change[rows[0] : rows[-1] + 1] += (models.intercept[rows] - b)[:, None]

    starts = range(0, len(change), BLOCK)
    workers.map(some, [np.arange(s, min(s + BLOCK, len(change))) for s in starts])
    return change


def _check_convex(task: Task) -> None:
    if not task.problem.psd:
        raise UnsupportedError(
            "the kernel matrix is not positive semidefinite, so that models without a row need not "
            "be unique: use another kernel"
        )


def _check_rows(y: Any, sample_weight: Any) -> None:
    """Every class keeps a row when one is gone."""
    _, classes, signs = inputs.read_labels(y, len(np.atleast_1d(np.asarray(y))), OF_TWO)
    weight = inputs.read_sample_weight(sample_weight, len(signs))
    for sign, label in zip((-1.0, 1.0), classes.tolist(), strict=True):
        if np.count_nonzero((signs == sign) & (weight > 0)) == 1:
            raise InputError(
                f"class {label!r} has one row only; without it there is nothing to compare with: "
                "each class needs two rows"
            )


def _read_test(
    X_test: Any, y_test: Any, request: KernelRequest
) -> tuple[FloatArray | None, FloatArray | None]:
    """Rows to be watched, and their labels as signs."""
    if (X_test is None) != (y_test is None):
        raise InputError("X_test and y_test go together: give both, or neither")
    if X_test is None:
        return None, None
    rows = inputs.read_features(X_test, "X_test", least=1)
    wanted = request.present.n if request.kernel.name == "precomputed" else request.data.X.shape[1]
    if rows.shape[1] != wanted:
        raise InputError(f"X_test has {rows.shape[1]} columns, X has {wanted}")
    labels = np.asarray(y_test)
    if labels.shape != (len(rows),):
        raise InputError(f"X_test has {len(rows)} rows, but y_test has shape {labels.shape}")
    unknown = ~np.isin(labels, request.classes)
    if unknown.any():
        raise InputError(
            f"y_test has the label {labels[unknown].tolist()[0]!r}, which is none of the classes "
            f"of y, {inputs.shown_classes(request.classes)}"
        )
    return rows, np.where(labels == request.classes[1], 1.0, -1.0)


def _kernel_with(watched: FloatArray, request: KernelRequest, gamma: float | None) -> FloatArray:
    """Kernel values of the rows that are watched with the training rows."""
    kernel = request.kernel
    if kernel.name == "precomputed":
        return np.ascontiguousarray(watched[:, request.present.rows])
    fixed = kernel if gamma is None else replace(kernel, gamma=gamma)
    return kernel_between(watched, request.data.X, fixed)


def _check_memory(request: KernelRequest, watched: FloatArray | None, memory_limit: Any) -> None:
    """The models and the result, beside the kernel matrix and what leave-one-out needs."""
    n = len(request.data.y)
    m = n if watched is None else len(watched)
    extra = 8 * n * (n if watched is None else n + 2 * m)  # the models are kept for other rows only
    short = shortage(n, memory_limit, extra_bytes=extra)
    if short is not None:
        raise MemoryLimitError(f"the influence of {n} rows on {m}: {short} or raise memory_limit")
