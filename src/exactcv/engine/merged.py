"""Repeated rows are one row.

Rows with equal kernel rows and equal losses have the same u, whatever the solution.  Together they
are one row whose box is the sum of theirs: a solution of the problem with one row for each *site*
and summed weights becomes one of the original problem when each row takes its share of its site's
coefficient, in proportion to the weights, and conversely.  Contradictory rows (equal kernel rows,
other labels) stay apart: they have their knots in different places, so that at most one of them is
free.

The merged problem keeps the kernel matrix and all indices.  The first row of a site stands for it;
the others have no weight, which means that they take no part.  Leaving out some rows makes the
weights of their sites smaller, and a site whose rows are all left out disappears.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .._core._gather import copy_columns
from ..problem.problem import Problem
from ..types import FloatArray, IntArray

__all__ = ["Merged"]


@dataclass(frozen=True)
class Merged:
    """Which rows of a problem are one.

    ``first`` names for each row the row that stands for its site.

    Examples
    --------
    >>> import numpy as np
    >>> from exactcv.problem.losses import hinge
    >>> y = np.array([1.0, 1.0, -1.0])
    >>> K = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
    >>> merged = Merged.of(Problem(K, y, np.ones(3), hinge(y)))
    >>> merged.problem.weight
    array([2., 0., 1.])
    >>> merged.apart(np.array([0.5, 0.0, -0.5]))
    array([ 0.25,  0.25, -0.5 ])
    """

    original: Problem
    first: IntArray

    @classmethod
    def of(cls, problem: Problem) -> Merged:
        """Rows that repeat others.

        The box of a site that loses a row shrinks towards 0; levels between its ends must stay
        where they are, so they have to be 0.
        """
        first = np.arange(problem.n, dtype=np.intp)
        group = problem.same
        if (group == first).all() or problem.loss.slopes[:, 1:-1].any():
            return cls(problem, first)
        repeated = np.bincount(group, minlength=problem.n)[group] > 1
        loss = np.column_stack([problem.loss.knots, problem.loss.slopes])
        seen: dict[tuple[int, bytes], int] = {}
        for i in np.flatnonzero(repeated & (problem.weight > 0)):
            first[i] = seen.setdefault((int(group[i]), loss[i].tobytes()), int(i))
        return cls(problem, first)

    @classmethod
    def nothing(cls, problem: Problem) -> Merged:
        """Every row stands for itself."""
        return cls(problem, np.arange(problem.n, dtype=np.intp))

    @cached_property
    def any(self) -> bool:
        return bool((self.first != np.arange(len(self.first))).any())

    @cached_property
    def problem(self) -> Problem:
        """The problem with one row for each site."""
        if not self.any:
            return self.original
        return replace(self.original, weight=self.together(self.original.weight))

    def together(self, values: FloatArray) -> FloatArray:
        """Sums over the rows of each site (weights, or coefficients); zero for the others."""
        if not self.any:
            return values
        summed = np.bincount(self.first, weights=values, minlength=len(self.first))
        return np.asarray(summed, dtype=float)

    def apart(self, coef: FloatArray, weight: FloatArray | None = None) -> FloatArray:
        """Every row's share of its site's coefficient, for one solution or one in each row.

        ``weight`` are the weights of the rows that take part, those of the problem if not given.
        """
        if not self.any:
            return coef
        share = self._share if weight is None else self._shares(weight)
        rows = self._repeated if weight is None else np.arange(len(self.first))
        coef = np.ascontiguousarray(coef, dtype=float)
        out = coef.copy()
        each, all_rows = np.atleast_2d(coef), np.atleast_2d(out)
        copy_columns(each, self.first[rows], rows, share[rows], all_rows)
        return out

    def rows_of(self, sites: IntArray) -> tuple[IntArray, IntArray]:
        """The rows of the sites for which these rows stand, and which site each belongs to.

        Examples
        --------
        >>> import numpy as np
        >>> from exactcv.problem.losses import hinge
        >>> y = np.array([1.0, 1.0, -1.0])
        >>> merged = Merged(Problem(np.eye(3), y, np.ones(3), hinge(y)), np.array([0, 0, 2]))
        >>> merged.rows_of(np.array([2, 0]))
        (array([0, 1, 1]), array([2, 0, 1]))
        """
        count = self.copies[sites]
        which = np.repeat(np.arange(len(sites)), count)
        ends = np.cumsum(count)
        start = np.searchsorted(self._sorted[0], sites)
        place = np.arange(len(which)) + np.repeat(start - (ends - count), count)
        return which, self._sorted[1][place]

    def spread(self, values: FloatArray) -> FloatArray:
        """Give the rows of each site the value of the first, in place; one solution in each row."""
        if self.any:
            others = np.flatnonzero(self.first != np.arange(len(self.first)))
            copy_columns(values, self.first[others], others, np.ones(len(others)), values)
        return values

    @cached_property
    def _sorted(self) -> tuple[IntArray, IntArray]:
        """Sites in order, and the row of each."""
        order = np.argsort(self.first, kind="stable")
        return self.first[order], order

    @cached_property
    def _repeated(self) -> IntArray:
        return np.flatnonzero(self.copies > 1)

    @cached_property
    def _share(self) -> FloatArray:
        return self._shares(self.original.weight)

    def _shares(self, weight: FloatArray) -> FloatArray:
        total = self.together(weight)[self.first]
        return np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)

    @cached_property
    def copies(self) -> IntArray:
        """How many rows each row's site has."""
        return np.bincount(self.first, minlength=len(self.first))[self.first]
