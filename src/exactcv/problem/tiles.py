"""Square tiles of a symmetric matrix, small enough to stay in cache.

Only tiles on and above the diagonal are computed; each is mirrored while it is warm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy import sparse

from ..exceptions import InputError
from ..runtime.threads import Workers
from ..types import FloatArray

__all__ = ["Tile", "fill", "products", "squared_distances", "tiles"]

Tile = tuple[slice, slice]

_TILE = 256  # 512 kB: a tile and its transpose fit in a common second-level cache


def _strips(n: int) -> list[slice]:
    return [slice(start, min(start + _TILE, n)) for start in range(0, n, _TILE)]


def tiles(n: int) -> Iterator[Tile]:
    """Tiles on and above the diagonal, row by row."""
    strips = _strips(n)
    for k, rows in enumerate(strips):
        for columns in strips[k:]:
            yield rows, columns


def fill(
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


def products(X: FloatArray) -> Callable[[FloatArray, Tile], None]:
    """x'z, one matrix product a tile; of the entries that are not zero, where nearly all are.

    Examples
    --------
    >>> tile = np.empty((2, 2))
    >>> products(np.array([[1.0, 2.0], [0.0, 3.0]]))(tile, (slice(2), slice(2)))
    >>> tile
    array([[5., 6.],
           [6., 9.]])
    """
    if nearly_empty(X):
        entries = sparse.csr_array(X)

        def of_entries(tile: FloatArray, where: Tile) -> None:
            tile[:] = (entries[where[0]] @ entries[where[1]].T).toarray()

        return of_entries

    def of_rows(tile: FloatArray, where: Tile) -> None:
        np.matmul(X[where[0]], X[where[1]].T, out=tile)

    return of_rows


def nearly_empty(X: FloatArray) -> bool:
    """Is a product of entries quicker than one of whole rows, of p terms?

    Where a share s of the entries is not zero about p s^2 terms of a product are left.  Each takes
    as long as some 85 terms of whole rows, and to find that there are any takes as long as 560.
    """
    p = X.shape[1]
    terms = p * (np.count_nonzero(X) / max(X.size, 1)) ** 2
    return bool(85.0 * terms + 560.0 * min(terms, 1.0) < p)


def squared_distances(X: FloatArray) -> Callable[[FloatArray, Tile], None]:
    """||x||^2 + ||z||^2 - 2 x'z, one matrix product a tile, on centred data.

    Where nearly all entries are zero, only the columns are centred in which most are not: in the
    others what rows have in common is small beside their norms.
    """
    empty = nearly_empty(X)
    centre = X.mean(axis=0)
    if empty:
        centre[np.count_nonzero(X, axis=0) < 0.5 * len(X)] = 0.0
    centred = X - centre
    norms = np.einsum("ij,ij->i", centred, centred)
    if not np.isfinite(4.0 * norms.max()):
        raise InputError("squared distances between rows of X overflow: standardise the features")
    distances = (_plus_norms if empty else _with_norms)(centred, norms)

    def step(tile: FloatArray, where: Tile) -> None:
        rows, columns = where
        distances(tile, where)
        np.maximum(tile, 0.0, out=tile)
        if rows.start == columns.start:
            np.fill_diagonal(tile, 0.0)

    return step


def _with_norms(centred: FloatArray, norms: FloatArray) -> Callable[[FloatArray, Tile], None]:
    """The norms ride along as two more columns: [-2x, ||x||^2, 1] [z, 1, ||z||^2]'."""
    ones = np.ones_like(norms)
    left = np.column_stack([-2.0 * centred, norms, ones])
    right = np.column_stack([centred, ones, norms])

    def step(tile: FloatArray, where: Tile) -> None:
        np.matmul(left[where[0]], right[where[1]].T, out=tile)

    return step


def _plus_norms(centred: FloatArray, norms: FloatArray) -> Callable[[FloatArray, Tile], None]:
    """The norms are added to the products."""
    inner = products(centred)

    def step(tile: FloatArray, where: Tile) -> None:
        inner(tile, where)
        tile *= -2.0
        tile += norms[where[0]][:, None]
        tile += norms[where[1]]

    return step
