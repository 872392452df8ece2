"""The kernel matrix: one C-contiguous float64 array, symmetric to the last bit.

The matrix is filled by square tiles that stay in cache.  Only tiles on and above the diagonal are
computed; each is mirrored while it is warm.  Nothing of size n x n is allocated besides the
matrix itself: the squared distances that ``gamma="median"`` needs are kept in the matrix, and
turned into kernel values in place (if no two rows are equal; else they are worked out apart).

=========== ===================================
rbf         exp(-gamma ||x - z||^2)
laplacian   exp(-gamma ||x - z||_1)
poly        (gamma x'z + coef0) ** degree
sigmoid     tanh(gamma x'z + coef0)
linear      x'z
precomputed X is the matrix
=========== ===================================
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky
from scipy.spatial.distance import cdist

from .exceptions import InputError, InputTypeError, NotPSDWarning
from .losses import FloatArray
from .parallel import Workers

__all__ = [
    "GAMMA_RULES",
    "KERNELS",
    "Kernel",
    "check_psd",
    "gamma_value",
    "kernel_between",
    "kernel_matrix",
    "median_gamma",
]

KERNELS = ("rbf", "laplacian", "poly", "sigmoid", "linear", "precomputed")
GAMMA_RULES = ("median", "scale", "auto")

KernelFunction = Callable[[FloatArray, FloatArray], FloatArray]
Tile = tuple[slice, slice]

_TILE = 256  # 512 kB: a tile and its transpose fit in a common second-level cache
_SYMMETRY = 1e-10  # relative to the largest entry
_PSD_ROWS = 2000  # a Cholesky factorisation of this size takes a fraction of a second


@dataclass(frozen=True)
class Kernel:
    """A kernel and its parameters, checked by ``inputs.py``."""

    name: str | KernelFunction = "rbf"
    gamma: float | str = "median"
    degree: int = 3
    coef0: float = 0.0

    @property
    def uses_gamma(self) -> bool:
        return self.name in ("rbf", "laplacian", "poly", "sigmoid")

    @property
    def psd_by_construction(self) -> bool:
        return self.name in ("rbf", "laplacian", "linear") or (
            self.name == "poly" and self.coef0 >= 0
        )


def kernel_matrix(
    X: FloatArray, kernel: Kernel, workers: Workers | None = None
) -> tuple[FloatArray, float | None]:
    """The kernel matrix of the rows of X, and the value of gamma that was used.

    Parameters
    ----------
    X : ndarray of shape (n, p), or the matrix itself when precomputed
    kernel : Kernel
    workers : Workers, optional
        Threads that share the tiles.  Every tile is computed by one thread, so the result does
        not depend on their number.

    Returns
    -------
    K : ndarray of shape (n, n)
    gamma : float or None
        None for kernels that have no gamma.

    Examples
    --------
    >>> import numpy as np
    >>> K, gamma = kernel_matrix(np.array([[0.0], [1.0], [2.0]]), Kernel("rbf", gamma=0.5))
    >>> K.round(3)
    array([[1.   , 0.607, 0.135],
           [0.607, 1.   , 0.607],
           [0.135, 0.607, 1.   ]])
    """
    gamma: float | None = None
    if callable(kernel.name):
        K = _checked_matrix(kernel.name(X, X), "the kernel function's result", len(X))
    elif kernel.name == "precomputed":
        K = _checked_matrix(X, "the precomputed kernel matrix", len(X))
    else:
        K, gamma = _built_in(X, kernel, workers)
    return K, gamma


def _built_in(
    X: FloatArray, kernel: Kernel, workers: Workers | None
) -> tuple[FloatArray, float | None]:
    K = np.empty((len(X), len(X)))
    gamma = _gamma_by_rule(X, kernel) if kernel.uses_gamma else None
    have_distances = False
    if kernel.uses_gamma and gamma is None and _all_differ(X):
        _fill(K, _squared_distances(X), workers)
        gamma = 1.0 / _median_distance(K)
        have_distances = True
    elif kernel.uses_gamma and gamma is None:
        gamma = median_gamma(X)
    step: Callable[[FloatArray, Tile], None]
    if kernel.name == "rbf":
        assert gamma is not None
        distances = None if have_distances else _squared_distances(X)
        step = _exponential(distances, gamma)
    elif kernel.name == "laplacian":
        assert gamma is not None
        step = _exponential(_city_block(X), gamma)
    else:
        step = _of_products(X, kernel, gamma)
    _fill(K, step, workers, mirror=True)
    # A product x'z is largest on the diagonal, so overflow shows there first.
    if not np.isfinite(np.diagonal(K)).all():
        raise InputError(
            f"the {kernel.name} kernel overflows on these data: standardise the features of X "
            "or choose smaller gamma, degree or coef0"
        )
    return K, gamma


def gamma_value(X: FloatArray, kernel: Kernel, weight: FloatArray | None = None) -> float | None:
    """gamma as a number; None for kernels that have none.

    A row of weight w counts as w equal rows, one of weight zero not at all.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> gamma_value(X, Kernel(gamma="scale"), np.array([1.0, 3.0, 0.0]))
    5.333333333333333
    """
    if not kernel.uses_gamma:
        return None
    gamma = _gamma_by_rule(X, kernel, weight)
    return median_gamma(X, weight) if gamma is None else gamma


def _gamma_by_rule(X: FloatArray, kernel: Kernel, weight: FloatArray | None = None) -> float | None:
    """gamma for a number, "scale" and "auto" (as scikit-learn); None for "median"."""
    if kernel.gamma == "median":
        return None
    if kernel.gamma == "scale":
        variance = float(X.var()) if weight is None else _weighted_variance(X, weight)
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if kernel.gamma == "auto":
        return 1.0 / X.shape[1]
    return float(kernel.gamma)


def _weighted_variance(X: FloatArray, weight: FloatArray) -> float:
    """Over all entries of X at once, as ``X.var()``."""
    share = weight / (weight.sum() * X.shape[1])
    centred = X - float(share @ X.sum(axis=1))
    return float(share @ np.einsum("ij,ij->i", centred, centred))


# --- tiles -------------------------------------------------------------------------------------


def _strips(n: int) -> list[slice]:
    return [slice(start, min(start + _TILE, n)) for start in range(0, n, _TILE)]


def _tiles(n: int) -> Iterator[Tile]:
    """Tiles on and above the diagonal, row by row."""
    strips = _strips(n)
    for k, rows in enumerate(strips):
        for columns in strips[k:]:
            yield rows, columns


def _fill(
    K: FloatArray,
    step: Callable[[FloatArray, Tile], None],
    workers: Workers | None,
    mirror: bool = False,
) -> None:
    """Run ``step`` on every upper tile of K (in place); then copy it below the diagonal."""
    strips = _strips(len(K))

    def one_strip(k: int) -> None:
        rows = strips[k]
        for columns in strips[k:]:
            tile = K[rows, columns]
            step(tile, (rows, columns))
            if mirror and rows.start == columns.start:
                tile[:] = np.triu(tile) + np.triu(tile, 1).T
            elif mirror:
                K[columns, rows] = tile.T

    for_all = map if workers is None else workers.map
    list(for_all(one_strip, range(len(strips))))


def _squared_distances(X: FloatArray) -> Callable[[FloatArray, Tile], None]:
    """||x||^2 + ||z||^2 - 2 x'z, one matrix product a tile, on centred data.

    The norms ride along as two more columns: [-2x, ||x||^2, 1] [z, 1, ||z||^2]'.
    """
    centred = X - X.mean(axis=0)
    norms = np.einsum("ij,ij->i", centred, centred)
    if not np.isfinite(4.0 * norms.max()):
        raise InputError("squared distances between rows of X overflow: standardise the features")
    ones = np.ones_like(norms)
    left = np.column_stack([-2.0 * centred, norms, ones])
    right = np.column_stack([centred, ones, norms])

    def step(tile: FloatArray, where: Tile) -> None:
        rows, columns = where
        np.matmul(left[rows], right[columns].T, out=tile)
        np.maximum(tile, 0.0, out=tile)
        if rows.start == columns.start:
            np.fill_diagonal(tile, 0.0)

    return step


def _city_block(X: FloatArray) -> Callable[[FloatArray, Tile], None]:
    def step(tile: FloatArray, where: Tile) -> None:
        tile[:] = cdist(X[where[0]], X[where[1]], "cityblock")

    return step


def _exponential(
    distances: Callable[[FloatArray, Tile], None] | None, gamma: float
) -> Callable[[FloatArray, Tile], None]:
    """exp(-gamma d); d is in the tile already when ``distances`` is None."""

    def step(tile: FloatArray, where: Tile) -> None:
        if distances is not None:
            distances(tile, where)
        np.multiply(tile, -gamma, out=tile)
        np.exp(tile, out=tile)

    return step


def _of_products(
    X: FloatArray, kernel: Kernel, gamma: float | None
) -> Callable[[FloatArray, Tile], None]:
    def step(tile: FloatArray, where: Tile) -> None:
        np.matmul(X[where[0]], X[where[1]].T, out=tile)
        if gamma is None:
            return
        tile *= gamma
        tile += kernel.coef0
        if kernel.name == "sigmoid":
            np.tanh(tile, out=tile)
        else:
            base = tile.copy()  # products are far quicker than pow()
            for _ in range(kernel.degree - 1):
                tile *= base

    return step


# --- gamma = 1 / median squared distance -------------------------------------------------------


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
    if weight is None and not _all_differ(X):
        weight = np.ones(len(X))
    if weight is not None:
        used = weight > 0
        X, inverse = np.unique(X[used], axis=0, return_inverse=True)
        copies = np.asarray(np.bincount(inverse.ravel(), weights=weight[used]), dtype=float)
        weight = None if (copies == copies[0]).all() else copies
    K = np.empty((len(X), len(X)))
    _fill(K, _squared_distances(X), None)
    return 1.0 / (_median_distance(K) if weight is None else _weighted_median(K, weight))


def _all_differ(X: FloatArray) -> bool:
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
    for rows, columns in _tiles(len(D)):
        tile, pair = D[rows, columns], np.outer(weight[rows], weight[columns])
        if rows.start == columns.start:
            above = np.triu_indices(len(tile), 1)
            tile, pair = tile[above], pair[above]
        below += float(pair[tile < low].sum())
        inside = (tile >= low) & (tile <= high)
        values.append(tile[inside])
        counts.append(pair[inside])
    return np.concatenate(values), below, np.concatenate(counts)


def _median_distance(D: FloatArray) -> float:
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
    for rows, columns in _tiles(len(D)):
        tile = D[rows, columns]
        if rows.start == columns.start:
            tile = tile[np.triu_indices(len(tile), 1)]
        is_below = tile < low
        below += int(np.count_nonzero(is_below))
        inside.append(tile[(tile <= high) > is_below])  # kept: not above and not below
    return below, np.concatenate(inside)


def _mean_distance(D: FloatArray, n_pairs: int) -> float:
    total = 0.0
    for rows, columns in _tiles(len(D)):
        tile = D[rows, columns]
        total += float((np.triu(tile, 1) if rows.start == columns.start else tile).sum())
    return total / n_pairs if total > 0 else 1.0


# --- new rows ----------------------------------------------------------------------------------


def kernel_between(X: Any, Z: Any, kernel: Kernel) -> FloatArray:
    """k(x, z) for rows of X and Z (dense or sparse); gamma must be a number.

    Examples
    --------
    >>> import numpy as np
    >>> kernel_between(np.array([[0.0], [2.0]]), np.array([[1.0]]), Kernel("linear"))
    array([[0.],
           [2.]])
    """
    from sklearn.metrics.pairwise import pairwise_kernels

    if callable(kernel.name):
        return np.asarray(kernel.name(X, Z), dtype=float)
    own = {"gamma": kernel.gamma} if kernel.uses_gamma else {}
    if kernel.name in ("poly", "sigmoid"):
        own["coef0"] = kernel.coef0
    if kernel.name == "poly":
        own["degree"] = kernel.degree
    found = pairwise_kernels(X, Z, metric=kernel.name, **own)
    return np.asarray(found.toarray() if sparse.issparse(found) else found)


# --- matrices that come from outside -----------------------------------------------------------


def _checked_matrix(K: object, what: str, n: int) -> FloatArray:
    """Square, finite and symmetric; the very array if it is exactly symmetric float64."""
    try:
        K = np.ascontiguousarray(K, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"{what} is not a numeric matrix: {error}") from error
    if K.shape != (n, n):
        raise InputError(f"{what} has shape {K.shape}; it must be square, ({n}, {n})")
    largest, asymmetry, where = 0.0, 0.0, (0, 0)
    for rows, columns in _tiles(n):
        upper, lower = K[rows, columns], K[columns, rows].T
        if not (np.isfinite(upper).all() and np.isfinite(lower).all()):
            raise InputError(f"{what} contains NaN or infinity")
        difference = np.abs(upper - lower)
        largest = max(largest, float(np.abs(upper).max()), float(np.abs(lower).max()))
        worst = float(difference.max())
        if worst > asymmetry:
            i, j = divmod(int(difference.argmax()), difference.shape[1])
            asymmetry, where = worst, (i + rows.start, j + columns.start)
    if asymmetry > _SYMMETRY * largest:
        i, j = where
        raise InputError(
            f"{what} is not symmetric: entry ({i}, {j}) is {K[i, j]:.6g} but ({j}, {i}) is "
            f"{K[j, i]:.6g}; use (K + K.T) / 2 if the difference is meant to be rounding"
        )
    return K if asymmetry == 0.0 else 0.5 * (K + K.T)


def check_psd(K: FloatArray, kernel: Kernel) -> bool:
    """Is K positive semidefinite?  If not, warn.

    Kernels that may not be are put to a Cholesky factorisation, of a fixed random part if K is
    large.

    Examples
    --------
    >>> import numpy as np
    >>> check_psd(np.eye(3), Kernel("precomputed"))
    True
    """
    if kernel.psd_by_construction:
        return True
    if len(K) > _PSD_ROWS:
        chosen = np.random.default_rng(0).choice(len(K), _PSD_ROWS, replace=False)
        part = K[np.ix_(chosen, chosen)]
    else:
        part = K.copy()
    # A singular matrix has eigenvalues of rounding size on both sides of zero.
    part.flat[:: len(part) + 1] += 1e-12 * max(float(np.trace(np.abs(part))), 1e-300)
    try:
        cholesky(part, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        warnings.warn(
            "the kernel matrix is not positive semidefinite: the training problem is not convex, "
            "so solutions may be local ones and result.certificate.exact is False; method 'exact' "
            "solves every fold from scratch",
            NotPSDWarning,
            stacklevel=3,
        )
        return False
    return True
