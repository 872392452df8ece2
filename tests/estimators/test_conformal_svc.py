"""`ConformalSVC`: p-values equal brute force, to the last row; sets cover what they promise."""

from __future__ import annotations

import _thread
import pickle
import signal
import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

import exactcv
from exactcv.crossval import conformal as module

FloatArray = Any


def rbf(X: FloatArray, Z: FloatArray, gamma: float) -> FloatArray:
    return np.exp(-gamma * ((X[:, None] - Z) ** 2).sum(axis=2))


def left_out_scores(K: FloatArray, codes: Any, C: float, **settings: Any) -> FloatArray:
    """Every row's left-out score, each by a model that was solved from nothing."""
    scores = np.full(len(codes), np.inf)
    for first, second in combinations(range(codes.max() + 1), 2):
        rows = np.flatnonzero((codes == first) | (codes == second))
        signs = np.where(codes[rows] == second, 1.0, -1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the only row of a class is not tested
            found = exactcv.cross_validate(
                np.ascontiguousarray(K[np.ix_(rows, rows)]), signs, kernel="precomputed",
                Cs=[C], output="decision", method="refit", **settings,
            )  # fmt: skip
        assert found.certificate.exact
        assert found.decision is not None
        value = signs * found.decision[0]
        # Without it there is the other class alone, and its margin.
        value[np.isnan(value)] = -1.0
        scores[rows] = np.minimum(scores[rows], value)
    return scores


def brute_force(
    X: FloatArray, codes: Any, new: FloatArray, C: float, gamma: float,
    within_class: bool = False, weights: Any = None, fit_intercept: bool = True,
) -> FloatArray:  # fmt: skip
    """Add each row with each label, leave out every row of the larger set, and rank."""
    p = np.empty((len(new), codes.max() + 1))
    for t, x in enumerate(new):
        rows = np.vstack([X, x])
        K = rbf(rows, rows, gamma)
        for label in range(codes.max() + 1):
            larger = np.append(codes, label)
            more = {"fit_intercept": fit_intercept}
            if weights is not None:
                more["class_weight"] = {-1.0: weights[0], 1.0: weights[1]}
            scores = left_out_scores(K, larger, C, **more)
            own = scores[-1]
            at_most = scores <= own + 1e-9 * max(1.0, abs(own))
            p[t, label] = at_most[larger == label].mean() if within_class else at_most.mean()
    return p


def sample(n: int, n_classes: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    X = rng.normal(size=(n, 3)) + 0.8 * codes[:, None]
    X[1], X[n_classes + 1] = X[0], X[1]  # repeated rows, with equal labels and others
    return X, codes


def some_new(X: FloatArray, seed: int) -> FloatArray:
    """Rows of the same kind, and one that is among the training rows."""
    rng = np.random.default_rng(seed + 100)
    return np.vstack([rng.normal(size=(2, 3)) + 0.7, X[:1], X[7:8]])


@pytest.mark.parametrize("C", [0.01, 0.3, 10.0, 1000.0])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_p_values_equal_brute_force(n_classes: int, seed: int, C: float) -> None:
    X, codes = sample(25, n_classes, seed)
    new = some_new(X, seed)
    labels = np.array(["a", "b", "c"])[codes]
    within = seed == 1
    model = exactcv.ConformalSVC(C=C, gamma=0.3, within_class=within).fit(X, labels)
    truth = brute_force(X, codes, new, C, 0.3, within)
    assert np.array_equal(model.p_values(new), truth)


def test_settings() -> None:
    X, codes = sample(25, 2, 3)
    new = some_new(X, 3)
    without = exactcv.ConformalSVC(C=1.0, gamma=0.3, fit_intercept=False).fit(X, codes)
    truth = brute_force(X, codes, new, 1.0, 0.3, fit_intercept=False)
    assert np.array_equal(without.p_values(new), truth)
    weighted = exactcv.ConformalSVC(C=1.0, gamma=0.3, class_weight={0: 3.0, 1: 0.5})
    truth = brute_force(X, codes, new, 1.0, 0.3, weights=(3.0, 0.5))
    assert np.array_equal(weighted.fit(X, codes).p_values(new), truth)


def test_the_only_row_of_a_class() -> None:
    X, codes = sample(25, 3, 5)
    codes = np.where((codes == 2) & (np.arange(25) > 2), 0, codes)
    assert np.count_nonzero(codes == 2) == 1
    new = some_new(X, 5)
    model = exactcv.ConformalSVC(C=1.0, gamma=0.3).fit(X, codes)
    assert np.array_equal(model.p_values(new), brute_force(X, codes, new, 1.0, 0.3))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_proofs_and_solutions_agree(C: float, n_classes: int) -> None:
    X, codes = sample(60, n_classes, 2)
    model = exactcv.ConformalSVC(C=C, gamma=0.2).fit(X, codes)
    new = model._new_rows(np.random.default_rng(9).normal(size=(8, 3)), None)
    ready = model._ready()
    with exactcv.runtime.threads.Workers(1) as workers:
        proved = ready.p_values(new, workers)
    with exactcv.runtime.threads.Workers(1) as workers:
        solved = module.replace(ready, proofs=False).p_values(new, workers)
    assert np.array_equal(proved.p, solved.p)
    assert solved.solved == solved.compared
    # With every coefficient at its bound the intercept may jump, and bounds know nothing.
    assert proved.solved < proved.compared or C < 1.0
    assert proved.certificate.exact
    assert solved.certificate.exact


def test_threads_and_pickles_change_nothing() -> None:
    X, codes = sample(40, 3, 4)
    new = some_new(X, 4)
    model = exactcv.ConformalSVC(C=1.0, gamma=0.3).fit(X, codes)
    expected = model.p_values(new)
    both = exactcv.ConformalSVC(C=1.0, gamma=0.3, n_jobs=2).fit(X, codes)
    assert np.array_equal(both.p_values(new), expected)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).p_values(new), expected)
    thin = exactcv.ConformalSVC(C=1.0, gamma=0.3).fit(sparse.csr_matrix(X), codes)
    assert np.array_equal(thin.p_values(sparse.csr_matrix(new)), expected)


