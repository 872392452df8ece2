"""The drop-in functions show how far they are, and Ctrl-C loses nothing that is finished."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import exactcv

X, y = make_moons(40, noise=0.3, random_state=0)
LABELS = np.array(["left", "right"])[y]
GRID: dict[str, Any] = {"C": [0.1, 10.0], "gamma": [0.1, 0.5, 1.0]}


def stopping(calls: int) -> Callable[..., float]:
    """A scorer that is interrupted, like the user would, after so many calls."""
    so_far = iter(range(calls))

    def score(model: Any, X: Any, y: Any) -> float:
        if next(so_far, None) is None:
            raise KeyboardInterrupt
        return float((model.predict(X) == y).mean())

    return score


def test_candidates_that_are_complete_are_kept() -> None:
    whole = exactcv.GridSearchCV(SVC(), GRID, cv=4).fit(X, y)
    # Two kernels with two candidates and four folds each, and some of the third.
    search = exactcv.GridSearchCV(SVC(), GRID, cv=4, scoring=stopping(19))
    with pytest.raises(exactcv.Interrupted, match=r"4 of 6 candidates done.*is fitted") as info:
        search.fit(X, y)
    assert info.value.partial is search
    results = search.cv_results_
    known = [whole.cv_results_["params"].index(params) for params in results["params"]]
    assert known == [0, 1, 3, 4]
    for split in range(4):
        key = f"split{split}_test_score"
        np.testing.assert_array_equal(results[key], whole.cv_results_[key][known])
    assert search.best_params_ == results["params"][int(np.argmax(results["mean_test_score"]))]
    model = SVC(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(search.predict(X), model.predict(X))


def test_nothing_complete_leaves_an_earlier_fit_alone() -> None:
    search = exactcv.GridSearchCV(SVC(), GRID, cv=4).fit(X, y)
    before = search.cv_results_
    search.set_params(scoring=stopping(2))
    with pytest.raises(exactcv.Interrupted, match="before the first candidate") as info:
        search.fit(X, y)
    assert info.value.partial is None and search.cv_results_ is before


def test_interrupted_while_the_best_is_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fit(self: SVC, X: Any, y: Any) -> SVC:
        raise KeyboardInterrupt

    search = exactcv.GridSearchCV(SVC(), GRID, cv=4).fit(X, y)
    best = search.best_params_
    monkeypatch.setattr(SVC, "fit", fit)
    with pytest.raises(exactcv.Interrupted, match=r"6 of 6 candidates done.*no model"):
        search.fit(X, y)
    assert search.best_params_ == best
    assert not hasattr(search, "best_estimator_")  # not that of the earlier fit


@pytest.mark.filterwarnings("ignore::exactcv.SlowFoldsWarning")
def test_scores_of_splits_that_are_done() -> None:
    whole = exactcv.cross_val_score(SVC(), X, y, cv=5)
    with pytest.raises(exactcv.Interrupted, match="3 of 5 splits done") as info:
        exactcv.cross_val_score(SVC(), X, y, cv=5, scoring=stopping(3))
    partial = info.value.partial
    np.testing.assert_array_equal(partial.mask, [False, False, False, True, True])
    np.testing.assert_array_equal(partial.compressed(), whole[:3])
    with pytest.raises(exactcv.Interrupted, match="before the first split") as info:
        exactcv.cross_val_score(SVC(), X, y, cv=5, scoring=stopping(0))
    assert info.value.partial is None


@pytest.mark.filterwarnings("ignore::exactcv.SlowFoldsWarning")
@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_predictions_of_splits_that_are_done(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    cv = KFold(5, shuffle=True, random_state=0)
    options: dict[str, Any] = {"cv": cv, "method": method}
    whole = exactcv.cross_val_predict(SVC(gamma=0.5), X, LABELS, **options)
    fit, fits = StandardScaler.fit, iter(range(2))

    def stopping_fit(self: StandardScaler, X: Any, y: Any = None) -> StandardScaler:
        if next(fits, None) is None:
            raise KeyboardInterrupt
        return fit(self, X, y)

    monkeypatch.setattr(StandardScaler, "fit", stopping_fit)
    idle = StandardScaler(with_mean=False, with_std=False)
    with pytest.raises(exactcv.Interrupted, match="2 of 5 splits done") as info:
        exactcv.cross_val_predict(make_pipeline(idle, SVC(gamma=0.5)), X, LABELS, **options)
    done = np.sort(np.concatenate([test for _, test in list(cv.split(X))[:2]]))
    partial = info.value.partial
    np.testing.assert_array_equal(np.flatnonzero(~partial.mask), done)
    if method == "predict":
        np.testing.assert_array_equal(partial.compressed(), whole[done])
    else:
        np.testing.assert_allclose(partial.compressed(), whole[done], atol=1e-9)


@pytest.mark.filterwarnings("ignore::exactcv.SlowFoldsWarning")
@pytest.mark.parametrize("n_jobs", [1, 2, 8])
def test_progress_on_request(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, n_jobs: int
) -> None:
    monkeypatch.setattr("exactcv.runtime.progress.LINE_EVERY", 0.0)  # all stages, not some
    grid = [GRID, {"gamma": ["scale", "auto"]}, {"kernel": ["sigmoid"], "gamma": [2.0]}]
    search = exactcv.GridSearchCV(SVC(), grid, cv=3, n_jobs=n_jobs).fit(X, y)
    exactcv.cross_val_score(SVC(), X, y, n_jobs=n_jobs)
    exactcv.cross_val_predict(SVC(), X, y, n_jobs=n_jobs)
    quiet = capsys.readouterr()
    assert quiet.out == "" and quiet.err == ""
    search.set_params(verbose=1).fit(X, y)
    shown = capsys.readouterr()
    assert "Fitting 3 folds for each of 9 candidates" in shown.out
    assert "exactcv: rbf kernel, gamma=0.5: 2 values of C, 3 folds (" in shown.err
    assert "exactcv: rbf kernel, gamma=scale: 1 values of C, 3 folds (" in shown.err
    assert "scikit-learn's own fits (9 of 9)" in shown.err  # 4 + 1 + 1 kernels, 3 fits
    assert "exactcv: done in" in shown.err.splitlines()[-1]
    exactcv.cross_val_score(SVC(), X, y, n_jobs=n_jobs, verbose=1)
    exactcv.cross_val_predict(SVC(gamma=0.5), X, y, n_jobs=n_jobs, verbose=1)
    assert capsys.readouterr().err.count("done in") == 2
    exactcv.cross_val_score(make_pipeline(StandardScaler(), SVC()), X, y, n_jobs=n_jobs, verbose=1)
    assert "exactcv: fold 2, 1 candidates (" in capsys.readouterr().err


SCRIPT = """
    import sys
    import numpy as np
    import exactcv
    from exactcv.runtime.progress import Lines
    from sklearn.svm import SVC

    class Watch(Lines):
        def draw(self, fraction, seconds, left):
            if fraction > 0.02:
                print("ready", flush=True)

    exactcv.runtime.progress.choose_screen = lambda file=None: Watch(sys.stderr)
    X, y = exactcv.datasets.make_mixture(300, 5, random_state=0)
    # Half a minute's work.
    grid = {"C": np.geomspace(0.01, 100, 20), "gamma": np.geomspace(0.01, 10, 600)}
    search = exactcv.GridSearchCV(SVC(), grid, n_jobs=int(sys.argv[1]), verbose=1)
    try:
        search.fit(X, y)
    except exactcv.Interrupted as stop:
        part = stop.partial
        params = part.cv_results_["params"]
        score = exactcv.cross_val_score(SVC(**params[-1]), X, y).mean()
        print(
            part is search,
            20 <= len(params) < 12000,
            abs(part.cv_results_["mean_test_score"][-1] - score) < 1e-12,
            part.predict(X).shape == y.shape,
            flush=True,
        )
        sys.exit(7)
"""


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_real_signal_stops_a_long_search_at_once(n_jobs: int) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(n_jobs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        while child.stdout.readline() != "ready\n":
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        rest, errors = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 7, errors
    assert rest.splitlines()[-1] == "True True True True"
    assert "interrupted after" in errors
