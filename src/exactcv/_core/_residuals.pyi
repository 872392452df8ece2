import numpy as np
from numpy.typing import NDArray

from ..types import FloatArray, IntArray

def judge(
    h: FloatArray,
    coef: FloatArray,
    at: IntArray,
    scale: FloatArray,
    intercept: FloatArray,
    C: FloatArray,
    tables: FloatArray,
    which: IntArray,
    own: IntArray,
    widest: float,
    heaviest: FloatArray,
    lightest: FloatArray,
    slack: float,
    fit_intercept: bool,
    blurred: FloatArray,
    out: FloatArray,
) -> None: ...
def intercepts(
    h: FloatArray,
    coef: FloatArray,
    at: IntArray,
    scale: FloatArray,
    C: FloatArray,
    tables: FloatArray,
    which: IntArray,
    own: IntArray,
    near: float,
    out: FloatArray,
) -> None: ...
def sizes(coef: FloatArray, scale: FloatArray, out: FloatArray) -> None: ...
def margins(
    change: FloatArray,
    margin: FloatArray,
    sign: FloatArray,
    before: FloatArray,
    tie: float,
    wrong: FloatArray,
    more: FloatArray,
) -> None: ...
def touched_columns(
    coef: FloatArray, base: FloatArray, own: IntArray, mark: FloatArray, columns: IntArray
) -> int: ...
def nearby_values(
    K: FloatArray,
    coef: FloatArray,
    base: FloatArray,
    h_base: FloatArray,
    own: IntArray,
    columns: IntArray,
    pack: FloatArray,
    panel: FloatArray,
    out: FloatArray,
) -> None: ...
def tested_values(
    h: FloatArray,
    intercept: FloatArray,
    blur: FloatArray,
    where: IntArray,
    which: IntArray,
    offsets: IntArray,
    rows: IntArray,
    y: FloatArray,
    tie: float,
    decision: FloatArray,
    wrong: NDArray[np.uint8],
    blurred: NDArray[np.uint8],
) -> None: ...
