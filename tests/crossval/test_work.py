"""Progress counts work: what is done of it after a part of the time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactcv.crossval import run as module
from exactcv.crossval.cross_validate import cross_validate
from exactcv.crossval.work import Work
from exactcv.datasets import make_mixture
from exactcv.judge.ledger import Ledger


class Watch(Work):
    """Looks at every entry: how much is done, and how many steps were taken by then."""

    seen: list[tuple[float, int]] = []  # noqa: RUF012  (cleared by the fixture)

    def __init__(self, ledger: Ledger):
        super().__init__(ledger)
        for name in ("full", "solved", "solved_at", "proportional", "unchanged", "proved"):
            setattr(ledger, name, self._looking(getattr(ledger, name)))

    def _looking(self, enter: Any) -> Any:
        def entered(*args: Any, **kwargs: Any) -> Any:
            out = enter(*args, **kwargs)
            self.seen.append((self.fraction(), int(np.count_nonzero(self._ledger.how))))
            return out

        return entered


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, int]]:
    monkeypatch.setattr(Watch, "seen", [])
    monkeypatch.setattr(module, "Work", Watch)
    return Watch.seen


@pytest.mark.parametrize("output", ["error", "decision"])
@pytest.mark.parametrize("cv", ["loo", 4])
def test_from_nothing_to_all_and_never_back(
    seen: list[tuple[float, int]], output: Any, cv: Any
) -> None:
    X, y = make_mixture(60, 4, random_state=0)
    cross_validate(X, y, Cs=[0.01, 1.0, 100.0], cv=cv, output=output, progress=True)
    fractions = [fraction for fraction, _ in seen]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


def test_weak_regularisation_counts_for_more(seen: list[tuple[float, int]]) -> None:
    X, y = make_mixture(120, 4, random_state=0)
    result = cross_validate(X, y, Cs=[0.001, 1000.0], output="decision", progress=True)
    assert result.coef is not None
    free = [
        (np.abs(c) > 0) & (np.abs(c) < 0.999 * C)
        for c, C in zip(result.coef, result.Cs, strict=True)
    ]
    assert free[1].sum() > 4 * free[0].sum()
    # The large C comes first: when its folds are through, half the entries are there.
    halfway = max(fraction for fraction, entries in seen if entries <= 120)
    assert halfway > 0.6


def test_a_solution_that_comes_again_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Work] = []

    class Kept(Work):
        def __init__(self, ledger: Ledger):
            super().__init__(ledger)
            made.append(self)

    monkeypatch.setattr(module, "Work", Kept)
    X, y = make_mixture(40, 4, random_state=0)
    result = cross_validate(X, y, gamma=1.0, Cs=[1e7, 0.01, 1e6, 1e8], progress=True)
    assert result.coef is not None
    assert (result.coef[0] == result.coef[2]).all() and (result.coef[0] == result.coef[3]).all()
    cost = made[0]._costs()[1]
    assert cost[0] == cost[3] == 0.0 and min(cost[1], cost[2]) > 0.0
