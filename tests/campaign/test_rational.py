"""The judge in whole numbers, against problems whose answers are known, and against the library."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from _problems import mixture
from campaign import rational
from campaign.run import examine

from exactcv.engine.smo import solve
from exactcv.problem.losses import hinge


def test_two_rows() -> None:
    K, y = np.eye(2), np.array([1.0, -1.0])
    for box, c in ((5.0, Fraction(1)), (0.25, Fraction(1, 4))):
        found = rational.solve(K, y, np.full(2, box), np.eye(2), np.zeros(2), True)
        assert found is not None and found.hangs == 0.0
        # K is raised by 2**-75, so that it would be definite in any case.
        assert all(abs(one - c) < Fraction(1, 2**70) for one in found.coef)
        assert found.values[0] == -found.values[1] and abs(found.values[0] - c) < 2.0**-70


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2])
def test_it_agrees_with_the_working_set_solver(C: float, fit_intercept: bool) -> None:
    small = mixture(12, 2)
    train, test = np.arange(10), np.arange(10, 12)
    box = np.full(12, C)
    ours = solve(small.K, hinge(small.y), box, train, fit_intercept=fit_intercept, tol=1e-12)
    found = rational.solve(
        small.K[np.ix_(train, train)], small.y[train], box[train], small.K[np.ix_(test, train)],
        0.5 * box[train], fit_intercept,
    )  # fmt: skip
    assert found is not None
    size = (small.y * ours.coef)[train]
    assert np.array(found.coef, dtype=float) == pytest.approx(size, rel=1e-9, abs=1e-9 * C)


@pytest.mark.parametrize(
    ("number", "method"),
    [
        pytest.param(
            2555, "refit", id="an excess of 1e-11 of one box decides whether b is a point"
        ),
        pytest.param(2861, "refit", id="rows of 1e-11 of the others' weight fix the intercept"),
        pytest.param(7204, "exact", id="no coefficient inside at first"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_intercepts_that_hang_on_light_rows(number: int, method: str) -> None:
    """The interior point alone could not tell these coefficients from their bounds."""
    failures = examine(number, methods=[method])
    assert not failures, "\n".join(map(str, failures))
