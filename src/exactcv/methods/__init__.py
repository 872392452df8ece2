"""The methods, by name.  One algorithm is one file, imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from ..exceptions import UnsupportedError
from ..folds import Folds
from ..inputs import check_choice
from .base import Method, Support

__all__ = [
    "LOSSES",
    "REGISTRY",
    "Method",
    "Support",
    "check_loss",
    "check_support",
    "get_method",
    "methods",
]

LOSSES = ("hinge", "squared_hinge", "logistic")


def _from_module(name: str) -> Callable[[], Method]:
    def load() -> Method:
        method: Method = import_module(f"{__name__}.{name}").METHOD
        return method

    return load


REGISTRY: dict[str, Callable[[], Method]] = {
    "exact": _from_module("exact"),
    "refit": _from_module("refit"),
}


def methods() -> dict[str, Support]:
    """What each method supports, and the paper it comes from.

    Examples
    --------
    >>> import exactcv
    >>> sorted(exactcv.methods())
    ['exact', 'refit']
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
    if loss in support.losses:
        return
    able = [other for other, what in methods().items() if loss in what.losses]
    hint = f"use method={' or '.join(map(repr, able))}" if able else "no method has it yet"
    raise UnsupportedError(
        f"method={name!r} does not support loss={loss!r} (it supports "
        f"{', '.join(map(repr, support.losses))}); {hint}"
    )


def check_support(name: str, folds: Folds, fit_intercept: bool) -> None:
    """Refuse folds or an intercept setting that the method ``name`` cannot do."""
    support = get_method(name).support
    kinds = ("loo", "any") if folds.leave_one_out else ("k-fold", "any")
    if not set(kinds) & set(support.folds):
        raise UnsupportedError(
            f"method={name!r} does not support these folds (it supports "
            f"{', '.join(support.folds)}); use method='exact'"
        )
    if not (support.intercept if fit_intercept else support.no_intercept):
        raise UnsupportedError(
            f"method={name!r} does not support fit_intercept={fit_intercept}; use method='exact'"
        )
