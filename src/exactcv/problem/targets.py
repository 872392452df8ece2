"""What a left-out value is worth: a target says when it is wrong.

A loss measures how a model fits its training rows; a target judges what it says of rows it has not
seen.  Classes are one kind of target, numbers another.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..tolerances import TIE
from ..types import BoolArray, FloatArray

__all__ = ["NUMBERS", "SIGNS", "Target"]


class Target(Protocol):
    """A kind of target; y and values have the rows along their last axis."""

    numeric: bool

    def wrong(self, y: FloatArray, values: FloatArray) -> BoolArray:
        """Which left-out values are on the wrong side?"""
        ...


class _Signs:
    """Two classes, -1 and +1: a value is right if it has the sign of its row.

    A value of zero, up to ``tolerances.TIE``, predicts neither class and is wrong, and so is one
    that is no number.
    """

    numeric = False

    def wrong(self, y: FloatArray, values: FloatArray) -> BoolArray:
        return np.asarray(~(y * values > TIE))


class _Numbers:
    """Numbers to be predicted: no value is right or wrong, only near or far."""

    numeric = True

    def wrong(self, y: FloatArray, values: FloatArray) -> BoolArray:
        return np.zeros(np.broadcast_shapes(np.shape(y), np.shape(values)), dtype=bool)


SIGNS: Target = _Signs()
NUMBERS: Target = _Numbers()
