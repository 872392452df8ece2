"""Fitted ``SVCCV`` models as ONNX graphs, in float64.

ONNX has an operator for SVMs, but its coefficients are float32.  So the kernel is written out in
basic operators: with support vectors v_j (or landmarks, see `_parts`), and a column of coefficients
for each pair of classes,

    values = K(x, v) coef + intercept,

from which labels follow by votes, as in ``SVCCV.predict``.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..estimators.sv_layout import pair_decisions
from ..exceptions import MissingExtraError, UnsupportedError
from ..lowrank.features import Nystroem, OwnColumns
from ..tolerances import TIE
from ..types import FloatArray

if TYPE_CHECKING:
    from ..estimators.svc_cv import SVCCV

__all__ = ["register_onnx"]

KERNELS = ("rbf", "laplacian", "linear", "poly", "sigmoid")


def register_onnx() -> None:
    """Teach skl2onnx to convert ``SVCCV``: alone, or as the last step of a pipeline.

    The graph has two outputs: ``label``, and ``decision`` with the values of ``decision_function``
    (a column for two classes).  Give ``DoubleTensorType`` as the type of the input: what is float32
    when it comes in has lost its digits before.  Probabilities, kernels that are functions, and
    random Fourier features are not converted.

    Raises
    ------
    MissingExtraError
        If skl2onnx is not installed: ``pip install "exactcv[onnx]"``.

    Examples
    --------
    ::

        exactcv.register_onnx()
        types = [("X", DoubleTensorType([None, 4]))]  # of skl2onnx.common.data_types
        graph = skl2onnx.to_onnx(model, initial_types=types)
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError as missing:
        raise MissingExtraError(
            'ONNX graphs need skl2onnx: pip install "exactcv[onnx]"'
        ) from missing
    from ..estimators.svc_cv import SVCCV

    update_registered_converter(
        SVCCV, "ExactcvSVCCV", _shapes, _convert, overwrite=True, parser=_outputs
    )


def _outputs(scope: Any, model: SVCCV, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    """The outputs by name."""
    operator = scope.declare_local_operator("ExactcvSVCCV", model)
    operator.inputs = inputs
    n = inputs[0].get_first_dimension()
    for name, kind in zip(("label", "decision"), _types(model, n), strict=True):
        operator.outputs.append(scope.declare_local_variable(name, kind))
    return list(operator.outputs)


def _shapes(operator: Any) -> None:
    """Types of the outputs, once the shape of the input is known."""
    n = operator.inputs[0].get_first_dimension()
    for output, kind in zip(operator.outputs, _types(operator.raw_operator, n), strict=True):
        output.type = kind


def _types(model: SVCCV, n: int | None) -> tuple[Any, Any]:
    from skl2onnx.common import data_types as kinds

    label = kinds.Int64TensorType if _is_int(model) else kinds.StringTensorType
    k = len(model.classes_)
    width = 1 if k == 2 else k
    if k > 2 and model.decision_function_shape == "ovo":
        width = k * (k - 1) // 2
    return label([n]), kinds.DoubleTensorType([n, width])


def _is_int(model: SVCCV) -> bool:
    if model.classes_.dtype.kind in "iu":
        return True
    if all(isinstance(label, str) for label in model.classes_.tolist()):
        return False
    raise UnsupportedError(
        f"class labels of type {model.classes_.dtype} have no place in ONNX: use integers or text"
    )


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Write the graph."""
    from skl2onnx.algebra import onnx_ops as ops
    from skl2onnx.proto import onnx_proto

    model, opset = operator.raw_operator, {"op_version": container.target_opset}
    vectors, coef, intercept = _parts(model)
    X = ops.OnnxCast(operator.inputs[0], to=onnx_proto.TensorProto.DOUBLE, **opset)
    K = _kernel(model, X, vectors, ops, opset)
    values = ops.OnnxAdd(ops.OnnxMatMul(K, coef, **opset), intercept, **opset)
    k = len(model.classes_)
    votes = _votes(values, k, -TIE, ops, opset)
    winner = ops.OnnxArgMax(votes, axis=1, keepdims=0, **opset)
    labels = model.classes_.astype(np.int64 if _is_int(model) else str)
    decision = values
    if k > 2 and model.decision_function_shape == "ovo":
        decision = ops.OnnxNeg(values, **opset)
    elif k > 2:
        decision = _ovr(values, k, ops, opset)
    outputs = operator.outputs
    ops.OnnxGather(labels, winner, output_names=outputs[:1], **opset).add_to(scope, container)
    ops.OnnxIdentity(decision, output_names=outputs[1:], **opset).add_to(scope, container)


def _parts(model: SVCCV) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows that the kernel is taken with, coefficients (rows, pairs) and intercepts (1, pairs).

    With Nystroem features the rows are the landmarks: f(x) = k(x)' root w.
    """
    if model.kernel not in KERNELS:
        raise UnsupportedError(f"the kernel {model.kernel!r} cannot be written as an ONNX graph")
    if hasattr(model, "support_"):
        n_support, n_pairs = len(model.support_), len(model.intercept_)
        shape = (model.dual_coef_, model.n_support_)
        coef = pair_decisions(np.eye(n_support), *shape, np.zeros(n_pairs))
        intercept = pair_decisions(np.zeros((1, n_support)), *shape, model.intercept_)
        return _dense(model.support_vectors_), coef, intercept
    fmap = model.feature_map_
    # With several classes the model has the signs of "ovo".
    sign = 1.0 if len(model.classes_) == 2 else -1.0
    weights = sign * np.atleast_2d(model.weights_).T
    if isinstance(fmap, OwnColumns):
        return np.eye(fmap.n_features), weights, sign * model.intercept_[None]
    if not isinstance(fmap, Nystroem):
        raise UnsupportedError("random Fourier features are not converted; use approx='nystroem'")
    return _dense(fmap.landmarks), fmap.root @ weights, sign * model.intercept_[None]


def _dense(rows: Any) -> FloatArray:
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)


