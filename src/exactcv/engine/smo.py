"""The ordinary solver: sequential minimal optimisation in float64, with subspace steps.

For a loss with one knot t_i and slopes s_i0 < s_i1 the dual problem in signed coefficients is

    min over c   1/2 c' K c - t' c    subject to   -C_i s_i1 <= c_i <= -C_i s_i0,   sum c = 0

(the last without an intercept dropped).  A loss with several knots is the sum of losses with one
each, so its row becomes several rows with one feature vector, whose coefficients add up (as LIBSVM
does it for the epsilon-insensitive loss).  The compiled loop (``_core/_smo.pyx``) does the steps of
Fan, Chen & Lin (2005).  It crawls where K is nearly singular on the free coefficients: a linear
kernel with p << n, or a large C.  So now and then, and at the end, the driver here solves for all
free coefficients at once (a Newton step in their subspace), moves to the first bound met, and
repeats.  That also brings the answer from the solver's tolerance down to rounding.  With
``polish=False`` it is left out: plain SMO, that stops where LIBSVM does.

Rows of K come from a row source (``kernel_rows.py``): a matrix, or features behind a cache.

e = t - K c throughout: the intercept each row would like.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from .._core import _smo
from .._core._rows import RowCache
from ..exceptions import InputError
from ..judge.intercept import canonical_intercept, closeness
from ..judge.piecewise_linear import PiecewiseLinearJudge
from ..problem.losses import PiecewiseLinear
from ..problem.problem import Problem
from ..runtime.threads import Cancelled
from ..types import FloatArray, IntArray
from .kernel_rows import RowSource, as_rows

__all__ = ["Known", "Solution", "solve", "solve_hinge"]

# Rounds of (compiled loop, subspace steps) before giving up.
MAX_ROUNDS = 200
# Subspace steps in one round; each but the last puts a coefficient on its bound.
MAX_SUBSPACE_STEPS = 60
# The least pivot of a Cholesky factor, relative to the largest, with which it is used: a condition
# number of about 1e10, with which two rounds come down to rounding.
WELL_CONDITIONED = 1e-5
# What dependent rows leave of their errors, relative to the terms of these.
DEPENDENT = 1e-14
# A starting point may miss its constraints by this much, relative to their size: what rounding
# leaves where large coefficients have cancelled.  It is balanced if its sum misses by more than
# BALANCED.
FEASIBLE, BALANCED = 1e-6, 1e-14
# Rounds in a row in which neither the objective nor the quality gets better: rounding is reached,
# or (K not positive semidefinite) the rounds go in circles.
PATIENCE = 6
# The rounding of the objective, relative to the sum of its terms.
ROUNDING = 1e-15


@dataclass(frozen=True)
class Solution:
    """A solution over all n rows (zeros for those left out) and how it was reached.

    ``errors`` is e = t - K c on the training rows, 0 elsewhere; t the last knot.
    """

    coef: FloatArray
    intercept: float
    iterations: int
    converged: bool
    errors: FloatArray
    kernel_evaluations: int = 0


@dataclass(frozen=True)
class Known:
    """A point near the start of a solve whose e = t - K c is known on some rows.

    It spares most of the work of computing e at the start.
    """

    coef: FloatArray
    errors: FloatArray
    rows: IntArray


@dataclass(frozen=True)
class _Box:
    """The fixed part of one problem, compact: one entry for each training row."""

    source: RowSource
    cache: RowCache
    rows: IntArray
    diagonal: FloatArray
    target: FloatArray
    lower: FloatArray
    upper: FloatArray
    near: FloatArray
    judge: PiecewiseLinearJudge
    fit_intercept: bool

    def errors(self, c: FloatArray) -> FloatArray:
        """e = t - K c, from scratch."""
        e = np.empty_like(c)
        _smo.gradient(self.cache, self.rows, self.target, c, e)
        return e

    def errors_near(self, c: FloatArray, known: Known) -> FloatArray:
        """e from that of a point nearby: e_k falls by K_kj (c_j - known c_j)."""
        full = np.zeros(len(known.coef))
        full[self.rows] = c
        step = full - known.coef
        changed = np.flatnonzero(step)
        fresh = np.ones(len(full), dtype=bool)
        fresh[known.rows] = False
        new = np.flatnonzero(fresh[self.rows])
        if len(changed) + len(new) >= np.count_nonzero(c):
            return self.errors(c)
        e: FloatArray = known.errors[self.rows]
        self.cache.subtract(changed, step[changed], e)
        products = np.empty(len(new))
        self.cache.products(self.rows[new], c, products)
        e[new] = self.target[new] - products
        return e

    def objective(self, c: FloatArray, e: FloatArray) -> float:
        """t'c - 1/2 c'Kc, which rises."""
        return float(0.5 * c @ (self.target + e))

    def rounding(self, c: FloatArray) -> float:
        """What may be rounding of the objective."""
        size = float((np.sqrt(np.abs(self.diagonal)) * np.abs(c)).sum())
        return ROUNDING * (size**2 + float(np.abs(self.target) @ np.abs(c)))

    def quality(self, c: FloatArray, e: FloatArray) -> float:
        """The larger of the KKT violation and the relative duality gap, as the judge sees them.

        What rounding alone can account for counts as nothing.
        """
        h, one = np.ascontiguousarray((self.target - e)[None]), np.ones(1)
        b = self.judge.intercepts(h, c[None], one)
        kkt, gap, primal, floor = self.judge.figures(h, c[None], b, one)[0]
        worst = max(kkt, gap / max(abs(primal), np.finfo(float).tiny))
        return float(worst) if worst > floor else 0.0


def solve(
    K: FloatArray | RowSource,
    loss: PiecewiseLinear,
    C: FloatArray,
    train: IntArray | None = None,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-10,
    start: FloatArray | None = None,
    known: Known | None = None,
    max_iter: int = 10_000_000,
    cancel: NDArray[np.int32] | None = None,
    polish: bool = True,
    shrinking: bool | None = None,
) -> Solution:
    """Solve one problem.

    Parameters
    ----------
    K : ndarray of shape (n, n), C-contiguous, or RowSource
    loss : PiecewiseLinear
        With one knot a row; with more, without ``start`` and ``known``.
    C : ndarray of shape (n,)
        C_i; rows with zero take no part.
    train : ndarray of int, optional
        The training rows; all of them if not given.
    fit_intercept : bool
    tol : float
        For the KKT violation and the relative duality gap; without ``polish``, for the violation
        alone and in absolute terms, as in LIBSVM.
    start : ndarray of shape (n,), optional
        A feasible starting point; zeros if not given.  One that is not feasible is an error.
    known : Known, optional
        A point near the start whose errors are known.
    max_iter : int
        After that many iterations the answer is returned as not converged.
    cancel : ndarray of one int32, optional
        Set to 1 by another thread to stop.
    polish : bool
        Take subspace steps, and go on until the duality gap is small too.
    shrinking : bool, optional
        Set coefficients aside that seem to stay at their bounds.  By default only without
        ``polish``, whose rounds are too short to gain by it.

    Examples
    --------
    >>> import numpy as np
    >>> from exactcv.problem.losses import hinge
    >>> solution = solve(np.eye(2), hinge(np.array([1.0, -1.0])), np.full(2, 5.0))
    >>> solution.coef, solution.intercept, solution.converged
    (array([ 1., -1.]), 0.0, True)
    """
    if loss.n_knots != 1 and not (start is None and known is None):
        raise NotImplementedError("losses with several knots a row are solved from a cold start")
    everyone = np.arange(len(C), dtype=np.intp) if train is None else np.asarray(train, np.intp)
    used = np.ascontiguousarray(everyone[C[everyone] > 0])
    rows, part = _one_knot_each(used, loss)
    levels = part.coefficient_levels(C[rows])
    source = as_rows(K)
    diagonal = source.diagonal[rows]
    box = _Box(
        source=source,
        cache=source.open(rows),
        rows=rows,
        diagonal=diagonal,
        target=part.knots[:, 0].copy(),
        lower=levels[:, 1].copy(),
        upper=levels[:, 0].copy(),
        near=closeness(levels, diagonal),
        judge=PiecewiseLinearJudge.of(part, C[rows], fit_intercept, diagonal),
        fit_intercept=fit_intercept,
    )
    c = _nothing(box) if start is None else _checked(box, start)
    e = box.errors(c) if known is None else box.errors_near(c, known)
    flag = np.zeros(1, dtype=np.int32) if cancel is None else cancel
    if flag[0]:
        raise Cancelled
    walk = _iterate if polish else _plain
    shrink = not polish if shrinking is None else shrinking
    c, e, iterations, converged = walk(box, c, e, tol, max_iter, flag, shrink)
    coef, errors, h = np.zeros((3, len(C)))
    np.add.at(coef, rows, c)
    errors[rows], h[rows] = e, box.target - e
    levels = loss.coefficient_levels(C)
    near = closeness(levels, source.diagonal)
    b = canonical_intercept(h, coef, levels, loss, used, near) if fit_intercept else 0.0
    return Solution(coef, b, iterations, converged, errors, box.cache.evaluations)


def _one_knot_each(rows: IntArray, loss: PiecewiseLinear) -> tuple[IntArray, PiecewiseLinear]:
    """The rows, once for each knot, and their losses of one knot; knot after knot.

    Of the slopes, what is on the left of zero belongs to one loss and what is on the right to
    another: each box has 0 in it if that of the row has.
    """
    knots, slopes, m = loss.knots[rows], loss.slopes[rows], loss.n_knots
    if m == 1:
        return rows, PiecewiseLinear(knots, slopes)
    bend = np.diff(slopes, axis=1)
    # The loss k has slopes from first[k] to first[k] + bend[k]; they add up to those of the row.
    first = np.minimum(slopes[:, :-1], 0.0) - np.minimum(slopes[:, 1:], 0.0)
    first[:, -1] += np.minimum(slopes[:, -1], 0.0)
    first[:, 0] += np.maximum(slopes[:, 0], 0.0)
    ends = np.stack([first, first + bend], axis=2)
    parts = PiecewiseLinear(
        np.ascontiguousarray(knots.T.reshape(-1, 1)),
        np.ascontiguousarray(ends.transpose(1, 0, 2).reshape(-1, 2)),
    )
    return np.ascontiguousarray(np.tile(rows, m)), parts


def _nothing(box: _Box) -> FloatArray:
    """No coefficients, or those that are nearest to it."""
    return np.clip(np.zeros(len(box.rows)), box.lower, box.upper)


def _checked(box: _Box, start: FloatArray) -> FloatArray:
    """The starting point on the training rows, refused unless it is feasible but for rounding."""
    if np.shape(start) != (box.source.n,):
        raise InputError(
            f"the starting point has shape {np.shape(start)}; it needs one coefficient for each "
            f"of the {box.source.n} rows"
        )
    given: FloatArray = start[box.rows]
    if np.count_nonzero(start) != np.count_nonzero(given):
        elsewhere = np.setdiff1d(np.flatnonzero(start), box.rows)
        raise InputError(
            f"the starting point is not feasible: row {elsewhere[0]} takes no part in training "
            f"but has the coefficient {start[elsewhere[0]]:g}"
        )
    c = np.clip(given, box.lower, box.upper)
    off = np.abs(given - c)
    scale = float((box.upper - box.lower).max(initial=0.0))
    if not off.max(initial=0.0) <= FEASIBLE * scale:
        worst = int(np.argmax(~(off <= FEASIBLE * scale)))
        raise InputError(
            f"the starting point is not feasible: coefficient {given[worst]:g} of row "
            f"{box.rows[worst]} is outside [{box.lower[worst]:g}, {box.upper[worst]:g}]"
        )
    total, size = float(given.sum()), float(np.abs(given).sum())
    if box.fit_intercept and not abs(total) <= FEASIBLE * max(size, scale):
        raise InputError(
            f"the starting point is not feasible: its coefficients on the training rows add up "
            f"to {total:g}, not to 0"
        )
    return _balanced(box, c) if box.fit_intercept else c


def _balanced(box: _Box, c: FloatArray) -> FloatArray:
    """c, with what its sum misses by more than rounding taken up by the rows with the most room."""
    lack = -float(c.sum())
    if abs(lack) <= BALANCED * float(np.abs(c).sum()):
        return c
    c, room = c.copy(), box.upper - c if lack > 0 else c - box.lower
    for i in np.argsort(-room, kind="stable"):
        step = np.sign(lack) * min(abs(lack), float(room[i]))
        c[i] = np.clip(c[i] + step, box.lower[i], box.upper[i])
        lack -= step
        if lack == 0.0:
            break
    return c


def solve_hinge(
    problem: Problem,
    train: IntArray,
    C: float,
    tol: float,
    cancel: NDArray[np.int32],
    max_iter: int = 10_000_000,
) -> Solution:
    """One training set of a problem of knots and slopes at one C, from a cold start."""
    return solve(
        problem.K,
        problem.loss,
        C * problem.weight,
        train,
        fit_intercept=problem.fit_intercept,
        tol=tol,
        max_iter=max_iter,
        cancel=cancel,
    )


def _plain(
    box: _Box,
    c: FloatArray,
    e: FloatArray,
    tol: float,
    max_iter: int,
    cancel: NDArray[np.int32],
    shrinking: bool,
) -> tuple[FloatArray, FloatArray, int, bool]:
    """The compiled loop alone, until the violation is at most tol."""
    iterations, _, status = _smo.smo_steps(
        box.cache, box.rows, box.diagonal, box.lower, box.upper, c, e,
        box.fit_intercept, tol, max_iter, cancel, shrinking,
    )  # fmt: skip
    if status == 2:
        raise Cancelled
    return c, e, iterations, status == 0


def _iterate(
    box: _Box,
    c: FloatArray,
    e: FloatArray,
    tol: float,
    max_iter: int,
    cancel: NDArray[np.int32],
    shrinking: bool,
) -> tuple[FloatArray, FloatArray, int, bool]:
    """Rounds of the compiled loop and subspace steps until ``quality`` is at most tol."""
    eps, iterations = tol, 0
    chunk = max(1000, 10 * len(c))
    highest, best, waited = -np.inf, np.inf, 0
    for _ in range(MAX_ROUNDS):
        done, violation, status = _smo.smo_steps(
            box.cache, box.rows, box.diagonal, box.lower, box.upper, c, e,
            box.fit_intercept, eps, min(chunk, max_iter - iterations), cancel, shrinking,
        )  # fmt: skip
        iterations += done
        if status == 2 or cancel[0]:  # the loop looks once in a thousand steps
            raise Cancelled
        c, e = _subspace(box, c, box.errors(c))
        quality, objective = box.quality(c, e), box.objective(c, e)
        if quality <= tol:
            c, e = _snap(box, c, e, tol)
            return c, e, iterations, True
        better = objective > highest + box.rounding(c) or quality < 0.5 * best
        waited = 0 if better else waited + 1
        highest, best = max(highest, objective), min(best, quality)
        if iterations >= max_iter or waited == PATIENCE:
            break
        if violation <= eps:
            # Converged by the loop's measure but not by ours (a gap, or drift of e).
            eps = max(0.1 * eps, 1e-16)
        chunk = min(3 * chunk // 2, 1_000_000)
    return c, e, iterations, False


def _subspace(box: _Box, c: FloatArray, e: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Newton steps in the free coefficients, each up to the first bound; the best point met.

    Stops after a full step, or when neither the dual objective nor the quality gets better.
    """
    for _ in range(MAX_SUBSPACE_STEPS):
        free = np.flatnonzero((c > box.lower) & (c < box.upper))
        if not len(free):
            break
        step, flat = _newton(box, c, e, free)
        trial, full = _advance(box, c, free, step)
        if full and flat is not None:
            # No curvature along ``flat``: the objective falls linearly until a bound stops it.
            trial, full = _advance(box, trial, free, flat)
        new_e = box.errors(trial)
        # The objective t'c - 1/2 c'Kc rises by the mean of the old and new slope along the way.
        gain = float(0.5 * (trial - c) @ (e + new_e))
        # It cannot fall but for rounding, or where K is not positive semidefinite: the step goes to
        # a saddle then, from which the loop would come back.
        if gain < -box.rounding(trial):
            break
        if gain <= 0.0 and box.quality(trial, new_e) >= box.quality(c, e):
            break
        c, e = trial, new_e
        if full:
            break
    return c, e


