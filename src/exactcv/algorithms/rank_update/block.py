"""Leave-one-out folds a block at a time: the updates of ``updates.py`` without a loop over folds.

Each fold k of a block leaves out one row and, in the nonlinear model, that row's column.  Its small
system is that of ``updates.py``, of size r_k + 1 or r_k.  Systems of about the same size are padded
with the identity and solved together; what follows from their solutions q,

    f_k = f_0 - sum_{i changed} q_ki F_i - q_kJ u_k,
    F_i = sqrt(c) A H_0^-1 A_i',    u_k = A H_0^-1 e_J,

is one product of a sparse matrix with the rows F_i that the block has in common.  The steps are
those of ``newton_armijo.py``, taken by all folds that have not arrived yet.  A fold whose rank
outgrows the held matrix is handed back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.sparse import csr_array

from ...types import BoolArray, FloatArray, IntArray
from .design import Design
from .newton_armijo import ARMIJO, FLICKER, HALVINGS, MAX_STEPS, UNKNOWN, WORTH_UPDATING, Fit
from .updates import Held

__all__ = ["Block", "block_size", "leave_each_out"]

PADDED = 1 << 20  # entries of small systems that are solved together
SMALLEST, LARGEST, IN_CACHE = 32, 256, 1 << 18


def block_size(n: int) -> int:
    """Folds in a block, so that their f stay in the processor's cache."""
    return int(np.clip(IN_CACHE // n, SMALLEST, LARGEST))


def _runs(first: IntArray, count: IntArray) -> IntArray:
    """first_0, first_0 + 1, ..., count_0 of them, then those of the next run."""
    within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    return np.asarray(np.repeat(first, count) + within)


@dataclass(frozen=True)
class Small:
    """Systems of about one size: folds ``which``, their rows ``changed`` where ``real``."""

    which: IntArray
    changed: IntArray  # (b, m)
    real: BoolArray  # (b, m)
    matrix: FloatArray  # (b, m, m) or (b, m + 1, m + 1)


class Block:
    """Updates of one held matrix for folds that each leave out one row.

    Parameters
    ----------
    held : Held
    rows : ndarray of int
        The row that each fold leaves out, of positive weight.
    """

    def __init__(self, held: Held, rows: IntArray):
        design = held.design
        self.held, self.rows = held, rows
        self.root, self.n = sqrt(held.c), design.n
        self.place = np.full(self.n, -1, dtype=np.intp)
        self.F = np.empty((0, self.n))
        self.unit: FloatArray | None = None
        if design.own_columns:
            unit, corner = held.unit_columns(rows)
            self.unit, self.corner = np.ascontiguousarray(unit.T), np.diagonal(corner)
            self.lost = held.coefficients(rows)
        self.fetch(rows[held.active[rows]])

    def fetch(self, rows: IntArray) -> None:
        """Have the rows F_i of these."""
        new = rows[self.place[rows] < 0]
        if len(new):
            self.place[new] = len(self.F) + np.arange(len(new))
            self.F = np.vstack([self.F, self.held.row_columns(new).T])

    def rank(self, active: BoolArray) -> IntArray:
        """r of each set of support vectors."""
        changed = np.count_nonzero(active != self.held.active, axis=1)
        return np.asarray(changed + (self.unit is not None))

    def systems(self, folds: IntArray, active: BoolArray) -> Iterator[Small]:
        """The small systems of these folds with these support vectors."""
        differ = active != self.held.active
        fold, row = np.nonzero(differ)
        self.fetch(np.unique(row))
        count = np.bincount(fold, minlength=len(folds))
        first = np.cumsum(count) - count
        order = np.argsort(count, kind="stable")
        start = 0
        while start < len(order):
            # Sizes within a factor of two of each other, or all small.
            least = int(count[order[start]])
            stop = int(np.searchsorted(count[order], max(2 * least, 4), side="right"))
            stop = min(stop, start + max(1, PADDED // max(int(count[order[stop - 1]]), 1) ** 2))
            some = order[start:stop]
            real = np.arange(int(count[some].max())) < count[some, None]
            changed = np.zeros(real.shape, dtype=np.intp)
            # Row by row, as np.nonzero found them.
            changed[real] = row[_runs(first[some], count[some])]
            yield Small(folds[some], changed, real, self._matrix(folds[some], changed, real))
            start = stop

    def _matrix(self, which: IntArray, changed: IntArray, real: BoolArray) -> FloatArray:
        held, m = self.held, changed.shape[1]
        size = m + (self.unit is not None)
        M = np.zeros((len(which), size, size))
        one, other, where = changed[:, :, None], changed[:, None, :], self.place[changed]
        block = self.root * self.F[np.where(real, where, 0)[:, :, None], other]
        gone = held.active[changed] & real
        leaving = gone[:, :, None] & gone[:, None, :]
        block = np.where(leaving, held.leaving_entries(one, other, block), block + (one == other))
        M[:, :m, :m] = np.where(real[:, :, None] & real[:, None, :], block, 0.0)
        M[:, np.arange(m), np.arange(m)] += ~real
        if self.unit is not None:
            M[:, :m, m] = np.where(real, self.root * self.unit[which[:, None], changed], 0.0)
            M[:, m, :m] = M[:, :m, m]
            M[:, m, m] = self.corner[which]
        return M

    def solve(
        self, systems: Iterator[Small], right: FloatArray, units: FloatArray | None
    ) -> tuple[csr_array, FloatArray]:
        """q for all folds of the block: (B, n) for rows, (B,) for the left-out columns.

        ``right`` is read at the changed rows, ``units`` at the columns.
        """
        B = len(self.rows)
        folds, rows, values = [], [], []
        of_units = np.zeros(B)
        for small in systems:
            m = small.changed.shape[1]
            side = np.zeros(small.matrix.shape[:2])
            side[:, :m] = np.where(small.real, right[small.which[:, None], small.changed], 0.0)
            if units is not None:
                side[:, m] = units[small.which]
            q = np.linalg.solve(small.matrix, side[:, :, None])[:, :, 0]
            if units is not None:
                of_units[small.which] = q[:, m]
            folds.append(np.repeat(small.which, small.real.sum(axis=1)))
            rows.append(small.changed[small.real])
            values.append(q[:, :m][small.real])
        where = (np.concatenate(folds), np.concatenate(rows))
        return csr_array((np.concatenate(values), where), shape=(B, self.n)), of_units

    def spread(self, q: csr_array, of_units: FloatArray, folds: IntArray) -> FloatArray:
        """A H_0^-1 U q for these folds."""
        part = q[folds]
        moved = csr_array(
            (part.data, self.place[part.indices], part.indptr), shape=(len(folds), len(self.F))
        )
        out: FloatArray = moved @ self.F
        if self.unit is not None:
            out += of_units[folds, None] * self.unit[folds]
        return out

    def target(self, folds: IntArray, active: BoolArray) -> FloatArray:
        """f at the minimisers of the quadratics on ``active``, one row a fold."""
        held = self.held
        right = np.broadcast_to(self.root * (held.f - held.design.t), (len(self.rows), self.n))
        lost = None if self.unit is None else self.lost
        q, of_units = self.solve(self.systems(folds, active), right, lost)
        f: FloatArray = held.f - self.spread(q, of_units, folds)
        return f


class Settled:
    """What `newton.Updated` does, for the folds of a block that ended at ``active``."""

    def __init__(self, block: Block, folds: IntArray, active: BoolArray):
        self.block, self.folds, self.active = block, folds, active
        self.systems = list(block.systems(folds, active))

    def _whole(self, which: IntArray, part: FloatArray) -> FloatArray:
        whole = np.zeros((len(self.block.rows), part.shape[1]))
        whole[self.folds[which]] = part
        return whole

    def solve(self, which: IntArray, G: FloatArray) -> FloatArray:
        """H^-1 g, one row of G for each solution in ``which``."""
        block, held = self.block, self.block.held
        A, folds = held.design.A, self.folds[which]
        solved = self._whole(which, held.solve(G))
        right = block.root * (solved @ A.T)
        units = None if block.unit is None else solved[np.arange(len(solved)), block.rows]
        q, of_units = block.solve(iter(self.systems), right, units)
        taken = block.root * (q[folds] @ A)
        here = np.arange(len(folds))
        if block.unit is not None:
            taken[here, block.rows[folds]] += of_units[folds]
        steps = held.solve(G - taken)
        if block.unit is not None:
            steps[here, block.rows[folds]] = 0.0
        return steps

    def correct(self, which: IntArray, rho: FloatArray) -> FloatArray:
        """What the residuals rho say is missing from the multipliers (no columns dropped)."""
        block, held = self.block, self.block.held
        joined = np.where(self.active[which] & ~held.active, rho / block.root, 0.0)
        values = held.apply(rho)
        columns = np.flatnonzero(joined.any(axis=0))
        values += joined[:, columns] @ block.F[block.place[columns]]
        whole = self._whole(which, block.root * values)
        q, of_units = block.solve(iter(self.systems), whole, None)
        values -= block.spread(q, of_units, self.folds[which])
        return np.where(self.active[which], rho - held.c * values, 0.0)


@dataclass
class State:
    """Where the folds of a block are; ``full``: the last step was a full one."""

    alpha: FloatArray
    f: FloatArray
    active: BoolArray
    full: BoolArray
    done: BoolArray
    steps: list[list[tuple[int, int]]]


def leave_each_out(
    block: Block, cancelled: Callable[[], None] = lambda: None
) -> tuple[list[Fit | None], Settled | None]:
    """The solutions of all folds, None where the rank outgrew the held matrix."""
    held, B = block.held, len(block.rows)
    design, c = held.design, held.c
    train = np.tile(design.used, (B, 1))
    train[np.arange(B), block.rows] = False
    active = held.active & train
    most = WORTH_UPDATING * held.size
    outgrown = block.rank(active) > most
    state = State(
        np.zeros((B, design.n)),
        np.zeros((B, design.n)),
        active,
        np.ones(B, dtype=bool),
        outgrown.copy(),
        [[(size, size)] for size in np.count_nonzero(active, axis=1).tolist()],
    )
    going = np.flatnonzero(~state.done)
    if len(going):
        state.f[going] = block.target(going, active[going])
        state.alpha[going] = _multipliers(design, state.f[going], active[going], c)
    converged = np.zeros(B, dtype=bool)
    for _ in range(MAX_STEPS):
        cancelled()
        going = np.flatnonzero(~state.done)
        if not len(going):
            break
        _step(block, state, train, going, outgrown, converged, most)
    return _results(block, state, outgrown, converged)


def _step(
    block: Block,
    state: State,
    train: BoolArray,
    going: IntArray,
    outgrown: BoolArray,
    converged: BoolArray,
    most: float,
) -> None:
    """One Newton step of the folds ``going``."""
    design, c = block.held.design, block.held.c
    f = state.f[going]
    support = train[going] & (design.y * (design.t - f) > 0)
    differ = support != state.active[going]
    arrived = state.full[going] & _negligible(design, c, state.alpha[going], f, differ)
    converged[going[arrived]] = True
    state.done[going[arrived]] = True
    left = ~arrived
    large = left & (block.rank(support) > most)
    outgrown[going[large]] = True
    state.done[going[large]] = True
    left &= ~large
    if not left.any():
        return
    going, support, f, differ = going[left], support[left], f[left], differ[left]
    new_f = block.target(going, support)
    new_alpha = _multipliers(design, new_f, support, c)
    alpha = state.alpha[going]
    step = np.ones(len(going))
    back = train[going] & (design.y * (design.t - new_f) > 0)
    moving = np.flatnonzero((back != support).any(axis=1))
    if len(moving):
        here, there = (alpha[moving], f[moving]), (new_alpha[moving], new_f[moving])
        step[moving] = _armijo(design, c, train[going[moving]], here, there)
    stuck = step == 0.0
    state.done[going[stuck]] = True
    sizes = np.count_nonzero(support, axis=1).tolist()
    for k, pair in zip(going, zip(sizes, differ.sum(axis=1).tolist(), strict=True), strict=True):
        state.steps[k].append(pair)
    moved, s = going[~stuck], step[~stuck, None]
    full = s[:, 0] == 1.0
    state.active[moved], state.full[moved] = support[~stuck], full
    old_alpha, old_f = alpha[~stuck], f[~stuck]
    to_alpha, to_f = new_alpha[~stuck], new_f[~stuck]
    state.alpha[moved] = np.where(s == 1.0, to_alpha, old_alpha + s * (to_alpha - old_alpha))
    state.f[moved] = np.where(s == 1.0, to_f, old_f + s * (to_f - old_f))


def _results(
    block: Block, state: State, outgrown: BoolArray, converged: BoolArray
) -> tuple[list[Fit | None], Settled | None]:
    fits: list[Fit | None] = [None] * len(block.rows)
    good = np.flatnonzero(~outgrown)
    for k in good:
        fits[k] = Fit(
            state.alpha[k], UNKNOWN, state.f[k], state.active[k], bool(converged[k]), state.steps[k]
        )
    return fits, Settled(block, good, state.active[good]) if len(good) else None


def _multipliers(design: Design, f: FloatArray, active: BoolArray, c: float) -> FloatArray:
    return np.where(active, c * (design.t - f), 0.0)


def _negligible(
    design: Design, c: float, alpha: FloatArray, f: FloatArray, differ: BoolArray
) -> BoolArray:
    """``newton._negligible``, fold by fold."""
    found: BoolArray = np.logical_not(differ.any(axis=1))
    rest = np.flatnonzero(~found)
    if len(rest):
        left = c * (np.where(differ[rest], np.abs(design.t - f[rest]), 0.0) @ design.norms)
        length = np.sqrt(np.maximum(np.einsum("ij,ij->i", alpha[rest], f[rest]), 0.0))
        found[rest] = left <= FLICKER * np.maximum(1.0, length)
    return found


def _armijo(
    design: Design,
    c: float,
    train: BoolArray,
    here: tuple[FloatArray, FloatArray],
    there: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """``newton._armijo``, fold by fold."""
    (alpha, f), (new_alpha, new_f) = here, there
    a, cross, end = (
        np.einsum("ij,ij->i", *pair) for pair in ((alpha, f), (alpha, new_f), (new_alpha, new_f))
    )
    b, q = cross - a, end - 2.0 * cross + a

    def slacks(at: FloatArray, which: IntArray) -> FloatArray:
        return np.where(train[which] & (design.y * (design.t - at) > 0), design.t - at, 0.0)

    everyone = np.arange(len(f))
    slack = slacks(f, everyone)
    slope = b - c * np.einsum("ij,ij->i", slack, new_f - f)
    start = 0.5 * a + 0.5 * c * np.einsum("ij,ij->i", slack, slack)
    step, trying, s = np.zeros(len(f)), everyone, 1.0
    for _ in range(HALVINGS):
        at = new_f[trying] if s == 1.0 else f[trying] + s * (new_f[trying] - f[trying])
        slack = slacks(at, trying)
        value = 0.5 * (a + s * (2.0 * b + s * q))[trying]
        value += 0.5 * c * np.einsum("ij,ij->i", slack, slack)
        bar = start + ARMIJO * s * slope + 1e-14 * np.abs(start)
        good = value <= bar[trying]
        step[trying[good]] = s
        trying = trying[~good]
        if not len(trying):
            break
        s *= 0.5
    return step
