"""One training set at every C: where the labels of its tests change.

Between two solutions most labels are proved (``between.py``).  For the others the problem is solved
at a C in between, where a line through both ends would have the value zero, or in the middle.  The
solution there lies on a piece (``piece.py``) on which all values are lines: what changes on it is
known exactly, and its ends are the solutions from which the rest is looked at in the same way.

Values may jump: where the last free row comes to its bound, the intercept is no longer a point but
an interval, of which the rule takes the middle.  There the pieces on both sides have different
labels at one and the same C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from ..judge.certificate import Judge, attainable, judge_for, relative_gap
from ..problem.problem import Problem
from ..runtime.threads import Cancelled
from ..types import FloatArray, IntArray
from .between import Ends, Tests, compare
from .merged import Merged
from .path import Point, StateArray, Tracker, full_path, states_of
from .piece import piece_around

__all__ = ["Changes", "TrainingSet", "on_lines"]

# Two ends closer than this, relative to C, are one: labels that differ have a jump between them.
ONE = 1e-11
# Where a line through both ends is zero is looked at if it is not too close to either.
EDGE = 0.02
# Where no label changes, the shorter side of a stretch has at least this part of it.
SHORTEST = 0.1
TINY = 1e-300
# Closer ends than this, relative to C, are looked at piece by piece.
NARROW = 1e-3
# Solutions of one training set, between two ends, beyond which the rest is given up.
MOST_SOLVED = 20_000


@dataclass
class Changes:
    """Where labels change, and what the solutions in use are worth.

    tests, Cs : a test and a C at which its label changes, in any order.
    solved : arrays with a row (C, training set, kkt, gap) for each solution.
    unresolved : (C, C, training set) between which changes may have been missed.
    """

    tests: list[int] = field(default_factory=list)
    Cs: list[float] = field(default_factory=list)
    solved: list[FloatArray] = field(default_factory=list)
    unresolved: list[tuple[float, float, int]] = field(default_factory=list)

    def add(self, tests: IntArray, Cs: FloatArray) -> None:
        self.tests.extend(tests.tolist())
        self.Cs.extend(Cs.tolist())

    def extend(self, other: Changes) -> None:
        for name in ("tests", "Cs", "solved", "unresolved"):
            getattr(self, name).extend(getattr(other, name))


def on_lines(first: Ends, last: Ends, which: NDArray[np.bool_]) -> tuple[IntArray, FloatArray]:
    """Tests among ``which``, whose values follow lines, that change their label; and at which C."""
    turned = np.flatnonzero(which & ((first.values > 0) != (last.values > 0)))
    here, there = first.values[turned], last.values[turned]
    Cs = first.C + (last.C - first.C) * here / (here - there)
    return turned, np.clip(Cs, first.C, last.C)


class TrainingSet:
    """Follows the problem without some rows along C.

    Parameters
    ----------
    problem : Problem
        With the hinge loss.
    merged : Merged
        Its repeated rows.
    left_out : ndarray of int
    tests : Tests
    names : ndarray of int
        What the tests are called in `Changes`.
    number : int
        What the training set is called there.
    cancel, tol
    covered : callable
        Told of stretches that are settled: log(C1 / C0).
    judge : Judge, optional
        Of all rows, if one is at hand and ``left_out`` is one row.
    """

    def __init__(
        self,
        problem: Problem,
        merged: Merged,
        left_out: IntArray,
        tests: Tests,
        names: IntArray,
        number: int,
        cancel: NDArray[np.int32],
        tol: float,
        covered: Callable[[float], None] = lambda length: None,
        judge: Judge | None = None,
    ):
        self.merged, self._cancel, self._tol, self._covered = merged, cancel, tol, covered
        self._judge = judge_for(problem, left_out) if judge is None else judge
        self._one_row = judge is not None
        self._set_rows(left_out, tests, names, number)
        self._tracker = Tracker(self.problem, cancel, tol)
        self.changes = Changes()

    def instead(self, left_out: IntArray, tests: Tests, names: IntArray, number: int) -> None:
        """Go on with another row left out; what its free rows share with the last one's is kept."""
        self._set_rows(left_out, tests, names, number)
        self._tracker.resume(self.problem.weight, self._cancel)

    def _set_rows(self, left_out: IntArray, tests: Tests, names: IntArray, number: int) -> None:
        original = self.merged.original
        self._weight = original.weight.copy()
        self._weight[left_out] = 0.0
        self._own = left_out if self._one_row else None
        self.tests, self.names, self.number = tests, names, number
        self.problem = self.merged.problem.weighted(self.merged.together(self._weight))
        self._widest = tests.widest(original)

    def everywhere(self, low: float, high: float) -> NDArray[np.bool_]:
        """From ``low`` to ``high``, without any solution at hand; returns the labels at ``low``."""
        start = full_path(self.problem, np.array([low]), self._tracker)[0]
        first = self._solve(low, start)
        last = self._solve(high, start)
        self.between(first, last, np.arange(len(self.tests)))
        return np.asarray(first.values > 0)

    def between(self, first: Ends, last: Ends, which: IntArray) -> None:
        """All changes of the tests ``which`` between two solutions (of one training set)."""
        which = self._settle(first, last, which)
        if len(which):
            self.unsettled(first, last, which)
        else:
            self._covered(float(np.log(last.C / first.C)))

    def unsettled(self, first: Ends, last: Ends, which: IntArray) -> None:
        """The same for tests of which the two solutions alone do not tell."""
        todo, spent = [(first, last, which)], 0
        while todo:
            if self._cancel[0]:
                raise Cancelled
            first, last, which = todo.pop()
            spent += 1
            if spent > MOST_SOLVED:
                self.changes.unresolved.append((first.C, last.C, self.number))
                continue
            here, there = self._piece(first, last, which)
            for a, b in ((there, last), (first, here)):
                left = self._settle(a, b, which)
                if len(left):
                    todo.append((a, b, left))
                else:
                    self._covered(float(np.log(b.C / a.C)))

    def _settle(self, first: Ends, last: Ends, which: IntArray) -> IntArray:
        """Note what is known between two ends; returns the tests of which it is not."""
        differ = (first.values > 0) != (last.values > 0)
        if last.C - first.C <= ONE * last.C:
            turned = which[differ[which]]
            self.changes.add(self.names[turned], np.full(len(turned), 0.5 * (first.C + last.C)))
            return which[:0]
        sets = np.zeros(len(which), dtype=np.intp)
        a, b, tests, widest = first, last, self.tests, self._widest
        if len(which) < len(tests):
            a, b = first.part(slice(None), which), last.part(slice(None), which)
            tests, widest = tests.part(which), widest[which]
        proved, line = compare(self.problem, self.problem.weight[None], a, b, sets, tests, widest)
        if line[0]:
            turned, Cs = on_lines(a, b, np.ones(len(which), dtype=bool))
            self.changes.add(self.names[which[turned]], Cs)
            return which[:0]
        return np.asarray(which[~proved])

    def _piece(self, first: Ends, last: Ends, which: IntArray) -> tuple[Ends, Ends]:
        """Solve in between, note what changes on the piece there, and return its ends."""
        C = self._where(first, last, which)
        near = first if C - first.C < last.C - C else last
        middle = self._solve(C, self._point(near))
        turns = ((first.values > 0) != (last.values > 0))[which].any()
        if not turns and last.C > (1.0 + NARROW) * first.C and self._some_free(middle):
            return middle, middle  # its piece would not tell much
        coef, b = middle.coef[0], float(middle.b[0])
        piece = piece_around(self.problem, self._tracker.factor, C, coef, middle.u[0] - b, b)
        ends = []
        for at in (max(piece.low, first.C), min(piece.high, last.C)):
            coef, h, b = piece.at(at)
            ends.append(self._ends(at, coef, h, b, middle.states))
        here, there = ends
        differ = (here.values[which] > 0) != (there.values[which] > 0)
        turned, Cs = on_lines(here.part(slice(None), which), there.part(slice(None), which), differ)
        self.changes.add(self.names[which[turned]], Cs)
        return here, there

    def _some_free(self, ends: Ends) -> bool:
        size, box = np.abs(ends.coef[0]), ends.C * self.problem.weight
        near = tolerances.AT_BOUND * box
        return bool(((size > near) & (size < box - near)).any())

    def _where(self, first: Ends, last: Ends, which: IntArray) -> float:
        """Where to solve next."""
        here, there = first.values[which], last.values[which]
        turned = np.flatnonzero((here > 0) != (there > 0))
        if not len(turned):
            return self._balanced(first, last, which)
        middle = float(np.sqrt(first.C * last.C))
        one = turned[0]
        part = here[one] / (here[one] - there[one])
        if not EDGE < part < 1.0 - EDGE:
            return middle
        return float(first.C + part * (last.C - first.C))

    def _balanced(self, first: Ends, last: Ends, which: IntArray) -> float:
        """Where both sides are equally hard to prove, for the test that is the hardest.

        The gap grows with the third power of a step, and may be as large as the product of the
        values at its ends: a side with a small value has to be short.
        """
        here, there = np.abs(first.values[which]), np.abs(last.values[which])
        one = int(np.argmin(here * there))
        low, high = np.cbrt(here[one]), np.cbrt(there[one])
        part = min(max(low / max(low + high, TINY), SHORTEST), 1.0 - SHORTEST)
        return float(first.C * (last.C / first.C) ** part)

    def _point(self, ends: Ends) -> Point:
        """A solution as the tracker knows it."""
        coef, b = ends.coef[0], float(ends.b[0])
        state = states_of(self.problem, ends.C, coef) if ends.states is None else ends.states
        return Point(ends.C, state, coef.copy(), ends.u[0] - b, b)

    def taken(self, ends: Ends) -> Ends:
        """A solution that was found elsewhere, with a coefficient for each row."""
        return replace(ends, coef=self.merged.together(ends.coef[0])[None])

    def _ends(
        self, C: float, coef: FloatArray, h: FloatArray, b: float, states: StateArray | None
    ) -> Ends:
        values = self.tests.kernel @ coef + b - self.tests.threshold
        return Ends(C, coef[None], (h + b)[None], np.array([b]), values, states)

    def _solve(self, C: float, near: Point) -> Ends:
        """The solution at C, judged; solved again where it misses the mark."""
        point = self._tracker.move(near, C)
        coef, h, b, kkt, gap, good = self._judged(C, point)
        for again in (self._tracker.polish, self._tracker.slow_but_sure):
            if good:
                break
            point = again(point)
            other = self._judged(C, point)
            if max(other[3:5]) < max(kkt, gap):
                coef, h, b, kkt, gap, good = other
        self.changes.solved.append(np.array([[C, self.number, kkt, gap]]))
        states = point.state if coef is point.coef else None
        return self._ends(C, coef, h, b, states)

    def _judged(
        self, C: float, point: Point
    ) -> tuple[FloatArray, FloatArray, float, float, float, bool]:
        """Coefficients, h and b of a point, its figures, and whether they are good enough."""
        coef = point.coef
        h = self.problem.K @ coef
        apart, Cs = self.merged.apart(coef, self._weight)[None], np.array([C])
        b = self._judge.intercepts(h[None], apart, Cs, self._own)
        out = self._judge.figures(h[None], apart, b, Cs, self._own)[0]
        kkt, gap = float(out[0]), float(relative_gap(out[1:2], out[2:3])[0])
        limit = float(attainable(self._tol, out[3], tolerances.POLISH * self._tol))
        return coef, h, float(b[0]), kkt, gap, max(kkt, gap) <= limit
