"""Wilson's interval: the shares whose test does not refuse what was found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

import exactcv
from exactcv.problem.intervals import effective_count, wilson


@pytest.mark.parametrize(
    ("wrong", "n"), [(0, 5), (0, 1000), (1, 7), (50, 100), (7, 7), (999, 1000)]
)
def test_equals_scipys(wrong: int, n: int) -> None:
    theirs = binomtest(wrong, n).proportion_ci(0.95, method="wilson")
    low, high = wilson(wrong / n, n)
    assert (float(low), float(high)) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert low <= wrong / n <= high


def test_ends_and_nothing_tested() -> None:
    assert float(wilson(0.0, 3)[0]) == 0.0 and float(wilson(1.0, 3)[1]) == 1.0
    assert [float(end) for end in wilson(0.5, 0)] == [0.0, 1.0]


def test_weights_that_differ_count_for_less() -> None:
    assert effective_count(np.ones(9)) == 9.0
    assert 1.0 < effective_count(np.array([1.0, 10.0])) < 2.0
    assert effective_count(np.zeros(2)) == 0.0


def test_results_have_intervals() -> None:
    X, y = exactcv.datasets.make_mixture(40, 3, random_state=0)
    result = exactcv.cross_validate(X, y, Cs=[0.1, 1.0])
    low, high = wilson(result.error, 40)
    np.testing.assert_array_equal(result.interval, np.column_stack([low, high]))
    weight = np.random.default_rng(0).uniform(0.1, 3.0, 40)
    model = exactcv.SVCCV(Cs=[0.1, 1.0]).fit(X, y, sample_weight=weight)
    low, high = wilson(model.cv_results_["error"], effective_count(weight))
    np.testing.assert_allclose(model._overview().interval[0][0], low)
    np.testing.assert_allclose(model._overview().interval[1][0], high)
