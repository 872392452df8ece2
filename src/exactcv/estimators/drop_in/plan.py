"""Which candidates can share what.

1. *Shared.*  Kernel and weights are the same in every fold: all C of the grid with that kernel are
   one call of the exact engine.
2. *By fold.*  Something is learnt from the training rows (a step of the pipeline,
   ``gamma="scale"``, ``class_weight="balanced"``): each fold has its own problem, solved along
   all C at once.
3. *Foreign.*  Only scikit-learn's own fit gives scikit-learn's answer.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils.metadata_routing import process_routing

from ...exceptions import SlowFoldsWarning
from .models import Candidate, KernelSpec

__all__ = ["FitParams", "Group", "Plan", "make_plan", "read_fit_params", "warn_of_reasons"]


@dataclass(frozen=True)
class FitParams:
    """What goes to ``fit``: all of it, the SVC's sample weights, and what the other steps get."""

    every: Mapping[str, Any]
    sample_weight: Any
    steps: Mapping[str, Any]


@dataclass(frozen=True)
class Group:
    """Candidates that differ in C, or in how decision values are read, alone."""

    candidates: tuple[Candidate, ...]

    @property
    def first(self) -> Candidate:
        return self.candidates[0]

    @property
    def kernel(self) -> KernelSpec:
        return self.first.kernel

    @property
    def Cs(self) -> np.ndarray:
        return np.unique([float(c.svc.C) for c in self.candidates])


@dataclass
class Plan:
    """Candidates by the way they go; ``by_fold`` holds groups with the same steps together."""

    shared: list[Group] = field(default_factory=list)
    by_fold: list[list[Group]] = field(default_factory=list)
    foreign: list[Candidate] = field(default_factory=list)
    slow: dict[str, str] = field(default_factory=dict)  # setting -> what to do instead
    reasons: list[str] = field(default_factory=list)

    def warn(self, stacklevel: int) -> None:
        """Name the settings that cost time, once."""
        if self.slow:
            settings, advice = ", ".join(self.slow), "; ".join(dict.fromkeys(self.slow.values()))
            warnings.warn(
                f"{settings}: differs from fold to fold, so every fold is solved on its own and "
                f"no kernel matrix or solution is shared. The answer is right, but slower. "
                f"Faster: {advice}",
                SlowFoldsWarning,
                stacklevel=stacklevel,
            )
        warn_of_reasons(self.reasons, stacklevel + 1)


def warn_of_reasons(reasons: Sequence[str], stacklevel: int) -> None:
    """Say why candidates are left to scikit-learn, each reason once."""
    for reason in dict.fromkeys(reasons):
        warnings.warn(
            f"scikit-learn's own fits are used, at their own speed: {reason}",
            SlowFoldsWarning,
            stacklevel=stacklevel,
        )


def read_fit_params(candidate: Candidate, fit_params: Mapping[str, Any]) -> FitParams | None:
    """Who gets which fit parameter; None if only scikit-learn can tell."""
    mine: Mapping[str, Any]
    others: dict[str, Any] = {}
    if not candidate.prefix:
        mine = fit_params
    elif get_config().get("enable_metadata_routing") and fit_params:
        routed = process_routing(candidate.estimator, "fit", **fit_params)
        mine = routed[candidate.prefix[:-2]].fit
        steps = [name for name in routed if f"{name}__" != candidate.prefix]
        if any(given for name in steps for given in routed[name].values()):
            return None  # to their fit, fit_transform or transform
    else:
        cut = len(candidate.prefix)
        mine = {k[cut:]: v for k, v in fit_params.items() if k.startswith(candidate.prefix)}
        others = {k: v for k, v in fit_params.items() if not k.startswith(candidate.prefix)}
    if set(mine) - {"sample_weight"}:
        return None
    return FitParams(fit_params, mine.get("sample_weight"), others)


def make_plan(
    candidates: Sequence[Candidate], fit_params: Mapping[str, Any], probability: bool = False
) -> Plan:
    """Sort the candidates into groups."""
    plan = Plan()
    shared: dict[Any, list[Candidate]] = {}
    by_fold: dict[Any, dict[Any, list[Candidate]]] = {}
    for candidate in candidates:
        params = read_fit_params(candidate, fit_params)
        if params is None or not valid(candidate):
            plan.foreign.append(candidate)  # scikit-learn says what is wrong with it
            continue
        reason = candidate.foreign(probability)
        if reason is not None:
            plan.foreign.append(candidate)
            plan.reasons.append(reason)
            continue
        key = (candidate.kernel, candidate.weighs_as())
        changing = candidate.changing(params.steps)
        if changing:
            by_fold.setdefault(candidate.key, {}).setdefault(key, []).append(candidate)
            plan.slow.update(changing)
        else:
            shared.setdefault((candidate.key, *key), []).append(candidate)
    plan.shared = [Group(tuple(group)) for group in shared.values()]
    plan.by_fold = [[Group(tuple(g)) for g in groups.values()] for groups in by_fold.values()]
    return plan


def valid(candidate: Candidate) -> bool:
    """Will scikit-learn accept the SVC's parameters?"""
    svc = candidate.svc
    kernels = ("linear", "poly", "rbf", "sigmoid", "precomputed")
    return (
        _is_number(svc.C)
        and 0 < svc.C < np.inf
        and (svc.gamma in ("scale", "auto") if isinstance(svc.gamma, str) else _least(svc.gamma, 0))
        and (callable(svc.kernel) or (isinstance(svc.kernel, str) and svc.kernel in kernels))
        and isinstance(svc.degree, numbers.Integral)
        and _is_number(svc.coef0)
        and (svc.class_weight in (None, "balanced") or isinstance(svc.class_weight, dict))
        and svc.decision_function_shape in ("ovo", "ovr")
        and isinstance(svc.break_ties, (bool, np.bool_))
        and not (svc.break_ties and svc.decision_function_shape == "ovo")
    )  # fmt: skip


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and bool(np.isfinite(float(value)))


def _least(value: Any, least: float) -> bool:
    return _is_number(value) and value >= least
