"""The error at every C against errors at single values of C, and what is refused."""

import threading
import time

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GroupKFold

import exactcv
from exactcv.estimators import every_c_fit
from tests.campaign.every_c import repeated


def _data(n=50, seed=1):
    return exactcv.datasets.make_mixture(n, 4, random_state=seed)


def _random_Cs(count=150, low=1e-3, high=1e3):
    return np.exp(np.random.default_rng(0).uniform(np.log(low), np.log(high), count))


def _agrees(X, y, **options):
    path = exactcv.error_path(X, y, **options)
    Cs = _random_Cs()
    expected = exactcv.cross_validate(X, y, Cs=Cs, **options).n_errors
    assert (path.at(Cs) == expected).all()
    assert path.certificate.exact
    return path


GROUPS = np.arange(50) % 6


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cv": 5},
        {"cv": GroupKFold(6), "groups": GROUPS},
        {"fit_intercept": False},
        {"fit_intercept": False, "cv": 4},
        {"class_weight": "balanced"},
        {"sample_weight": np.random.default_rng(2).uniform(0.1, 3.0, 50)},
        {"sample_weight": np.r_[np.zeros(5), np.ones(45)], "cv": 5},
        {"kernel": "linear"},
        {"kernel": "poly", "degree": 2, "coef0": 1.0, "cv": 5},
        {"gamma": 2.0},
    ],
    ids=lambda options: "-".join(options) or "plain",
)
def test_counts_are_those_of_cross_validate(options):
    _agrees(*_data(), **options)


@pytest.mark.parametrize("cv", ["loo", 5])
def test_repeated_and_contradictory_rows(cv):
    _agrees(*repeated(*_data()), cv=cv)


@pytest.mark.parametrize("n", [30, 31])
def test_no_free_row(n):
    """Balanced classes, strong regularisation: training sets without a free row, and jumps."""
    X, _ = _data(n)
    y = np.arange(n) % 2
    _agrees(X, y)
    _agrees(X, y, cv=3)


@pytest.mark.parametrize("cv", ["loo", 4])
def test_every_breakpoint_is_a_change(cv):
    X, y = _data()
    path = exactcv.error_path(X, y, cv=cv)
    inner = np.r_[path.C_range[0], path.breakpoints, path.C_range[1]]
    wide = np.minimum(np.diff(inner)[:-1], np.diff(inner)[1:]) > 1e-7 * path.breakpoints
    steps = path.breakpoints[wide]
    for side in (1.0 - 1e-8, 1.0 + 1e-8):
        found = exactcv.cross_validate(X, y, Cs=steps * side, cv=cv).n_errors
        assert (found == path.at(steps * side)).all()
    assert (np.diff(path.n_errors) != 0).all()


@pytest.mark.parametrize("cv", ["loo", 3])
def test_several_classes_vote(cv):
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    path = exactcv.error_path(X, y, cv=cv, gamma=0.5)
    Cs = _random_Cs(40)
    model = exactcv.SVCCV(Cs=Cs, gamma=0.5, cv=cv).fit(X, y)
    wrong = 1.0 - model.cv_results_["mean_test_score"]
    assert np.allclose(path.at(Cs) / len(y), wrong, atol=1e-12)


def test_best_and_the_rest_of_the_result():
    X, y = _data()
    path = exactcv.error_path(X, y)
    low, high = path.best.T
    assert (path.at(np.sqrt(low * high)) == path.n_errors.min()).all()
    assert path.at(path.best_C) == path.n_errors.min()
    frame = path.to_frame()
    assert len(frame) == len(path.n_errors) == len(path.certificate.kkt)
    assert (frame["C_from"] < frame["C_to"]).all()
    # Every change of a row, one after the other, makes the steps.
    start = path.n_errors[0]
    totals = start + np.cumsum(np.where(path.changed_wrong, 1, -1))
    assert totals[-1] == path.n_errors[-1]
    assert "least error" in path.summary()
    found, least = path.missed([0.01, 0.02])
    assert found >= least == path.n_errors.min()


def test_threads_change_nothing():
    X, y = _data()
    one, two = (exactcv.error_path(X, y, n_jobs=k) for k in (1, 2))
    assert np.array_equal(one.breakpoints, two.breakpoints)
    assert np.array_equal(one.n_errors, two.n_errors)


def test_plot_shows_steps_and_grid():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    path = exactcv.error_path(*_data(), C_range=(0.1, 10.0))
    display = path.plot()
    assert len(display.grid_.get_xdata()) == 50
    assert np.array_equal(display.steps_.get_xdata(), path.edges)
    assert path.plot(Cs=0).grid_ is None


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"C_range": (1.0, 1.0)}, exactcv.InputError, "empty"),
        ({"C_range": (10.0, 1.0)}, exactcv.InputError, "empty"),
        ({"C_range": (-1.0, 1.0)}, exactcv.InputError, "positive"),
        ({"C_range": (0.0, 1.0)}, exactcv.InputError, "positive"),
        ({"C_range": (1.0, 2.0, 3.0)}, exactcv.InputError, "two numbers"),
        ({"C_range": 1.0}, exactcv.InputTypeError, "two numbers"),
        ({"C_range": (1.0, np.inf)}, exactcv.InputError, "C_range"),
        ({"C_range": (1e-300, 1.0)}, exactcv.InputError, "C_range=.* too small"),
        ({"method": "refit"}, exactcv.UnsupportedError, "method='exact'"),
        ({"loss": "squared"}, exactcv.UnsupportedError, "every C is for loss='hinge'"),
        ({"loss": "squared_hinge"}, exactcv.UnsupportedError, "every C is for loss='hinge'"),
        ({"loss": "logistic"}, exactcv.UnsupportedError, "every C is for loss='hinge'"),
        ({"loss": "hing"}, exactcv.InputError, "not known"),
        ({"loss": "epsilon_insensitive"}, exactcv.UnsupportedError, "steps"),
    ],
)
def test_what_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        exactcv.error_path(*_data(), **options)


