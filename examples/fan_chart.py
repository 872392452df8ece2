"""
A fan chart of quantiles
========================

Quantiles of the head's acceleration after a motorcycle's impact.

.. code-block:: sh

    python examples/fan_chart.py [FILE] [--data FOLDER] [--quick]

FOLDER holds mcycle.csv.gz (columns: milliseconds, acceleration), the data of Silverman (1985) that
come with the R package MASS; without it, measurements of the same kind are simulated.  The spread
of the noise changes with time, which quantiles show and a band of constant width hides.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import exactcv


def measurements(folder: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Milliseconds after the impact, and acceleration in g."""
    if folder is not None:
        table = np.loadtxt(Path(folder) / "mcycle.csv.gz", delimiter=",", skiprows=1)
        return table[:, 0], table[:, 1]
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(2, 58, 133))
    middle = -115 * np.exp(-(((t - 21) / 5.5) ** 2)) + 45 * np.exp(-(((t - 32) / 6) ** 2))
    return t, middle + rng.normal(size=133) * (1 + 25 * (t > 14) * np.exp(-(((t - 28) / 15) ** 2)))


def main(path: Path | None, folder: str | None, quick: bool) -> None:
    t, y = measurements(folder)
    quantiles = [0.05, 0.5, 0.95] if quick else [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95]
    grid = {"Cs": np.geomspace(1, 1e4, 5 if quick else 15), "gamma": [0.01, 0.03]}
    model = exactcv.QuantileSVRCV(quantiles=quantiles, **grid).fit(t[:, None], y)

    print(f"{len(t)} rows, {len(quantiles)} quantiles, exact: {model.certificate_.exact}")
    for tau, C, gamma, score in zip(
        model.quantiles_, model.C_, model.gamma_, model.best_score_, strict=True
    ):
        print(f"quantile {tau:4.2f}: C = {C:.3g}, gamma = {gamma:.3g}, left-out loss {-score:.3f}")
    below = (y[:, None] <= np.sort(model.left_out_, axis=1)).mean(axis=0)
    print("left-out rows below:", " ".join(f"{share:.2f}" for share in below))
    print(f"rows where left-out quantiles cross: {model.crossings_:.0%}")
    low, high = model.predict_interval(t[:, None], coverage=0.9).T
    print(f"{model.coverage_text(0.9)} Here: {np.mean((low <= y) & (y <= high)):.0%}")

    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    fan = np.linspace(t.min(), t.max(), 300)
    exactcv.FanChartDisplay.from_quantile_model(model, fan, ax=ax)
    ax.plot(t, y, ".", color="black", markersize=4)
    ax.set(xlabel="milliseconds", ylabel="acceleration / g")
    if path is not None:
        figure.savefig(path, dpi=110, metadata={"Software": None})
        print(f"drawn: {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A fan chart of quantiles")
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--data")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    main(given.file, given.data, given.quick)
