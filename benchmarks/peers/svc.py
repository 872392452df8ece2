"""The peer: scikit-learn's ``SVC`` on a precomputed kernel, at its default tolerance (1e-3).

It is given the kernel matrix and the folds' slices of it for nothing; only ``fit`` is timed, with a
cache large enough for the whole matrix.  Fits that would take too long are estimated from a sample
spread over the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.lib.harness import PeerRun

CACHE_MB = 1000


def fit(K: np.ndarray, y: np.ndarray, C: float) -> tuple[float, float]:
    """Seconds of one fit and the relative duality gap it reached."""
    model = SVC(C=C, kernel="precomputed", cache_size=CACHE_MB)
    with threadpool_limits(limits=1):
        start = perf_counter()
        model.fit(K, y)
        seconds = perf_counter() - start
    return seconds, _duality_gap(K, y, C, model)


def _duality_gap(K: np.ndarray, y: np.ndarray, C: float, model: SVC) -> float:
    coef = np.zeros(len(y))
    coef[model.support_] = model.dual_coef_[0]
    h = K @ coef
    losses = np.maximum(0.0, 1.0 - y * (h + model.intercept_[0])).sum()
    primal = 0.5 * coef @ h + C * losses
    dual = np.abs(coef).sum() - 0.5 * coef @ h
    return float((primal - dual) / primal)


def kernel(X: np.ndarray, gamma: float) -> np.ndarray:
    """scikit-learn's own matrix."""
    return np.ascontiguousarray(rbf_kernel(X, gamma=gamma))


def plain_fits(K: np.ndarray, y: np.ndarray, lambdas: np.ndarray) -> PeerRun:
    """One fit to all rows for each lambda."""
    fits = [fit(K, y, 1.0 / (2 * len(y) * value)) for value in lambdas]
    return PeerRun(_seconds(fits), _worst(fits), f"{len(fits)} fits")


def k_fold_fits(
    K: np.ndarray, y: np.ndarray, lambdas: np.ndarray, n_folds: int, sample: int | None = None
) -> PeerRun:
    """A fit for each lambda and fold (C as the fold has it), or an estimate from some of them.

    The sample takes the middle one of equal stretches of the grid, each in another fold.
    """
    fits = []
    total = len(lambdas) * n_folds
    middles = _middles(len(lambdas), sample) if sample else range(len(lambdas))
    for number, (train, _) in enumerate(StratifiedKFold(n_folds).split(K, y)):
        chosen = middles[number::n_folds] if sample else middles
        if len(chosen) == 0:
            continue
        K_train, y_train = np.ascontiguousarray(K[np.ix_(train, train)]), y[train]
        fits += [fit(K_train, y_train, 1.0 / (2 * len(train) * lambdas[l])) for l in chosen]
    what = f"{total} fits" if not sample else f"{total} fits, estimated from {len(fits)}"
    return PeerRun(_seconds(fits) * total / len(fits), _worst(fits), what)


def support_vector_refits(
    K: np.ndarray, y: np.ndarray, lambdas: np.ndarray, n_support: Sequence[int]
) -> PeerRun:
    """Leave-one-out by refits of the support vectors alone, from three fits at every 5th lambda."""
    rng = np.random.default_rng(0)
    n, every, each = len(y), 5, 3
    fits, seconds = [], 0.0
    for start in range(0, len(lambdas), every):
        l = min(start + every // 2, len(lambdas) - 1)
        C = 1.0 / (2 * n * lambdas[l])
        model = SVC(C=C, kernel="precomputed").fit(K, y)
        now = []
        for row in rng.choice(model.support_, each):
            train = np.delete(np.arange(n), row)
            now.append(fit(np.ascontiguousarray(K[np.ix_(train, train)]), y[train], C))
        seconds += _seconds(now) / each * sum(n_support[start : start + every])
        fits += now
    what = f"{sum(n_support)} refits, estimated from {len(fits)}"
    return PeerRun(seconds, _worst(fits), what)


def _middles(length: int, count: int) -> np.ndarray:
    return ((np.arange(count) + 0.5) * length / count).astype(int)


def _seconds(fits: list[tuple[float, float]]) -> float:
    return sum(seconds for seconds, _ in fits)


def _worst(fits: list[tuple[float, float]]) -> float:
    return max(gap for _, gap in fits)