def test_kernels_without_a_path_are_refused():
    _, y = _data()
    K = -np.eye(len(y))
    with pytest.warns(exactcv.NotPSDWarning), pytest.raises(exactcv.UnsupportedError, match="path"):
        exactcv.error_path(K, y, kernel="precomputed")


def test_outside_the_range_nothing_is_known():
    path = exactcv.error_path(*_data(20), C_range=(0.1, 1.0))
    with pytest.raises(exactcv.InputError, match="range"):
        path.at(2.0)
    with pytest.raises(exactcv.InputTypeError, match="a number or an array of numbers"):
        path.at("one")


@pytest.mark.parametrize("Cs", ["all", "All"])
def test_who_knows_every_c_is_named(Cs):
    with pytest.raises(exactcv.InputTypeError, match="error_path"):
        exactcv.cross_validate(*_data(20), Cs=Cs)


def test_interrupt():
    import _thread

    X, y = _data(400)
    timer = threading.Timer(0.4, _thread.interrupt_main)
    timer.start()
    start = time.monotonic()
    with pytest.raises(exactcv.Interrupted, match="interrupted"):
        exactcv.error_path(X, y)
    timer.cancel()
    assert time.monotonic() - start < 60.0


def test_interrupt_keeps_the_gammas_that_are_done(monkeypatch):
    """As on a grid: the estimator is fitted to the best of them."""
    X, y = _data()
    whole = exactcv.SVCCV(Cs="all", gamma=[0.1]).fit(X, y)
    calls, follow = [], every_c_fit.follow_path

    def stopping(*args, **more):
        calls.append(args)
        if len(calls) == stop_at:
            raise KeyboardInterrupt
        return follow(*args, **more)

    monkeypatch.setattr(every_c_fit, "follow_path", stopping)
    stop_at = 2
    model = exactcv.SVCCV(Cs="all", gamma=[0.1, 1.0, 3.0])
    with pytest.raises(exactcv.Interrupted, match="with 1 of 3 gammas done") as caught:
        model.fit(X, y)
    assert caught.value.partial is model
    assert model.C_ == whole.C_ and model.gamma_ == 0.1 and len(model.error_paths_) == 1
    assert np.array_equal(model.predict(X), whole.predict(X))
    calls.clear()
    stop_at = 1
    with pytest.raises(exactcv.Interrupted, match="before the first gamma") as caught:
        model.fit(X, y)
    assert caught.value.partial is None


def test_warnings_point_at_the_line_of_the_user():
    X, y = _data(20)
    conformal = exactcv.ConformalSVC(tol=1e-16)
    jobs = [
        lambda: exactcv.error_path(X, y, tol=1e-16),
        lambda: exactcv.influence(X, y, C=1.0, tol=1e-16),
        lambda: exactcv.leave_pair_out(X, y, Cs=[1.0], tol=1e-16),
        lambda: conformal.fit(X, y),
        lambda: conformal.p_values(X[:1]),
        lambda: exactcv.SVCCV(Cs=[1.0], tol=1e-16).fit(X, y),
    ]
    for job in jobs:
        with pytest.warns(exactcv.NotExactWarning) as caught:
            job()
        assert {one.filename for one in caught} == {__file__}


def test_svccv_takes_every_c(tmp_path):
    X, y = _data()
    model = exactcv.SVCCV(Cs="all", gamma=[0.1, 1.0]).fit(X, y)
    path = model.error_path_
    assert len(model.error_paths_) == 2 and model.gamma_ == path.gamma
    assert path.best_C == model.C_
    least = min(one.error.min() for one in model.error_paths_)
    assert model.best_score_ == pytest.approx(1.0 - least, abs=1e-12)
    assert model.predict(X).shape == y.shape
    words = "every C from {:.4g} to {:.4g} with 2 values of gamma".format(*path.C_range)
    exactcv.save_model(model, tmp_path / "model.exactcv")
    for one in (model, exactcv.load_model(tmp_path / "model.exactcv")):
        assert words in " ".join(one.summary().split())
        assert words in " ".join(one.methods_text().split())
        assert "1-SE" not in one.summary()  # that is for a grid
    assert not hasattr(model.set_params(Cs=[1.0], gamma=1.0).fit(X, y), "error_path_")


def test_no_grid_is_taken_for_every_c():
    """What would be worked out on a grid, or from the best point alone, is refused."""
    X, y = _data()
    model = exactcv.SVCCV(Cs="all", cv=3)
    with pytest.raises(exactcv.UnsupportedError, match="nested cross-validation tunes on a grid"):
        model.nested_score(X, y, outer=3)
    with pytest.raises(exactcv.UnsupportedError, match="the best of every C is not corrected"):
        model.fit(X, y).corrected_score_  # noqa: B018


def test_a_memory_limit_names_who_can_do_without_the_matrix():
    X, y = _data(20)
    with pytest.raises(exactcv.MemoryLimitError, match="cross_validate, SVCCV and SVRCV can"):
        exactcv.error_path(X, y, memory_limit=100)


@pytest.mark.parametrize(
    "options",
    [{"scoring": "roc_auc"}, {"select": "1se"}, {"method": "refit"}, {"loss": "squared"}],
)
def test_svccv_refuses_what_needs_a_grid(options):
    with pytest.raises(exactcv.UnsupportedError):
        exactcv.SVCCV(Cs="all", **options).fit(*_data(20))
