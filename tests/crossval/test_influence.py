"""`influence`: every number against models that are fitted without the row."""

from __future__ import annotations

import _thread
import signal
from typing import Any

import numpy as np
import pytest

import exactcv
from exactcv.crossval import influence as module

CLOSE = 1e-8


def data(n: int = 40, seed: int = 0) -> tuple[Any, Any]:
    X, y = exactcv.datasets.make_mixture(n, 4, random_state=seed)
    X[1], y[1] = X[0], y[0]  # a repeated row, and one with both labels
    X[3], y[3] = X[2], -np.asarray(y)[2]
    return X, np.where(np.asarray(y) > 0, "yes", "no")


def values_without(X: Any, y: Any, keep: Any, points: Any, C: float, **more: Any) -> Any:
    """Decision values of the model of some rows, from nothing."""
    model = exactcv.SVCCV(Cs=[C], gamma=0.2, method="refit", cv=2, **more).fit(X[keep], y[keep])
    return model.decision_function(points)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.05, 1.0, 100.0])
def test_equals_refits(C: float, fit_intercept: bool) -> None:
    X, y = data()
    found = exactcv.influence(X, y, C=C, gamma=0.2, fit_intercept=fit_intercept)
    n, sign = len(y), np.where(y == "yes", 1.0, -1.0)
    every = values_without(X, y, np.arange(n), X, C, fit_intercept=fit_intercept)
    scale = max(1.0, float(np.abs(every).max()))
    assert np.abs(found.value - every).max() <= CLOSE * scale
    assert found.certificate.exact
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        without = values_without(X, y, rest, X, C, fit_intercept=fit_intercept)
        assert np.abs(found.change[i] - (without - every)).max() <= 2 * CLOSE * scale
        assert abs(found.left_out[i] - without[i]) <= CLOSE * scale
        loss = [np.maximum(0.0, 1.0 - sign[rest] * u[rest]) for u in (without, every)]
        assert abs(found.loss_change[i] - (loss[0] - loss[1]).mean()) <= 2 * CLOSE * scale
        own = max(0.0, 1.0 - sign[i] * without[i])
        assert abs(found.benefit[i] - own - (loss[1] - loss[0]).sum()) <= 2 * n * CLOSE * scale
        clear = np.abs(np.concatenate([without, every])).min() > 1e-6
        wrong = [np.count_nonzero(sign[rest] * u[rest] <= 1e-9) for u in (without, every)]
        if clear:
            assert found.error_change[i] == pytest.approx((wrong[0] - wrong[1]) / (n - 1))


def test_other_rows_can_be_watched() -> None:
    X, y = data(50)
    X, X_test, y, y_test = X[:40], X[40:], y[:40], y[40:]
    found = exactcv.influence(X, y, C=1.0, gamma=0.2, X_test=X_test, y_test=y_test)
    assert found.change.shape == (40, 10)
    every = values_without(X, y, np.arange(40), X_test, 1.0)
    without = values_without(X, y, np.arange(1, 40), X_test, 1.0)
    assert np.abs(found.change[0] - (without - every)).max() <= 2 * CLOSE * np.abs(every).max()
    sign = np.where(y_test == "yes", 1.0, -1.0)
    loss = [np.maximum(0.0, 1.0 - sign * u).mean() for u in (without, every)]
    assert found.loss_change[0] == pytest.approx(loss[0] - loss[1], abs=1e-7)
    assert np.allclose(found.benefit, -10 * found.loss_change)
    K = np.exp(-0.2 * ((X[:, None] - X) ** 2).sum(axis=2))
    between = np.exp(-0.2 * ((X_test[:, None] - X) ** 2).sum(axis=2))
    again = exactcv.influence(K, y, C=1.0, kernel="precomputed", X_test=between, y_test=y_test)
    assert np.abs(again.change - found.change).max() <= 2 * CLOSE * np.abs(every).max()


def test_weights() -> None:
    X, y = data()
    weight = np.ones(len(y))
    weight[[0, 5]] = 0.0
    weight[9] = 2.5
    found = exactcv.influence(X, y, C=1.0, gamma=0.2, sample_weight=weight)
    there = np.flatnonzero(weight)
    part = exactcv.influence(X[there], y[there], C=1.0, gamma=0.2, sample_weight=weight[there])
    assert np.array_equal(found.change[np.ix_(there, there)], part.change)
    for gone in (found.change[0], found.change[:, 5], found.benefit[[0, 5]], found.value[[0, 5]]):
        assert np.isnan(gone).all()
    assert not np.isin([0, 5], found.helps_most()).any()
    assert found.to_frame().shape[0] == len(there)


def test_threads_change_nothing() -> None:
    X, y = data()
    one, two = (exactcv.influence(X, y, C=1.0, n_jobs=jobs) for jobs in (1, 2))
    assert np.array_equal(one.change, two.change)


def test_lists_table_words_and_plot() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    X, y = exactcv.datasets.make_mixture(120, 6, random_state=3)
    y = np.asarray(y).copy()
    flipped = np.array([4, 31, 57, 90])
    y[flipped] = -y[flipped]
    found = exactcv.influence(X, y, C=1.0, gamma=0.02)
    order = found.helps_most()
    assert (np.diff(found.benefit[order]) <= 0).all()
    assert (found.benefit[order] > 0).all()
    assert np.array_equal(found.helps_most(4), order[:4])
    frame = found.to_frame()
    assert (np.diff(frame["benefit"]) <= 0).all()
    first = frame.iloc[0]
    row = int(first["row"])
    assert row == order[0]
    others = np.delete(np.abs(found.change[row]), row)
    assert abs(first["largest_change"]) == others.max()
    assert found.change[row, int(first["of_row"])] == first["largest_change"]
    assert str(row) in found.summary()
    assert "120 rows" in repr(found)
    display = found.plot()
    assert len(display.points_.get_offsets()) == 120
    assert not found.change.flags.writeable
    with pytest.raises(exactcv.InputError, match="k must be"):
        found.helps_most(-1)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"C": -1.0}, "C must be a positive number"),
        ({"C": "1"}, "C must be a positive number"),
        ({"X_test": np.zeros((2, 4))}, "go together"),
        ({"X_test": np.zeros((2, 3)), "y_test": ["no", "no"]}, "3 columns, X has 4"),
        ({"X_test": np.zeros((2, 4)), "y_test": ["no", "maybe"]}, "'maybe'"),
        ({"X_test": np.zeros((2, 4)), "y_test": ["no"]}, "X_test has 2 rows"),
        ({"memory_limit": "55kB"}, "influence of 40 rows"),
    ],
)
def test_errors(more: dict[str, Any], words: str) -> None:
    X, y = data()
    with pytest.raises(exactcv.ExactCVError, match=words):
        exactcv.influence(X, y, **({"C": 1.0} | more))


def test_several_classes() -> None:
    X, y = data()
    with pytest.raises(exactcv.InputError, match="take the rows of two at a time"):
        exactcv.influence(X, np.arange(len(y)) % 3, C=1.0)


def test_an_only_row() -> None:
    X, y = data()
    y[:] = "no"
    y[7] = "yes"
    with pytest.raises(exactcv.InputError, match="class 'yes' has one row only"):
        exactcv.influence(X, y, C=1.0)


def test_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    X, y = data()

    def stopped(*_: Any, **__: Any) -> None:
        _thread.interrupt_main()
        signal.pause()

    monkeypatch.setattr(module, "fold_changes", stopped)
    try:
        with pytest.raises(exactcv.Interrupted, match="before all rows were left out"):
            exactcv.influence(X, y, C=1.0)
    finally:
        signal.signal(signal.SIGINT, before)
