"""gamma by rule: "median" (1 / median squared distance), "scale" and "auto".

A row of weight w counts as w equal rows, one of weight zero not at all.
"""

from __future__ import annotations

from typing import get_args

import numpy as np

from ..types import FloatArray, GammaRule
from .tiles import fill, squared_distances, tiles

__all__ = [
    "DEFAULT_GAMMAS",
    "GAMMA_RULES",
    "all_differ",
    "around",
    "gamma_by_rule",
    "median_distance",
    "median_gamma",
]

GAMMA_RULES = get_args(GammaRule)
DEFAULT_GAMMAS = 5  # around the median rule, where gamma is tuned and none is given
GAMMA_STEP = 4.0


def around(gamma: float, count: int = DEFAULT_GAMMAS) -> list[float]:
    """``count`` values around gamma, each four times the one before; gamma is among them.

    Examples
    --------
    >>> around(1.0), around(1.0, 2)
    ([0.0625, 0.25, 1.0, 4.0, 16.0], [0.25, 1.0])
    """
    return [gamma * GAMMA_STEP ** (k - count // 2) for k in range(count)]


def gamma_by_rule(
    X: FloatArray, gamma: float | str, weight: FloatArray | None = None
) -> float | None:
    """gamma for a number, "scale" and "auto" (as scikit-learn); None for "median"."""
    if gamma == "median":
        return None
    if gamma == "scale":
        variance = float(X.var()) if weight is None else _weighted_variance(X, weight)
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if gamma == "auto":
        return 1.0 / X.shape[1]
    return float(gamma)


def _weighted_variance(X: FloatArray, weight: FloatArray) -> float:
    """Over all entries of X at once, as ``X.var()``."""
    share = weight / (weight.sum() * X.shape[1])
    centred = X - float(share @ X.sum(axis=1))
    return float(share @ np.einsum("ij,ij->i", centred, centred))


def median_gamma(X: FloatArray, weight: FloatArray | None = None) -> float:
    """1 / the median of the squared distances between rows i < j that differ.

    A row of weight w counts as w equal rows, one of weight zero not at all.  Equal rows have no
    distance to count, so the answer is the same for a weight and for that many copies.  If the
    median is zero all the same, by rounding, the mean takes its place; if all rows are equal the
    answer is 1.

    Examples
    --------
    >>> import numpy as np
    >>> median_gamma(np.array([[0.0], [1.0], [3.0]]))
    0.25
    >>> X = np.array([[0.0], [1.0], [3.0], [3.0]])
    >>> median_gamma(X), median_gamma(X[:3], np.array([1.0, 1.0, 2.0]))
    (0.25, 0.25)
    """
    if weight is None and not all_differ(X):
        weight = np.ones(len(X))
    if weight is not None:
        used = weight > 0
        X, inverse = np.unique(X[used], axis=0, return_inverse=True)
        copies = np.asarray(np.bincount(inverse.ravel(), weights=weight[used]), dtype=float)
        weight = None if (copies == copies[0]).all() else copies
    K = np.empty((len(X), len(X)))
    fill(K, squared_distances(X), None)
    return 1.0 / (median_distance(K) if weight is None else _weighted_median(K, weight))


def all_differ(X: FloatArray) -> bool:
    """No two rows are equal: certain if their hashes differ, else sorted to make sure."""
    same_zeros = X + 0.0
    if len({hash(row.tobytes()) for row in same_zeros}) == len(X):
        return True
    return len(np.unique(X, axis=0)) == len(X)


def _weighted_median(D: FloatArray, weight: FloatArray) -> float:
    """The median above the diagonal of D, where the pair i, j counts w_i w_j times.

    With two middle values, as for an even number of pairs, their mean.
    """
    if len(D) < 2:
        return 1.0
    total = 0.5 * (weight.sum() ** 2 - weight @ weight)
    low, high = _bracket(D, weight=weight) if len(D) > 320 else (0.0, np.inf)
    value, below, counts = _weigh_and_collect(D, weight, low, high)
    if not below < 0.5 * total < below + counts.sum():
        value, below, counts = _weigh_and_collect(D, weight, 0.0, np.inf)
    order = np.argsort(value, kind="stable")
    reached = below + np.cumsum(counts[order])
    slack = 1e-12 * total  # weights that are no integers are added up with some rounding
    lower = min(int(np.searchsorted(reached, 0.5 * total - slack)), len(order) - 1)
    upper = min(int(np.searchsorted(reached, 0.5 * total + slack)), len(order) - 1)
    median = float(0.5 * (value[order[lower]] + value[order[upper]]))
    return median if median > 0 else _mean_distance(D, len(D) * (len(D) - 1) // 2)


def _weigh_and_collect(
    D: FloatArray, weight: FloatArray, low: float, high: float
) -> tuple[FloatArray, float, FloatArray]:
    """The pairs in [low, high], the weight of those below, and the weight of each inside."""
    below, values, counts = 0.0, [], []
    for rows, columns in tiles(len(D)):
        tile, pair = D[rows, columns], np.outer(weight[rows], weight[columns])
        if rows.start == columns.start:
            above = np.triu_indices(len(tile), 1)
            tile, pair = tile[above], pair[above]
        below += float(pair[tile < low].sum())
        inside = (tile >= low) & (tile <= high)
        values.append(tile[inside])
        counts.append(pair[inside])
    return np.concatenate(values), below, np.concatenate(counts)


def median_distance(D: FloatArray) -> float:
    """The exact median above the diagonal of D (upper tiles filled), or its stand-in."""
    n = len(D)
    n_pairs = n * (n - 1) // 2
    if n_pairs == 0:
        return 1.0
    middle = ((n_pairs - 1) // 2, n_pairs // 2)
    low, high = _bracket(D) if n_pairs > 50_000 else (0.0, np.inf)
    below, inside = _count_and_collect(D, low, high)
    if not below <= middle[0] <= middle[1] < below + len(inside):
        below, inside = _count_and_collect(D, 0.0, np.inf)
    ranks = (middle[0] - below, middle[1] - below)
    inside.partition(ranks)
    median = float(0.5 * (inside[ranks[0]] + inside[ranks[1]]))
    return median if median > 0 else _mean_distance(D, n_pairs)


def _bracket(
    D: FloatArray, size: int = 20_000, weight: FloatArray | None = None
) -> tuple[float, float]:
    """An interval that holds the median of D's upper triangle, barring a 6-sigma accident."""
    rng = np.random.default_rng(0)
    if weight is None:
        i = rng.integers(0, len(D), size)
        j = (i + rng.integers(1, len(D), size)) % len(D)
    else:
        i, j = rng.choice(len(D), (2, size), p=weight / weight.sum())
        i, j = i[i != j], j[i != j]
    sample = np.sort(D[np.minimum(i, j), np.maximum(i, j)])
    middle, half_width = len(sample) // 2, int(3.0 * np.sqrt(len(sample)))
    low, high = max(middle - half_width, 0), min(middle + half_width, len(sample) - 1)
    return (float(sample[low]), float(sample[high])) if len(sample) else (0.0, np.inf)


def _count_and_collect(D: FloatArray, low: float, high: float) -> tuple[int, FloatArray]:
    """How many pairs lie below ``low``, and the values of those in [low, high]."""
    below, inside = 0, []
    for rows, columns in tiles(len(D)):
        tile = D[rows, columns]
        if rows.start == columns.start:
            tile = tile[np.triu_indices(len(tile), 1)]
        is_below = tile < low
        below += int(np.count_nonzero(is_below))
        inside.append(tile[(tile <= high) > is_below])  # kept: not above and not below
    return below, np.concatenate(inside)


def _mean_distance(D: FloatArray, n_pairs: int) -> float:
    total = 0.0
    for rows, columns in tiles(len(D)):
        tile = D[rows, columns]
        total += float((np.triu(tile, 1) if rows.start == columns.start else tile).sum())
    return total / n_pairs if total > 0 else 1.0
