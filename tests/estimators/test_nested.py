"""Nested cross-validation equals a double loop of refits with scikit-learn."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, LeaveOneOut, StratifiedKFold
from sklearn.svm import SVC

import exactcv
from exactcv import SVCCV, nested_cross_validate
from exactcv.crossval import nested as nested_module
from exactcv.crossval import two_rows
from exactcv.exceptions import InputError, Interrupted

mpl.use("Agg")
CS, GAMMAS = [0.3, 1.0, 4.0], [0.2, 1.0]


def noise(n: int, k: int = 2, seed: int = 0, shift: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return rng.normal(size=(n, 2)) + shift * y[:, None], y


def splitter(folds: Any) -> Any:
    if folds == "loo":
        return LeaveOneOut()
    return StratifiedKFold(folds) if isinstance(folds, int) else folds


def refitted(
    X: np.ndarray, y: np.ndarray, train: Any, test: Any, C: float, gamma: float, weight: Any
) -> np.ndarray:
    model = SVC(C=C, gamma=gamma, tol=1e-10).fit(X[train], y[train], weight[train])
    return model.predict(X[test])


def double_loop(
    X: np.ndarray, y: np.ndarray, outer: Any, cv: Any, *, weight: Any = None, groups: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Predictions, test after test, and the chosen (C, gamma), outer fold after outer fold."""
    w = np.ones(len(y)) if weight is None else weight
    predicted, chosen = [], []
    for train, test in splitter(outer).split(X, y, groups):
        among = None if groups is None else groups[train]
        right: dict[tuple[float, float], float] = {}
        for C in CS:
            for gamma in GAMMAS:
                right[C, gamma] = sum(
                    float(
                        w[train[t]]
                        @ (refitted(X, y, train[s], train[t], C, gamma, w) == y[train[t]])
                    )
                    for s, t in splitter(cv).split(X[train], y[train], among)
                )
        best = min(right, key=lambda point: (-round(right[point], 9), *point))
        chosen.append(best)
        predicted.append(refitted(X, y, train, test, *best, w))
    return np.concatenate(predicted), np.array(chosen)


@pytest.mark.parametrize(
    ("n", "k", "outer", "cv"),
    [
        (12, 2, "loo", "loo"),
        (30, 2, 5, "loo"),
        (24, 2, "loo", 3),
        (15, 3, "loo", "loo"),
        (30, 3, 5, "loo"),
        (24, 3, 3, 4),
    ],
)
def test_equals_a_double_loop_of_refits(n: int, k: int, outer: Any, cv: Any) -> None:
    X, y = noise(n, k)
    expected, chosen = double_loop(X, y, outer, cv)
    found = nested_cross_validate(X, y, Cs=CS, gammas=GAMMAS, outer=outer, cv=cv)
    np.testing.assert_array_equal(found.predicted, expected)
    np.testing.assert_array_equal(found.chosen, chosen)
    truth = y[found.test_row]
    assert found.error == np.mean(expected != truth)
    assert found.wrong.tolist() == (expected != truth).tolist()
    assert found.certificate.exact
    assert sum(count for *_, count in found.often()) == found.n_folds


def test_weights_groups_and_duplicates() -> None:
    X, y = noise(24, 2, seed=3)
    X[6:10] = X[:4]  # the same rows again, of both classes
    groups = np.arange(24) // 4
    weight = np.random.default_rng(0).integers(1, 4, 24).astype(float)
    outer, cv = LeaveOneGroupOut(), GroupKFold(3)
    expected, chosen = double_loop(X, y, outer, cv, weight=weight, groups=groups)
    found = nested_cross_validate(
        X, y, Cs=CS, gammas=GAMMAS, outer=outer, cv=cv, sample_weight=weight, groups=groups
    )
    np.testing.assert_array_equal(found.predicted, expected)
    np.testing.assert_array_equal(found.chosen, chosen)
    wrong = expected != y[found.test_row]
    assert found.error == pytest.approx(weight[found.test_row] @ wrong / weight.sum())


