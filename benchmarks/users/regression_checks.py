"""Are the numbers right?  Against interior points and scikit-learn on real data; coverage.

    python -m benchmarks.users.regression_checks --data DIR [--parts NAME ...] [--write]

*agreement*: diabetes and every set of regression data, 80 rows each, C from 1e-2 to 1e3 times the
spread of y, for tubes (also of no width and so wide that no row is outside) and quantiles (also
0.01 and 0.99).
Ours is compared with Clarabel's answer to the quadratic programme, and 5-fold predictions with
those of scikit-learn's SVR at a tolerance of 1e-6.  *coverage*: how many new values lie in the
intervals, over 500 simulated sets.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import clarabel
import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold
from sklearn.svm import SVR

import exactcv
from benchmarks.lib.parts import Part, run_parts
from benchmarks.users.regression import FILE, TITLE, rows_of
from exactcv.crossval.prediction_intervals import promised

SETS = (
    "diabetes", "auto_mpg", "boston", "concrete", "energy", "engel", "gagurine", "geyser", "kin8nm",
    "mcycle", "power_plant", "wine_red", "yacht",
)  # fmt: skip
ROWS, CS = 80, (1e-2, 1.0, 1e3)
LOSSES: list[dict[str, Any]] = [
    *({"loss": "epsilon_insensitive", "epsilon": epsilon} for epsilon in (0.0, 0.1, 100.0)),
    *({"loss": "pinball", "quantile": tau} for tau in (0.01, 0.5, 0.99)),
]
SIMULATED, TRAINING = 500, 40
INTERVALS = ("jackknife+", "cv+", "jackknife-minmax", "conformalised quantiles")


def interior_points(
    K: np.ndarray, y: np.ndarray, C: float, loss: dict[str, Any]
) -> tuple[Any, ...]:
    """The dual problem by Clarabel: its two bounds on the least objective, and K c.

    Variables are c = p - q with p, q >= 0, whose sum costs epsilon.
    """
    n, eps = len(y), loss.get("epsilon", 0.0)
    tau = loss.get("quantile")
    up, down = (1.0, 1.0) if tau is None else (tau, 1.0 - tau)
    eye = sparse.identity(2 * n)
    A = sparse.vstack([np.concatenate([np.ones(n), -np.ones(n)])[None], eye, -eye])
    b = np.concatenate([[0.0], np.full(n, C * up), np.full(n, C * down), np.zeros(2 * n)])
    P = sparse.csc_matrix(np.triu(np.block([[K, -K], [-K, K]])))
    q = np.concatenate([eps - y, eps + y])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(4 * n)]
    found = clarabel.DefaultSolver(P, q, sparse.csc_matrix(A), b, cones, settings).solve()
    x = np.array(found.x)
    return -found.obj_val, -found.obj_val_dual, K @ (x[:n] - x[n:])


def agreement(folder: str, name: str) -> list[str]:
    """The largest differences on one set, in units of the spread of y."""
    X, y = rows_of(folder, name, ROWS)
    gamma, K = 1.0 / X.shape[1], rbf_kernel(X, gamma=1.0 / X.shape[1])
    objective = values = svr = 0.0
    exact = True
    folds = list(KFold(5).split(X))
    for loss in LOSSES:
        ours = exactcv.cross_validate(X, y, Cs=CS, gamma=gamma, cv=folds, **loss)
        loo = exactcv.cross_validate(X, y, Cs=CS, gamma=gamma, **loss)
        exact &= ours.certificate.exact and loo.certificate.exact
        for l, C in enumerate(CS):
            low, high, f = interior_points(K, y, C, loss)
            least = ours.objective[l] * len(y) * C
            off = max(min(low, high) - least, least - max(low, high), 0.0) / max(1.0, abs(least))
            own = K @ ours.coef[l]
            # f is unique; what the gap of the interior points leaves open is not counted.
            open_ = np.sqrt(2.0 * abs(high - low))
            apart = np.abs((own - own.mean()) - (f - f.mean())).max() - 2.0 * open_
            objective, values = max(objective, off), max(values, apart)
            if "epsilon" in loss:
                model = SVR(C=C, epsilon=loss["epsilon"], gamma=gamma, tol=1e-6)
                for train, test in folds:
                    theirs = model.fit(X[train], y[train]).predict(X[test])
                    svr = max(svr, float(np.abs(theirs - ours.decision[l, test]).max()))
    shown = f"{max(objective, 0.0):.1e}", f"{max(values, 0.0):.1e}", f"{svr:.1e}"
    return [f"{len(y)}", *shown, "yes" if exact else "NO"]


def coverage(_: str, what: str) -> list[str]:
    """The share of new values inside, one from each simulated set."""
    rng = np.random.default_rng(0)
    target, inside, width = 0.9, [], []
    for _ in range(SIMULATED):
        X = rng.uniform(-2.0, 2.0, size=(TRAINING + 1, 1))
        noise = (0.1 + 0.3 * np.abs(X[:, 0])) * rng.standard_normal(TRAINING + 1)
        y = np.sin(2.0 * X[:, 0]) + noise
        settings: dict[str, Any] = {"Cs": [0.3, 3.0], "gamma": 1.0}
        model: Any
        if what == "conformalised quantiles":
            model, method = exactcv.QuantileSVRCV(quantiles=(0.05, 0.95), **settings), "jackknife+"
        else:
            model, method = exactcv.SVRCV(**settings), what
        model.fit(X[:-1], y[:-1])
        low, high = model.predict_interval(X[-1:], target, method)[0]
        inside.append(low <= y[-1] <= high)
        width.append(high - low)
    share = float(np.mean(inside))
    sure = promised(method, target, TRAINING, 10 if what == "cv+" else TRAINING)
    error = np.sqrt(share * (1.0 - share) / SIMULATED)
    return [
        f"{share:.1%}", f"{error:.1%}", f"{target:.0%}", f"{sure:.0%}",
        f"{np.median(width):.2f}",
    ]  # fmt: skip


PARTS = {
    "agreement": Part(
        "Largest differences, in units of the spread of y: the objective (relative) and f from "
        "Clarabel's, 5-fold predictions from SVR's (tol=1e-6)",
        ["data", "n", "objective", "f, beyond what its gap leaves open", "SVR", "all exact"],
        {name: partial(agreement, name=name) for name in SETS},
    ),
    "coverage": Part(
        f"Share of new values inside, {SIMULATED} simulated sets of {TRAINING} rows",
        ["intervals", "inside", "standard error", "aimed at", "promised", "median width"],
        {what: partial(coverage, what=what) for what in INTERVALS},
    ),
}


if __name__ == "__main__":
    run_parts(__doc__, FILE, TITLE, PARTS)