def _newton(
    box: _Box, c: FloatArray, e: FloatArray, free: IntArray
) -> tuple[FloatArray, FloatArray | None]:
    """The step to the optimum in the subspace, and a direction of pure descent if there is none.

    Solves K_FF d + beta = e_F, sum d = -sum c: by a Cholesky factor, of independent rows if K_FF is
    singular (repeated rows), else by least squares, many times slower.  What that leaves of e_F
    lies in the null space of the bordered matrix.
    """
    where = box.rows[free]
    size = len(free)
    border = int(box.fit_intercept)
    block = box.source.block(where, where)
    quick = _by_cholesky(block, e[free], -float(c.sum()) if border else None)
    if quick is not None:
        return quick, None
    A = np.zeros((size + border, size + border))
    A[:size, :size] = block
    right = np.zeros(size + border)
    right[:size] = e[free]
    if border:
        scale = float(np.abs(box.diagonal[free]).max()) or 1.0
        A[:size, size] = A[size, :size] = scale
        right[size] = -scale * c.sum()
    answer: FloatArray = np.linalg.lstsq(A, right, rcond=None)[0].astype(float)
    # One round of refinement: the residual is what the certificate will see.
    answer += np.linalg.lstsq(A, right - A @ answer, rcond=None)[0]
    left: FloatArray = (right - A @ answer)[:size]
    if np.abs(left).max() <= 1e-9 * max(1.0, float(np.abs(right).max())):
        return answer[:size], None
    if border:
        left -= left.mean()
    curvature = float(left @ A[:size, :size] @ left)
    room = (box.upper - box.lower)[free].max() / np.abs(left).max()
    length = float(left @ left) / curvature if curvature > 0 else np.inf
    return answer[:size], left * min(length, 2.0 * room)


