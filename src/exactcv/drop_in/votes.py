"""From the decision values of all pairs of classes to labels, by LIBSVM's rules.

Pairs are (0, 1), (0, 2), ..., (1, 2), ...  A positive value of the pair (i, j) stands for j, so
that two classes need no special case: SVC's ``decision_function`` is that value.  LIBSVM gives the
vote to i if its own value (ours with the sign turned) is positive, else to j; most votes win, the
first class at a draw.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from ..folds import IntArray
from ..losses import FloatArray

__all__ = ["decision_function", "labels", "pairs_of", "predict"]


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    """All pairs i < j.

    Examples
    --------
    >>> pairs_of(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return list(combinations(range(n_classes), 2))


def for_second(values: FloatArray) -> NDArray[np.bool_]:
    """Does the pair vote for its second class?  A zero, up to rounding, does."""
    return np.asarray(values >= -tolerances.TIE)


def votes(second: NDArray[np.bool_], n_classes: int) -> IntArray:
    """Votes for each class, from (..., n_pairs) to (..., n_classes)."""
    count = np.zeros((*second.shape[:-1], n_classes), dtype=np.intp)
    for p, (i, j) in enumerate(pairs_of(n_classes)):
        count[..., j] += second[..., p]
        count[..., i] += ~second[..., p]
    return count


def labels(second: NDArray[np.bool_], n_classes: int) -> IntArray:
    """The class with most votes, the first at a draw.

    Examples
    --------
    >>> labels(np.array([[True, True, False], [False, True, False]]), 3)
    array([1, 0])
    """
    if n_classes == 2:
        return second[..., 0].astype(np.intp)
    return np.asarray(votes(second, n_classes).argmax(axis=-1))


def decision_function(values: FloatArray, n_classes: int, shape: str) -> FloatArray:
    """What SVC's ``decision_function`` returns, from (..., n_pairs) values.

    "ovr": votes plus the sum of the pair values, squeezed into (-1/3, 1/3) so that it only
    breaks draws.  "ovo": the pair values, positive for the first class of each pair.
    """
    if n_classes == 2:
        return values[..., 0]
    if shape == "ovo":
        return -values
    count = votes(values > 0, n_classes)  # here, unlike in predict, a zero is for the first
    total = np.zeros(count.shape)
    for p, (i, j) in enumerate(pairs_of(n_classes)):
        total[..., j] += values[..., p]
        total[..., i] -= values[..., p]
    return np.asarray(count + total / (3.0 * (np.abs(total) + 1.0)))


def predict(values: FloatArray, n_classes: int, svc: Any) -> IntArray:
    """The label that ``svc.predict`` gives, as an index into the classes."""
    if svc.break_ties and n_classes > 2 and svc.decision_function_shape == "ovr":
        return np.asarray(decision_function(values, n_classes, "ovr").argmax(axis=-1))
    return labels(for_second(values), n_classes)
