"""Model files that someone has tampered with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

DIGEST = 32


def sealed(data: bytes) -> bytes:
    """With the right checksum, as someone would write it who means harm."""
    return data + hashlib.sha256(data).digest()


def with_header(change: Callable[[dict[str, Any]], None], data: bytes) -> bytes:
    """The same file with another header."""
    size = int.from_bytes(data[8:16], "little")
    header = json.loads(data[16 : 16 + size])
    change(header)
    text = json.dumps(header).encode()
    return sealed(data[:8] + len(text).to_bytes(8, "little") + text + data[16 + size : -DIGEST])
