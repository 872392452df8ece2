"""What is solved with features in place of a kernel matrix.

    min over w, b   1/2 ||w||^2 + sum_i C_i L_i(w'z_i + b),       z_i = z(x_i),

with losses of knots and slopes, or the squared loss; for the hinge, problems (40) and (41) of the
consolidated-CV paper.  Everything is exact for the kernel that the features have, and certified.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..problem.folds import Folds
from ..problem.grid import Grid
from ..problem.kernels import Kernel
from ..problem.loss_rules import LossRule
from ..problem.targets import SIGNS, Target
from ..problem.units import Units
from ..types import FloatArray
from .features import FeatureMap
from .options import Options
from .rows.sources import RowSource

__all__ = ["MOST_COLUMNS", "FeatureProblem", "FeatureTask", "is_wide"]

# Columns that may be features themselves: problems with so many unknowns are solved by factors of
# them squared.  With more, rows have to be sparse (``wide/``).
MOST_COLUMNS = 4000


def is_wide(p: int) -> bool:
    """Are these too many columns for matrices of them?"""
    return p > MOST_COLUMNS


@dataclass(frozen=True)
class FeatureProblem:
    """Rows that can be read in chunks, labels +-1 or numbers, weights, and how features are made.

    ``seed`` draws the features, and every sample of the rows; ``landmarks`` says how those of
    Nystroem are drawn (``landmarks.py``).  y is the user's, whatever the units of ``loss`` are.
    ``feature_map`` is given where it has been fitted before, to more rows than these.  ``approx``
    is None where the columns of the rows are the features: the kernel is linear then, and nothing
    is approximate.
    """

    source: RowSource
    y: FloatArray
    weight: FloatArray
    kernel: Kernel
    approx: str | None
    n_components: int
    seed: int
    fit_intercept: bool = True
    target: Target = SIGNS
    loss: LossRule = field(default_factory=LossRule)
    feature_map: FeatureMap | None = None
    landmarks: str = "random"

    @property
    def n(self) -> int:
        return self.source.n


@dataclass(frozen=True)
class FeatureTask:
    """All that the low-rank method is given; ``budget`` is the memory it may use, in bytes."""

    problem: FeatureProblem
    folds: Folds
    grid: Grid
    want_decision: bool
    tol: float
    options: Options
    budget: int
    keep_models: bool = False  # of every fold that leaves out several rows

    @property
    def wide(self) -> bool:
        """Is this for ``wide/``: columns as features, too many for matrices of them?"""
        return self.problem.approx is None and is_wide(self.problem.source.p)

    def inside(self) -> FeatureTask:
        """The task with C and the loss in the units of y."""
        problem = self.problem
        if not problem.target.numeric:
            return self
        degree = problem.loss.degree
        units = Units.of_numbers(problem.y, problem.weight, problem.fit_intercept, degree)
        inner = replace(problem, loss=replace(problem.loss, units=units))
        return replace(self, problem=inner, grid=self.grid.times(1.0 / units.C_scale))