@pytest.mark.parametrize("select", ["min", "1se"])
@pytest.mark.parametrize("scoring", [None, "roc_auc", "neg_log_loss", "balanced_accuracy"])
def test_equals_the_estimator_fitted_without_each_outer_fold(select: Any, scoring: Any) -> None:
    X, y = noise(30, 2, seed=1, shift=1.5)
    model = SVCCV(Cs=CS, gamma=GAMMAS, cv=4, select=select, scoring=scoring, probability=True)
    folds = list(StratifiedKFold(3).split(X, y))
    fitted = [SVCCV(**model.get_params()).fit(X[a], y[a]) for a, _ in folds]
    found = model.nested_score(X, y, outer=3)
    assert not hasattr(model, "classes_")
    np.testing.assert_allclose(found.chosen, [[one.C_, one.gamma_] for one in fitted])
    np.testing.assert_allclose(found.inner, [one.best_score_ for one in fitted])
    values = [one.decision_function(X[b]) for one, (_, b) in zip(fitted, folds, strict=True)]
    np.testing.assert_allclose(found.decision, np.concatenate(values), atol=1e-7)
    pairs = list(zip(fitted, folds, strict=True))
    if scoring == "roc_auc":
        scores = [roc_auc_score(y[b], one.decision_function(X[b])) for one, (_, b) in pairs]
        assert found.score == pytest.approx(np.mean(scores))
    elif scoring == "neg_log_loss":
        scores = [-log_loss(y[b], one.predict_proba(X[b])) for one, (_, b) in pairs]
        assert found.score == pytest.approx(np.mean(scores), abs=1e-6)
    else:
        predicted = np.concatenate([one.predict(X[b]) for one, (_, b) in pairs])
        truth = np.concatenate([y[b] for _, b in folds])
        score = balanced_accuracy_score(truth, predicted)
        assert found.score == pytest.approx(score if scoring else np.mean(truth == predicted))
    assert found.optimism == pytest.approx(found.inner.mean() - found.score)


def test_rows_of_weight_zero_are_absent() -> None:
    X, y = noise(20)
    weight = np.ones(20)
    weight[[3, 8]] = 0.0
    kept = np.flatnonzero(weight)
    found = nested_cross_validate(X, y, Cs=CS, gammas=0.5, outer=4, cv=3, sample_weight=weight)
    same = nested_cross_validate(X[kept], y[kept], Cs=CS, gammas=0.5, outer=4, cv=3)
    np.testing.assert_array_equal(found.predicted, same.predicted)
    np.testing.assert_array_equal(found.test_row, kept[same.test_row])


def test_a_precomputed_kernel_and_lambdas() -> None:
    X, y = noise(24)
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1))
    settings: dict[str, Any] = {"lambdas": [0.3, 0.03, 0.003], "outer": 4, "cv": 3}
    one = nested_cross_validate(K, y, kernel="precomputed", **settings)
    two = nested_cross_validate(X, y, gammas=0.5, **settings)
    np.testing.assert_allclose(one.decision, two.decision, atol=1e-7)
    assert np.isnan(one.chosen[:, 1]).all()
    train = np.setdiff1d(np.arange(24), two.test_row[two.test_fold == 0])
    fitted = SVCCV(lambdas=[0.3, 0.03, 0.003], gamma=0.5, cv=3).fit(X[train], y[train])
    # C of all rows, where the estimator of the part says that of its own: lambda is the same.
    assert two.chosen[0, 0] * 24 == pytest.approx(fitted.C_ * len(train))


def test_pairs_of_row_numbers_as_inner_folds() -> None:
    X, y = noise(24)
    pairs = [(train, test) for train, test in StratifiedKFold(4).split(X, y)]
    found = nested_cross_validate(X, y, Cs=CS, gammas=0.5, outer=3, cv=iter(pairs))
    again = nested_cross_validate(X, y, Cs=CS, gammas=0.5, outer=3, cv=pairs)
    np.testing.assert_array_equal(found.decision, again.decision)


def test_the_default_grid_grows_in_each_outer_fold_by_itself() -> None:
    X, y = noise(20)
    found = nested_cross_validate(X, y, outer=2, cv=2)
    for fold, (C, gamma) in enumerate(found.chosen):
        assert C > 0
        assert gamma > 0
        assert (found.test_fold == fold).sum() == 10


def test_words_and_plot() -> None:
    found = nested_cross_validate(*noise(20), Cs=CS, gammas=GAMMAS, outer=4, cv=3)
    text = " ".join(found.summary().split())
    assert text.startswith("Nested cross-validation: 4 outer folds, 6 grid points tuned in each")
    assert f"error: {found.error:.4f} after tuning (" in text
    assert f"optimism: {found.optimism:+.4f}" in text
    assert "4 outer folds" in repr(found)
    assert found.plot().points_.get_offsets().shape == (len(found.often()), 2)
    linear = nested_cross_validate(*noise(20), kernel="linear", Cs=CS, outer=4, cv=3)
    assert linear.plot().ax_.get_ylabel() == "outer folds"


