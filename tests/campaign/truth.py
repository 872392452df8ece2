"""What the answers are, by judges that are not ours.

Clarabel first; what its answer leaves open is settled by the conditions of optimality in whole
numbers (``rational.py``), from where Clarabel has left off; and where these are not met, by the
interior point in double-double arithmetic.  The first and the last come with their own bound on how
far f may be off: with f from the clipped c and any b, the duality gap is
sum_i (c_i v_i+ + (C_i - c_i) v_i-)  (rows turned by y, v = y u - 1), and ||f - f*||^2 is at most
twice that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import clarabel
import numpy as np
from _problems import FloatArray
from campaign import interior_point, rational
from scipy import sparse

from exactcv import tolerances
from exactcv.problem.folds import Folds
from exactcv.problem.grid import Grid

# Clarabel settles a problem if it pins down decision values to this.
SHARP = 1e-6
# The intercept is open where so much of it depends on what is called a bound, by this factor.
OPEN, DOUBT = 1e-7, 100.0
# With Clarabel a coefficient must be this far inside its box to fix the intercept, and no box may
# be so many times another: its coefficients are good to some digits of the largest.
INSIDE, EVEN = 1e-3, 1e4


@dataclass
class Truth:
    """Left-out values, grid point by pair, how far they may be off, and whether they are open.

    ``by`` is 0 where nothing had to be solved, 1 where Clarabel has settled it, 2 where whole
    numbers have, 3 where the interior point has.
    """

    value: FloatArray
    error: FloatArray
    open: Any
    by: Any


@dataclass(frozen=True)
class Small:
    """One training set at one C, and the pairs that are tested on it."""

    l: int
    pairs: Any
    rows: Any
    y: FloatArray
    box: FloatArray
    K: FloatArray
    K_test: FloatArray
    tested: FloatArray

    @property
    def top(self) -> float:
        return float(max(self.K.diagonal().max(), 1e-300))

    @property
    def far(self) -> float:
        """How far f + b may be off at a row that is tested, for an f that is off by 1."""
        return float(np.sqrt(self.top) + np.sqrt(max(self.tested.max(initial=0.0), self.top)))


def solve_all(
    K: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    folds: Folds,
    grid: Grid,
    fit_intercept: bool,
    quick: bool = True,
) -> Truth:
    """The left-out values of every fold at every C.

    Without ``quick`` by the interior point alone.
    """
    shape = len(grid), len(folds.pair_rows)
    truth = Truth(np.zeros(shape), np.zeros(shape), np.zeros(shape, bool), np.zeros(shape, int))
    todo = [
        small
        for small in _problems(K, y, weight, folds, grid)
        if not _trivial(small, fit_intercept, truth)
    ]
    if quick:
        todo = [small for small in todo if not _quickly(small, fit_intercept, truth)]
    if todo:
        _by_interior_point(todo, fit_intercept, truth)
    return truth


def _problems(
    K: FloatArray, y: FloatArray, weight: FloatArray, folds: Folds, grid: Grid
) -> list[Small]:
    found = []
    for f in range(len(folds)):
        pairs = np.arange(folds.offsets[f], folds.offsets[f + 1])
        tests = folds.pair_rows[pairs]
        rows = np.setdiff1d(np.arange(len(y)), folds.left_out[f])
        rows = rows[weight[rows] > 0]
        for l, C in enumerate(grid.for_fold(folds, f)):
            parts = K[np.ix_(rows, rows)], K[np.ix_(tests, rows)], K[tests, tests]
            found.append(Small(l, pairs, rows, y[rows], C * weight[rows], *parts))
    return found


def _trivial(small: Small, fit_intercept: bool, truth: Truth) -> bool:
    """No training rows, or with an intercept one class alone: b at the end that exists."""
    if not len(small.rows):
        return True
    if not fit_intercept or len(np.unique(small.y)) == 2:
        return False
    truth.value[small.l, small.pairs] = small.y[0]
    return True


def _quickly(small: Small, fit_intercept: bool, truth: Truth) -> bool:
    """Enter what Clarabel finds, if that is sharp enough, or what follows from it."""
    c = _clarabel(small, fit_intercept)
    if c is None:
        c = 0.5 * small.y * small.box
    elif _by_clarabel(small, c.copy(), fit_intercept, truth):
        return True
    return _by_rational(small, small.y * c, fit_intercept, truth)


def _clarabel(small: Small, fit_intercept: bool) -> FloatArray | None:
    """The coefficients by Clarabel, cut to their boxes."""
    n, y, box = len(small.y), small.y, small.box
    bounds = np.vstack([np.eye(n), -np.eye(n)])
    # In units of the largest box: Clarabel's tolerances are absolute, C may be 1e-9.
    unit = float(box.max())
    limits = np.r_[np.maximum(0, y * box), np.maximum(0, -y * box)] / unit
    cones = [clarabel.NonnegativeConeT(2 * n)]
    if fit_intercept:
        bounds, limits = np.vstack([np.ones((1, n)), bounds]), np.r_[0.0, limits]
        cones = [clarabel.ZeroConeT(1), *cones]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-14
    P, A = sparse.csc_matrix(np.triu(unit * small.K)), sparse.csc_matrix(bounds)
    answer = clarabel.DefaultSolver(P, -y, A, limits, cones, settings).solve()
    c = np.clip(unit * np.array(answer.x), np.minimum(0, y * box), np.maximum(0, y * box))
    return c if np.isfinite(c).all() else None


def _by_clarabel(small: Small, c: FloatArray, fit_intercept: bool, truth: Truth) -> bool:
    """Enter Clarabel's coefficients, if they are sharp enough."""
    y, box = small.y, small.box
    if box.max() > EVEN * box.min():
        return False
    size = y * c
    inside = np.minimum(size, box - size) > INSIDE * np.minimum(box, 1.0 / small.top)
    if fit_intercept:
        if not inside.any():
            return False
        # What the sum is off goes where there is room.
        k = int(np.argmax(np.where(inside, np.minimum(size, box - size), 0.0)))
        c[k] -= c.sum()
        size = y * c
    f = small.K @ c
    b = float(np.median((y - f)[inside])) if fit_intercept else 0.0
    v = y * (f + b) - 1.0
    gap = float((size * np.maximum(v, 0) + (box - size) * np.maximum(-v, 0)).sum())
    error = np.sqrt(2.0 * max(gap, 0.0)) * small.far + np.abs(v[inside]).max(initial=0.0)
    error += 1e-15 * small.top * float(np.abs(c).sum())
    if fit_intercept:  # at the optimum, too, size v+ + (box - size) v- is within the gap
        error += max(gap, 0.0) / float(np.minimum(size, box - size)[inside].min())
    value = small.K_test @ c + b
    decided = error <= SHARP and (np.abs(np.abs(value) - tolerances.TIE) > 2 * error).all()
    if (size < 0).any() or (size > box).any() or not decided:
        return False
    truth.value[small.l, small.pairs] = value
    truth.error[small.l, small.pairs] = error
    truth.by[small.l, small.pairs] = 1
    return True


