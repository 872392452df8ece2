"""Probabilities from decision values.

*Two classes* (Platt 2000).  P(y = 1 | f) = 1 / (1 + exp(-(a f + b))), where a and b minimise

    - sum_i w_i [t_i log p_i + (1 - t_i) log(1 - p_i)]

over decision values that were not trained on.  t_i is (N+ + 1) / (N+ + 2) for rows of the positive
class and 1 / (N- + 2) for the others, N their total weights: Platt's prior, without which separable
values would drive a to infinity.  The problem is convex in (a, b) and is solved by Newton's method
with backtracking (Lin, Lin & Weng 2007).

*Several classes* (Wu, Lin & Weng 2004, their second method).  With r_ij the probability of class i
against class j from the sigmoid of that pair, p minimises

    sum_{i < j} (r_ji p_i - r_ij p_j)^2      subject to  sum_i p_i = 1,

which is one linear system, [Q 1; 1' 0] [p; m] = [0; 1] with Q_ii = sum_{j != i} r_ji^2 and
Q_ij = -r_ji r_ij; its solution is nonnegative.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..types import FloatArray

__all__ = ["Sigmoid", "couple", "fit_sigmoid"]

MAX_STEPS = 200
SMALLEST_STEP = 1e-12
# Pairwise probabilities this close to 0 or 1 would make the coupled system singular.
LEAST_PROBABILITY = 1e-7


@dataclass(frozen=True)
class Sigmoid:
    """p = 1 / (1 + exp(-(slope f + offset)))."""

    slope: float
    offset: float

    def __call__(self, f: FloatArray) -> FloatArray:
        return np.asarray(expit(self.slope * f + self.offset))


def fit_sigmoid(
    f: FloatArray, positive: NDArray[np.bool_], weight: FloatArray | None = None
) -> Sigmoid:
    """Platt's sigmoid for decision values f of rows that are positive or not.

    Examples
    --------
    >>> f = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    >>> fit_sigmoid(f, f > -0.8)(np.array([-2.0, 0.0, 2.0])).round(2)
    array([0.27, 0.68, 0.92])
    """
    weight = np.ones(len(f)) if weight is None else weight
    n_positive, n_negative = weight[positive].sum(), weight[~positive].sum()
    target = np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))
    scale = float(np.abs(f).max()) or 1.0  # slopes near 1, whatever the size of C
    A = np.column_stack([f / scale, np.ones(len(f))])
    theta = np.array([0.0, np.log((n_positive + 1.0) / (n_negative + 1.0))])
    theta = _newton(A, target, weight, theta)
    return Sigmoid(float(theta[0] / scale), float(theta[1]))


def _newton(A: FloatArray, target: FloatArray, weight: FloatArray, theta: FloatArray) -> FloatArray:
    """Minimise the cross-entropy of expit(A theta) against the targets."""
    value = _cross_entropy(A @ theta, target, weight)
    for _ in range(MAX_STEPS):
        p = expit(A @ theta)
        gradient = A.T @ (weight * (p - target))
        hessian = (A.T * (weight * p * (1.0 - p))) @ A
        hessian.flat[::3] += 1e-12 * max(float(np.trace(hessian)), 1e-300)
        direction = -np.linalg.solve(hessian, gradient)
        descent = float(gradient @ direction)
        if -descent <= 1e-22 * max(1.0, value):
            break
        step = 1.0
        while step >= SMALLEST_STEP:
            new = theta + step * direction
            new_value = _cross_entropy(A @ new, target, weight)
            if new_value < value + 1e-4 * step * descent or (new_value <= value and step < 1e-6):
                break
            step *= 0.5
        else:
            break  # as good as rounding allows
        theta, value = new, new_value
    return theta


def _cross_entropy(u: FloatArray, target: FloatArray, weight: FloatArray) -> float:
    """sum w (log(1 + e^u) - t u), which is the cross-entropy, without overflow."""
    return float(weight @ (np.logaddexp(0.0, u) - target * u))


def couple(pairwise: FloatArray, n_classes: int) -> FloatArray:
    """Class probabilities (n, k) from P(second class of the pair), shape (n, P).

    Examples
    --------
    >>> couple(np.array([[0.5, 0.5, 0.5], [0.1, 0.1, 0.5]]), 3).round(2)
    array([[0.33, 0.33, 0.33],
           [0.82, 0.09, 0.09]])
    """
    n = len(pairwise)
    system = np.zeros((n, n_classes + 1, n_classes + 1))
    system[:, :n_classes, n_classes] = system[:, n_classes, :n_classes] = 1.0
    for p, (a, b) in enumerate(combinations(range(n_classes), 2)):
        for_b = np.clip(pairwise[:, p], LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
        for_a = 1.0 - for_b
        system[:, a, a] += for_b**2
        system[:, b, b] += for_a**2
        system[:, a, b] = system[:, b, a] = -for_a * for_b
    right = np.zeros((n, n_classes + 1, 1))
    right[:, n_classes] = 1.0
    found = np.linalg.solve(system, right)[:, :n_classes, 0]
    found = np.maximum(found, 0.0)
    coupled: FloatArray = found / found.sum(axis=1, keepdims=True)
    return coupled