def _by_cholesky(K: FloatArray, e: FloatArray, total: float | None) -> FloatArray | None:
    """d with K d + beta = e, sum d = total (None: beta = 0), zero but for independent rows.

    None if that leaves something of e: K is nearly singular, or dependent rows contradict others.
    """
    factor, used = _factor(K)
    if not len(used):
        return None
    size = len(used)
    unit = lapack.dpotrs(factor, np.ones(size), lower=1)[0] if total is not None else np.ones(size)
    d: FloatArray = np.zeros(len(e))
    beta, left, missing = 0.0, e, total
    for _ in range(2):  # the second time for the residual, which is what the certificate will see
        step = lapack.dpotrs(factor, left[used], lower=1)[0]
        if missing is not None and total is not None:
            shift = float((step.sum() - missing) / unit.sum())
            step, beta = step - shift * unit, beta + shift
            missing = total - float((d[used] + step).sum())
        d[used] += step
        left = e - K @ d - beta
    size_e = max(1.0, float(np.abs(e).max()))
    if size == len(e):
        return d if np.abs(left).max() <= 1e-9 * size_e else None
    # Rows that are dependent, and not nearly so, leave no more than rounding.
    terms = max(size_e, float((np.abs(K) @ np.abs(d)).max()))
    return d if np.abs(left).max() <= DEPENDENT * terms else None


