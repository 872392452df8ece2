"""Methods ``ato``, ``mir``, ``sir``, ``avg``, ``top``: SMO, each fold started from another one.

Z. Wen, B. Li, R. Kotagiri, J. Chen, Y. Chen and R. Zhang (2017).  The seeds are in the files beside
this one, one file each; the solver is that of ``refit``.  A seed decides where SMO starts, never
where it ends.

``method_options``:

- ``warm_C`` (default False): only the smallest C of the grid is seeded from fold to fold; from
  there each fold follows its own solution along rising C.  It pays where neighbouring C are within
  a factor of two: on 200 rows, 10 folds, C from 0.1 to 50, it changes SIR's iterations by +2, -12
  and -30 percent with 4, 12 and 40 values of C.
- ``max_iter``: SMO iterations for one problem; what hits the limit is not converged.
- ``max_steps`` (``ato``; default None, no limit): steps of one seed.
- ``delta_f`` (``mir``; "zero" or "printed"): the right-hand side of its least squares.
- ``match`` (``sir``; "nearest" or "printed"): who may be given a row's alpha.

With ``tol`` of 1e-5 or more SMO runs plain and stops where LIBSVM would (violation at most tol):
the papers' setting, in which iteration counts compare with theirs.  The certificate judges the
duality gap too, and says so when that is larger.  Below, subspace steps finish the work.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Any

import numpy as np

from ...engine.kernel_rows import MatrixRows
from ...judge.ledger import Ledger
from ...problem.problem import Task
from ...runtime.threads import Workers
from ...types import FloatArray
from ..base import FoldKind, Support
from ..options import Option, choice, flag, read_options, whole
from .chain import FROM_FULL, Chain, Counts, Placed
from .mir import DELTA_F
from .sir import MATCH

__all__ = ["ATO", "AVG", "MIR", "SIR", "TOP", "AlphaSeeding"]

# From this tolerance on, plain SMO.
PLAIN = 1e-5
# The judge's measures differ a little from the solver's: leave some room.
ROOM = 0.1
# Solutions entered in the ledger at a time.
BATCH = 64
OPTIONS = (
    Option("warm_C", False, "follow each fold along C instead of seeding it at every C", flag),
    Option("max_iter", 10_000_000, "SMO iterations for one problem", whole()),
)
# What one seed lets choose.
OWN_OPTIONS = {
    "ato": (
        Option("max_steps", None, "steps of one seed; None: until R is empty", whole(0, True)),
    ),
    "mir": (
        Option("delta_f", "zero", "right-hand side of (18): ours or printed", choice(*DELTA_F)),
    ),
    "sir": (
        Option("match", "nearest", "who is given an alpha: ours or Algorithm 3", choice(*MATCH)),
    ),
}


class AlphaSeeding:
    """One scheme of seeding."""

    def __init__(self, scheme: str, support: Support):
        self.scheme = scheme
        self.support = support

    def run(self, task: Task, ledger: Ledger, workers: Workers) -> dict[str, Any]:
        options = read_options(self.scheme, self.support.options, task.options)
        start = perf_counter()
        rising = np.argsort(task.grid.Cs, kind="stable")
        if options["warm_C"]:
            parts = self._warm(task, ledger, workers, rising, options)
        else:
            parts = workers.map(
                lambda l: self._one_C(task, ledger, workers, int(l), options), rising[::-1]
            )
        counts = _by_grid_point(len(task.grid), (part for some in parts for part in some))
        counts["timings"] = {"folds": perf_counter() - start - ledger.seconds / workers.n_threads}
        return counts

    def _chain(self, task: Task, workers: Workers, options: dict[str, Any]) -> Chain:
        problem, plain = task.problem, task.tol >= PLAIN
        return Chain(
            source=problem.rows or MatrixRows(problem.K),
            loss=problem.loss,
            weight=problem.weight,
            scheme=self.scheme,
            tol=task.tol if plain else ROOM * task.tol,
            polish=not plain,
            fit_intercept=problem.fit_intercept,
            max_iter=options["max_iter"],
            cancel=workers.cancel,
            choices={one.name: options[one.name] for one in OWN_OPTIONS.get(self.scheme, ())},
        )

    def _one_C(
        self, task: Task, ledger: Ledger, workers: Workers, l: int, options: dict[str, Any]
    ) -> list[tuple[int, Counts, Counts]]:
        """All folds at one grid point: (grid point, cost of the full data, cost of the folds)."""
        chain = self._chain(task, workers, options)
        full = _full(task, ledger, chain, l)
        on_full, chain.counts = chain.counts, Counts()
        pending: list[tuple[int, Placed]] = []
        for solved in chain.run(task.folds, _fold_Cs(task, l), full):
            pending.append(solved)
            if len(pending) == BATCH:
                _enter(ledger, l, pending)
        _enter(ledger, l, pending)
        return [(l, on_full, chain.counts)]

    def _warm(
        self,
        task: Task,
        ledger: Ledger,
        workers: Workers,
        rising: Any,
        options: dict[str, Any],
    ) -> list[list[tuple[int, Counts, Counts]]]:
        """Seeded from fold to fold at the smallest C, then every fold along C."""
        first, later = int(rising[0]), rising[1:]
        chain = self._chain(task, workers, options)

        def along(placed: Placed, Cs: FloatArray) -> tuple[list[Placed], list[Counts]]:
            solved, costs = [], []
            for C in Cs:
                mine = self._chain(task, workers, options)
                placed = mine.along(placed, float(C))
                solved.append(placed)
                costs.append(mine.counts)
            return solved, costs

        def at_first() -> tuple[Placed, Counts, list[tuple[int, Placed]]]:
            full = _full(task, ledger, chain, first)
            on_full, chain.counts = chain.counts, Counts()
            solved = list(chain.run(task.folds, _fold_Cs(task, first), full))
            for batch in range(0, len(solved), BATCH):
                _enter(ledger, first, solved[batch : batch + BATCH])
            return full, on_full, solved

        full, on_full, solved = workers.run(at_first)
        parts = [(first, on_full, chain.counts)]
        points, costs = workers.run(lambda: along(full, task.grid.Cs[later]))
        for l, point, cost in zip(later, points, costs, strict=True):
            ledger.full(int(l), point.solution.coef)
            parts.append((int(l), cost, Counts()))

        def one_fold(item: tuple[int, Placed]) -> list[tuple[int, Counts, Counts]]:
            fold, placed = item
            points, costs = along(placed, task.fold_Cs(fold)[later])
            for l, point in zip(later, points, strict=True):
                _enter(ledger, int(l), [(fold, point)])
            return [(int(l), Counts(), cost) for l, cost in zip(later, costs, strict=True)]

        return [parts, *workers.map(one_fold, solved)]


def _full(task: Task, ledger: Ledger, chain: Chain, l: int) -> Placed:
    """The solution on all rows, entered."""
    everyone = np.arange(task.problem.n, dtype=np.intp)
    full = chain.cold(everyone, float(task.grid.Cs[l]))
    ledger.full(l, full.solution.coef)
    return full


def _fold_Cs(task: Task, l: int) -> FloatArray:
    return np.array([task.fold_Cs(fold)[l] for fold in range(len(task.folds))])


def _enter(ledger: Ledger, l: int, solved: list[tuple[int, Placed]]) -> None:
    """Enter the folds' solutions, and forget them."""
    if solved:
        coef = np.array([placed.solution.coef for _, placed in solved])
        ledger.solved(l, [fold for fold, _ in solved], coef)
        solved.clear()


