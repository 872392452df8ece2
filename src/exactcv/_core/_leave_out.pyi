from enum import IntFlag
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..types import FloatArray, IntArray
from ._base import Base

FACTS: tuple[str, ...]

class Driven(IntFlag):
    NOBODY = 0
    SHORT = 1
    ALL = 2

@final
class LeaveOut:
    @property
    def events(self) -> int: ...
    def __init__(self, base: Base, near: float, offset: FloatArray, given: float) -> None: ...
    def leave_out(
        self,
        who: IntArray,
        position: IntArray,
        taken: FloatArray,
        column: FloatArray,
        column_of: IntArray,
        facts: FloatArray,
        outcome: NDArray[np.int8],
        out: FloatArray,
        values: FloatArray,
        drive: Driven,
        cancel: NDArray[np.intc],
    ) -> None: ...
