"""The drop-in grid search against scikit-learn's own, both on two jobs, refit included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, LeaveOneOut, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import exactcv
from benchmarks.lib.harness import Bar, Case, Report, Row, Settings
from exactcv.problem.gamma import median_gamma

JOBS = 2
Grid = dict[str, np.ndarray]


@dataclass(frozen=True)
class Timed:
    """Seconds, what was run, and the mean score of each candidate (None if only a sample ran)."""

    seconds: float
    what: str
    scores: np.ndarray | None = None


def cases(settings: Settings) -> list[Case]:
    n_fold, n_loo = (200, 60) if settings.quick else (1000, 400)
    bars = (None, None) if settings.quick else (Bar(10, faster=True), Bar(100, faster=True))
    return [
        Case(f"search-kfold-n{n_fold}", partial(_k_fold, n=n_fold, bar=bars[0])),
        Case(f"search-loo-n{n_loo}", partial(_leave_one_out, n=n_loo, bar=bars[1])),
    ]


def _data(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Standardised, 20 features of which half say something, 5 percent of the labels wrong."""
    X, y = make_classification(n, 20, n_informative=10, flip_y=0.05, random_state=0)
    return StandardScaler().fit_transform(X), y


def _grid(X: np.ndarray) -> Grid:
    """20 C from 0.01 to 1000, 10 gamma a factor of 16 either side of 1 / median distance."""
    gammas = median_gamma(X) * np.geomspace(1 / 16, 16, 10)
    return {"C": np.geomspace(1e-2, 1e3, 20), "gamma": gammas}


def _k_fold(settings: Settings, report: Report, n: int, bar: Bar | None) -> None:
    X, y = _data(n)
    grid, cv = _grid(X), StratifiedKFold(10)
    ours, peer = _in_turn(
        partial(_search, exactcv.GridSearchCV, X, y, grid, cv),
        partial(_search, GridSearchCV, X, y, grid, cv),
        settings.repeats(2),
    )
    work = f"GridSearchCV, 20 C x 10 gamma, 10-fold, n={n}, p=20, two jobs"
    report.rows.append(Row(work, ours.seconds, peer.seconds, peer.what, bar))
    assert ours.scores is not None and peer.scores is not None
    apart = np.abs(ours.scores - peer.scores)
    report.notes.append(
        f"{work}: mean scores of {np.count_nonzero(apart > 1e-12)} of {len(apart)} candidates "
        f"differ from scikit-learn's (tolerance 1e-3), by at most {apart.max():.4f}."
    )


def _leave_one_out(settings: Settings, report: Report, n: int, bar: Bar | None) -> None:
    X, y = _data(n)
    grid = _grid(X)
    ours, peer = _in_turn(
        partial(_search, exactcv.GridSearchCV, X, y, grid, LeaveOneOut()),
        partial(_sampled_leave_one_out, X, y, grid),
        settings.repeats(2),
    )
    work = f"GridSearchCV, 20 C x 10 gamma, LOO, n={n}, p=20, two jobs"
    report.rows.append(Row(work, ours.seconds, peer.seconds, peer.what, bar))


def _in_turn(
    ours: Callable[[], Timed], peer: Callable[[], Timed], repeat: int
) -> tuple[Timed, Timed]:
    """Ours, peer, ours, peer, ...; the quickest run of each."""
    pairs = [(ours(), peer()) for _ in range(repeat)]
    mine, others = zip(*pairs, strict=True)
    return min(mine, key=lambda run: run.seconds), min(others, key=lambda run: run.seconds)


def _search(kind: Any, X: np.ndarray, y: np.ndarray, grid: Grid, cv: Any) -> Timed:
    start = perf_counter()
    search = kind(SVC(), grid, cv=cv, n_jobs=JOBS).fit(X, y)
    seconds = perf_counter() - start
    count = len(search.cv_results_["params"]) * search.n_splits_
    return Timed(seconds, f"{count} fits", search.cv_results_["mean_test_score"])


def _sampled_leave_one_out(X: np.ndarray, y: np.ndarray, grid: Grid) -> Timed:
    """scikit-learn's search over all candidates but every 40th split, scaled up."""
    n = len(y)
    tested = np.arange(0, n, 40)
    splits = [(np.delete(np.arange(n), i), np.array([i])) for i in tested]
    run = _search(GridSearchCV, X, y, grid, splits)
    total = n * len(grid["C"]) * len(grid["gamma"])
    what = f"{total} fits, estimated from {run.what}"
    return Timed(run.seconds * n / len(tested), what)
