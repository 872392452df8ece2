"""The projection of the exact finite smoothing (magic LOO, Lemmas 3 and 4).

Where the smoothed solution has its rows, relative to the margin, tells where the exact one has
them: rows with |1 - y u| < delta are on the margin (set E), the others on a linear piece of the
hinge, where c_i = y_i C_i or 0.  The exact solution then minimises the objective subject to
y_i u_i = 1 on E, that is

    K_EE c_E + b = y_E - o_E - K_EL c_L,     sum_E c = -s - sum_L c.

Whether this is the solution is decided by the KKT conditions alone.  If they fail, the set is
corrected: rows that crossed the margin join E (as in Lemma 3), rows of E whose coefficient left
its box go to the linear piece of that side.  This goes on while the number of such rows falls;
where it no longer does, smoothing goes on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ...types import FloatArray, IntArray
from .batch import Batch, Mask, best_intercepts

__all__ = ["Projected", "project", "times"]

RIGHT, MARGIN, LEFT = 0, 1, 2
# What the KKT conditions may miss, relative to the decision values and to the box.
SLACK = 1e-9
# Rounds of correction at most, and rounds in a row that need not have fewer rows to correct.
MAX_ROUNDS = 30
PATIENCE = 2
# Products go by rows where these are less than this share of all: to pick columns of K costs too.
FEW = 0.5


@dataclass(frozen=True)
class Projected:
    """Which columns are solved, with their coefficients (columns of ``coef``; others undefined)."""

    solved: Mask
    coef: FloatArray


def project(batch: Batch, U: FloatArray, delta: FloatArray) -> Projected:
    """Try to read the exact solutions off the smoothed decision values U (n, m)."""
    margin = batch.y[:, None] * U
    state = np.where(margin <= 1.0 - delta, LEFT, np.where(margin < 1.0 + delta, MARGIN, RIGHT))
    state = state.astype(np.int8)
    state[batch.out] = RIGHT
    solved = np.zeros(batch.size, dtype=bool)
    coef = np.zeros((batch.n, batch.size))
    todo = np.arange(batch.size)
    # The fewest rows that any round has found on a wrong side, and the rounds since then.
    fewest, since = np.full(batch.size, batch.n + 1), np.zeros(batch.size, dtype=np.intp)
    for _ in range(MAX_ROUNDS):
        part = batch.take(todo)
        c, u = _solve(part, state[:, todo])
        good, wrong, corrected = _judge(part, state[:, todo], c, u)
        solved[todo[good]] = True
        coef[:, todo[good]] = c[:, good]
        state[:, todo] = corrected
        since[todo] = np.where(wrong < fewest[todo], 0, since[todo] + 1)
        fewest[todo] = np.minimum(wrong, fewest[todo])
        todo = todo[~good & (since[todo] < PATIENCE)]
        if not len(todo):
            break
    return Projected(solved, coef)


def _solve(batch: Batch, state: NDArray[np.int8]) -> tuple[FloatArray, FloatArray]:
    """Coefficients and decision values with the rows of E on the margin."""
    y = batch.y[:, None]
    c = np.where(state == LEFT, y * batch.boxes(), 0.0)
    h = batch.offset + times(batch.K, c)
    target = y - h
    missing = -batch.slope - c.sum(axis=0)
    b = np.full(batch.size, np.nan)
    on_margin = state == MARGIN
    for columns in _groups(on_margin):
        rows = np.flatnonzero(on_margin[:, columns[0]])
        if not len(rows):
            continue
        found, b[columns] = _equalities(
            batch, rows, target[rows[:, None], columns], missing[columns]
        )
        c[rows[:, None], columns] = found
    on = np.flatnonzero(on_margin.any(axis=1))  # no other coefficient has changed
    if len(on) < FEW * batch.n:
        h += batch.K[:, on] @ np.where(on_margin[on], c[on], 0.0)
    else:
        h = batch.offset + batch.K @ c
    open_ = np.flatnonzero(np.isnan(b))
    if len(open_):
        b[open_] = best_intercepts(batch.take(open_), h[:, open_])
    return c, h + b


def times(K: FloatArray, c: FloatArray) -> FloatArray:
    """K c, by the rows in which the columns of c differ.

    Folds differ in the rows that they leave out and in a few beside these.
    """
    first = c[:, :1]
    apart = np.flatnonzero((c != first).any(axis=1)) if c.shape[1] else np.arange(len(c))
    if len(apart) >= FEW * len(c):
        return np.asarray(K @ c)
    return np.asarray(K @ first + K[:, apart] @ (c[apart] - first[apart]))


def _groups(on_margin: Mask) -> list[IntArray]:
    """Columns that have the same rows on the margin: they share a factorisation."""
    packed = np.packbits(on_margin, axis=0).T
    members: dict[bytes, list[int]] = {}
    for column, row in enumerate(packed):
        members.setdefault(row.tobytes(), []).append(column)
    return [np.array(columns) for columns in members.values()]


def _equalities(
    batch: Batch, rows: IntArray, right: FloatArray, total: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """c and b with  K_EE c + b = right,  sum c = total  (without intercept b = 0).

    By Cholesky; if K_EE is singular (equal rows, a kernel of low rank) the least-squares solution
    of least norm, which gives equal rows equal coefficients.
    """
    K = batch.K[rows[:, None], rows]
    ones = np.ones((len(rows), 1))
    columns = np.hstack([right, ones]) if batch.fit_intercept else right
    _, x, info = lapack.dposv(K, columns)
    if info == 0 and np.abs(K @ x - columns).max() <= SLACK * max(1.0, np.abs(columns).max()):
        if not batch.fit_intercept:
            return x, np.zeros(right.shape[1])
        z = x[:, -1]
        b = (x[:, :-1].sum(axis=0) - total) / z.sum()
        return x[:, :-1] - np.outer(z, b), b
    if not batch.fit_intercept:
        least: FloatArray = np.linalg.lstsq(K, right, rcond=None)[0].astype(float)
        return least, np.zeros(right.shape[1])
    scale = max(float(np.abs(np.diagonal(K)).max()), np.finfo(float).tiny)
    bordered = np.full((len(rows) + 1, len(rows) + 1), scale)  # np.block takes as long as lstsq
    bordered[:-1, :-1], bordered[-1, -1] = K, 0.0
    answer = np.linalg.lstsq(bordered, np.vstack([right, scale * total]), rcond=None)[0]
    return answer[:-1], scale * answer[-1]


def _judge(
    batch: Batch, state: NDArray[np.int8], c: FloatArray, u: FloatArray
) -> tuple[Mask, IntArray, NDArray[np.int8]]:
    """Which columns meet the KKT conditions (Lemma 4's stop).

    Also how many rows miss them, and the corrected sets.
    """
    y = batch.y[:, None]
    box = batch.boxes()
    room = SLACK * np.maximum(1.0, np.abs(u).max(axis=0))
    margin, inside = y * u - 1.0, y * c
    below, above = inside < -SLACK * box, inside > (1.0 + SLACK) * box
    on = state == MARGIN
    crossed = ((state == LEFT) & (margin > room)) | ((state == RIGHT) & (margin < -room))
    crossed &= ~batch.out
    bad = crossed | (on & (below | above | (np.abs(margin) > room)))
    off_balance = np.zeros(batch.size, dtype=bool)
    if batch.fit_intercept:
        size = np.abs(c).sum(axis=0) + np.abs(batch.slope)
        off_balance = np.abs(c.sum(axis=0) + batch.slope) > SLACK * size
    good = ~bad.any(axis=0) & ~off_balance & np.isfinite(u).all(axis=0)
    corrected = np.where(crossed, MARGIN, state)
    corrected = np.where(on & below, RIGHT, np.where(on & above, LEFT, corrected))
    # With nobody on the margin the intercept rests on a row: that one takes up the balance.
    idle = off_balance & ~on.any(axis=0)
    corrected = np.where(idle & (np.abs(margin) <= room) & ~batch.out, MARGIN, corrected)
    return good, bad.sum(axis=0), corrected.astype(np.int8)
