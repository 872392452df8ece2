"""Leaving out single rows of a problem with many columns, from the full-data solution.

1. Bounds and shares prove labels (``engine/bounds.py``, ``engine/shares.py``): of the kernel they
   need distances, and products with the rows on the margin.
2. The others are left out by the engine of the exact path, on the kernel matrix of the rows nearest
   to the margin; all other rows stay at their bounds, as one vector (``small/ordinary.py``).
3. The rows that are not in that matrix are asked whether they have changed sides.  If none has, the
   solution is that of all rows.  If some have, its duality gap over all rows is what they lose,
   and the gap says how far w is from the solution: mostly near enough for the label.
4. What is left is solved over all rows (``solve.py``).

*The proof of 3.*  Let (w, b) go with coefficients c of the problem without row j: w = X'c, and
sum c = 0, all in their boxes.  With g = P(w, b) - D(c), strong convexity of P and strong concavity
of D in X'c give  g >= 1/2 ||w - w'||^2 + 1/2 ||X'c - w'||^2 = ||w - w'||^2  for the solution w'.
The gap is C_i |u_i - t_i| over the rows that are on the other side of their knot t_i than their
coefficients say.  The value u'_j = x_j'w' + b' is a weighted quantile of  x_j'w' + t_i - x_i'w'
(see ``engine/bounds.py``), each of which is within  sqrt(g) ||x_j - x_i||  of what it is with w; so
u'_j is within  sqrt(g) max_i ||x_j - x_i||  of the values that the optimal intercepts for w give.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import tolerances
from ...engine import shares as engine_shares
from ...engine.bounds import Span, labels_proved, reach
from ...engine.leave_one_out import LeaveOneOut
from ...engine.path import Point
from ...judge.certificate import attainable, implied_accuracy
from ...judge.ledger import HOW, Ledger
from ...problem.folds import Folds
from ...problem.grid import Grid
from ...problem.problem import Problem, Task
from ...types import BoolArray, FloatArray, IntArray
from ..small.ordinary import engine_states, frame
from ..verdict import Spread
from .problem import WideProblem, WideSolution, gram

__all__ = ["FIRST", "Found", "LeaveRowsOut"]

# Rows in play at first besides the free ones (or as many as these), and how many times more at the
# next attempt.
FIRST, MORE = 400, 2
# Rows beyond those in play are looked at where they are this much nearer to a knot than b and w
# have moved them.
ASIDE = 1.5
# What the engine's balance and rounding may leave of a coefficient of the frame.
STAYS = 1e-9


@dataclass(frozen=True)
class Found:
    """What is known of some rows that were left out, one entry each.

    settled : False of those that are still to be solved; of these nothing else is meant.
    value : NaN where only the label is known.  how : index into ``ledger.HOW``.
    """

    settled: BoolArray
    wrong: BoolArray
    value: FloatArray
    how: NDArray[np.uint8]
    kkt: FloatArray
    gap: FloatArray

    @classmethod
    def nothing(cls, count: int) -> Found:
        wrong, settled = np.zeros((2, count), dtype=bool)
        kkt, gap = np.zeros((2, count))
        how = np.zeros(count, dtype=np.uint8)
        return cls(settled, wrong, np.full(count, np.nan), how, kkt, gap)

    def put(self, where: IntArray, part: Found) -> None:
        for name in ("settled", "wrong", "value", "how", "kkt", "gap"):
            getattr(self, name)[where] = getattr(part, name)


class LeaveRowsOut:
    """Leaves out rows at one grid point.

    Parameters
    ----------
    problem, solved : the full-data problem and its solution
    spread : Spread
        Of all rows of the problem.
    distance : (n,)
        How far each row is from its centre.
    most : int
        Rows in play, at most; the free ones must be fewer.
    tol, want_decision, cancel
    together : int
        Solutions that are compared with all rows at a time.
    """

    def __init__(
        self,
        problem: WideProblem,
        solved: WideSolution,
        spread: Spread,
        distance: FloatArray,
        most: int,
        tol: float,
        want_decision: bool,
        cancel: NDArray[np.int32],
        together: int,
    ):
        self.together = together
        self.problem, self.solved, self.spread, self.distance = problem, solved, spread, distance
        self.most, self.tol, self.want_decision, self.cancel = most, tol, want_decision, cancel
        low, high = problem.levels[:, 1], problem.levels[:, 0]
        coef = solved.coef
        self.free = np.flatnonzero((coef > low) & (coef < high))
        self.state = np.where(coef >= high, 0, 2).astype(np.int8)
        self.state[self.free] = 1
        self.state[problem.box <= 0] = -1
        self.away = np.abs(solved.u - problem.target)
        self.away[problem.box <= 0] = np.inf
        own = spread.radius + distance if spread.fit_intercept else distance
        self.span = Span(own**2, own * np.sqrt(spread.most))

    # ---- proofs ---------------------------------------------------------------------------------

    def proved(self) -> tuple[Found, IntArray]:
        """Of all rows what bounds say, and the rows that they leave open."""
        problem, solved = self.problem, self.solved
        found = Found.nothing(problem.n)
        part, coef, y = problem.box > 0, solved.coef, np.sign(problem.target)
        sure = not problem.fit_intercept or bool(problem.strictly_inside(coef).any())
        kept = (coef == 0.0) & (sure | ~part)
        found.settled[kept], found.value[kept] = True, solved.u[kept]
        found.wrong[kept] = ~(y[kept] * solved.u[kept] > tolerances.TIE)
        found.how[kept] = HOW.index("unchanged")
        if not self.want_decision:
            who = np.flatnonzero(~kept)
            bounds = reach(problem, self.span, self, who, coef[who], self.slack)
            wrong, right = labels_proved(y[who], bounds)
            for mine, label in ((wrong, True), (right, False)):
                found.settled[who[mine]], found.wrong[who[mine]] = True, label
                found.how[who[mine]] = HOW.index("bound")
        return found, np.flatnonzero(~found.settled)

    def shared(self, rows: IntArray) -> BoolArray:
        """Which labels of these rows the free rows prove right by taking the row's share."""
        problem, solved, free = self.problem, self.solved, self.free
        place = np.full(problem.n, -1, dtype=np.intp)
        place[free] = np.arange(len(free))
        coef, levels = solved.coef, problem.levels
        gap = float(problem.box[free] @ self.away[free])
        gap += abs(float(coef.sum()) * solved.intercept)
        shares = engine_shares.Shares(
            self._free_kernel,
            levels[free, 1] - coef[free],
            levels[free, 0] - coef[free],
            problem.fit_intercept,
            gap,
        )
        columns = problem.X[free].T.tocsr()
        leaving = engine_shares.Leaving(
            coef[rows],
            problem.length[rows] ** 2,
            place[rows],
            lambda some, of: gram(problem.X[rows[some]], columns[:, of]),
        )
        proved = shares.prove(leaving, np.sign(coef[rows]) * solved.u[rows] - self.slack)
        del self._free_kernel  # what follows needs the room
        return proved

    @cached_property
    def _free_kernel(self) -> FloatArray:
        rows = self.problem.X[self.free]
        return gram(rows, rows.T.tocsr())

    @cached_property
    def slack(self) -> float:
        """How far values may be from the exact ones, by the certificate."""
        solved = self.solved
        scale = max(1.0, float(np.abs(solved.u).max(initial=0.0)))
        gap = implied_accuracy(solved.gap, 0.0, self.problem.extent.widest**2)
        return 2.0 * gap + solved.kkt * scale + 1e-12 * scale

    # What ``engine.bounds.reach`` asks of a solution.

    @property
    def coef(self) -> FloatArray:
        return self.solved.coef

    @property
    def u(self) -> FloatArray:
        return self.solved.u

    @property
    def levels(self) -> FloatArray:
        return self.problem.levels

    # ---- by the engine --------------------------------------------------------------------------

    def tiers(self) -> list[int]:
        """How many rows are in play, at first and in further attempts."""
        part, free = int(np.count_nonzero(self.problem.box > 0)), len(self.free)
        count, sizes = free + max(FIRST, free), []
        while count < min(part, self.most):
            sizes.append(count)
            count *= MORE
        return [*sizes, min(part, self.most)]

    def in_play(self, count: int) -> InPlay:
        """The rows nearest to the margin, the free ones among them, with their kernel matrix."""
        away = self.away.copy()
        away[self.free] = -1.0
        rows = np.sort(np.argsort(away, kind="stable")[:count])
        X = self.problem.X[rows]
        columns = X.T.tocsr()
        return InPlay(rows, columns, gram(X, columns))

    def leave_out(self, play: InPlay, which: IntArray) -> Found:
        """Leave out some rows; those that are not in play join them as guests."""
        guests = np.setdiff1d(which, play.rows)
        rows = np.concatenate([play.rows, guests])
        order = np.argsort(rows)
        where = order[np.searchsorted(rows, which, sorter=order)]
        ordinary = self._ordinary(play, rows)
        coef = np.append(self.solved.coef[rows], (ordinary.y * ordinary.weight)[len(rows) :])
        single = tuple(where[:, None])
        folds = Folds(n=ordinary.n, left_out=single, test=single)
        grid = Grid(np.ones(1), np.ones(1), scale_with_fold=False)
        task = Task(ordinary, folds, grid, True, self.tol)
        check = _Check(self, rows, which)
        ledger = Ledger(task, check)
        b = self.solved.intercept
        ledger.full(0, coef, b)
        state = engine_states(ordinary, self.state[rows])
        point = Point(1.0, state, coef, ordinary.K @ coef, b)
        reached = np.append(rows, np.zeros(ordinary.n - len(rows), dtype=np.intp))
        span = Span(self.span.own[reached], self.span.others[reached])
        engine = LeaveOneOut(task, ledger, span, self.cancel, judge_all=True)
        engine.at(np.zeros(1, dtype=np.intp), [point])
        return check.found(ledger)

    def _ordinary(self, play: InPlay, rows: IntArray) -> Problem:
        """These rows, with all others as two whose coefficients stay (``small/ordinary.py``)."""
        problem, solved = self.problem, self.solved
        box, loss, k = problem.box[rows], problem.loss.at(rows), len(play.rows)
        X, coef = problem.X[rows], solved.coef[rows]
        a, beta = solved.theta[:-1] - X.T @ coef, -float(coef.sum())
        total = 2.0 * (float(np.abs(coef).sum()) + abs(beta)) + 1e-300
        size = max(total, float(np.linalg.norm(a)))
        more = [size, size - beta] if problem.fit_intercept else [size]
        signs = np.array([1.0, -1.0][: len(more)])
        n = len(rows) + len(more)
        K = np.zeros((n, n))
        K[:k, :k] = play.K
        K[k : len(rows), :k] = gram(X[k:], play.columns)
        K[:k, k : len(rows)] = K[k : len(rows), :k].T
        K[k : len(rows), k : len(rows)] = gram(X[k:], X[k:].T.tocsr())
        pull = X @ a / size
        K[: len(rows), len(rows)] = K[len(rows), : len(rows)] = pull
        K[len(rows), len(rows)] = float(a @ a) / size**2
        widest = 1.0 + float(np.abs(solved.u).max(initial=0.0)) + float(np.linalg.norm(a))
        knots = frame(signs, 10.0 * max(widest, loss.largest_knot), loss.n_knots)
        y = np.append(np.sign(problem.target[rows]), signs)
        return Problem(K, y, np.append(box, more), loss.beside(knots), problem.fit_intercept)


