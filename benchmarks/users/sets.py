"""The sets on which users' grids are measured: real data, standardised."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

CSV = (
    "heart", "sonar", "australian", "pima", "ionosphere", "musk", "arrhythmia", "chess",
    "madelon", "a1a", "a9a_5000", "w8a",
)  # fmt: skip
IDA = ("image", "splice", "german", "titanic", "flare_solar", "waveform", "ringnorm")
OWN = {  # scikit-learn's own
    "digits": load_digits,
    "wine": load_wine,
    "iris": load_iris,
    "breast_cancer": load_breast_cancer,
}
SETS = (*CSV, *IDA, "digits")
# Larger sets are cut down to so many rows, drawn at random.
MOST = dict.fromkeys(IDA, 2000) | {"w8a": 5000}
Cs = np.logspace(-2, 3, 11)
GAMMAS = (0.1, 1.0, 10.0)  # divided by the number of features


def load(folder: Path, name: str, rows: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Standardised features and labels, +-1 if there are two.

    ``rows`` of them at random, if there are more.
    """
    if name in OWN:
        X, y = OWN[name](return_X_y=True)
    elif name in IDA:
        with np.load(folder / "ida" / f"{name}.npz") as stored:
            X, y = stored["x"].astype(float), stored["t"].astype(float).ravel()
    else:
        table = np.loadtxt(folder / f"{name}.csv.gz", delimiter=",", skiprows=1)
        X, y = table[:, :-1], table[:, -1]
    most = rows or MOST.get(name, len(y))
    if len(y) > most:
        keep = np.sort(np.random.default_rng(0).permutation(len(y))[:most])
        X, y = X[keep], y[keep]
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), y
