"""``cross_validate``: two classes or numbers, one kernel, a grid of C or lambda."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from time import perf_counter
from typing import Any, Literal, ParamSpec, TypeVar

from ..exceptions import InputTypeError, Interrupted
from ..judge.certificate import warn_if_short
from ..problem import checks, inputs
from ..runtime.progress import Progress, following
from ..runtime.threads import Workers
from ..runtime.user_line import user_level
from ..types import (
    Approx,
    ClassWeight,
    FilePath,
    GammaRule,
    GridValues,
    KernelFunction,
    KernelName,
    LossName,
    Matrix,
    MemoryLimit,
    Output,
    Seed,
    Splits,
    Vector,
)
from .components import with_enough_components
from .growth import edge, growth_text
from .regression_result import RegressionResult
from .requests import FeatureRequest, Given, KernelRequest, Request, columns_of
from .result import CVResult, make_result, side_by_side
from .run import AnyTask, Plan, Ran, run

__all__ = ["cross_validate"]

OUTPUTS = ("error", "decision")
P = ParamSpec("P")
R = TypeVar("R")


def _of_data(function: Callable[P, R]) -> Callable[P, R]:
    """Who calls it as scikit-learn's function of the same name is told which one is meant."""

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        model = kwargs.get("estimator", args[0] if args else None)
        if hasattr(model, "fit"):
            kind = type(model).__name__
            raise InputTypeError(
                f"exactcv.cross_validate(X, y, kernel=..., Cs=...) takes the data, not a {kind}: "
                "it computes the whole curve of errors itself. For the scores of an estimator use "
                "exactcv.cross_val_score(estimator, X, y), for a grid of its parameters "
                "exactcv.GridSearchCV(estimator, grid), and for several scorers at once "
                "sklearn.model_selection.cross_validate"
            )
        return function(*args, **kwargs)

    return checked


