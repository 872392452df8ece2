"""Values that a method claims for its solutions, checked at the price of a few products.

The ledger works out h = K c from the coefficients, at n^2 operations a solution.  A method that
leaves rows out by columns of a table knows h already; but it may be wrong.  Freivalds' test finds
out: with what is claimed off by e = K c - h and normal numbers z,

    z' e = (K z)' c - z' h,      normal with deviation ||e||,

where K z is worked out once for all solutions.  With 24 such z all of them are below ||e|| / 6 with
a probability of 1e-21.  So six times the largest bounds ||e||, and each solution is judged with an
allowance for its own.  Claims do not depend on z: no method knows it.

Both are taken relative to a solution whose K c is at hand, the full data's: where C is large, sums
of coefficients that are common to all folds would drown the errors in rounding.
"""

from __future__ import annotations

import numpy as np

from ..types import FloatArray

__all__ = ["PROBES", "Claims"]

# Random vectors, and by how much they may flatter: a normal number is below 1 / FLATTERY in size
# with a probability of 0.13, all of them with one of 1e-21.
PROBES, FLATTERY = 24, 6.0


class Claims:
    """Checks claims of products with one K.

    Examples
    --------
    >>> K = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> claims, nearby = Claims(K), (np.zeros(2), np.zeros(2))
    >>> c = np.array([[0.5, -0.5]])
    >>> (claims.off(c, c @ K, nearby) < 1e-14).tolist()
    [True]
    >>> (claims.off(c, c @ K + 1e-6, nearby) > 1e-6).tolist()
    [True]
    """

    def __init__(self, K: FloatArray):
        self._z = np.random.default_rng(0).standard_normal((len(K), PROBES))
        self._Kz = K @ self._z

    def off(
        self, coef: FloatArray, h: FloatArray, near: tuple[FloatArray, FloatArray]
    ) -> FloatArray:
        """By how much each claim is off at most, in the Euclidean norm.

        Solutions and what is claimed to be their K c, one a row; ``near`` are the coefficients of a
        solution nearby and their K c, as good as a product with K gives it.
        """
        found = (coef - near[0]) @ self._Kz - (h - near[1]) @ self._z
        return np.asarray(FLATTERY * np.abs(found).max(axis=1, initial=0.0))
