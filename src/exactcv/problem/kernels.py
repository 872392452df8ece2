"""The kernel matrix: one C-contiguous float64 array, symmetric to the last bit.

Equal rows of X have equal rows in it, also to the last bit.

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
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky
from scipy.spatial.distance import cdist

from .._core._gather import rbf
from ..exceptions import InputError, InputTypeError, NotPSDWarning
from ..runtime.threads import Workers
from ..runtime.user_line import user_level
from ..types import FloatArray, KernelFunction, KernelName
from .gamma import all_differ, gamma_by_rule, median_distance, median_gamma
from .repeated import ROUNDING, copy_repeated, first_equal, first_similar
from .tiles import Tile, fill, products, squared_distances, tiles

__all__ = [
    "KERNELS",
    "Distances",
    "Kernel",
    "check_psd",
    "gamma_value",
    "is_psd",
    "kernel_between",
    "kernel_matrix",
    "kernel_scale",
    "of_weighted_rows",
    "overflow_error",
]

KERNELS = get_args(KernelName)

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
    def label(self) -> str:
        """What it is called."""
        return (
            self.name if isinstance(self.name, str) else getattr(self.name, "__name__", "callable")
        )

    @property
    def psd_by_construction(self) -> bool:
        return self.name in ("rbf", "laplacian", "linear") or (
            self.name == "poly" and self.coef0 >= 0
        )


def kernel_matrix(
    X: FloatArray, kernel: Kernel, workers: Workers | None = None, symmetric: bool = True
) -> tuple[FloatArray, float | None]:
    """The kernel matrix of the rows of X, and the value of gamma that was used.

    Parameters
    ----------
    X : ndarray of shape (n, p), or the matrix itself when precomputed
    kernel : Kernel
    workers : Workers, optional
        Threads that share the tiles.  Every tile is computed by one thread, so the result does
        not depend on their number.
    symmetric : bool
        Refuse a matrix or a function that is not symmetric; for the smooth SVM it may be anything.

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
        K = _checked_matrix(kernel.name(X, X), "the kernel function's result", len(X), symmetric)
    elif kernel.name == "precomputed":
        K = _checked_matrix(X, "the precomputed kernel matrix", len(X), symmetric)
    else:
        K, gamma = _built_in(X, kernel, workers)
    return K, gamma


def _built_in(
    X: FloatArray, kernel: Kernel, workers: Workers | None
) -> tuple[FloatArray, float | None]:
    K = np.empty((len(X), len(X)))
    gamma = gamma_by_rule(X, kernel.gamma) if kernel.uses_gamma else None
    have_distances = False
    if kernel.uses_gamma and gamma is None and all_differ(X):
        fill(K, squared_distances(X), workers)
        gamma = 1.0 / median_distance(K)
        have_distances = True
    elif kernel.uses_gamma and gamma is None:
        gamma = median_gamma(X)
    step: Callable[[FloatArray, Tile], None]
    if kernel.name == "rbf":
        assert gamma is not None
        distances = None if have_distances else squared_distances(X)
        step = _exponential(distances, gamma)
    elif kernel.name == "laplacian":
        assert gamma is not None
        step = _exponential(_city_block(X), gamma)
    else:
        step = _of_products(X, kernel, gamma)
    fill(K, step, workers, mirror=True)
    copy_repeated(K, first_equal(X))
    # A product x'z is largest on the diagonal, so overflow shows there first.
    if not np.isfinite(np.diagonal(K)).all():
        raise overflow_error(f"the {kernel.name} kernel")
    return K, gamma


class Distances:
    """The squared distances of all rows, for RBF kernels with several gammas.

    Takes as much memory as a kernel matrix, and less time than each of them.

    Examples
    --------
    >>> import numpy as np
    >>> Distances(np.array([[0.0], [1.0], [2.0]])).rbf(0.5)[0].round(3)
    array([1.   , 0.607, 0.135])
    """

    def __init__(self, X: FloatArray, workers: Workers | None = None):
        self.squares = np.empty((len(X), len(X)))
        fill(self.squares, squared_distances(X), workers, mirror=True)
        copy_repeated(self.squares, first_equal(X))

    def rbf(self, gamma: float) -> FloatArray:
        """The kernel matrix."""
        K = np.empty_like(self.squares)
        rbf(self.squares, gamma, K)
        return K


def overflow_error(what: str) -> InputError:
    """What to raise when numbers made of the rows of X are not finite."""
    return InputError(
        f"{what} overflows on these data: standardise the features of X or choose smaller gamma, "
        "degree or coef0"
    )


