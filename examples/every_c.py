"""
Every C: what a grid misses
===========================

The leave-one-out error at every C, beside a grid and what it missed.

.. code-block:: sh

    python examples/every_c.py [FILE]

With FILE, the picture is written there.
"""

from __future__ import annotations

import sys

import numpy as np

import exactcv


def main(file: str | None = None) -> None:
    X, y = exactcv.datasets.make_mixture(100, 10, random_state=3)
    path = exactcv.error_path(X, y, C_range=(1e-2, 1e2))
    print(path.summary())

    # The same number at any single C.
    C = path.best_C
    alone = exactcv.cross_validate(X, y, Cs=[C])
    print(f"\nat C = {C:.4g}: {path.at(C)} errors; cross_validate: {alone.n_errors[0]}")

    # Where a grid would have stopped.
    for points in (10, 50, 200):
        found, least = path.missed(np.geomspace(1e-2, 1e2, points))
        print(f"a grid of {points:3d}: {found} errors, {found - least} more than need be")

    if file is not None:
        display = path.plot()
        display.figure_.savefig(file, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:2])
