"""The same answer from arrays, memmaps, sparse matrices, Parquet files and Dask collections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import LeaveOneGroupOut
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier

import exactcv
from exactcv.crossval.lowrank_grid import cross_validate_grid
from exactcv.lowrank.features import (
    Nystroem,
    RandomFourier,
    cross_kernel,
    features_of,
    make_feature_map,
)
from exactcv.lowrank.rows.sampling import row_keys, smallest_keys
from exactcv.problem.kernels import Kernel, kernel_between, kernel_matrix

COMMON: dict[str, Any] = {"n_components": 10, "lambdas": 4, "random_state": 3, "output": "decision"}


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    X, y = exactcv.datasets.make_mixture(150, 4, random_state=0)
    X[np.abs(X) < 1.0] = 0.0
    return X, y


@pytest.fixture(scope="module")
def expected(data: tuple[np.ndarray, np.ndarray]) -> dict[str, exactcv.CVResult]:
    X, y = data
    return {a: exactcv.cross_validate(X, y, approx=a, **COMMON) for a in ("rff", "nystroem")}


def same(result: exactcv.CVResult, expected: exactcv.CVResult) -> None:
    np.testing.assert_allclose(result.decision, expected.decision, atol=1e-8)
    np.testing.assert_allclose(result.weights, expected.weights, atol=1e-8)
    np.testing.assert_array_equal(result.wrong, expected.wrong)


@pytest.mark.parametrize("approx", ["rff", "nystroem"])
def test_memmap_sparse_and_frame(data, expected, approx, tmp_path: Path) -> None:
    import pandas as pd

    X, y = data
    np.save(tmp_path / "X.npy", X)
    forms = [
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        sparse.csr_matrix(X),
        sparse.coo_array(X),
        pd.DataFrame(X),
        X.tolist(),
    ]
    for form in forms:
        same(exactcv.cross_validate(form, y, approx=approx, **COMMON), expected[approx])


def write_parquet(folder: Path, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    table = pa.table(columns | {"label": np.where(y > 0, "b", "a"), "w": weight})
    folder.mkdir()
    pq.write_table(table.slice(0, 70), folder / "part-0.parquet", row_group_size=32)
    pq.write_table(table.slice(70), folder / "part-1.parquet", row_group_size=50)


def test_parquet(data, tmp_path: Path) -> None:
    X, y = data
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    write_parquet(tmp_path / "rows", X, y, weight)
    local = exactcv.cross_validate(X, y, approx="nystroem", sample_weight=weight, **COMMON)
    result = exactcv.cross_validate(
        tmp_path / "rows", "label", approx="nystroem", sample_weight="w", **COMMON,
        method_options={"chunk_rows": 20},
    )  # fmt: skip
    same(result, local)
    assert result.classes.tolist() == ["a", "b"]
    one_file = exactcv.cross_validate(
        str(tmp_path / "rows" / "part-0.parquet"), "label", approx="rff", sample_weight="w",
        **COMMON,
    )  # fmt: skip
    assert one_file.wrong.shape == (4, 70)


def test_bad_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def run(path: Path, y: Any = "label", **more: Any) -> None:
        exactcv.cross_validate(path, y, approx="rff", **more)

    with pytest.raises(exactcv.InputError, match="no file or folder"):
        run(tmp_path / "nowhere.parquet")
    with pytest.raises(exactcv.InputError, match=r"no files named \*\.parquet"):
        run(tmp_path)
    (tmp_path / "bad.parquet").write_bytes(b"these are no columns")
    with pytest.raises(exactcv.InputError, match=r"bad\.parquet cannot be read"):
        run(tmp_path / "bad.parquet")
    good = tmp_path / "good.parquet"
    pq.write_table(pa.table({"x": [1.0, 2.0], "s": ["u", "v"], "label": [0, 1]}), good)
    with pytest.raises(exactcv.InputError, match="no column 'target'"):
        run(good, "target")
    with pytest.raises(exactcv.InputError, match="column 's'"):
        run(good)
    empty = tmp_path / "empty.parquet"
    pq.write_table(
        pa.table({"x": pa.array([], pa.float64()), "label": pa.array([], pa.int8())}), empty
    )
    with pytest.raises(exactcv.InputError, match="has 0 rows"):
        run(empty)
    whole = good.read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(exactcv.InputError, match="cannot be read"):
        run(tmp_path / "cut.parquet")
    missing = tmp_path / "missing.parquet"
    x = [0.0, 1.0, None, 3.0]
    pq.write_table(pa.table({"x": pa.array(x), "label": [0, 1, 0, 1]}), missing)
    with pytest.raises(exactcv.InputError, match="not finite"):
        run(missing)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"x": [1.0, 2.0]}, r"b\.parquet has no column 'label', which the first file has"),
        ({"label": [0, 1]}, r"b\.parquet has no column 'x', which the first file has"),
        (
            {"x": [1.0, 2.0], "label": [0, 1], "z": [3.0, 4.0]},
            r"b\.parquet has a column 'z', which the first file has not",
        ),
        ({"x": ["u", "v"], "label": [0, 1]}, r"column 'x' of .*b\.parquet holds string"),
        ({"x": [1.0, 2.0], "label": ["0", "1"]}, r"'label' of .*b\.parquet holds string, that"),
    ],
)
def test_files_of_a_folder_must_be_alike(tmp_path: Path, second: Any, message: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": [1.0, 2.0], "label": [0, 1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table(second), tmp_path / "b.parquet")
    with pytest.raises(exactcv.InputError, match=message):
        exactcv.cross_validate(tmp_path, "label", approx="rff", n_components=2)


@pytest.mark.parametrize("name", [None, "patient"])
def test_the_index_of_a_pandas_frame_is_no_feature(data, expected, name, tmp_path: Path) -> None:
    import pandas as pd

    X, y = data
    index = pd.Index(np.arange(len(y))[::-1] * 7, name=name)
    frame = pd.DataFrame(X, columns=list("abcd"), index=index).assign(label=y)
    file = tmp_path / "rows.parquet"
    frame.to_parquet(file, index=True)
    result = exactcv.cross_validate(file, "label", approx="rff", **COMMON)
    same(result, expected["rff"])
    # It can still be asked for by name.
    if name is not None:
        frame.drop(columns="label").set_index(pd.Index(y, name="label")).to_parquet(file)
        same(exactcv.cross_validate(file, "label", approx="rff", **COMMON), expected["rff"])


def test_dask_without_a_cluster(data, expected) -> None:
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd

    X, y = data
    rows = da.from_array(X, chunks=(40, 2))
    for approx in ("rff", "nystroem"):
        for labels in (y, da.from_array(y, chunks=33)):
            same(exactcv.cross_validate(rows, labels, approx=approx, **COMMON), expected[approx])
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=y)
    result = exactcv.cross_validate(
        dd.from_pandas(frame, npartitions=3), "label", approx="rff", **COMMON
    )
    same(result, expected["rff"])
    groups = np.arange(len(y)) % 4
    by_group: dict[str, Any] = {"approx": "rff", "cv": LeaveOneGroupOut(), **COMMON}
    result = exactcv.cross_validate(
        dd.from_pandas(frame.assign(g=groups), npartitions=3), "label", groups="g", **by_group
    )
    same(result, exactcv.cross_validate(X, y, groups=groups, **by_group))
    with pytest.raises(exactcv.InputError, match="chunks of unknown size"):
        exactcv.cross_validate(rows[rows[:, 0] > 0], y, approx="rff")


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.coo_array, sparse.csc_array])
def test_sparse_blocks_of_dask_arrays(data, expected, form) -> None:
    import dask.array as da

    X, y = data
    rows = da.from_array(X, chunks=(40, 4)).map_blocks(form)
    for approx in ("rff", "nystroem"):
        for features in ("memory", "recompute"):
            result = exactcv.cross_validate(
                rows, y, approx=approx, method_options={"features": features, "chunk_rows": 16},
                **COMMON,
            )  # fmt: skip
            same(result, expected[approx])


def test_bad_options(data, tmp_path: Path) -> None:
    X, y = data

    def run(options: Any, **more: Any) -> exactcv.CVResult:
        return exactcv.cross_validate(X, y, method_options=options, **({"lambdas": 2} | more))

    for approx in ("rff", None):
        for wrong in ("foo", [], 3):
            with pytest.raises(exactcv.InputTypeError, match="method_options must be a dict"):
                run(wrong, approx=approx)
    with pytest.raises(exactcv.InputTypeError, match="method_options must be a dict"):
        cross_validate_grid(X, y, method_options="foo")
    spill: dict[str, Any] = {"features": "spill", "folder": tmp_path}
    assert run(spill, approx="rff").stats["features"] == "spill"
    for folder in (tmp_path / "nowhere", str(tmp_path / "nowhere")):
        with pytest.raises(exactcv.InputError, match=r"folder'\]: there is no folder '.*nowhere'"):
            run(spill | {"folder": folder}, approx="rff")
    with pytest.raises(exactcv.InputTypeError, match=r"\['folder'\] must be a path, got 3"):
        run(spill | {"folder": 3}, approx="rff")


def test_what_approx_refuses_is_said_with_a_way_out(data, tmp_path: Path) -> None:
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd

    X, y = data
    for rows in (X + 1j, sparse.csr_matrix(X + 1j), da.from_array(X + 1j, chunks=(40, 4))):
        with pytest.raises(exactcv.InputError, match="complex"):
            exactcv.cross_validate(rows, y, approx="rff")
    with pytest.raises(exactcv.InputTypeError, match=r"X is a path.*approx='rff'"):
        exactcv.cross_validate(tmp_path / "rows.parquet", "label")
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")), npartitions=2)
    with pytest.raises(exactcv.InputTypeError, match=r"Dask dataframe.*approx='rff'"):
        exactcv.cross_validate(frame, y)
    three = np.arange(len(y)) % 3
    with pytest.raises(exactcv.InputError, match=r"for several classes use exactcv\.SVCCV\(approx"):
        exactcv.cross_validate(X, three, approx="rff")
    inner = exactcv.SVCCV(approx="rff", n_components=10, Cs=[1.0], cv=3, random_state=0)
    for outer in (OneVsOneClassifier, OneVsRestClassifier):
        assert set(outer(inner).fit(X, three).predict(X)) <= {0, 1, 2}


def test_bad_rows(data) -> None:
    X, y = data
    X = X.copy()
    X[77, 1] = np.nan
    with pytest.raises(exactcv.InputError, match=r"not finite.*row 77"):
        exactcv.cross_validate(X, y, approx="rff", method_options={"chunk_rows": 50})
    with pytest.raises(exactcv.InputError, match="dimension"):
        exactcv.cross_validate(X[:, 0], y, approx="rff")
    with pytest.raises(exactcv.InputTypeError, match="names a column"):
        exactcv.cross_validate(X, "label", approx="rff")
    y = np.where(np.arange(len(y)) == 0, 1.0, -1.0)
    with pytest.raises(exactcv.InputError, match=r"no row of class 1\.0"):
        exactcv.cross_validate(data[0], y, approx="rff", cv=[(np.arange(1, len(y)), [0])])


# ---- features and samples ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("m", [4000, 4001])
def test_random_features_approach_the_kernel(data, name, m) -> None:
    X = data[0][:30]
    kernel = Kernel(name, gamma=0.05)
    Z = RandomFourier.draw(name, 0.05, X.shape[1], m, seed=1).transform(X)
    assert Z.shape == (30, m)
    assert np.abs(Z @ Z.T - kernel_matrix(X, kernel)[0]).max() < 0.08


@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly", "linear"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_nystroem_is_exact_on_its_landmarks(data, name, form) -> None:
    X = data[0][:25]
    kernel = Kernel(name, gamma=0.05, coef0=1.0)
    K = kernel_matrix(X, kernel)[0]
    np.testing.assert_allclose(cross_kernel(form(X), form(X), kernel), K, atol=1e-12 * K.max())
    Z = Nystroem.fit(form(X), kernel).transform(form(X))
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-8 * K.max())


@pytest.mark.filterwarnings("ignore::exactcv.NotPSDWarning")
@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly", "sigmoid", "linear", "own"])
@pytest.mark.parametrize(
    "forms",
    [(np.asarray, np.asarray), (sparse.csr_matrix, np.asarray), (np.asarray, sparse.csr_matrix)],
)
def test_features_of_many_blocks(monkeypatch, name, forms) -> None:
    """Far from the origin, in any precision: those of each row are k(x, landmarks) K^(-1/2)."""
    monkeypatch.setattr("exactcv.lowrank.features._BLOCK_BYTES", 8 * 12 * 7)  # seven rows
    X = np.random.default_rng(0).normal(size=(45, 3)) + 30.0 * (name == "rbf")
    own = (lambda A, B: (A @ B.T + 1.0) ** 2) if name == "own" else name
    kernel = Kernel(own, gamma=0.1, degree=2, coef0=1.0)
    fmap = Nystroem.fit(forms[1](X[:12]), kernel)
    if name == "own":
        expected = (X @ X[:12].T + 1.0) ** 2 @ fmap.root
    else:
        expected = kernel_between(X, X[:12], kernel) @ fmap.root
    scale = np.abs(expected).max()
    np.testing.assert_allclose(fmap.transform(forms[0](X)), expected, atol=1e-7 * scale)
    short = features_of(fmap, forms[0](X), np.float32)
    assert short.dtype == np.float32
    np.testing.assert_allclose(short, expected, atol=1e-5 * scale)


@pytest.mark.parametrize("kind", ["nystroem", "rff"])
def test_features_that_overflow_in_the_last_block(data, monkeypatch, kind) -> None:
    monkeypatch.setattr("exactcv.lowrank.features._BLOCK_BYTES", 8 * 12 * 7)
    X = data[0][:45].copy()
    kernel = Kernel("poly" if kind == "nystroem" else "rbf", gamma=100.0)
    fmap = make_feature_map(kind, kernel, 12, X[:12], X.shape[1], 0)
    fmap.transform(X)
    X[-1] = 1e308
    with pytest.raises(exactcv.InputError, match="overflows on these data"):
        fmap.transform(X)


def test_a_kernel_that_is_not_psd_is_said_to_be(data) -> None:
    X, y = data
    with pytest.warns(exactcv.NotPSDWarning, match="negative eigenvalues"):
        exactcv.cross_validate(
            X, y, approx="nystroem", kernel="sigmoid", gamma=1.0, coef0=-1.0, n_components=20,
            lambdas=2, random_state=0,
        )  # fmt: skip


def test_a_kernel_function(data) -> None:
    X, y = data
    kernel = Kernel("poly", gamma=1.0, degree=2, coef0=1.0)
    options = {"approx": "nystroem", "n_components": 12, "lambdas": 3, "random_state": 0}
    named = exactcv.cross_validate(X, y, kernel="poly", gamma=1.0, degree=2, coef0=1.0, **options)
    own = exactcv.cross_validate(X, y, kernel=lambda A, B: cross_kernel(A, B, kernel), **options)
    np.testing.assert_allclose(own.weights, named.weights, rtol=1e-6, atol=1e-9)


def test_samples_depend_on_row_numbers_alone() -> None:
    keys = row_keys(np.arange(5000), 42)
    assert keys.min() >= 0.0 and keys.max() < 1.0
    assert abs(keys.mean() - 0.5) < 0.02 and len(np.unique(keys)) == 5000
    np.testing.assert_array_equal(row_keys(np.arange(700, 900), 42), keys[700:900])
    np.testing.assert_array_equal(smallest_keys(5000, 50, 42), np.argsort(keys)[:50])
    np.testing.assert_array_equal(smallest_keys(5000, 20, 42), smallest_keys(5000, 50, 42)[:20])
