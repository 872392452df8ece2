"""What estimators that tune themselves have in common: how their settings are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.metadata_routing import process_routing

from ..crossval.scoring import Scorer, warn_of_weights
from ..exceptions import InputError, InputTypeError
from ..problem import inputs
from ..problem.gamma import around
from ..problem.grid import Grid, default_grid, make_grid
from ..problem.kernels import Kernel, gamma_value, kernel_between, kernel_scale
from ..types import FloatArray

__all__ = ["HasKernel", "dense", "grid_of", "kernel_with", "kernels_of", "routed", "rows_of"]


class HasKernel(Protocol):
    """An estimator with scikit-learn's parameters of a kernel, and a grid of C."""

    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any
    Cs: Any
    lambdas: Any


def kernels_of(model: HasKernel) -> list[Kernel]:
    """One kernel for each gamma."""
    gammas: Any = "median" if model.gamma is None else model.gamma
    if not isinstance(gammas, (list, tuple, np.ndarray)):
        gammas = [gammas]
    if len(gammas) == 0:
        raise InputError("gamma is an empty list; give a number, a rule or a list of these")
    gammas = [g.item() if isinstance(g, np.generic) else g for g in gammas]
    made = [inputs.check_kernel(model.kernel, g, model.degree, model.coef0) for g in gammas]
    if len(made) > 1 and not made[0].uses_gamma:
        raise InputError(f"kernel={model.kernel!r} has no gamma, but gamma is a list")
    return made


def grid_of(
    model: HasKernel,
    X: FloatArray,
    weight: FloatArray,
    C_scale: float = 1.0,
    every_c: bool = False,
) -> tuple[Grid, list[Kernel], tuple[int, int] | None]:
    """C, the kernels, and whether gammas may be added: (0, 0), or None if not.

    ``C_scale`` is the unit of C (``problem/units.py``), 1 for classes.  With ``every_c`` the grid
    tells the range of C only, that of the default grid.
    """
    kernels = kernels_of(model)
    n = float(weight.sum())
    if every_c:
        grid = default_grid(n, kernel_scale(X, kernels[len(kernels) // 2]) / C_scale)
        return replace(grid, grown=None), kernels, None
    if not (model.Cs is None and model.lambdas is None):
        return make_grid(model.Cs, model.lambdas, n), kernels, None
    grid = default_grid(n, kernel_scale(X, kernels[len(kernels) // 2]) / C_scale)
    # (gamma x'y)^degree: there gamma does no more than C.
    idle = model.kernel == "poly" and model.coef0 == 0
    if model.gamma is not None or idle or not kernels[0].uses_gamma:
        return grid, kernels, None
    middle = gamma_value(X, kernels[0], weight)
    assert middle is not None
    return grid, [replace(kernels[0], gamma=gamma) for gamma in around(middle)], (0, 0)


def kernel_with(model: HasKernel, gamma: float | None, X: Any, vectors: Any) -> FloatArray:
    """Kernel values of new rows with those that the model keeps."""
    kernel = Kernel(model.kernel, gamma or 1.0, model.degree, model.coef0)
    if callable(model.kernel):  # it was shown dense rows when the model was fitted
        X, vectors = dense(X), dense(vectors)
    return kernel_between(X, vectors, kernel)


def routed(
    model: Any, sample_weight: Any, groups: Any, params: dict[str, Any], scorer: Scorer
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the splitter and the scorer get besides X and y, one entry a row."""
    if _routing_enabled():
        given = {"sample_weight": sample_weight, "groups": groups, **params}
        given = {name: value for name, value in given.items() if value is not None}
        if not given:
            return {}, {}
        found = process_routing(model, "fit", **given)
        return dict(found.splitter.split), dict(found.scorer.score)
    if params:
        raise InputTypeError(
            f"fit() got {sorted(params)}; parameters other than sample_weight and groups need "
            "scikit-learn's metadata routing: sklearn.set_config(enable_metadata_routing=True)"
        )
    to_scorer = {}
    if sample_weight is not None and scorer.call is not None:
        if scorer.takes_weights():
            to_scorer["sample_weight"] = sample_weight
        else:
            warn_of_weights(scorer)
    return ({} if groups is None else {"groups": groups}), to_scorer


def _routing_enabled() -> bool:
    from sklearn import get_config

    return bool(get_config()["enable_metadata_routing"])


def rows_of(values: Any, keep: NDArray[np.intp], n: int) -> Any:
    """The entries of the rows that count; what is not one a row is left alone."""
    array = np.asarray(values)
    return array[keep] if array.ndim and len(array) == n else values


def dense(X: Any) -> FloatArray:
    """X as an array, also if it is sparse."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X)
