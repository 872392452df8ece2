from typing import final

import numpy as np
from numpy.typing import NDArray

from ..types import FloatArray, IntArray

FACTS: tuple[str, ...]

@final
class LeaveSeveral:
    @property
    def events(self) -> int: ...
    def __init__(
        self,
        table: FloatArray,
        k: int,
        u: FloatArray,
        c: FloatArray,
        state: NDArray[np.int8],
        knots: FloatArray,
        levels: FloatArray,
        tol: float,
        near: float,
        scale: float,
    ) -> None: ...
    def leave_out(
        self,
        sets: IntArray,
        offsets: IntArray,
        rows: IntArray,
        states: NDArray[np.int8],
        values: FloatArray,
        facts: FloatArray,
        done: NDArray[np.int8],
        out: FloatArray,
        cancel: NDArray[np.intc],
    ) -> None: ...
