"""The compiled loops of a pass against their twins in NumPy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from exactcv._core import _chunks
from exactcv._core.reference import chunks as twins
from exactcv.lowrank.passes.sweep import Chunk, Columns, merge, sweep
from exactcv.problem.loss_rules import LossRule
from exactcv.problem.losses import PiecewiseLinear, epsilon_insensitive, hinge, pinball

N, P = 60, 4
LOSSES = {
    "hinge": hinge,
    "pinball": lambda y: pinball(y, 0.3),
    "epsilon_insensitive": lambda y: epsilon_insensitive(y, 0.2),
}


class Rows:
    """Some rows; u of a few are exactly at a knot, and some weigh nothing."""

    def __init__(self, loss: str, columns: int):
        rng = np.random.default_rng(5)
        self.y = np.where(rng.random(N) < 0.4, -1.0, 1.0)
        if loss != "hinge":
            self.y = rng.normal(size=N)
        self.loss: PiecewiseLinear = LOSSES[loss](self.y)
        self.u = rng.normal(size=(N, P))
        self.u[:5] = self.loss.knots[:5, :1]
        self.weight = rng.random((N, columns)) * (rng.random((N, columns)) < 0.8)
        self.length, self.key = rng.random(N), rng.random(N)
        self.rng = rng


def both(name: str, given: tuple[Any, ...], made: list[np.ndarray]) -> None:
    """The same from the compiled loop and from its twin, which add to what is there."""
    ours, theirs = [one.copy() for one in made], [one.copy() for one in made]
    getattr(_chunks, name)(*given, *ours)
    getattr(twins, name)(*given, *theirs)
    for one, other in zip(ours, theirs, strict=True):
        if one.dtype == float:
            np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)
        else:
            np.testing.assert_array_equal(one, other)
    assert any((one != before).any() for one, before in zip(ours, made, strict=True))


@pytest.mark.parametrize("columns", [1, P])
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_near_the_margin(loss: str, columns: int) -> None:
    rows = Rows(loss, columns)
    up = rows.loss.upward.view(np.uint8)
    width, rate = rows.rng.random((P, 2)), np.array([1.0, 0.5, 0.0, 1.0])
    width[0] = 0.0  # rows at a knot alone
    width[3] = np.inf
    given = rows.u, rows.loss.knots, up, rows.weight, width, rows.key, rate
    both("near_rows", given, [np.zeros((N, P), dtype=np.uint8), np.ones((P, 2))])


@pytest.mark.parametrize("columns", [1, P])
@pytest.mark.parametrize("loss", LOSSES)
def test_sums_of_the_other_rows(loss: str, columns: int) -> None:
    rows = Rows(loss, columns)
    aside = (rows.rng.random((N, P)) < 0.3).astype(np.uint8)
    given = rows.u, rows.loss.knots, rows.loss.slopes, rows.weight, aside, rows.length
    made = [np.empty((N, P)), np.ones((4, P)), np.ones(P, dtype=np.intp)]
    both("held_sums", given, made)
    held = np.zeros((N, P))
    _chunks.held_sums(*given, held, *(one.copy() for one in made[1:]))
    box = np.where(aside, 0.0, rows.weight)
    np.testing.assert_array_equal(held, -box * rows.loss.slope(rows.u))


@pytest.mark.parametrize("loss", LOSSES)
def test_labels_that_bounds_settle(loss: str) -> None:
    rows = Rows(loss, 1)
    rng, weight = rows.rng, np.ascontiguousarray(rows.weight[:, 0])
    limits = rng.random((P, 2)) * 0.1, rng.random((P, 2)) * 0.5, rng.random(P) * 1e-3
    given = rows.u, rows.y, rows.loss.knots, rows.loss.slopes, weight, rows.length, rng.random(P)
    flags = [np.zeros((N, P), dtype=np.uint8) for _ in range(3)]
    both("settled", (*given, *limits, 1e-8), flags)
    _chunks.settled(*given, *limits, 1e-8, *flags)
    assert all(0 < one.sum() < one.size for one in flags)


def test_nothing_that_is_no_number_passes() -> None:
    """The judge must see it: a sum that is no number is no certificate."""
    rows = Rows("hinge", 1)
    rows.u[7, 2] = np.nan
    sums = np.zeros((4, P))
    aside = np.zeros((N, P), dtype=np.uint8)
    given = rows.u, rows.loss.knots, rows.loss.slopes, np.ones((N, 1)), aside, rows.length
    _chunks.held_sums(*given, np.empty((N, P)), sums, np.zeros(P, dtype=np.intp))
    assert np.isnan(sums[3, 2]) and np.isfinite(sums[:, [0, 1, 3]]).all()


@pytest.mark.parametrize("sizes", [(60,), (25, 35), (10, 0, 50), (1,) * 60])
def test_chunks_together_are_all_rows(sizes: tuple[int, ...]) -> None:
    """Rows near the margin, their values and all sums, in whatever chunks they come."""
    rng, m = np.random.default_rng(1), 5
    Z, y = rng.normal(size=(N, m)), np.where(rng.random(N) < 0.5, 1.0, -1.0)
    weight, left_out = rng.random(N), {0: np.array([3, 17, 40])}
    columns = Columns(
        rng.normal(size=(P, m + 1)), np.array([-1, 0, -1, 0]), np.full((P, 2), 0.7),
        np.array([1.0, 1.0, 0.5, 0.5]), 3, LossRule(),
    )  # fmt: skip
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    chunks = [Chunk(int(a), Z[a:b], y[a:b], weight[a:b]) for a, b in pairwise(bounds) if a < b]
    whole = sweep(Chunk(0, Z, y, weight), columns, left_out)
    found = merge([sweep(chunk, columns, left_out) for chunk in chunks])
    np.testing.assert_allclose(found.near, whole.near, atol=1e-12)
    for ours, theirs in zip(found.rest, whole.rest, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    for p in range(P):
        rows, features, labels, weights, values = found.gathered.column(p)
        np.testing.assert_array_equal(rows, whole.gathered.column(p)[0])
        assert len(rows) > 3 and (np.diff(rows) > 0).all()
        np.testing.assert_array_equal(features, Z[rows])
        np.testing.assert_array_equal(labels, y[rows])
        np.testing.assert_array_equal(weights, weight[rows])
        all_values = Z @ columns.theta[p, :-1] + columns.theta[p, -1]
        np.testing.assert_allclose(values, all_values[rows], atol=1e-12)
