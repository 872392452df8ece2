"""Leave-one-out folds a block at a time equal the same folds one by one."""

from __future__ import annotations

import numpy as np
import pytest
from _problems import FloatArray, labels, rbf

from exactcv.algorithms.rank_update.block import Block, leave_each_out
from exactcv.algorithms.rank_update.design import Design, make_design
from exactcv.algorithms.rank_update.newton_armijo import fit, hold, leave_afresh, refine


def design_of(kind: str, n: int, p: int) -> Design:
    rng = np.random.default_rng(n)
    y = labels(n)
    X = rng.normal(size=(n, p)) + 0.4 * y[:, None]
    weight = rng.uniform(0.2, 3.0, n)
    return make_design(X if kind == "linear" else rbf(X), y, weight, True, kind == "nonlinear")


def alone(design: Design, c: float, row: int) -> FloatArray:
    train = design.used.copy()
    train[row] = False
    out = np.array([row])
    return leave_afresh(design, c, train, design.columns(out), train).f


@pytest.mark.parametrize("strategy", ["I", "II"])
@pytest.mark.parametrize(
    ("kind", "n", "p"), [("linear", 60, 12), ("linear", 30, 200), ("nonlinear", 40, 5)]
)
def test_block_equals_single_folds(kind: str, n: int, p: int, strategy: str) -> None:
    design = design_of(kind, n, p)
    for c in (0.1, 100.0):
        full = fit(design, c)
        held = hold(design, c, full.active, strategy)
        rows = np.arange(n) if kind == "nonlinear" else np.flatnonzero(full.active)
        fits, settled = leave_each_out(Block(held, rows))
        solved = [k for k, found in enumerate(fits) if found is not None]
        assert settled is not None and len(solved) > len(rows) // 2
        mine = [found for found in fits if found is not None]
        assert all(found.converged for found in mine)
        dropped = [design.columns(rows[k : k + 1]) for k in solved]
        for k, found in zip(solved, refine(design, c, mine, dropped, settled.solve), strict=True):
            assert found.f == pytest.approx(alone(design, c, rows[k]), abs=1e-9)


def test_settled_solves_each_folds_own_system() -> None:
    design, c = design_of("nonlinear", 40, 5), 10.0
    full = fit(design, c)
    block = Block(hold(design, c, full.active, "I"), np.arange(8))
    fits, settled = leave_each_out(block)
    assert settled is not None and all(fits)
    G = np.random.default_rng(0).normal(size=(8, design.d))
    G[np.arange(8), np.arange(8)] = 0.0
    for k, (found, x) in enumerate(zip(fits, settled.solve(np.arange(8), G), strict=True)):
        assert found is not None
        kept = np.arange(design.d) != k
        H = design.hessian(c, found.active)[np.ix_(kept, kept)]
        assert x[k] == 0.0
        assert x[kept] == pytest.approx(np.linalg.solve(H, G[k, kept]), abs=1e-9)


def test_correct_solves_the_system_of_the_multipliers() -> None:
    design, c = design_of("linear", 30, 200), 0.05
    full = fit(design, c)
    rows = np.flatnonzero(full.active)
    fits, settled = leave_each_out(Block(hold(design, c, full.active, "II"), rows))
    assert settled is not None
    solved = [found for found in fits if found is not None]
    active = np.array([found.active for found in solved])
    rho = np.where(active, np.random.default_rng(0).normal(size=active.shape), 0.0)
    found = settled.correct(np.arange(len(solved)), rho)
    for S, r, delta in zip(active, rho, found, strict=True):
        M = np.eye(int(S.sum())) + c * design.A[S] @ design.A[S].T
        assert delta[S] == pytest.approx(np.linalg.solve(M, r[S]), abs=1e-9)
        assert not delta[~S].any()
