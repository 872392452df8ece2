"""What a left-out value is worth."""

from __future__ import annotations

import numpy as np

from exactcv.problem.targets import NUMBERS, SIGNS
from exactcv.tolerances import TIE


def test_signs() -> None:
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0, 1.0])
    values = np.array([0.5, -0.5, 0.5 * TIE, 0.0, -2.0, np.nan])
    assert SIGNS.wrong(y, values).tolist() == [False, True, True, True, False, True]


def test_numbers_are_never_wrong() -> None:
    assert not NUMBERS.wrong(np.zeros(3), np.array([[1.0, -1.0, np.nan]])).any()
    assert NUMBERS.wrong(np.zeros(3), np.zeros((2, 3))).shape == (2, 3)
