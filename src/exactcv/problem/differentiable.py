"""Differentiable losses, as functions of the decision value, row by row.

    L_i(u) = phi(y_i u),   phi(m) = max(0, 1 - m)^2   or   phi(m) = log(1 + e^-m).

for the squared hinge and the logistic loss.  Both slopes are Lipschitz: |phi'(m) - phi'(m')| <=
|m - m'| / kappa, with kappa = 1/2 and 4 (magic LOO, (10)).  The squared loss 1/2 (y_i - u)^2 takes
numbers too.  At the solution c_i = -C_i L_i'(u_i).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import entr, expit, kl_div

from ..types import FloatArray, IntArray
from .losses import PiecewiseLinear, epsilon_insensitive, hinge, pinball

__all__ = [
    "DIFFERENTIABLE_LOSSES",
    "LOSS_BY_NAME",
    "LOSS_PARAMETERS",
    "NUMERIC_LOSSES",
    "SQUARED_LOSSES",
    "DifferentiableLoss",
    "Loss",
    "SquaredLoss",
    "logistic",
    "squared_hinge",
]

Function = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Shape:
    """A loss of the margin m = y u.

    ``conjugate`` is phi*(t) = sup over m of t m - phi(m), and ``divergence`` the bracket
    phi(m) + phi*(t) - t m >= 0 of the Fenchel-Young inequality, without cancellation; both for t in
    the closure of the slopes of phi, [``steepest``, 0].
    """

    name: str
    kappa: float
    steepest: float
    value: Function
    slope: Function
    curvature: Function
    conjugate: Function
    divergence: Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class DifferentiableLoss:
    """The loss of n rows with labels y; arguments have the rows along their last axis.

    Examples
    --------
    >>> import numpy as np
    >>> loss = squared_hinge(np.array([1.0, -1.0]))
    >>> loss.value(np.array([0.5, 0.5]))
    array([0.25, 2.25])
    >>> loss.slope(np.array([0.5, 0.5]))
    array([-1.,  3.])
    """

    shape: Shape
    y: FloatArray

    @property
    def name(self) -> str:
        return self.shape.name

    @property
    def bounded(self) -> bool:
        """Is the slope, and so the coefficient?"""
        return self.shape.steepest > -np.inf

    @property
    def kappa(self) -> float:
        """One over the Lipschitz constant of the slope."""
        return self.shape.kappa

    def value(self, u: FloatArray) -> FloatArray:
        return self.shape.value(self.y * u)

    def slope(self, u: FloatArray) -> FloatArray:
        return self.y * self.shape.slope(self.y * u)

    def curvature(self, u: FloatArray) -> FloatArray:
        """The second derivative; for the squared hinge, 2 where the slope is not zero."""
        return self.shape.curvature(self.y * u)

    def inside(self, s: FloatArray) -> FloatArray:
        """s brought into the range of slopes."""
        return self.y * np.clip(self.y * s, self.shape.steepest, 0.0)

    def conjugate(self, s: FloatArray) -> FloatArray:
        """L*_i(s_i), infinite where s_i is no slope of L_i."""
        t = self.y * s
        outside = (t > 0.0) | (t < self.shape.steepest)
        return np.where(outside, np.inf, self.shape.conjugate(self.y * self.inside(s)))

    def divergence(self, u: FloatArray, s: FloatArray) -> FloatArray:
        """L_i(u_i) + L*_i(s_i) - s_i u_i, for s in the range of slopes."""
        return self.shape.divergence(self.y * u, self.y * s)


def _square_divergence(m: FloatArray, t: FloatArray) -> FloatArray:
    short = 1.0 - m
    return np.where(short > 0.0, (short + 0.5 * t) ** 2, t * (short + 0.25 * t))


def _logistic_divergence(m: FloatArray, t: FloatArray) -> FloatArray:
    """Kullback-Leibler divergence of the probabilities -t and 1 / (1 + e^m) of a wrong label.

    For tiny probabilities the second term is the difference of two that nearly cancel.
    """
    return np.asarray(kl_div(-t, expit(-m)) + kl_div(1.0 + t, expit(m)))


SQUARED_HINGE = Shape(
    name="squared_hinge",
    kappa=0.5,
    steepest=-np.inf,
    value=lambda m: np.maximum(1.0 - m, 0.0) ** 2,
    slope=lambda m: -2.0 * np.maximum(1.0 - m, 0.0),
    curvature=lambda m: np.where(m < 1.0, 2.0, 0.0),
    conjugate=lambda t: t + 0.25 * t * t,
    divergence=_square_divergence,
)
LOGISTIC = Shape(
    name="logistic",
    kappa=4.0,
    steepest=-1.0,
    value=lambda m: np.logaddexp(0.0, -m),
    slope=lambda m: -expit(-m),
    curvature=lambda m: expit(m) * expit(-m),
    conjugate=lambda t: -entr(-t) - entr(1.0 + t),
    divergence=_logistic_divergence,
)


def squared_hinge(y: FloatArray) -> DifferentiableLoss:
    """max(0, 1 - y u)^2."""
    return DifferentiableLoss(SQUARED_HINGE, y)


def logistic(y: FloatArray) -> DifferentiableLoss:
    """log(1 + exp(-y u)).

    Examples
    --------
    >>> import numpy as np
    >>> logistic(np.array([1.0])).slope(np.zeros(1))
    array([-0.5])
    """
    return DifferentiableLoss(LOGISTIC, y)


DIFFERENTIABLE_LOSSES: dict[str, Callable[[FloatArray], DifferentiableLoss]] = {
    "squared_hinge": squared_hinge,
    "logistic": logistic,
}


@dataclass(frozen=True)
class SquaredLoss:
    """1/2 (y_i - u)^2, for labels or numbers y.

    Examples
    --------
    >>> import numpy as np
    >>> SquaredLoss(np.array([1.0, -1.0])).value(np.array([0.0, 1.0]))
    array([0.5, 2. ])
    """

    y: FloatArray
    name = "squared"
    bounded = False

    def at(self, rows: IntArray) -> SquaredLoss:
        """The losses of some rows, which may be repeated."""
        return SquaredLoss(self.y[rows])

    def value(self, u: FloatArray) -> FloatArray:
        return np.asarray(0.5 * (self.y - u) ** 2)

    def slope(self, u: FloatArray) -> FloatArray:
        return np.asarray(u - self.y)


Loss = PiecewiseLinear | DifferentiableLoss | SquaredLoss

LOSS_BY_NAME: dict[str, Callable[..., Loss]] = {
    "hinge": hinge,
    "squared": SquaredLoss,
    "least_squares": SquaredLoss,
    "epsilon_insensitive": epsilon_insensitive,
    "pinball": pinball,
    **DIFFERENTIABLE_LOSSES,
}
SQUARED_LOSSES = ("squared", "least_squares")  # of classes and of numbers
# Those of numbers, and what else some of them need to be told.
NUMERIC_LOSSES = ("epsilon_insensitive", "pinball", "least_squares")
LOSS_PARAMETERS = {"epsilon_insensitive": "epsilon", "pinball": "quantile"}
