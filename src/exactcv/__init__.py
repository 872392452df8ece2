"""Exact leave-one-out and k-fold cross-validation of kernel SVMs, with certificates."""

from importlib.metadata import version as _version

from . import datasets
from .exceptions import (
    ClusterError,
    ExactCVError,
    InputError,
    InputTypeError,
    MemoryLimitError,
    MissingExtraError,
    NotExactWarning,
    NotPSDWarning,
    UnsupportedError,
)

# The function takes the name of the subpackage it comes from: exactcv.methods() is public,
# and the modules in it are imported as "from exactcv.methods import ...".
from .methods import methods
from .result import CVResult
from .validate import cross_validate

__version__ = _version("exactcv")

__all__ = [
    "CVResult",
    "ClusterError",
    "ExactCVError",
    "InputError",
    "InputTypeError",
    "MemoryLimitError",
    "MissingExtraError",
    "NotExactWarning",
    "NotPSDWarning",
    "SmoothSVC",
    "UnsupportedError",
    "__version__",
    "cross_validate",
    "datasets",
    "methods",
]


def __getattr__(name: str) -> object:
    """Estimators are imported when first asked for: scikit-learn takes most of a second."""
    if name == "SmoothSVC":
        from .smooth_svc import SmoothSVC

        return SmoothSVC
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
