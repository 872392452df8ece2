"""What a weight means: one thing, whoever is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold

import exactcv
from exactcv.datasets import make_mixture

CS = [0.1, 1.0, 10.0]
N = 36
X, Y = make_mixture(N, 3, random_state=0)
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, N)
WEIGHT[::5] = 0.0
USED = np.flatnonzero(WEIGHT)


def pairs() -> list[tuple[Any, Any]]:
    rows = np.arange(N)
    return [(rows[rows % 4 != k], rows[rows % 4 == k]) for k in range(4)]


@pytest.mark.parametrize("grid", [{"Cs": CS}, {"lambdas": [0.5, 0.01]}])
@pytest.mark.parametrize("settings", [
    {}, {"output": "decision"}, {"output": "decision", "cv": 4}, {"gamma": "scale"},
    {"class_weight": "balanced"}, {"loss": "squared_hinge", "method": "magic"},
    {"approx": "nystroem", "n_components": 9, "random_state": 0, "output": "decision"},
    {"approx": "rff", "n_components": 9, "random_state": 0, "cv": 3},
])  # fmt: skip
def test_a_row_of_weight_zero_is_as_good_as_absent(
    settings: dict[str, Any], grid: dict[str, Any]
) -> None:
    options = settings | grid
    there = exactcv.cross_validate(X, Y, sample_weight=WEIGHT, **options)
    gone = exactcv.cross_validate(X[USED], Y[USED], sample_weight=WEIGHT[USED], **options)
    for name in ("error", "se", "n_errors", "objective", "intercept", "Cs", "at_bound"):
        np.testing.assert_array_equal(getattr(there, name), getattr(gone, name))
    assert (there.gamma, there.best) == (gone.gamma, gone.best)
    np.testing.assert_array_equal(there.test_row, USED[gone.test_row])
    np.testing.assert_array_equal(there.wrong[:, USED], gone.wrong)
    absent = np.setdiff1d(np.arange(N), USED)
    assert there.y.shape == (N,) and not there.wrong[:, absent].any()
    if there.decision is not None:
        np.testing.assert_array_equal(there.decision[:, USED], gone.decision)
        assert np.isnan(there.decision[:, absent]).all()
    if there.coef is not None:
        np.testing.assert_array_equal(there.coef[:, USED], gone.coef)
        assert (there.coef[:, absent] == 0).all()
    assert "wrong" in there.summary()


def test_row_numbers_and_groups_count_all_rows() -> None:
    there = exactcv.cross_validate(X, Y, sample_weight=WEIGHT, Cs=CS, cv=pairs())
    assert set(there.test_row) == set(USED) and there.n_folds == 4
    groups = np.arange(N) % 6
    options: dict[str, Any] = {"Cs": CS, "cv": GroupKFold(3)}
    there = exactcv.cross_validate(X, Y, sample_weight=WEIGHT, groups=groups, **options)
    gone = exactcv.cross_validate(
        X[USED], Y[USED], sample_weight=WEIGHT[USED], groups=groups[USED], **options
    )
    np.testing.assert_array_equal(there.error, gone.error)


@pytest.mark.parametrize("cv", ["loo", 4])
def test_cross_validate_and_svccv_mean_the_same_by_weight_zero(cv: Any) -> None:
    weight = (WEIGHT > 0).astype(float)
    result = exactcv.cross_validate(X, Y, sample_weight=weight, cv=cv, lambdas=5)
    model = exactcv.SVCCV(cv=cv, lambdas=5).fit(X, Y, sample_weight=weight)
    np.testing.assert_array_equal(result.error, model.cv_results_["error"])
    np.testing.assert_allclose(result.Cs, model.cv_results_["param_C"], rtol=1e-14)
    assert result.gamma == model.gamma_


def test_balanced_classes_weigh_the_same_everywhere() -> None:
    """SVCCV, cross_validate and SmoothSVC: both classes have half of the total weight."""
    weight = np.where(Y > 0, 3.0, 1.0) * WEIGHT
    by_hand = {float(label): weight.sum() / (2 * weight[label == Y].sum()) for label in (-1.0, 1.0)}
    options: dict[str, Any] = {"Cs": [1.0], "gamma": 0.1}
    one = exactcv.cross_validate(X, Y, sample_weight=weight, class_weight="balanced", **options)
    two = exactcv.cross_validate(X, Y, sample_weight=weight, class_weight=by_hand, **options)
    model = exactcv.SVCCV(class_weight="balanced", **options).fit(X, Y, sample_weight=weight)
    assert one.coef is not None and two.coef is not None
    np.testing.assert_allclose(one.coef, two.coef, rtol=1e-9)
    dual = np.zeros(N)
    dual[model.support_] = model.dual_coef_[0]
    np.testing.assert_allclose(dual, one.coef[0], atol=1e-9)
    for kernel in ("linear", "rbf"):
        smooth = [
            exactcv.SmoothSVC(kernel=kernel, gamma=0.1, class_weight=given)
            .fit(X, Y, sample_weight=weight)
            .decision_function(X)
            for given in ("balanced", by_hand)
        ]
        np.testing.assert_allclose(*smooth, rtol=1e-8)


def test_squared_hinge_is_one_objective() -> None:
    """1/2 ||w||^2 + C sum_i w_i (1 - y u)_+^2, whatever the method; SmoothSVC's C is twice that."""
    options: dict[str, Any] = {"kernel": "linear", "loss": "squared_hinge", "Cs": [0.7]}
    found = {
        name: exactcv.cross_validate(X, Y, sample_weight=WEIGHT, method=name, **options)
        for name in ("magic", "refit", "rank_update")
    }
    for name, result in found.items():
        u = X @ X.T @ result.coef[0] + result.intercept[0] if result.coef is not None else None
        assert u is not None
        f2 = result.coef[0] @ X @ X.T @ result.coef[0]
        # rank_update penalises the intercept too: its own model, the same loss and the same C.
        penalty = f2 + (result.intercept[0] ** 2 if name == "rank_update" else 0.0)
        loss = WEIGHT @ np.maximum(0.0, 1.0 - Y * u) ** 2
        value = 0.5 * penalty + 0.7 * loss
        assert result.objective[0] * 0.7 * len(USED) == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(found["magic"].coef, found["refit"].coef, atol=1e-6)
    smooth = exactcv.SmoothSVC(C=1.4).fit(X, Y, sample_weight=WEIGHT)
    coef = found["rank_update"].coef
    assert coef is not None
    np.testing.assert_allclose(smooth.coef_[0], coef[0] @ X, atol=1e-8)


@pytest.mark.parametrize("gamma", ["median", "scale"])
def test_every_door_has_one_gamma_for_weighted_rows(gamma: str) -> None:
    weight = 1.0 + np.arange(N) % 3
    options: dict[str, Any] = {"gamma": gamma, "sample_weight": weight}
    found = exactcv.cross_validate(X, Y, Cs=[1.0], **options)
    tuned = exactcv.SVCCV(gamma=gamma, Cs=[1.0]).fit(X, Y, sample_weight=weight)
    path = exactcv.error_path(X, Y, C_range=(0.5, 2.0), **options)
    rows = np.repeat(np.arange(N), weight.astype(int))  # a row of weight w is w rows
    folds = [(np.flatnonzero(rows % 4 != k), np.flatnonzero(rows % 4 == k)) for k in range(4)]
    again = exactcv.cross_validate(X[rows], Y[rows], Cs=[1.0], gamma=gamma, cv=folds)
    gammas = [tuned.gamma_, path.gamma, again.gamma]
    np.testing.assert_allclose(gammas, found.gamma, rtol=1e-12)
