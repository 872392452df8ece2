"""How many components: ``n_components="auto"``, by what they do to the left-out error."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Protocol, TypeVar

import numpy as np

from ..lowrank.features import FeatureMap
from ..lowrank.open_source import open_source
from ..lowrank.options import Options
from ..lowrank.passes.distributed import as_local
from ..problem.checks import seed_from
from ..runtime.memory import available_memory, parse_bytes
from ..types import FloatArray
from .result import CVResult

__all__ = ["FIRST", "enough_components", "with_enough_components"]

FIRST = 100
# Twice the components take about four times as long; what would take longer than this, in seconds,
# is not begun.
MOST_SECONDS = 600.0
GROWTH_IN_TIME = 4.0
# Of the memory, what the features may take.
SHARE = 0.4


class Tried(Protocol):
    """A cross-validation with some number of components."""

    @property
    def error(self) -> FloatArray: ...
    @property
    def se(self) -> FloatArray: ...
    @property
    def best(self) -> int: ...
    @property
    def feature_map(self) -> FeatureMap | None: ...


Some = TypeVar("Some", bound=Tried)


def enough_components(
    solve: Callable[[int], Some], rows: int, memory_limit: Any
) -> tuple[Some, str]:
    """``solve`` with twice as many components at a time, while that lowers the error.

    The error is the least left-out error of the grid.  It stops when it falls by no more than its
    standard error, and before the features take too much memory, outnumber the rows, or take too
    long.  The result is that of the least error, of the fewest components if several have it; the
    words say what was tried and why no more was.

    Examples
    --------
    >>> import exactcv
    >>> X, y = exactcv.datasets.make_mixture(80, 4, random_state=0)
    >>> found = exactcv.cross_validate(
    ...     X, y, approx="nystroem", n_components="auto", lambdas=3, random_state=0
    ... )
    >>> found.grown
    'n_components=80 (error 0.4375): there are no more rows'
    """
    tried: list[Some] = []
    m, reason = min(FIRST, rows), ""
    while not reason:
        start = perf_counter()
        tried.append(solve(m))
        reason = _enough(tried, rows, perf_counter() - start, memory_limit)
        m *= 2
    best = min(tried, key=lambda one: float(one.error.min()))  # the first of those that draw
    steps = ", ".join(f"{_count(one)} (error {one.error.min():.4g})" for one in tried)
    return best, f"n_components={steps}: {reason}"


def with_enough_components(solve: Callable[..., CVResult], arguments: dict[str, Any]) -> CVResult:
    """``cross_validate`` with these arguments and so many components; ``grown`` has the words."""
    state = arguments["random_state"]
    if not isinstance(state, numbers.Integral):
        state = seed_from(state)  # all see the same folds
    given = arguments | {"random_state": state}
    best, words = enough_components(
        lambda m: solve(**(given | {"n_components": m})), _rows(given), given["memory_limit"]
    )
    return replace(best, grown=words)


def _count(result: Tried) -> int:
    assert result.feature_map is not None
    return result.feature_map.n_components


def _rows(arguments: dict[str, Any]) -> int:
    """How many rows count."""
    weight = arguments["sample_weight"]
    names = [arguments[name] for name in ("y", "sample_weight", "groups")]
    columns = [name for name in names if isinstance(name, str)]
    source = open_source(arguments["X"], columns, Options().chunk_rows)
    if weight is None:
        return source.n
    weight = source.column(weight) if isinstance(weight, str) else as_local(weight)
    return int(np.count_nonzero(np.asarray(weight) > 0))


def _enough(tried: Sequence[Tried], n: int, seconds: float, memory_limit: Any) -> str:
    """Why no more components are tried, in words; nothing if more are."""
    last, m = tried[-1], _count(tried[-1])
    if len(tried) > 1:
        before = tried[-2]
        if before.error.min() - last.error.min() <= before.se[before.best]:
            return "more gain less than the standard error"
    if 2 * m > n:
        return "there are no more rows" if m == n else "twice as many would outnumber the rows"
    budget = _memory(memory_limit)
    if 2 * m * n * 8 > SHARE * budget:
        return "twice as many would take too much memory (memory_limit)"
    if GROWTH_IN_TIME * seconds > MOST_SECONDS:
        return f"twice as many would take about {GROWTH_IN_TIME * seconds / 60:.0f} minutes"
    return ""


def _memory(memory_limit: Any) -> int:
    if memory_limit is not None:
        return parse_bytes(memory_limit)
    return available_memory() or 4 * 10**9