def _kernel(model: SVCCV, X: Any, vectors: FloatArray, ops: Any, opset: dict[str, int]) -> Any:
    """K(x, v), rows by vectors."""
    gamma = np.array([model.gamma_ or 1.0])
    axis = np.array([-1], dtype=np.int64)
    if model.kernel == "laplacian":
        wide = ops.OnnxUnsqueeze(X, np.array([1], dtype=np.int64), **opset)
        apart = ops.OnnxAbs(ops.OnnxSub(wide, vectors[None], **opset), **opset)
        distance = ops.OnnxReduceSum(apart, axis, keepdims=0, **opset)
        return ops.OnnxExp(ops.OnnxMul(distance, -gamma, **opset), **opset)
    # Factors go into the vectors: onnxruntime makes one operator of a product and a factor after
    # it, and that factor is float32.
    factor = {"linear": 1.0, "rbf": -2.0}.get(str(model.kernel), float(gamma[0]))
    product = ops.OnnxMatMul(X, np.ascontiguousarray(factor * vectors.T), **opset)
    if model.kernel == "linear":
        return product
    if model.kernel == "rbf":
        own = ops.OnnxReduceSum(ops.OnnxMul(X, X, **opset), axis, keepdims=1, **opset)
        ends = ops.OnnxAdd(own, (vectors**2).sum(axis=1)[None], **opset)
        distance = ops.OnnxMax(ops.OnnxAdd(ends, product, **opset), np.array([0.0]), **opset)
        return ops.OnnxExp(ops.OnnxMul(distance, -gamma, **opset), **opset)
    scaled = ops.OnnxAdd(product, np.array([float(model.coef0)]), **opset)
    if model.kernel == "sigmoid":
        return ops.OnnxTanh(scaled, **opset)
    return ops.OnnxPow(scaled, np.array([float(model.degree)]), **opset)


def _votes(values: Any, k: int, threshold: float, ops: Any, opset: dict[str, int]) -> Any:
    """Votes of each class: those for the second of its pairs, and the others for the first."""
    from skl2onnx.proto import onnx_proto

    won = ops.OnnxCast(
        ops.OnnxGreater(values, np.array([threshold]), **opset),
        to=onnx_proto.TensorProto.DOUBLE,
        **opset,
    )
    sign = _signs(k)
    lost = np.maximum(-sign, 0.0).sum(axis=0)[None]  # all pairs in which the class comes first
    return ops.OnnxAdd(ops.OnnxMatMul(won, sign, **opset), lost, **opset)


def _signs(k: int) -> FloatArray:
    """(pairs, k): 1 for the second class of a pair, -1 for the first."""
    sign = np.zeros((k * (k - 1) // 2, k))
    for p, (a, b) in enumerate(combinations(range(k), 2)):
        sign[p, a], sign[p, b] = -1.0, 1.0
    return sign


def _ovr(values: Any, k: int, ops: Any, opset: dict[str, int]) -> Any:
    """As ``ovr_columns``: votes plus s / (3 (|s| + 1))."""
    sums = ops.OnnxMatMul(values, _signs(k), **opset)
    size = ops.OnnxAdd(ops.OnnxAbs(sums, **opset), np.array([1.0]), **opset)
    share = ops.OnnxDiv(sums, ops.OnnxMul(size, np.array([3.0]), **opset), **opset)
    return ops.OnnxAdd(_votes(values, k, TIE, ops, opset), share, **opset)
