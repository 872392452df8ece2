"""No run takes much more work than with the last release, counted rather than timed."""

from __future__ import annotations

import pytest

from benchmarks.users.counts import WORKS, counts, recorded, too_much


@pytest.mark.parametrize("work", WORKS)
def test_no_more_work_than_before(work: str) -> None:
    assert too_much(counts(work), recorded()[work]) == {}


def test_a_rise_is_seen() -> None:
    before = recorded()["LOO labels, gamma 1/p"]
    assert (
        too_much({name: 2 * n + 50 for name, n in before.items()}, before).keys() == before.keys()
    )
