from typing import final

import numpy as np
from numpy.typing import NDArray

from ..types import FloatArray

@final
class RoughSteps:
    def __init__(
        self,
        K: FloatArray,
        K_single: NDArray[np.float32],
        scale: float,
        knots: FloatArray,
        levels: FloatArray,
        intercept: bool,
        block: int = 2048,
    ) -> None: ...
    def run(
        self,
        C: float,
        state: NDArray[np.int8],
        c: FloatArray,
        h: FloatArray,
        eps: float,
        max_iter: int,
        cancel: NDArray[np.intc],
    ) -> tuple[int, float]: ...
    def settle(self, c: FloatArray, h: FloatArray) -> None: ...
