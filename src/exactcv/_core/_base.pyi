from typing import final

import numpy as np
from numpy.typing import NDArray

from ..types import FloatArray, IntArray

@final
class Base:
    def __init__(
        self,
        K: FloatArray,
        rows: IntArray,
        table: FloatArray,
        border: FloatArray,
        tail: FloatArray,
        u: FloatArray,
        c: FloatArray,
        state: NDArray[np.int8],
        knots: FloatArray,
        levels: FloatArray,
        intercept: bool,
        tol: float,
        held: int = 0,
        whole: FloatArray | None = None,
    ) -> None: ...