@_of_data
def cross_validate(
    X: Matrix | FilePath,
    y: Vector,
    *,
    kernel: KernelName | KernelFunction = "rbf",
    gamma: float | GammaRule = "median",
    degree: int = 3,
    coef0: float = 0.0,
    loss: LossName = "hinge",
    Cs: GridValues | None = None,
    lambdas: GridValues | None = None,
    cv: Literal["loo"] | Splits | None = "loo",
    groups: Vector | None = None,
    sample_weight: Vector | None = None,
    class_weight: ClassWeight | None = None,
    fit_intercept: bool = True,
    method: str = "exact",
    output: Output = "error",
    n_jobs: int | None = None,
    tol: float = 1e-8,
    random_state: Seed | None = None,
    progress: bool | Progress = False,
    approx: Approx | None = None,
    n_components: int | Literal["auto"] = 200,
    memory_limit: MemoryLimit | None = None,
    method_options: Mapping[str, Any] | None = None,
    epsilon: float = 0.1,
    quantile: float = 0.5,
) -> CVResult:
    r"""Exact cross-validation of a kernel machine over a whole regularisation path.

    Solves, on all rows and on the training part of every fold, for every value of the grid,

    .. math:: \min_{f \in H_K,\, b} \; \tfrac12 \lVert f \rVert^2 + C \sum_i w_i L(y_i, b + f(x_i)),

    which is the papers' :math:`\tfrac1n \sum_i w_i L + \lambda \lVert f \rVert^2` with
    :math:`C = 1 / (2 n \lambda)`.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame of shape (n, p)
        Sparse input is made dense.  With ``kernel="precomputed"`` the (n, n) kernel matrix.
        With ``kernel="linear"`` (hinge or squared loss, default method) n may be so large that
        the kernel matrix does not fit, as long as there are no more than 4000 columns or X is a
        sparse matrix (hinge loss): the columns take its place, sparse input stays sparse, and the
        result, no less exact, has ``weights`` (of the columns) in place of ``coef``.  With more
        columns, leave-one-out goes as long as the kernel matrices of the rows on the margin fit
        (3000 of them with 1 GB, 16,000 at most); other folds always go.
    y : array-like of shape (n,)
        Labels of two classes, of any type; the larger in sort order is the positive class.  With
        a loss of numbers, numbers.
    kernel : {"rbf", "laplacian", "poly", "sigmoid", "linear", "precomputed"} or callable
        A callable is called once, as ``kernel(X, X)``.
    gamma : float, "median", "scale" or "auto"
        "median": 1 / median squared distance of all pairs of rows that differ.
        "scale" and "auto" as in scikit-learn.  All three are worked out once, on all rows, so
        the kernel is the same in every fold.
    degree, coef0 : int, float
        For "poly" and "sigmoid".
    loss : str
        Of classes: "hinge", "squared_hinge", "logistic" and "squared" are max(0, 1 - y u), its
        square, log(1 + exp(-y u)) and 1/2 (y - u)^2.  Of numbers: "epsilon_insensitive" is
        ``max(0, |y - u| - epsilon)`` (support vector regression), "pinball" is
        max(tau (y - u), (1 - tau) (u - y)) with tau = ``quantile`` (kernel quantile regression),
        and "least_squares" 1/2 (y - u)^2 (kernel ridge regression).  Which of them a method has:
        ``exactcv.methods()``.
    Cs, lambdas : array-like or float, optional
        The grid, one or the other.  ``Cs`` holds in every fold, as in scikit-learn.  ``lambdas``
        keeps lambda: a fold that trains on m rows has C = 1 / (2 m lambda), except in
        leave-one-out, where the papers keep n.  n and m count rows, whatever their weights.  An
        int ``lambdas`` is a number of points, log-uniform from e^6 to e^-6: the papers' grid is
        ``lambdas=50``.  The default, without ``approx``, is C from 1e-3 to 1e3 over the scale of
        the kernel (1 for "rbf" and "laplacian", else the variance of the rows in feature space to
        the next power of ten); while its best point is at an edge it grows there, by a decade at
        a time, three at most, which ``grown`` and ``summary()`` say.  With ``approx`` the default
        is the papers' grid, but of numbers it is the other one.
    cv : "loo", int, splitter or iterable
        An int is a stratified k-fold (of numbers a plain one), shuffled only if ``random_state``
        is given; None is 5.  An iterable yields (train, test) row numbers; test sets may overlap
        or leave rows out.  Leave-one-out does not test the only row of a class, and says so.
    groups : array-like of shape (n,), optional
        For splitters that use groups.
    sample_weight : array-like of shape (n,), optional
        Not negative.  A row of weight 0 is as good as absent: it takes no part in gamma, folds,
        training or counting (its left-out values are NaN).  Errors of the others are counted
        unweighted.
    class_weight : dict or "balanced", optional
        Multiplies ``sample_weight``.  "balanced" is n / (2 n_class), from all rows, once, where
        a row of weight w counts as w rows.
    fit_intercept : bool
    method : str
        See ``exactcv.methods()``.
    output : {"error", "decision"}
        "error" decides each left-out label, often by proof alone, and is the fastest;
        "decision" computes every left-out decision value.  Of numbers it is always the latter.
    n_jobs : int, optional
        Threads; -1 is all processors.  The result does not depend on it.
    tol : float
        What the KKT violation and the duality gap of every solution must meet.  With 1e-5 or more
        folds that leave out several rows are solved no further than that, which saves work;
        ``certificate.unproved`` then counts the labels that the gaps do not prove.
    random_state : int, RandomState or None
        For an int ``cv``.
    progress : bool or Progress
        Show on standard error how far the run is: a bar in a terminal (prettier with
        ``pip install "exactcv[progress]"``) or notebook, lines of text elsewhere.  A ``Progress``
        follows several runs on one bar.
    approx : {"rff", "nystroem"}, optional
        Replace the kernel by ``n_components`` features, for data whose kernel matrix would not
        fit: random Fourier features ("rbf" and "laplacian" kernels) or Nystroem (any positive
        semidefinite kernel).  The result is exact for the kernel that the features have.
        ``random_state`` draws them; "median" and "scale" are then worked out on at most 2000 rows
        that it draws.  Only with the default method, and not with the losses "squared_hinge" and
        "logistic".  X may then also be a memory-mapped array, a sparse matrix (kept sparse), the
        path of a Parquet file or a folder of them (the index of a pandas frame is no feature), or a
        Dask array or dataframe; y, ``sample_weight`` and ``groups`` may be names of columns of a
        file or a dataframe of Dask, which are no features then.  With Dask input or an active
        ``dask.distributed`` client the passes over the rows run on the cluster.
    n_components : int or "auto"
        The number of features m.  "auto" begins with 100 (or as many as there are rows) and takes
        twice as many at a time until the least error falls by no more than its standard error; it
        stops before the features take too much memory or twice as many would take more than ten
        minutes.  The result is that of the least error, and its ``grown`` and ``summary()`` say
        what was tried.
    memory_limit : int or str, optional
        Bytes, or for example "2GB"; by default what the system has available.  With ``approx`` it
        is a budget for the work; without it the whole process stays within twice the features (8
        bytes each) and 1 GB, and the work within half of what is available.
    method_options : dict, optional
        What only one method understands: ``exactcv.methods()[method].options`` names its options,
        their defaults and what they mean.  With ``approx``: ``features``
        ("memory", "spill" to disk, "recompute" in every pass; "auto" is the first if it takes at
        most 40 percent of ``memory_limit``, or of half of what is available, else the last),
        ``dtype`` of the features ("float64",
        "float32"; sums are float64), ``folder`` to spill to, ``chunk_rows``, ``target_rows`` (in
        the small problems; more rows, fewer passes), ``cluster`` (False: do not use the active
        client) and ``landmarks`` of Nystroem ("random" rows, or "kmeans": the centres of clusters,
        which come nearer to the kernel).
    epsilon : float
        Of ``loss="epsilon_insensitive"``, in the units of y.
    quantile : float
        Of ``loss="pinball"``, between 0 and 1.

    Returns
    -------
    CVResult
        A ``RegressionResult`` with a loss of numbers.

    Raises
    ------
    Interrupted
        On Ctrl-C, as soon as the folds at work have stopped (a KeyboardInterrupt).  Its
        ``partial`` is the CVResult of what is complete, exact as ever: all folds at the grid
        points that are finished or, where the method goes fold by fold, the finished folds at all
        grid points, whichever is more.  What misses ``tol`` by then does not count as complete.

    Examples
    --------
    >>> import exactcv
    >>> X, y = exactcv.datasets.make_mixture(60, 4, random_state=0)
    >>> result = exactcv.cross_validate(X, y, Cs=[0.1, 1.0, 10.0], cv=5)
    >>> result.error.shape, result.certificate.exact
    ((3,), True)
    >>> numbers = exactcv.cross_validate(X, X[:, 0] ** 2, loss="epsilon_insensitive", epsilon=0.1)
    >>> numbers.certificate.exact, numbers.decision.shape == (len(numbers.Cs), 60)
    (True, True)
    """
    if approx is not None and n_components == "auto":
        return with_enough_components(cross_validate, locals())
    start = perf_counter()
    method_options = checks.check_method_options(method_options)
    plan = Plan.of(
        method=method,
        loss=loss,
        fit_intercept=fit_intercept,
        want_decision=checks.check_choice("output", output, OUTPUTS) == "decision",
        tol=tol,
        options=method_options if approx is None else None,  # else they say how to keep features
        epsilon=epsilon,
        quantile=quantile,
    )
    chosen_kernel = inputs.check_kernel(kernel, gamma, degree, coef0)
    n_threads = checks.check_n_threads(n_jobs)
    if not isinstance(progress, Progress):
        checks.check_flag("progress", progress)
    given = Given(
        X=X,
        y=y,
        kernel=chosen_kernel,
        Cs=Cs,
        lambdas=lambdas,
        cv=cv,
        groups=groups,
        sample_weight=sample_weight,
        class_weight=class_weight,
        random_state=random_state,
        memory_limit=memory_limit,
    )
    request: Request
    if approx is None:
        columns = columns_of(X, chosen_kernel.name, plan, memory_limit)
        if columns is None:
            request = KernelRequest.read(given, plan)
        else:
            request = FeatureRequest.read(given, plan, None, columns, {})
    else:
        m = inputs.check_approx(approx, n_components, method, loss)
        request = FeatureRequest.read(given, plan, approx, m, method_options)

    facts: dict[str, Any] = {"classes": request.classes, "method": method, "loss": loss}
    facts |= {"kernel": chosen_kernel.label, "present": request.present}
    if plan.target.numeric:
        facts |= {"kind": RegressionResult, "parameters": dict(plan.parameters)}
    try:
        with following(progress) as watch, Workers(n_threads, watch) as workers:
            before = perf_counter()
            task, facts["gamma"] = request.task(plan, workers)
            facts["kernel_seconds"] = perf_counter() - before
            watch.say(f"method {method!r}, {len(task.grid)} grid points, {len(task.folds)} folds")
            ran = run(task, method, workers)
            result = make_result(ran, perf_counter() - start, **facts)
            result = _grown(task, result, method, workers, facts)
    except Interrupted as stop:
        if isinstance(stop.partial, Ran):
            stop.partial = make_result(stop.partial, perf_counter() - start, **facts)
        raise
    except KeyboardInterrupt as stop:
        raise Interrupted("interrupted before the first fold was solved") from stop
    n_solutions = len(result.Cs) * (len(task.folds) + 1)
    warn_if_short(result.certificate, result.Cs, n_solutions, stacklevel=user_level() + 1)
    return result


def _grown(
    task: AnyTask, result: CVResult, method: str, workers: Workers, facts: dict[str, Any]
) -> CVResult:
    """The result on the default grid once that has grown as far as it should."""
    grid = task.grid
    while result.error[result.best] > 0:
        end = edge(1.0 - result.error[None], (0, result.best), axis=1)
        part = None if end is None else grid.next_decade(end)
        if end is None or part is None:
            break
        start = perf_counter()
        workers.watch.say(f"the default grid grows to C={part.Cs.min():.4g} .. {part.Cs.max():.4g}")
        try:
            ran = run(replace(task, grid=part), method, workers)
        except KeyboardInterrupt as stop:
            raise Interrupted(
                "interrupted while the default grid grew; what it was before is complete, in the "
                "`partial` of this exception",
                result,
            ) from stop
        more = make_result(ran, perf_counter() - start, **(facts | {"kernel_seconds": 0.0}))
        grid = grid.with_decade(part, end)
        both = (result, more) if end == "high" else (more, result)
        result = side_by_side(both, growth_text(grid))
    return result
