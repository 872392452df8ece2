"""``n_components="auto"``."""

from __future__ import annotations

import numpy as np
import pytest

import exactcv
from exactcv.crossval import components

CS = [0.1, 1.0, 10.0]


@pytest.fixture
def rings(monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    """Two components are too few, eight will do."""
    monkeypatch.setattr(components, "FIRST", 2)
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 300)
    radius = np.where(np.arange(300) % 2, 1.0, 2.0) + 0.15 * rng.normal(size=300)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return X, np.arange(300) % 2


def run(X: np.ndarray, y: np.ndarray, **options: object) -> exactcv.CVResult:
    settings = {"approx": "nystroem", "Cs": CS, "cv": 5, "random_state": 3, "gamma": 1.0}
    return exactcv.cross_validate(X, y, **(settings | options))


def test_it_stops_when_more_gain_nothing(rings) -> None:
    X, y = rings
    found = run(X, y, n_components="auto")
    m = found.feature_map.n_components
    assert 2 < m < 150
    assert "more gain less than the standard error" in found.grown
    assert found.grown in " ".join(found.summary().split())
    same = run(X, y, n_components=m)
    np.testing.assert_array_equal(found.wrong, same.wrong)
    fewer = run(X, y, n_components=2)
    assert fewer.error.min() > found.error.min() + fewer.se[fewer.best]


@pytest.mark.parametrize(
    ("limit", "reason"),
    [("SHARE", "too much memory"), ("MOST_SECONDS", "minutes")],
)
def test_it_stops_before_it_costs_too_much(rings, monkeypatch, limit: str, reason: str) -> None:
    X, y = rings
    monkeypatch.setattr(components, limit, 0.0)
    found = run(X, y, n_components="auto")
    assert found.feature_map.n_components == 2
    assert reason in found.grown


def test_no_more_components_than_rows_that_count(rings) -> None:
    X, y = rings
    weight = np.where(np.arange(300) < 6, 1.0, 0.0)
    found = run(X, y, n_components="auto", sample_weight=weight, cv="loo")
    assert found.feature_map.n_components <= 6


def test_an_estimator_settles_it_for_every_gamma(rings) -> None:
    X, y = rings
    model = exactcv.SVCCV(
        approx="nystroem", n_components="auto", Cs=CS, gamma=[0.01, 1.0], random_state=3, cv=5,
        probability=True,
    ).fit(X, y)  # fmt: skip
    assert model.score(X, y) > 0.9
    assert model.predict_proba(X[:3]).shape == (3, 2)


def test_other_words_are_refused(rings) -> None:
    X, y = rings
    with pytest.raises(TypeError, match="an integer or 'auto'"):
        run(X, y, n_components="many")
