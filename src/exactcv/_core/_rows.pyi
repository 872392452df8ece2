from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from ..types import FloatArray, IntArray

KERNEL_CODES: dict[str, int]

@final
class RowCache:
    @property
    def evaluations(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    @property
    def m(self) -> int: ...
    @property
    def rows_held(self) -> int: ...
    def __new__(cls, columns: IntArray, n: int, budget: int) -> Self: ...
    @staticmethod
    def of_matrix(K: FloatArray, columns: IntArray, budget: int) -> RowCache: ...
    @staticmethod
    def of_dense(
        X: FloatArray,
        squares: FloatArray,
        kernel: tuple[int, float, float, float],
        columns: IntArray,
        budget: int,
    ) -> RowCache: ...
    @staticmethod
    def of_sparse(
        values: FloatArray,
        indices: NDArray[np.intc],
        pointers: NDArray[np.intc],
        p: int,
        squares: FloatArray,
        kernel: tuple[int, float, float, float],
        columns: IntArray,
        budget: int,
    ) -> RowCache: ...
    def subtract(self, which: IntArray, weights: FloatArray, out: FloatArray) -> None: ...
    def products(self, which: IntArray, coef: FloatArray, out: FloatArray) -> None: ...
    def get(self, i: int) -> list[float]: ...
    def keep(self, kept: IntArray) -> None: ...
    def restore(self) -> None: ...
