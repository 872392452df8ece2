"""`SVCCV.forget`: the model without some rows is the one that a refit without them gives."""

from __future__ import annotations

import _thread
import copy
import pickle
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine

import exactcv
from exactcv.engine.moves import Mover

# What "exact" promises of values, relative to their scale.
CLOSE = 1e-8


def standardised(load: Any, n: int | None = None) -> tuple[Any, Any]:
    X, y = load(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:n]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[rows], y[rows]


CANCER = standardised(load_breast_cancer, 150)
WINE = standardised(load_wine)


def refitted(model: exactcv.SVCCV, X: Any, y: Any, gone: Any, **fit: Any) -> exactcv.SVCCV:
    """The oracle: without the rows, from nothing, at the chosen point."""
    rest = np.setdiff1d(np.arange(len(y)), gone)
    settings = {"Cs": [model.C_], "lambdas": None, "method": "refit", "cv": 2}
    settings |= {} if model.gamma_ is None else {"gamma": model.gamma_}
    other = exactcv.SVCCV(**(model.get_params() | settings))
    fit = {name: value[rest] for name, value in fit.items()}
    if model.kernel == "precomputed":
        return other.fit(X[np.ix_(rest, rest)], y[rest], **fit)
    return other.fit(X[rest], y[rest], **fit)


def assert_same(model: exactcv.SVCCV, other: exactcv.SVCCV, X: Any) -> None:
    ours, theirs = model._pair_decisions(X), other._pair_decisions(X)
    assert np.abs(ours - theirs).max() <= CLOSE * max(1.0, float(np.abs(theirs).max()))
    assert np.array_equal(model.predict(X), other.predict(X))


@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
@pytest.mark.parametrize("data", [CANCER, WINE], ids=["two classes", "three classes"])
def test_equals_a_refit(data: tuple[Any, Any], C: float) -> None:
    X, y = data
    # Repeated rows, with the same label and with another.
    X = np.vstack([X, X[:6]])
    y = np.concatenate([y, y[:3], (y[3:6] + 1) % 2])
    model = exactcv.SVCCV(Cs=[C]).fit(X, y)
    gone = np.random.default_rng(1).permutation(len(y))[:12]
    one_by_one = model
    for row in gone:
        one_by_one = one_by_one.forget(int(row))
    at_once = model.forget(gone)
    truth = refitted(model, X, y, gone)
    for found in (one_by_one, at_once):
        assert_same(found, truth, X)
        assert found.certificate_.exact
        assert found.certificate_.kkt.shape == (1,)
        assert np.array_equal(found.forgotten_, np.sort(gone))
        assert not np.isin(found.support_, gone).any()
        assert np.array_equal(found.support_vectors_, X[found.support_])
        assert found.n_support_.sum() == len(found.support_)
        assert found.C_ == model.C_
        assert found.best_score_ == model.best_score_


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "linear"},
        {"kernel": "poly", "degree": 2, "coef0": 1.0},
        {"fit_intercept": False},
        {"class_weight": {0: 3.0, 1: 1.0}},
        {"lambdas": [1e-3], "Cs": None},
        {"method": "magic"},
        {"cv": 5, "probability": True, "store_cv_results": True},
    ],
    ids=str,
)
def test_settings(settings: dict[str, Any]) -> None:
    X, y = CANCER
    model = exactcv.SVCCV(**({"Cs": [1.0]} | settings)).fit(X, y)
    gone = [3, 77, 120]
    found = model.forget(gone)
    assert_same(found, refitted(model, X, y, gone), X)
    assert found.summary()
    if model.probability:
        assert found.predict_proba(X).shape == (len(y), 2)
        assert np.isnan(found.cv_results_["decision"][:, gone]).all()
        assert np.isnan(model.cv_results_["decision"]).sum() == 0


def test_what_is_told_of_the_choice_stays() -> None:
    """Errors were counted with the rows; of the rows themselves nothing is left."""
    X, y = CANCER
    model = exactcv.SVCCV(Cs=[0.1, 1.0], cv=5, probability=True).fit(X, y)
    found = model.forget([3, 77]).forget(120)
    assert found.summary() == model.summary()
    shown, before = found._overview(), model._overview()
    assert shown.n_tested == before.n_tested == len(y)
    assert np.array_equal(shown.interval, before.interval)
    rest = np.delete(np.arange(len(y)), [3, 77, 120])
    order = np.argsort(shown.left_out.row)
    assert np.array_equal(shown.left_out.row[order], rest)
    for name in ("truth", "predicted", "wrong_at", "probability", "decision"):
        kept = getattr(before.left_out, name)[np.argsort(before.left_out.row)][rest]
        assert np.array_equal(getattr(shown.left_out, name)[order], kept)