def _by_grid_point(size: int, parts: Iterable[tuple[int, Counts, Counts]]) -> dict[str, Any]:
    """Counts along the grid."""
    out: dict[str, Any] = {
        name: np.zeros(size, dtype=np.intp)
        for name in ("iterations", "full_iterations", "kernel_evaluations")
    }
    seconds, failed = 0.0, 0
    for l, full, folds in parts:
        out["iterations"][l] += folds.iterations
        out["full_iterations"][l] += full.iterations
        out["kernel_evaluations"][l] += full.kernel_evaluations + folds.kernel_evaluations
        seconds += full.seeding_seconds + folds.seeding_seconds
        failed += full.not_converged + folds.not_converged
    return out | {"seeding_seconds": seconds, "not_converged": failed}


_PAPER = (
    "Wen, Li, Kotagiri, Chen, Chen & Zhang (2017), Improving Efficiency of SVM k-fold "
    "Cross-Validation by Alpha Seeding, AAAI"
)


def _make(scheme: str, summary: str) -> AlphaSeeding:
    folds: tuple[FoldKind, ...] = ("loo",) if scheme in FROM_FULL else ("loo", "k-fold")
    options = OPTIONS + OWN_OPTIONS.get(scheme, ())
    return AlphaSeeding(
        scheme,
        Support(
            summary=summary,
            paper=_PAPER,
            losses=("hinge",),
            folds=folds,
            row_cache=scheme != "ato",  # which holds the columns of all free rows
            options=options,
        ),
    )


ATO = _make("ato", "SMO from the previous fold, coefficients ramped up and down towards optimum")
MIR = _make("mir", "SMO from the previous fold, new coefficients by least squares")
SIR = _make("sir", "SMO from the previous fold, each coefficient handed to the most similar row")
AVG = _make("avg", "SMO from the full solution, what a row leaves spread evenly")
TOP = _make("top", "SMO from the full solution, what a row leaves given to the rows most like it")
