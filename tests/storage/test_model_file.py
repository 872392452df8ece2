"""Model files: what goes in comes out, and nothing else does."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _damage import DIGEST, sealed, with_header
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import StratifiedKFold

import exactcv
from exactcv.datasets import make_mixture
from exactcv.storage import arrays
from exactcv.storage.model_file import load_for_predictions
from exactcv.storage.preparation import fit_preparation
from exactcv.storage.table import Table
from exactcv.storage.table_model import TableModel


@pytest.fixture(scope="module")
def fitted() -> exactcv.SVCCV:
    X, y = make_mixture(40, 3, random_state=0)
    return exactcv.SVCCV(Cs=[0.1, 1.0], gamma=[0.05, 0.2], probability=True).fit(X, y)


@pytest.fixture(scope="module")
def data(fitted: exactcv.SVCCV, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "model.exactcv"
    return exactcv.save_model(fitted, path).read_bytes()


@pytest.fixture
def load(tmp_path: Path) -> Callable[[bytes], Any]:
    def loader(content: bytes) -> Any:
        path = tmp_path / "model.exactcv"
        path.write_bytes(content)
        return exactcv.load_model(path)

    return loader


# ---- round trips ---------------------------------------------------------------------------------


def three(labels: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 12)
    return rng.normal(size=(36, 3)) + y[:, None], np.array(labels)[y]


@pytest.mark.parametrize(
    ("labels", "kernel", "form"),
    [
        ([0, 1, 2], "rbf", np.asarray),
        (["a", "bb", "ccc"], "laplacian", sparse.csr_matrix),
        ([-1.0, 0.0, 3.0], "poly", np.asarray),
        (np.array(["a", "b", "ç"], dtype=object), "linear", sparse.csr_matrix),
    ],
)
def test_round_trip_bit_for_bit(
    tmp_path: Path, labels: Any, kernel: str, form: Callable[[np.ndarray], Any]
) -> None:
    X, y = three(labels)
    X = form(X)
    model = exactcv.SVCCV(
        Cs=np.array([0.1, 1.0]), kernel=kernel, probability=True, cv=4, random_state=3
    ).fit(X, y)
    again = exactcv.load_model(exactcv.save_model(model, tmp_path / "m"))
    for name in ("predict", "decision_function", "predict_proba"):
        np.testing.assert_array_equal(getattr(again, name)(X), getattr(model, name)(X))
    assert again.classes_.dtype == model.classes_.dtype
    assert again.get_params().keys() == model.get_params().keys()
    assert again.cv_results_["params"] == model.cv_results_["params"]
    np.testing.assert_array_equal(again.cv_results_["error"], model.cv_results_["error"])
    assert again.certificate_.unresolved == model.certificate_.unresolved
    same = exactcv.save_model(again, tmp_path / "n")
    assert same.read_bytes() == (tmp_path / "m").read_bytes()
    lines = [line for line in model.summary().splitlines() if not line.startswith("time:")]
    assert again.summary().splitlines() == lines


def test_precomputed_kernels_and_names_of_features(tmp_path: Path) -> None:
    X, y = make_mixture(30, 3, random_state=1)
    K = X @ X.T
    model = exactcv.SVCCV(Cs=[0.1], kernel="precomputed").fit(K, y)
    again = exactcv.load_model(exactcv.save_model(model, tmp_path / "m"))
    np.testing.assert_array_equal(again.decision_function(K), model.decision_function(K))
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    named = exactcv.SVCCV(Cs=[0.1]).fit(frame, y)
    again = exactcv.load_model(exactcv.save_model(named, tmp_path / "m"))
    assert again.feature_names_in_.tolist() == ["a", "b", "c"]
    assert (again.predict(frame) == named.predict(frame)).all()


def test_models_of_wide_tables_have_a_short_repr() -> None:
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {f"column {k}": rng.normal(size=12) for k in range(3000)}
    table = Table("t", 12, columns | {"kind": ["a", "b"] * 6, "y": ["yes", "no", "no"] * 4})
    made, X = fit_preparation(table, target="y")
    model = exactcv.SVCCV(Cs=np.geomspace(0.1, 1.0, 200)).fit(X, np.array(["yes", "no", "no"] * 4))
    found = TableModel(model, made)
    assert len(repr(found)) < 300 and len(repr(made)) < 300 and len(repr(model)) < 1500
    assert "'y'" in repr(found) and "3002 features" in repr(found) and "3001 columns" in repr(made)


def test_objects_among_the_parameters_are_left_out(tmp_path: Path) -> None:
    X, y = make_mixture(30, 3, random_state=1)
    settings = {"cv": StratifiedKFold(3), "class_weight": {-1.0: 1.0, 1.0: 2.0}}
    model = exactcv.SVCCV(Cs=[0.1], **settings).fit(X, y)
    again = exactcv.load_model(exactcv.save_model(model, tmp_path / "m"))
    assert (again.cv, again.class_weight) == ("loo", None)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    X, y = make_mixture(20, 3, random_state=1)
    own = exactcv.SVCCV(Cs=[0.1], kernel=lambda a, b: a @ b.T).fit(X, y)
    for model, said in (
        (own, "the kernel is a function"),
        (exactcv.SVCCV(), "not fitted"),
        (object(), "only SVCCV"),
    ):
        with pytest.raises(exactcv.InputError, match=said):
            exactcv.save_model(model, tmp_path / "m")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


# ---- damage and malice ---------------------------------------------------------------------------


class Harm:
    """A pickle that leaves a trace when it is loaded."""

    def __init__(self, trace: Path):
        self.trace = trace

    def __reduce__(self) -> Any:
        return (Path.touch, (self.trace,))


def test_pickles_are_not_executed(load: Callable[[bytes], Any], tmp_path: Path) -> None:
    trace = tmp_path / "harmed"
    payload = pickle.dumps(Harm(trace))
    for content in (payload, arrays.MAGIC + payload, sealed(arrays.MAGIC + payload + bytes(64))):
        with pytest.raises(exactcv.ExactCVError):
            load(content)
    assert not trace.exists()


def test_every_cut_is_noticed(load: Callable[[bytes], Any], data: bytes) -> None:
    for size in [*range(60), *range(60, len(data), 997), len(data) - 1]:
        with pytest.raises(exactcv.FileError):
            load(data[:size])
    with pytest.raises(exactcv.FileError):
        load(data + b"\0")


def test_every_flipped_bit_is_noticed(load: Callable[[bytes], Any], data: bytes) -> None:
    rng = np.random.default_rng(0)
    places = [*range(20), *rng.integers(len(data), size=200).tolist(), len(data) - 1]
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(exactcv.FileError):
            load(bytes(changed))


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_forged_files_load_or_are_refused(
    load: Callable[[bytes], Any], data: bytes, draw: st.DataObject
) -> None:
    """With a right checksum, too, a changed file gives a model or our error, nothing else."""
    body = bytearray(data[:-DIGEST])
    for _ in range(draw.draw(st.integers(1, 4))):
        body[draw.draw(st.integers(0, len(body) - 1))] = draw.draw(st.integers(0, 255))
    try:
        model = load(sealed(bytes(body)))
    except exactcv.FileError:
        return
    assert model.predict(np.zeros((2, 3))).shape == (2,)


def array_of(header: dict[str, Any], name: str) -> dict[str, Any]:
    """Where the header keeps an array of the model."""
    (found,) = (
        item["array"]
        for key, part in header["tree"]["dict"]
        if key == "arrays"
        for inner, item in part["dict"]
        if inner == name
    )
    place: dict[str, Any] = header["arrays"][found]
    return place


def entry(header: dict[str, Any], *keys: str) -> list[Any]:
    """The [key, value] pair at the end of a path of keys."""
    part: Any = header["tree"]
    for key in keys:
        pair = next(p for p in part["dict"] if p[0] == key)
        part = pair[1]
    return pair


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "object arrays": lambda h: array_of(h, "dual_coef_").update(dtype="|O"),
    "huge array": lambda h: array_of(h, "dual_coef_").update(shape=[2**40, 2**40]),
    "negative shape": lambda h: array_of(h, "dual_coef_").update(shape=[-1, -30]),
    "outside": lambda h: array_of(h, "support_").update(at=10**12),
    "another kind": lambda h: h.update(kind="curve"),
    "no kind": lambda h: h.pop("kind"),
    "array -1": lambda h: entry(h, "arrays", "support_").__setitem__(1, {"array": -1}),
    "unknown tag": lambda h: entry(h, "arrays", "support_").__setitem__(1, {"pickle": "x"}),
    "unknown parameter": lambda h: entry(h, "params").__setitem__(1, {"dict": [["evil", 1]]}),
    "kernel": lambda h: entry(h, "params", "kernel").__setitem__(1, "os.system"),
    "degree": lambda h: entry(h, "params", "degree").__setitem__(1, "3"),
    "gamma": lambda h: entry(h, "scalars", "gamma_").__setitem__(1, -1.0),
    "width": lambda h: entry(h, "scalars", "n_features_in_").__setitem__(1, 4),
    "version": lambda h: entry(h, "version").__setitem__(1, 99),
    "class type": lambda h: entry(h, "classes", "dtype").__setitem__(1, "<U99999999"),
    "class values": lambda h: entry(h, "classes", "values").__setitem__(1, [[1], [2]]),
    "one class": lambda h: entry(h, "classes", "values").__setitem__(1, [1.0]),
    "overview": lambda h: entry(h, "overview").__setitem__(1, {"dict": [["x", 1]]}),
    "preparation": lambda h: entry(h, "preparation").__setitem__(1, {"dict": []}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_forged_headers_are_refused(load: Callable[[bytes], Any], data: bytes, name: str) -> None:
    assert load(with_header(lambda header: None, data)).C_ > 0
    with pytest.raises(exactcv.FileError):
        load(with_header(CHANGES[name], data))


def test_headers_that_bring_parsers_down_are_refused(load: Callable[[bytes], Any]) -> None:
    for header in (b"[" * 100_000, b'{"a":' * 5000, b"NaN", b"\xff", b"{}", b"[]", b'{"x": 1e999}'):
        data = arrays.MAGIC + len(header).to_bytes(8, "little") + header
        with pytest.raises(exactcv.FileError):
            load(sealed(data))
    long = arrays.MAGIC + (2**63).to_bytes(8, "little") + bytes(100)
    with pytest.raises(exactcv.FileError, match="longer than the file"):
        load(sealed(long))


def test_trees_keep_every_kind_of_value() -> None:
    tree = {
        "empty": np.zeros((0, 3)),
        "one": np.array(2.5),
        "flags": np.array([True, False]),
        "nan": float("nan"),
        "list": [1, -2.5e-300, None, True, "é", {"array": 1, "dict": []}],
        "inf": float("-inf"),
        "view": np.arange(12.0).reshape(3, 4).T[::2],
    }
    found = arrays.loads("test", arrays.dumps("test", tree))
    assert list(found) == list(tree)
    for name in ("empty", "one", "flags", "view"):
        np.testing.assert_array_equal(found[name], tree[name])
        assert found[name].shape == np.shape(tree[name])
    assert found["list"] == tree["list"]
    assert np.isnan(found["nan"]) and found["inf"] == float("-inf")
    for bad in (object(), np.array([object()]), {1, 2}):
        with pytest.raises(exactcv.FileError, match="cannot be written"):
            arrays.dumps("test", bad)


def test_what_predicts_need_not_read_what_is_told_of_the_rows(tmp_path: Path) -> None:
    X, y = exactcv.datasets.make_mixture(300, 3, random_state=0)
    model = exactcv.SVCCV(
        approx="nystroem", n_components=10, lambdas=[1e-3], gamma=0.1, cv=3, random_state=0
    ).fit(X, y)
    path = exactcv.save_model(model, tmp_path / "model")
    read: list[int] = []
    original = arrays._Arrays.read

    def counted(self: Any, k: int) -> np.ndarray:
        found = original(self, k)
        read.append(len(found))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays._Arrays, "read", counted)
        short = load_for_predictions(path)
        assert max(read) < 300
        exactcv.load_model(path)
        assert max(read) == 300
    np.testing.assert_array_equal(short.predict(X), model.predict(X))
