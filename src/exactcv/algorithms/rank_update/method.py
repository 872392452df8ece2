"""Method ``rank_update``: the smooth SVM, its folds by rank-r updates (Tseng & Lee 2012).

    min over theta   1/2 ||theta||^2 + C sum_{i in train} w_i (1 - y_i f_i)_+^2

with ``kernel="linear"``  f = X w + b and theta = (w, b);  with any other kernel f = K u + b and
theta = (u, b): the kernel matrix is the data, and a row that is left out takes its column along.
The loss and C are those of every method with a squared hinge (so lambdas convert by C = 1 / (2 n
lambda)); the paper's c is 2 C.  The penalty is its own: on the intercept too, and on u itself
(``penalty="ridge"`` in ``problem/problem.py``).  It is asked for by ``method="rank_update",
loss="squared_hinge"`` (``method_options={"strategy": ...}`` forces a strategy).  Sample weights
count copies of a row (``design.py``).

For each C the full data are solved by Newton-Armijo and the matrix of strategy I or II is held for
the support vectors found.  A fold then is a small system away (``updates.py``).  A fold that
loses no support vector and no column with a coefficient is settled without work (Algorithm 2; the
paper does not look at the columns).  The ledger recomputes every gradient; a fold that misses
``GRADIENT`` is solved again from its own factorisation.

In the result ``coef`` is u; for the linear kernel it is such that w = X' coef: the multipliers
2 C w_i y_i (1 - y_i f_i)_+, or shorter coefficients (``represent.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from ...judge.ledger import FALLBACK, Ledger
from ...problem.problem import Problem, Task
from ...runtime.threads import Cancelled, Workers
from ...types import BoolArray, FloatArray, IntArray
from ..base import Support
from ..options import Option, choice
from .block import Block, block_size, leave_each_out
from .design import Design, make_design
from .newton_armijo import (
    GRADIENT,
    STRATEGIES,
    WORTH_HOLDING,
    WORTH_UPDATING,
    Fit,
    Updated,
    fit,
    hold,
    leave_afresh,
    leave_out,
    multipliers,
    refine,
)
from .represent import Representer
from .updates import NONE, Fresh, Held, Leaving, price_afresh, price_of_updating

__all__ = ["METHOD", "RankUpdate"]

EPSILON = float(np.finfo(float).eps)
FOLD_STEPS = 2  # Newton steps of a fold; more often than not


@dataclass
class Counts:
    """What is counted over all folds."""

    newton_steps: int = 0
    rank: int = 0
    refactored: int = 0
    solved: int = 0

    def add(self, other: Counts) -> None:
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True)
class Full:
    """A full-data solution and, unless every step starts afresh, the matrix held for it."""

    design: Design
    c: float
    fit: Fit
    held: Held | None
    coef: FloatArray  # (1, n)
    intercept: FloatArray | None
    represent: Representer | None
    free: bool = False  # to solve a fold afresh where that takes fewer operations

    def updates(self, rows: IntArray, columns: IntArray) -> bool:
        """Is a fold that loses these support vectors and columns to be updated?"""
        rank = len(rows) + len(columns)
        if self.held is None or rank > WORTH_UPDATING * self.held.size:
            return False
        left = int(self.fit.active.sum()) - len(rows)
        afresh = FOLD_STEPS * price_afresh(self.design, left)
        return not self.free or price_of_updating(self.design, self.held.size, rank, rank) < afresh


class RankUpdate:
    """Smooth SVM by Newton's method with updates of the Hessian's inverse.

    Parameters
    ----------
    strategy : {"auto", "I", "II", "none"}
        Which matrix is held and updated: I + c A'SA (d x d), S^-1 + c A A' (l_sv x l_sv), the
        cheaper of the two (none if that is tiny), or none: every Newton step factorises its own.
    """

    support = Support(
        summary="smooth SVM (penalised intercept, kernel matrix as data) by rank-r updates",
        paper="Tseng & Lee (2012), Rank-r updating techniques for fast exact cross-validation",
        losses=("squared_hinge",),
        folds=("loo", "k-fold", "any"),
        penalty="ridge",
        any_kernel=True,  # its matrix is data: the ridge is on u itself
        options=(
            Option(
                "strategy",
                "auto",
                "the matrix that is held: I (of features), II (of support vectors), none, or auto",
                choice(*STRATEGIES),
            ),
        ),
    )

    def __init__(self, strategy: str = "auto"):
        self.strategy = strategy

    def run(self, task: Task, ledger: Ledger, workers: Workers) -> dict[str, Any]:
        chosen = task.options.get("strategy", self.strategy)
        if chosen != self.strategy:
            return RankUpdate(chosen).run(replace(task, options={}), ledger, workers)
        design = design_of(task.problem)
        counts, used, support = Counts(), [""] * len(task.grid), [0] * len(task.grid)
        seconds = {"path": 0.0, "folds": 0.0}
        active = None
        for l in np.argsort(task.grid.Cs, kind="stable"):
            start, judged = perf_counter(), ledger.seconds
            full = workers.run(partial(self._full, task, ledger, design, int(l), active))
            middle, between = perf_counter(), ledger.seconds
            seconds["path"] += middle - start - (between - judged)
            active = full.fit.active
            used[l] = type(full.held).__name__ if full.held else "none"
            support[l] = int(active.sum())
            for c, folds in _by_constant(task, int(l)):
                base = full
                if c != full.c:
                    base = workers.run(partial(self._base, task, design, c, active))
                self._folds(task, ledger, workers, int(l), base, folds, c == full.c, counts)
            judging = (ledger.seconds - between) / workers.n_threads
            seconds["folds"] += max(perf_counter() - middle - judging, 0.0)
        return {
            "strategy": used,
            "support_vectors": support,
            "newton_steps": counts.newton_steps,
            "mean_rank": counts.rank / max(counts.solved, 1),
            "refactored": counts.refactored,
            "timings": seconds,
        }

    def _full(self, task: Task, ledger: Ledger, design: Design, l: int, active: Any) -> Full:
        """Solve the full data, enter them, and hold the matrix for the folds."""
        c = paper_c(task.grid.Cs[l])
        full = self._base(task, design, c, active)
        if not ledger.full(l, full.coef, full.intercept, within=attainable(design, c))[0]:
            found = leave_afresh(design, c, design.used, NONE, full.fit.active)
            full = self._hold(task, design, c, found, True)
            ledger.full(l, full.coef, full.intercept)
        return full

    def _base(self, task: Task, design: Design, c: float, active: Any) -> Full:
        return self._hold(task, design, c, fit(design, c, self.strategy, active))

    def _hold(
        self, task: Task, design: Design, c: float, found: Fit, careful: bool = False
    ) -> Full:
        held = None
        tiny = min(design.d, int(found.active.sum())) < WORTH_HOLDING
        tiny = tiny and not task.folds.leave_one_out  # those are updated many at a time
        if self.strategy != "none" and not (self.strategy == "auto" and tiny):
            held = hold(design, c, found.active, self.strategy)
        represent = None
        if not design.own_columns and found.active.sum() >= design.d:
            represent = Representer(design, found.active)
        fresh = _Afresh(design, c, [NONE], [found])
        coef, b = coefficients(design, c, [found], [NONE], represent, fresh, careful)
        return Full(design, c, found, held, coef, b, represent, self.strategy == "auto")

    def _folds(
        self,
        task: Task,
        ledger: Ledger,
        workers: Workers,
        l: int,
        full: Full,
        folds: IntArray,
        inherit: bool,
        counts: Counts,
    ) -> None:
        left_out = task.folds.left_out
        if inherit:
            idle = _idle(full, [left_out[fold] for fold in folds])
            ledger.unchanged(l, folds[idle])
            folds = folds[~idle]
        size = block_size(full.design.n) if task.folds.leave_one_out else 1
        blocks = [folds[first : first + size] for first in range(0, len(folds), size)]

        def work(block: IntArray) -> Counts:
            return _solve_block(task, ledger, l, full, block, workers)

        for part in workers.map(work, blocks):
            counts.add(part)


def paper_c(C: float) -> float:
    """The paper's c, whose loss is c/2 (1 - y f)_+^2; that of ``problem.py`` has no 1/2."""
    return 2.0 * float(C)


