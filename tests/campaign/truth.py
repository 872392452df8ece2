"""What the answers are, by judges that are not ours.

Clarabel first; where its answer leaves a label or a value open, the interior point in double-double
arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from _problems import FloatArray
from campaign import interior_point

from exactcv import tolerances
from exactcv.problem.folds import Folds
from exactcv.problem.grid import Grid

# The intercept is left open where it depends on whether a coefficient this close to its bound, by
# factors of the library's own closeness, is there.
DOUBT = 100.0


@dataclass(frozen=True)
class Truth:
    """Left-out values u, grid point by pair, how far they may be off, and where they are open."""

    value: FloatArray
    error: FloatArray
    open: Any


@dataclass(frozen=True)
class Small:
    """One training set at one C: its rows and their boxes."""

    rows: Any
    box: FloatArray


def solve_all(
    K: FloatArray, y: FloatArray, weight: FloatArray, folds: Folds, grid: Grid, fit_intercept: bool
) -> Truth:
    """The left-out values of every fold at every C, by the interior point."""
    n, n_grid, n_pairs = len(y), len(grid), len(folds.pair_rows)
    truth = Truth(np.zeros((n_grid, n_pairs)), np.zeros((n_grid, n_pairs)),
                  np.zeros((n_grid, n_pairs), dtype=bool))  # fmt: skip
    todo = []
    for f in range(len(folds)):
        pairs = np.arange(folds.offsets[f], folds.offsets[f + 1])
        train = np.setdiff1d(np.arange(n), folds.left_out[f])
        train = train[weight[train] > 0]
        for l, C in enumerate(grid.for_fold(folds, f)):
            small = Small(train, C * weight[train])
            if fit_intercept and len(np.unique(y[train])) < 2:
                truth.value[l, pairs] = y[train[0]] if len(train) else 0.0
            elif len(train):
                todo.append((l, pairs, small))
    if todo:
        _solve(K, y, folds.pair_rows, todo, fit_intercept, truth)
    return truth


def _solve(
    K: FloatArray, y: FloatArray, tested: Any, todo: list, fit_intercept: bool, truth: Truth
) -> None:
    size = max(len(small.rows) for _, _, small in todo)
    count = len(todo)
    blocks = np.tile(np.eye(size), (count, 1, 1))
    t, a = np.zeros((count, size)), np.zeros((count, size))
    lo, hi = -np.ones((count, size)), np.ones((count, size))
    for k, (_, _, small) in enumerate(todo):
        m = len(small.rows)
        mine = _convex(K[np.ix_(small.rows, small.rows)])
        blocks[k] *= max(1e-300, float(np.abs(np.diagonal(mine)).max()))
        lo[k, m:], hi[k, m:] = -small.box.max(), small.box.max()
        blocks[k, :m, :m] = mine
        t[k, :m], a[k, :m] = y[small.rows], 1.0
        lo[k, :m], hi[k, :m] = (
            np.minimum(0, t[k, :m] * small.box),
            np.maximum(0, t[k, :m] * small.box),
        )
    found = interior_point.solve(blocks, t, lo, hi, a, fit_intercept)
    coef = found.coef.float()
    for k, (l, pairs, small) in enumerate(todo):
        m, rows = len(small.rows), small.rows
        tests = tested[pairs]
        f = (found.coef[k, :m] * K[np.ix_(tests, rows)]).sum(axis=1)
        f_train = found.short[k, :m] + t[k, :m] - found.intercept[k]
        top = float(np.diagonal(K).max())
        size_k = float((np.abs(coef[k, :m])).sum())
        error = np.sqrt(2 * max(found.error[k], 0.0) * size_k * top) + found.error[k]
        b, doubt = 0.0, False
        if fit_intercept:
            b, doubt = _intercept(
                f_train.float(), coef[k, :m], t[k, :m], small.box, K[rows, rows], top
            )
        truth.value[l, pairs] = (f + b).float()
        truth.error[l, pairs] = 2 * error
        truth.open[l, pairs] = doubt or not error < 1e-4


def _convex(K: FloatArray) -> FloatArray:
    """K, with its diagonal raised until rounding has left no negative eigenvalue."""
    least = float(np.linalg.eigvalsh(K)[0])
    return K + np.eye(len(K)) * max(0.0, -2.0 * least)


def _intercept(
    f: FloatArray, c: FloatArray, y: FloatArray, box: FloatArray, diagonal: FloatArray, top: float
) -> tuple[float, bool]:
    """The middle of the optimal intercepts, and whether it depends on what is called a bound."""
    near = tolerances.AT_BOUND / np.maximum(np.sqrt(np.maximum(diagonal, 0) * top), 1.0 / box)
    found = []
    for slack in (near / DOUBT, near, near * DOUBT):
        size = y * c
        grows, falls = size < box - slack, size > slack
        low = np.where(np.where(y > 0, grows, falls), y - f, -np.inf).max()
        high = np.where(np.where(y > 0, falls, grows), y - f, np.inf).min()
        found.append(0.5 * (low + high) if np.isfinite(low) and np.isfinite(high)
                     else (high if np.isfinite(high) else low))  # fmt: skip
    return found[1], bool(np.ptp(found) > 1e-7)
