"""Will it fit?  Asked of tables and kernel matrices before they are allocated."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..exceptions import InputError, InputTypeError, MemoryLimitError

__all__ = [
    "Budget",
    "available_memory",
    "budget_of",
    "check_memory",
    "matrix_size",
    "parse_bytes",
    "readable",
    "shortage",
]

# Kernel matrix, the methods' factors and workspaces, the left-out coefficients.  Measured peak
# (benchmarks/results/waiting.md): 2 to 3 with folds, 4 in leave-one-out where users tune; more only
# where nearly every row is free.
_TIMES_KERNEL = 4

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def parse_bytes(limit: int | float | str) -> int:
    """A number of bytes, or a string such as "2GB", "500 MB" or "1.5GiB".

    Examples
    --------
    >>> parse_bytes("2GB"), parse_bytes("1 KiB"), parse_bytes(4096)
    (2000000000, 1024, 4096)
    """
    if isinstance(limit, bool) or not isinstance(limit, (int, float, str)):
        raise InputTypeError(
            f"memory_limit must be a number of bytes or a string such as '2GB', got {limit!r}"
        )
    number, unit, binary = str(limit), "", ""
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([kmgt]?)(i?)b?\s*", limit, re.IGNORECASE)
        if match is None:
            raise InputError(
                f"memory_limit={limit!r} is not understood; write bytes or a string such as "
                "'500MB', '2GB', '1.5GiB'"
            )
        number, unit, binary = match[1], match[2].lower(), match[3]
    factor = _BINARY_UNITS.get(unit, 1) if binary else _UNITS[unit]
    try:
        size = int(float(number) * factor)
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise InputError(f"memory_limit must be positive and finite, got {limit!r}")
    return size


def budget_of(memory_limit: int | float | str | None) -> int:
    """Bytes for a run that keeps to a limit: that limit, or half of what the system has left."""
    if memory_limit is not None:
        return parse_bytes(memory_limit)
    return (available_memory() or 4 * 10**9) // 2


def available_memory() -> int | None:
    """Bytes this process may still use, or None if the system does not say."""
    amounts = [_meminfo_available(), _control_group_available(), _address_space_available()]
    known = [amount for amount in amounts if amount is not None]
    return min(known) if known else _physical_memory()


def _meminfo_available() -> int | None:
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return None
    match = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def _control_group_available() -> int | None:
    """What a container's limit leaves (version 2, then version 1 of control groups)."""
    root = Path("/sys/fs/cgroup")
    for limit, used in (
        (root / "memory.max", root / "memory.current"),
        (root / "memory/memory.limit_in_bytes", root / "memory/memory.usage_in_bytes"),
    ):
        try:
            return int(limit.read_text()) - int(used.read_text())
        except (OSError, ValueError):  # absent, or "max": no limit
            continue
    return None


def _address_space_available() -> int | None:
    """What ``ulimit -v`` leaves: addresses count from when they are reserved, used or not."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        used = pages * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, AttributeError, OSError, ValueError):  # not on every system
        return None
    return None if limit == resource.RLIM_INFINITY else max(limit - used, 0)


def _physical_memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


class Budget:
    """What a table that is being read may take.

    Parameters
    ----------
    memory_limit : int or str, optional
        By default what the system has available.

    Examples
    --------
    >>> budget = Budget("1MB")
    >>> budget.take(900_000, "the first 500 rows of t.csv")
    >>> budget.take(900_000, "the first 1000 rows of t.csv")
    Traceback (most recent call last):
    exactcv.exceptions.MemoryLimitError: the first 1000 rows of t.csv take 1.8 MB, but ...
    """

    def __init__(self, memory_limit: int | float | str | None = None):
        named = memory_limit is not None
        self.limit = parse_bytes(memory_limit) if memory_limit is not None else available_memory()
        self._source = "--memory-limit is" if named else "the memory available is"
        self.taken = 0

    def take(self, size: int, what: str) -> None:
        """Count these bytes; ``MemoryLimitError`` if that is too much by now."""
        self.taken += size
        if self.limit is not None and self.taken > self.limit:
            raise MemoryLimitError(
                f"{what} take {readable(self.taken)}, but {self._source} {readable(self.limit)}; "
                "keep fewer rows or columns, raise the limit, or let it be read in pieces "
                "(--stream: CSV and Parquet, with classes)"
            )


def check_memory(
    n: int, memory_limit: int | float | str | None = None, extra_bytes: int = 0
) -> None:
    """Raise ``MemoryLimitError`` unless an n x n kernel and what goes with it will fit.

    Examples
    --------
    >>> check_memory(1000, "100MB")
    >>> check_memory(100_000, "2GB")
    Traceback (most recent call last):
    exactcv.exceptions.MemoryLimitError: the kernel matrix of 100000 rows takes 80.0 GB ...
    """
    short = shortage(n, memory_limit, extra_bytes)
    if short is not None:
        raise MemoryLimitError(
            f"{short} or raise memory_limit; cross_validate, SVCCV and SVRCV can also do without "
            "the matrix, with features in place of the kernel (approx='rff' or 'nystroem')"
        )


def shortage(
    n: int, memory_limit: int | float | str | None = None, extra_bytes: int = 0
) -> str | None:
    """Why an n x n kernel and what goes with it will not fit, and how many rows would.

    None if it will; the words are for callers to go on with what else to do.
    """
    need = _TIMES_KERNEL * 8 * n * n + extra_bytes
    if memory_limit is not None:
        limit: int | None = parse_bytes(memory_limit)
        source = "the memory limit is"
    else:
        limit, source = available_memory(), "the memory available is"
    if limit is None or need <= limit:
        return None
    fitting = int((limit / (8 * _TIMES_KERNEL)) ** 0.5)
    return (
        f"the kernel matrix of {n} rows takes {matrix_size(n)} and the whole run about "
        f"{readable(need)}, but {source} {readable(limit)}; use at most about {fitting} rows"
    )


def matrix_size(n: int) -> str:
    """Of the n x n kernel matrix, in words."""
    return readable(8 * n * n)


def readable(size: float) -> str:
    """A number of bytes, in words."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
