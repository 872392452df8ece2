"""Where the command begins: before anything that takes time is imported."""

from __future__ import annotations

from .early_interrupt import end_at_once, ready

__all__ = ["main"]


def main() -> int:
    """Load the command line and run it; returns the exit status."""
    end_at_once()
    try:
        from .main import main as run

        return run()
    finally:
        ready()
