from enum import IntFlag
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..types import FloatArray, IntArray
from ._factor import Factor

class Status(IntFlag):
    CONVERGED = 0
    STALLED = 1
    SINGULAR = 2

@final
class ActiveSet:
    @property
    def factor(self) -> Factor: ...
    def __init__(
        self, K: FloatArray, knots: FloatArray, levels: FloatArray, intercept: bool
    ) -> None: ...
    def solve(
        self,
        C: float,
        state: NDArray[np.int8],
        c: FloatArray,
        h: FloatArray,
        b: float,
        monotone: bool,
        residual: float = 1e-11,
        crowd: float = ...,
        tol: float = 1e-11,
        max_iter: int = 100000,
    ) -> tuple[float, int, int]: ...
    def onto_knots(
        self, C: float, state: NDArray[np.int8], c: FloatArray, h: FloatArray, b: float
    ) -> tuple[float, int]: ...
    def misplaced(
        self,
        C: float,
        state: NDArray[np.int8],
        c: FloatArray,
        h: FloatArray,
        b: float,
        tol: float = 1e-11,
    ) -> tuple[int, float]: ...
    def solve_sets(
        self,
        Cs: FloatArray,
        levels: FloatArray,
        state: NDArray[np.int8],
        c: FloatArray,
        h: FloatArray,
        b: FloatArray,
        crowd: float,
        monotone: bool,
        solved: NDArray[np.uint8],
        gammas: FloatArray | None = ...,
    ) -> int: ...
    def make_feasible(
        self, C: float, state: NDArray[np.int8], c: FloatArray, h: FloatArray, b: float
    ) -> None: ...

def add_rows(K: FloatArray, rows: IntArray, steps: FloatArray, h: FloatArray) -> None: ...
def census(state: NDArray[np.int8], c: FloatArray) -> tuple[int, int]: ...
