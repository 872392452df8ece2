"""Support vector regression and kernel quantile regression, beside what users would run instead.

    python -m benchmarks.users.regression --data DIR [--parts NAME ...] [--rows ROW ...] [--write]

CPU seconds on one thread, every row of a table from one run, the least of two (of large sets, one).
Features are standardised, gamma is 1 / p, C goes from 1e-2 to 1e3 times the spread of y, epsilon is
0.02, 0.1 and 0.3 times it.  scikit-learn and scikit-learn-intelex run at their default tolerance.
Refits that would take too long are estimated from a few of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold, LeaveOneOut
from sklearn.svm import SVR

import exactcv
from benchmarks.lib.data import Rows, standardised
from benchmarks.lib.parts import Part, run_parts

FILE, TITLE = "regression", "Regression"
C_GRID, EPSILONS = np.geomspace(1e-2, 1e3, 20), (0.02, 0.1, 0.3)
QUANTILES, LAMBDAS = np.arange(1, 10) / 10, 20


def rows_of(folder: str, name: str, most: int | None = None) -> Rows:
    """Standardised features and y in units of its spread."""
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
    else:
        path = Path(folder) / "regression" / f"{name}.csv.gz"
        table = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
        X, y = table[:, :-1], table[:, -1]
    if most is not None:
        drawn = np.sort(np.random.default_rng(0).permutation(len(y))[:most])
        X, y = X[drawn], y[drawn]
    return standardised(X), (y - y.mean()) / y.std()


def seconds(job: Callable[[], Any], repeats: int = 2) -> float:
    """CPU seconds, the least of some runs."""
    found = []
    for _ in range(repeats):
        start = process_time()
        job()
        found.append(process_time() - start)
    return min(found)


def all_points(
    job: Callable[[float, float], Any], Cs: np.ndarray = C_GRID, epsilons: Any = EPSILONS
) -> None:
    for epsilon in epsilons:
        for C in Cs:
            job(float(C), epsilon)


# ---- support vector regression -------------------------------------------------------------------


def leave_one_out(folder: str, name: str) -> list[str]:
    """All left-out values against plain fits, and against refits (estimated)."""
    X, y = rows_of(folder, name)
    gamma = 1 / X.shape[1]

    def ours() -> None:
        for epsilon in EPSILONS:
            exactcv.cross_validate(
                X, y, loss="epsilon_insensitive", epsilon=epsilon, Cs=C_GRID, gamma=gamma
            )

    def fits() -> None:
        all_points(lambda C, epsilon: SVR(C=C, epsilon=epsilon, gamma=gamma).fit(X, y))

    mine, plain = seconds(ours), seconds(fits)
    sample = np.random.default_rng(0).permutation(len(y))[:2]

    def refits() -> None:
        for i in sample:
            rest = np.delete(np.arange(len(y)), i)
            all_points(lambda C, e: SVR(C=C, epsilon=e, gamma=gamma).fit(X[rest], y[rest]))  # noqa: B023

    brute = seconds(refits, 1) * len(y) / len(sample)
    return [
        f"{len(y)}", f"{mine:.2f}", f"{plain:.2f}", f"{mine / plain:.2f}",
        f"{brute:.0f}", f"{brute / mine:.0f}",
    ]  # fmt: skip


def five_fold(folder: str, name: str, most: int | None = None) -> list[str]:
    """5-fold values against scikit-learn's and scikit-learn-intelex's fits.

    Of large sets every fourth C and the middle epsilon.
    """
    X, y = rows_of(folder, name, most)
    gamma, folds = 1 / X.shape[1], list(KFold(5).split(X))
    Cs, epsilons = (C_GRID, EPSILONS) if len(y) < 2000 else (C_GRID[::4], EPSILONS[1:2])

    def ours() -> None:
        for epsilon in epsilons:
            exactcv.cross_validate(
                X, y, loss="epsilon_insensitive", epsilon=epsilon, Cs=Cs, gamma=gamma, cv=folds
            )

    def theirs(kind: Any) -> Callable[[], None]:
        def fit(C: float, epsilon: float) -> None:
            for train, test in folds:
                model = kind(C=C, epsilon=epsilon, gamma=gamma)
                model.fit(X[train], y[train]).predict(X[test])

        return lambda: all_points(fit, Cs, epsilons)

    repeats = 2 if len(y) < 1000 else 1
    mine, plain = seconds(ours, repeats), seconds(theirs(SVR), repeats)
    faster, shown = plain, "-"
    try:
        from sklearnex import svm as intel_svm
    except ImportError:
        pass
    else:
        intel = seconds(theirs(intel_svm.SVR), repeats)
        faster, shown = min(plain, intel), f"{intel:.2f}"
    return [f"{len(y)}", f"{mine:.2f}", f"{plain:.2f}", shown, f"{faster / mine:.1f}"]


# ---- quantiles -----------------------------------------------------------------------------------


def quantiles(folder: str, name: str) -> list[str]:
    """9 quantiles x 20 C, leave-one-out, against the paths alone and Clarabel's refits."""
    X, y = rows_of(folder, name)
    gamma, n = 1 / X.shape[1], len(y)
    settings: dict[str, Any] = {"loss": "pinball", "Cs": C_GRID, "gamma": gamma}
    one_fold = [(np.arange(1, n), np.arange(1))]
    mine = path = 0.0
    for tau in QUANTILES:
        loo: list[float] = []
        alone: list[float] = []
        for _ in range(2):
            start = process_time()
            exactcv.cross_validate(X, y, quantile=float(tau), **settings)
            middle = process_time()
            result = exactcv.cross_validate(X, y, quantile=float(tau), cv=one_fold, **settings)
            # All rows, their certificates and one fold; less that fold.
            share = 1.0 - result.timings["folds"] / result.timings["total"]
            loo.append(middle - start)
            alone.append((process_time() - middle) * share)
        mine, path = mine + min(loo), path + min(alone)
    K = rbf_kernel(X, gamma=gamma)
    brute = seconds(lambda: [_clarabel(K, y, 0.5, float(C)) for C in C_GRID[::4]], 1) / 5
    brute *= n * LAMBDAS * len(QUANTILES)
    return [
        f"{n}", f"{mine:.2f}", f"{path:.2f}", f"{mine / path:.1f}",
        f"{brute:.0f}", f"{brute / mine:.0f}",
    ]  # fmt: skip


