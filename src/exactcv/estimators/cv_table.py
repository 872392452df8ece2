"""``cv_results_`` of estimators that tune themselves, one entry a grid point."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..crossval.choice import EQUAL
from ..crossval.one_vs_one import ovo_columns
from ..types import FloatArray, IntArray

__all__ = ["cv_table", "values_by_row"]


def cv_table(
    Cs: FloatArray,
    lambdas: FloatArray,
    gammas: FloatArray,
    score: FloatArray,
    score_se: FloatArray,
    /,
    **columns: Any,
) -> dict[str, Any]:
    """C after C for each gamma (NaN: the kernel has none); score and its standard error are (G, L).

    Examples
    --------
    >>> grid, score = np.ones(2), np.array([[0.7, 0.8]])
    >>> table = cv_table(grid, grid, np.array([0.5]), score, score)
    >>> table["params"][0], table["rank_test_score"]
    ({'C': 1.0, 'gamma': 0.5}, array([2, 1], dtype=int32))
    """
    n_gammas, n_points = score.shape
    all_Cs, all_gammas = np.tile(Cs, n_gammas), np.repeat(gammas, n_points)
    names = ("C",) if np.isnan(gammas).any() else ("C", "gamma")
    points = zip(all_Cs.tolist(), all_gammas.tolist(), strict=True)
    ranked = np.round(np.where(np.isnan(score), -np.inf, score).ravel(), EQUAL)
    return {
        "params": [dict(zip(names, point, strict=False)) for point in points],
        "param_C": all_Cs,
        "param_gamma": all_gammas,
        "lambda": np.tile(lambdas, n_gammas),
        "mean_test_score": score.ravel(),
        "se_test_score": np.ravel(score_se),
        "rank_test_score": 1 + (ranked[:, None] < ranked).sum(axis=1).astype(np.int32),
        **columns,
    }


def values_by_row(decision: FloatArray, tested: IntArray, n: int) -> FloatArray:
    """Left-out decision values (L, T, P) by row instead of by test, with the signs of "ovo".

    Of two classes there is one value, (L, n).

    Examples
    --------
    >>> values_by_row(np.array([[[1.0], [3.0], [5.0]]]), np.array([2, 2, 0]), 3)
    array([[ 5., nan,  2.]])
    """
    counts = np.bincount(tested, minlength=n)
    sums = np.zeros((n, len(decision), decision.shape[-1]))
    np.add.at(sums, tested, decision.transpose(1, 0, 2))
    with np.errstate(invalid="ignore"):
        mean = (sums / counts[:, None, None]).transpose(1, 0, 2)
    return mean[..., 0] if decision.shape[-1] == 1 else ovo_columns(mean)
