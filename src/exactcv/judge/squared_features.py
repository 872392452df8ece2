"""The judge of the squared loss in m dimensions: rows come in chunks, figures are sums and maxima.

    min over w, b   P = 1/2 ||w||^2 + C/2 sum_{i in T} w_i e_i^2,        e_i = y_i - w'z_i - b

With x_i = z_i - zbar from the weighted mean of T, whose mass is t = sum w_i, P is a quadratic in w
and in b + w'zbar, of Hessian diag(I + C sum w_i x_i x_i', C t).  So its gradient

    g = w - C sum w_i e_i x_i,        -C sum w_i e_i

says how far it is from its least value, and how far the values are from those there:

- the duality **gap** P - P* is at most 1/2 ||g||^2 + C/2 (sum w_i e_i)^2 / t;
- **kkt**: the gradient moves no value of a training row by more than ||g|| min(||x_i||,
  1 / sqrt(C w_i)) + |sum w_i e_i| / t, here in units of the largest y.

(Without an intercept zbar = 0, and there is no second term.)  The sums are known but for rounding,
which ||g|| has on top and which is the floor of the figures.

**Rows left out.**  With M = diag(sum w_i x_i x_i' + I / C, t), P~ close to its inverse, and X the
rows F with a one at the end, theta - P~ X' alpha has without F the gradient

    g + C X' [W e - alpha + W X P~ X' alpha] - C (M P~ - I) X' alpha.

Here P~ = V diag(1 / (s_k + 1/C)) V' from approximate eigenvectors V, so that M P~ x - x is
R D V'x + (V V' - I) x with R = S V - V diag(s): small, and bounded by what is measured once
(`Inverse`).  So every solution without rows has its figures from sums over these rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._core.reference.residuals import ROUNDOFF
from ..exceptions import InputError
from ..types import FloatArray
from .features import FLOOR, Figures

__all__ = [
    "Extent",
    "Gone",
    "Inverse",
    "Moments",
    "ResidualSums",
    "Slope",
    "Training",
    "bracket",
    "residual_sums",
    "slope",
    "without",
]

# Sums of squares beyond this are refused, for there are products of them.
LARGEST = 1e150
# Roundings that are charged where a row is left out, in units of the terms.
ROUNDINGS = 4.0


class Extent(NamedTuple):
    """The largest ||z - a||, the smallest positive weight and the largest |y| of all rows."""

    widest: float
    lightest: float
    unit: float


@dataclass(frozen=True)
class Moments:
    """sum w_i v_i v_i' with v = [z - a, 1, y], the largest ||z - a|| and smallest weight.

    Those of disjoint rows add up; a is any point.

    Examples
    --------
    >>> X, y = np.array([[1.0], [3.0]]), np.array([0.0, 2.0])
    >>> found = Moments.of(X, y, np.ones(2)).training(True)
    >>> found.scatter, found.cross, found.mean, found.level, found.mass
    (array([[2.]]), array([2.]), array([2.]), 1.0, 2.0)
    """

    products: FloatArray
    widest: float
    lightest: float

    @classmethod
    def of(cls, X: FloatArray, y: FloatArray, weight: FloatArray) -> Moments:
        used = weight > 0
        if not used.all():
            X, y, weight = X[used], y[used], weight[used]
        V = np.empty((len(y), X.shape[1] + 2))
        V[:, :-2], V[:, -2], V[:, -1] = X, 1.0, y
        V *= np.sqrt(weight)[:, None]
        with np.errstate(over="ignore", invalid="ignore"):  # who uses them looks
            widest = float(np.sqrt(np.einsum("ij,ij->i", X, X).max(initial=0.0)))
            return cls(V.T @ V, widest, float(weight.min(initial=np.inf)))

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.products + other.products,
            max(self.widest, other.widest),
            min(self.lightest, other.lightest),
        )

    def without(self, part: Moments) -> Moments:
        """Those of the other rows (the extent stays)."""
        return Moments(self.products - part.products, self.widest, self.lightest)

    def training(self, fit_intercept: bool) -> Training:
        """The same about their mean."""
        A = self.products
        if not np.abs(A).max() <= LARGEST:
            raise InputError(
                "squares of the features are too large to be added up: standardise the features "
                "of X, or leave out columns of huge numbers"
            )
        sums, mass = A[:-2, -2], float(A[-2, -2])
        if not fit_intercept:
            return Training(A[:-2, :-2], A[:-2, -1], np.zeros(len(sums)), 0.0, mass)
        mean, level = sums / mass, float(A[-1, -2]) / mass
        scatter = A[:-2, :-2] - np.outer(sums, mean)
        return Training(scatter, A[:-2, -1] - sums * level, mean, level, mass)


@dataclass(frozen=True)
class Training:
    """Training rows about their mean: sum w x x', sum w x y, and the means of z - a and of y."""

    scatter: FloatArray
    cross: FloatArray
    mean: FloatArray
    level: float
    mass: float


