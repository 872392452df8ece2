"""The default grid: what it is, and that it grows while its best point is at an edge."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import exactcv
from exactcv import SVCCV, Interrupted
from exactcv.crossval import tuning
from exactcv.datasets import make_mixture
from exactcv.estimators.svc_cv import Keep, fit_svc
from exactcv.problem.grid import MOST_GROWTH, PER_DECADE, default_grid
from exactcv.problem.kernels import Kernel, gamma_value, kernel_scale
from exactcv.report.overview import overview

module = import_module("exactcv.crossval.cross_validate")
X, Y = make_mixture(40, 3, random_state=0)
DEFAULT = default_grid(40).Cs


def chequers(n: int = 49) -> tuple[np.ndarray, np.ndarray]:
    """A board whose fields are far smaller than the median distance: it needs a large gamma."""
    side = np.arange(int(np.sqrt(n)))
    X = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2).astype(float)
    return np.repeat(X, 2, axis=0), np.repeat((X.sum(axis=1) // 1) % 2, 2)


def test_one_default_for_cross_validate_and_svccv() -> None:
    result = exactcv.cross_validate(X, Y, cv=3)
    model = SVCCV(cv=3).fit(X, Y)
    assert result.Cs[0] == 1e-3 and result.Cs[-1] >= 1e3 and not result.scale_with_fold
    gammas = np.unique(model.cv_results_["param_gamma"])
    assert len(gammas) >= 5 and gamma_value(X, Kernel()) in gammas
    np.testing.assert_allclose(gammas[1:] / gammas[:-1], 4.0)
    mine = model.cv_results_["param_gamma"] == result.gamma
    shared = np.isin(model.cv_results_["param_C"][mine], result.Cs)
    assert shared.sum() >= len(DEFAULT)


def test_the_papers_grid_stays_for_those_who_ask() -> None:
    result = exactcv.cross_validate(X, Y, lambdas=50)
    np.testing.assert_allclose(result.lambdas[[0, -1]], np.exp([6.0, -6.0]))
    model = SVCCV(lambdas=50).fit(X, Y)
    assert len(model.cv_results_["param_C"]) == 50 and model.gamma_ == result.gamma
    assert len(SVCCV(Cs=[1.0]).fit(X, Y).cv_results_["param_C"]) == 1


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("kernel", ["linear", "precomputed", "poly"])
def test_C_follows_the_scale_of_the_kernel(kernel: Any, scale: float) -> None:
    rows = scale * X if kernel != "precomputed" else scale * X @ X.T
    options: dict[str, Any] = {"kernel": kernel, "cv": 3, "gamma": 1.0}
    result = exactcv.cross_validate(rows, Y, **options)
    spread = kernel_scale(rows, Kernel(kernel, 1.0))
    assert 0.3 * 1e-3 <= result.Cs[0] * spread <= 3.2 * 1e-3 or result.grown
    # The scale is to the next power of ten, so that C are round numbers.
    decades = np.log10(result.Cs[::PER_DECADE])
    np.testing.assert_allclose(decades, np.round(decades), atol=1e-9)


@pytest.mark.parametrize("scale", [1e-120, 1e150])
def test_rows_of_any_size_have_a_grid(scale: float) -> None:
    grid = default_grid(40, scale)
    assert np.isfinite(grid.Cs).all() and (grid.Cs > 0).all() and len(grid) == len(DEFAULT)


def test_it_grows_where_the_best_point_is_at_its_edge() -> None:
    rows, labels = chequers()
    model = SVCCV(cv=4, random_state=0).fit(rows, labels)
    it = overview(model)
    middle = gamma_value(rows, Kernel())
    assert middle is not None
    assert it.gammas.max() > 17 * middle and "above" in it.grown
    assert it.grown in " ".join(model.summary().split())
    few = SVCCV(cv=4, random_state=0, gamma=middle * 4.0 ** np.arange(-2, 3)).fit(rows, labels)
    assert model.best_score_ > few.best_score_ and "gamma" not in overview(few).grown
    # What was gained is what one would have got by asking for it.
    asked = SVCCV(cv=4, random_state=0, Cs=it.Cs, gamma=it.gammas).fit(rows, labels)
    assert (asked.C_, asked.gamma_) == (model.C_, model.gamma_)
    for name in ("error", "se", "n_errors", "param_C"):
        np.testing.assert_array_equal(asked.cv_results_[name], model.cv_results_[name])
    np.testing.assert_allclose(asked.cv_results_["lambda"], model.cv_results_["lambda"])
    np.testing.assert_allclose(
        asked.decision_function(rows), model.decision_function(rows), atol=1e-6
    )


@pytest.mark.parametrize("output", ["error", "decision"])
@pytest.mark.parametrize(("gamma", "way"), [(1e-6, "above"), (0.02, "")])
def test_results_grow_by_whole_decades(gamma: float, way: str, output: Any) -> None:
    """A small gamma needs a large C."""
    rows = X + 0.7 * Y[:, None]
    result = exactcv.cross_validate(rows, Y, gamma=gamma, cv=3, output=output)
    gained = len(result.Cs) - len(DEFAULT)
    assert gained % PER_DECADE == 0 and (gained > 0) == bool(way) == bool(result.grown)
    assert way in result.grown and ("has grown" in result.summary()) == bool(way)
    assert (np.diff(result.Cs) > 0).all() and result.certificate.exact
    again = exactcv.cross_validate(rows, Y, gamma=gamma, cv=3, output=output, Cs=result.Cs)
    for name in ("error", "se", "n_errors", "wrong", "best", "one_se"):
        np.testing.assert_array_equal(getattr(again, name), getattr(result, name))
    if result.decision is not None:
        np.testing.assert_allclose(again.decision, result.decision, atol=1e-6)
    settled = sum(result.stats[name] for name in ("unchanged", "bound", "solved", "fallback"))
    assert settled == 3 * len(result.Cs) and result.pair_wrong.shape == (len(result.Cs), 40)


def test_growth_is_bounded() -> None:
    """A score that always wants more of everything ends all the same, and that is said."""

    def greedy(model: Any, X: Any, y: Any) -> float:
        return float(next(values))

    values = iter(np.arange(10_000.0))
    model = SVCCV(cv=3, scoring=greedy).fit(X, Y)
    it = overview(model)
    assert len(it.Cs) == len(DEFAULT) + MOST_GROWTH * PER_DECADE
    assert len(it.gammas) <= 5 + MOST_GROWTH
    assert "as far as it goes" in it.grown
    assert "largest C" in model.summary()


def test_a_plateau_and_a_perfect_score_need_no_more() -> None:
    noise = np.random.default_rng(0).normal(size=(30, 2))
    labels = np.r_[np.ones(24), np.zeros(6)]
    flat = exactcv.cross_validate(noise, labels, cv=3)
    assert not flat.grown
    apart = X + 20.0 * Y[:, None]
    assert not overview(SVCCV(cv=3).fit(apart, Y)).grown


def test_interrupted_growth_leaves_what_was_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, labels = chequers()
    ran = tuning.cross_validate_pairs
    calls = 0

    def stop_after_five(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 5:
            raise KeyboardInterrupt
        return ran(*arguments)

    monkeypatch.setattr(tuning, "cross_validate_pairs", stop_after_five)
    model = SVCCV(cv=4, random_state=0)
    with pytest.raises(Interrupted, match="while the default grid grew") as stop:
        model.fit(rows, labels)
    assert stop.value.partial is model and len(model.cv_results_["param_C"]) == 5 * len(DEFAULT)

    run, calls = module.run, 0

    def stop_after_one(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise KeyboardInterrupt
        return run(*arguments)

    monkeypatch.setattr(module, "run", stop_after_one)
    with pytest.raises(Interrupted, match="while the default grid grew") as stop:
        exactcv.cross_validate(X + 0.7 * Y[:, None], Y, gamma=1e-6, cv=3)
    assert stop.value.partial.Cs.tolist() == DEFAULT.tolist()


def test_what_a_store_has_kept_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kept(dict[int, Any]):
        load = dict.get
        save = dict.__setitem__

    rows, labels = chequers()
    kept = Kept()
    whole = SVCCV(cv=4, random_state=0)
    fit_svc(whole, rows, labels, keep=Keep(kept))
    assert len(kept) > 5 and overview(whole).grown
    monkeypatch.setattr(tuning, "cross_validate_pairs", None)
    again = SVCCV(cv=4, random_state=0)
    fit_svc(again, rows, labels, keep=Keep(kept))
    assert again.summary().split("time:")[0] == whole.summary().split("time:")[0]
    np.testing.assert_array_equal(again.dual_coef_, whole.dual_coef_)
