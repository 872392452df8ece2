import numpy as np
from numpy.typing import NDArray

from ..types import FloatArray

def pair_steps(
    K: FloatArray,
    r: int,
    fixed: FloatArray,
    moving: FloatArray,
    tie: float,
    rounding: float,
    fit_intercept: bool,
    second: bool,
    eps: float,
    max_iter: int,
    cancel: NDArray[np.intc],
) -> tuple[int, int, int, float, float]: ...
def lower_quantile(values: FloatArray, weights: FloatArray, target: float) -> float: ...