def test_weights_and_rows_of_no_weight() -> None:
    X, y = CANCER
    weight = np.random.default_rng(2).uniform(0.2, 3.0, len(y))
    weight[[0, 9]] = 0.0
    model = exactcv.SVCCV(Cs=[1.0]).fit(X, y, sample_weight=weight)
    gone = [5, 60]
    truth = refitted(model, X, y, gone, sample_weight=weight)
    assert_same(model.forget(gone), truth, X)
    with pytest.raises(exactcv.InputIndexError, match="row 9 is not in this model"):
        model.forget(9)


def test_sparse_and_precomputed() -> None:
    X, y = CANCER
    plain = exactcv.SVCCV(Cs=[1.0], gamma=0.05).fit(X, y)
    thin = exactcv.SVCCV(Cs=[1.0], gamma=0.05).fit(sparse.csr_matrix(X), y).forget([1, 2])
    assert sparse.issparse(thin.support_vectors_)
    assert_same(thin, plain.forget([1, 2]), X)
    K = np.exp(-0.05 * ((X[:, None] - X) ** 2).sum(axis=2))
    given = exactcv.SVCCV(Cs=[1.0], kernel="precomputed").fit(K, y)
    found = given.forget([1, 2]).forget(0)
    truth = plain.forget([0, 1, 2]).decision_function(X)
    assert np.abs(found.decision_function(K) - truth).max() <= CLOSE * np.abs(truth).max()
    with pytest.raises(exactcv.UnsupportedError, match="has no kernel matrix"):
        pickle.loads(pickle.dumps(found)).forget(5)


def test_the_model_itself_stays_and_branches_are_apart() -> None:
    X, y = CANCER
    model = exactcv.SVCCV(Cs=[1.0]).fit(X, y)
    before = model.decision_function(X), copy.deepcopy(model.dual_coef_)
    first, second = model.forget(4), model.forget(5)
    third = first.forget(6)
    assert np.array_equal(model.decision_function(X), before[0])
    assert np.array_equal(model.dual_coef_, before[1])
    assert not hasattr(model, "forgotten_")
    for found, gone in ((first, [4]), (second, [5]), (third, [4, 6])):
        assert found.forgotten_.tolist() == gone
        assert_same(found, refitted(model, X, y, gone), X)
    again = first.fit(X, y)
    assert not hasattr(again, "forgotten_")
    assert_same(again, model, X)


def test_what_is_pickled_or_saved_has_nothing_of_the_row(tmp_path: Path) -> None:
    X, y = CANCER
    X = X.copy()
    X[7] = 1234.5  # a value to look for
    mark = np.float64(1234.5).tobytes()
    model = exactcv.SVCCV(Cs=[1.0], gamma=0.05, store_cv_results=True).fit(X, y)
    found = model.forget(7)
    text = pickle.dumps(found)
    assert mark in pickle.dumps(model)
    assert mark not in text
    read = pickle.loads(text)
    assert_same(read.forget(8), found.forget(8), X[:7])
    with pytest.raises(exactcv.InputIndexError, match="row 7 is not in this model"):
        read.forget(7)
    path = exactcv.save_model(found, tmp_path / "model.exactcv")
    loaded = exactcv.load_model(path)
    assert isinstance(loaded, exactcv.SVCCV)
    assert np.array_equal(loaded.decision_function(X), found.decision_function(X))
    with pytest.raises(exactcv.UnsupportedError, match="read from a file"):
        loaded.forget(8)


def test_rows_that_the_caller_overwrites() -> None:
    """Before the first call the rows are the caller's; afterwards the models have their own."""
    X, y = CANCER
    mine = X.copy()
    model = exactcv.SVCCV(Cs=[1.0], gamma=0.05).fit(mine, y)
    first, found = model.forget(3), model.forget(3)
    expected = first.decision_function(X)
    mine[:] = 0.0
    assert np.array_equal(found.decision_function(X), expected)
    assert_same(found.forget(8), model.forget([3, 8]), X)
    other = exactcv.SVCCV(Cs=[1.0], gamma=0.05).fit(mine := X.copy(), y)
    mine += 1.0
    with pytest.raises(exactcv.InputError, match="overwritten since"):
        other.forget(3)


