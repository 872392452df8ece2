from enum import IntFlag
from typing import final

from ._base import Base

class Outcome(IntFlag):
    DONE = 0
    TOO_LONG = 1
    NO_ROW_LEFT = 2
    SINGULAR = 3

@final
class Drive:
    @property
    def events(self) -> int: ...
    def __init__(self, base: Base) -> None: ...