def design_of(problem: Problem) -> Design:
    """The scaled data of a problem."""
    own_columns = problem.features is None
    data = problem.K if problem.features is None else problem.features
    return make_design(data, problem.y, problem.weight, problem.fit_intercept, own_columns)


def coefficients(
    design: Design,
    c: float,
    fits: list[Fit],
    outs: list[IntArray],
    represent: Representer | None,
    system: System,
    careful: bool = False,
) -> tuple[FloatArray, FloatArray | None]:
    """What the ledger takes, one row a solution: u, or coef with w = X' coef; and b."""
    if not design.own_columns and represent is None:
        coef = multipliers(design, c, fits, system.correct, careful) * design.root
        # b is the judge's, given K coef.  What rounds off coef moves all of f alike where the
        # features are not centred; the best b takes that back, and the gradient is 5 to 100 times
        # smaller (colon, leuk).
        return coef, None
    dropped = [design.columns(rows) for rows in outs]
    fits = refine(design, c, fits, dropped, system.solve, careful=careful)
    w, b = design.split(np.array([found.theta for found in fits]))
    if represent is None:
        return w, b
    coef, good = represent(w, outs)
    for k in np.flatnonzero(~good):
        coef[k] = represent.from_all(w[k], _train(design, outs[k]))
    return coef * design.root, b


class System(Protocol):
    """How solutions are refined."""

    def solve(self, which: IntArray, G: FloatArray) -> FloatArray: ...

    def correct(self, which: IntArray, rho: FloatArray) -> FloatArray: ...


