"""Nested cross-validation with features in place of a kernel: a fit without every outer fold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _numbers import wave
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, log_loss, mean_pinball_loss, roc_auc_score
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

import exactcv
from exactcv import SVCCV, SVRCV, QuantileSVRCV
from exactcv.exceptions import InputError, Interrupted, UnsupportedError

SMALL: dict[str, Any] = {"Cs": [0.3, 3.0], "cv": 3, "random_state": 0}
FEATURES: dict[str, Any] = {"approx": "nystroem", "n_components": 8}


def noise(n: int = 60, k: int = 2, p: int = 2) -> tuple[np.ndarray, np.ndarray]:
    y = np.arange(n) % k
    X = np.random.default_rng(0).normal(size=(n, p))
    return X + 0.8 * y[:, None] * np.linspace(1.0, -1.0, p), np.array(["low", "mid", "top"])[y]


def loop(
    model: Any, X: Any, y: np.ndarray, outer: Any, weight: Any = None, groups: Any = None
) -> tuple[list[Any], list[tuple[np.ndarray, np.ndarray]]]:
    """The estimator fitted without each outer fold, by hand."""
    splits = list(outer.split(X, y, groups))
    fitted = []
    for train, _ in splits:
        more = [None if one is None else one[train] for one in (weight, groups)]
        fitted.append(clone(model).fit(X[train], y[train], *more))
    return fitted, splits


def assert_is_the_loop(
    found: Any, fitted: list[Any], X: Any, y: np.ndarray, splits: Any, weight: Any = None
) -> None:
    tests = np.concatenate([test for _, test in splits])
    predicted = np.concatenate(
        [one.predict(X[test]) for one, (_, test) in zip(fitted, splits, strict=True)]
    )
    np.testing.assert_array_equal(found.test_row, tests)
    np.testing.assert_array_equal(found.predicted, predicted)
    wrong = np.average(predicted != y[tests], weights=None if weight is None else weight[tests])
    assert found.error == pytest.approx(wrong, abs=1e-12)
    values = [one.decision_function(X[test]) for one, (_, test) in zip(fitted, splits, strict=True)]
    np.testing.assert_allclose(found.decision, np.concatenate(values), rtol=0, atol=1e-9)
    gammas = [np.nan if one.gamma_ is None else one.gamma_ for one in fitted]
    np.testing.assert_allclose(found.chosen[:, 1], gammas)
    np.testing.assert_allclose(found.inner, [one.best_score_ for one in fitted], atol=1e-12)
    assert found.certificate.exact


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "more",
    [
        {"gamma": ["median", 0.5]},
        {"gamma": "scale", "loss": "squared", "select": "1se"},
        {"gamma": [0.2, 1.0], "approx": "rff", "n_components": 10},
        {"gamma": 0.5, "n_components": "auto", "class_weight": "balanced"},
        {"Cs": None, "gamma": None, "cv": "loo"},  # the default grid, which grows
    ],
    ids=["median", "squared", "rff", "auto", "default"],
)
def test_it_is_a_fit_without_every_outer_fold(k: int, more: dict[str, Any]) -> None:
    X, y = noise(45 if "gamma" in more and more["gamma"] is None else 60, k)
    model = SVCCV(**(SMALL | FEATURES | more))
    found = model.nested_score(X, y, outer=StratifiedKFold(3))
    fitted, splits = loop(model, X, y, StratifiedKFold(3))
    assert not hasattr(model, "classes_")  # it stays as it is
    assert_is_the_loop(found, fitted, X, y, splits)
    share = [len(train) / len(y) if more.get("Cs", 1) is None else 1.0 for train, _ in splits]
    np.testing.assert_allclose(found.chosen[:, 0], [m.C_ for m in fitted] * np.array(share))
    assert sum(count for *_, count in found.often()) == found.n_folds == 3


def test_landmarks_and_gamma_know_nothing_of_the_outer_fold() -> None:
    """Rows far away in one fold change nothing in the model that is trained without them."""
    X, y = noise(60)
    far = X.copy()
    far[:20] *= 1000.0
    model = SVCCV(gamma="median", **(SMALL | FEATURES))
    folds = [(np.arange(20, 60), np.arange(20)), (np.arange(40), np.arange(40, 60))]
    one, other = (model.nested_score(rows, y, outer=folds) for rows in (X, far))
    np.testing.assert_array_equal(one.chosen[0], other.chosen[0])
    assert one.chosen[1, 1] != other.chosen[1, 1]  # there they are among the training rows


@pytest.mark.parametrize("k", [2, 3])
def test_weights_groups_and_rows_of_weight_zero(k: int) -> None:
    X, y = noise(60, k)
    groups = np.arange(60) // 6
    weight = np.random.default_rng(0).integers(1, 4, 60).astype(float)
    model = SVCCV(gamma="median", **(SMALL | FEATURES | {"cv": GroupKFold(3)}))
    outer = GroupKFold(4)
    found = model.nested_score(X, y, outer, weight, groups)
    assert_is_the_loop(found, *_both(model, X, y, outer, weight, groups), weight)
    weight[[5, 17]] = 0.0
    kept = np.flatnonzero(weight)
    found = model.nested_score(X, y, outer, weight, groups)
    same = model.nested_score(X[kept], y[kept], outer, weight[kept], groups[kept])
    np.testing.assert_array_equal(found.test_row, kept[same.test_row])
    np.testing.assert_allclose(found.decision, same.decision, rtol=0, atol=1e-12)


def _both(model: Any, X: Any, y: np.ndarray, outer: Any, weight: Any, groups: Any) -> Any:
    fitted, splits = loop(model, X, y, outer, weight, groups)
    return fitted, X, y, splits


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "roc_auc", "neg_log_loss"])
def test_scorers(scoring: str) -> None:
    X, y = noise(60)
    model = SVCCV(gamma=0.5, scoring=scoring, probability=True, **(SMALL | FEATURES))
    found = model.nested_score(X, y, outer=StratifiedKFold(3))
    fitted, splits = loop(model, X, y, StratifiedKFold(3))
    assert_is_the_loop(found, fitted, X, y, splits)
    pairs = [(one, X[test], y[test]) for one, (_, test) in zip(fitted, splits, strict=True)]
    if scoring == "roc_auc":
        expected = np.mean([roc_auc_score(b, one.decision_function(a)) for one, a, b in pairs])
    elif scoring == "neg_log_loss":
        expected = -np.mean([log_loss(b, one.predict_proba(a)) for one, a, b in pairs])
    else:
        predicted = np.concatenate([one.predict(a) for one, a, _ in pairs])
        expected = balanced_accuracy_score(np.concatenate([b for *_, b in pairs]), predicted)
    assert found.score == pytest.approx(expected)
    assert found.optimism == pytest.approx(found.inner.mean() - found.score)
    again = clone(model).set_params(probability=False).nested_score(X, y, outer=StratifiedKFold(3))
    assert again.score == pytest.approx(found.score)


def test_several_classes_by_probabilities() -> None:
    X, y = noise(60, 3)
    model = SVCCV(gamma=0.5, scoring="roc_auc_ovr", probability=True, **(SMALL | FEATURES))
    found = model.nested_score(X, y, outer=StratifiedKFold(3))
    fitted, splits = loop(model, X, y, StratifiedKFold(3))
    scores = [
        roc_auc_score(y[test], one.predict_proba(X[test]), multi_class="ovr")
        for one, (_, test) in zip(fitted, splits, strict=True)
    ]
    assert found.score == pytest.approx(np.mean(scores))
    with pytest.raises(InputError, match=r"roc_auc_ovr.*outer fold 0 tests no row of class 'mid'"):
        model.nested_score(X, y, outer="loo")


def test_pairs_of_row_numbers_as_inner_folds() -> None:
    X, y = noise(40)
    pairs = [(train, test) for train, test in StratifiedKFold(4).split(X, y)]
    model = SVCCV(gamma=0.5, **(SMALL | FEATURES | {"cv": iter(pairs)}))
    found = model.nested_score(X, y, outer=[(np.arange(30), np.arange(30, 40))])
    inside = [(np.intersect1d(a, np.arange(30)), b[b < 30]) for a, b in pairs]
    one = SVCCV(gamma=0.5, **(SMALL | FEATURES | {"cv": [p for p in inside if len(p[1])]}))
    one.fit(X[:30], y[:30])
    assert found.chosen[0, 0] == one.C_
    np.testing.assert_allclose(found.decision, one.decision_function(X[30:]), atol=1e-9)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("wide", [False, True])
def test_columns_in_place_of_a_linear_kernel(k: int, wide: bool) -> None:
    X, y = noise(240, k, 6)
    if wide:  # more columns than dense matrices may have
        X = sparse.csr_matrix(np.hstack([X * (abs(X) > 0.5), np.zeros((240, 4400))]))
    settings: dict[str, Any] = {"kernel": "linear", "Cs": [0.01, 1.0], "cv": 4}
    few = SVCCV(memory_limit="2MB" if wide else "500kB", **settings)
    found = few.nested_score(X, y, outer=3)
    assert hasattr(clone(few).fit(X, y), "weights_")  # not a kernel machine
    exact = SVCCV(**settings).nested_score(X, y, outer=3)
    np.testing.assert_array_equal(found.chosen, exact.chosen)
    np.testing.assert_array_equal(found.predicted, exact.predicted)
    np.testing.assert_allclose(found.decision, exact.decision, rtol=0, atol=1e-6)
    assert found.certificate.exact and found.error == exact.error


def test_sparse_rows_and_rows_in_files_or_with_dask(tmp_path: Path) -> None:
    da = pytest.importorskip("dask.array")
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = noise(60, 3)
    model = SVCCV(gamma="median", **(SMALL | FEATURES))
    expected = model.nested_score(X, y, outer=3)
    columns = {"a": X[:, 0], "b": X[:, 1], "label": y}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    for form, labels in (
        (sparse.csr_matrix(X), y),
        (tmp_path / "rows.parquet", "label"),
        (da.from_array(X, chunks=(25, 2)), y),
    ):
        found = model.nested_score(form, labels, outer=3)
        np.testing.assert_array_equal(found.predicted, expected.predicted)
        np.testing.assert_allclose(found.decision, expected.decision, rtol=0, atol=1e-8)


def test_interrupted_brings_the_folds_that_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noise(60)
    model = SVCCV(gamma=0.5, **(SMALL | FEATURES))
    whole = model.nested_score(X, y, outer=4)
    real, calls = SVCCV.fit, []

    def stopping(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(SVCCV, "fit", stopping)
    with pytest.raises(Interrupted, match="2 of 4 outer folds") as stop:
        model.nested_score(X, y, outer=4)
    partial = stop.value.partial
    assert partial.n_folds == 2
    np.testing.assert_array_equal(partial.predicted, whole.predicted[: len(partial.predicted)])


def test_what_cannot_be_done_says_so() -> None:
    X, y = noise(40)
    model = SVCCV(gamma=0.5, **(SMALL | FEATURES))
    rare = np.array(["a"] + ["b"] * 39)
    with pytest.raises(InputError, match=r"outer fold 0 leaves no row of class 'a'.*stratified"):
        model.nested_score(X, rare, outer="loo")
    with pytest.raises(InputError, match=r"outside outer fold 0: .*n_components"):
        clone(model).set_params(n_components=35).nested_score(X, y, outer=4)
    with pytest.raises(UnsupportedError, match="method='refit'"):
        clone(model).set_params(method="refit").nested_score(X, y, outer=4)
    with pytest.raises(InputError, match=r"outer='loo'.*LeaveOneGroupOut"):
        model.nested_score(X, y, groups=np.arange(40) // 2)


def test_nested_cross_validate_takes_features() -> None:
    X, y = noise(40)
    settings: dict[str, Any] = FEATURES | {"Cs": [1.0], "cv": 3, "random_state": 0}
    found = exactcv.nested_cross_validate(X, y, gammas=0.5, outer=KFold(2), **settings)
    same = SVCCV(gamma=0.5, **settings).nested_score(X, y, outer=KFold(2))
    np.testing.assert_array_equal(found.decision, same.decision)
    X, z = wave(40)
    one = exactcv.nested_cross_validate(
        X, z, loss="epsilon_insensitive", gammas=0.5, outer=2, **settings
    )
    other = SVRCV(gamma=0.5, **settings).nested_score(X, z, outer=2)
    np.testing.assert_array_equal(one.decision, other.decision)


@pytest.mark.parametrize("more", [{"n_components": "auto"}, {"Cs": None}, {"lambdas": [0.1, 0.01]}])
def test_numbers_learn_nothing_from_the_outer_fold(more: dict[str, Any]) -> None:
    X, y = wave(60)
    y[:20] *= 50.0  # other units would give another default grid
    settings = SMALL | FEATURES | {"gamma": 0.5} | more
    if "lambdas" in more:
        settings["Cs"] = None
    model = SVRCV(**settings)
    found = model.nested_score(X, y, outer=3)
    fitted, splits = loop(model, X, y, KFold(3, shuffle=True, random_state=0))
    predicted = [m.predict(X[test]) for m, (_, test) in zip(fitted, splits, strict=True)]
    np.testing.assert_allclose(found.decision, np.concatenate(predicted), rtol=0, atol=1e-9)
    share = len(splits[0][0]) / len(y) if "lambdas" in more else 1.0
    np.testing.assert_allclose(found.chosen[:, 0], [share * one.C_ for one in fitted])


@pytest.mark.parametrize("features", [{}, FEATURES], ids=["kernel", "features"])
def test_quantiles(features: dict[str, Any]) -> None:
    X, y = wave(48)
    weight = 1.0 + np.arange(48) % 2
    model = QuantileSVRCV(quantiles=(0.1, 0.5), gamma=0.5, **(SMALL | features | {"cv": KFold(3)}))
    found = model.nested_score(X, y, KFold(3), weight)
    fitted, splits = loop(
        clone(model).set_params(crossing="allow"), X, y, KFold(3), weight
    )  # each quantile by itself: sorting is for pairs of them
    assert [one.quantile for one in found] == [0.1, 0.5]
    tests = np.concatenate([test for _, test in splits])
    for q, one in enumerate(found):
        values = [m.predict(X[b])[:, q] for m, (_, b) in zip(fitted, splits, strict=True)]
        np.testing.assert_allclose(one.decision, np.concatenate(values), rtol=0, atol=1e-7)
        loss = mean_pinball_loss(
            y[tests], np.concatenate(values), sample_weight=weight[tests], alpha=one.quantile
        )
        assert one.error == pytest.approx(loss) == -one.score
        np.testing.assert_allclose(one.chosen[:, 0], [m.C_[q] for m in fitted])
        assert one.inner == pytest.approx([m.best_score_[q] for m in fitted])
        text = " ".join(one.summary().split())
        assert f"mean pinball loss of the quantile {one.quantile}" in text and "R2" not in text
    single = clone(model).set_params(quantiles=0.5).nested_score(X, y, KFold(3), weight)
    np.testing.assert_array_equal(single[0].decision, found[1].decision)
