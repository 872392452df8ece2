"""An interval for the cross-validated error of one model: Bates, Hastie and Tibshirani.

The errors of a K-fold cross-validation are not independent, and their standard deviation over
sqrt(n) is too small.  Bates, Hastie and Tibshirani (Journal of the American Statistical Association
119, 2024) estimate the mean squared error of cross-validation itself.  Without fold k the other
K - 1 folds are cross-validated, which gives an estimate e_in of the error that the model without
fold k shows on it, e_out:

    a_k = (mean e_in - mean e_out)^2,    b_k = var(e_out) / |fold k|,    MSE = mean a - mean b,

over many random splits.  The estimate is that of the inner cross-validations less their bias, (1 +
(K - 2) / K) (inner - plain), and its standard error sqrt((K - 1) / K MSE), kept between that of
independent errors and sqrt(K) times it.

Leaving out folds k and k' serves both of them, so that a split takes K + K (K - 1) / 2 models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from ..exceptions import InputError
from ..problem.checks import seed_from
from ..types import (
    FloatArray,
    GammaRule,
    IntArray,
    KernelFunction,
    KernelName,
    Matrix,
    Seed,
    Vector,
)
from .cross_validate import cross_validate

__all__ = ["CVInterval", "cv_interval"]

_Z = 1.959963984540054  # of the normal distribution, for 95 percent


@dataclass(frozen=True)
class CVInterval:
    """The cross-validated error of one model, and how sure it is.

    Attributes
    ----------
    error : float
        The estimate, corrected for the smaller training sets of the inner folds.
    se : float
        Its standard error, for the error of the model trained on these rows.
    interval : (float, float)
        95 percent.
    plain, plain_se : float
        Of plain cross-validation, over the same splits, as if errors were independent.
    n_folds, n_repeats : int
    """

    error: float
    se: float
    interval: tuple[float, float]
    plain: float
    plain_se: float
    n_folds: int
    n_repeats: int


def cv_interval(
    X: Matrix,
    y: Vector,
    *,
    C: float = 1.0,
    gamma: float | GammaRule = "median",
    kernel: KernelName | KernelFunction = "rbf",
    folds: int = 10,
    repeats: int = 20,
    random_state: Seed | None = None,
    **settings: Any,
) -> CVInterval:
    """The interval of the cross-validated error after Bates, Hastie and Tibshirani.

    It holds for one C and gamma that were chosen beforehand; for the error after tuning use
    ``nested_cross_validate``.

    Parameters
    ----------
    X, y, kernel, gamma : as in ``exactcv.cross_validate``; two classes.
    C : float
    folds : int
        Stratified folds, at least 3.
    repeats : int
        Random splits; with few of them the interval itself varies.
    random_state : int, RandomState or None
        Draws them.
    **settings :
        More for ``cross_validate``: ``degree``, ``class_weight``, ``n_jobs`` and so on.

    Returns
    -------
    CVInterval

    Examples
    --------
    >>> import exactcv
    >>> X, y = exactcv.datasets.make_mixture(60, 4, random_state=0)
    >>> found = exactcv.cv_interval(X, y, C=1.0, folds=5, repeats=4, random_state=0)
    >>> found.se >= found.plain_se
    True
    """
    for name, value, least in (("folds", folds, 3), ("repeats", repeats, 1)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise InputError(f"{name}={value!r} must be an integer of at least {least}")
    labels = np.asarray(y)
    smallest = int(np.unique(labels, return_counts=True)[1].min())
    if smallest < folds:
        raise InputError(
            f"the smallest class has {smallest} rows, fewer than {folds} folds; use fewer folds"
        )
    rng = np.random.default_rng(seed_from(random_state))
    splits = [_split(labels, int(folds), int(rng.integers(2**31))) for _ in range(repeats)]
    given: Mapping[str, Any] = {"kernel": kernel, "gamma": gamma, **settings}
    pairs = [pair for parts in splits for pair in _models(parts, len(labels))]
    result = cross_validate(X, y, Cs=[float(C)], cv=pairs, **given)
    per_split = int(folds) + int(folds) * (int(folds) - 1) // 2
    wrong = np.split(result.pair_wrong[0], np.flatnonzero(np.diff(result.test_fold)) + 1)
    each = [
        _of_split(parts, wrong[r * per_split : (r + 1) * per_split])
        for r, parts in enumerate(splits)
    ]
    return _together(np.array(each), len(labels), int(folds))


def _split(labels: Any, folds: int, seed: int) -> list[IntArray]:
    cutter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    return [test for _, test in cutter.split(np.zeros((len(labels), 1)), labels)]


def _models(parts: list[IntArray], n: int) -> list[tuple[IntArray, IntArray]]:
    """(train, test): without each fold, then without each two, tested on both."""
    everyone, K = np.arange(n), len(parts)
    left = list(parts)
    left += [np.concatenate([parts[i], parts[j]]) for i in range(K) for j in range(i + 1, K)]
    return [(np.setdiff1d(everyone, out), out) for out in left]


def _of_split(parts: list[IntArray], wrong: list[Any]) -> list[float]:
    """Means of a and b, of the inner and the plain errors."""
    K = len(parts)
    inner: list[list[Any]] = [[] for _ in parts]
    models = iter(wrong[K:])
    for i in range(K):
        for j in range(i + 1, K):
            both = next(models)
            inner[i].append(both[len(parts[i]) :])
            inner[j].append(both[: len(parts[i])])
    e_in = [np.concatenate(one) for one in inner]
    a = [(e_in[k].mean() - wrong[k].mean()) ** 2 for k in range(K)]
    b = [wrong[k].var(ddof=1) / len(wrong[k]) if len(wrong[k]) > 1 else 0.0 for k in range(K)]
    plain = np.concatenate(wrong[:K])
    return [float(np.mean(x)) for x in (a, b, np.concatenate(e_in), plain)]


def _together(each: FloatArray, n: int, K: int) -> CVInterval:
    a, b, inner, plain = (float(mean) for mean in each.mean(axis=0))
    error = inner - (1.0 + (K - 2.0) / K) * (inner - plain)
    independent = float(np.sqrt(plain * (1.0 - plain) / n))
    se = float(np.sqrt((K - 1.0) / K * max(a - b, 0.0)))
    se = min(max(se, independent), float(np.sqrt(K)) * independent)
    interval = (max(error - _Z * se, 0.0), min(error + _Z * se, 1.0))
    return CVInterval(error, se, interval, plain, independent, K, len(each))
