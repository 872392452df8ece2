"""Newton-Armijo for the smooth SVM, with finite termination (Algorithm 1).

State: multipliers alpha with theta = A' alpha, and f = A theta. A step goes from (alpha, f) towards
the target of the support vectors at f; along the way both change linearly, so Armijo's rule costs
no product with A: ||theta||^2 = alpha' f. A full step whose support vectors do not change has
arrived, and is taken without asking for descent, which rounding may hide at large c. Rounding may
also let a row flicker about its kink; what such rows add to the gradient is known,

    ||g|| <= c sum_{rows that differ} |t_i - f_i| ||A_i||,

and the iteration ends when that is negligible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, get_args

import numpy as np

from ...types import BoolArray, FloatArray, IntArray, Strategy
from .design import Design
from .updates import NONE, Fresh, Held, Leaving, StrategyOne, StrategyTwo, prefers_two, price_afresh

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
    "polish",
    "refine",
]

STRATEGIES = get_args(Strategy)

MAX_STEPS = 200
ROUNDS = 3  # of iterative refinement
ARMIJO = 1e-4  # the paper's delta
HALVINGS = 50  # of a step
FLICKER = 1e-13  # of max(1, ||theta||): what may be left of the gradient when sets differ
# An update of rank r beats a fresh factorisation while r is below this share of its size.
WORTH_UPDATING = 0.5

UNKNOWN = np.zeros(0)
GRADIENT = 1e-10  # the aim for ||g||, relative to max(1, ||theta||)
ENOUGH = GRADIENT / 100.0  # needs no more refinement
ROUGH = 1e-8  # a gradient beyond this, relative likewise, is not left to rounding
PANEL = 256  # rows at a time in extended precision

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
        step = 1.0
        if not np.array_equal(design.support(new_f, train), support):
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


def hold(design: Design, c: float, active: BoolArray, strategy: str, whole: bool = True) -> Held:
    """Factorise for these support vectors by strategy I or II ("auto": see `prefers_two`).

    ``whole`` forms the inverse, for many updates; without it each column costs two solves.
    """
    if strategy == "auto":
        strategy = "II" if prefers_two(design, int(active.sum())) else "I"
    return (StrategyTwo if strategy == "II" else StrategyOne)(design, c, active, whole)


def fit(design: Design, c: float, strategy: str = "auto", active: BoolArray | None = None) -> Fit:
    """The solution on all rows with positive weight.

    A step whose set is close to the one that was factorised last updates; where that would take
    more operations the matrix is factorised for the new set.

    Examples
    --------
    >>> import numpy as np
    >>> from exactcv.algorithms.rank_update.design import make_design
    >>> X, y = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
    >>> found = fit(make_design(X, y, np.ones(2), True, False), 1.0)
    >>> (found.f * 3).round(12)
    array([-2.,  2.])
    """
    active = design.used if active is None else active
    if strategy == "none":
        found = leave_afresh(design, c, design.used, NONE, active)
        fresh = found.factor
        assert fresh is not None
        return polish(design, c, found, NONE, lambda _, G: fresh.solve(found.active, G[0])[None])
    leaving: Leaving | None = None

    def target(support: BoolArray) -> FloatArray:
        nonlocal leaving
        afresh = price_afresh(design, int(support.sum()))
        if leaving is None or leaving.price(support) > afresh:
            leaving = Leaving(hold(design, c, support, strategy, whole=False))
        return leaving.target(support)

    found = newton(design, c, design.used, target, active)
    if found.converged:
        assert leaving is not None
        found = polish(design, c, found, NONE, Updated(leaving.held, [leaving], [found]).solve)
        if _arrived(design, c, found):
            return found
    # Updates that were too rough (c beyond 1e5): factorise each step.
    return fit(design, c, "none")


def _arrived(design: Design, c: float, found: Fit) -> bool:
    """Does the gradient vanish with the support vectors that f itself has?"""
    support = design.support(found.f, design.used)
    g, _ = _gradients(design, c, found.theta[None], support[None], [NONE])
    return bool(np.linalg.norm(g) <= ROUGH * max(1.0, float(np.linalg.norm(found.theta))))


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
) -> Fit:
    """The same by a fresh factorisation for each Newton step, and refined."""
    fresh = Fresh(design, c, dropped)
    found = newton(design, c, train, fresh.target, active & train)

    def solve(_: IntArray, G: FloatArray) -> FloatArray:
        return fresh.solve(found.active, G[0])[None]

    return replace(refine(design, c, [found], [dropped], solve)[0], factor=fresh)


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
    careful: bool = False,
) -> list[Fit]:
    """The residual check, for several solutions at a time.

    theta = A' alpha with alpha = c (t - f) magnifies the rounding errors of f, by up to c ||A||.
    What they leave of the gradient is recomputed from theta and taken out by a Newton step with the
    same factor: iterative refinement.  What does not get better is found by the judge.

    ``careful`` computes the gradient in extended precision, without BLAS: slow.
    """
    gradients = _careful_gradients if careful else _gradients
    active = np.array([found.active for found in fits])
    if all(len(found.theta) for found in fits):
        theta = np.array([found.theta for found in fits])
    else:
        theta = np.array([found.alpha for found in fits]) @ design.A
        _clear(theta, dropped)
    G, f = gradients(design, c, theta, active, dropped)
    square = np.einsum("ij,ij->i", G, G)
    for _ in range(rounds):
        enough = ENOUGH**2 * np.maximum(1.0, np.einsum("ij,ij->i", theta, theta))
        wanting = np.flatnonzero(square > enough)
        if not len(wanting):
            break
        new = theta[wanting] - solve(wanting, G[wanting])
        columns = [dropped[k] for k in wanting.tolist()]
        new_G, new_f = gradients(design, c, new, active[wanting], columns)
        new_square = np.einsum("ij,ij->i", new_G, new_G)
        good = new_square < square[wanting]
        at = wanting[good]
        theta[at], G[at], f[at] = new[good], new_G[good], new_f[good]
        # What is not halved has reached the rounding errors of the gradient itself.
        stalled = wanting[new_square > 0.25 * square[wanting]]
        square[at] = new_square[good]
        square[stalled] = 0.0
    return [replace(x, theta=theta[k], f=f[k]) for k, x in enumerate(fits)]


def polish(design: Design, c: float, found: Fit, dropped: IntArray, solve: Solve) -> Fit:
    """`refine` one solution, carefully if that is called for."""
    found = refine(design, c, [found], [dropped], solve)[0]
    g, _ = _gradients(design, c, found.theta[None], found.active[None], [dropped])
    if np.linalg.norm(g) <= GRADIENT * max(1.0, float(np.linalg.norm(found.theta))) / 10.0:
        return found
    return refine(design, c, [found], [dropped], solve, careful=True)[0]


def multipliers(
    design: Design, c: float, fits: Sequence[Fit], correct: Solve, careful: bool = False
) -> FloatArray:
    """alpha with A_S' alpha = theta, one row a solution, no columns being dropped.

    alpha = c (t - f) has the errors of f, times c.  It also solves (I + c A_S A_S') alpha = c t_S;
    ``correct`` tells what its residual rho says is missing; the gradient is -A' rho.  Where there
    are many features only A A' is used, which is small.
    ``careful`` goes through theta in extended precision.
    """
    active = np.array([found.active for found in fits])
    alpha = np.array([found.alpha for found in fits])
    everyone, rows = np.arange(len(fits)), np.flatnonzero(active.any(axis=0))
    enough = (ENOUGH / 100.0 if careful else ENOUGH) ** 2
    for _ in range(ROUNDS):
        if careful:
            f = products(products(alpha, design.A), design.A.T)
        else:
            f = design.through(alpha, rows)
        rho = np.where(active, c * (design.t - f) - alpha, 0.0).astype(float)
        length = np.einsum("ij,ij->i", alpha, f)  # ||theta||^2
        if (design.square(rho, rows) <= enough * np.maximum(1.0, length)).all():
            break
        alpha += correct(everyone, rho)
    return alpha


def _gradients(
    design: Design, c: float, theta: FloatArray, active: BoolArray, dropped: Sequence[IntArray]
) -> tuple[FloatArray, FloatArray]:
    """g = theta - c A_S' (t - A theta)_S without the dropped columns, one row a solution; f."""
    f = theta @ design.A.T
    G: FloatArray = theta - c * (np.where(active, design.t - f, 0.0) @ design.A)
    _clear(G, dropped)
    return G, f


def _careful_gradients(
    design: Design, c: float, theta: FloatArray, active: BoolArray, dropped: Sequence[IntArray]
) -> tuple[FloatArray, FloatArray]:
    f = products(theta, design.A.T)
    slack = np.where(active, design.t - f, 0.0)
    G = (theta - c * products(slack, design.A)).astype(float)
    _clear(G, dropped)
    return G, f.astype(float)


def products(rows: Any, M: FloatArray) -> Any:
    """rows @ M in extended precision, a few rows of M at a time."""
    total = np.zeros((len(rows), M.shape[1]), dtype=np.longdouble)
    for first in range(0, len(M), PANEL):
        part = slice(first, first + PANEL)
        total += rows[:, part] @ M[part].astype(np.longdouble)
    return total


def _clear(values: FloatArray, columns: Sequence[IntArray]) -> None:
    for mine, where in zip(values, columns, strict=True):
        if len(where):
            mine[where] = 0.0
