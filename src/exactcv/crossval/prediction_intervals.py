"""Prediction intervals from left-out models: jackknife+, CV+ and jackknife-minmax.

With n rows, R_i = |y_i - m_i(x_i)| the left-out residual of row i by the model m_i that has not
seen it, and a = 1 - coverage (Barber, Candes, Ramdas & Tibshirani 2021, Annals of Statistics 49):

    jackknife+ and CV+    [ Q-( m_i(x) - R_i ),        Q+( m_i(x) + R_i )        ]
    jackknife-minmax      [ min_i m_i(x) - Q+( R_i ),  max_i m_i(x) + Q+( R_i )  ]

Q+(v) is the ceil((1 - a)(n + 1))-th smallest of v_1 ... v_n, infinite if there is none, and
Q-(v) = -Q+(-v).  If rows are exchangeable, a new y lies inside with probability at least 1 - 2a
for jackknife+ (1 - 2a - 1/sqrt(n) or better for CV+), in practice about 1 - a, and at least 1 - a
for jackknife-minmax.

*Quantile models* (Romano, Patterson & Candes 2019; with left-out models: Gupta, Kuchibhotla &
Ramdas 2022): with low_i and high_i for two quantiles, the score is
R_i = max(low_i(x_i) - y_i, y_i - high_i(x_i)), negative inside, and the same with low_i(x) - R_i
and high_i(x) + R_i.
"""

from __future__ import annotations

import numpy as np

from ..types import FloatArray, IntArray

__all__ = ["METHODS", "guarantee", "interval_of", "promised", "upper_quantile"]

METHODS = ("jackknife+", "cv+", "jackknife-minmax")


def upper_quantile(values: FloatArray, coverage: float) -> FloatArray:
    """The ceil(coverage (n + 1))-th smallest along the last axis; infinite if there is none.

    Examples
    --------
    >>> upper_quantile(np.arange(1.0, 10.0), 0.8), upper_quantile(np.arange(3.0), 0.9)
    (array(8.), array(inf))
    """
    n = values.shape[-1]
    k = _rank(coverage, n)
    if k > n:
        return np.full(values.shape[:-1], np.inf)
    return np.asarray(np.partition(values, k - 1, axis=-1)[..., k - 1])


def _rank(coverage: float, n: int) -> int:
    return int(np.ceil(coverage * (n + 1) - 1e-9))  # 0.9 * 10 is not a little more than 9


def interval_of(
    low: FloatArray,
    high: FloatArray,
    score: FloatArray,
    fold: IntArray,
    coverage: float,
    method: str,
) -> FloatArray:
    """(m, 2): ends of the intervals of m points.

    Parameters
    ----------
    low, high : ndarray of shape (m, F)
        What the F models say (twice the same for one model).
    score, fold : ndarray of shape (n,)
        R_i of each row, and which model has not seen it.
    """
    if method == "jackknife-minmax":
        reach = upper_quantile(score, coverage)
        return np.column_stack([low.min(axis=1) - reach, high.max(axis=1) + reach])
    ends = np.empty((len(low), 2))
    step = max(1, (1 << 22) // max(len(score), 1))
    for start in range(0, len(low), step):
        some = slice(start, start + step)
        ends[some, 0] = -upper_quantile(score - low[some][:, fold], coverage)
        ends[some, 1] = upper_quantile(score + high[some][:, fold], coverage)
    return ends


def promised(method: str, coverage: float, n: int, folds: int) -> float:
    """The probability with which a new y lies inside at least, whatever the data.

    Examples
    --------
    >>> round(promised("cv+", 0.9, 100, 10), 3)
    0.718
    """
    if method == "jackknife-minmax":
        return coverage
    least = 1.0 - 2.0 * (1.0 - coverage)
    if method == "cv+":
        size = n / max(folds, 1)
        most = min(2.0 * (1.0 - 1.0 / folds) / (size + 1.0), (1.0 - folds / n) / (folds + 1.0))
        least -= max(most, 0.0)
    return max(0.0, least)


def guarantee(method: str, coverage: float, n: int, folds: int) -> str:
    """What an interval promises, in words.

    Examples
    --------
    >>> print(guarantee("jackknife-minmax", 0.9, 100, 100))
    jackknife-minmax: a new row like these lies inside with probability at least 90%.
    >>> print(guarantee("jackknife-minmax", 0.99, 50, 50))
    jackknife-minmax: a new row like these lies inside with probability at least 99%. That takes 99
    rows; with 50 all intervals are infinite.
    """
    least = 100 * promised(method, coverage, n, folds)
    inside = f"{method}: a new row like these lies inside with probability"
    if method == "jackknife-minmax":
        text = f"{inside} at least {least:.4g}%."
    else:
        text = f"{inside} about {100 * coverage:.4g}%, and at least {least:.4g}% whatever the data."
    if _rank(coverage, n) > n:
        enough = int(np.ceil(coverage / (1.0 - coverage) - 1e-9))
        text += f" That takes {enough} rows; with {n} all intervals are infinite."
    return text
