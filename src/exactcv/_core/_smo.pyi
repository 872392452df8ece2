import numpy as np
from numpy.typing import NDArray

from ..types import FloatArray, IntArray
from ._rows import RowCache

def smo_steps(
    source: FloatArray | RowCache,
    rows: IntArray,
    diagonal: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    coef: FloatArray,
    e: FloatArray,
    fit_intercept: bool,
    eps: float,
    max_iter: int,
    cancel: NDArray[np.intc],
    shrinking: bool = True,
) -> tuple[int, float, int]: ...
def gradient(
    source: FloatArray | RowCache,
    rows: IntArray,
    target: FloatArray,
    coef: FloatArray,
    e: FloatArray,
) -> None: ...
