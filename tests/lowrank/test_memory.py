"""Without ``memory_limit`` a process keeps to twice the features and a gigabyte."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import exactcv
from exactcv.lowrank import budget
from exactcv.lowrank.budget import memory_of
from exactcv.lowrank.features import OwnColumns
from exactcv.lowrank.options import Options
from exactcv.lowrank.passes.local import LocalRunner
from exactcv.lowrank.passes.sweep import Chunk, Columns, merge, sweep
from exactcv.lowrank.rows.made import MadeRows
from exactcv.lowrank.rows.sources import ArrayRows
from exactcv.lowrank.small.guesses import Guesses
from exactcv.lowrank.solver import Solver
from exactcv.problem.loss_rules import LossRule
from exactcv.runtime.threads import Workers

GB = 10**9


def allowed(X: Any, m: int, limit: Any = None, wide: bool = False, **more: Any) -> Any:
    return memory_of(limit, Options(**more), ArrayRows(X, 8192), m, wide)


# ---- the budget ----------------------------------------------------------------------------------


@pytest.fixture
def much_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exactcv.runtime.memory.available_memory", lambda: 60 * GB)


def test_twice_the_features_and_a_gigabyte_with_all_that_is_there(much_free: None) -> None:
    X = np.zeros((50_000, 300))
    options, size = allowed(X, 500)
    assert options.features == "memory"
    assert size == 2 * 8 * 50_000 * 500 + GB - budget.LIBRARIES - X.nbytes
    assert allowed(X.astype(np.int8), 500)[1] == size + X.nbytes - X.nbytes // 8
    assert allowed(X, 500, dtype="float32")[1] == size - 8 * 50_000 * 500


def test_rows_that_are_not_in_memory_take_nothing_of_it(much_free: None, tmp_path: Path) -> None:
    file = tmp_path / "rows.npy"
    np.save(file, np.zeros((1000, 1000)))
    work = 2 * 8 * 1000 * 10 + GB - budget.LIBRARIES
    assert allowed(np.load(file, mmap_mode="r"), 10)[1] == work
    few = sparse.random(1000, 1000, 0.01, "csr", random_state=0)
    assert work - 200_000 < allowed(few, 10)[1] < work - 80_000


def test_data_of_any_size_leave_room_for_the_work(much_free: None) -> None:
    X = np.broadcast_to(np.zeros(1), (10**6, 10**4))  # 80 GB, if they were there
    assert allowed(X, 100)[1] == 8 * 10**6 * 100 + budget.LEAST


def test_no_more_than_half_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exactcv.runtime.memory.available_memory", lambda: 8 * GB)
    X = np.zeros((10**6, 1))
    options, size = allowed(X, 1000)
    assert (options.features, size) == ("recompute", 4 * GB)
    assert allowed(X, 1000, features="spill")[0].features == "spill"
    assert allowed(X, 200)[0].features == "memory"


def test_a_limit_is_taken_at_its_word(much_free: None) -> None:
    X = np.zeros((1000, 3))
    assert allowed(X, 10, "20GB") == (Options(), 20 * GB)
    assert allowed(X, 10, 1000) == (Options(), 1000)
    assert allowed(X, 3, wide=True) == (Options(), 30 * GB)


def test_many_components_of_few_rows_are_not_refused(much_free: None) -> None:
    X = np.zeros((9000, 5))
    size = allowed(X, 4000)[1]
    assert size >= budget.least_memory(ArrayRows(X, 8192), Options(), 4000, 9000)


# ---- features that are at hand -------------------------------------------------------------------


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(60, 4))
    return Z, np.where(rng.random(60) < 0.5, -1.0, 1.0), rng.uniform(0.5, 2.0, 60)


@pytest.mark.parametrize("how", ["memory", "made", "float32"])
def test_rows_near_the_margin_are_named_where_features_are_at_hand(rows: Any, how: str) -> None:
    Z, y, weight = rows
    Z = Z.astype(np.float32) if how == "float32" else Z
    source = MadeRows(Z, np.arange(60), 17) if how == "made" else ArrayRows(Z, 17)
    store = "recompute" if how == "made" else "memory"
    rng = np.random.default_rng(1)
    columns = Columns(
        rng.normal(size=(3, 5)), np.full(3, -1), np.full((3, 2), 0.8), np.ones(3), 0, LossRule()
    )  # fmt: skip
    with Workers(2) as workers:
        runner = LocalRunner(source, y, weight, OwnColumns(4), workers, store, Z.dtype)
        found = merge(runner.map(lambda chunk: sweep(chunk, columns, {})))
    copies = [Chunk(a, Z[a:b].astype(float), y[a:b], weight[a:b]) for a, b in pairwise([0, 20, 60])]
    expected = merge([sweep(chunk, columns, {}) for chunk in copies])
    assert found.gathered.Z.size == 0 < expected.gathered.Z.size
    for p in range(3):
        mine, theirs = found.gathered.column(p), expected.gathered.column(p)
        assert mine[1].dtype == np.float64
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_sample_and_the_solutions_hold_no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    make, path = Guesses.__init__, Solver.path

    def noted(self: Any, sample: Any, *more: Any) -> None:
        seen["sample"] = sample
        make(self, sample, *more)

    def noted_path(self: Any, *more: Any) -> Any:
        seen["runner"], seen["solved"] = self.runner, path(self, *more)
        return seen["solved"]

    monkeypatch.setattr(Guesses, "__init__", noted)
    monkeypatch.setattr(Solver, "path", noted_path)
    X, y = exactcv.datasets.make_mixture(300, 4, random_state=0)
    options = {"approx": "nystroem", "n_components": 20, "Cs": [0.1, 1.0], "random_state": 0}
    result = exactcv.cross_validate(X, y, **options)
    assert result.stats["features"] == "memory"
    assert np.shares_memory(seen["sample"].Z, seen["runner"].all_features())
    for one in seen["solved"]:
        assert one.problem.Z.size == 0
        expected = seen["runner"].all_features()[one.rows]
        np.testing.assert_array_equal(one.with_features().problem.Z, expected)
    again = exactcv.cross_validate(X, y, method_options={"features": "recompute"}, **options)
    np.testing.assert_array_equal(result.n_errors, again.n_errors)
    np.testing.assert_allclose(result.weights, again.weights, atol=1e-8)


@pytest.mark.parametrize("cv", ["loo", 4])
def test_little_room_changes_the_way_and_not_the_answer(
    cv: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that have to wait for each other, few rows in play, several batches of columns."""
    from exactcv.lowrank import method as driver

    X, y = exactcv.datasets.make_mixture(400, 4, random_state=0)
    options = {
        "approx": "nystroem", "n_components": 20, "Cs": np.geomspace(0.1, 30.0, 4), "cv": cv,
        "random_state": 0, "output": "decision", "method_options": {"target_rows": 40},
    }  # fmt: skip
    expected = exactcv.cross_validate(X, y, **options)
    monkeypatch.setattr(driver, "LEAST_IN_PLAY", 30)
    monkeypatch.setattr(driver, "AT_WORK", 0.02)
    monkeypatch.setattr(driver, "ROW_BYTES", 2000)
    found = exactcv.cross_validate(X, y, memory_limit="1MB", n_jobs=2, **options)
    assert found.certificate.exact
    np.testing.assert_allclose(found.decision, expected.decision, atol=1e-6)


# ---- the process ---------------------------------------------------------------------------------

# Three hundred and more small problems of a thousand rows each.
FOLDS = """
import resource, sys
import numpy as np
import exactcv

n, m = 3500, 250
X, y = exactcv.datasets.make_mixture(n, 10, random_state=0)
found = exactcv.cross_validate(
    X, y, approx="nystroem", n_components=m, gamma=0.1, Cs=np.geomspace(1e-4, 1e-2, 100), cv=5,
    random_state=0, n_jobs=int(sys.argv[1]),
)
assert found.certificate.exact
kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(kilobytes * 1024 / (2 * 8 * n * m + 1e9))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in other units")
def test_a_process_stays_within_the_promise() -> None:
    """Five folds and many C, where every small problem once had its rows to the end."""
    ran = subprocess.run(
        [sys.executable, "-c", FOLDS, "2"], capture_output=True, text=True, check=True
    )
    assert float(ran.stdout) < 1.0
