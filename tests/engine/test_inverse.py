"""Systems of the rows at a knot, and the table that follows from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _numbers import LOSSES, wave
from _problems import rbf

import exactcv
from exactcv.engine import fold_solver, table
from exactcv.engine.inverse import Bordered


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("n", "k"), [(30, 12), (300, 20), (600, 290), (5, 1), (5, 5), (5, 0)])
def test_eliminated_rows_are_those_of_the_products(n: int, k: int, intercept: bool) -> None:
    K = rbf(np.random.default_rng(0).normal(size=(n, 6)))
    system = Bordered(K[:k, :k].copy(), intercept)
    border = K[k:, :k].copy()
    x, beta = system.solve(border)
    rows, betas = system.eliminate(border, K[k:, k:].copy())
    np.testing.assert_array_equal(border, K[k:, :k])
    np.testing.assert_array_equal(betas, beta)
    np.testing.assert_allclose(rows[:, :k], -x, atol=1e-12)
    np.testing.assert_allclose(rows[:, k:], K[k:, k:] - beta[:, None] - x @ border.T, atol=1e-10)
    np.testing.assert_array_equal(rows[:, k:], rows[:, k:].T)


@pytest.mark.parametrize("name", ["tube", "median", "low"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_tables_made_at_once_or_bit_by_bit(
    name: str, fit_intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All columns at once, or where they would take too much memory, when each is needed."""
    X, y = wave(70)
    X = np.vstack([X, X[:10]])
    y = np.append(y, y[:10])
    settings: dict[str, Any] = {
        "Cs": [0.3, 3.0, 30.0],
        "gamma": 2.0,
        "fit_intercept": fit_intercept,
    }
    monkeypatch.setattr(fold_solver, "FEW_TO_CLAIM", 0)
    made: list[bool] = []
    columns = table.Inverse.columns

    def noted(self: Any, *given: Any) -> Any:
        found = columns(self, *given)
        made.append(found.complete)
        return found

    monkeypatch.setattr(table.Inverse, "columns", noted)
    at_once = exactcv.cross_validate(X, y, **settings, **LOSSES[name])
    assert any(made)
    made.clear()
    monkeypatch.setattr(table, "WHOLE_BYTES", 0)
    by_bit = exactcv.cross_validate(X, y, **settings, **LOSSES[name])
    assert made and not any(made)
    assert at_once.certificate.exact and by_bit.certificate.exact
    np.testing.assert_allclose(at_once.decision, by_bit.decision, atol=1e-8)
