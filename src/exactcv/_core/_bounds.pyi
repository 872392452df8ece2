import numpy as np
from numpy.typing import NDArray

from ..types import FloatArray, IntArray

def walk(
    knots: FloatArray,
    levels: FloatArray,
    state: NDArray[np.int8],
    coef: FloatArray,
    u: FloatArray,
    who: IntArray,
    margin: float,
    least: FloatArray,
    most: FloatArray,
) -> None: ...
