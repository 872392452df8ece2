import numpy as np
from numpy.typing import NDArray

from ..types import FloatArray, IntArray

_Flags = NDArray[np.uint8]

def near_rows(
    u: FloatArray,
    knots: FloatArray,
    up: _Flags,
    weight: FloatArray,
    width: FloatArray,
    key: FloatArray,
    rate: FloatArray,
    near: _Flags,
    mass: FloatArray,
) -> None: ...
def held_sums(
    u: FloatArray,
    knots: FloatArray,
    slopes: FloatArray,
    weight: FloatArray,
    aside: _Flags,
    length: FloatArray,
    held: FloatArray,
    sums: FloatArray,
    bound: IntArray,
) -> None: ...
def settled(
    u: FloatArray,
    y: FloatArray,
    knots: FloatArray,
    slopes: FloatArray,
    weight: FloatArray,
    own: FloatArray,
    C: FloatArray,
    least: FloatArray,
    most: FloatArray,
    slack: FloatArray,
    tie: float,
    wrong: _Flags,
    still_open: _Flags,
    kept: _Flags,
) -> None: ...
