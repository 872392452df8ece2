"""Random and degenerate problems: the same number gives the same problem on every machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _problems import FloatArray

from exactcv.problem.kernels import Kernel, kernel_matrix
from exactcv.runtime.threads import Workers

ROWS = ("normal", "grid", "line", "repeated", "contradictory", "apart", "binary", "constant")
KERNELS = ("linear", "linear", "rbf", "rbf", "laplacian", "poly", "narrow", "wide", "precomputed")
WEIGHTS = ("ones", "ones", "ones", "two levels", "decades", "whole numbers", "some zero")
FOLDS = ("loo", "loo", "loo", "k-fold", "pairs", "any", "repeated", "groups")


@dataclass(frozen=True)
class Case:
    """One cross-validation: features, what to call, and the kernel matrix it means."""

    number: int
    X: FloatArray
    y: FloatArray
    K: FloatArray
    weight: FloatArray
    Cs: FloatArray
    cv: Any
    fit_intercept: bool
    kernel: dict[str, Any]
    words: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"case {self.number}: n={len(self.y)}, " + ", ".join(
            f"{k} {v}" for k, v in self.words.items()
        )


def make_case(number: int, largest: int = 14) -> Case:
    """Problem ``number``."""
    rng = np.random.default_rng([20240, number])
    n, words = int(rng.integers(6, largest + 1)), {}
    y = np.where(rng.random(n) < rng.choice([0.5, 0.5, 0.3]), 1.0, -1.0)
    y[:2], y[2:4] = 1.0, -1.0
    words["rows"] = str(rng.choice(ROWS))
    X = _rows(rng, words["rows"], n, y)
    power = int(rng.integers(-26, 27)) if rng.random() < 0.5 else 0
    X = X * 2.0**power  # exact: ties stay ties
    words["scale"] = f"2**{power}"
    words["kernel"] = str(rng.choice(KERNELS))
    K, kernel = _kernel(rng, words["kernel"], X, power)
    words["weights"] = str(rng.choice(WEIGHTS))
    weight = _weights(rng, words["weights"], n, y)
    top = float(np.abs(np.diagonal(K)).max()) or 1.0
    exponents = np.sort(rng.uniform(-9, 13, int(rng.integers(1, 4))))
    words["C K"] = " ".join(f"{10**e:.1e}" for e in exponents)
    words["folds"] = str(rng.choice(FOLDS))
    order = rng.permutation(n)
    cv = _folds(rng, words["folds"], n, y[order])
    return Case(
        number, X[order], y[order], np.ascontiguousarray(K[np.ix_(order, order)]), weight[order],
        10.0**exponents / top, cv, bool(rng.random() < 0.8), kernel, words,
    )  # fmt: skip


def _rows(rng: np.random.Generator, kind: str, n: int, y: FloatArray) -> FloatArray:
    p = int(rng.choice([1, 2, 3, 8, 16]))
    X = rng.normal(size=(n, p)) + rng.choice([0.0, 0.5, 2.0]) * y[:, None]
    if kind == "grid":
        return np.round(X)
    if kind == "line":
        return np.round(2 * X[:, :1]) * np.arange(1.0, 3.0)
    if kind == "repeated":
        return np.round(X[rng.integers(max(2, n // 3), size=n)], 1)
    if kind == "contradictory":
        half = X[: (n + 1) // 2]
        return np.repeat(half, 2, axis=0)[:n]
    if kind == "apart":
        X[:, 0] = y * (1.0 + np.abs(X[:, 0]))
        return X
    if kind == "binary":
        return (X > 0.5).astype(float)
    if kind == "constant":
        return np.ones((n, p))
    return X


def _kernel(
    rng: np.random.Generator, kind: str, X: FloatArray, power: int
) -> tuple[FloatArray, dict[str, Any]]:
    unit = 2.0**-power  # gamma for rows of size 1
    if kind == "precomputed":
        half = np.round(rng.normal(size=(len(X), 3)) * 4)
        K = half @ half.T
        return K, {"kernel": "precomputed"}
    chosen: dict[str, Any] = {"kernel": kind}
    if kind in ("rbf", "narrow", "wide"):
        size = {"rbf": 10 ** rng.uniform(-2, 1), "narrow": 100.0, "wide": 10 ** rng.uniform(-9, -4)}
        chosen = {"kernel": "rbf", "gamma": float(size[kind] * unit**2)}
    elif kind == "laplacian":
        chosen["gamma"] = float(10 ** rng.uniform(-3, 1) * unit)
    elif kind == "poly":
        degree = int(rng.integers(1, 4))
        chosen |= {"gamma": float(unit**2), "degree": degree, "coef0": float(rng.integers(2))}
    kernel = Kernel(chosen["kernel"], chosen.get("gamma", 1.0), chosen.get("degree", 3),
                    chosen.get("coef0", 0.0))  # fmt: skip
    with Workers(1) as workers:
        K = kernel_matrix(X, kernel, workers)[0]
    return np.asarray(K), chosen


def _weights(rng: np.random.Generator, kind: str, n: int, y: FloatArray) -> FloatArray:
    weight = np.ones(n)
    if kind == "two levels":
        weight = np.where(rng.random(n) < 0.5, 1.0, 10.0 ** -rng.integers(1, 13))
    elif kind == "decades":
        weight = 10.0 ** rng.uniform(-12, 0, n)
    elif kind == "whole numbers":
        weight = rng.integers(1, 4, n).astype(float)
    elif kind == "some zero":
        weight = np.where(rng.random(n) < 0.2, 0.0, 1.0)
        weight[:4] = 1.0
    return weight


def _folds(rng: np.random.Generator, kind: str, n: int, y: FloatArray) -> Any:
    everyone = np.arange(n)
    if kind == "loo":
        return "loo"
    if kind in ("k-fold", "repeated"):
        pairs = []
        for _ in range(1 if kind == "k-fold" else 2):
            part = rng.permutation(n) % int(rng.integers(2, 5))
            pairs += [(everyone[part != k], everyone[part == k]) for k in range(part.max() + 1)]
        return pairs
    if kind == "groups":
        part = rng.integers(3, size=n)
        pairs = [(everyone[part != k], everyone[part == k]) for k in range(3) if (part == k).any()]
        return [pair for pair in pairs if len(pair[0])] or "loo"  # all may be of one group
    if kind == "pairs":
        pairs = [rng.choice(n, 2, replace=False) for _ in range(5)]
        return [(np.setdiff1d(everyone, pair), np.sort(pair)) for pair in pairs]
    chosen = []
    for _ in range(3):  # training sets that do not fill up what the test sets leave
        order = rng.permutation(n)
        cut = int(rng.integers(1, n - 1))
        chosen.append((np.sort(order[:cut]), np.sort(order[cut : cut + int(rng.integers(1, 4))])))
    return chosen