@dataclass(frozen=True)
class ResidualSums:
    """Over some rows at P solutions: of w e (z - a), w e, |w e|, |w e| ||z - a|| and w e^2 / 2."""

    pull: FloatArray  # (P, m)
    total: FloatArray  # (P,)
    taken: FloatArray
    added: FloatArray
    loss: FloatArray

    def __add__(self, other: ResidualSums) -> ResidualSums:
        return ResidualSums(
            self.pull + other.pull,
            self.total + other.total,
            self.taken + other.taken,
            self.added + other.added,
            self.loss + other.loss,
        )


def residual_sums(
    X: FloatArray, y: FloatArray, weight: FloatArray, theta: FloatArray
) -> ResidualSums:
    """Rows x = z - a at theta, (P, m + 1); weight is (rows, P) or (rows, 1)."""
    miss = y[:, None] - X @ theta[:, :-1].T - theta[:, -1]
    held = weight * miss
    length, size = np.sqrt(np.einsum("ij,ij->i", X, X)), np.abs(held)
    lost = 0.5 * np.einsum("ij,ij->j", held, miss)
    return ResidualSums(held.T @ X, held.sum(axis=0), size.sum(axis=0), length @ size, lost)


class Slope(NamedTuple):
    """The gradient of one solution, and what it is worth.

    ``gradient`` is g and ``off`` sum w e; ``away`` and ``shift`` are ||g|| and |off| / t, with what
    rounding may have hidden.
    """

    gradient: FloatArray
    off: float
    away: float
    shift: float
    figures: Figures


def slope(
    sums: ResidualSums,
    p: int,
    theta: FloatArray,
    C: float,
    training: Training,
    extent: Extent,
    fit_intercept: bool,
) -> Slope:
    """The gradient at the p-th solution, theta = (w, value at a), from sums over its rows."""
    w, off = theta[:-1], float(sums.total[p]) if fit_intercept else 0.0
    gradient = w - C * (sums.pull[p] - off * training.mean)
    rounding = ROUNDOFF * C * float(sums.added[p])
    hidden = ROUNDOFF * float(sums.taken[p]) / training.mass if fit_intercept else 0.0
    away, shift = float(np.linalg.norm(gradient)) + rounding, abs(off) / training.mass + hidden
    reach = float(_reach(C, extent))
    kkt = (away * reach + shift + (0.0 if fit_intercept else abs(theta[-1]))) / extent.unit
    gap = 0.5 * away**2 + 0.5 * C * training.mass * shift**2
    primal = 0.5 * float(w @ w) + C * float(sums.loss[p])
    floor = FLOOR * (rounding * reach + hidden) / extent.unit
    if not np.isfinite([kkt, gap, primal]).all():
        kkt, gap, floor = np.inf, np.inf, 0.0
    return Slope(gradient, off, away, shift, Figures(kkt, gap, primal, floor))