@dataclass(frozen=True)
class InPlay:
    """Rows in rising order, their transpose (CSR) and their kernel matrix."""

    rows: IntArray
    columns: Any
    K: FloatArray


class _Check:
    """Is shown the engine's solutions, and asks the rows that it has not seen.

    ``rows`` are those that it has, ``which`` those that are left out.
    """

    def __init__(self, leave: LeaveRowsOut, rows: IntArray, which: IntArray):
        self.leave, self.rows, self.which = leave, rows, which
        self.X = leave.problem.X[rows]
        count = len(which)
        self.sure, self.loss = np.zeros(count, dtype=bool), np.full(count, np.inf)
        self.half = np.zeros(count)  # 1/2 ||w||^2
        self.low, self.high = np.full(count, -np.inf), np.full(count, np.inf)

    def __call__(
        self, ledger: Ledger, folds: IntArray, coef: FloatArray, _: FloatArray, b: FloatArray
    ) -> None:
        leave, k = self.leave, len(self.rows)
        full = ledger.coef[0]
        stays = np.abs(coef[:, k:] - full[k:]) <= STAYS * np.abs(full[k:])
        ok = stays.all(axis=1) & np.isfinite(b)
        folds, coef, db = folds[ok], coef[ok, :k], b[ok] - ledger.intercept[0]
        for start in range(0, len(folds), leave.together):
            some = slice(start, start + leave.together)
            self._look(folds[some], coef[some], full[:k], db[some])

    def _look(self, folds: IntArray, coef: FloatArray, full: FloatArray, db: FloatArray) -> None:
        """The same of a few solutions, whose rest stays as it was."""
        leave = self.leave
        dw = self.X.T @ (coef - full).T
        w = leave.solved.theta[:-1]
        self.half[folds] = 0.5 * (w @ w + 2.0 * (w @ dw) + np.einsum("ij,ij->j", dw, dw))
        moved = np.linalg.norm(dw, axis=0) * leave.problem.extent.widest + np.abs(db)
        away = leave.away.copy()
        away[self.rows] = np.inf
        beyond = np.flatnonzero(away <= ASIDE * float(moved.max(initial=0.0)))
        room = ASIDE * float(moved.max(initial=0.0)) - moved
        u = leave.u[beyond, None] + leave.problem.X[beyond] @ dw + db
        knot, box = leave.problem.target[beyond, None], leave.problem.box[beyond]
        crossed = (u > knot) != (leave.u[beyond, None] > knot)
        self.loss[folds] = box @ np.where(crossed, np.abs(u - knot), 0.0)
        inside = leave.problem.strictly_inside(coef, self.rows).any(axis=1)
        self.sure[folds] = ~crossed.any(axis=0) & (inside | (not leave.problem.fit_intercept))
        if leave.want_decision:
            return
        mine = np.flatnonzero(~self.sure[folds])
        inner = leave.u[self.rows, None] + self.X @ dw[:, mine] + db[mine]
        for at, m in enumerate(mine):
            near = np.append(self.rows, beyond), np.append(inner[:, at], u[:, m])
            ends = self._quantile(int(self.which[folds[m]]), *near, float(room[m]))
            self.low[folds[m]], self.high[folds[m]] = ends

    def _quantile(self, j: int, rows: IntArray, u: FloatArray, room: float) -> tuple[float, float]:
        """By how much the optimal intercepts for w differ from b, without row j."""
        problem = self.leave.problem
        if not problem.fit_intercept:
            return 0.0, 0.0
        others = rows != j
        levels = problem.levels[rows[others]]
        # The rows that are not here keep their coefficients.
        total = float(levels[:, 0].sum()) - float(self.leave.coef[rows].sum())
        at = problem.target[rows[others]] - u[others]
        order = np.argsort(at)
        after = total - np.cumsum((levels[:, 0] - levels[:, 1])[order])
        slack = 1e-12 * float(problem.box.sum())
        if total <= slack or not after[-1] < -slack:
            return -np.inf, np.inf
        low = float(at[order[int(np.argmax(after <= slack))]])
        high = float(at[order[int(np.argmax(after < -slack))]])
        return (low, high) if max(-low, high) <= room else (-np.inf, np.inf)

    def found(self, ledger: Ledger) -> Found:
        """What stands for all rows."""
        leave, found = self.leave, Found.nothing(len(self.which))
        problem, which = leave.problem, self.which
        value, how = ledger.decision[0], ledger.how[0]
        kkt, gap = ledger.kkt[0, :-1], ledger.gap_abs[0, :-1]
        lost = problem.loss.at(which).value(np.nan_to_num(value)) * problem.box[which]
        least = np.maximum(leave.solved.primal - lost, self.half)  # of the objective without it
        relative = gap / np.maximum(least, np.finfo(float).tiny)
        goal = float(attainable(leave.tol, leave.solved.floor))
        good = self.sure & (kkt <= goal) & (relative <= goal) & np.isfinite(value)
        y = np.sign(problem.target[which])
        found.settled[good], found.value[good] = True, value[good]
        found.wrong[good] = ~(y * value > tolerances.TIE)[good]
        found.how[good], found.kkt[good], found.gap[good] = how[good], kkt[good], relative[good]
        if not leave.want_decision:
            own = np.sqrt(leave.span.own[which])
            spare = np.sqrt(np.nan_to_num(gap + self.loss, nan=np.inf)) * own + leave.slack
            left = ~good & np.isfinite(value)
            low = np.where(left, value + self.low, 0.0) - spare
            high = np.where(left, value + self.high, 0.0) + spare
            best, worst = np.where(y > 0, high, -low), np.where(y > 0, low, -high)
            for mine, label in ((best <= tolerances.TIE, True), (worst > tolerances.TIE, False)):
                mine = mine & left
                found.settled[mine], found.wrong[mine] = True, label
                found.how[mine] = HOW.index("bound")
        return found
