"""Exact leave-one-out and k-fold cross-validation of kernel SVMs, with certificates."""

from importlib import import_module
from importlib.metadata import version as _version

from . import datasets
from .exceptions import (
    ClusterError,
    ExactCVError,
    FileError,
    InputError,
    InputIndexError,
    InputTypeError,
    Interrupted,
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
    "SVCCV",
    "CVResult",
    "ClusterError",
    "ErrorCurveDisplay",
    "ExactCVError",
    "FileError",
    "GridSearchCV",
    "HeatMapDisplay",
    "InputError",
    "InputIndexError",
    "InputTypeError",
    "Interrupted",
    "LeftOutDisplay",
    "MemoryLimitError",
    "MissingExtraError",
    "NotExactWarning",
    "NotPSDWarning",
    "RocDisplay",
    "SlowFoldsWarning",
    "SmoothSVC",
    "UnsupportedError",
    "__version__",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "datasets",
    "load_model",
    "methods",
    "save_model",
    "write_html",
]


# Imported when first asked for: scikit-learn takes most of a second.
_LAZY = {
    "ErrorCurveDisplay": "displays",
    "GridSearchCV": "drop_in.grid_search",
    "HeatMapDisplay": "displays",
    "LeftOutDisplay": "displays",
    "RocDisplay": "displays",
    "SVCCV": "svc_cv",
    "SmoothSVC": "smooth_svc",
    "load_model": "files.model",
    "save_model": "files.model",
    "write_html": "html_report",
    "cross_val_predict": "drop_in.functions",
    "cross_val_score": "drop_in.functions",
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
