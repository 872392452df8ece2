"""Outer and inner products that are kept while rows come and go."""

from __future__ import annotations

import numpy as np
import pytest

from exactcv.lowrank.small.curvature import Curvature, Products
from exactcv.lowrank.small.hinges import Hinges, hinges_of
from exactcv.lowrank.small.smoothing import sharpened, smoothed
from exactcv.problem.losses import epsilon_insensitive, hinge

N, M = 400, 12


def hinges(kind: str, seed: int) -> Hinges:
    rng = np.random.default_rng(seed)
    Z, y = rng.normal(size=(N, M)), rng.choice([-1.0, 1.0], size=N)
    loss = hinge(y) if kind == "hinge" else epsilon_insensitive(rng.normal(size=N), 0.1)
    box = 10.0 ** rng.uniform(-2, 2, size=N)
    return hinges_of(Z, loss, box, (rng.normal(size=M), 0.5), True)


def sets(seed: int, n: int) -> list[np.ndarray]:
    """Few rows come and go, most of them go, one stays, none, and all are there."""
    rng = np.random.default_rng(seed)
    here, out = rng.random(n) < 0.5, []
    for _ in range(20):
        here = here ^ (rng.random(n) < 0.02)
        out.append(np.flatnonzero(here))
    return [*out, out[-1][:20], out[-1][:1], np.arange(0), np.arange(n), out[0]]


@pytest.mark.parametrize("kind", ["hinge", "epsilon_insensitive"])
def test_sums_are_those_of_the_rows_that_are_there(kind):
    problem = hinges(kind, 0)
    curvature = Curvature(M)
    for rows in sets(1, len(problem)):
        Z = np.column_stack([problem.features(rows), np.ones(len(rows))])
        expected = (Z * problem.box[rows, None]).T @ Z
        # What is taken away may leave digits of the largest sum before it.
        slack = 1e-12 * max(float(np.trace(expected)), float(problem.box.sum()))
        np.testing.assert_allclose(
            np.tril(curvature.of(problem, rows)), np.tril(expected), rtol=0, atol=slack
        )


def test_a_heavy_row_that_goes_leaves_the_digits_of_light_ones():
    Z, y = np.random.default_rng(0).normal(size=(N, M)), np.ones(N)
    box = np.append(np.ones(N - 1), 1e12)
    problem = hinges_of(Z, hinge(y), box, (np.zeros(M), 0.0), True)
    curvature, light = Curvature(M), np.arange(N - 1)
    curvature.of(problem, np.arange(N))
    Z1 = np.column_stack([Z[:-1], np.ones(N - 1)])
    np.testing.assert_allclose(
        np.tril(curvature.of(problem, light)), np.tril(Z1.T @ Z1), rtol=0, atol=1e-10 * N
    )


@pytest.mark.parametrize("kind", ["hinge", "epsilon_insensitive"])
def test_products_are_those_of_the_rows_that_are_there(kind):
    problem, rng = hinges(kind, 2), np.random.default_rng(3)
    products, g = Products(M), rng.normal(size=M)
    for rows in sets(4, len(problem)):
        Z, coef = problem.features(rows), rng.normal(size=len(rows))
        np.testing.assert_allclose(products.of(problem, rows), Z @ Z.T, rtol=0, atol=1e-11)
        np.testing.assert_allclose(products.along(g), Z @ g, rtol=0, atol=1e-12)
        np.testing.assert_allclose(products.pull(coef), coef @ Z, rtol=0, atol=1e-10)


@pytest.mark.parametrize("few", [M + 1, M // 2, 0])
def test_rows_in_reach_end_where_all_rows_do(few):
    problem = hinges("hinge", 5)
    start = smoothed(problem, np.zeros(M + 1), 1.0, N // 2)
    reach = 4.0 * start.tau
    kept = np.flatnonzero(np.abs(start.r) <= reach)
    coef = np.where(start.r < 0, problem.box * problem.sign, 0.0)
    near = sharpened(problem.only(kept, coef), start.only(problem, kept), few)
    aside = np.setdiff1d(np.arange(N), kept)
    r = problem.margins(near.theta)
    assert len(aside)
    assert ((r[aside] < 0) == (start.r[aside] < 0)).all()
    assert (np.abs(r[aside]) > near.tau).all()
    np.testing.assert_allclose(near.r, r[kept], rtol=0, atol=1e-9 * max(1.0, np.abs(r).max()))
