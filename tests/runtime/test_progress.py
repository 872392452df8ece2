"""Progress: on request only, on the screen that fits, and out of the way of the work."""

from __future__ import annotations

import builtins
import io
import sys
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import exactcv
from exactcv.algorithms import REGISTRY
from exactcv.algorithms.base import Support
from exactcv.judge.ledger import SOLVED, Ledger
from exactcv.problem.problem import Task
from exactcv.runtime import progress as module
from exactcv.runtime.progress import Lines, Progress, RichBar, TextBar, choose_screen
from exactcv.runtime.threads import Workers
from exactcv.runtime.time_left import Clock, time_left

Small = tuple[np.ndarray, np.ndarray]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Recorder:
    """A screen that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.drawn: list[float] = []
        self.closed = ""

    def say(self, text: str) -> None:
        self.said.append(text)

    def draw(self, fraction: float, seconds: float, left: float | None) -> None:
        self.drawn.append(fraction)

    def close(self, text: str) -> None:
        self.closed = text


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    screen = Recorder()
    monkeypatch.setattr(module, "choose_screen", lambda file=None: screen)
    monkeypatch.setattr(module, "LOOK_EVERY", 0.001)
    return screen


class Slow:
    """A method that settles half its folds, then waits until it has been seen."""

    support = Support(summary="", paper="", losses=("hinge",), folds=("any",))

    def __init__(self, seen: Callable[[float], bool]):
        self.seen = seen

    def run(self, task: Task, ledger: Ledger, workers: Workers) -> dict[str, Any]:
        ledger.kkt[:], ledger.gap[:], ledger.objective[:] = 0.0, 0.0, 1.0
        half = len(task.folds) // 2
        ledger.how[:, :half] = SOLVED
        limit = time.monotonic() + 30
        while not self.seen(0.5) and time.monotonic() < limit:
            time.sleep(0.001)
        ledger.how[:] = SOLVED
        return {}


def test_silent_by_default(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    before = threading.active_count()
    exactcv.cross_validate(*small, Cs=[1.0])
    assert threading.active_count() == before
    assert capsys.readouterr() == ("", "")


def test_without_a_terminal_lines_go_to_standard_error(
    small: Small, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LINE_EVERY", 0.0)
    exactcv.cross_validate(*small, Cs=[1.0], progress=True)
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert lines[0] == "exactcv: kernel matrix, 12 rows"
    assert lines[1] == "exactcv: method 'exact', 1 grid points, 12 folds"
    assert lines[-1].startswith("exactcv: done in ")
    assert captured.out == ""


def test_the_bar_follows_the_ledger(
    small: Small, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(REGISTRY, "slow", lambda: Slow(lambda x: x in recorder.drawn))
    exactcv.cross_validate(*small, Cs=[1.0, 2.0], method="slow", progress=True)
    assert 0.5 in recorder.drawn
    assert recorder.drawn[-1] == 1.0
    assert recorder.drawn == sorted(recorder.drawn)
    assert recorder.closed.startswith("done in")


def test_several_runs_share_a_bar(
    small: Small, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Progress(runs=2) as progress:
        for goal in (0.25, 0.75):
            method = Slow(lambda _, goal=goal: goal in recorder.drawn)  # type: ignore[misc]
            monkeypatch.setitem(REGISTRY, "slow", lambda method=method: method)
            exactcv.cross_validate(*small, Cs=[1.0], method="slow", progress=progress)
    assert {0.25, 0.75} <= set(recorder.drawn)
    assert recorder.drawn == sorted(recorder.drawn)
    assert recorder.said[1].endswith("(1 of 2)") and recorder.said[-1].endswith("(2 of 2)")


def test_an_error_closes_the_bar(
    small: Small, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: float) -> bool:
        raise RuntimeError("no luck")

    monkeypatch.setitem(REGISTRY, "slow", lambda: Slow(fail))
    with pytest.raises(RuntimeError, match="no luck"):
        exactcv.cross_validate(*small, Cs=[1.0], method="slow", progress=True)
    assert recorder.closed.startswith("stopped after")


def test_a_closed_stream_does_not_stop_the_run(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = io.StringIO()
    gone.close()
    monkeypatch.setattr(sys, "stderr", gone)
    monkeypatch.setattr(gone, "isatty", lambda: False, raising=False)
    assert exactcv.cross_validate(*small, Cs=[1.0], progress=True).certificate.exact


def test_progress_is_checked(small: Small) -> None:
    with pytest.raises(exactcv.InputError, match="progress"):
        exactcv.cross_validate(*small, progress="loud")


# ---- screens -----------------------------------------------------------------------------------


def test_a_file_gets_few_lines() -> None:
    out = io.StringIO()
    screen = choose_screen(out)
    assert isinstance(screen, Lines)
    for step in range(1000):
        screen.draw(step / 1000, step / 50, (1000 - step) / 50)
    screen.close("done")
    lines = out.getvalue().splitlines()
    assert 5 <= len(lines) <= 11
    assert lines[0] == "exactcv: 10% after 2 s, 0:18 left"


def test_stages_that_follow_at_once_share_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(module, "monotonic", lambda: clock[0])
    out = io.StringIO()
    screen = Lines(out)
    screen.say("first")
    screen.say("second")
    screen.draw(0.5, 4.0, 4.0)
    clock[0] = 10.0
    screen.say("third")
    screen.draw(0.51, 63.0, 60.0)
    screen.draw(0.52, 65.0, 60.0)
    screen.draw(0.53, 124.0, 110.0)
    screen.close("done")
    assert out.getvalue().replace("exactcv: ", "").splitlines() == [
        "first",
        "50% after 4 s, 0:04 left, second",
        "third",
        "52% after 65 s, 1:00 left",
        "done",
    ]


def test_a_terminal_gets_rich() -> None:
    pytest.importorskip("rich")
    out = Terminal()
    screen = choose_screen(out)
    assert isinstance(screen, RichBar)
    screen.say("kernel [matrix]")
    screen.draw(0.5, 1.0, 1.0)
    screen.close("done in 1.0 s")
    assert "exactcv" in out.getvalue()
    assert "50%" in out.getvalue()
    assert "0:01 left" in out.getvalue()
    assert "done in" in out.getvalue()


def test_a_terminal_without_rich_gets_a_text_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == "rich":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    out = Terminal()
    screen = choose_screen(out)
    assert isinstance(screen, TextBar)
    screen.say("a long stage")
    screen.draw(0.5, 1.0, 1.0)
    screen.close("done")
    last = out.getvalue().split("\r")
    assert f"50% |{'#' * 15}{' ' * 15}| 0:01 left, a long stage" in last[-2]
    assert last[-1].rstrip("\n").startswith("exactcv: done   ")
    assert all(len(line) <= 80 for line in last)


def test_a_notebook_gets_a_bar_in_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    pages: list[str] = []

    class ZMQInteractiveShell:
        pass

    handle = SimpleNamespace(update=pages.append)
    display = SimpleNamespace(
        display=lambda page, display_id: pages.append(page) or handle, HTML=lambda text: text
    )
    ipython = SimpleNamespace(get_ipython=ZMQInteractiveShell, display=display)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    screen = choose_screen()
    screen.say("a < b")
    screen.draw(0.25, 1.0, 3.0)
    screen.close("done in 4.0 s")
    assert "a &lt; b" in pages[1]
    assert "value='0.250'" in pages[2] and "25%, 0:03 left" in pages[2]
    assert "done in 4.0 s" in pages[-1]


# ---- the time left -----------------------------------------------------------------------------


class Share:
    """A ledger that is as full as it is told to be."""

    def __init__(self) -> None:
        self.now = 0.0

    def fraction(self) -> float:
        return self.now


def looked_at(runs: list[tuple[float, float]], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """(work done, time spent, time left as shown) of runs, each (seconds to begin, of work)."""
    clock, seen = [0.0], []
    monkeypatch.setattr(module, "monotonic", lambda: clock[0])
    monkeypatch.setattr(module, "LOOK_EVERY", 1e9)
    with Progress(runs=len(runs), file=io.StringIO()) as progress:
        for begins, works in runs:
            with progress.run() as run:
                share = Share()
                run.follow(share)
                for _ in range(20):
                    clock[0] += begins / 20
                    progress.left()
                for step in range(100):
                    clock[0] += works / 100
                    share.now = (step + 1) / 100
                    seen.append((progress.fraction(), clock[0], progress.left()))
    return seen


@pytest.mark.parametrize(
    "runs",
    [
        [(0.0, 10.0)],
        [(8.0, 10.0)],  # a short run: the path takes nearly as long as the folds
        [(0.5, 2.0)] * 5,
        [(0.5, 2.0)] * 30,
        [(0.2, 2.4), (0.2, 4.3), (0.3, 6.2), (0.5, 11.5), (0.8, 21.0)],  # gammas, k-fold
        [(1.0, 6.0), (1.0, 6.0), (1.0, 7.0), (1.5, 11.5), (2.0, 22.0)],  # gammas, leave-one-out
        [(0.5, 8.0), (0.5, 6.0), (0.5, 5.0), (0.5, 4.0), (0.5, 4.0)],
        [(0.0, 0.001), (0.0, 0.001), (1.0, 9.0), (1.0, 9.0)],  # two were taken up
    ],
)
def test_the_time_left_is_about_right_from_a_tenth_on(
    runs: list[tuple[float, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    total = sum(begins + works for begins, works in runs)
    seen = looked_at(runs, monkeypatch)
    for share, spent, left in seen:
        if share >= 0.1 and spent >= 0.1 * total and left is not None:
            assert (total - spent) / 2 <= left + 1e-9 and left <= 2 * (total - spent) + 1e-9
    known = [left is not None for share, _, left in seen if share >= 0.1]
    assert all(known)


def test_nothing_is_said_before_there_is_something_to_go_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert looked_at([(5.0, 10.0)], monkeypatch)[0][2] is None


def test_runs_that_a_coarse_clock_does_not_see_say_nothing() -> None:
    ended = [Clock(1.0), Clock(1.0)]
    for clock in ended:
        clock.end(1.0)
    assert time_left(ended, n_runs=4) is None


def test_a_run_that_takes_longer_than_the_others_is_not_about_to_end() -> None:
    ended, silent = Clock(0.0), Clock(10.0)
    ended.end(10.0)
    silent.look(0.0, 40.0)
    assert time_left([ended, silent], n_runs=2) == 10.0  # a third of the 30 s it has taken
