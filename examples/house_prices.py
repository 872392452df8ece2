"""
House prices with 90 percent intervals
======================================

By support vector regression.

.. code-block:: sh

    python examples/house_prices.py [--data FOLDER] [--quick]

FOLDER holds boston.csv.gz (features x1 ... x13, then the price in 1,000 dollars); without it,
prices of the same kind are simulated.  The last fifth of the rows is set aside to see whether the
intervals hold.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

import exactcv


def houses(folder: str | None, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and prices, in an order of no meaning."""
    rng = np.random.default_rng(0)
    if folder is not None:
        table = np.loadtxt(Path(folder) / "boston.csv.gz", delimiter=",", skiprows=1)
        return table[:, :-1][order := rng.permutation(len(table))], table[order, -1]
    X = rng.normal(size=(n, 5))  # rooms, age, distance, crime, taxes
    price = 22 + 5 * X[:, 0] + 1.5 * X[:, 0] ** 2 - 2 * np.tanh(X[:, 1]) - 1.5 * X[:, 3]
    return X, price + rng.normal(size=n) * (1.0 + 0.8 * np.abs(X[:, 2]))


def main(folder: str | None, quick: bool) -> None:
    X, price = houses(folder, 120 if quick else 400)
    n = len(price) * 4 // 5
    scaler = StandardScaler().fit(X[:n])
    X, new = scaler.transform(X[:n]), scaler.transform(X[n:])
    y, sold = price[:n], price[n:]

    grid = {"Cs": np.geomspace(0.1, 1000, 5 if quick else 20), "gamma": [0.02, 0.1]}
    model = exactcv.SVRCV(epsilon=[0.3, 1.0, 3.0], **grid).fit(X, y)  # leave-one-out
    chosen = f"C = {model.C_:.3g}, gamma = {model.gamma_:.3g}, epsilon = {model.epsilon_:.3g}"
    print(f"{n} houses, {len(model.cv_results_['params'])} grid points, {chosen}")
    print(f"left-out R2 {model.best_score_:.3f}, exact: {model.certificate_.exact}")
    print(f"mean absolute error of new prices {np.abs(model.predict(new) - sold).mean():.2f}")

    for method in ("jackknife+", "cv+", "jackknife-minmax"):
        low, high = model.predict_interval(new, coverage=0.9, method=method).T
        inside = np.mean((low <= sold) & (sold <= high))
        print(f"{method}: {inside:.0%} of new prices inside, mean width {(high - low).mean():.1f}")
    print(model.coverage_text(0.9))

    quantiles = exactcv.QuantileSVRCV(quantiles=(0.05, 0.95), **grid).fit(X, y)
    low, high = quantiles.predict_interval(new, coverage=0.9).T
    inside = np.mean((low <= sold) & (sold <= high))
    print(f"conformalised quantiles: {inside:.0%} inside, widths from {(high - low).min():.1f} to "
          f"{(high - low).max():.1f}")  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="House prices with 90 percent intervals")
    parser.add_argument("--data")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    main(given.data, given.quick)
