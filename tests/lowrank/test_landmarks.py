"""Landmarks by k-means: as near to the rows as a search from scratch, wherever the rows are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import exactcv
from exactcv.lowrank.landmarks import ROUNDS, centres, landmarks_among


def lloyd(X: np.ndarray, m: int) -> np.ndarray:
    """The same by definition, where no cluster runs empty."""
    found = X[:m].copy()
    for _ in range(ROUNDS):
        nearest = cdist(X, found, "sqeuclidean").argmin(axis=1)
        found = np.array([X[nearest == k].mean(axis=0) for k in range(m)])
    return found


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_centres_are_lloyds(as_rows: Any) -> None:
    X = np.random.default_rng(0).normal(size=(300, 4))
    X[np.abs(X) < 0.5] = 0.0
    np.testing.assert_allclose(centres(as_rows(X), 7), lloyd(X, 7), atol=1e-12)


def test_repeated_rows_do_not_share_a_centre() -> None:
    X = np.repeat(np.arange(5.0)[:, None], 40, axis=0)  # the first forty rows are the same
    assert sorted(centres(X, 5).ravel().tolist()) == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert np.isfinite(centres(np.zeros((6, 2)), 4)).all()


def test_features_of_centres_are_exact_for_their_kernel() -> None:
    """Left-out labels are those of the exact engine, and the kernel is nearer to the exact one."""
    X, y = exactcv.datasets.make_mixture(400, 5, random_state=0)
    common = {"lambdas": [1e-2, 1e-3], "cv": 5, "random_state": 0}
    left = {}
    for how in ("random", "kmeans"):
        found = exactcv.cross_validate(
            X, y, approx="nystroem", n_components=30,
            method_options={"landmarks": how}, **common,
        )  # fmt: skip
        Z = found.feature_map.transform(X)
        exact = exactcv.cross_validate(Z @ Z.T, y, kernel="precomputed", **common)
        np.testing.assert_array_equal(found.wrong, exact.wrong)
        left[how] = float((1.0 - (Z**2).sum(axis=1)).mean())
    assert left["kmeans"] < left["random"]


def test_rows_in_order_are_random_landmarks() -> None:
    X = np.arange(12.0).reshape(6, 2)
    np.testing.assert_array_equal(landmarks_among(X, 2, "random"), X[:2])
    with pytest.raises(exactcv.InputError, match="landmarks"):
        exactcv.cross_validate(
            X, [0, 1] * 3, approx="nystroem", n_components=2,
            method_options={"landmarks": "leverage"},
        )  # fmt: skip
