"""``error_path``: the cross-validated error at every C, no grid."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any, Literal, NoReturn

import numpy as np

from ..exceptions import InputError, InputTypeError, Interrupted, UnsupportedError
from ..judge.certificate import warn_if_short
from ..problem import checks, inputs
from ..problem.checks import finite_numbers
from ..problem.folds import folds_among
from ..problem.grid import make_grid
from ..problem.kernels import Kernel, of_weighted_rows
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
    LossName,
    Matrix,
    MemoryLimit,
    Seed,
    Splits,
    Vector,
)
from .classes import ManyClasses
from .error_path_result import ErrorPath, path_of
from .every_c import errors_at_every_c
from .run import KernelRows, Plan

__all__ = ["check_range", "error_path", "follow_path", "path_plan"]

WHY_HINGE = {
    "squared_hinge": "its values are no lines in C between events, so that nothing is exact there",
    "logistic": "its values are no lines in C, so that nothing is exact between solutions",
    "squared": "its values are no lines in C, so that nothing is exact between solutions",
}
OF_NUMBERS = "a loss of numbers changes at every C, so that there are no steps to find"


def error_path(
    X: Matrix,
    y: Vector,
    *,
    C_range: tuple[float, float] | Sequence[float] = (1e-3, 1e3),
    cv: Literal["loo"] | Splits | None = "loo",
    kernel: KernelName | KernelFunction = "rbf",
    gamma: float | GammaRule = "median",
    degree: int = 3,
    coef0: float = 0.0,
    loss: LossName = "hinge",
    groups: Vector | None = None,
    sample_weight: Vector | None = None,
    class_weight: ClassWeight | None = None,
    fit_intercept: bool = True,
    method: str = "exact",
    n_jobs: int | None = None,
    tol: float = 1e-8,
    random_state: Seed | None = None,
    progress: bool = False,
    memory_limit: MemoryLimit | None = None,
) -> ErrorPath:
    """The exact cross-validated error of a kernel SVM at every C of a range.

    As C grows, the number of left-out errors is a step function.  All its steps are found: between
    two of them every left-out label is proved to stay what it is.  At each C the number of errors
    is what ``exactcv.cross_validate`` gives there.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, p)
        With ``kernel="precomputed"`` the (n, n) kernel matrix, positive semidefinite.
    y : array-like of shape (n,)
        Labels of two classes or more.  Several are told apart pair by pair, by votes, as in
        ``SVCCV``.
    C_range : (float, float)
        From the smaller to the larger C.  As in ``Cs`` of ``cross_validate``, C is the same in
        every fold.
    cv, kernel, gamma, degree, coef0, groups, sample_weight, class_weight, fit_intercept, n_jobs, \
