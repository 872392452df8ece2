"""The campaign in short: what ``make campaign`` does with thousands of problems, with some."""

from __future__ import annotations

from collections import Counter

import pytest
from campaign.run import examine

PROBLEMS, CHUNKS = 60, 6


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_nothing_called_exact_is_wrong(chunk: int) -> None:
    counts: Counter[str] = Counter()
    failures = []
    for number in range(chunk, PROBLEMS, CHUNKS):
        failures += examine(number, counts=counts)
    assert not failures, "\n".join(map(str, failures))
    # The judges that are not ours decide nearly everything, and the library claims most of it.
    assert counts["truth open"] < 0.2 * counts["labels"]
    assert counts["labels called exact"] > 0.5 * counts["labels"]


@pytest.mark.filterwarnings("ignore")
def test_the_other_judge_is_right_where_c_is_tiny() -> None:
    """With C = 1e-7 Clarabel's own tolerances once put a coefficient inside its box."""
    failures = examine(1837, methods=["exact"])
    assert not failures, "\n".join(map(str, failures))
