"""Results are what they were when ``golden.npz`` was recorded (see ``record.py``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from golden.record import GOLDEN, Records, read, write
from golden.settings import EXACT, SETTINGS

import exactcv

# How often something was iterated: other BLAS kernels round differently, so it may vary, ...
ITERATIONS = {
    f"stats.{name}"
    for name in (
        *("iterations", "full_iterations", "second_iterations", "newton_steps", "steps", "passes"),
        *("kernel_evaluations", "full_evaluations", "finish_evaluations"),
        *("events", "path_solves", "fold_solves", "refactored"),
    )
}
# ... up to this factor, and this number besides.
FACTOR, FEW = 2, 3

# How a fold was settled: a bound that just holds, or a solver that just succeeds, may not with
# other last bits.
BY_WHOM = ("stats.bound", "stats.solved", "stats.fallback")

# Rows that move further than a small problem reaches: how far that is hangs on the steps that led
# to it, so that there may be none.
AT_MOST = {"stats.escaped"}

# Floats whose scale is their own size: a grid, or an objective, may be tiny as a whole.
OWN_SCALE = {"Cs", "lambdas", "objective", "gamma", "tol"}
OWN_SCALE |= {"cv.param_C", "cv.param_gamma", "cv.lambda", "C_", "lambda_", "gamma_"}

# Up to the first, a decision value is zero but for rounding, and a tie; from the second on its sign
# is safe from rounding.
ZERO, SAFE = 1e-12, 1e-7

Record = Mapping[str, Any]


@cache
def golden() -> Records:
    return read(GOLDEN)


# ---- comparing -----------------------------------------------------------------------------------


def differences(expected: Record, found: Record, tol: float) -> list[str]:
    """What is not as expected, one line each; what is new is not looked at."""
    said = []
    for name, value in expected.items():
        if name not in found:
            said.append(f"{name} is missing")
            continue
        one, two = np.asarray(value), np.asarray(found[name])
        if one.shape != two.shape or one.dtype.kind != two.dtype.kind:
            said.append(f"{name}: {one.dtype}{one.shape} became {two.dtype}{two.shape}")
        elif name in ("kkt", "gap"):
            limit = float(expected["tol"])
            if (two[one <= limit] > limit).any() or np.isnan(two).any():
                said.append(f"{name}: {one.max():.1e} became {two.max():.1e}")
        elif one.dtype.kind == "f":
            excess = relative_difference(name, one, two)
            if not excess <= tol:
                said.append(f"{name}: differs by {excess:.1e} of its scale, tolerance {tol:.0e}")
        elif name in ITERATIONS | AT_MOST:
            fewer = name in ITERATIONS and (FACTOR * two + FEW < one).any()
            if fewer or (two > FACTOR * one + FEW).any():
                said.append(f"{name}: {one.tolist()} became {two.tolist()}")
        elif name not in BY_WHOM and (one != two).any():
            said.append(f"{name}: {(one != two).sum()} of {one.size} differ")
    return said + by_whom(expected, found)


def relative_difference(name: str, one: np.ndarray, two: np.ndarray) -> float:
    """The largest difference, in units of the scale: of a row, if there are several.

    Coefficients are measured by the largest of them, decision values and all else also by 1.
    """
    if not np.array_equal(np.isfinite(one), np.isfinite(two)):
        return np.inf
    some = np.isfinite(one)
    if not np.array_equal(one[~some], two[~some], equal_nan=True):
        return np.inf
    size = np.where(some, np.abs(one), 0.0)
    if name not in OWN_SCALE and one.ndim:
        size = np.broadcast_to(size.max(axis=-1, keepdims=True, initial=0.0), one.shape)
    if name not in OWN_SCALE and name != "coef":
        size = np.maximum(size, 1.0)
    difference = np.abs(np.where(some, one, 0.0) - np.where(some, two, 0.0))
    return float((difference / np.maximum(size, np.finfo(float).tiny)).max(initial=0.0))


def by_whom(expected: Record, found: Record) -> list[str]:
    """Folds settled by a bound, by the engine or by its fallback: rounding may move some of them.

    But their sum it does not, nor more than a few from or to a bound, and where there was no
    fallback there is none now.
    """
    if not all(name in expected and name in found for name in BY_WHOM):
        return []
    old, new = ([int(record[name]) for name in BY_WHOM] for record in (expected, found))
    if sum(old) == sum(new) and abs(old[0] - new[0]) <= FEW and (old[2] > 0 or new[2] == 0):
        return []
    return [f"bound, solved, fallback: {old} became {new}"]


# ---- the tests -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETTINGS)
def test_results_are_as_recorded(name: str) -> None:
    assert name in golden(), "not recorded: python tests/golden/record.py " + name
    said = differences(golden()[name], SETTINGS[name].run(), SETTINGS[name].tol)
    assert not said, "\n".join(said)


def test_the_file_has_no_other_settings() -> None:
    assert list(golden()) == list(SETTINGS)


def test_every_method_and_loss_is_recorded() -> None:
    seen = {
        (str(record["method"][0]), str(record["loss"][0]))
        for record in golden().values()
        if "method" in record
    }
    assert seen == {
        (name, loss) for name, what in exactcv.methods().items() for loss in what.losses
    }


def test_no_label_hangs_on_rounding() -> None:
    """So that labels can be compared for equality."""
    for name, record in golden().items():
        for what, value in record.items():
            if "decision" in what or what == "fitted":
                size = np.abs(value)
                assert not ((size > ZERO) & (size < SAFE)).any(), (name, what)


@pytest.mark.parametrize(
    ("what", "wrong"),
    [
        ("decision", lambda value: value + 1e-7),
        ("intercept", lambda value: value * (1 + 1e-6)),
        ("coef", lambda value: value * (1 + 1e-8)),
        ("objective", lambda value: value * (1 + 1e-8)),
        ("se", lambda value: value * np.nan),
        ("wrong", lambda value: ~value),
        ("best", lambda value: value + 1),
        ("n_errors", lambda value: value + 1),
        ("exact", lambda value: ~value),
        ("kkt", lambda value: value + 1e-7),
        ("method", lambda value: np.array(["refit"])),
        ("stats.events", lambda value: 3 * value),
        ("stats.unchanged", lambda value: value + 1),
        ("stats.fallback", lambda value: value + 1),
        ("stats.bound", lambda value: value + 1),
        ("wrong", lambda value: value[:, 1:]),
    ],
)
def test_a_wrong_result_is_found(what: str, wrong: Any) -> None:
    record = golden()["exact_loo_decision"]
    assert not differences(record, record, EXACT)
    said = differences(record, {**record, what: wrong(record[what])}, EXACT)
    assert len(said) == 1
    missing = {name: value for name, value in record.items() if name != what}
    assert f"{what} is missing" in differences(record, missing, EXACT)


def test_records_survive_the_file(tmp_path: Any) -> None:
    record = {
        "float": np.array([[1.5, np.nan], [np.inf, -0.0]]),
        "number": 2.5,
        "count": np.arange(3),
        "flag": np.array([True, False]),
        "yes": True,
        "text": np.array(["a", "bc"]),
        "none": np.array([], dtype=str),
    }
    write(tmp_path / "some.npz", {"one": record, "two": {"best": 7}})
    found = read(tmp_path / "some.npz")
    assert list(found) == ["one", "two"] and found["two"]["best"] == 7
    for name, value in record.items():
        np.testing.assert_array_equal(found["one"][name], value, strict=True)
