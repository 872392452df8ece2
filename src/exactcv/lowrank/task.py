"""What is solved with features in place of a kernel matrix.

    min over w, b   1/2 ||w||^2 + sum_i C_i max(0, 1 - y_i (w'z_i + b)),       z_i = z(x_i),

problems (40) and (41) of the consolidated-CV paper.  Everything is exact for the kernel that the
features have, and certified.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..problem.folds import Folds
from ..problem.grid import Grid
from ..problem.kernels import Kernel
from ..problem.targets import SIGNS, Target
from ..types import FloatArray
from .options import Options
from .rows.sources import RowSource

__all__ = ["FeatureProblem", "FeatureTask"]


@dataclass(frozen=True)
class FeatureProblem:
    """Rows that can be read in chunks, labels +-1, weights, and how features are made of rows.

    ``seed`` draws the features, and every sample of the rows; ``landmarks`` says how those of
    Nystroem are drawn (``landmarks.py``).
    """

    source: RowSource
    y: FloatArray
    weight: FloatArray
    kernel: Kernel
    approx: str
    n_components: int
    seed: int
    fit_intercept: bool = True
    target: Target = SIGNS
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
