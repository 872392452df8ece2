"""The methods, by name.  One algorithm is one file, imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import get_args

from ..exceptions import UnsupportedError
from ..problem.checks import check_choice
from ..problem.folds import Folds
from ..types import LossName
from .base import Method, Support

__all__ = [
    "LOSSES",
    "REGISTRY",
    "Method",
    "Support",
    "check_loss",
    "check_output",
    "check_support",
    "get_method",
    "methods",
]

LOSSES: tuple[LossName, ...] = get_args(LossName)


# Five methods that differ in where a fold starts, in one file.
_SEEDED = ("ato", "avg", "mir", "sir", "top")


def _from_module(name: str, attribute: str = "METHOD") -> Callable[[], Method]:
    def load() -> Method:
        method: Method = getattr(import_module(f"{__name__}.{name}"), attribute)
        return method

    return load


REGISTRY: dict[str, Callable[[], Method]] = {
    **{name: _from_module("alpha_seeding.method", name.upper()) for name in _SEEDED},
    "consolidated": _from_module("consolidated"),
    "exact": _from_module("exact"),
    "loo_stopping": _from_module("loo_stopping.method"),
    "magic": _from_module("magic"),
    "least_squares": _from_module("least_squares"),
    "rank_update": _from_module("rank_update.method"),
    "refit": _from_module("refit"),
}


def methods() -> dict[str, Support]:
    """What each method supports, and the paper it comes from.

    Examples
    --------
    >>> import exactcv
    >>> {"exact", "refit"} <= set(exactcv.methods())
    True
    >>> "hinge" in exactcv.methods()["exact"].losses
    True
    """
    return {name: load().support for name, load in REGISTRY.items()}


def get_method(name: str) -> Method:
    """The method of that name; an unknown one gets an error that lists them."""
    return REGISTRY[check_choice("method", name, REGISTRY)]()


def check_loss(name: str, loss: str) -> None:
    """Refuse a loss that the method ``name`` cannot do, naming those that can."""
    check_choice("loss", loss, LOSSES)
    support = get_method(name).support
    if loss not in support.losses:
        raise UnsupportedError(
            f"method={name!r} does not support loss={loss!r} (it supports "
            f"{', '.join(map(repr, support.losses))}); {_instead(lambda what: loss in what.losses)}"
        )


def check_output(name: str, loss: str, want_decision: bool) -> None:
    """Refuse decision values that the method ``name`` does not compute, naming those that do."""
    support = get_method(name).support
    if not want_decision or support.decision:
        return

    def able(what: Support) -> bool:
        same_folds = {*support.folds, "any"} & set(what.folds)
        return what.decision and loss in what.losses and bool(same_folds)

    raise UnsupportedError(
        f"method={name!r} settles labels and computes no decision values; use output='error', or "
        f"for output='decision' {_instead(able)}"
    )


def check_support(name: str, folds: Folds, fit_intercept: bool, loss: str = "hinge") -> None:
    """Refuse folds or an intercept setting that the method ``name`` cannot do.

    The methods named instead are those that have the loss as well.
    """
    support = get_method(name).support
    kinds = {"loo", "any"} if folds.leave_one_out else {"k-fold", "any"}
    if not kinds & set(support.folds):

        def able(what: Support) -> bool:
            return bool(kinds & set(what.folds)) and loss in what.losses

        raise UnsupportedError(
            f"method={name!r} does not support these folds (it supports "
            f"{', '.join(support.folds)}); {_instead(able)}"
        )
    if not (support.intercept if fit_intercept else support.no_intercept):
        raise UnsupportedError(
            f"method={name!r} does not support fit_intercept={fit_intercept}; use method='exact'"
        )


def _instead(able: Callable[[Support], bool]) -> str:
    """What to use instead: the methods that are able, the default one first."""
    names = [repr(name) for name, what in methods().items() if able(what)]
    names.sort(key="'exact'".__ne__)
    return f"use method={' or '.join(names)}" if names else "no method has it yet"
