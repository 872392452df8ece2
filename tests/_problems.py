"""Small problems of every awkward kind, shared by the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class Small(NamedTuple):
    """A kernel matrix, labels +-1 and row weights."""

    K: FloatArray
    y: FloatArray
    weight: FloatArray


def rbf(X: FloatArray) -> FloatArray:
    """RBF kernel with 1 / gamma the median squared distance."""
    square = (X * X).sum(axis=1)
    D = np.maximum(square[:, None] + square - 2 * X @ X.T, 0.0)
    np.fill_diagonal(D, 0.0)
    median = np.median(D[np.triu_indices(len(X), 1)])
    K = np.exp(-D / median) if median > 0 else np.exp(-D)
    return np.ascontiguousarray((K + K.T) / 2)


def linear(X: FloatArray) -> FloatArray:
    K = X @ X.T
    return np.ascontiguousarray((K + K.T) / 2)


def floor(K: FloatArray, coef: FloatArray) -> float:
    """What the rounding of u = K c + b alone may make of the judge's figures.

    As ``judge/piecewise_linear.py`` has it, with the same margin: 8 times 1.1e-16 times the size of
    the terms.
    """
    root = np.sqrt(np.maximum(np.diagonal(K), 0.0))
    return float(8.0 * 1.1e-16 * root.max() * (np.abs(coef) @ root))


def rounding(K: FloatArray, coef: FloatArray) -> FloatArray:
    """How far two float64 products K coef may be apart, row by row, on any processor.

    A sum of n terms errs by at most n eps / 2 of the sum of their sizes; as the errors have either
    sign, sqrt(n) eps is not exceeded in practice [Higham and Mary, SIAM J. Sci. Comput. 41 (2019)].
    """
    unit = 2 * np.sqrt(len(K)) * float(np.finfo(float).eps)
    return np.asarray(unit * (np.abs(coef) @ np.abs(K)))


def labels(n: int) -> FloatArray:
    return np.where(np.arange(n) % 2 == 0, 1.0, -1.0)


def mixture(n: int = 60, p: int = 20, seed: int = 0) -> Small:
    """The papers' simulation: ten centres a class, noise of variance nine."""
    rng = np.random.default_rng(seed)
    first = np.r_[np.ones(p // 2), np.zeros(p - p // 2)]
    plus = rng.normal(size=(10, p)) + first
    minus = rng.normal(size=(10, p)) + 1 - first
    y = labels(n)
    centre = rng.integers(10, size=n)
    X = np.where(y[:, None] > 0, plus[centre], minus[centre]) + 3 * rng.normal(size=(n, p))
    return Small(rbf(X), y, np.ones(n))


def overlap(n: int = 60, seed: int = 0) -> Small:
    """Two dimensions, two classes nearly on top of each other."""
    rng = np.random.default_rng(seed)
    y = labels(n)
    return Small(rbf(rng.normal(size=(n, 2)) + 0.2 * y[:, None]), y, np.ones(n))


def low_rank(n: int = 60, p: int = 3, seed: int = 0) -> Small:
    """Linear kernel with p << n."""
    rng = np.random.default_rng(seed)
    y = labels(n)
    return Small(linear(rng.normal(size=(n, p)) + 0.5 * y[:, None]), y, np.ones(n))


def polynomial(n: int = 60, seed: int = 0) -> Small:
    """Cubic kernel in three dimensions."""
    rng = np.random.default_rng(seed)
    y = labels(n)
    X = rng.normal(size=(n, 3)) + 0.4 * y[:, None]
    return Small(np.ascontiguousarray((linear(X) / 3 + 1.0) ** 3), y, np.ones(n))


def duplicates(n: int = 60, seed: int = 0) -> Small:
    """Every row three times."""
    rng = np.random.default_rng(seed)
    y = np.repeat(labels(n // 3), 3)
    X = np.repeat(rng.normal(size=(n // 3, 3)), 3, axis=0) + 0.3 * y[:, None]
    return Small(rbf(X), y, np.ones(len(y)))


def contradictions(n: int = 60, seed: int = 0) -> Small:
    """Every x twice, once with each label, and a few rows besides."""
    rng = np.random.default_rng(seed)
    half = n // 2 - 3
    X = np.vstack([np.repeat(rng.normal(size=(half, 2)), 2, axis=0), rng.normal(size=(6, 2))])
    return Small(rbf(X), labels(len(X)), np.ones(len(X)))


def constant_features(n: int = 40, seed: int = 0) -> Small:
    """Nothing to learn from: all rows are the same."""
    return Small(np.ones((n, n)), labels(n), np.ones(n))


def unbalanced(n: int = 62, seed: int = 0) -> Small:
    """Class ratio 1:30."""
    rng = np.random.default_rng(seed)
    y = np.full(n, -1.0)
    y[::31] = 1.0
    return Small(rbf(rng.normal(size=(n, 4)) + 0.5 * y[:, None]), y, np.ones(n))


def weighted(n: int = 60, seed: int = 0) -> Small:
    """Row weights over two orders of magnitude, some of them zero."""
    small = mixture(n, 5, seed)
    rng = np.random.default_rng(seed + 1)
    weight = 10.0 ** rng.uniform(-1, 1, size=n)
    weight[rng.choice(n, n // 10, replace=False)] = 0.0
    return Small(small.K, small.y, weight)


BUILDERS: dict[str, Callable[..., Small]] = {
    "mixture": mixture,
    "overlap": overlap,
    "low_rank": low_rank,
    "polynomial": polynomial,
    "duplicates": duplicates,
    "contradictions": contradictions,
    "constant_features": constant_features,
    "unbalanced": unbalanced,
    "weighted": weighted,
}
