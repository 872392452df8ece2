from ..types import FloatArray, IntArray
from ._rows import RowCache

ROUNDING: float

def sir(
    kernel: RowCache,
    coef: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    train: IntArray,
    removed: IntArray,
    added: IntArray,
    fit_intercept: bool,
    seed: FloatArray,
) -> int: ...
def shift(
    c: FloatArray, lower: FloatArray, upper: FloatArray, rows: IntArray, lack: float
) -> float: ...
def changed(old: IntArray, new: IntArray) -> tuple[IntArray, IntArray]: ...
