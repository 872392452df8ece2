"""Exact leave-one-out and k-fold cross-validation of kernel SVMs, with certificates."""

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

__all__ = [
    "SVCCV",
    "SVRCV",
    "CVInterval",
    "CVResult",
    "ClusterError",
    "ConformalSVC",
    "Corrected",
    "ErrorCurveDisplay",
    "ErrorPath",
    "ExactCVError",
    "FanChartDisplay",
    "FileError",
    "GridSearchCV",
    "HeatMapDisplay",
    "Influence",
    "InfluenceDisplay",
    "InputError",
    "InputIndexError",
    "InputTypeError",
    "Interrupted",
    "LeftOutDisplay",
    "MemoryLimitError",
    "MissingExtraError",
    "NestedRegressionResult",
    "NestedResult",
    "NotExactWarning",
    "NotPSDWarning",
    "PairResult",
    "PredictedDisplay",
    "QuantileSVRCV",
    "RegressionResult",
    "ResidualDisplay",
    "RocDisplay",
    "SlowFoldsWarning",
    "SmoothSVC",
    "SmoothSVR",
    "UnsupportedError",
    "__version__",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "cv_interval",
    "datasets",
    "error_path",
    "influence",
    "leave_pair_out",
    "load_model",
    "methods",
    "nested_cross_validate",
    "register_onnx",
    "save_model",
    "write_html",
]

# Type checkers know this name, and importing it would take longer than all the rest of this file:
# until it is read Ctrl-C is answered by Python's own traceback (cli/start.py).
TYPE_CHECKING = False

if TYPE_CHECKING:
    from . import datasets
    from .algorithms import methods
    from .crossval.corrected import Corrected
    from .crossval.cross_validate import cross_validate
    from .crossval.cv_interval import CVInterval, cv_interval
    from .crossval.error_path import error_path
    from .crossval.error_path_result import ErrorPath
    from .crossval.influence import influence
    from .crossval.influence_result import Influence
    from .crossval.leave_pair_out import leave_pair_out
    from .crossval.nested_result import NestedRegressionResult, NestedResult
    from .crossval.pair_result import PairResult
    from .crossval.regression_result import RegressionResult
    from .crossval.result import CVResult
    from .estimators.conformal_svc import ConformalSVC
    from .estimators.drop_in.functions import cross_val_predict, cross_val_score
    from .estimators.drop_in.grid_search import GridSearchCV
    from .estimators.nested import nested_cross_validate
    from .estimators.quantile_svr_cv import QuantileSVRCV
    from .estimators.smooth_svc import SmoothSVC
    from .estimators.smooth_svr import SmoothSVR
    from .estimators.svc_cv import SVCCV
    from .estimators.svr_cv import SVRCV
    from .report.html.page import write_html
    from .report.influence_plot import InfluenceDisplay
    from .report.number_plots import FanChartDisplay, PredictedDisplay, ResidualDisplay
    from .report.plots import ErrorCurveDisplay, HeatMapDisplay, LeftOutDisplay, RocDisplay
    from .storage.model_file import load_model, save_model
    from .storage.onnx_export import register_onnx

    __version__: str

# Imported when first asked for: scikit-learn takes most of a second, NumPy and SciPy half of that,
# and Ctrl-C must find the command line at work by then.  Type checkers see the imports above, and
# nothing else: a name that is not there is an error to them too.
_LAZY = {
    "ResidualDisplay": "report.number_plots",
    "PredictedDisplay": "report.number_plots",
    "FanChartDisplay": "report.number_plots",
    "QuantileSVRCV": "estimators.quantile_svr_cv",
    "SVRCV": "estimators.svr_cv",
    "RegressionResult": "crossval.regression_result",
    "CVResult": "crossval.result",
    "Corrected": "crossval.corrected",
    "ErrorCurveDisplay": "report.plots",
    "ErrorPath": "crossval.error_path_result",
    "GridSearchCV": "estimators.drop_in.grid_search",
    "HeatMapDisplay": "report.plots",
    "LeftOutDisplay": "report.plots",
    "NestedRegressionResult": "crossval.nested_result",
    "NestedResult": "crossval.nested_result",
    "PairResult": "crossval.pair_result",
    "RocDisplay": "report.plots",
    "SVCCV": "estimators.svc_cv",
    "SmoothSVC": "estimators.smooth_svc",
    "ConformalSVC": "estimators.conformal_svc",
    "CVInterval": "crossval.cv_interval",
    "cv_interval": "crossval.cv_interval",
    "SmoothSVR": "estimators.smooth_svr",
    "Influence": "crossval.influence_result",
    "InfluenceDisplay": "report.influence_plot",
    "influence": "crossval.influence",
    "error_path": "crossval.error_path",
    "leave_pair_out": "crossval.leave_pair_out",
    "load_model": "storage.model_file",
    "save_model": "storage.model_file",
    "write_html": "report.html.page",
    "cross_val_predict": "estimators.drop_in.functions",
    "cross_val_score": "estimators.drop_in.functions",
    "cross_validate": "crossval.cross_validate",
    "datasets": None,  # a module itself
    "methods": "algorithms",
    "nested_cross_validate": "estimators.nested",
    "register_onnx": "storage.onnx_export",
}


if not TYPE_CHECKING:

    def __getattr__(name):
        from importlib import import_module

        if name == "__version__":  # what reads it takes longer than all the rest of this file
            return import_module("importlib.metadata").version(__name__)
        if name in _LAZY:
            module = import_module(f".{_LAZY[name] or name}", __name__)
            return getattr(module, name) if _LAZY[name] else module
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
