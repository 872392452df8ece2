"""Which candidates can share what.

1. *Shared.*  Kernel and weights are the same in every fold: all C of the grid with that kernel are
   one call of the exact engine.
2. *By fold.*  Something is learnt from the training rows (a step of the pipeline,
   ``gamma="scale"``, ``class_weight="balanced"``): each fold has its own problem, solved along
   all C at once.
3. *Foreign.*  Only scikit-learn's own fit gives scikit-learn's answer (``takeover.py``).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils.metadata_routing import process_routing

from ...exceptions import SlowFoldsWarning
from ...runtime.user_line import user_level
from .models import Candidate, Foreign, KernelSpec, Setting

__all__ = ["FitParams", "Group", "Plan", "make_plan", "read_fit_params", "warn_of_reasons"]


@dataclass(frozen=True)
class FitParams:
    """What goes to ``fit``: the SVC's sample weights, and by name what the other steps get."""

    sample_weight: Any
    steps: Mapping[str, Mapping[str, Any]]


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
    foreign: list[Setting] = field(default_factory=list)
    slow: dict[str, str] = field(default_factory=dict)  # setting -> what to do instead
    reasons: list[str] = field(default_factory=list)

    def warn(self) -> None:
        """Name the settings that cost time, once."""
        if self.slow:
            settings, advice = ", ".join(self.slow), "; ".join(dict.fromkeys(self.slow.values()))
            warnings.warn(
                f"{settings}: differs from fold to fold, so every fold is solved on its own and "
                f"no kernel matrix or solution is shared. The answer is right, but slower. "
                f"Faster: {advice}",
                SlowFoldsWarning,
                stacklevel=user_level(),
            )
        warn_of_reasons(self.reasons)


def warn_of_reasons(reasons: Sequence[str]) -> None:
    """Say why candidates are left to scikit-learn, each reason once."""
    for reason in dict.fromkeys(filter(None, reasons)):
        warnings.warn(
            f"scikit-learn's own fits are used, at their own speed: {reason}",
            SlowFoldsWarning,
            stacklevel=user_level(),
        )


def read_fit_params(candidate: Candidate, fit_params: Mapping[str, Any]) -> FitParams | None:
    """Who gets which fit parameter; None if only scikit-learn can tell."""
    if not candidate.prefix:
        given = {"": dict(fit_params)}
    elif get_config().get("enable_metadata_routing") and fit_params:
        routed = process_routing(candidate.estimator, "fit", **fit_params)
        given = {candidate.prefix: dict(routed[candidate.prefix[:-2]].fit)}
        theirs = [name for name in routed if f"{name}__" != candidate.prefix]
        if any(values for name in theirs for values in routed[name].values()):
            return None  # to their fit, fit_transform or transform
    else:
        given = {}
        for key, value in fit_params.items():
            name, mark, parameter = key.partition("__")
            given.setdefault(name + mark, {})[parameter] = value
    mine = given.pop(candidate.prefix, {})
    steps = {name[:-2]: values for name, values in given.items() if values}
    if set(mine) - {"sample_weight"} or set(steps) - {name for name, _ in candidate.before}:
        return None
    return FitParams(mine.get("sample_weight"), steps)


def make_plan(candidates: Sequence[Candidate | Foreign], fit_params: Mapping[str, Any]) -> Plan:
    """Sort the candidates into groups."""
    plan = Plan()
    shared: dict[Any, list[Candidate]] = {}
    by_fold: dict[Any, dict[Any, list[Candidate]]] = {}
    for candidate in candidates:
        if isinstance(candidate, Foreign):
            plan.foreign.append(candidate)
            plan.reasons.append(candidate.reason)
            continue
        params = read_fit_params(candidate, fit_params)
        if params is None:
            plan.foreign.append(candidate)  # scikit-learn says what is wrong with it
            continue
        key = (candidate.kernel, candidate.weighs_as())
        changing = candidate.changing(bool(params.steps))
        if changing:
            by_fold.setdefault(candidate.key, {}).setdefault(key, []).append(candidate)
            plan.slow.update(changing)
        else:
            shared.setdefault((candidate.key, *key), []).append(candidate)
    plan.shared = [Group(tuple(group)) for group in shared.values()]
    plan.by_fold = [[Group(tuple(g)) for g in groups.values()] for groups in by_fold.values()]
    return plan
