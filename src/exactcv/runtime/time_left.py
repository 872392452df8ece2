"""How long a job will still take, from how far its runs are.

A run begins with what no count of work tells of: the kernel matrix, the path on all rows.  In short
runs that takes as long as the rest, so its time is not spread over the work to come:

    total = b + (t - b) (1 - a) / (f - a)

where work showed first at time b, when the share a was done, and at time t the share f is.  Runs
that have not begun take as long as the first, and from the second on follow the trend: gammas come
from small to large, and each tends to take longer than the one before, for more rows are free.  The
trend is a factor from run to run, that of those known and one of ``TREND`` together, and none is
believed to lead to more than twice the last.  A run that has taken as long as was expected without
a sign of its work is not about to end, but takes a third of that time again.
"""

from __future__ import annotations

__all__ = ["Clock", "time_left"]

# Below this share of a run nothing is said of its time: the first folds are no sample of the rest.
LEAST_SHARE = 0.02
# A run that took less than this of the longest was not computed but taken up from an earlier job.
TAKEN_UP = 0.02
# What tends to come on top from one run to the next, and how far any trend is believed.
TREND, LEAST_TREND, MOST_GROWTH = 1.4, 0.8, 2.0


class Clock:
    """The time of one run.

    Examples
    --------
    >>> clock = Clock(start=10.0)
    >>> clock.look(0.0, 12.0)
    >>> clock.look(0.1, 14.0)  # 4 s until work showed, and nine tenths of it are left
    >>> clock.look(0.4, 17.0)
    >>> clock.total
    13.0
    """

    def __init__(self, start: float):
        self._start = start
        self._first: tuple[float, float] | None = None
        self.total: float | None = None  # seconds, as it seems
        self.spent = 0.0

    def look(self, share: float, now: float) -> None:
        """The run has done this share of its work by now."""
        self.spent = now - self._start
        if share <= 0.0:
            return
        if self._first is None:
            self._first = share, self.spent
        done, until = self._first
        if share - done >= LEAST_SHARE:
            self.total = until + (self.spent - until) * (1.0 - done) / (share - done)

    def end(self, now: float) -> None:
        """The run is over."""
        self.spent = self.total = now - self._start

    @property
    def left(self) -> float:
        return 0.0 if self.total is None else max(self.total - self.spent, 0.0)


def time_left(clocks: list[Clock], n_runs: int, at_a_time: int = 1) -> float | None:
    """Seconds, or None as long as nothing is known.

    Examples
    --------
    >>> ended, second = Clock(0.0), Clock(10.0)
    >>> ended.end(10.0)
    >>> second.look(0.0, 11.0)
    >>> time_left([ended, second], n_runs=3)  # 9 s of the second, 10 s of the third
    19.0
    """
    known = [clock.total for clock in clocks if clock.total is not None]
    # Where the clock is coarse a run may seem to take no time.
    computed = [total for total in known if total >= TAKEN_UP * max(known) and total > 0.0]
    if not computed:
        return None
    silent = [clock for clock in clocks if clock.total is None]
    expected = _trend(computed, len(silent) + max(n_runs - len(clocks), 0))
    begun = zip(expected, silent, strict=False)
    unknown = sum(max(total - clock.spent, clock.spent / 3.0) for total, clock in begun)
    to_come = sum(expected[len(silent) :])
    return (sum(clock.left for clock in clocks) + unknown + to_come) / max(at_a_time, 1)


def _trend(known: list[float], count: int) -> list[float]:
    """What so many more runs will take.

    Examples
    --------
    >>> _trend([1.0, 4.0], 3)  # growth by more than twice is not believed
    [8.0, 8.0, 8.0]
    >>> _trend([10.0], 2)
    [10.0, 10.0]
    """
    k = len(known)
    factor = (TREND * known[-1] / known[0]) ** (1.0 / k) if k > 1 else 1.0
    factor = min(max(factor, LEAST_TREND), MOST_GROWTH)
    return [known[-1] * min(factor**j, MOST_GROWTH) for j in range(1, count + 1)]
