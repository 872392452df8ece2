"""The smooth SVM (SSVM): a squared hinge loss and a ridge on everything, the intercept included.

    min over theta   1/2 ||theta||^2 + c/2 sum_{i in train} w_i (1 - y_i f_i)_+^2

*Linear*: theta = (w, b), f = X w + b.

*Nonlinear*: the kernel matrix is the data, theta = (u, b), f = K u + b, and the ridge is on u
itself (not on u' K u): this is not the C-SVC of the same kernel. A row that is left out takes its
kernel column along, so its u is zero. A row of weight w stands for w copies of itself; those would
have w columns of equal coefficient, hence the ridge u_j^2 / w_j.

With u_j = sqrt(w_j) theta_j and rows scaled by sqrt(w_i), both are one unweighted problem:

    A    = sqrt(w_i) [x_i, 1]   or   sqrt(w_i) [K_ij sqrt(w_j), 1]      n x d
    t_i  = sqrt(w_i) y_i
    S    = {i in train: y_i (t_i - A_i theta) > 0}, the support vectors
    g    = theta - c A_S' (t - A theta)_S          the gradient, (2) with the factor c it lacks
    H    = I + c A_S' A_S                           the generalised Hessian, (3)

On a fixed S the objective is quadratic, so a full Newton step leads to the point

    theta = A_S' alpha,    alpha = c (t - A theta)_S,

whatever it started from: ``alpha`` and f = A theta are all that the solvers carry along.  If the
support vectors of that point are S again it is the solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...types import BoolArray, FloatArray, IntArray

__all__ = ["Design", "make_design", "plus_identity"]


SWALLOWED = 4.0 * float(np.finfo(float).eps)  # of the trace


def plus_identity(M: FloatArray) -> FloatArray:
    """M + I, in place, for a positive semidefinite M.

    Where rounding would swallow the identity (c beyond 1e10 or so), as much as lets the sum be
    factorised; the judge then finds what that does to the solution.
    """
    M.flat[:: len(M) + 1] += max(1.0, SWALLOWED * float(np.trace(M)))
    return M


@dataclass(frozen=True)
class Design:
    """The scaled data of one problem (see above).

    Attributes
    ----------
    A : (n, d)
        The last column belongs to the intercept, if there is one.
    t, y, root : (n,)
        Scaled labels, labels and sqrt(w).
    own_columns : bool
        Does leaving out row j take column j along (nonlinear)?
    intercept : bool
    """

    A: FloatArray
    t: FloatArray
    y: FloatArray
    root: FloatArray
    own_columns: bool
    intercept: bool

    @property
    def n(self) -> int:
        return int(self.A.shape[0])

    @property
    def d(self) -> int:
        return int(self.A.shape[1])

    @cached_property
    def Q(self) -> FloatArray:
        """A A', where it is the smaller matrix by far (see `gram` and `through`)."""
        Q: FloatArray = self.A @ self.A.T
        return Q

    @property
    def wide(self) -> bool:
        """Are there so many more columns than rows that A A' saves work?"""
        return self.d > 2 * self.n

    def gram(self, rows: IntArray) -> FloatArray:
        """A A_rows', shape (n, r)."""
        found: FloatArray = self.Q[:, rows] if self.wide else self.A @ self.A[rows].T
        return found

    def through(self, alpha: FloatArray, rows: IntArray) -> FloatArray:
        """f = A A' alpha on these rows, outside which alpha is zero; for each row of alpha."""
        if self.wide:
            return np.asarray(alpha @ self.Q)
        f, A = np.zeros_like(alpha), self.A[rows]
        f[:, rows] = (alpha[:, rows] @ A) @ A.T
        return f

    def square(self, rho: FloatArray, rows: IntArray) -> FloatArray:
        """||A' rho||^2 for each row of rho, zero outside ``rows``."""
        if self.wide:
            return np.maximum(np.einsum("ij,ij->i", rho @ self.Q, rho), 0.0)
        G = rho[:, rows] @ self.A[rows]
        return np.asarray(np.einsum("ij,ij->i", G, G))

    @cached_property
    def norms(self) -> FloatArray:
        """Length of each row of A."""
        return np.sqrt(np.einsum("ij,ij->i", self.A, self.A))

    @cached_property
    def used(self) -> BoolArray:
        """Rows with positive weight."""
        return np.asarray(self.root > 0)

    def columns(self, rows: IntArray) -> IntArray:
        """The columns that leave with these rows (columns of rows without weight are zero)."""
        return rows[self.used[rows]] if self.own_columns else rows[:0]

    def support(self, f: FloatArray, train: BoolArray) -> BoolArray:
        """Which training rows are support vectors at f = A theta."""
        return np.asarray(train & (self.y * (self.t - f) > 0))

    def multipliers(self, f: FloatArray, active: BoolArray, c: float) -> FloatArray:
        """alpha = c (t - f) on ``active``, zero elsewhere."""
        return np.where(active, c * (self.t - f), 0.0)

    def theta(self, alpha: FloatArray, dropped: IntArray) -> FloatArray:
        """A' alpha without the dropped columns; ``alpha`` may hold several solutions."""
        theta: FloatArray = alpha @ self.A
        theta[..., dropped] = 0.0
        return theta

    def objective(self, theta: FloatArray, c: float, train: BoolArray) -> float:
        f = self.A @ theta
        slack = np.where(self.support(f, train), self.t - f, 0.0)
        return float(0.5 * theta @ theta + 0.5 * c * (slack @ slack))

    def gradient(self, theta: FloatArray, c: float, train: BoolArray) -> FloatArray:
        f = self.A @ theta
        g: FloatArray = theta - self.A.T @ self.multipliers(f, self.support(f, train), c)
        return g

    def hessian(self, c: float, active: BoolArray) -> FloatArray:
        """I + c A_S' A_S."""
        rows = self.A[active]
        return plus_identity(c * (rows.T @ rows))

    def split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(coefficients of the features or of K's columns, intercept), in the user's scale."""
        b = theta[..., -1] if self.intercept else np.zeros(theta.shape[:-1])
        w = theta[..., :-1] if self.intercept else theta
        return (w * self.root if self.own_columns else w), b


def make_design(
    data: FloatArray, y: FloatArray, weight: FloatArray, intercept: bool, own_columns: bool
) -> Design:
    """Scale the data: features of the linear model, or a kernel matrix with ``own_columns``.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([1.0, -1.0])
    >>> make_design(np.array([[3.0], [5.0]]), y, np.array([4.0, 1.0]), True, False).A
    array([[6., 2.],
           [5., 1.]])
    """
    root = np.sqrt(weight)
    scaled = data * root[:, None]
    if own_columns:
        scaled *= root
    A = np.column_stack([scaled, root]) if intercept else scaled
    A = np.ascontiguousarray(A)
    return Design(A, root * y, y, root, own_columns, intercept)