class _Afresh:
    """What `Updated` does, for solutions each with its own factor."""

    def __init__(self, design: Design, c: float, dropped: list[IntArray], fits: list[Fit]):
        self.fits = fits
        pairs = zip(fits, dropped, strict=True)
        self.factors = [found.factor or Fresh(design, c, columns) for found, columns in pairs]

    def solve(self, which: IntArray, G: FloatArray) -> FloatArray:
        pairs = zip(which, G, strict=True)
        return np.array([self.factors[k].solve(self.fits[k].active, g) for k, g in pairs])

    def correct(self, which: IntArray, rho: FloatArray) -> FloatArray:
        pairs = zip(which, rho, strict=True)
        return np.array([self.factors[k].correct(self.fits[k].active, r) for k, r in pairs])


def _by_constant(task: Task, l: int) -> Iterator[tuple[float, IntArray]]:
    """The folds, grouped by their C."""
    if task.folds.leave_one_out or not task.grid.scale_with_fold:
        yield paper_c(task.grid.Cs[l]), np.arange(len(task.folds))
        return
    own = np.array([task.fold_Cs(fold)[l] for fold in range(len(task.folds))])
    for C in np.unique(own):
        yield paper_c(C), np.flatnonzero(own == C)


def _idle(full: Full, outs: list[IntArray]) -> BoolArray:
    """Where does leaving these rows out change nothing?"""
    busy = full.fit.active.copy()
    if full.design.own_columns:
        busy |= full.coef[0] != 0.0
    return np.array([not busy[out].any() for out in outs], dtype=bool)


def attainable(design: Design, c: float) -> float:
    """`GRADIENT`, or what rounding of f alone leaves of the gradient c A' (t - f)_+."""
    return max(GRADIENT, 4.0 * EPSILON * c * float(np.linalg.norm(design.norms)))


def _solve_block(
    task: Task, ledger: Ledger, l: int, full: Full, folds: IntArray, workers: Workers
) -> Counts:
    """Solve folds, and enter them."""
    counts = Counts()
    outs = [task.folds.left_out[fold] for fold in folds]

    def check() -> None:
        if workers.cancel[0]:
            raise Cancelled

    alone, outgrown = np.arange(len(folds)), False
    if full.held is not None and task.folds.leave_one_out:
        found, settled = leave_each_out(Block(full.held, np.concatenate(outs)), check)
        alone, outgrown = np.flatnonzero([x is None for x in found]), True
        fits = [(k, x) for k, x in enumerate(found) if x is not None]
        if settled is not None:
            which = [k for k, _ in fits]
            some = [outs[k] for k in which]
            counts.add(_enter(ledger, l, full, folds[which], some, [x for _, x in fits], settled))
    # One at a time: each may have a factor of its own, which must not outlive it.
    for k in alone.tolist():
        check()
        fitted, system = _alone(full, outs[k], outgrown)
        counts.add(_enter(ledger, l, full, folds[k : k + 1], [outs[k]], [fitted], system))
    return counts


def _enter(
    ledger: Ledger,
    l: int,
    full: Full,
    folds: IntArray,
    outs: list[IntArray],
    fits: list[Fit],
    system: System,
) -> Counts:
    """Refine solutions and enter them; those that the judge turns down are solved again."""
    design, counts = full.design, Counts(solved=len(folds))
    counts.newton_steps = sum(len(found.steps) for found in fits)
    counts.rank = sum(int(np.count_nonzero(x.active != full.fit.active)) for x in fits)
    counts.rank += sum(len(design.columns(out)) for out in outs)
    coef, b = coefficients(design, full.c, fits, outs, full.represent, system)
    good = ledger.solved(l, folds, coef, b, within=attainable(design, full.c))
    for k in np.flatnonzero(~good).tolist():
        found = _solve_afresh(full, outs[k], fits[k].active)
        own = _Afresh(design, full.c, [design.columns(outs[k])], [found])
        coef, b = coefficients(design, full.c, [found], [outs[k]], full.represent, own, True)
        ledger.solved(l, folds[k : k + 1], coef, b, FALLBACK)
        counts.refactored += 1
    return counts


def _alone(full: Full, out: IntArray, afresh: bool) -> tuple[Fit, System]:
    """One fold, updated where that is worth it; and how to refine it."""
    design, held = full.design, full.held
    columns, rows = design.columns(out), out[full.fit.active[out]]
    if held is None or afresh or not full.updates(rows, columns):
        found = _solve_afresh(full, out, full.fit.active)
        return found, _Afresh(design, full.c, [columns], [found])
    leaving = Leaving(held, columns, rows)
    found = leave_out(leaving, _train(design, out))
    return found, Updated(held, [leaving], [found])


def _solve_afresh(full: Full, out: IntArray, active: BoolArray) -> Fit:
    design = full.design
    return leave_afresh(design, full.c, _train(design, out), design.columns(out), active)


def _train(design: Design, out: IntArray) -> BoolArray:
    train = design.used.copy()
    train[out] = False
    return train


METHOD = RankUpdate()
