"""The one assembly line: what one door refuses or reports, all of them do."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from sklearn.svm import SVC

import exactcv
from exactcv.crossval.run import KernelRows, Plan, run
from exactcv.exceptions import UnsupportedError
from exactcv.problem.folds import Folds
from exactcv.problem.grid import make_grid
from exactcv.runtime.threads import Workers


def test_an_estimator_in_place_of_the_data_is_explained(small: Any) -> None:
    X, y = small
    call: Any = exactcv.cross_validate
    for arguments, named in (((SVC(), X, y), {}), ((SVC(), X), {}), ((X, y), {"estimator": SVC()})):
        with pytest.raises(TypeError, match=r"not a SVC.*exactcv\.cross_val_score\(estimator"):
            call(*arguments, **named)


def test_the_estimator_says_what_did_not_converge(
    stub: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, small: Any
) -> None:
    method = stub()
    real = method.run
    monkeypatch.setattr(method, "run", lambda *parts: real(*parts) | {"not_converged": 2})
    X, y = small
    result = exactcv.cross_validate(X, y, Cs=[1.0], method="stub")
    model = exactcv.SVCCV(Cs=[1.0], method="stub", gamma=[0.1, 1.0]).fit(X, y)
    assert result.certificate.not_converged == 2
    assert model.certificate_.not_converged == 4  # two gammas
    y = np.arange(12) % 3
    model = exactcv.SVCCV(Cs=[1.0], method="stub").fit(X, y)
    assert model.certificate_.not_converged == 6  # three pairs


def test_the_estimator_knows_methods_that_take_any_kernel(small: Any) -> None:
    """No warning (they are errors here), and the certificate is good."""
    X, y = small
    settings: dict[str, Any] = {"kernel": "sigmoid", "gamma": 2.0, "loss": "squared_hinge"}
    model = exactcv.SVCCV(Cs=[1.0], method="rank_update", **settings).fit(X, y)
    assert model.certificate_.exact and model.certificate_.convex


@pytest.mark.parametrize(
    "settings", [{"scoring": "roc_auc"}, {"probability": True}, {"store_cv_results": True}]
)
def test_the_estimator_refuses_values_of_a_method_that_has_none(
    settings: dict[str, Any], small: Any
) -> None:
    X, y = small
    model = exactcv.SVCCV(Cs=[1.0], method="loo_stopping", **settings)
    with pytest.raises(UnsupportedError, match="computes no decision values"):
        model.fit(X, y)
    assert exactcv.SVCCV(Cs=[1.0], method="loo_stopping").fit(X, y).certificate_.exact


def test_squared_hinge_means_one_objective(small: Any) -> None:
    """With b = 0 and K = X X' the two penalties are the same, and so are the solutions."""
    X, y = small
    settings: dict[str, Any] = {
        "kernel": "linear", "Cs": [0.1, 3.0], "loss": "squared_hinge", "fit_intercept": False,
        "output": "decision",
    }  # fmt: skip
    ours = exactcv.cross_validate(X, y, method="rank_update", **settings)
    other = exactcv.cross_validate(X, y, method="refit", **settings)
    assert ours.decision == pytest.approx(other.decision, rel=1e-9, abs=1e-9)
    assert ours.objective == pytest.approx(other.objective, rel=1e-9)


def test_a_run_without_folds_solves_the_full_data(small: Any) -> None:
    X, y = small
    grid = make_grid([0.5, 2.0], None, len(y))
    whole = exactcv.cross_validate(X, y, kernel="linear", Cs=[0.5, 2.0], output="decision")
    task = Plan().task(KernelRows(X @ X.T), y.astype(float), np.ones(12), Folds(12, (), ()), grid)
    with Workers(1) as workers:
        ran = run(task, "exact", workers)
    assert ran.certificate.exact
    np.testing.assert_allclose(ran.ledger.coef, whole.coef, rtol=0, atol=1e-12)


def test_calls_in_several_threads_do_not_disturb_each_other() -> None:
    """The compiled loops run without the lock, and keep nothing between calls."""

    def work(seed: int) -> exactcv.CVResult:
        X, y = exactcv.datasets.make_mixture(50 + seed, 4, random_state=seed)
        cv: Any = ("loo", 3)[seed % 2]
        return exactcv.cross_validate(X, y, Cs=[0.1, 10.0], cv=cv, output="decision")

    alone = [work(seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(work, [*range(6)] * 4))
    for k, found in enumerate(together):
        expected = alone[k % 6]
        assert found.certificate.exact
        np.testing.assert_array_equal(found.n_errors, expected.n_errors)
        np.testing.assert_allclose(found.decision, expected.decision, rtol=0, atol=1e-9)
