"""Systems of the rows at a knot, and the table that follows from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _numbers import LOSSES, wave
from _problems import rbf

import exactcv
from exactcv._core._gather import copy_columns, mirror
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


@pytest.mark.parametrize("n", [0, 1, 7, 32, 33, 100])
def test_mirrored_matrices_equal_twin(n: int) -> None:
    """Also in place, and into a part of a larger array."""
    upper = np.random.default_rng(n).normal(size=(n, n))
    twin = np.triu(upper) + np.triu(upper, 1).T
    out = np.zeros((n, n + 5))
    mirror(upper, out[:, 5:])
    np.testing.assert_array_equal(out[:, 5:], twin)
    assert not out[:, :5].any()
    mirror(upper, upper)
    np.testing.assert_array_equal(upper, twin)


def test_copied_columns_equal_twin() -> None:
    rng = np.random.default_rng(0)
    values, share = rng.normal(size=(4, 9)), rng.normal(size=3)
    source, to = np.array([0, 5, 0]), np.array([2, 1, 8])
    out = values.copy()
    copy_columns(values, source, to, share, out)
    values[:, to] = values[:, source] * share
    np.testing.assert_array_equal(out, values)


@pytest.mark.parametrize("quantile", [0.1, 0.3, 0.5])
def test_few_rows_at_a_knot_of_a_nearly_singular_kernel(quantile: float) -> None:
    """A smooth curve of one feature: many folds do not settle in rounds and are driven out."""
    rng = np.random.default_rng(0)
    X = np.round(np.sort(rng.uniform(-2, 2, 60)), 1)[:, None]
    y = np.exp(-X[:, 0]) + (0.1 + 0.1 * np.abs(X[:, 0])) * rng.normal(size=60)
    settings: dict[str, Any] = {"loss": "pinball", "quantile": quantile, "gamma": 1.0}
    settings["Cs"] = [10.0, 300.0]
    ours = exactcv.cross_validate(X, y, **settings)
    oracle = exactcv.cross_validate(X, y, method="refit", **settings)
    assert max(ours.stats["at_knot"]) <= fold_solver.FEW_FREE
    assert ours.certificate.exact and oracle.certificate.exact
    np.testing.assert_allclose(ours.decision, oracle.decision, atol=1e-6)
