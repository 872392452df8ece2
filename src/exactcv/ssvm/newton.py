"""Newton-Armijo for the smooth SVM, with finite termination (Algorithm 1).

State: multipliers alpha with theta = A' alpha, and f = A theta. A step goes from (alpha, f) towards
the target of the support vectors at f; along the way both change linearly, so Armijo's rule costs
no product with A: ||theta||^2 = alpha' f. A full step whose support vectors do not change has
arrived. Rounding may let a row flicker about its kink; what such rows add to the gradient is known,

    ||g|| <= c sum_{rows that differ} |t_i - f_i| ||A_i||,

and the iteration ends when that is negligible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from ..folds import IntArray
from ..losses import FloatArray
from .model import BoolArray, Design
from .updates import NONE, Fresh, Held, Leaving, StrategyOne, StrategyTwo, prefers_two

__all__ = [
    "STRATEGIES",
    "Fit",
    "Updated",
    "fit",
    "hold",
    "leave_afresh",
    "leave_out",
    "multipliers",
    "newton",
    "refine",
]

STRATEGIES = ("auto", "I", "II", "none")

MAX_STEPS = 200
ROUNDS = 3  # of iterative refinement
ARMIJO = 1e-4  # the paper's delta
HALVINGS = 50  # of a step
FLICKER = 1e-13  # of max(1, ||theta||): what may be left of the gradient when sets differ
# An update of rank r beats a fresh factorisation while r is below this share of its size.
WORTH_UPDATING = 0.5

EPSILON = float(np.finfo(float).eps)
UNKNOWN = np.zeros(0)

# Matrices smaller than this are factorised in less time than an update takes to set up.
WORTH_HOLDING = 40

Target = Callable[[BoolArray], FloatArray]


@dataclass(frozen=True)
class Fit:
    """A solution: theta, f = A theta, its support vectors, and the sizes (l_sv, r) of each step.

    theta is worked out by `refine`; until then it is A' alpha with alpha = c (t - f).
    """

    alpha: FloatArray
    theta: FloatArray
    f: FloatArray
    active: BoolArray
    converged: bool
    steps: list[tuple[int, int]]
    factor: Fresh | None = None  # its own, if there is one


def newton(
    design: Design,
    c: float,
    train: BoolArray,
    target: Target,
    active: BoolArray,
) -> Fit:
    """Minimise over the training rows, from the target of the guess ``active``.

    Parameters
    ----------
    design : Design
    c : float
    train : ndarray of bool
    target : callable
        f at the minimiser of the quadratic on a set of support vectors.
    active : ndarray of bool
        Any guess of the support vectors.
    """

    def result(converged: bool) -> Fit:
        return Fit(alpha, UNKNOWN, f, active, converged, steps)

    f = target(active)
    alpha = design.multipliers(f, active, c)
    steps, full = [(int(active.sum()), int(active.sum()))], True
    for _ in range(MAX_STEPS):
        support = design.support(f, train)
        differ = np.flatnonzero(support != active)
        if full and _negligible(design, c, alpha, f, differ):
            return result(True)
        steps.append((int(support.sum()), len(differ)))
        new_f = target(support)
        new_alpha = design.multipliers(new_f, support, c)
        step = _armijo(design, c, train, (alpha, f), (new_alpha, new_f))
        if step == 0.0:  # no descent left within rounding
            return result(False)
        full, active = step == 1.0, support
        alpha = new_alpha if full else alpha + step * (new_alpha - alpha)
        f = new_f if full else f + step * (new_f - f)
    return result(False)


def _negligible(
    design: Design, c: float, alpha: FloatArray, f: FloatArray, differ: IntArray
) -> bool:
    if not len(differ):
        return True
    left = c * (np.abs(design.t - f)[differ] @ design.norms[differ])
    return bool(left <= FLICKER * max(1.0, sqrt(max(float(alpha @ f), 0.0))))


def _armijo(
    design: Design,
    c: float,
    train: BoolArray,
    here: tuple[FloatArray, FloatArray],
    there: tuple[FloatArray, FloatArray],
) -> float:
    """The largest of 1, 1/2, 1/4, ... that decreases the objective enough; 0 if none does."""
    (alpha, f), (new_alpha, new_f) = here, there
    # ||theta + s z||^2 = a + 2 s b + s^2 q for the direction z.
    a, cross, end = alpha @ f, alpha @ new_f, new_alpha @ new_f
    b, q = cross - a, end - 2.0 * cross + a

    def value(s: float) -> float:
        at = f + s * (new_f - f)
        slack = np.where(design.support(at, train), design.t - at, 0.0)
        return float(0.5 * (a + s * (2.0 * b + s * q)) + 0.5 * c * (slack @ slack))

    slack = np.where(design.support(f, train), design.t - f, 0.0)
    slope = float(b - c * (slack @ (new_f - f)))
    start, s = value(0.0), 1.0
    rounding = 1e-14 * abs(start)
    for _ in range(HALVINGS):
        if value(s) <= start + ARMIJO * s * slope + rounding:
            return s
        s *= 0.5
    return 0.0


def hold(design: Design, c: float, active: BoolArray, strategy: str) -> Held:
    """Factorise for these support vectors by strategy I or II ("auto": the smaller matrix)."""
    if strategy == "auto":
        strategy = "II" if prefers_two(design, int(active.sum())) else "I"
    return (StrategyTwo if strategy == "II" else StrategyOne)(design, c, active)


def fit(design: Design, c: float, strategy: str = "auto", active: BoolArray | None = None) -> Fit:
    """The solution on all rows with positive weight.

    A step whose set is close to the one that was factorised last updates; otherwise the matrix is
    factorised for the new set.

    Examples
    --------
    >>> import numpy as np
    >>> from exactcv.ssvm.model import make_design
    >>> X, y = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
    >>> found = fit(make_design(X, y, np.ones(2), True, False), 1.0)
    >>> (found.f * 3).round(12)
    array([-2.,  2.])
    """
    active = design.used if active is None else active
    if strategy == "none":
        return leave_afresh(design, c, design.used, NONE, active)
    leaving: Leaving | None = None

    def target(support: BoolArray) -> FloatArray:
        nonlocal leaving
        if leaving is None or leaving.rank(support) > WORTH_UPDATING * leaving.held.size:
            leaving = Leaving(hold(design, c, support, strategy))
        return leaving.target(support)

    found = newton(design, c, design.used, target, active)
    assert leaving is not None
    return refine(design, c, [found], [NONE], Updated(leaving.held, [leaving], [found]).solve)[0]


def leave_out(leaving: Leaving, train: BoolArray) -> Fit:
    """The solution without the rows outside ``train`` and the columns of ``leaving``."""
    held = leaving.held
    design, c = held.design, held.c
    fresh = Fresh(design, c, leaving.dropped)

    def target(support: BoolArray) -> FloatArray:
        if leaving.rank(support) <= WORTH_UPDATING * held.size:
            return leaving.target(support)
        return fresh.target(support)

    return newton(design, c, train, target, held.active & train)


def leave_afresh(
    design: Design,
    c: float,
    train: BoolArray,
    dropped: IntArray,
    active: BoolArray,
    rounds: int = ROUNDS,
) -> Fit:
    """The same by a fresh factorisation for each Newton step, and refined."""
    fresh = Fresh(design, c, dropped)
    found = newton(design, c, train, fresh.target, active & train)

    def solve(_: IntArray, G: FloatArray) -> FloatArray:
        return fresh.solve(found.active, G[0])[None]

    return replace(refine(design, c, [found], [dropped], solve, rounds)[0], factor=fresh)


class Updated:
    """H^-1 g for solutions that were updated from one held matrix, several at a time."""

    def __init__(self, held: Held, leavings: Sequence[Leaving], fits: Sequence[Fit]):
        self.held, self.leavings, self.fits = held, leavings, fits

    def solve(self, which: IntArray, G: FloatArray) -> FloatArray:
        """One row of G for each solution in ``which``."""
        solved = self.held.solve(G)
        pairs = zip(which, solved, strict=True)
        taken = [self.leavings[k].taken(self.fits[k].active, x) for k, x in pairs]
        steps = self.held.solve(G - np.array(taken))
        for k, step in zip(which, steps, strict=True):
            step[self.leavings[k].dropped] = 0.0
        return steps

    def correct(self, which: IntArray, rho: FloatArray) -> FloatArray:
        """What the residuals rho say is missing from the multipliers."""
        rows = zip(which, rho, self.held.apply(rho), strict=True)
        found = [self.leavings[k].correct(self.fits[k].active, r, x) for k, r, x in rows]
        return np.array(found)


Solve = Callable[[IntArray, FloatArray], FloatArray]


def refine(
    design: Design,
    c: float,
    fits: Sequence[Fit],
    dropped: Sequence[IntArray],
    solve: Solve,
    rounds: int = ROUNDS,
) -> list[Fit]:
    """The residual check, for several solutions at a time.

    theta = A' alpha with alpha = c (t - f) magnifies the rounding errors of f, by up to c ||A||.
    What they leave of the gradient is recomputed from theta and taken out by a Newton step with the
    same factor: iterative refinement.  What does not get better is found by the judge.
    """
    alpha = np.array([found.alpha for found in fits])
    better = []
    for found, theta, columns in zip(fits, alpha @ design.A, dropped, strict=True):
        theta[columns] = 0.0
        better.append(found if len(found.theta) else replace(found, theta=theta))
    for _ in range(rounds):
        G = _gradients(design, c, better, dropped)
        pairs = zip(G, better, strict=True)
        wanting = np.flatnonzero([_matters(g, found.theta) for g, found in pairs])
        if not len(wanting):
            break
        for k, step in zip(wanting, solve(wanting, G[wanting]), strict=True):
            theta = better[k].theta - step
            better[k] = replace(better[k], theta=theta, f=design.A @ theta)
    return better


def multipliers(
    design: Design, c: float, fits: Sequence[Fit], correct: Solve, rounds: int = ROUNDS
) -> FloatArray:
    """alpha with A_S' alpha = theta, one row a solution, no columns being dropped.

    alpha = c (t - f) has the errors of f, times c.  It also solves (I + c A_S A_S') alpha = c t_S;
    ``correct`` tells what its residual rho says is missing.  Only A A' is used, which is small
    where there are many features.
    """
    active = np.array([found.active for found in fits])
    alpha = np.array([found.alpha for found in fits])
    everyone = np.arange(len(fits))
    for _ in range(rounds):
        rho = np.where(active, c * (design.t - alpha @ design.Q) - alpha, 0.0)
        if np.abs(rho).max() <= EPSILON * c:
            break
        alpha += correct(everyone, rho)
    return alpha


def _gradients(
    design: Design, c: float, fits: Sequence[Fit], dropped: Sequence[IntArray]
) -> FloatArray:
    """g = theta - c A_S' (t - A theta)_S without the dropped columns, one row a solution."""
    theta = np.array([found.theta for found in fits])
    active = np.array([found.active for found in fits])
    slack = np.where(active, design.t - theta @ design.A.T, 0.0)
    G: FloatArray = theta - c * (slack @ design.A)
    for g, columns in zip(G, dropped, strict=True):
        g[columns] = 0.0
    return G


def _matters(g: FloatArray, theta: FloatArray) -> bool:
    return bool(g @ g > FLICKER**2 * max(1.0, float(theta @ theta)))
