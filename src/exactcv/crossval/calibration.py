"""Probabilities from decision values.

*Two classes* (Platt 2000).  P(y = 1 | f) = 1 / (1 + exp(-(a f + b))), where a >= 0 and b minimise

    - sum_i w_i [t_i log p_i + (1 - t_i) log(1 - p_i)]

over decision values that were not trained on.  t_i is (N+ + e) / (N+ + 2 e) for rows of the
positive class and e / (N- + 2 e) for the others, N their total weights, e = 1: Platt's prior, one
row of each class on the wrong side, without which separable values would drive a to infinity.  The
problem is convex in (a, b) and is solved by Newton's method with backtracking (Lin, Lin & Weng
2007).

Left-out values may speak *against* their own classes: leaving a row of noise out makes its class
the minority.  A negative slope would then turn every prediction round, so it is not allowed; the
best sigmoid is flat, p the mean of the targets, and says that the values tell nothing.

*Several classes* (Wu, Lin & Weng 2004, their second method).  With r_ij the probability of class i
against class j from the sigmoid of that pair, p minimises

    sum_{i < j} (r_ji p_i - r_ij p_j)^2      subject to  sum_i p_i = 1,

which is one linear system, [Q 1; 1' 0] [p; m] = [0; 1] with Q_ii = sum_{j != i} r_ji^2 and
Q_ij = -r_ji r_ij; its solution is nonnegative.  Every row has a part in k - 1 pairs, which share
Platt's row between them, e = 1 / (k - 1): with a whole one in each pair, probabilities come out far
too cautious (benchmarks/results/probabilities.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..types import FloatArray

__all__ = ["Sigmoid", "couple", "fit_sigmoid", "raise_winners"]

MAX_STEPS = 100
MOST_HALVINGS = 40
# Once half the squared Newton decrement, which estimates how far the value is above its minimum, is
# below this share of the value, one full step takes it to rounding level: convergence is quadratic.
NEARLY = 1e-10
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
    f: FloatArray,
    positive: NDArray[np.bool_],
    weight: FloatArray | None = None,
    prior: float = 1.0,
) -> Sigmoid:
    """Platt's sigmoid for decision values f of rows that are positive or not; it never falls.

    Examples
    --------
    >>> f = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    >>> fit_sigmoid(f, f > -0.8)(np.array([-2.0, 0.0, 2.0])).round(2)
    array([0.27, 0.68, 0.92])
    >>> fit_sigmoid(f, f < 0).slope  # values that speak against their classes tell nothing
    0.0
    """
    weight = np.ones(len(f)) if weight is None else weight
    n_positive, n_negative = weight[positive].sum(), weight[~positive].sum()
    high = (n_positive + prior) / (n_positive + 2.0 * prior)
    target = np.where(positive, high, prior / (n_negative + 2.0 * prior))
    mean = float(weight @ target / weight.sum())
    flat = np.array([0.0, np.log(mean / (1.0 - mean))])
    # Slopes near 1 and a well-conditioned Hessian, whatever the size and the place of f.
    middle = float(np.mean(f))
    scale = float(np.abs(f - middle).max()) or 1.0
    A = np.column_stack([(f - middle) / scale, np.ones(len(f))])
    theta = _newton(A, target, weight, flat)
    if not (theta[0] > 0 and np.ptp(f) > 0):
        theta = flat  # the minimum over a >= 0, for the problem is convex
    slope = float(theta[0] / scale)
    return Sigmoid(slope, float(theta[1]) - slope * middle)


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
        if -descent <= 2.0 * NEARLY * max(1.0, value):
            return theta + direction
        step = 1.0
        for _ in range(MOST_HALVINGS):
            new = theta + step * direction
            new_value = _cross_entropy(A @ new, target, weight)
            if new_value < value + 1e-4 * step * descent:
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


def raise_winners(probability: FloatArray, votes: NDArray[np.intp]) -> FloatArray:
    """Probabilities in which a class that wins all its pairs is never behind another.

    Sigmoids may put 1/2 a little off the decision value 0 where the vote turns, and then the most
    probable class is not the predicted one.  Where a class has all the votes it can get, those
    before it are made equal to it: the nearest probabilities that respect the votes.

    Examples
    --------
    >>> raise_winners(np.array([[0.3, 0.5, 0.2]]), np.array([[2, 1, 0]])).round(2)
    array([[0.4, 0.4, 0.2]])
    """
    rows, winner = np.arange(len(votes)), votes.argmax(axis=1)
    all_votes = votes[rows, winner] == votes.shape[1] - 1
    late = np.flatnonzero(all_votes & (probability.argmax(axis=1) != winner))
    own, fair = winner[late], probability.copy()
    # The mean of the winner and the m most probable others, for the m that makes it largest.
    behind = -np.sort(-probability[late], axis=1)
    before = behind >= probability[late, own][:, None]
    before[np.arange(len(late)), before.sum(axis=1) - 1] = False  # the winner itself, the last
    sums = probability[late, own][:, None] + np.cumsum(behind * before, axis=1)
    level = (sums / (1.0 + np.cumsum(before, axis=1))).max(axis=1)
    fair[late] = np.minimum(fair[late], level[:, None])
    fair[late, own] = np.nextafter(level, 2.0)
    return fair
