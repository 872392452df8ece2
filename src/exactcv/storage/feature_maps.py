"""What models with an approximate kernel have instead of support vectors, as trees and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators.lowrank_curve import ApproxCurve
from ..exceptions import InputError
from ..lowrank.features import (
    RANDOM_FEATURE_KERNELS,
    FeatureMap,
    Nystroem,
    OwnColumns,
    RandomFourier,
)
from ..problem.inputs import check_kernel
from ..problem.kernels import KERNELS, Kernel
from ..types import KernelFunction
from .records import (
    array_in,
    certificate_in,
    fields_tree,
    need,
    need_numbers,
    need_rows,
    overview_in,
    overview_tree,
    rows_in,
    rows_tree,
)

__all__ = ["check_kind", "curve_in", "curve_tree", "feature_map_in", "feature_map_tree"]

KERNEL = ("name", "gamma", "degree", "coef0")


def feature_map_tree(fmap: FeatureMap) -> dict[str, Any]:
    """Landmarks or frequencies, and the kernel they stand for."""
    if isinstance(fmap, RandomFourier):
        return {"kind": "rff"} | fields_tree(fmap)
    if isinstance(fmap, OwnColumns):
        return {"kind": "columns"}
    if not isinstance(fmap, Nystroem):
        raise InputError(f"features of type {type(fmap).__name__} cannot be saved")
    kernel = {name: getattr(fmap.kernel, name) for name in KERNEL}
    return {
        "kind": "nystroem",
        "landmarks": rows_tree(fmap.landmarks),
        "root": fmap.root,
        "kernel": kernel,
    }


def feature_map_in(tree: dict[str, Any], n_features: int) -> FeatureMap:
    """The map, for rows of ``n_features`` numbers; parts that do not fit together are refused."""
    kind = tree["kind"]
    if kind == "columns":
        return OwnColumns(n_features)
    need(kind in ("rff", "nystroem"), f"features of the kind {kind!r} are not known")
    return (_random_fourier if kind == "rff" else _nystroem)(tree, n_features)


def _random_fourier(tree: dict[str, Any], n_features: int) -> RandomFourier:
    frequencies, phase, gamma = array_in(tree, "frequencies"), tree["phase"], tree["gamma"]
    need(frequencies.ndim == 2 and frequencies.shape[1] > 0, "the frequencies are odd")
    need_numbers(frequencies, (n_features, frequencies.shape[1]), "the frequencies")
    need(phase is None or (type(phase) is float and np.isfinite(phase)), "the phase is odd")
    need(type(gamma) is float and 0 < gamma < np.inf, "gamma is odd")
    return RandomFourier(frequencies, phase, gamma)


def _nystroem(tree: dict[str, Any], n_features: int) -> Nystroem:
    kernel = Kernel(**{name: tree["kernel"][name] for name in KERNEL})
    need(kernel.name in KERNELS and kernel.name != "precomputed", "the kernel is not known")
    check_kernel(kernel.name, kernel.gamma, kernel.degree, kernel.coef0)
    need(not kernel.uses_gamma or type(kernel.gamma) is float, "gamma is odd")
    root = array_in(tree, "root")
    need(root.ndim == 2 and len(root) > 0, "the root of the kernel matrix is odd")
    need_numbers(root, (len(root), len(root)), "the root of the kernel matrix")
    landmarks = rows_in(tree["landmarks"], "landmarks")
    need_rows(landmarks, (len(root), n_features), "landmarks")
    return Nystroem(landmarks, root, kernel)


def check_kind(fmap: FeatureMap, kernel: str | KernelFunction, gamma: float | None) -> None:
    """Does the map belong to this kernel?"""
    if isinstance(fmap, Nystroem):
        need(fmap.kernel.name == kernel, "the landmarks belong to another kernel")
    elif isinstance(fmap, OwnColumns):
        need(kernel == "linear", "the columns belong to another kernel")
    else:
        need(kernel in RANDOM_FEATURE_KERNELS, "the frequencies belong to another kernel")
    need(fmap.gamma == gamma, "the features belong to another gamma")


# ---- the curve of one gamma, for runs that are to go on ------------------------------------------


def curve_tree(curve: ApproxCurve) -> dict[str, Any]:
    """All of it but the timings."""
    return {
        "overview": overview_tree(curve.overview),
        "certificate": fields_tree(curve.certificate),
        "weights": curve.weights,
        "intercept": curve.intercept,
        "feature_map": feature_map_tree(curve.feature_map),
        "n_features": curve.feature_map.n_features,
        "score": curve.score,
        "score_se": curve.score_se,
        "labels": curve.labels,
        "decision": curve.decision,
    }


def curve_in(tree: dict[str, Any]) -> ApproxCurve:
    """The curve again."""
    fmap = feature_map_in(tree["feature_map"], tree["n_features"])
    overview = overview_in(tree["overview"])
    n_pairs = len(overview.classes) * (len(overview.classes) - 1) // 2
    need_numbers(array_in(tree, "weights"), (n_pairs, fmap.n_components), "weights")
    need_numbers(array_in(tree, "intercept"), (n_pairs,), "intercept")
    return ApproxCurve(
        overview=overview,
        certificate=certificate_in(dict(tree["certificate"])),
        weights=tree["weights"],
        intercept=tree["intercept"],
        feature_map=fmap,
        score=array_in(tree, "score"),
        score_se=array_in(tree, "score_se"),
        labels=array_in(tree, "labels"),
        decision=tree["decision"],
    )