def test_bad_input_says_what_to_use_instead() -> None:
    X, y = noise(12)
    rare = np.array([1] + [0] * 11)
    with pytest.raises(InputError, match=r"outer fold 0 leaves no row of class 1.*stratified"):
        nested_cross_validate(X, rare, Cs=CS, outer="loo", cv="loo")
    few = np.array([1] * 3 + [0] * 9)
    pairs = [(np.r_[0, 3:12], [1, 2])]  # of which outer fold 0 takes row 0
    with pytest.raises(InputError, match=r"outside outer fold 0.*no row of class 1"):
        nested_cross_validate(X, few, Cs=CS, outer=[(np.r_[1:8], [0, 8])], cv=pairs)
    groups = np.arange(12) // 2
    with pytest.raises(InputError, match=r"outer='loo'.*LeaveOneGroupOut"):
        nested_cross_validate(X, y, Cs=CS, groups=groups)
    with pytest.raises(InputError, match=r"cv='loo'.*GroupKFold"):
        nested_cross_validate(X, y, Cs=CS, groups=groups, outer=LeaveOneGroupOut())
    with pytest.raises(InputError, match=r"roc_auc.*outer fold 0 tests no row.*leave_pair_out"):
        nested_cross_validate(X, y, Cs=CS, scoring="roc_auc", outer="loo")


def test_interrupted_brings_the_folds_that_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noise(20)
    whole = nested_cross_validate(X, y, Cs=CS, gammas=0.5, outer=4, cv=3)
    real, calls = nested_module.tuned_without, []

    def stopping(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(nested_module, "tuned_without", stopping)
    with pytest.raises(Interrupted, match="2 of 4 outer folds") as stop:
        exactcv.nested_cross_validate(X, y, Cs=CS, gammas=0.5, outer=4, cv=3)
    partial = stop.value.partial
    np.testing.assert_array_equal(partial.predicted, whole.predicted[: len(partial.predicted)])
    assert partial.n_folds == 2


def fold_by_fold(monkeypatch: pytest.MonkeyPatch, X: Any, y: Any, **settings: Any) -> Any:
    """Without going through pairs of rows."""
    with monkeypatch.context() as patched:
        patched.setattr(nested_module, "suits", lambda *_: False)
        return nested_cross_validate(X, y, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"Cs": CS, "gammas": GAMMAS, "scoring": "balanced_accuracy"},
        {"lambdas": [1.0, 0.1, 0.01], "gammas": GAMMAS, "select": "1se"},
        {"Cs": CS, "gammas": GAMMAS, "class_weight": "balanced", "fit_intercept": False},
        {"gammas": None},  # the default grid, which grows
        {"kernel": "linear", "Cs": CS},
    ],
    ids=["scorer", "lambdas", "class_weight", "default", "linear"],
)
def test_pairs_of_rows_say_what_outer_folds_do(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = noise(17 if "Cs" in settings else 11, seed=3)
    X[3], X[5] = X[1], X[8]  # a row twice, with the same label and with the other
    weight = np.random.default_rng(0).integers(1, 4, len(y)) if "scoring" in settings else None
    quick = nested_cross_validate(X, y, sample_weight=weight, **settings)
    slow = fold_by_fold(monkeypatch, X, y, sample_weight=weight, **settings)
    np.testing.assert_array_equal(quick.chosen, slow.chosen)
    np.testing.assert_array_equal(quick.predicted, slow.predicted)
    np.testing.assert_allclose(quick.inner, slow.inner, atol=1e-12)
    np.testing.assert_allclose(quick.decision, slow.decision, atol=1e-6)
    assert quick.certificate.exact == slow.certificate.exact
    assert quick.score == pytest.approx(slow.score)


def test_interrupted_between_gammas_brings_those_that_are_complete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = noise(14)
    first = nested_cross_validate(X, y, Cs=CS, gammas=GAMMAS[:1])
    real = two_rows.TwoRows._through

    def stopping(self: Any, rows: Any, *arguments: Any) -> Any:
        if rows.gamma == GAMMAS[1]:
            raise KeyboardInterrupt
        return real(self, rows, *arguments)

    monkeypatch.setattr(two_rows.TwoRows, "_through", stopping)
    with pytest.raises(Interrupted, match="1 of 2 gammas") as stop:
        nested_cross_validate(X, y, Cs=CS, gammas=GAMMAS)
    np.testing.assert_array_equal(stop.value.partial.predicted, first.predicted)
    with pytest.raises(Interrupted, match="before the first gamma") as stop:
        nested_cross_validate(X, y, Cs=CS, gammas=GAMMAS[1:])
    assert stop.value.partial is None


def test_an_error_beyond_one_half_is_explained() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(14, 2)), np.arange(14) % 2
    found = nested_cross_validate(X, y, Cs=[1e-3], gammas=0.5)  # all coefficients at their bounds
    assert found.error == 1.0
    assert "the commoner class is predicted" in " ".join(found.summary().split())
    assert "commoner" not in nested_cross_validate(*noise(14, shift=4.0), Cs=[1.0]).summary()
