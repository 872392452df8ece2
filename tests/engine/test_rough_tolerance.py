"""A rough tolerance saves work, is met, and labels that it does not prove are counted."""

from __future__ import annotations

import numpy as np
import pytest

import exactcv

CS = np.logspace(-1, 3, 5)


def curve(gamma: float, tol: float) -> exactcv.CVResult:
    X, y = exactcv.datasets.make_mixture(700, 10, random_state=3)
    return exactcv.cross_validate(
        X, y, Cs=CS, gamma=gamma, cv=5, tol=tol, output="decision", n_jobs=1
    )


@pytest.mark.parametrize("gamma", [0.02, 1.0])
def test_the_tolerance_is_met_and_what_is_not_proved_is_counted(gamma: float) -> None:
    rough, fine = curve(gamma, 1e-3), curve(gamma, 1e-8)
    assert rough.certificate.exact
    assert max(rough.certificate.kkt.max(), rough.certificate.gap.max()) <= 1e-3
    assert fine.certificate.unproved == 0
    differ = np.count_nonzero((rough.decision > 0) != (fine.decision > 0))
    assert differ <= rough.certificate.unproved
    if rough.certificate.unproved:
        assert f"{rough.certificate.unproved} labels not proved" in str(rough.certificate)


def test_where_many_rows_are_free_no_linear_systems_are_solved() -> None:
    rough, fine = curve(1.0, 1e-3), curve(1.0, 1e-8)
    assert rough.stats["at_knot"][-1] > 400
    solves = [one.stats["path_solves"] + one.stats["fold_solves"] for one in (rough, fine)]
    assert solves[0] <= solves[1]
    assert max(rough.certificate.gap.max(), rough.certificate.kkt.max()) > 1e-8  # it did stop


def test_leave_one_out_is_as_fine_as_ever() -> None:
    X, y = exactcv.datasets.make_mixture(80, 4, random_state=0)
    values = [
        exactcv.cross_validate(X, y, Cs=CS, gamma=0.3, tol=tol, output="decision").decision
        for tol in (1e-3, 1e-8)
    ]
    assert np.abs(values[0] - values[1]).max() < 1e-3