def test_support_vectors_are_there_when_asked_for() -> None:
    X, y = CANCER
    assert not hasattr(exactcv.SVCCV(), "support_vectors_")
    with pytest.raises(AttributeError, match="no support vectors"):
        exactcv.SVCCV().support_vectors_  # noqa: B018
    model = exactcv.SVCCV(Cs=[1.0], gamma=0.05).fit(X, y)
    found = model.forget([3, 8])
    copies = pickle.loads(pickle.dumps(found)), copy.deepcopy(found)
    for one in (found, *copies):
        assert np.array_equal(one.support_vectors_, X[one.support_])
    assert np.array_equal(model.support_vectors_, X[model.support_])
    again = found.fit(X[:100], y[:100])
    assert np.array_equal(again.support_vectors_, X[again.support_])


def test_many_in_a_row() -> None:
    X, y = exactcv.datasets.make_mixture(300, 10, random_state=0)
    model = found = exactcv.SVCCV(Cs=[10.0], gamma=0.05, cv=2).fit(X, y)
    order = np.random.default_rng(0).permutation(300)[:220]
    for k, row in enumerate(order):
        found = found.forget(row)
        assert found.certificate_.exact
        if k % 55 == 54:
            assert_same(found, refitted(model, X, y, order[: k + 1]), X)


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        ([1, 1], exactcv.InputError, "row 1 is in the list more than once"),
        ([150], exactcv.InputIndexError, "there is no row 150: rows are numbered from 0 to 149"),
        (-1, exactcv.InputIndexError, "there is no row -1"),
        ([], exactcv.InputError, "rows is empty"),
        ([True, False], exactcv.InputTypeError, "np.flatnonzero"),
        (1.5, exactcv.InputTypeError, "rows must be a row number"),
        ("a", exactcv.InputTypeError, "rows must be a row number"),
        ([[1]], exactcv.InputTypeError, "rows must be a row number"),
    ],
)
def test_rows_that_cannot_be_forgotten(rows: Any, error: type[Exception], words: str) -> None:
    X, y = CANCER
    model = exactcv.SVCCV(Cs=[1.0], cv=2).fit(X, y)
    with pytest.raises(error, match=words):
        model.forget(rows)


def test_models_that_cannot_forget() -> None:
    X, y = CANCER
    with pytest.raises(exactcv.InputError, match="none of class 0 left"):
        exactcv.SVCCV(Cs=[1.0], cv=2).fit(X, y).forget(np.flatnonzero(y == 0))
    with pytest.raises(exactcv.UnsupportedError, match="a model with approx cannot forget"):
        exactcv.SVCCV(Cs=[1.0], approx="rff", n_components=5, gamma=0.1).fit(X, y).forget(0)
    with pytest.raises(exactcv.UnsupportedError, match="only models with loss='hinge'"):
        exactcv.SVCCV(Cs=[1.0], loss="squared").fit(X, y).forget(0)
    with pytest.warns(exactcv.NotPSDWarning):
        wavy = exactcv.SVCCV(Cs=[1.0], kernel="sigmoid", gamma=0.5, cv=2).fit(X[:40], y[:40])
    with pytest.raises(exactcv.UnsupportedError, match="not positive semidefinite"):
        wavy.forget(0)
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        exactcv.SVCCV().forget(0)


@pytest.fixture
def heeded() -> Iterator[None]:
    """A shell that starts the tests in the background makes them deaf to Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_interrupt(heeded: None, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = CANCER
    model = exactcv.SVCCV(Cs=[1.0], cv=2).fit(X, y)
    moved = Mover.moved

    def slow(self: Mover, at: Any, rows: Any, to: Any, cancel: Any) -> Any:
        _thread.interrupt_main()
        limit = threading.Event()
        while not (cancel[0] or limit.wait(0.005)):
            pass
        return moved(self, at, rows, to, cancel)

    monkeypatch.setattr(Mover, "moved", slow)
    with pytest.raises(exactcv.Interrupted, match="the model is what it was"):
        model.forget(3)
    monkeypatch.setattr(Mover, "moved", moved)
    assert_same(model.forget(3), refitted(model, X, y, [3]), X)
