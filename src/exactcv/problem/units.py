"""Numbers are solved for in units of their own: where they lie, and how far they spread.

The tolerances of the engine and of the judge are made for decision values of about 1.  For y = o +
s y', with s > 0 and o = 0 unless there is an intercept to take it up, the problem

    min over f, b   1/2 ||f||^2 + C sum_i w_i L(y_i, f(x_i) + b)

is s^2 times that of y', f' = f / s, b' = (b - o) / s, and C' = C / s if L(s .) = s L (losses of
knots and slopes), C' = C if L(s .) = s^2 L (the squared loss).  So millions and millionths have
the same answer but for the scale.  s is a power of two: dividing by it loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..types import FloatArray
from .differentiable import SquaredLoss
from .losses import PiecewiseLinear
from .problem import Problem, Task

__all__ = ["Units"]


@dataclass(frozen=True)
class Units:
    """y = origin + scale y'; C = C_scale C'.

    Examples
    --------
    >>> import numpy as np
    >>> Units.of_numbers(np.array([100.0, 103.0, 109.0]), np.ones(3), True)
    Units(origin=103.0, scale=4.0, degree=1)
    """

    origin: float = 0.0
    scale: float = 1.0
    degree: int = 1  # L(s .) = s^degree L

    @classmethod
    def of_numbers(
        cls, y: FloatArray, weight: FloatArray, fit_intercept: bool, degree: int = 1
    ) -> Units:
        """Of the numbers with weight a middle one, and how far they are from it.

        That is the power of two nearest to the root of the mean squared distance.
        """
        used = np.sort(y[weight > 0])
        origin = float(used[(len(used) - 1) // 2]) if fit_intercept else 0.0
        far = float(np.abs(used - origin).max(initial=0.0))
        if not far > 0.0:
            return cls(origin, 1.0, degree)
        spread = far * float(np.sqrt(np.mean(((used - origin) / far) ** 2)))
        return cls(origin, float(2.0 ** np.round(np.log2(spread))), degree)

    @classmethod
    def of(cls, problem: Problem) -> Units:
        """The units of a problem; classes are as they are."""
        if not problem.target.numeric:
            return cls()
        degree = 2 if isinstance(problem.loss, SquaredLoss) else 1
        return cls.of_numbers(problem.y, problem.weight, problem.fit_intercept, degree)

    @property
    def trivial(self) -> bool:
        return self.origin == 0.0 and self.scale == 1.0

    @property
    def C_scale(self) -> float:
        """C / C'."""
        return self.scale if self.degree == 1 else 1.0

    @property
    def loss_scale(self) -> float:
        """L / L'."""
        return float(self.scale**self.degree)

    def inside(self, task: Task) -> Task:
        """The task in these units."""
        if self.trivial:
            return task
        problem = task.problem
        y = (problem.y - self.origin) / self.scale
        inner = replace(problem, y=y, loss=self._loss(problem.loss, y))
        for name in ("diagonal", "K_single", "same"):
            if name in problem.__dict__:
                inner.__dict__[name] = problem.__dict__[name]
        return replace(task, problem=inner, grid=task.grid.times(1.0 / self.C_scale))

    def _loss(self, loss: Any, y: FloatArray) -> Any:
        return self.of_loss(loss) if isinstance(loss, PiecewiseLinear) else replace(loss, y=y)

    def of_loss(self, loss: PiecewiseLinear) -> PiecewiseLinear:
        """A loss of knots and slopes in these units."""
        if self.trivial:
            return loss
        return replace(loss, knots=(loss.knots - self.origin) / self.scale)

    def values(self, values: FloatArray) -> FloatArray:
        """Decision values or intercepts, as they are outside."""
        return np.asarray(values * self.scale + self.origin)
