"""When block steps are tried after working-set steps, and when no try is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _oracle import make_task, run
from _problems import Small, mixture, rbf

from exactcv._core._factor import Factor
from exactcv.engine import path
from exactcv.engine.path import Point, Tracker, _Pace


def pace_of(free: int, n: int, rate: float = np.inf) -> _Pace:
    state = np.zeros(n, dtype=np.int8)
    state[:free] = 1
    point = Point(1.0, state, np.zeros(n), np.zeros(n), 0.0, rate=rate)
    return _Pace(point, Factor(np.eye(1), True))  # nothing is factorised yet


def cost(free: int, n: int) -> float:
    return pace_of(free, n)._cost


def test_dear_block_steps_wait_for_steps_that_cost_as_much() -> None:
    pace = pace_of(500, 1000)
    assert cost(500, 1000) > path.CHEAP
    assert not pace.due
    asked = pace.steps()
    assert asked == pytest.approx(path.LATE * cost(500, 1000), abs=1)
    pace.note(asked, 0.5)  # the violation is not down yet, but so much was spent
    assert pace.due or pace.steps() <= path.SHORT * cost(500, 1000) + 1
    pace.wait()
    assert not pace.due


def test_a_small_violation_makes_them_due_early() -> None:
    pace = pace_of(500, 1000)
    pace.steps()
    pace.note(int(path.EARLY * cost(500, 1000)) + 1, 0.09)
    assert pace.level == 1
    assert pace.due


def test_cheap_block_steps_wait_for_a_violation() -> None:
    pace = pace_of(50, 1000)
    assert cost(50, 1000) <= path.CHEAP
    assert pace.steps() == path.ROUGH_STEPS * 1000
    pace.note(5, 0.05)  # the violation is down, but hardly anything was spent
    assert not pace.due
    pace.steps()
    pace.note(1000, 0.005)
    assert pace.due


def test_rows_for_conjugate_gradients_are_not_tried_on_the_way() -> None:
    n = int(path.MANY) + 300
    pace = pace_of(n - 50, n, rate=0.1)
    assert pace.well_conditioned
    assert not pace_of(n - 50, 2 * n, rate=0.1).well_conditioned  # an iteration looks at all rows
    assert pace.steps() == path.ROUGH_STEPS * n
    for violation in (0.09, 0.009, 0.0009):
        assert not pace.close
        pace.steps()
        pace.note(10, violation)
        assert not pace.due
    assert pace.close


@pytest.mark.parametrize("violation", [np.nan, np.inf, 1.0])
def test_it_ends_where_no_step_can_be_taken(violation: float) -> None:
    pace, tries = pace_of(500, 1000), 0
    while pace.going:
        pace.steps()
        pace.note(0, violation)
        tries += 1
        assert tries <= len(path.ROUGH)
    assert pace.due


def test_dear_block_steps_that_stalled_are_left_out_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From afar they are tried at every other C at most, where they are dear and stall."""
    small = mixture(80, seed=3)
    X = np.random.default_rng(0).normal(size=(80, 6))
    task = make_task(Small(rbf(X), small.y, small.weight), np.logspace(-1, 2, 8))
    monkeypatch.setattr(path, "CHEAP", 0)
    monkeypatch.setattr(path, "EASY", 0)
    monkeypatch.setattr(path, "CROWD_SHARE", 0.0)  # any violator is one too many
    calls: list[bool] = []
    solve = Tracker._solve

    def count(self: Tracker, *given: Any, **named: Any) -> Any:
        calls.append(named.get("crowd") == 0.0)
        return solve(self, *given, **named)

    monkeypatch.setattr(Tracker, "_solve", count)
    ours = run(task)
    assert ours.exact
    assert 0 < sum(calls) <= (len(task.grid) + 1) // 2
