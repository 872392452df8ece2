"""epsilon-SSVR: smooth support vector regression by the updates of the smooth SVM.

    min over theta   1/2 ||theta||^2 + c/2 sum_i w_i (|y_i - f_i| - eps)_+^2

Lee, Hsieh & Huang (2005); Tseng & Lee name it as one of the models that their updates serve.  Each
side of the tube is a one-sided squared loss,

    (y_i - eps - f_i)_+^2  and  (f_i - y_i - eps)_+^2,

so a row is two rows of a `Design` that share their features, of "class" +1 with the target
y_i - eps and of "class" -1 with the target y_i + eps: S = {i: +-(t_i - f_i) > 0} and everything
that follows from it stays as it is.  Leaving a row out takes both, and with a kernel its column.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...types import BoolArray, FloatArray, IntArray
from .design import Design
from .newton_armijo import (
    ROUGH,
    Fit,
    Updated,
    hold,
    leave_afresh,
    leave_out,
    polish,
)
from .updates import Leaving

__all__ = ["left_out_values", "tube_design"]


def tube_design(
    data: FloatArray, y: FloatArray, epsilon: float, weight: FloatArray, intercept: bool
) -> Design:
    """Two rows a row: features, or a kernel matrix whose columns are scaled already.

    Examples
    --------
    >>> import numpy as np
    >>> design = tube_design(np.array([[3.0]]), np.array([5.0]), 0.5, np.ones(1), True)
    >>> design.A, design.t
    (array([[3., 1.],
           [3., 1.]]), array([4.5, 5.5]))
    """
    root = np.sqrt(weight)
    scaled = data * root[:, None]
    A = np.column_stack([scaled, root]) if intercept else scaled
    targets = np.concatenate([root * (y - epsilon), root * (y + epsilon)])
    sides = np.repeat([1.0, -1.0], len(y))
    both = np.ascontiguousarray(np.vstack([A, A]))
    return Design(both, targets, sides, np.tile(root, 2), False, intercept)


def left_out_values(
    design: Design,
    c: float,
    found: Fit,
    folds: Iterable[tuple[IntArray, IntArray]],
    own_columns: bool,
    strategy: str = "auto",
) -> list[FloatArray]:
    """theta of each fold (rows left out, rows tested): from the full solution by updates.

    Returns theta on the columns of the design, one a fold; a fold whose gradient the updates leave
    too large is solved by factorisations of its own.
    """
    n = design.n // 2
    held = None if strategy == "none" else hold(design, c, found.active, strategy)
    thetas = []
    for out, _ in folds:
        train = design.used.copy()
        train[out] = train[out + n] = False
        dropped = out[design.used[out]] if own_columns else out[:0]
        answer = None
        if held is not None:
            leaving = Leaving(held, dropped)
            guess = leave_out(leaving, train)
            if guess.converged:
                answer = polish(design, c, guess, dropped, Updated(held, [leaving], [guess]).solve)
        if answer is None or not _arrived(design, c, answer, train, dropped):
            answer = leave_afresh(design, c, train, dropped, found.active)
        thetas.append(answer.theta)
    return thetas


def _arrived(design: Design, c: float, found: Fit, train: BoolArray, dropped: IntArray) -> bool:
    g = design.gradient(found.theta, c, train)
    g[dropped] = 0.0
    return bool(np.linalg.norm(g) <= ROUGH * max(1.0, float(np.linalg.norm(found.theta))))