def _clarabel(K: np.ndarray, y: np.ndarray, tau: float, C: float) -> None:
    """The dual problem by interior points."""
    import clarabel
    from scipy import sparse

    n = len(y)
    A = sparse.vstack([np.ones((1, n)), sparse.eye(n), -sparse.eye(n)])
    b = np.concatenate([[0.0], np.full(n, C * tau), np.full(n, C * (1 - tau))])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * n)]
    P = sparse.csc_matrix(np.triu(K))
    clarabel.DefaultSolver(P, -y, sparse.csc_matrix(A), b, cones, settings).solve()


# ---- intervals -----------------------------------------------------------------------------------


def intervals(folder: str) -> list[str]:
    """Jackknife+ of 500 rows against MAPIE."""
    from mapie.regression import CrossConformalRegressor

    X, y = rows_of(folder, "boston", 500)
    model = exactcv.SVRCV(Cs=[10.0], gamma=1 / X.shape[1], epsilon=0.1)
    new = X[:100]

    def ours() -> None:
        model.fit(X, y).predict_interval(new)

    def theirs() -> None:
        other = CrossConformalRegressor(
            SVR(C=10.0, gamma=1 / X.shape[1], epsilon=0.1),
            confidence_level=0.9, method="plus", cv=LeaveOneOut(),
        )  # fmt: skip
        other.fit_conformalize(X, y)
        other.predict_interval(new)

    mine, mapie = seconds(ours, 3), seconds(theirs, 1)
    return [f"{len(y)}", f"{mine:.3f}", f"{mapie:.1f}", f"{mapie / mine:.0f}"]


PARTS = {
    "loo": Part(
        "SVR, leave-one-out, 20 C x 3 epsilons, all left-out values (CPU seconds)",
        ["data", "n", "exactcv", "60 plain SVR fits", "ratio", "refits (estimated)",
         "times faster"],
        {name: partial(leave_one_out, name=name) for name in ("boston", "concrete")},
    ),
    "folds": Part(
        "SVR, 5-fold, 20 C x 3 epsilons (CPU seconds)",
        ["data", "n", "exactcv", "scikit-learn", "scikit-learn-intelex", "times the faster"],
        {
            "boston": partial(five_fold, name="boston"),
            "concrete": partial(five_fold, name="concrete"),
            "kin8nm": partial(five_fold, name="kin8nm", most=4000),
        },
    ),
    "quantiles": Part(
        "Quantile regression, leave-one-out, 9 quantiles x 20 C (CPU seconds)",
        ["data", "n", "exactcv", "the paths alone", "ratio", "Clarabel refits (estimated)",
         "times faster"],
        {name: partial(quantiles, name=name) for name in ("gagurine", "boston", "wine_red")},
    ),
    "intervals": Part(
        "Jackknife+ intervals of 100 new rows, fit included (CPU seconds)",
        ["data", "n", "exactcv", "MAPIE with SVR", "times faster"],
        {"boston": intervals},
    ),
}  # fmt: skip


if __name__ == "__main__":
    run_parts(__doc__, FILE, TITLE, PARTS)