def kernel_scale(X: FloatArray, kernel: Kernel, K: FloatArray | None = None) -> float:
    """The variance of the rows in feature space: what C is measured against.  K, if it is known.

    mean_i k(x_i, x_i) - mean_ij k(x_i, x_j), the mean squared distance from the mean; 1 for kernels
    with k(x, x) = 1, so that the usual C stay what they are.

    Examples
    --------
    >>> import numpy as np
    >>> kernel_scale(np.array([[0.0], [4.0]]), Kernel("linear"))
    4.0
    """
    if kernel.name in ("rbf", "laplacian"):
        return 1.0
    if kernel.name == "linear":
        with np.errstate(over="ignore"):
            return float(X.var(axis=0).sum())
    if K is None:
        K = X if kernel.name == "precomputed" else kernel_matrix(X, kernel)[0]
    return float(np.diagonal(K).mean() - K.mean())


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
    if weight is not None and _even(weight):
        weight = None
    gamma = gamma_by_rule(X, kernel.gamma, weight)
    return median_gamma(X, weight) if gamma is None else gamma


def of_weighted_rows(kernel: Kernel, X: FloatArray, weight: FloatArray) -> Kernel:
    """The kernel; with gamma as a number where rows do not weigh the same.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> of_weighted_rows(Kernel(gamma="scale"), X, np.array([1.0, 3.0, 0.0])).gamma
    5.333333333333333
    """
    gamma = None if _even(weight) else gamma_value(X, kernel, weight)
    return kernel if gamma is None else replace(kernel, gamma=gamma)


def _even(weight: FloatArray) -> bool:
    return bool((weight == weight[:1]).all())


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
        rbf(tile, gamma, tile)

    return step


def _of_products(
    X: FloatArray, kernel: Kernel, gamma: float | None
) -> Callable[[FloatArray, Tile], None]:
    inner = products(X)

    @np.errstate(over="ignore", invalid="ignore")  # it is seen at the end
    def step(tile: FloatArray, where: Tile) -> None:
        inner(tile, where)
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

    if Z.shape[0] == 0:
        return np.zeros((X.shape[0], 0))
    if callable(kernel.name):
        return np.asarray(kernel.name(X, Z), dtype=float)
    own = {"gamma": kernel.gamma} if kernel.uses_gamma else {}
    if kernel.name in ("poly", "sigmoid"):
        own["coef0"] = kernel.coef0
    if kernel.name == "poly":
        own["degree"] = kernel.degree
    if kernel.name == "laplacian":
        X, Z = _short_indices(X), _short_indices(Z)
    found = pairwise_kernels(X, Z, metric=kernel.name, **own)
    return np.asarray(found.toarray() if sparse.issparse(found) else found)


def _short_indices(X: Any) -> Any:
    """The city-block distances of sparse rows take 32-bit indices only; sparse arrays have more."""
    if not sparse.issparse(X):
        return X
    X = X.tocsr(copy=False)
    parts = (part.astype(np.int32, copy=False) for part in (X.indices, X.indptr))
    return sparse.csr_matrix((X.data, *parts), shape=X.shape)


# --- matrices that come from outside -----------------------------------------------------------


def _checked_matrix(K: object, what: str, n: int, symmetric: bool = True) -> FloatArray:
    """Square, finite and symmetric; the very array if it is exactly symmetric float64.

    Or finite with n rows.
    """
    try:
        K = np.ascontiguousarray(K, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"{what} is not a numeric matrix: {error}") from error
    if not symmetric and K.ndim == 2 and len(K) == n:
        if not np.isfinite(K).all():
            raise InputError(f"{what} contains NaN or infinity")
        return K
    if K.shape != (n, n):
        raise InputError(f"{what} has shape {K.shape}; it must be square, ({n}, {n})")
    largest, asymmetry, where = 0.0, 0.0, (0, 0)
    for rows, columns in tiles(n):
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
    return _with_equal_rows(K if asymmetry == 0.0 else 0.5 * (K + K.T))


def _with_equal_rows(K: FloatArray) -> FloatArray:
    """Rows that differ by rounding made equal; the very array if there are none."""
    first = first_similar(K, ROUNDING)
    repeated = np.flatnonzero(first != np.arange(len(K)))
    if all(np.array_equal(K[i], K[first[i]]) for i in repeated):
        return K
    K = K.copy()
    copy_repeated(K, first)
    return K


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
    if is_psd(K, kernel):
        return True
    warnings.warn(
        "the kernel matrix is not positive semidefinite: the training problem is not convex, "
        "so solutions may be local ones and result.certificate.exact is False; method 'exact' "
        "solves every fold from scratch",
        NotPSDWarning,
        stacklevel=user_level(),
    )
    return False


def is_psd(K: FloatArray, kernel: Kernel) -> bool:
    """The same without the warning."""
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
        return False
    return True
