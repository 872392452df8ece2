"""What a benchmark case is, how its two sides are timed, and what a row of the table says.

Only the run itself is timed; data, the peer's kernel matrix and slices of it are prepared outside
the clock.  Both sides run on one machine in one go, in turn (ours, peer, ours, peer, ...), and the
quickest run of each counts.  Quality is judged beside the clock: ours by its certificate, the
peer by its own duality gap.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from .command import say
from .ours import OurRun

GRID_SIZE = 50


class Skip(Exception):
    """A case that cannot run here; the message says why."""


@dataclass(frozen=True)
class Settings:
    """The options of ``run.py`` that cases look at."""

    quick: bool = False
    repeat: int | None = None
    data: str | None = None
    fetch: bool = False

    def repeats(self, usual: int) -> int:
        return self.repeat or usual


@dataclass(frozen=True)
class Bar:
    """What a row should reach: ours at most ``limit`` times the peer, or that many times faster."""

    limit: float
    faster: bool = False

    def met(self, ours: float, peer: float) -> bool:
        return peer >= self.limit * ours if self.faster else ours <= self.limit * peer

    def __str__(self) -> str:
        kind = "at least {:g} times faster" if self.faster else "at most {:g} times"
        return kind.format(self.limit)


@dataclass(frozen=True)
class PeerRun:
    """Seconds, the worst relative duality gap among the fits, and what was timed."""

    seconds: float
    gap: float
    what: str


@dataclass(frozen=True)
class Row:
    """One line of the table; ``ours`` and ``peer`` in seconds, or in GB for memory."""

    work: str
    ours: float
    peer: float
    peer_is: str
    bar: Bar | None = None
    run: OurRun | None = None
    peer_gap: float | None = None
    unit: str = "s"

    @property
    def ratio(self) -> str:
        if self.bar.faster if self.bar else self.ours < 0.1 * self.peer:
            return f"{self.peer / self.ours:.0f} times faster"
        return f"{self.ours / self.peer:.2f} times"

    @property
    def verdict(self) -> str:
        if self.bar is None:
            return ""
        return "met" if self.bar.met(self.ours, self.peer) else "**not met**"


@dataclass
class Report:
    """What the cases of one run left behind."""

    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A name and a function that measures, and adds to the report."""

    name: str
    measure: Callable[[Settings, Report], None]


def run_cases(cases: Iterable[Case], settings: Settings) -> Report:
    """Run the cases one after the other; one that fails does not take the others with it."""
    report = Report()
    for case in cases:
        say(f"{case.name} ...")
        try:
            case.measure(settings, report)
        except Skip as reason:
            report.skipped[case.name] = str(reason)
        except Exception as error:  # hours of other cases should not be lost
            traceback.print_exc()
            report.failed[case.name] = f"{type(error).__name__}: {error}"
    return report


def contest(
    ours: Mapping[str, Callable[[], OurRun]],
    make_peer: Callable[[OurRun], Callable[[], PeerRun]],
    repeat: int,
) -> tuple[dict[str, OurRun], PeerRun]:
    """Run both sides in turn; the quickest run of each.

    ``make_peer`` is called once, untimed, with a run of ours: it tells the peer the gamma to use.
    """
    best: dict[str, OurRun] = {}
    peer: Callable[[], PeerRun] | None = None
    best_peer: PeerRun | None = None
    for _ in range(repeat):
        for name, run in ours.items():
            now = run()
            best[name] = min(best.get(name, now), now, key=lambda run: run.seconds)
        if peer is None:
            peer = make_peer(next(iter(best.values())))
        then = peer()
        best_peer = min(best_peer or then, then, key=lambda run: run.seconds)
    assert best_peer is not None
    return best, best_peer


def make_row(work: str, ours: OurRun, peer: PeerRun, bar: Bar | None) -> Row:
    return Row(work, ours.seconds, peer.seconds, peer.what, bar, ours, peer.gap)
