"""Several cross-validations with an approximate kernel, side by side, through joblib."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

from joblib import Parallel, delayed

from ..exceptions import InputError
from ..problem.checks import check_method_options
from ..types import Approx, FilePath, GammaRule, Matrix, Vector
from .result import CVResult

__all__ = ["cross_validate_grid"]


def cross_validate_grid(
    X: Matrix | FilePath,
    y: Vector,
    *,
    gammas: Iterable[float | GammaRule] = ("median",),
    random_states: Iterable[Any] = (0,),
    approx: Approx = "rff",
    n_jobs: int | None = None,
    **options: Any,
) -> list[CVResult]:
    """``cross_validate`` for every gamma and every ``random_state`` (split, features).

    The runs are joblib tasks, so they go wherever ``joblib.parallel_config`` says.

    Parameters
    ----------
    X, y : as in ``cross_validate``
    gammas : iterable of float or str
    random_states : iterable of int
        Each draws its own features, and its own folds if ``cv`` is an int.
    approx : {"rff", "nystroem"}
    n_jobs : int, optional
        Runs at a time.
    **options :
        All else that ``cross_validate`` takes.

    Returns
    -------
    list of CVResult
        All random states of the first gamma, then of the second, and so on.

    Examples
    --------
    >>> import exactcv
    >>> from exactcv.crossval.lowrank_grid import cross_validate_grid
    >>> X, y = exactcv.datasets.make_mixture(80, 4, random_state=0)
    >>> found = cross_validate_grid(X, y, gammas=[0.01, 0.1], n_components=10, lambdas=3)
    >>> [result.gamma for result in found]
    [0.01, 0.1]
    """
    jobs = list(product(gammas, random_states))
    if not jobs:
        raise InputError("gammas and random_states must not be empty")
    # Inside a task of a Dask cluster there is a client too; the task is not to use it.
    given = check_method_options(options.pop("method_options", None))
    inner = dict(given) | {"cluster": False}
    return list(
        Parallel(n_jobs=n_jobs)(
            delayed(_run)(X, y, gamma, state, approx, inner, options) for gamma, state in jobs
        )
    )


def _run(
    X: Any, y: Any, gamma: Any, state: Any, approx: Approx, inner: dict[str, Any], options: Any
) -> CVResult:
    from .cross_validate import cross_validate

    return cross_validate(
        X, y, gamma=gamma, random_state=state, approx=approx, method_options=inner, **options
    )