tol, random_state, memory_limit :
        As in ``exactcv.cross_validate``.
    loss : "hinge"
        Only there values follow lines in C.
    method : "exact"
        The other methods know single values of C only.
    progress : bool
        Show on standard error how far the run is.

    Returns
    -------
    ErrorPath

    Raises
    ------
    Interrupted
        On Ctrl-C (a KeyboardInterrupt).  It has nothing to show then: rows are settled stretch by
        stretch, and errors are known when all rows are.

    Examples
    --------
    >>> import exactcv
    >>> X, y = exactcv.datasets.make_mixture(40, 4, random_state=0)
    >>> path = exactcv.error_path(X, y, C_range=(0.1, 10.0))
    >>> grid = exactcv.cross_validate(X, y, Cs=[0.2, 1.0, 7.0])
    >>> path.at([0.2, 1.0, 7.0]).tolist() == grid.n_errors.tolist()
    True
    >>> path.certificate.exact, len(path.n_errors) == len(path.breakpoints) + 1
    (True, True)
    """
    start = perf_counter()
    low, high = check_range(C_range)
    plan = path_plan(method, loss, fit_intercept, tol)
    chosen = inputs.check_kernel(kernel, gamma, degree, coef0)
    checks.check_flag("progress", progress)
    checks.check_seed(random_state)
    n_threads = checks.check_n_threads(n_jobs)
    labels, classes, codes = inputs.encode_labels(y, _count(X))
    if len(classes) < 2:
        raise InputError("y has one class only; a classifier needs rows of two classes or more")
    data = inputs.read_data(X, codes > 0, chosen, memory_limit=memory_limit)
    weight = _weights(sample_weight, class_weight, codes, classes)
    present = inputs.Present.of(weight, codes.astype(float))
    keep = present.rows
    rows = data.X[keep][:, keep] if chosen.name == "precomputed" else data.X[keep]
    of_rows = inputs.read_sample_weight(sample_weight, present.n)[keep]
    weighted = of_weighted_rows(chosen, rows, of_rows)
    of_groups = inputs.read_groups(groups, present.n)
    among = None if of_groups is None else of_groups[keep]
    folds = folds_among(keep, present.n, cv, rows, labels[keep], among, random_state, stratify=True)
    folds = inputs.check_training_parts(folds, codes[keep], classes, weight[keep], keep)
    try:
        with following(progress) as watch, Workers(n_threads, watch) as workers:
            kernel_rows = KernelRows.of(np.ascontiguousarray(rows), weighted, plan, workers)
            task = ManyClasses(
                kernel_rows, codes[keep], weight[keep], folds, make_grid(low, None, 1.0), plan
            )
            path = follow_path(task, low, high, workers, start, classes, chosen, keep)
    except KeyboardInterrupt as stop:
        raise Interrupted("interrupted; errors are known only once every row is settled") from stop
    n_solutions = path.stats["solutions"]
    warn_if_short(path.certificate, path.edges[:-1], n_solutions, stacklevel=user_level() + 1)
    return path


def follow_path(
    task: ManyClasses,
    low: float,
    high: float,
    workers: Workers,
    start: float,
    classes: Any,
    kernel: Kernel,
    keep: IntArray,
    counts: FloatArray | None = None,
) -> ErrorPath:
    """The path of a task that is read and checked; ``counts`` is what each row counts."""
    if not task.rows.psd:
        raise UnsupportedError(
            "error_path needs a kernel matrix that is positive semidefinite: else there is no path "
            "of solutions along C; cross_validate gives stationary points at single values of C"
        )
    tested = task.folds.pair_rows
    workers.watch.say(f"every C from {low:g} to {high:g}, {len(task.folds)} folds")
    errors = errors_at_every_c(task, low, high, workers)
    errors.stats["solutions"] = len(errors.solved)
    return path_of(
        errors,
        keep[tested],
        task.plan.tol,
        task.rows.psd,
        None if counts is None else counts[tested],
        classes=classes,
        kernel=kernel.label,
        gamma=task.rows.gamma,
        timings={"total": perf_counter() - start},
    )


def path_plan(method: str, loss: str, fit_intercept: Any, tol: Any) -> Plan:
    """The plan of method "exact"; other methods and losses are refused with a reason."""
    if loss in WHY_HINGE:  # first: method "exact" does not have them either, and would name others
        _refuse(loss)
    plan = Plan.of(
        method=method, loss=loss, fit_intercept=fit_intercept, want_decision=True, tol=tol
    )
    if method != "exact":
        raise UnsupportedError(
            f"method={method!r} solves single values of C and knows nothing of those in between; "
            "every C needs method='exact'"
        )
    if loss != "hinge":
        _refuse(loss)
    return plan


def _refuse(loss: str) -> NoReturn:
    raise UnsupportedError(
        f"every C is for loss='hinge', not {loss!r}: {WHY_HINGE.get(loss, OF_NUMBERS)}; "
        "cross_validate takes a grid"
    )


def check_range(C_range: Any, name: str = "C_range") -> tuple[float, float]:
    """Two positive numbers, the smaller first.

    Examples
    --------
    >>> check_range([0.1, 10])
    (0.1, 10.0)
    """
    if isinstance(C_range, (str, bool)) or not hasattr(C_range, "__len__"):
        raise InputTypeError(f"{name} must be two numbers, (low, high), got {C_range!r}")
    if len(C_range) != 2:
        raise InputError(f"{name} must be two numbers, (low, high), got {len(C_range)} of them")
    low, high = (float(one) for one in finite_numbers(C_range, name))
    if low <= 0.0:
        raise InputError(f"{name}=({low:g}, {high:g}): C must be positive")
    if not low < high:
        raise InputError(
            f"{name}=({low:g}, {high:g}) is empty: the smaller C comes first. For a single C use "
            "exactcv.cross_validate(Cs=...)"
        )
    try:
        make_grid([low, high], None, 1.0)
    except InputError:
        raise InputError(
            f"{name}=({low:g}, {high:g}): C is too small or too large for float64; 1e-12 to 1e12 "
            "is more than any data needs"
        ) from None
    return low, high


def _count(X: Any) -> int:
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape else len(X)


def _weights(sample_weight: Any, class_weight: Any, codes: IntArray, classes: Any) -> FloatArray:
    weight = inputs.read_sample_weight(sample_weight, len(codes))
    counts = np.bincount(codes, weights=weight, minlength=len(classes))
    factors = inputs.class_factors(class_weight, counts, classes)
    return inputs.times_class_weight(weight, factors, codes, classes)
