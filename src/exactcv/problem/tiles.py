"""Square tiles of a symmetric matrix, small enough to stay in cache.

Only tiles on and above the diagonal are computed; each is mirrored while it is warm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..exceptions import InputError
from ..runtime.threads import Workers
from ..types import FloatArray

__all__ = ["Tile", "fill", "squared_distances", "tiles"]

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


def squared_distances(X: FloatArray) -> Callable[[FloatArray, Tile], None]:
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
