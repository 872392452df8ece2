"""Training sets at every C: where the labels of their tests change.

Between two solutions most labels are proved (``between.py``).  For the others the problem is solved
at a C in between, where a line through both ends would have the value zero, or in the middle.  The
solution there lies on a piece (``piece.py``) on which all values are lines: what changes on it is
known exactly, and its ends are the solutions from which the rest is looked at in the same way.

Values may jump: where the last free row comes to its bound, the intercept is no longer a point but
an interval, of which the rule takes the middle.  There the pieces on both sides have different
labels at one and the same C.

All stretches of C that are open are looked at together, in waves: one product with K for all of
them instead of one for each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from ..judge.certificate import attainable, judge_for, relative_gap
from ..problem.problem import Problem, row_weights
from ..runtime.threads import Cancelled
from ..types import FloatArray, IntArray
from .between import Asked, Ends, Tests, compare
from .merged import Merged
from .path import Point, Tracker, full_path, hinge_states
from .piece import Course, course_of, piece_of

__all__ = ["Changes", "Stretches", "TrainingSets", "on_lines"]

# Two ends closer than this, relative to C, are one: labels that differ have a jump between them.
ONE = 1e-11
# Where a line through both ends is zero is looked at if it is not too close to either.
EDGE = 0.02
# Where no label changes, the shorter side of a stretch has at least this part of it.
SHORTEST = 0.1
TINY = 1e-300
# Closer ends than this, relative to C, are looked at piece by piece.
NARROW = 1e-3
# Solutions of one training set beyond which the rest is given up.
MOST_SOLVED = 20_000
# Stretches in a wave.
WAVE = 256


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


@dataclass(frozen=True)
class Stretches:
    """Stretches of C, each between two solutions of a training set, and tests that are open there.

    sets : (S,), which training set.
    first, last : the solutions, and the values of the tests.
    of : (T,), the stretch of each test, rising.
    tests : (T,), which test it is.
    """

    sets: IntArray
    first: Ends
    last: Ends
    of: IntArray
    tests: IntArray

    def __len__(self) -> int:
        return len(self.sets)

    @property
    def lengths(self) -> FloatArray:
        return np.asarray(np.log(self.last.C / self.first.C))

    @property
    def ends(self) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """The C and the value of each test at both ends."""
        first, last = self.first, self.last
        return (first.C[self.of], first.values), (last.C[self.of], last.values)

    @property
    def turned(self) -> NDArray[np.bool_]:
        """(T,): which tests have another label at the other end."""
        return np.asarray((self.first.values > 0) != (self.last.values > 0))

    def only(self, open_: NDArray[np.bool_]) -> Stretches:
        """Some of the tests, and the stretches that these are on."""
        kept, of = np.unique(self.of[open_], return_inverse=True)
        at = np.flatnonzero(open_)
        first, last = self.first.part(kept, at), self.last.part(kept, at)
        return Stretches(self.sets[kept], first, last, of, self.tests[open_])

    def part(self, begin: int, end: int) -> Stretches:
        """Some of the stretches with their tests."""
        return self.only((self.of >= begin) & (self.of < end))

    @staticmethod
    def joined(parts: list[Stretches]) -> Stretches:
        before = np.cumsum([0] + [len(part) for part in parts])
        return Stretches(
            np.concatenate([part.sets for part in parts]),
            Ends.joined([part.first for part in parts]),
            Ends.joined([part.last for part in parts]),
            np.concatenate([part.of + k for part, k in zip(parts, before, strict=False)]),
            np.concatenate([part.tests for part in parts]),
        )


def on_lines(
    first: tuple[FloatArray, FloatArray],
    last: tuple[FloatArray, FloatArray],
    which: NDArray[np.bool_],
) -> tuple[IntArray, FloatArray]:
    """Tests among ``which``, whose values follow lines, that change their label; and at which C.

    An end is the C of each test and its value.
    """
    turned = np.flatnonzero(which & ((first[1] > 0) != (last[1] > 0)))
    (low, here), (high, there) = ((C[turned], value[turned]) for C, value in (first, last))
    return turned, np.clip(low + (high - low) * here / (here - there), low, high)


class TrainingSets:
    """Follows the problem without some rows along C; for one thread.

    Parameters
    ----------
    problem : Problem
        With the hinge loss.
    merged : Merged
        Its repeated rows.
    left_out : ndarray of int
        Rows that are in none of the training sets.
    own : ndarray of int
        One more row that each training set lacks; -1 for none.
    tests : Tests
    names : ndarray of int
        What the tests are called in `Changes`.
    numbers : ndarray of int
        What the training sets are called there.
    cancel, tol
    covered : callable
        Told of stretches that are settled: log(C1 / C0).
    """

    def __init__(
        self,
        problem: Problem,
        merged: Merged,
        left_out: IntArray,
        own: IntArray,
        tests: Tests,
        names: IntArray,
        numbers: IntArray,
        cancel: NDArray[np.int32],
        tol: float,
        covered: Callable[[float], None],
    ):
        self.merged, self.own, self.tests, self.names, self.numbers = (
            merged, own, tests, names, numbers,
        )  # fmt: skip
        self._cancel, self._tol, self._covered = cancel, tol, covered
        self._judge = judge_for(problem, left_out)
        self._widest = tests.widest(problem)
        self._weight = problem.weight.copy()
        self._weight[left_out] = 0.0
        # The same with repeated rows together, and what each training set has of its own row's.
        self._together = merged.together(self._weight)
        self._site = np.where(own >= 0, merged.first[own], -1)
        self._rest = np.zeros(len(own))
        for k in np.flatnonzero((own >= 0) & (merged.copies[own] > 1)).tolist():
            self._rest[k] = merged.together(self._apart(k))[self._site[k]]
        self._tracker = Tracker(merged.problem, cancel, tol)
        self._solved = np.zeros(len(own), dtype=np.intp)
        self.changes = Changes()

    def everywhere(self, low: float, high: float) -> NDArray[np.bool_]:
        """The first training set from ``low`` to ``high``; returns the labels at ``low``."""
        sets, of = np.zeros(1, dtype=np.intp), np.zeros(len(self.tests), dtype=np.intp)
        tests = np.arange(len(self.tests))
        self._turn_to(0)
        start = full_path(self._tracker.problem, np.array([low]), self._tracker)
        ends = []
        for C in (low, high):
            found, _ = self._solve(sets, np.array([C]), start, np.zeros(1, dtype=bool))
            ends.append(self._tested(found, of, tests))
        self.follow(self.settle(Stretches(sets, ends[0], ends[1], of, tests)))
        return np.asarray(ends[0].values > 0)

    def follow(self, stretches: Stretches) -> None:
        """All changes of tests on stretches whose ends alone do not tell."""
        todo = [stretches]
        while todo:
            if self._cancel[0]:
                raise Cancelled
            now = todo.pop()
            if len(now) > WAVE:
                todo.append(now.part(WAVE, len(now)))
                now = now.part(0, WAVE)
            if len(now):
                sides = self._split(self._not_given_up(now))
                todo.append(Stretches.joined([self.settle(side) for side in sides]))

    def settle(self, stretches: Stretches) -> Stretches:
        """Note what is known between two ends; returns the tests of which it is not."""
        first, last, of = stretches.first, stretches.last, stretches.of
        one = last.C - first.C <= ONE * last.C
        at = np.flatnonzero(stretches.turned & one[of])
        self._note(stretches, at, 0.5 * (first.C + last.C)[of[at]])
        own = stretches.sets[of]
        values = first.values, last.values
        asked = Asked(of, of, stretches.tests, self._site[own], self._rest[own], values)
        problem, weight = self.merged.problem, self._together
        proved, line = compare(problem, weight, first, last, asked, self.tests, self._widest)
        at, Cs = on_lines(*stretches.ends, line & ~one[of])
        self._note(stretches, at, Cs)
        open_ = ~(proved | line | one[of])
        settled = np.ones(len(stretches), dtype=bool)
        settled[of[open_]] = False
        self._covered(float(stretches.lengths[settled].sum()))
        return stretches.only(open_)

    def taken(self, ends: Ends, sets: IntArray) -> Ends:
        """Solutions that were found elsewhere, with a coefficient for each row."""
        coef = ends.coef
        if self.merged.any:
            coef = np.array([self.merged.together(one) for one in coef])
        states = hinge_states(self.merged.problem, ends.C[:, None] * self._weights(sets), coef)
        return replace(ends, coef=coef, states=states)

    def _note(self, stretches: Stretches, tests: IntArray, Cs: FloatArray) -> None:
        self.changes.add(self.names[stretches.tests[tests]], Cs)

    def _not_given_up(self, stretches: Stretches) -> Stretches:
        np.add.at(self._solved, stretches.sets, 1)
        gone = self._solved[stretches.sets] > MOST_SOLVED
        if not gone.any():
            return stretches
        ends = zip(stretches.first.C[gone], stretches.last.C[gone], strict=True)
        of = self.numbers[stretches.sets[gone]]
        self.changes.unresolved += [
            (float(low), float(high), int(k)) for (low, high), k in zip(ends, of, strict=True)
        ]
        return stretches.only(~gone[stretches.of])

    # ---- one wave ------------------------------------------------------------------------------

    def _split(self, now: Stretches) -> tuple[Stretches, Stretches]:
        """Solve in between, note what changes on the pieces there; what is left on both sides."""
        Cs, turns = self._where(now)
        near_first = Cs - now.first.C < now.last.C - Cs
        starts = [
            self._point(now.first if one else now.last, k) for k, one in enumerate(near_first)
        ]
        whole = turns | (now.last.C <= (1.0 + NARROW) * now.first.C)
        found, courses = self._solve(now.sets, Cs, starts, whole)
        here, there = self._ends_of_pieces(now, found, courses)
        here, there = (self._tested(end, now.of, now.tests) for end in (here, there))
        at = np.zeros(len(now), dtype=bool)
        at[list(courses)] = True
        turned, turn_Cs = on_lines(*replace(now, first=here, last=there).ends, at[now.of])
        self._note(now, turned, turn_Cs)
        return replace(now, last=here), replace(now, first=there)

    def _where(self, now: Stretches) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Where to solve next, and on which stretches a label changes.

        Where one does: at the zero of the line through its values, or in the middle.  Else where
        both sides are equally hard to prove, for the test that is the hardest.  The gap grows with
        the third power of a step, and may be as large as the product of the values at its ends: a
        side with a small value has to be short.
        """
        here, there, turned = now.first.values, now.last.values, now.turned
        order = np.lexsort((np.where(turned, -1.0, np.abs(here * there)), now.of))
        hardest = order[np.searchsorted(now.of, np.arange(len(now)))]
        here, there, turns = here[hardest], there[hardest], turned[hardest]
        low, high = np.cbrt(np.abs(here)), np.cbrt(np.abs(there))
        part = np.clip(low / np.maximum(low + high, TINY), SHORTEST, 1.0 - SHORTEST)
        with np.errstate(divide="ignore", invalid="ignore"):
            zero = here / (here - there)
        part[turns] = 0.5
        Cs = now.first.C * (now.last.C / now.first.C) ** part
        at_zero = turns & (zero > EDGE) & (zero < 1.0 - EDGE)
        line = now.first.C + zero * (now.last.C - now.first.C)
        return np.where(at_zero, line, Cs), turns

    def _ends_of_pieces(
        self, now: Stretches, found: Ends, courses: dict[int, Course]
    ) -> tuple[Ends, Ends]:
        """The ends of the pieces that are known, within their stretches; else both as found."""
        here, there = found.copy(), found.copy()
        slopes = np.array([course.slope for course in courses.values()]).reshape(-1, found.n)
        h_slopes = slopes @ self.merged.problem.K
        for (k, course), h_slope in zip(courses.items(), h_slopes, strict=True):
            h = found.u[k] - found.b[k]
            piece = piece_of(
                course, float(found.C[k]), found.coef[k], h, float(found.b[k]), h_slope
            )
            for end, at in (
                (here, max(piece.low, now.first.C[k])),
                (there, min(piece.high, now.last.C[k])),
            ):
                coef, h, b = piece.at(float(at))
                end.C[k], end.coef[k], end.u[k], end.b[k] = at, coef, h + b, b
        return here, there

    def _tested(self, ends: Ends, of: IntArray, tests: IntArray) -> Ends:
        """With the values of tests."""
        kernel, threshold = self.tests.kernel, self.tests.threshold[tests]
        if len(of) == len(ends.coef):
            values = np.einsum("ij,ij->i", kernel[tests], ends.coef[of])
        else:
            values = (ends.coef @ kernel.T)[of, tests]
        return replace(ends, values=values + ends.b[of] - threshold)

    # ---- solutions -----------------------------------------------------------------------------

    def _weights(self, sets: IntArray) -> FloatArray:
        """Of the rows of training sets, repeated rows together."""
        return row_weights(self._together, len(sets), self._site[sets], self._rest[sets])

    def _apart(self, k: int) -> FloatArray:
        weight = self._weight.copy()
        if self.own[k] >= 0:
            weight[self.own[k]] = 0.0
        return weight

    def _turn_to(self, k: int) -> None:
        """Go on with a training set; what its free rows share with the last one's is kept."""
        weight = self._together.copy()
        if self._site[k] >= 0:
            weight[self._site[k]] = self._rest[k]
        self._tracker.resume(weight, self._cancel)

    def _point(self, ends: Ends, k: int) -> Point:
        """A solution as the tracker knows it."""
        assert ends.states is not None
        coef, b, C = ends.coef[k], float(ends.b[k]), float(ends.C[k])
        return Point(C, ends.states[k], coef, ends.u[k] - b, b)

    def _solve(
        self, sets: IntArray, Cs: FloatArray, starts: list[Point], whole: NDArray[np.bool_]
    ) -> tuple[Ends, dict[int, Course]]:
        """Solutions near others, judged, and the courses of those that are to be ``whole``.

        Where no row is free the course is looked at in any case: without, there is not much to be
        told.  What misses the mark is solved again.
        """
        points, courses = list(starts), dict[int, Course]()
        for k in np.argsort(Cs, kind="stable").tolist():  # neighbours share most of their free rows
            self._turn_to(int(sets[k]))
            points[k] = self._tracker.move(starts[k], float(Cs[k]))
            if whole[k]:
                courses[k] = self._course(points[k])
        found, figures, good = self._judged(sets, Cs, points)
        for k in np.flatnonzero(~(whole | self._some_free(sets, found))).tolist():
            self._turn_to(int(sets[k]))
            courses[k] = self._course(points[k])
        for k in np.flatnonzero(~good).tolist():
            if self._again(found, figures, k, int(sets[k]), points[k]) and k in courses:
                courses[k] = self._course(self._point(found, k))
        self.changes.solved.append(np.column_stack([Cs, self.numbers[sets], figures]))
        return found, courses

    def _course(self, point: Point) -> Course:
        return course_of(self._tracker.problem, self._tracker.factor, point.C, point.coef)

    def _some_free(self, sets: IntArray, found: Ends) -> NDArray[np.bool_]:
        """Which solutions have a row strictly inside its box."""
        size, box = np.abs(found.coef), found.C[:, None] * self._weights(sets)
        near = tolerances.AT_BOUND * box
        return np.asarray(((size > near) & (size < box - near)).any(axis=1))

    def _again(self, found: Ends, figures: FloatArray, k: int, of: int, point: Point) -> bool:
        """Solve again, in place; whether anything has become better."""
        self._turn_to(of)
        better, one = False, slice(k, k + 1)
        for again in (self._tracker.polish, self._tracker.slow_but_sure):
            point = again(point)
            other, its, good = self._judged(np.array([of]), found.C[one], [point])
            if its.max() < figures[k].max():
                found.put(k, other)
                figures[k], better = its[0], True
                if good[0]:
                    break
        return better

    def _judged(
        self, sets: IntArray, Cs: FloatArray, points: list[Point]
    ) -> tuple[Ends, FloatArray, NDArray[np.bool_]]:
        """The solutions with u and b from scratch, kkt and gap, and which are good enough."""
        coef = np.array([point.coef for point in points])
        states = np.array([point.state for point in points])
        h, own, apart = coef @ self.merged.problem.K, self.own[sets], coef
        if self.merged.any:
            apart = np.array(
                [self.merged.apart(c, self._apart(k)) for c, k in zip(coef, sets, strict=True)]
            )
        b = self._judge.intercepts(h, apart, Cs, own)
        out = self._judge.figures(h, apart, b, Cs, own)
        figures = np.column_stack([out[:, 0], relative_gap(out[:, 1], out[:, 2])])
        limit = attainable(self._tol, out[:, 3], tolerances.POLISH * self._tol)
        found = Ends(Cs.copy(), coef, h + b[:, None], b, np.zeros(0), states)
        return found, figures, np.asarray(figures.max(axis=1) <= limit)
