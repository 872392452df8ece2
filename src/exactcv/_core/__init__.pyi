# The compiled modules have no stubs of their own.
from typing import Any

def __getattr__(name: str) -> Any: ...
