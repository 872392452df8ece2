"""How far a run is, for those who wait.

No method reports anything: the ledger fills up as folds are settled, and one thread looks at it
ten times a second.  When nobody waits there is no thread, and the cost is nothing.

A screen is chosen once a run, by where standard error leads: a bar drawn by rich in a terminal (by
plain characters if rich is not installed), a bar in the page in a notebook, and lines of text
anywhere else, such as a log file.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import monotonic
from typing import Any, Protocol, Self, TextIO

from .time_left import Clock, time_left

__all__ = ["Progress", "Run", "following", "job"]

LOOK_EVERY = 0.1  # seconds
LINE_EVERY = 2.0  # seconds between lines of text, at the least
LINE_AFTER = 60.0  # seconds after which there is a line even if little has happened
BAR_WIDTH = 30


class Filling(Protocol):
    """Something that fills up: a ledger."""

    def fraction(self) -> float:
        """Which part of it is settled."""
        ...


class Run:
    """One cross-validation that may be followed: what it does now, and its ledgers.

    Without a ``Progress`` behind it, it is a place to put things that nobody looks at.

    Attributes
    ----------
    parts : int
        How many ledgers there will be (one, or one for each pair of classes), or how many times
        `part_done` will be called.
    """

    def __init__(self, progress: Progress | None = None):
        self._progress = progress
        self._ledgers: list[Filling] = []
        self._ended = 0
        self.parts = 1
        self.clock = Clock(monotonic())

    def expect(self, parts: int) -> None:
        """There will be so many ledgers, or calls of `part_done`."""
        self.parts = parts

    def say(self, stage: str) -> None:
        """Tell what starts now."""
        if self._progress is not None:
            self._progress.say(stage)

    def follow(self, ledger: Filling) -> None:
        """Look at this ledger from now on."""
        if self._progress is not None:
            self._ledgers.append(ledger)

    def part_done(self) -> None:
        """One of the parts, of which no ledger tells, is done."""
        self._ended += 1

    def fraction(self) -> float:
        """Which part of it is done."""
        shares = [ledger.fraction() for ledger in list(self._ledgers)]
        return min(float(sum(shares) + self._ended) / self.parts, 1.0)


class Progress:
    """Follows one run, or the runs of one job, on one screen.

    Parameters
    ----------
    runs : int
        How many runs the job has, for example values of gamma.
    file : text stream, optional
        Standard error if not given.

    Examples
    --------
    >>> import io
    >>> from exactcv.runtime.progress import Progress
    >>> out = io.StringIO()
    >>> with Progress(runs=2, file=out) as progress:
    ...     for gamma in (0.1, 1.0):
    ...         with progress.run() as run:
    ...             run.say(f"gamma={gamma}")
    >>> print(out.getvalue(), end="")  # doctest: +ELLIPSIS
    exactcv: gamma=0.1 (1 of 2)
    exactcv: done in ... s
    """

    def __init__(self, runs: int = 1, file: TextIO | None = None):
        self._runs, self._ended = runs, 0
        self._open: list[Run] = []
        self._most_open = 1
        self._clocks: list[Clock] = []
        self._lock = threading.Lock()
        self._screen = choose_screen(file)
        self._start = monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if kind is None:
            self._draw()
        _safely(self._screen.close, f"{_how_it_ended(kind)} {monotonic() - self._start:.1f} s")

    def expect(self, runs: int) -> None:
        """There will be more runs than was known at the start."""
        self._runs += runs

    @contextmanager
    def run(self) -> Iterator[Run]:
        """Follow one run; several may be open at a time, in different threads."""
        run = Run(self)
        with self._lock:
            self._open.append(run)
            self._clocks.append(run.clock)
            self._most_open = max(self._most_open, len(self._open))
        try:
            yield run
        finally:
            with self._lock:
                self._open.remove(run)
                self._ended += 1
                run.clock.end(monotonic())

    def say(self, stage: str) -> None:
        which = f" ({min(self._ended + 1, self._runs)} of {self._runs})" if self._runs > 1 else ""
        _safely(self._screen.say, stage + which)

    def fraction(self) -> float:
        """Which part of the job is done; every run counts the same."""
        with self._lock:
            now = sum(run.fraction() for run in self._open) + self._ended
        return min(now / self._runs, 1.0)

    def left(self) -> float | None:
        """Seconds left, if that can be told."""
        with self._lock:
            now = monotonic()
            for run in self._open:
                run.clock.look(run.fraction(), now)
            return time_left(self._clocks, self._runs, self._most_open)

    def _watch(self) -> None:
        while not self._stop.wait(LOOK_EVERY):
            self._draw()

    def _draw(self) -> None:
        _safely(self._screen.draw, self.fraction(), monotonic() - self._start, self.left())


def _how_it_ended(kind: type[BaseException] | None) -> str:
    if kind is None:
        return "done in"
    return "interrupted after" if issubclass(kind, KeyboardInterrupt) else "stopped after"


def _safely(show: Any, *what: Any) -> None:
    """A screen that is gone (a closed file, a full disk) must not take the run with it."""
    try:
        show(*what)
    except (OSError, ValueError):
        return


@contextmanager
def following(progress: bool | Progress) -> Iterator[Run]:
    """A run to fill in: followed on a screen of its own (True), on the given one, or by nobody."""
    if isinstance(progress, Progress):
        with progress.run() as run:
            yield run
    elif progress:
        with Progress() as own, own.run() as run:
            yield run
    else:
        yield Run()


def job(on: bool, runs: int) -> AbstractContextManager[bool | Progress]:
    """A progress for several runs, to be handed to each as its ``progress``; False if not on."""
    return Progress(runs) if on else nullcontext(False)


# ---- screens -----------------------------------------------------------------------------------


class Screen(Protocol):
    """Where progress is shown."""

    def say(self, text: str) -> None: ...
    def draw(self, fraction: float, seconds: float, left: float | None) -> None: ...
    def close(self, text: str) -> None: ...


def choose_screen(file: TextIO | None = None) -> Screen:
    """The best screen for where the output goes."""
    out = sys.stderr if file is None else file
    if file is None and _in_notebook():
        return NotebookBar()
    if not getattr(out, "isatty", lambda: False)():
        return Lines(out)
    try:
        return RichBar(out)
    except ImportError:
        return TextBar(out)


def _in_notebook() -> bool:
    """Is this a Jupyter kernel (as opposed to IPython in a terminal)?"""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell" or "google.colab" in sys.modules


def minutes(seconds: float | None) -> str:
    """A time as minutes and seconds.

    Examples
    --------
    >>> minutes(90.0), minutes(None)
    ('1:30', '-:--')
    """
    if seconds is None:
        return "-:--"
    whole, rest = divmod(round(seconds), 60)
    return f"{whole}:{rest:02d}"


class Lines:
    """Lines of text, few enough for a log file: the first, the last, and now and then one."""

    def __init__(self, out: TextIO):
        self._out, self._drawn, self._said = out, (0.0, 0.0), -math.inf
        self._stage = ""  # what was not said, for the last line is too fresh

    def say(self, text: str) -> None:
        if monotonic() - self._said < LINE_EVERY:
            self._stage = f", {text}"
            return
        self._stage, self._said = "", monotonic()
        self._write(text)

    def draw(self, fraction: float, seconds: float, left: float | None) -> None:
        since = seconds - self._drawn[1]
        much = fraction >= self._drawn[0] + 0.1 and since >= LINE_EVERY
        if much or since >= LINE_AFTER:
            self._drawn, self._said = (fraction, seconds), monotonic()
            time = f"{fraction:.0%} after {seconds:.0f} s, {minutes(left)} left"
            self._write(time + self._stage)
            self._stage = ""

    def close(self, text: str) -> None:
        self._write(text)

    def _write(self, text: str) -> None:
        print(f"exactcv: {text}", file=self._out, flush=True)


class TextBar:
    """One line that is drawn over again."""

    def __init__(self, out: TextIO):
        self._out, self._text, self._width = out, "", 0

    def say(self, text: str) -> None:
        self._text = text
        self._write(f"exactcv: {text}")

    def draw(self, fraction: float, seconds: float, left: float | None) -> None:
        bar = "#" * round(BAR_WIDTH * fraction)
        self._write(
            f"exactcv: {fraction:4.0%} |{bar:<{BAR_WIDTH}}| {minutes(left)} left, {self._text}"
        )

    def close(self, text: str) -> None:
        self._write(f"exactcv: {text}")
        print(file=self._out, flush=True)

    def _write(self, text: str) -> None:
        text = text[: _columns() - 1]
        print("\r" + text.ljust(self._width), end="", file=self._out, flush=True)
        self._width = len(text)


def _columns() -> int:
    import shutil

    return shutil.get_terminal_size().columns


class RichBar:
    """A bar drawn by rich; ImportError where it is not installed."""

    def __init__(self, out: TextIO):
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
        )
        from rich.table import Column

        self._bar = Progress(
            TextColumn("exactcv"),
            BarColumn(20),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]} left"),
            # The only column that gives way in a narrow window.
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
            ),
            console=Console(file=out),
            expand=True,
        )
        self._task = self._bar.add_task("", total=1.0, left="-:--")
        self._bar.start()

    def say(self, text: str) -> None:
        self._bar.update(self._task, description=text)

    def draw(self, fraction: float, seconds: float, left: float | None) -> None:
        self._bar.update(self._task, completed=fraction, left=minutes(left))

    def close(self, text: str) -> None:
        self._bar.update(self._task, description=text)
        self._bar.stop()


class NotebookBar:
    """A bar in the page of a notebook, by IPython's own display."""

    def __init__(self) -> None:
        from IPython.display import display

        self._text, self._fraction = "", 0.0
        self._handle = display(self._html(""), display_id=True)

    def say(self, text: str) -> None:
        self._text = text
        self._handle.update(self._html(text))

    def draw(self, fraction: float, seconds: float, left: float | None) -> None:
        self._fraction = fraction
        text = f"{fraction:.0%}, {minutes(left)} left, {self._text}"
        self._handle.update(self._html(text))

    def close(self, text: str) -> None:
        self._handle.update(self._html(text))

    def _html(self, text: str) -> Any:
        from html import escape

        from IPython.display import HTML

        bar = f"<progress value='{self._fraction:.3f}' max='1' style='width:20em'></progress>"
        return HTML(f"<div>{bar} exactcv: {escape(text)}</div>")
