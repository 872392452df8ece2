"""How much memory a run may take, and where its features go.

With ``memory_limit`` that is the limit.  Without one the process is to stay within twice the
features and a gigabyte, data and libraries included, and never to take more than half of what is
free.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from ..runtime.memory import budget_of
from .options import Options
from .rows.sources import ArrayRows, RowSource

__all__ = ["GAMMA_ROWS", "least_memory", "least_sample", "memory_of"]

# gamma="median" and "scale" are worked out on at most so many rows.
GAMMA_ROWS = 2000

# Times the features, and bytes besides, that a process is to stay within.
TIMES, BESIDES = 2, 10**9
# Bytes that Python and its libraries take before anything is read.
LIBRARIES = 250 * 10**6
# Whatever the data take of that, so many bytes are for the work, besides kept features.
LEAST = 500 * 10**6


def memory_of(
    memory_limit: Any, options: Options, source: RowSource, n_components: int, wide: bool
) -> tuple[Options, int]:
    """The options with a place for the features, and the bytes that the run may take.

    ``wide`` rows have no features besides themselves.  With a limit the place is left to
    `Options.store_for`.

    Examples
    --------
    >>> source = ArrayRows(np.zeros((10_000, 5)), chunk_rows=1000)
    >>> options, budget = memory_of(None, Options(), source, 100, False)
    >>> options.features, budget
    ('memory', 765600000)
    >>> memory_of("2GB", Options(), source, 100, False)[1]
    2000000000
    """
    budget = budget_of(memory_limit)
    if memory_limit is not None or wide:
        return options, budget
    # They are kept where they would be if all that is free were ours.
    store = options.store_for(source.n, n_components, budget)
    size = source.n * n_components * np.dtype(options.dtype).itemsize
    kept = size if store == "memory" else 0
    work = TIMES * size + BESIDES - LIBRARIES - _bytes_of(source)
    least = least_memory(source, options, n_components, source.n)
    least = max(LEAST, least + 8 * n_components**2)  # several classes have features for columns
    return replace(options, features=store), min(budget, max(work, kept + least))


def least_memory(source: RowSource, options: Options, m: int, n: int) -> int:
    """Bytes without which n rows cannot be worked on, besides features that are kept.

    Two rows of the sample a dimension, a chunk (features take twice their size while they are made)
    and a few matrices of m x m.
    """
    chunk = min(int(np.diff(source.bounds).max()), options.chunk_rows)
    return 8 * m * (2 * least_sample(m, n) + 2 * chunk + 4 * m + source.p)


def least_sample(m: int, n: int) -> int:
    """How many of n rows the sample has at least."""
    return min(n, max(GAMMA_ROWS, 2 * m))


def _bytes_of(source: RowSource) -> int:
    """What the rows take in this process."""
    if not isinstance(source, ArrayRows) or isinstance(source.X, np.memmap):
        return 0
    X = source.X
    if sparse.issparse(X):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(X.nbytes)