def _reach(C: FloatArray | float, extent: Extent) -> FloatArray:
    """How far a gradient of length one moves the value of any row, at most."""
    # Twice the distance from a: the mean of the rows may be as far from it.
    return np.minimum(2.0 * extent.widest, 1.0 / np.sqrt(np.multiply(C, extent.lightest)))


@dataclass(frozen=True)
class Inverse:
    """How well V diag(s) V' stands for a matrix S.

    With R = S V - V diag(s) of columns r_k: their lengths, and at most the largest singular value
    of R once they all have length one; the rounding of S, a sum over rows; and ||V V' - I||.

    Examples
    --------
    >>> S = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> found = Inverse.of(S, *np.linalg.eigh(S))
    >>> bool(found.residual.max() < 1e-14), bool(found.skew < 1e-14)
    (True, True)
    """

    residual: FloatArray
    largest: float
    rounding: float
    skew: float

    @classmethod
    def of(cls, S: FloatArray, values: FloatArray, vectors: FloatArray) -> Inverse:
        R = S @ vectors - vectors * values
        length = np.linalg.norm(R, axis=0)
        R /= np.where(length > 0, length, 1.0)
        largest = float(np.sqrt(np.abs(R.T @ R).sum(axis=0).max(initial=0.0)))
        skew = vectors.T @ vectors
        skew[np.diag_indices_from(skew)] -= 1.0
        apart = float(np.linalg.norm(skew)) + ROUNDOFF * len(S)
        return cls(length, largest, ROUNDOFF * float(np.trace(S)), apart)

    def miss(self, squares: FloatArray, length: FloatArray, damping: FloatArray) -> FloatArray:
        """||M P~ x - x|| at most, (rows, L): of rows with squares (X V)^2, for damping (L, m)."""
        along = self.largest * np.sqrt(squares @ ((damping * self.residual) ** 2).T)
        return along + self.rounding * np.sqrt(squares @ (damping**2).T) + self.skew * length


class Gone(NamedTuple):
    """Rows that were left out together, summed: each (..., L), or (..., 1) where C is not in it.

    mass, lever : sum w_i and sum w_i ||x_i||.
    bent, off : sum |r_i| ||x_i|| and sum |r_i| of the brackets r above, with their rounding.
    missed : ||(M P~ - I) X' alpha||, at most.
    saved : sum alpha_i e_i / 2, by which P falls, in units of C.
    """

    mass: FloatArray
    lever: FloatArray
    bent: FloatArray
    off: FloatArray
    missed: FloatArray
    saved: FloatArray


def bracket(
    alpha: FloatArray, moved: FloatArray, weight: FloatArray, miss: FloatArray
) -> FloatArray:
    """|w e - alpha + w X P~ X' alpha|, ``moved`` being X P~ X' alpha, and its rounding."""
    terms = weight * np.abs(miss) + np.abs(alpha) + weight * np.abs(moved)
    return np.abs(weight * (miss + moved) - alpha) + ROUNDINGS * ROUNDOFF * terms


def without(
    slopes: list[Slope], Cs: FloatArray, mass: float, extent: Extent, gone: Gone,
    fit_intercept: bool,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """KKT violation and relative gap of solutions without some rows, (..., L)."""
    away, shift, primal = np.array([(s.away, s.shift, s.figures.primal) for s in slopes]).T
    left = mass - gone.mass
    shift = (mass * shift + gone.off) / left * fit_intercept
    # About the mean of the rows that are left.
    away = away + Cs * (gone.bent + gone.missed + shift * gone.lever)
    kkt = (away * _reach(Cs, extent) + shift) / extent.unit
    gap = 0.5 * away**2 + 0.5 * Cs * left * shift**2
    least = np.maximum(primal - Cs * gone.saved, np.finfo(float).tiny)
    relative = np.divide(gap, least)
    bad = ~(np.isfinite(kkt) & np.isfinite(relative))
    return np.where(bad, np.inf, kkt), np.where(bad, np.inf, relative)
