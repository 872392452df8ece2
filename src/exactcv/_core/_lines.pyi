from typing import final

from ..types import FloatArray, IntArray

@final
class Lines:
    def __init__(
        self,
        table: FloatArray,
        m: int,
        scales: tuple[float, float, float, float, float, float],
        intercept: bool,
    ) -> None: ...
    def judge(
        self,
        h: FloatArray,
        coef: FloatArray,
        intercept: FloatArray,
        C: FloatArray,
        own: IntArray,
        blurred: FloatArray,
        out: FloatArray,
    ) -> None: ...
    def intercepts(
        self,
        h: FloatArray,
        coef: FloatArray,
        C: FloatArray,
        own: IntArray,
        out: FloatArray,
    ) -> None: ...
