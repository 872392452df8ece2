import numpy as np
from numpy.typing import NDArray

from ..types import FloatArray, IntArray

def between(
    K: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    C0: FloatArray,
    coef0: FloatArray,
    u0: FloatArray,
    C1: FloatArray,
    coef1: FloatArray,
    u1: FloatArray,
    which: IntArray,
    rest: FloatArray,
    kernel: FloatArray,
    square: FloatArray,
    widest: FloatArray,
    value0: FloatArray,
    value1: FloatArray,
    closeness: float,
    intercept: bool,
    proved: NDArray[np.uint8],
    line: NDArray[np.uint8],
) -> None: ...
