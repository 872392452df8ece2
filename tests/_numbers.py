"""Regression problems for the tests, and their truth by Clarabel's interior points."""

from __future__ import annotations

from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from exactcv.types import FloatArray

# Losses of numbers, with the size of the numbers as their unit.
LOSSES: dict[str, dict[str, Any]] = {
    "tube": {"loss": "epsilon_insensitive", "epsilon": 0.2},
    "absolute": {"loss": "epsilon_insensitive", "epsilon": 0.0},
    "wide tube": {"loss": "epsilon_insensitive", "epsilon": 100.0},
    "median": {"loss": "pinball", "quantile": 0.5},
    "low": {"loss": "pinball", "quantile": 0.01},
    "high": {"loss": "pinball", "quantile": 0.99},
    "ridge": {"loss": "least_squares"},
}


def wave(n: int = 40, p: int = 2, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, -1] + 0.3 * rng.normal(size=n)


def repeated_rows(n: int = 40, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Few places and few values: ties of every kind."""
    X, y = wave(n, 2, seed)
    return np.round(X), np.round(2.0 * y) / 2.0


def clarabel_fit(
    K: FloatArray, y: FloatArray, C: float, fit_intercept: bool = True, **loss: Any
) -> tuple[float, float, FloatArray]:
    """Bounds on the least objective 1/2 ||f||^2 + C sum L, and f + b at the rows.

    Variables: c, b and the losses s_i >= each of the lines of L_i.
    """
    n = len(y)
    if loss["loss"] == "epsilon_insensitive":
        lines = [(-1.0, y - loss["epsilon"]), (1.0, -y - loss["epsilon"])]
    else:
        tau = loss["quantile"]
        lines = [(-tau, tau * y), (1.0 - tau, -(1.0 - tau) * y)]
    ones, eye, zero = np.ones((n, 1)), sparse.identity(n), sparse.csc_matrix((n, n))
    blocks, right = [], []
    for slope, at_zero in lines:  # slope u + at_zero <= s
        blocks.append([sparse.csc_matrix(slope * K), sparse.csc_matrix(slope * ones), -eye])
        right.append(-at_zero)
    blocks.append([zero, sparse.csc_matrix((n, 1)), -eye])
    right.append(np.zeros(n))
    A, cones = sparse.bmat(blocks), [clarabel.NonnegativeConeT(3 * n)]
    b = np.concatenate(right)
    if not fit_intercept:
        row = sparse.csc_matrix(([1.0], ([0], [n])), shape=(1, 2 * n + 1))
        A, b, cones = sparse.vstack([row, A]), np.append(0.0, b), [clarabel.ZeroConeT(1), *cones]
    P = sparse.bmat([[sparse.csc_matrix(K), None], [None, sparse.csc_matrix((n + 1, n + 1))]])
    q = np.concatenate([np.zeros(n + 1), np.full(n, C)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    P, A = sparse.csc_matrix(sparse.triu(P)), sparse.csc_matrix(A)
    answer = clarabel.DefaultSolver(P, q, A, b, cones, settings).solve()
    x = np.array(answer.x)
    return float(answer.obj_val_dual), float(answer.obj_val), K @ x[:n] + x[n]
