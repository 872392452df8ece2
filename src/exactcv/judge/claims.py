"""Values that a method claims for many solutions, checked together.

The ledger works out h = K c from the coefficients, at n^2 operations a solution.  A method that
leaves rows out by columns of a table knows h already; but it may be wrong.  Freivalds' test finds
out for all its solutions at the price of a few: with the coefficients as rows of A, the claims as
rows of H, and normal numbers z,

    z' (A K - H)        from  z' A,  z' H  and one product with K.

Both are taken relative to a solution whose K c is at hand, the full data's: where C is large, sums
of coefficients that are common to all folds would drown the errors in rounding.

If entry (f, i) of A K - H is e, entry i of this is normal with a deviation of at least |e|, and
with 48 such z all of them are below |e| / 2 with a probability of 1e-20.  So twice the largest
entry bounds all errors.  Until it is known, solutions are judged with an allowance for it; if it
turns out to be more, their entries are void and have to be made again from K c.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..types import FloatArray
from .piecewise_linear import PiecewiseLinearJudge

__all__ = ["FLATTERY", "PROBES", "Claims"]

# Random vectors, and by how much they may flatter: a normal number is below 1 / FLATTERY in size
# with a probability of 0.38, all of them with one of 1e-20.
PROBES, FLATTERY = 48, 2.0


class Claims:
    """What was claimed so far; ``allowed`` is what a claim may be off by.

    ``judge`` is the judge that makes allowance for that.  ``near`` are the coefficients of a
    solution nearby and their K c, as good as a product with K gives it.

    Examples
    --------
    >>> from exactcv.problem.losses import hinge
    >>> K = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> y = np.array([1.0, -1.0])
    >>> judge = PiecewiseLinearJudge.of(hinge(y), np.ones(2), True, K.diagonal())
    >>> claims = Claims(K, judge, allowed=1e-9, near=(np.zeros(2), np.zeros(2)))
    >>> c = np.array([[0.5, -0.5]])
    >>> claims.add(c, c @ K)
    >>> claims.hold()
    True
    >>> claims.add(c, c @ K + 1e-6)
    >>> claims.hold()
    False
    """

    def __init__(
        self,
        K: FloatArray,
        judge: PiecewiseLinearJudge,
        allowed: float,
        near: tuple[FloatArray, FloatArray],
    ):
        self.allowed, self.judge = allowed, replace(judge, blurred=allowed)
        self._K, self._rng, self._near = K, np.random.default_rng(0), near
        self._coef = np.zeros((PROBES, len(K)))
        self._h = np.zeros((PROBES, len(K)))

    def add(self, coef: FloatArray, h: FloatArray) -> None:
        """Solutions, one a row, and what is claimed to be their K c."""
        z = self._rng.standard_normal((PROBES, len(coef)))
        self._coef += z @ (coef - self._near[0])
        self._h += z @ (h - self._near[1])

    def hold(self) -> bool:
        """Is no claim off by more than is allowed?"""
        off = np.abs(self._coef @ self._K - self._h).max(initial=0.0)
        return bool(FLATTERY * off <= self.allowed)
