"""Left-out values against a number: proofs say what solutions say."""

from __future__ import annotations

import numpy as np
import pytest
from _oracle import hinge_problem
from _problems import BUILDERS

from exactcv.engine.comparisons import ALONE, LeftOut, compare, left_out_values, tie
from exactcv.engine.moves import Mover

GO_ON = np.zeros(1, dtype=np.int32)


def left_out(name: str, C: float, fit_intercept: bool = True, n: int = 36) -> LeftOut:
    mover = Mover(hinge_problem(BUILDERS[name](n=n), fit_intercept), C)
    return LeftOut.of(mover, mover.solved(GO_ON), GO_ON)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 0.3, 10.0, 1000.0])
@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_ranges_hold_the_values_and_proofs_agree(name: str, C: float, fit_intercept: bool) -> None:
    models = left_out(name, C, fit_intercept)
    rows = np.arange(models.problem.n)
    values, kkt, gap = models.values(rows)
    assert max(kkt, gap) <= 1e-8
    low, high = models.signed_ranges(rows)
    slack = tie(float(np.abs(values).max()))
    assert (low - slack <= values).all()
    assert (values <= high + slack).all()
    # At quantiles of the values themselves ties are the rule.
    for bar in (*np.quantile(values, [0.0, 0.3, 0.7, 1.0]), -1.5, 0.0, 0.9):
        proved = compare(models, rows, float(bar))
        solved = compare(models, rows, float(bar), proofs=False)
        assert np.array_equal(proved.at_most, solved.at_most)
        assert np.array_equal(solved.at_most, values <= bar + tie(float(bar)))
        assert solved.solved == len(rows)


def test_proofs_save_solutions() -> None:
    models = left_out("mixture", 0.1, n=60)
    rows = np.arange(60)
    assert compare(models, rows, -5.0).solved == 0
    assert compare(models, rows, 5.0).solved == 0


def test_the_only_row_of_a_class() -> None:
    small = BUILDERS["mixture"](n=20)
    y = np.full(20, -1.0)
    y[3] = 1.0
    mover = Mover(hinge_problem(small._replace(y=y)), 1.0)
    standing = mover.solved(GO_ON)
    values = left_out_values(mover, standing, GO_ON)
    assert values[3] == ALONE
    assert np.isfinite(values).all()
    models = LeftOut.of(mover, standing, GO_ON)
    for bar, expected in ((-1.0, True), (-1.1, False)):
        assert compare(models, np.array([3]), bar).at_most[0] == expected
