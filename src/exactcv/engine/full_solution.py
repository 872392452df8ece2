"""The full-data solution at one grid point, in the form from which rows are left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import lapack, solve_triangular

from .. import tolerances
from ..judge.intercept import BLURRED, closeness
from ..problem.problem import Problem
from ..types import FloatArray, IntArray
from .inverse import scale_of
from .path import StateArray, at_knot

__all__ = ["FullSolution", "Proportional", "independent"]

# Coefficients that move less than this, for a unit of the row that depends on them, have no part.
LEAST_SHARE = 1e-12


@dataclass(frozen=True)
class FullSolution:
    """States, coefficients and values; ``levels`` are the coefficients on the segments."""

    problem: Problem
    state: StateArray
    coef: FloatArray
    u: FloatArray
    levels: FloatArray

    @cached_property
    def members(self) -> IntArray:
        """The rows at a knot."""
        return np.flatnonzero(at_knot(self.state))

    @cached_property
    def box(self) -> tuple[FloatArray, FloatArray]:
        """Between which levels the members' coefficients lie (low, high)."""
        knot = self.state[self.members] // 2
        return self.levels[self.members, knot + 1], self.levels[self.members, knot]

    @cached_property
    def limits(self) -> tuple[FloatArray, FloatArray]:
        """Between which knots the u of each row on a segment lies."""
        knots, segment = self.problem.loss.knots, self.state // 2
        m, rows = knots.shape[1], np.arange(len(knots))
        low = np.where(segment > 0, knots[rows, np.maximum(segment - 1, 0)], -np.inf)
        high = np.where(segment < m, knots[rows, np.minimum(segment, m - 1)], np.inf)
        low[self.state < 0], high[self.state < 0] = -np.inf, np.inf
        return low, high

    def canonical(self) -> FullSolution:
        """With an intercept: a row is at a knot only if a coefficient is strictly in its box."""
        members, (bottom, top) = self.members, self.box
        if not len(members):
            return self
        slack = closeness(self.levels, self.problem.diagonal)[members]
        at_top = self.coef[members] >= top - slack - BLURRED * np.abs(top)
        at_bottom = self.coef[members] <= bottom + slack + BLURRED * np.abs(bottom)
        if not (self.problem.fit_intercept and (at_top | at_bottom).all()):
            return self
        state = self.state.copy()
        state[members] += np.where(at_top, -1, 1).astype(np.int8)
        return replace(self.with_coefficients(np.where(at_top, top, bottom)), state=state)

    def with_coefficients(self, coef: FloatArray) -> FullSolution:
        """The same with other coefficients of the members; u follows."""
        by = coef - self.coef[self.members]
        changed = np.flatnonzero(by)
        moved = self.coef.copy()
        moved[self.members] = coef
        u = self.u + by[changed] @ self.problem.K[self.members[changed]]
        return replace(self, coef=moved, u=u)

    def nearest(self, side: int) -> int:
        """The row that first reaches a knot when b falls (side 1) or rises (side -1)."""
        low, high = self.limits
        return int(np.argmin(self.u - low if side > 0 else high - self.u))

    def moved_to_knot(self, side: int) -> FullSolution:
        """The same coefficients, with the intercept at that end of its interval."""
        row, (low, high) = self.nearest(side), self.limits
        state = self.state.copy()
        state[row] -= side
        gap = (low if side > 0 else high)[row] - self.u[row]
        return replace(self, state=state, u=self.u + gap)


@dataclass(frozen=True)
class Proportional:
    """Solutions at several C with the same states, none with a row at a knot; one in each row."""

    state: StateArray
    coef: FloatArray
    u: FloatArray
    levels: FloatArray


def independent(full: FullSolution) -> FullSolution:
    """An equal solution in which the rows at a knot are linearly independent.

    A row that depends on others shares its weight with them in any proportion.  One factorisation
    with pivoting finds independent rows N, and how each of the others, D, is made of them:
    phi_d = sum_i S_id phi_i.  Then each d in turn gives its weight to N, changing no u, until it is
    at an end of its box, or another row is: that one leaves N, d takes its place, and S is swept.
    """
    members, (bottom, top) = full.members, full.box
    K_MM = full.problem.K[np.ix_(members, members)]
    if full.problem.fit_intercept:
        K_MM += scale_of(K_MM)
    least = tolerances.DEPENDENT * scale_of(K_MM)
    factor, pivots, rank, _ = lapack.dpstrf(K_MM, tol=least, lower=1)
    order, coef, state = pivots - 1, full.coef[members], full.state.copy()
    base, rest = order[:rank].copy(), order[rank:]
    halfway = factor[rank:, :rank].T
    S = solve_triangular(factor[:rank, :rank], halfway, lower=True, trans="T")
    for column, d in enumerate(rest):
        along = np.where(np.abs(S[:, column]) > LEAST_SHARE, S[:, column], 0.0)
        # d falls by t, its share of the others rises.
        t, leaves = coef[d] - bottom[d], -1
        if top[d] - coef[d] < t:
            t = coef[d] - top[d]
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = np.where(along * t > 0, top[base], bottom[base])
            room = np.where(along != 0, (ahead - coef[base]) / along, np.inf)
        first = int(np.argmin(np.abs(room))) if rank else -1
        if rank and abs(room[first]) < abs(t):
            t, leaves = room[first], first
        coef[base] = np.clip(coef[base] + t * along, bottom[base], top[base])
        coef[d] = np.clip(coef[d] - t, bottom[d], top[d])
        gone = d if leaves < 0 else base[leaves]
        at_top = top[gone] - coef[gone] < coef[gone] - bottom[gone]
        coef[gone] = top[gone] if at_top else bottom[gone]
        state[members[gone]] += -1 if at_top else 1
        if leaves >= 0:
            base[leaves] = d
            row = S[leaves] / S[leaves, column]
            S -= np.outer(S[:, column], row)
            S[leaves] = row
    return replace(full.with_coefficients(coef), state=state)
