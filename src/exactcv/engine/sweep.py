"""The table of some rows at a knot from that of nearly the same rows.

The rows of the table that belong to the members M (``_core/_base.pyx``), for all rows of the
problem: F = [P, X], where P is the inverse of the bordered K_MM and the columns x_j of X solve

    K_MM x_j + beta_j = K_Mj,      sum x_j = 1        (without an intercept: beta = 0, and no sum).

When rows G leave M, those that stay, S, lose  P_SG P_GG^-1 F_G.  A row j that comes then has

    T_j = K_j - beta_j - x_j' K_S      (and  T_jS = -x_j),

and with W = T_AA^-1 for all that come, A, their own rows are W T_A, and those of S lose x_A W T_A.
Columns of rows that change sides have formulas of their own: -P_SG P_GG^-1, W and -x_A W.  For g
and a rows this takes 2 (g + 2a) k n operations, where from nothing it is 2 k^2 n.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas

from ..types import BoolArray, FloatArray, IntArray

__all__ = ["swept"]

# How far the outcome may be off, relative to the terms of products with K.
OFF = 1e-12


def swept(
    K: FloatArray, intercept: bool, table: FloatArray, members: IntArray, to: IntArray
) -> FloatArray | None:
    """The rows of ``to``, from the ``table`` (k, n) of ``members``; both are sorted.

    None where nothing stays, or where rounding has spoilt the outcome.

    Examples
    --------
    >>> table = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.0]])
    >>> swept(np.diag([1.0, 2.0, 4.0]), False, table, np.array([0, 1]), np.array([0, 2]))
    array([[1.  , 0.  , 0.  ],
           [0.  , 0.  , 0.25]])
    """
    stays, comes = np.isin(members, to), ~np.isin(to, members)
    S, gone, new = members[stays], members[~stays], to[comes]
    if not len(S):
        return None
    try:
        left_gone, lost_gone = _without(table, stays, gone)
        left_new, rows_new, lost_new = _with(
            K, intercept, table[np.ix_(stays, new)] - left_gone @ lost_gone[:, new], S, new
        )
    except np.linalg.LinAlgError:
        return None
    out = np.empty((len(to), len(K)))
    out[~comes], out[comes] = table[stays], rows_new
    left = np.zeros((len(to), len(gone) + len(new)))
    left[~comes] = np.hstack([left_gone, left_new])
    # out -= left @ lost, in place: BLAS counts columns first.
    lost = np.vstack([lost_gone, lost_new])
    blas.dgemm(-1.0, lost.T, left.T, 1.0, out.T, overwrite_c=1)
    return out if _holds(K, intercept, out, to) else None


def _without(table: FloatArray, stays: BoolArray, gone: IntArray) -> tuple[FloatArray, FloatArray]:
    """Two factors of what rows lose when some of them go."""
    inverse = np.linalg.inv(table[np.ix_(~stays, gone)])
    lost = inverse @ table[~stays]
    lost[:, gone] = inverse + np.eye(len(gone))  # there P_SG becomes -P_SG P_GG^-1
    return table[np.ix_(stays, gone)], lost


def _with(
    K: FloatArray, intercept: bool, x: FloatArray, S: IntArray, new: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same when some come, whose columns are x; and their own rows."""
    T = K[new] - x.T @ K[S]
    if intercept:
        T -= T[:, S].mean(axis=1, keepdims=True)  # beta
    T[:, S] = -x.T
    inverse = np.linalg.inv(T[:, new])
    rows = inverse @ T
    rows[:, new] = inverse
    lost = rows.copy()
    lost[:, new] += np.eye(len(new))  # there x becomes -x W
    return x, rows, lost


def _holds(K: FloatArray, intercept: bool, table: FloatArray, members: IntArray) -> bool:
    """Do coefficients have the values, and the sum, that the table says?

    Tested on a random combination of its rows (``judge/claims.py``); what comes of it is judged in
    any case.
    """
    z = np.random.default_rng(0).standard_normal(len(members))
    said = z @ table
    coef = np.zeros_like(said)
    coef[members], said[members] = said[members], z
    off = K @ coef - said
    if intercept:
        off -= off[members].mean()
    size = float(np.abs(coef).sum())
    if intercept and abs(float(coef.sum())) > OFF * size:
        return False
    return float(np.abs(off).max()) <= OFF * (1.0 + size * float(np.abs(K.diagonal()).max()))
