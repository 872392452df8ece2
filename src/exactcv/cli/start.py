"""Where the command begins: before anything that takes time is imported.

Python's own traceback would be the answer to Ctrl-C while NumPy is still loading.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> int:
    """Load the command line and run it; returns the exit status."""
    try:
        from .main import main as run

        return run()
    except KeyboardInterrupt:
        print("exactcv: interrupted", file=sys.stderr)
        return 130
