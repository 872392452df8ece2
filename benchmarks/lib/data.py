"""Data sets: files of a folder, and the papers' simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import exactcv

N_TEST = 10_000

Rows = tuple[np.ndarray, np.ndarray]
Draw = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def read_rows(folder: str | Path, name: str) -> Rows:
    """Features and labels +-1 of NAME.csv.gz; the labels are its last column, ``y``."""
    table = pd.read_csv(Path(folder) / f"{name}.csv.gz", float_precision="round_trip")
    y = table.pop("y").to_numpy(float)
    return np.ascontiguousarray(table.to_numpy(float)), y


def is_there(folder: str | Path | None, name: str) -> bool:
    return folder is not None and (Path(folder) / f"{name}.csv.gz").exists()


def standardised(X: np.ndarray) -> np.ndarray:
    """Each feature with mean 0 and variance 1."""
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def scaled(X: np.ndarray) -> np.ndarray:
    """Each feature to [-1, 1], as is LIBSVM's custom."""
    low, spread = X.min(axis=0), np.ptp(X, axis=0)
    return 2.0 * (X - low) / np.where(spread > 0, spread, 1.0) - 1.0


def simulation(n: int, p: int, seed: int, n_test: int = N_TEST, **kwargs: Any) -> Draw:
    """Training and test rows of one draw of centres (consolidated CV, section 4.1)."""
    X, y = exactcv.datasets.make_mixture(n + n_test, p, random_state=seed, **kwargs)
    return X[:n], y[:n], X[n:], y[n:]
