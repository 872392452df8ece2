"""Where the command begins: before anything that takes time is imported."""

from __future__ import annotations

import os

from .early_interrupt import end_at_once, ready

__all__ = ["main"]


def main() -> int:
    """Load the command line and run it; returns the exit status."""
    end_at_once()
    try:
        try:
            from .main import main as run
        except (ImportError, MemoryError) as error:  # no room for a library, under ulimit -v say
            if isinstance(error, ImportError) and "map segment" not in str(error):
                raise
            os.write(2, b"exactcv: error: there is not enough memory to load the libraries\n")
            return 1
        return run()
    finally:
        ready()
