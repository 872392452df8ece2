"""A judge that is not ours: the interior-point solver Clarabel."""

from __future__ import annotations

import clarabel
import numpy as np
from _problems import Small
from scipy import sparse


def clarabel_objective(small: Small, C: float, fit_intercept: bool) -> float:
    """The dual optimum by an interior-point method that is not ours."""
    used = small.weight > 0
    K, y, box = small.K[np.ix_(used, used)], small.y[used], C * small.weight[used]
    n = len(y)
    bounds = sparse.vstack([sparse.eye(n), -sparse.eye(n)])
    limits = np.r_[np.maximum(0, y * box), np.maximum(0, -y * box)]
    cones = [clarabel.NonnegativeConeT(2 * n)]
    if fit_intercept:
        bounds = sparse.vstack([np.ones((1, n)), bounds])
        limits = np.r_[0.0, limits]
        cones = [clarabel.ZeroConeT(1), *cones]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    P, A = sparse.csc_matrix(np.triu(K)), sparse.csc_matrix(bounds)
    answer = clarabel.DefaultSolver(P, -y, A, limits, cones, settings).solve()
    assert "Solved" in str(answer.status)
    return -float(answer.obj_val)
