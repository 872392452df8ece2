"""``SVCCV(approx=...)``: the tuned model in m dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificate import Certificate
from ..exceptions import InputError, UnsupportedError
from ..losses import FloatArray
from ..overview import Overview, join
from ..result import CVResult

if TYPE_CHECKING:
    from ..svc_cv import SVCCV

__all__ = ["decision_values", "fit_approximately"]


def fit_approximately(model: SVCCV, X: Any, y: Any, sample_weight: Any, groups: Any) -> None:
    """Cross-validate every gamma with an approximate kernel and keep the best point."""
    _check(model, y)
    gammas = model.gamma if isinstance(model.gamma, (list, tuple, np.ndarray)) else [model.gamma]
    if len(gammas) == 0:
        raise InputError("gamma is an empty list; give a number, a rule or a list of these")
    results = [_run(model, X, y, sample_weight, groups, gamma) for gamma in gammas]
    keys = [(r.n_errors[r.best], r.Cs[r.best], k) for k, r in enumerate(results)]
    chosen = results[min(keys)[-1]]
    _keep(model, results, chosen, chosen.best if model.select == "min" else chosen.one_se)


def _check(model: SVCCV, y: Any) -> None:
    refused = {
        "probability=True": model.probability,
        f"scoring={model.scoring!r}": model.scoring not in (None, "accuracy"),
        f"method={model.method!r}": model.method != "exact",
        f"loss={model.loss!r}": model.loss != "hinge",
    }
    for what, given in refused.items():
        if given:
            raise UnsupportedError(
                f"SVCCV(approx={model.approx!r}) does not go with {what}; leave it out, or use "
                "approx=None"
            )
    n_classes = len(np.unique(y))
    if n_classes > 2:
        raise UnsupportedError(
            f"SVCCV(approx={model.approx!r}) separates two classes, y has {n_classes}; wrap it in "
            "sklearn.multiclass.OneVsOneClassifier"
        )


def _run(model: SVCCV, X: Any, y: Any, sample_weight: Any, groups: Any, gamma: Any) -> CVResult:
    from ..validate import cross_validate

    return cross_validate(
        X,
        y,
        kernel=model.kernel,
        gamma=gamma.item() if isinstance(gamma, np.generic) else gamma,
        degree=model.degree,
        coef0=model.coef0,
        Cs=model.Cs,
        lambdas=model.lambdas,
        cv=model.cv,
        groups=groups,
        sample_weight=sample_weight,
        class_weight=model.class_weight,
        fit_intercept=model.fit_intercept,
        output="decision" if model.store_cv_results else "error",
        n_jobs=model.n_jobs,
        tol=model.tol,
        random_state=model.random_state,
        progress=bool(model.verbose),
        approx=model.approx,
        n_components=model.n_components,
        memory_limit=model.memory_limit,
    )


def _keep(model: SVCCV, results: list[CVResult], chosen: CVResult, point: int) -> None:
    """The fitted attributes; ``weights_`` and ``feature_map_`` instead of support vectors."""
    L, k = len(chosen.Cs), next(i for i, r in enumerate(results) if r is chosen)
    error = np.concatenate([r.error for r in results])
    Cs, gammas = np.tile(chosen.Cs, len(results)), np.repeat([_gamma(r) for r in results], L)
    has_gamma = chosen.gamma is not None
    pairs = zip(Cs.tolist(), gammas.tolist(), strict=True)
    model.cv_results_ = {
        "params": [{"C": C, "gamma": g} if has_gamma else {"C": C} for C, g in pairs],
        "param_C": Cs,
        "param_gamma": gammas,
        "lambda": np.tile(chosen.lambdas, len(results)),
        "mean_test_score": 1.0 - error,
        "se_test_score": np.concatenate([r.se for r in results]),
        "rank_test_score": 1 + (error[:, None] > error).sum(axis=1).astype(np.int32),
        "error": error,
        "se": np.concatenate([r.se for r in results]),
        "n_errors": np.concatenate([r.n_errors for r in results]),
        "at_bound": np.concatenate([r.at_bound for r in results]),
        "kkt": np.concatenate([r.certificate.kkt for r in results]),
        "gap": np.concatenate([r.certificate.gap for r in results]),
    }
    if model.store_cv_results:
        model.cv_results_["decision"] = np.concatenate([r.decision for r in results])
    short = [(i * L + l, f) for i, r in enumerate(results) for l, f in r.certificate.unresolved]
    model.certificate_ = Certificate(
        model.cv_results_["kkt"], model.cv_results_["gap"], not short, short, model.tol
    )
    model.best_index_ = k * L + point
    model.best_score_ = float(1.0 - chosen.error[point])
    model.C_, model.lambda_ = float(chosen.Cs[point]), float(chosen.lambdas[point])
    model.gamma_, model.classes_ = chosen.gamma, chosen.classes
    assert chosen.weights is not None
    model.weights_, model.feature_map_ = chosen.weights[point], chosen.feature_map
    model.intercept_ = chosen.intercept[[point]]
    model._shown = _shown(results)


def _gamma(result: CVResult) -> float:
    return np.nan if result.gamma is None else result.gamma


def _shown(results: list[CVResult]) -> Overview:
    return join([result._overview() for result in results])


def decision_values(model: SVCCV, X: Any) -> FloatArray:
    """(rows, 1), chunk by chunk: features of all rows at once may be many."""
    step = max(1, (1 << 24) // len(model.weights_))
    parts = [
        model.feature_map_.transform(X[start : start + step]) @ model.weights_
        for start in range(0, X.shape[0], step)
    ]
    return np.asarray(np.concatenate(parts) + model.intercept_[0])[:, None]
