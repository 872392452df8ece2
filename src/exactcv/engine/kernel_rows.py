"""Where kernel rows come from: a matrix in memory, or features and a cache of bounded size.

A *row source* knows n, the diagonal of K, and can

- open a ``RowCache`` (``_core/_rows.pyx``) for the rows of one training set: the solver's own view,
  which hands out contiguous rows and counts kernel evaluations;
- compute a block K[rows, columns] at once, for the seeds.

``CachedRows`` never holds more of K than its budget and the blocks asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from .._core._rows import KERNEL_CODES, RowCache
from ..exceptions import InputError, UnsupportedError
from ..problem.kernels import Kernel
from ..runtime.memory import parse_bytes
from ..types import FloatArray, IntArray

__all__ = ["CachedRows", "MatrixRows", "RowSource", "as_rows"]

# Contiguous copies of matrix rows that a solve may hold: all that small problems need.
MATRIX_COPIES = 1 << 25
# Up to that many features, blocks are quicker by way of dense features.
DENSE_COLUMNS = 2000


class RowSource(Protocol):
    """Rows of an n x n kernel."""

    @property
    def n(self) -> int: ...

    @property
    def diagonal(self) -> FloatArray: ...

    def open(self, rows: IntArray) -> RowCache: ...

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray: ...


@dataclass(frozen=True)
class MatrixRows:
    """Rows of a symmetric, C-contiguous matrix, which is never copied as a whole.

    Examples
    --------
    >>> import numpy as np
    >>> MatrixRows(np.eye(3)).block(np.array([0, 1]), np.array([1]))
    array([[0.],
           [1.]])
    """

    K: FloatArray

    @property
    def n(self) -> int:
        return len(self.K)

    @cached_property
    def diagonal(self) -> FloatArray:
        return np.ascontiguousarray(np.diagonal(self.K))

    def open(self, rows: IntArray) -> RowCache:
        return RowCache.of_matrix(self.K, rows, max(MATRIX_COPIES, 16 * len(rows)))

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        return np.asarray(self.K[rows[:, None], columns])


class CachedRows:
    """Rows computed from features, on demand, into a cache of at most ``budget`` bytes.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, p)
        Used as it is: sparse features stay sparse, and their rows are quicker to compute.
    kernel : Kernel
        Any but a callable or "precomputed"; gamma a number.  "laplacian" needs dense features.
    budget : int or str
        Bytes, or for example "200MB".  Each cache that is opened may take that much.

    Examples
    --------
    >>> import numpy as np
    >>> from exactcv.problem.kernels import Kernel
    >>> source = CachedRows(np.array([[0.0], [1.0]]), Kernel("rbf", gamma=1.0), "1MB")
    >>> source.open(np.array([0, 1])).get(0)
    [1.0, 0.36787944117144233]
    """

    def __init__(self, X: Any, kernel: Kernel, budget: int | str = "200MB"):
        if kernel.name not in KERNEL_CODES:
            raise UnsupportedError(
                f"kernel={kernel.name!r} cannot be computed row by row; use one of "
                f"{', '.join(map(repr, KERNEL_CODES))}"
            )
        if kernel.uses_gamma and isinstance(kernel.gamma, str):
            raise InputError(f"gamma={kernel.gamma!r}: a cache of rows needs gamma as a number")
        self.kernel, self.budget = kernel, parse_bytes(budget)
        self.X = _as_rows_of_numbers(X)
        if sparse.issparse(self.X) and kernel.name == "laplacian":
            raise UnsupportedError("kernel='laplacian' needs dense features: use X.toarray()")
        gamma = float(kernel.gamma) if kernel.uses_gamma else 1.0
        code = KERNEL_CODES[kernel.name]
        self._compiled = (code, gamma, float(kernel.degree), float(kernel.coef0))

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @cached_property
    def squares(self) -> FloatArray:
        """||x_i||^2."""
        if sparse.issparse(self.X):
            return np.ascontiguousarray(self.X.multiply(self.X).sum(axis=1)).ravel()
        return np.ascontiguousarray(np.einsum("ij,ij->i", self.X, self.X))

    @cached_property
    def diagonal(self) -> FloatArray:
        if self.kernel.name in ("rbf", "laplacian"):
            return np.ones(self.n)
        return self._values(self.squares.copy(), None)

    def open(self, rows: IntArray) -> RowCache:
        """A cache for the rows of one training set; refused if it cannot hold two of them."""
        least = 2 * 8 * len(rows)
        if self.budget < least:
            raise InputError(
                f"a cache of {self.budget} bytes cannot hold two kernel rows of {len(rows)} "
                f"columns; give it at least {least} bytes"
            )
        rows = np.ascontiguousarray(rows, dtype=np.intp)
        if sparse.issparse(self.X):
            return RowCache.of_sparse(
                self.X.data, self.X.indices, self.X.indptr, self.X.shape[1],
                self.squares, self._compiled, rows, self.budget,
            )  # fmt: skip
        return RowCache.of_dense(self.X, self.squares, self._compiled, rows, self.budget)

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """K[rows, columns], computed at once and not kept."""
        left, right = self.X[rows], self.X[columns]
        if self.kernel.name == "laplacian":
            return self._values(cdist(left, right, "cityblock"), None)
        if sparse.issparse(self.X) and self.X.shape[1] <= DENSE_COLUMNS:
            left, right = left.toarray(), right.toarray()
        products = left @ right.T
        dense = np.asarray(products.toarray() if sparse.issparse(products) else products)
        return self._values(dense, self.squares[rows][:, None] + self.squares[columns])

    def _values(self, products: FloatArray, squares: FloatArray | None) -> FloatArray:
        """Inner products (or city-block distances) into kernel values, in place."""
        name, (_, gamma, degree, coef0) = self.kernel.name, self._compiled
        if name == "linear":
            return products
        if name == "laplacian":
            products *= -gamma
            return np.exp(products, out=products)
        if name == "rbf":
            assert squares is not None
            products *= -2.0
            products += squares
            np.maximum(products, 0.0, out=products)
            products *= -gamma
            return np.exp(products, out=products)
        products *= gamma
        products += coef0
        if name == "sigmoid":
            return np.tanh(products, out=products)
        return np.power(products, degree, out=products)


def as_rows(K: FloatArray | RowSource) -> RowSource:
    """A matrix as a row source; a row source as it is."""
    return MatrixRows(K) if isinstance(K, np.ndarray) else K


def _as_rows_of_numbers(X: Any) -> Any:
    """Float64 features in the layout that the compiled loops read."""
    if not sparse.issparse(X):
        return np.ascontiguousarray(X, dtype=float)
    compressed = sparse.csr_matrix(X, dtype=float)
    compressed.sum_duplicates()
    if compressed.nnz > np.iinfo(np.int32).max:
        raise InputError(f"X has {compressed.nnz} entries; a sparse X may have at most 2^31 - 1")
    compressed.indices = compressed.indices.astype(np.int32, copy=False)
    compressed.indptr = compressed.indptr.astype(np.int32, copy=False)
    return compressed
