"""From pairs to curves, choices and words; the methods are stubs with known decisions."""

from __future__ import annotations

import builtins
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from exactcv.crossval.cross_validate import cross_validate
from exactcv.crossval.result import CVResult
from exactcv.exceptions import MissingExtraError, NotExactWarning
from exactcv.problem.problem import Task

mpl.use("Agg")
Data = tuple[np.ndarray, np.ndarray]


def decide_with_errors(*n_wrong: int) -> Callable[[Task], np.ndarray]:
    """Grid point l has its first n_wrong[l] pairs wrong."""

    def decide(task: Task) -> np.ndarray:
        y = task.problem.y[task.folds.pair_rows]
        first = np.arange(len(y)) < np.array(n_wrong)[:, None]
        return np.where(first, -y, y)

    return decide


@pytest.fixture
def run(stub: Callable[..., Any], small: Data) -> Callable[..., CVResult]:
    def run(decide: Any = None, kkt: float = 0.0, **arguments: Any) -> CVResult:
        stub(decide, kkt=kkt)
        return cross_validate(*small, method="stub", **({"output": "decision"} | arguments))

    return run


def test_errors_and_their_standard_error(run: Callable[..., CVResult]) -> None:
    result = run(decide_with_errors(3, 0, 12), Cs=[1.0, 2.0, 3.0])
    assert result.n_errors.tolist() == [3, 0, 12]
    np.testing.assert_allclose(result.error, [0.25, 0.0, 1.0])
    np.testing.assert_allclose(result.se, [np.sqrt(0.25 * 0.75 / 11), 0.0, 0.0])
    assert result.wrong[0].tolist() == [True] * 3 + [False] * 9
    assert result.fold_error.shape == (3, 12)


def test_ties_go_to_the_smallest_C(run: Callable[..., CVResult]) -> None:
    result = run(decide_with_errors(1, 1, 2, 1), Cs=[4.0, 2.0, 0.1, 3.0])
    assert result.best == 1


def test_one_se_is_the_smallest_C_within_one_se(run: Callable[..., CVResult]) -> None:
    result = run(decide_with_errors(3, 9, 4, 5), Cs=[4.0, 0.5, 1.0, 0.1])
    assert result.best == 0
    assert result.se[0] == pytest.approx(0.1306, abs=1e-4)
    assert result.one_se == 2  # 4 / 12 is within 3 / 12 + 0.13, 5 / 12 and 9 / 12 are not


def test_overlapping_and_partial_tests(run: Callable[..., CVResult], small: Data) -> None:
    y = small[1]
    cv = [([0, 1, 2], [4, 5]), ([0, 1, 2], [4, 6]), ([0, 1], [4])]
    values = np.array([[3.0, 1.0, -1.0, 0.5, -5.0]])
    result = run(lambda task: values * y[task.folds.pair_rows], Cs=[1.0], cv=cv)
    assert result.test_row.tolist() == [4, 5, 4, 6, 4]
    assert result.test_fold.tolist() == [0, 0, 1, 1, 2]
    assert result.n_errors.tolist() == [2]
    assert result.error[0] == pytest.approx(2 / 5)
    np.testing.assert_allclose(result.fold_error, [[0.0, 0.5, 1.0]])
    assert result.decision is not None
    np.testing.assert_allclose(result.decision[0, [4, 5, 6]], y[4:7] * [-1.0, 1.0, 0.5])
    assert np.isnan(np.delete(result.decision[0], [4, 5, 6])).all()
    assert np.flatnonzero(result.wrong[0]).tolist() == [4]


def test_without_decisions_the_majority_counts_and_a_draw_is_wrong(
    run: Callable[..., CVResult], small: Data
) -> None:
    cv = [([0, 1, 2], [4, 5]), ([0, 1, 2], [4, 5]), ([0, 1], [4])]
    values = np.array([[1.0, 1.0, 1.0, -1.0, -9.0]])
    result = run(
        lambda task: values * small[1][task.folds.pair_rows], Cs=[1.0], cv=cv, output="error"
    )
    assert result.decision is None
    assert result.pair_decision is None
    assert np.flatnonzero(result.wrong[0]).tolist() == [5]


def test_a_decision_of_zero_is_wrong(run: Callable[..., CVResult]) -> None:
    result = run(lambda task: np.zeros((1, 12)), Cs=[1.0])
    assert result.wrong.all()


def test_a_single_fold_has_no_standard_error(run: Callable[..., CVResult]) -> None:
    result = run(Cs=[1.0, 2.0], cv=[([0, 1, 2, 3], [4, 5])])
    assert np.isnan(result.se).all()
    assert (result.best, result.one_se) == (0, 0)


def test_the_result_is_frozen(run: Callable[..., CVResult]) -> None:
    result = run(Cs=[1.0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.best = 3  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        result.error[0] = 0.0
    assert pickle.loads(pickle.dumps(result)).error.tolist() == result.error.tolist()


def test_the_users_arrays_stay_writable(stub: Callable[..., Any], small: Data) -> None:
    stub()
    Cs = np.array([1.0, 2.0])
    cross_validate(*small, method="stub", Cs=Cs)
    Cs[0] = 5.0


def test_stats_and_timings(run: Callable[..., CVResult]) -> None:
    result = run(Cs=[1.0, 2.0])
    assert result.stats["solved"] == 24
    assert result.stats["iterations"] == 7
    assert set(result.timings) == {"kernel", "path", "folds", "certificate", "total"}
    assert result.timings["path"] == 0.5


def test_a_failed_certificate_is_said_aloud(run: Callable[..., CVResult]) -> None:
    with pytest.warns(NotExactWarning, match="13 of 13 solutions"):
        result = run(kkt=1e-3, Cs=[1.0])
    assert not result.certificate.exact
    assert len(result.certificate.unresolved) == 13
    assert "NOT exact" in result.summary()
    assert "NOT exact" in repr(result)


def test_plot_and_frame(run: Callable[..., CVResult]) -> None:
    result = run(decide_with_errors(3, 1, 2), Cs=[4.0, 2.0, 0.5])
    assert result.plot().ax_.get_xscale() == "log"
    frame = result.to_frame()
    assert frame["error"].tolist() == result.error.tolist()
    assert {"lambda", "C", "se", "kkt", "gap"} <= set(frame.columns)


@pytest.mark.parametrize(("name", "call"), [("matplotlib", "plot"), ("pandas", "to_frame")])
def test_missing_extras_are_named(
    run: Callable[..., CVResult], monkeypatch: pytest.MonkeyPatch, name: str, call: str
) -> None:
    result = run(Cs=[1.0])
    real = builtins.__import__

    def without(module: str, *args: Any, **kwargs: Any) -> Any:
        if module.split(".")[0] == name:
            raise ImportError(module)
        return real(module, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r'pip install "exactcv\['):
        getattr(result, call)()
