"""Exact leave-one-out and k-fold cross-validation of kernel SVMs, with certificates."""

from importlib import import_module as _import_module
from importlib.metadata import version as _version

from . import datasets
from .exceptions import (
    ExactCVError,
    InputError,
    InputTypeError,
    MemoryLimitError,
    MissingExtraError,
    NotExactWarning,
    NotPSDWarning,
    SlowFoldsWarning,
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
    "ExactCVError",
    "GridSearchCV",
    "InputError",
    "InputTypeError",
    "MemoryLimitError",
    "MissingExtraError",
    "NotExactWarning",
    "NotPSDWarning",
    "SlowFoldsWarning",
    "SmoothSVC",
    "UnsupportedError",
    "__version__",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "datasets",
    "methods",
]


# Imported when first asked for: scikit-learn takes most of a second.
_LATER = {
    "GridSearchCV": ".drop_in.grid_search",
    "SmoothSVC": ".smooth_svc",
    "cross_val_predict": ".drop_in.functions",
    "cross_val_score": ".drop_in.functions",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(_LATER[name], __name__), name)
