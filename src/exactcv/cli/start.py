"""Where the command begins: before anything that takes time is imported.

Python's own traceback would be the answer to Ctrl-C while NumPy is still loading; or none, and the
command would go on, if the exception fell into one of the places where Python ignores it.  So
until a command is ready to work nothing is raised: there is nothing to save, and it ends at once.
"""

from __future__ import annotations

import os
import signal

__all__ = ["main", "ready"]

INTERRUPTED = 130


def main() -> int:
    """Load the command line and run it; returns the exit status."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not of a job under nohup
        signal.signal(signal.SIGINT, _end_at_once)
    try:
        from .main import main as run

        return run()
    finally:
        ready()


def ready() -> None:
    """All is loaded: from now on Ctrl-C is an exception again, and keeps what is finished."""
    if signal.getsignal(signal.SIGINT) is _end_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end_at_once(*_: object) -> None:
    os.write(2, b"exactcv: interrupted\n")
    os._exit(INTERRUPTED)