def _factor(K: FloatArray) -> tuple[FloatArray, IntArray]:
    """A well conditioned Cholesky factor of K or of independent rows of it, and which these are."""
    factor, info = lapack.dpotrf(K, lower=1)
    pivots = np.diagonal(factor)
    if not info and pivots.min() > WELL_CONDITIONED * pivots.max():
        return factor, np.arange(len(K), dtype=np.intp)
    least = WELL_CONDITIONED**2 * float(K.diagonal().max())
    factor, order, rank, _ = lapack.dpstrf(K, tol=least, lower=1)
    return factor[:rank, :rank], order[:rank].astype(np.intp) - 1


def _advance(box: _Box, c: FloatArray, free: IntArray, step: FloatArray) -> tuple[FloatArray, bool]:
    """c + step on the free coefficients, cut at the first bound; was it a full step?"""
    now, low, high = c[free], box.lower[free], box.upper[free]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        room = np.where(step > 0, (high - now) / step, (low - now) / step)
    room = np.where(step == 0, np.inf, room)
    share = float(min(1.0, room.min()))
    moved = now + share * step
    # Whoever is stopped, or would be by the next step of no length, goes exactly on its bound.
    stopped = room <= share * (1 + 1e-12)
    moved = np.clip(np.where(stopped, np.where(step > 0, high, low), moved), low, high)
    out = c.copy()
    out[free] = moved
    return out, share == 1.0 and not stopped.any()


def _snap(box: _Box, c: FloatArray, e: FloatArray, tol: float) -> tuple[FloatArray, FloatArray]:
    """Put coefficients that are at a bound but for rounding on it, if that does no harm."""
    snapped = np.where(c - box.lower <= box.near, box.lower, c)
    snapped = np.where(box.upper - c <= box.near, box.upper, snapped)
    if np.array_equal(snapped, c):
        return c, e
    snapped, new_e = _subspace(box, snapped, box.errors(snapped))
    sums = abs(snapped.sum()) <= 1e-14 * np.abs(snapped).sum() or not box.fit_intercept
    if sums and box.quality(snapped, new_e) <= min(tol, box.quality(c, e)):
        return snapped, new_e
    return c, e
