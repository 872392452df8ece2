"""
Sets of labels with a guarantee
===============================

Sets of labels with a guarantee: which digit may this be?

.. code-block:: sh

    python examples/label_sets.py [--quick]

Handwritten digits (3, 5 and 8, the hardest to tell apart), few of them to learn from.  For each new
one `ConformalSVC` says which digits it may be, so that in at least 90 of 100 cases the true one is
among them: a single digit where that is clear, two or three where it is not.  No digits are set
aside for calibration.  C and gamma are fixed before the digits are looked at, as the guarantee
demands.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits

import exactcv


def main(n_train: int, n_new: int) -> None:
    X, y = load_digits(return_X_y=True)
    some = np.flatnonzero(np.isin(y, [3, 5, 8]))
    rows = np.random.default_rng(0).permutation(some)[: n_train + n_new]
    X, y = X[rows] / 16.0, y[rows]
    model = exactcv.ConformalSVC(C=1.0, gamma=0.05).fit(X[:n_train], y[:n_train])
    new, truth = X[n_train:], y[n_train:]

    p = model.p_values(new)
    place = np.searchsorted(model.classes_, truth)
    for coverage in (0.8, 0.9, 0.95, 0.99):
        inside = p > 1.0 - coverage + 1e-12
        hits, sizes = inside[np.arange(n_new), place].mean(), np.bincount(inside.sum(axis=1))
        shown = ", ".join(f"{count} of size {size}" for size, count in enumerate(sizes) if count)
        print(f"coverage asked for {coverage:.2f}, found {hits:.3f}; sets: {shown}")
    hardest = int(np.argmax(np.sort(p, axis=1)[:, -2]))
    shown = ", ".join(
        f"{digit}: {value:.2f}" for digit, value in zip(model.classes_, p[hardest], strict=True)
    )
    print(f"hardest to tell: new row {hardest}, a {truth[hardest]}; p-values {shown}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Sets of labels with guaranteed coverage.")
    parser.add_argument("--quick", action="store_true", help="20 new digits instead of 200")
    main(60, 20 if parser.parse_args().quick else 200)
