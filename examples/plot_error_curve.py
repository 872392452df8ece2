"""The figure of the README: the leave-one-out error curve of the bundled breast-cancer data.

    python examples/plot_error_curve.py [FILE]

Without FILE, writes docs/figures/loo_error_curve.png.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import exactcv

FIGURE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "loo_error_curve.png"


def main(path: Path) -> None:
    X, y = exactcv.datasets.load_breast_cancer()
    result = exactcv.cross_validate(X, y, lambdas=np.geomspace(0.1, 1e-6, 60))
    figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    display = result.plot(ax=ax)
    best = result.best
    chosen = f"{result.n_errors[best]} of {len(y)} wrong at C = {result.Cs[best]:.2g}"
    display.best_.set_label(chosen)
    ax.set(title="Exact leave-one-out error, breast cancer", ylim=(0, 0.12))
    ax.legend(loc="upper left")
    # No date or version in the file: it changes only if the figure does.
    figure.savefig(path, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURE)
