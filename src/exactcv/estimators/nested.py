"""``nested_cross_validate``: the error after tuning, of classes and of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

from ..crossval.nested_result import NestedRegressionResult, NestedResult
from ..exceptions import InputError, UnsupportedError
from ..problem import checks
from ..problem.differentiable import NUMERIC_LOSSES
from ..types import (
    Approx,
    ClassWeight,
    GammaRule,
    GridValues,
    HasShape,
    KernelFunction,
    KernelName,
    LossName,
    Matrix,
    MemoryLimit,
    ScorerLike,
    Seed,
    Select,
    Splits,
    Vector,
)
from .nested_fit import nested_of, nested_of_numbers
from .svc_cv import SVCCV
from .svr_cv import SVRCV

__all__ = ["nested_cross_validate"]


ClassLoss = Literal["hinge", "squared_hinge", "logistic", "squared"]


@overload
def nested_cross_validate(
    X: Matrix,
    y: Vector,
    *,
    kernel: KernelName | KernelFunction = "rbf",
    gammas: float | GammaRule | Sequence[float | GammaRule] | HasShape | None = None,
    degree: int = 3,
    coef0: float = 0.0,
    loss: Literal["epsilon_insensitive"],
    epsilon: float | Sequence[float] | HasShape = 0.1,
    Cs: GridValues | None = None,
    lambdas: GridValues | None = None,
    outer: Literal["loo"] | Splits = "loo",
    cv: Literal["loo"] | Splits = "loo",
    select: Select = "min",
    scoring: ScorerLike | None = None,
    groups: Vector | None = None,
    sample_weight: Vector | None = None,
    class_weight: None = None,
    fit_intercept: bool = True,
    method: str = "exact",
    n_jobs: int | None = None,
    tol: float = 1e-8,
    random_state: Seed | None = None,
    progress: bool = False,
    memory_limit: MemoryLimit | None = None,
    approx: Approx | None = None,
    n_components: int | Literal["auto"] = 200,
) -> NestedRegressionResult: ...
@overload
def nested_cross_validate(
    X: Matrix,
    y: Vector,
    *,
    kernel: KernelName | KernelFunction = "rbf",
    gammas: float | GammaRule | Sequence[float | GammaRule] | HasShape | None = None,
    degree: int = 3,
    coef0: float = 0.0,
    loss: ClassLoss = "hinge",
    Cs: GridValues | None = None,
    lambdas: GridValues | None = None,
    outer: Literal["loo"] | Splits = "loo",
    cv: Literal["loo"] | Splits = "loo",
    select: Select = "min",
    scoring: ScorerLike | None = None,
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
    approx: Approx | None = None,
    n_components: int | Literal["auto"] = 200,
) -> NestedResult: ...
def nested_cross_validate(
    X: Matrix,
    y: Vector,
    *,
    kernel: KernelName | KernelFunction = "rbf",
    gammas: float | GammaRule | Sequence[float | GammaRule] | HasShape | None = None,
    degree: int = 3,
    coef0: float = 0.0,
    loss: LossName = "hinge",
    epsilon: float | Sequence[float] | HasShape = 0.1,
    Cs: GridValues | None = None,
    lambdas: GridValues | None = None,
    outer: Literal["loo"] | Splits = "loo",
    cv: Literal["loo"] | Splits = "loo",
    select: Select = "min",
    scoring: ScorerLike | None = None,
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
    approx: Approx | None = None,
    n_components: int | Literal["auto"] = 200,
) -> NestedResult | NestedRegressionResult:
    """The error after tuning: the grid is tuned afresh without every outer fold, which then judges.

    The least cross-validated error of a grid is too good, since the point was chosen by it.  Here
    the rows that judge a choice had no part in it.

    Parameters
    ----------
    X, y, kernel, degree, coef0, loss, class_weight, fit_intercept, method, n_jobs, tol :
        As in ``exactcv.SVCCV``; two or more classes.  With ``loss="epsilon_insensitive"`` y are
        numbers, and what is tuned is ``exactcv.SVRCV``.
    epsilon : float or list of floats
        Of that loss, as in ``SVRCV``.
    gammas : float, "median", "scale", "auto", or a list of these, optional
        As ``gamma`` of ``SVCCV``.  Rules are worked out once, from all rows; with features in place
        of the kernel, without every outer fold.
    Cs, lambdas : array-like or float, optional
        The grid, as in ``SVCCV``; the default one grows in every outer fold by itself.
    outer : "loo", int, splitter or iterable
        The folds that judge, as ``cv`` of ``cross_validate``.
    cv : "loo", int, splitter or iterable
        The inner folds, which choose; splitters see the rows outside an outer fold, and pairs of
        row numbers (which count all rows) are cut down to them.
    select : {"min", "1se"}
    scoring : str, callable or None
        What is maximised in the inner folds and reported of the outer ones; None is accuracy (R2
        of numbers).
    groups : array-like of shape (n,), optional
        For splitters that use groups: then both ``outer`` and ``cv`` must be such.
    sample_weight : array-like of shape (n,), optional
        As in ``SVCCV``.
    random_state : int, RandomState or None
        For an int ``outer`` or ``cv``.
    progress : bool
        Show on standard error which outer fold is at work.
    memory_limit : int or str, optional
    approx, n_components :
        As in ``SVCCV``.  Features are made anew from the rows outside every outer fold, and so is
        all else that is learned from rows: gamma by a rule, the default grid, balanced weights.

    Returns
    -------
    NestedResult, or NestedRegressionResult of numbers

    Raises
    ------
    Interrupted
        On Ctrl-C (a KeyboardInterrupt); its ``partial`` is the result over the outer folds that
        are complete.

    Examples
    --------
    >>> import exactcv
    >>> X, y = exactcv.datasets.make_mixture(40, 4, random_state=0)
    >>> nested = exactcv.nested_cross_validate(
    ...     X, y, Cs=[0.1, 1.0, 10.0], gammas=[0.1, 1.0], outer=5
    ... )
    >>> nested.chosen.shape, nested.certificate.exact
    ((5, 2), True)
    """
    settings: dict[str, Any] = {
        "Cs": Cs,
        "lambdas": lambdas,
        "kernel": kernel,
        "gamma": gammas,
        "degree": degree,
        "coef0": coef0,
        "cv": cv,
        "scoring": scoring,
        "select": select,
        "fit_intercept": fit_intercept,
        "method": method,
        "n_jobs": n_jobs,
        "tol": tol,
        "random_state": random_state,
        "verbose": int(checks.check_flag("progress", progress)),
        "memory_limit": memory_limit,
        "approx": approx,
        "n_components": n_components,
    }
    rows = X, y, outer, sample_weight, groups
    if loss not in NUMERIC_LOSSES:
        return nested_of(SVCCV(loss=loss, class_weight=class_weight, **settings), *rows)
    if loss != "epsilon_insensitive":
        raise UnsupportedError(
            f"nested cross-validation of numbers tunes loss='epsilon_insensitive' (SVRCV), not "
            f"{loss!r}; of quantiles use QuantileSVRCV(...).nested_score(X, y)"
        )
    if class_weight is not None:
        raise InputError("class_weight goes with classes; numbers have none: use sample_weight")
    return nested_of_numbers(SVRCV(epsilon=epsilon, **settings), *rows)
