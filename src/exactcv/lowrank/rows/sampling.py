"""Random rows that depend on row numbers alone, not on how the rows come in chunks.

Row i gets a key in [0, 1) from its number and a seed; the sample of k rows is the k smallest keys.
So samples are nested, the same whatever the chunk size, and can be drawn chunk by chunk anywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...types import FloatArray, IntArray

__all__ = ["row_keys", "smallest_keys"]

_BLOCK = 1 << 20


def row_keys(rows: IntArray, seed: int) -> FloatArray:
    """Keys of the given row numbers: the splitmix64 generator, counted by row number.

    Examples
    --------
    >>> import numpy as np
    >>> row_keys(np.arange(3), 0).round(3)
    array([0.883, 0.432, 0.026])
    """
    step = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        state: NDArray[np.uint64] = rows.astype(np.uint64)
        state = (state + np.uint64(seed) * np.uint64(0xD1B54A32D192ED03) + np.uint64(1)) * step
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    return (state >> np.uint64(11)).astype(float) * 2.0**-53


def smallest_keys(n: int, count: int, seed: int) -> IntArray:
    """The ``count`` rows of n with the smallest keys, by rising key.

    Examples
    --------
    >>> smallest_keys(10, 3, 0)
    array([2, 4, 6])
    """
    best_rows, best_keys = np.zeros(0, dtype=np.intp), np.zeros(0)
    for start in range(0, n, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, n))
        keys = row_keys(rows, seed)
        best_rows, best_keys = np.append(best_rows, rows), np.append(best_keys, keys)
        if len(best_rows) > count:
            kept = np.argpartition(best_keys, count)[:count]
            best_rows, best_keys = best_rows[kept], best_keys[kept]
    return best_rows[np.lexsort((best_rows, best_keys))]