def test_precomputed() -> None:
    X, codes = sample(30, 2, 6)
    new = some_new(X, 6)[:3]
    model = exactcv.ConformalSVC(C=1.0, gamma=0.3).fit(X, codes)
    given = exactcv.ConformalSVC(C=1.0, kernel="precomputed").fit(rbf(X, X, 0.3), codes)
    K = rbf(new, X, 0.3)
    assert np.array_equal(given.p_values(K, itself=np.ones(3)), model.p_values(new))
    assert np.array_equal(given.predict(K), model.predict(new))
    with pytest.raises(exactcv.InputError, match="need `itself`"):
        given.p_values(K)
    with pytest.raises(exactcv.InputError, match="itself has 2 values"):
        given.p_values(K, itself=[1.0, 1.0])
    with pytest.raises(exactcv.InputError, match="goes with kernel='precomputed' only"):
        model.p_values(new, itself=np.ones(3))


def test_sets() -> None:
    X, codes = sample(39, 3, 7)
    model = exactcv.ConformalSVC(C=1.0, gamma=0.3).fit(X, np.array(["x", "y", "z"])[codes])
    new = some_new(X, 7)
    p = model.p_values(new)
    for coverage in (0.5, 0.8, 0.9, 0.99):
        # p-values are whole numbers over 40; those at 1 - coverage are not in the set.
        inside = np.round(40 * p) > round(40 * (1.0 - coverage), 9)
        assert np.array_equal(model.predict_set(new, coverage), inside)
    assert model.predict_set(new, 0.999).all()
    svc = exactcv.SVCCV(Cs=[1.0], gamma=0.3, cv=2).fit(X, np.array(["x", "y", "z"])[codes])
    assert np.array_equal(model.predict(new), svc.predict(new))
    values, others = model.decision_function(new), svc.decision_function(new)
    assert np.abs(values - others).max() <= 1e-8 * max(1.0, float(np.abs(others).max()))


