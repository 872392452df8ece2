"""Models in other people's formats: skops, and ONNX in float64."""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

import exactcv

Y = np.arange(40) % 2
X = np.random.default_rng(0).normal(size=(40, 3)) + Y[:, None]
NEW = np.random.default_rng(1).normal(size=(200, 3)) + 0.5
PAGE = Path(__file__).resolve().parents[2] / "docs" / "other_formats.md"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"probability": True, "gamma": [0.1, 1.0]},
        {"cv": 4, "scoring": "roc_auc"},
        {"approx": "nystroem", "n_components": 8},
        {"approx": "rff", "n_components": 8},
    ],
)
def test_skops_loads_with_the_types_that_the_docs_list(settings: dict[str, Any]) -> None:
    skops = pytest.importorskip("skops.io")
    listed = re.findall(r'^    "(exactcv\.[\w.]+)",$', PAGE.read_text(), re.MULTILINE)
    model = exactcv.SVCCV(Cs=[0.1, 1.0], **settings).fit(X, Y)
    again = skops.loads(skops.dumps(model), trusted=listed)
    np.testing.assert_array_equal(again.decision_function(NEW), model.decision_function(NEW))
    assert again.summary() == model.summary()
    smooth = exactcv.SmoothSVC().fit(X, Y)
    again = skops.loads(skops.dumps(smooth), trusted=listed)
    np.testing.assert_array_equal(again.decision_function(NEW), smooth.decision_function(NEW))


# ---- ONNX ----------------------------------------------------------------------------------------


def outputs(model: Any, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    from skl2onnx.common.data_types import DoubleTensorType

    exactcv.register_onnx()
    types = [("X", DoubleTensorType([None, rows.shape[1]]))]
    graph = skl2onnx.to_onnx(model, initial_types=types)
    session = runtime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    assert [output.name for output in session.get_outputs()] == ["label", "decision"]
    return tuple(session.run(None, {"X": rows}))


@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"]])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "poly", "sigmoid"])
def test_onnx_gives_the_same_to_nine_digits(kernel: Any, labels: list[Any]) -> None:
    more = {"gamma": 0.01, "coef0": -1.0} if kernel == "sigmoid" else {"coef0": 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", exactcv.NotPSDWarning)
        model = exactcv.SVCCV(kernel=kernel, Cs=[1.0], **more).fit(X, np.array(labels)[Y])
    label, decision = outputs(model, NEW)
    expected = model.decision_function(NEW)
    np.testing.assert_allclose(decision[:, 0], expected, rtol=0, atol=1e-9)
    assert label.tolist() == model.predict(NEW).tolist()


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("approx", [None, "nystroem"])
def test_onnx_with_several_classes(shape: Any, approx: Any) -> None:
    rows, classes = load_iris(return_X_y=True)
    more = {"approx": approx, "n_components": 20, "random_state": 0}
    model = exactcv.SVCCV(Cs=[1.0], cv=5, decision_function_shape=shape, **more)
    model.fit(rows, classes)
    new = rows + np.random.default_rng(0).normal(size=rows.shape)
    label, decision = outputs(model, new)
    np.testing.assert_allclose(decision, model.decision_function(new), rtol=0, atol=1e-9)
    assert label.tolist() == model.predict(new).tolist()


def test_the_numbers_of_a_graph_of_several_classes() -> None:
    """Kernel values with the landmarks, times these coefficients, are the values of the pairs."""
    from exactcv.lowrank.features import cross_kernel
    from exactcv.storage.onnx_export import _parts

    rows, classes = load_iris(return_X_y=True)
    model = exactcv.SVCCV(Cs=[1.0], cv=5, approx="nystroem", n_components=20, random_state=0)
    model.set_params(decision_function_shape="ovo").fit(rows, classes)
    landmarks, coef, intercept = _parts(model)
    values = cross_kernel(rows, landmarks, model.feature_map_.kernel) @ coef + intercept
    np.testing.assert_allclose(-values, model.decision_function(rows), rtol=0, atol=1e-8)


def test_onnx_with_landmarks_and_in_a_pipeline() -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = exactcv.SVCCV(Cs=[1.0], approx="nystroem", n_components=8, random_state=0)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, Y)
    label, decision = outputs(pipeline, NEW)
    expected = pipeline.decision_function(NEW)
    np.testing.assert_allclose(decision[:, 0], expected, rtol=0, atol=1e-9)
    assert label.tolist() == pipeline.predict(NEW).tolist()


def test_what_has_no_graph_is_said() -> None:
    fourier = exactcv.SVCCV(Cs=[1.0], approx="rff", n_components=8).fit(X, Y)
    with pytest.raises(exactcv.UnsupportedError, match="random Fourier"):
        outputs(fourier, NEW)
    own = exactcv.SVCCV(Cs=[1.0], kernel=lambda A, B: A @ B.T).fit(X, Y)
    with pytest.raises(exactcv.UnsupportedError, match="cannot be written"):
        outputs(own, NEW)


def test_without_skl2onnx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(exactcv.MissingExtraError, match=r"exactcv\[onnx\]"):
        exactcv.register_onnx()
