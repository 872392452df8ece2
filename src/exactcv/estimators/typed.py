"""What scikit-learn's base classes and decorators mean to a type checker; it has no types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from numpy.typing import NDArray
from sklearn.utils import metaestimators

from ..types import Matrix, Vector

__all__ = ["TypedClassifier", "available_if"]

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


def available_if(check: Callable[[Any], bool]) -> Callable[[Function], Function]:
    """scikit-learn's: the method is there only if ``check(self)`` holds."""
    return cast("Callable[[Function], Function]", metaestimators.available_if(check))
