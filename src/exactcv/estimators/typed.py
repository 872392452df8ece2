"""What scikit-learn's base classes and decorators mean to a type checker; it has no types."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper, wraps
from types import MethodType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from numpy.typing import NDArray

from ..types import Matrix, Vector

__all__ = ["TypedClassifier", "TypedEstimator", "offered_if"]

Function = TypeVar("Function", bound=Callable[..., Any])


class TypedClassifier:
    """Says what ``ClassifierMixin`` and ``BaseEstimator`` add to a class; adds nothing itself."""

    if TYPE_CHECKING:
        classes_: NDArray[Any]
        n_features_in_: int
        feature_names_in_: NDArray[Any]

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def score(self, X: Matrix, y: Vector, sample_weight: Vector | None = None) -> float: ...


class TypedEstimator:
    """The same of an estimator of numbers."""

    if TYPE_CHECKING:
        n_features_in_: int
        feature_names_in_: NDArray[Any]

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...


def offered_if(check: Callable[[Any], None]) -> Callable[[Function], Function]:
    """The method is there unless ``check(self)`` raises an AttributeError.

    As scikit-learn's ``available_if``, which however hides the reason behind a message of its own.
    """

    def offer(function: Function) -> Function:
        return cast("Function", _Offered(function, check))

    return offer


class _Offered:
    """The descriptor that `offered_if` makes of a method."""

    def __init__(self, function: Callable[..., Any], check: Callable[[Any], None]):
        self.function, self.check = function, check
        update_wrapper(cast("Any", self), function)

    def __get__(self, owner: Any, kind: Any = None) -> Callable[..., Any]:
        if owner is not None:
            self.check(owner)
            return MethodType(self.function, owner)

        @wraps(self.function)
        def of_class(owner: Any, *arguments: Any, **options: Any) -> Any:
            self.check(owner)
            return self.function(owner, *arguments, **options)

        return of_class