def _by_rational(small: Small, size: FloatArray, fit_intercept: bool, truth: Truth) -> bool:
    """Enter the answer in whole numbers, if it is found from these coefficients."""
    found = rational.solve(small.K, small.y, small.box, small.K_test, size, fit_intercept)
    if found is None:
        return False
    at = small.l, small.pairs
    truth.value[at] = found.values
    truth.error[at] = 2.0 * found.blurred + found.hangs
    truth.open[at], truth.by[at] = found.hangs > OPEN, 2
    return True


def _by_interior_point(todo: list[Small], fit_intercept: bool, truth: Truth) -> None:
    """Enter what the interior point finds, all problems at once."""
    most, count = max(len(small.rows) for small in todo), len(todo)
    blocks = np.tile(np.eye(most), (count, 1, 1))
    t, a, lo, hi = np.zeros((4, count, most))
    for k, small in enumerate(todo):
        m, full = len(small.rows), small.y * small.box
        blocks[k] *= small.top
        blocks[k, :m, :m] = small.K + _raised(small.K) * np.eye(m)
        lo[k], hi[k] = -small.box.max(), small.box.max()
        t[k, :m], a[k, :m] = small.y, 1.0
        lo[k, :m], hi[k, :m] = np.minimum(0, full), np.maximum(0, full)
    found = interior_point.solve(blocks, t, lo, hi, a, fit_intercept)
    for k, small in enumerate(todo):
        m = len(small.rows)
        c = found.coef[k, :m]
        f = (found.short[k, :m] + small.y - found.intercept[k]).float()
        b, doubt = _intercept(small, f, c.float()) if fit_intercept else (0.0, 0.0)
        gap = found.error[k] * float(np.abs(c.float()).sum())
        error = float(np.sqrt(2.0 * max(gap, 0.0))) * small.far + found.error[k]
        at = small.l, small.pairs
        truth.value[at] = ((c * small.K_test).sum(axis=1) + b).float()
        truth.error[at], truth.by[at] = error + doubt, 3
        truth.open[at] = doubt > OPEN or not error < 1e-4


def _raised(K: FloatArray) -> float:
    """By how much to raise the diagonal until rounding has left no negative eigenvalue."""
    return max(0.0, -2.0 * float(np.linalg.eigvalsh(K)[0]))


def _intercept(small: Small, f: FloatArray, c: FloatArray) -> tuple[float, float]:
    """The middle of the optimal intercepts, and how much of it hangs on what is called a bound."""
    y, box, size = small.y, small.box, small.y * c
    stiff = np.sqrt(np.maximum(small.K.diagonal(), 0.0) * small.top)
    near = tolerances.AT_BOUND / np.maximum(stiff, 1.0 / box)
    found = []
    for slack in (near / DOUBT**3, near / DOUBT, near, near * DOUBT):
        grows, falls = size < box - slack, size > slack
        low = np.where(np.where(y > 0, grows, falls), y - f, -np.inf).max()
        high = np.where(np.where(y > 0, falls, grows), y - f, np.inf).min()
        ends = [end for end in (low, high) if np.isfinite(end)]
        found.append(float(np.mean(ends)) if ends else 0.0)
    return found[2], float(np.ptp(found))
