"""Data for examples, benchmarks and the demo."""

from __future__ import annotations

import numbers

import numpy as np

from .exceptions import InputError
from .types import FloatArray

__all__ = ["load_breast_cancer", "make_mixture"]


def make_mixture(
    n: int,
    p: int,
    random_state: int | np.random.Generator | None = None,
    *,
    mean: float = 1.0,
    noise: float = 3.0,
    balanced: bool = True,
) -> tuple[FloatArray, FloatArray]:
    """The simulation of the magic-LOO and consolidated-CV papers: two mixtures of ten Gaussians.

    Ten centres of the positive class are drawn from N(mu, I), where the first half of the p
    coordinates of mu are ``mean`` and the rest zeros; the centres of the negative class likewise,
    with the halves exchanged.  Each sample takes one of its class's centres at random and adds
    noise.  The defaults are those of the consolidated-CV paper; the magic-LOO paper has a mean of 2
    and noise of 4.

    Parameters
    ----------
    n, p : int
        Rows and features.
    random_state : int, numpy Generator or None
    mean : float
        What sets the classes apart.
    noise : float
        Its standard deviation.
    balanced : bool
        Two classes of equal size in random order; if False, every label is drawn by itself.

    Returns
    -------
    X : ndarray of shape (n, p)
    y : ndarray of shape (n,), values -1 and +1

    Examples
    --------
    >>> X, y = make_mixture(100, 20, random_state=0)
    >>> X.shape, int((y > 0).sum())
    ((100, 20), 50)
    """
    for name, value, least in (("n", n, 2), ("p", p, 1)):
        if not isinstance(value, numbers.Integral) or value < least:
            raise InputError(f"{name} must be an integer of at least {least}, got {value!r}")
    rng = np.random.default_rng(random_state)
    first = np.where(np.arange(p) < p // 2, mean, 0.0)
    centres = {1.0: rng.normal(size=(10, p)) + first, -1.0: rng.normal(size=(10, p))}
    centres[-1.0] += mean - first
    y = rng.permutation(np.where(np.arange(n) < n // 2, 1.0, -1.0))
    if not balanced:
        y = rng.choice([-1.0, 1.0], size=n)
    X = noise * rng.normal(size=(n, p))
    for sign, centre in centres.items():
        rows = y == sign
        X[rows] += centre[rng.integers(10, size=int(rows.sum()))]
    return X, y


def load_breast_cancer() -> tuple[FloatArray, FloatArray]:
    """The Wisconsin breast-cancer data that come with scikit-learn, standardised.

    Returns
    -------
    X : ndarray of shape (569, 30)
    y : ndarray of shape (569,), +1 for benign

    Examples
    --------
    >>> X, y = load_breast_cancer()
    >>> X.shape
    (569, 30)
    """
    from sklearn.datasets import load_breast_cancer as load

    X, target = load(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), np.where(target == 1, 1.0, -1.0)
