from enum import IntFlag
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..types import FloatArray, IntArray

class Outcome(IntFlag):
    DONE = 0
    TOO_LONG = 1
    NO_ROW_LEFT = 2
    SINGULAR = 3

@final
class LeaveOut:
    @property
    def events(self) -> int: ...
    def __init__(
        self,
        K: FloatArray,
        rows: IntArray,
        border: FloatArray,
        P: FloatArray,
        response: FloatArray,
        members: IntArray,
        u: FloatArray,
        c: FloatArray,
        state: NDArray[np.int8],
        knots: FloatArray,
        levels: FloatArray,
        intercept: bool,
        tol: float,
    ) -> None: ...
    def leave_out(
        self,
        who: IntArray,
        position: IntArray,
        coef: FloatArray,
        column: FloatArray,
        out: FloatArray,
        outcome: NDArray[np.int8],
        cancel: NDArray[np.intc],
    ) -> None: ...
