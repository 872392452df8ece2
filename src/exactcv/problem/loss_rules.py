"""What rows lose, as a rule that can be sent elsewhere: the loss of rows that are not here yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ..types import FloatArray
from .differentiable import LOSS_BY_NAME, SQUARED_LOSSES, Loss
from .losses import PiecewiseLinear
from .units import Units

__all__ = ["LossRule"]


@dataclass(frozen=True)
class LossRule:
    """A loss of rows by its name; y is the user's, the loss in these units.

    Called, it is one of knots and slopes.

    Examples
    --------
    >>> import numpy as np
    >>> rule = LossRule("epsilon_insensitive", {"epsilon": 0.5}, Units(origin=10.0, scale=2.0))
    >>> rule(np.array([12.0])).knots
    array([[0.75, 1.25]])
    """

    name: str = "hinge"
    parameters: Mapping[str, float] = field(default_factory=dict)
    units: Units = field(default_factory=Units)

    @property
    def squared(self) -> bool:
        """Has it no knots, so that solutions are those of linear systems?"""
        return self.name in SQUARED_LOSSES

    @property
    def degree(self) -> int:
        """L(s .) = s^degree L."""
        return 2 if self.squared else 1

    def for_rows(self, y: FloatArray) -> LossRule:
        """The rule for these rows: if rounding takes a knot from some, it is taken from all."""
        if "epsilon" in self.parameters and self(y).n_knots == 1:
            return replace(self, parameters={"epsilon": 0.0})
        return self

    def __call__(self, y: FloatArray) -> PiecewiseLinear:
        loss = self.plain(y)
        assert isinstance(loss, PiecewiseLinear)
        return self.units.of_loss(loss)

    def plain(self, y: FloatArray) -> Loss:
        """The loss of rows as the user measures it."""
        return LOSS_BY_NAME[self.name](np.asarray(y, dtype=np.float64), **self.parameters)
