"""Ctrl-C before a command is ready to work: it ends at once.

Python's own traceback would be the answer while NumPy is still loading; or none, and the command
would go on, if the exception fell into one of the places where Python ignores it.  So until all is
loaded nothing is raised: there is nothing to save.

What comes before this module is read is Python's own start (``site``, and the few lines of the
script that pip writes), which no package can answer for.  Little is imported until then, so that
it is soon.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # `signal` itself makes enums of it
import os

__all__ = ["end_at_once", "ready"]

INTERRUPTED = 130


def end_at_once() -> None:
    """From now on Ctrl-C ends the process."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not of a job under nohup
        signal.signal(signal.SIGINT, _end)


def ready() -> None:
    """All is loaded: from now on Ctrl-C is an exception again, and keeps what is finished."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(*_: object) -> None:
    os.write(2, b"exactcv: interrupted\n")
    os._exit(INTERRUPTED)
