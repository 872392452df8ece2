"""Leave-one-out inside leave-one-out of two classes: every pair of rows serves two outer folds.

The model without rows i and j judges row j in the inner folds of outer row i, and row i in those of
outer row j.  So the pairs are gone through once, grid point after grid point, for all outer folds
together (``engine/leave_two_out.py``); kept is what the choice needs, n numbers a grid point, and
the table of all pairs at one grid point in each thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..engine.leave_two_out import LeaveTwoOut
from ..engine.path import Point
from ..judge.certificate import Certificate
from ..judge.ledger import HOW
from ..problem.folds import Folds, leave_one_out_folds
from ..problem.grid import Grid
from ..problem.kernels import Kernel
from ..runtime.threads import Workers
from ..types import BoolArray, FloatArray, IntArray
from .all_pairs import MOST_ROWS, each_point
from .nested_parts import Parts
from .run import KernelRows
from .scoring import LeftOut
from .tuning import Curve, Tuning, error_and_se

__all__ = ["TwoRows", "suits"]


def suits(tuning: Tuning, outer: Folds, inner: Folds) -> bool:
    """Can pairs of rows be gone through together?  ``inner`` are the folds without row 0."""
    fewest = np.bincount(tuning.codes).min()
    return bool(
        outer.every_row_alone
        and inner.every_row_alone
        and len(tuning.classes) == 2
        and fewest >= 3
        and tuning.plan.method == "exact"
        and tuning.plan.loss == "hinge"
        and tuning.scorer.labels_only
        and (tuning.weight > 0).all()
        and outer.n <= MOST_ROWS
    )


@dataclass(frozen=True)
class _Found:
    """What the choices of all outer rows need, of one kernel: (L, n) each, but for ``counts``."""

    kernel: Kernel
    gamma: float | None
    error: FloatArray
    se: FloatArray
    n_errors: IntArray
    score: FloatArray
    kkt: FloatArray
    gap: FloatArray
    value: FloatArray  # of row i without row i
    at_bound: FloatArray  # (L,), on all rows
    counts: IntArray  # (n, 4)


_TABLES = ("error", "se", "n_errors", "score", "kkt", "gap", "value", "at_bound", "counts")


class TwoRows:
    """Inner curves without each outer row.

    Parameters
    ----------
    tuning : Tuning
        Of all rows, with gamma as numbers.
    rows_of : callable
        Gives the kernel matrix of all rows.
    store : Parts or None
        Where finished kernels are kept.
    """

    def __init__(
        self,
        tuning: Tuning,
        rows_of: Callable[[Kernel, Workers], KernelRows],
        store: Parts | None = None,
    ):
        self.tuning, self.rows_of, self.store = tuning, rows_of, store
        self._found: dict[tuple[Kernel, bytes], _Found | None] = {}

    def curve(self, row: int, kernel: Kernel, grid: Grid, workers: Workers) -> Curve | None:
        """The curve without one row; None if it has to be found in another way."""
        found = self.get(kernel, grid, workers)
        if found is None:
            return None
        kkt, gap = found.kkt[:, row].copy(), found.gap[:, row].copy()
        tol = self.tuning.plan.tol
        short = np.flatnonzero(~((kkt <= tol) & (gap <= tol)))
        unresolved = [(int(l), -1) for l in short]
        return Curve(
            kernel=found.kernel,
            gamma=found.gamma,
            error=found.error[:, row],
            se=found.se[:, row],
            n_errors=found.n_errors[:, row],
            labels=np.zeros((len(grid), 0), dtype=np.int16),
            score=found.score[:, row],
            at_bound=found.at_bound,
            fits=(),
            certificate=Certificate(kkt, gap, not unresolved, unresolved, tol),
            stats={"missing": 0, **dict(zip(HOW[1:], found.counts[row].tolist(), strict=True))},
            decision=None,
        )

    def value(self, row: int, kernel: Kernel, C: float) -> float:
        """What the model without a row says of it."""
        for (known, Cs), found in self._found.items():
            at = np.flatnonzero(np.frombuffer(Cs) == C)
            if known == kernel and found is not None and len(at):
                return float(found.value[at[0], row])
        raise KeyError((kernel, C))

    def get(self, kernel: Kernel, grid: Grid, workers: Workers) -> _Found | None:
        """Go through all pairs with this kernel, the first time."""
        key = kernel, grid.Cs.tobytes()
        if key not in self._found:
            rows = self.rows_of(kernel, workers)
            self._found[key] = self._kept(rows, grid, workers) if rows.psd else None
        return self._found[key]

    def _kept(self, rows: KernelRows, grid: Grid, workers: Workers) -> _Found:
        """From the store if it is there; else it is computed and put there."""
        name = f"pairs-{len(self._found) + 1:03d}"
        tree = None if self.store is None else self.store.load(name)
        if tree is not None and np.array_equal(tree["Cs"], grid.Cs):
            tables = {name: tree[name] for name in _TABLES}
            return _Found(kernel=rows.kernel, gamma=rows.gamma, **tables)
        found = self._through(rows, grid, workers)
        if self.store is not None:
            tables = {name: getattr(found, name) for name in _TABLES}
            self.store.save(name, {"Cs": grid.Cs, **tables})
        return found

    def _through(self, rows: KernelRows, grid: Grid, workers: Workers) -> _Found:
        tuning, n = self.tuning, len(self.tuning.codes)
        gamma = "" if rows.gamma is None else f"gamma={rows.gamma:.4g}, "
        workers.watch.say(f"{gamma}{len(grid)} grid points, {n * (n - 1) // 2} pairs of rows")
        signs = np.where(tuning.codes == 1, 1.0, -1.0)
        plan = replace(tuning.plan, want_decision=True)
        task = plan.task(rows, signs, tuning.weight, leave_one_out_folds(n), grid)
        tables = {name: np.zeros((len(grid), n)) for name in ("error", "se", "score", "kkt", "gap")}
        n_errors = np.zeros((len(grid), n), dtype=np.intp)
        counts = np.zeros((len(grid), n, len(HOW) - 1), dtype=np.intp)

        def work(two: LeaveTwoOut, l: int, point: Point) -> None:
            out = two.labels(l, point)
            inner = out.wrong[~np.eye(n, dtype=bool)].reshape(n, n - 1)
            n_errors[l] = inner.sum(axis=1)
            tables["error"][l], tables["se"][l] = self._errors(inner)
            tables["score"][l] = self._scores(inner, 1.0 - tables["error"][l])
            tables["kkt"][l], tables["gap"][l] = out.kkt, out.gap
            counts[l] = out.counts

        ledger = each_point(task, workers, work).ledger
        return _Found(
            kernel=rows.kernel,
            gamma=rows.gamma,
            n_errors=n_errors,
            value=ledger.decision.copy(),
            at_bound=ledger.at_bound(),
            counts=counts.sum(axis=0),
            **tables,
        )

    def _errors(self, inner: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Error and standard error of each outer row's inner folds."""
        weight, n = self.tuning.sample_weight, len(inner)
        offsets = np.arange(n)
        if (weight == weight[0]).all():
            return error_and_se(inner, offsets, np.ones(n - 1))
        each = [error_and_se(inner[i : i + 1], offsets, np.delete(weight, i)) for i in range(n)]
        error, se = (np.concatenate(part) for part in zip(*each, strict=True))
        return error, se

    def _scores(self, inner: BoolArray, accuracy: FloatArray) -> FloatArray:
        tuning, n = self.tuning, len(inner)
        if tuning.scorer.call is None:
            return accuracy
        score = np.empty(n)
        for i in range(n):
            rows = np.delete(np.arange(n), i)
            codes = tuning.codes[rows]
            labels = np.where(inner[i], 1 - codes, codes)
            left_out = LeftOut(
                tuning.classes, codes, labels, None, tuning.sample_weight[rows], tuning.shape
            )
            arguments = {name: value[rows] for name, value in tuning.score_arguments.items()}
            score[i] = left_out.score_with(tuning.scorer, tuning.shown[rows], arguments)
        return score