def test_coverage() -> None:
    """Of 150 draws, each with a new row, at least as many sets hold the true label as promised.

    The count is at least binomial with the coverage as its probability; four standard deviations
    below that a run in 30,000 would end.
    """
    rng = np.random.default_rng(0)
    draws, coverage, hits = 150, 0.8, 0
    for _ in range(draws):
        y = rng.integers(2, size=25)
        y[:2] = 0, 1
        X = rng.normal(size=(25, 2)) + y[:, None]
        # The last row is the new one: rows are exchangeable but for the two that fix the classes.
        model = exactcv.ConformalSVC(C=1.0, gamma=0.5).fit(X[:-1], y[:-1])
        hits += int(model.predict_set(X[-1:], coverage)[0, y[-1]])
    spread = np.sqrt(draws * coverage * (1.0 - coverage))
    assert hits >= draws * coverage - 4.0 * spread


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"C": -1.0}, "C must be a positive number"),
        ({"gamma": "median"}, "would void the guarantee"),
        ({"gamma": "scale"}, "would void the guarantee"),
        ({"gamma": -1.0}, "gamma"),
        ({"class_weight": "balanced"}, "would void the guarantee"),
        ({"class_weight": {0: 0.0, 1: 1.0}}, "class"),
        ({"within_class": 1}, "within_class must be True or False"),
        ({"kernel": "cubic"}, "kernel='cubic' is not known"),
        ({"memory_limit": "10kB"}, "memory limit"),
    ],
)
def test_errors(settings: dict[str, Any], words: str) -> None:
    X, codes = sample(30, 2, 0)
    with pytest.raises(exactcv.ExactCVError, match=words):
        exactcv.ConformalSVC(**settings).fit(X, codes)


def test_more_errors() -> None:
    X, codes = sample(30, 2, 0)
    model = exactcv.ConformalSVC().fit(X, codes)
    for coverage in (0.0, 1.0, 90, "0.9"):
        with pytest.raises(exactcv.InputError, match="coverage must be a number between 0 and 1"):
            model.predict_set(X, coverage)  # type: ignore[arg-type]
    with pytest.raises(exactcv.InputError, match=r"one class only, 0\.0;"):
        exactcv.ConformalSVC().fit(X, np.zeros(30))
    with (
        pytest.warns(exactcv.NotPSDWarning),
        pytest.raises(exactcv.UnsupportedError, match="not positive semidefinite"),
    ):
        exactcv.ConformalSVC(kernel="sigmoid", gamma=0.9).fit(X, codes)


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    X, codes = sample(30, 2, 0)
    exactcv.ConformalSVC(verbose=1).fit(X, codes).p_values(X[:4])
    assert "p-values of 4 rows, 2 classes" in capsys.readouterr().err


def test_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    X, codes = sample(30, 2, 0)
    model = exactcv.ConformalSVC(gamma=0.3).fit(X, codes)
    new = some_new(X, 0)
    expected = model.p_values(new)
    tried, plain = [], module.Conformal._try

    def stopping(self: Any, row: Any, itself: Any, cancel: Any) -> Any:
        tried.append(row)
        if len(tried) == 3:
            _thread.interrupt_main()
            while not cancel[0]:
                pass
        return plain(self, row, itself, cancel)

    monkeypatch.setattr(module.Conformal, "_try", stopping)
    try:
        with pytest.raises(exactcv.Interrupted, match="2 of 4 rows done") as stop:
            model.p_values(new)
    finally:
        signal.signal(signal.SIGINT, before)
    partial = stop.value.partial
    assert np.array_equal(partial[:2], expected[:2])
    assert np.isnan(partial[3:]).all()


@parametrize_with_checks(
    [
        exactcv.ConformalSVC(),
        exactcv.ConformalSVC(C=10.0, kernel="laplacian", within_class=True),
    ]
)
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)
