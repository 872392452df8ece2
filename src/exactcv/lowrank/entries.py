"""What the low-rank mode found, entry by entry: a ledger for millions of rows.

Unlike ``judge/ledger.py`` it keeps no figures of single folds, only the worst of each grid point,
and its arrays may lie on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, Protocol

import numpy as np

from ..judge.certificate import Certificate
from ..judge.ledger import HOW
from ..types import BoolArray, FloatArray, IntArray
from .features import FeatureMap
from .passes.local import scratch_array
from .task import FeatureTask

__all__ = ["Entries", "SeenFolds"]

# Is shown solutions of folds that are not left out alone: fold -> (L, m + 1), with the intercept.
SeenFolds = Callable[[Mapping[int, FloatArray]], None]


class Full(Protocol):
    """What is entered of a full-data solution."""

    @property
    def theta(self) -> FloatArray: ...
    @property
    def primal(self) -> float: ...
    @property
    def at_bound(self) -> int: ...
    @property
    def kkt(self) -> float: ...
    @property
    def relative_gap(self) -> float: ...


class Entries:
    """Results of one cross-validation with features.

    Attributes
    ----------
    coef : None
        Of n numbers a grid point there would be too many; ``weights`` (L, m) takes its place.
    weights, intercept, objective : (L, m), (L,), (L,)
        The full-data solutions, and their objective in the papers' form; like the left-out values
        in the user's units.
    feature_map : FeatureMap
    wrong, decision : (L, T)
        Along ``folds.pair_rows``; decision is None unless wanted.
    kkt, gap : (L,)
        The worst over the full data and all folds.
    settled : dict
        How many (grid point, fold) slots were settled how.
    unresolved : list of (int, int)
    models : (L, F, m + 1) or None
        Weights and intercept of every fold, if they are to be kept.
    """

    coef = None
    weights: FloatArray
    intercept: FloatArray
    objective: FloatArray
    feature_map: FeatureMap

    def __init__(self, task: FeatureTask, seen: SeenFolds | None = None):
        self.task, self.units, self._seen = task, task.problem.loss.units, seen
        shape = len(task.grid), len(task.folds.pair_rows)
        size = shape[0] * shape[1] * (9 if task.want_decision else 1)
        on_disk, folder = size > task.budget // 4, task.options.folder
        self.wrong: BoolArray = scratch_array(shape, bool, on_disk, folder)
        self.decision: FloatArray | None = None
        if task.want_decision:
            self.decision = scratch_array(shape, float, on_disk, folder)
        self.kkt, self.gap = np.zeros(shape[0]), np.zeros(shape[0])
        self.models: FloatArray | None = None
        self.settled = dict.fromkeys(HOW, 0)
        self.unresolved: list[tuple[int, int]] = []
        self.seconds = 0.0  # judging takes place within the passes
        self._at_bound = np.zeros(shape[0])
        self._lock = Lock()

    # ---- entries ------------------------------------------------------------------------------

    def full(self, solved: Sequence[Full]) -> None:
        """Enter the full-data solutions, in grid order."""
        problem, units = self.task.problem, self.units
        self.weights = units.scale * np.array([one.theta[:-1] for one in solved])
        self.intercept = units.values(np.array([one.theta[-1] for one in solved]))
        self.objective = units.loss_scale * np.array([one.primal for one in solved])
        self.objective /= problem.n * self.task.grid.Cs
        used = np.count_nonzero(problem.weight > 0)
        self._at_bound = np.array([one.at_bound for one in solved]) / used
        for l, one in enumerate(solved):
            self.note(l, -1, one.kkt, one.relative_gap)

    def note(self, l: int, fold: int, kkt: float, gap: float) -> None:
        """Enter the judge's figures of one solution."""
        self.kkt[l], self.gap[l] = max(self.kkt[l], kkt), max(self.gap[l], gap)
        if not (kkt <= self.task.tol and gap <= self.task.tol):
            self.unresolved.append((l, fold))

    def model(self, l: int, fold: int, theta: FloatArray) -> None:
        """Enter the solution without a fold, if these are to be kept."""
        if not self.task.keep_models:
            return
        if self.models is None:
            self.models = np.empty((len(self.task.grid), len(self.task.folds), len(theta)))
        self.models[l, fold] = self.units.scale * theta
        self.models[l, fold, -1] = self.units.values(theta[-1])

    def features(self, feature_map: FeatureMap) -> None:
        """Enter the fitted map."""
        self.feature_map = feature_map

    def show(self, theta: Mapping[int, FloatArray]) -> None:
        """Show solutions of folds, which nobody keeps, to whoever wanted to see them."""
        if self._seen is not None:
            self._seen(theta)

    def settle(self, how: str, count: int) -> None:
        """So many (grid point, fold) slots were settled in this way."""
        with self._lock:
            self.settled[how] += count

    def enter(self, l: Any, pairs: Any, wrong: BoolArray, values: FloatArray | None) -> None:
        """Enter labels; where values are wanted, these, and what the target makes of them."""
        if self.decision is None or values is None:
            self.wrong[l, pairs] = wrong
        else:
            self.decide(l, pairs, values)

    def decide(self, l: Any, pairs: Any, values: FloatArray) -> None:
        """Enter decision values, if they are wanted, and what the target makes of them."""
        problem, rows = self.task.problem, self.task.folds.pair_rows[pairs]
        self.wrong[l, pairs] = problem.target.wrong(problem.y[rows], values)
        if self.decision is not None:
            self.decision[l, pairs] = self.units.values(values)

    # ---- what came out ------------------------------------------------------------------------

    def fraction(self) -> float:
        """Nothing is settled for good before the last pass."""
        return 0.0

    def counts(self) -> dict[str, int]:
        """How many (grid point, fold) slots were settled how."""
        return dict(self.settled)

    def at_bound(self) -> FloatArray:
        """Share of the rows with some weight whose coefficient is at its bound."""
        return self._at_bound

    def certificate(self) -> Certificate:
        """The worst figures of each grid point."""
        return Certificate(self.kkt, self.gap, not self.unresolved, self.unresolved, self.task.tol)

    def complete(self) -> tuple[IntArray, IntArray]:
        """Nothing is complete before all passes are."""
        nothing = np.zeros(0, dtype=np.intp)
        return nothing, nothing
