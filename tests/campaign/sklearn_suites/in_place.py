"""A plugin for pytest: scikit-learn's test modules, with other names in them.

The environment says which: EXACTCV_DROP_INS=1 puts our functions in place of scikit-learn's, and
EXACTCV_SVC=1 an SVC in place of other linear classifiers, so that tests which were written for
those reach our own code too.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import warnings
from typing import Any

import sklearn.model_selection
from sklearn.svm import SVC

import exactcv

MODULES = tuple(f"sklearn.model_selection.tests.test_{name}" for name in ("search", "validation"))
DROP_INS = ("GridSearchCV", "cross_val_score", "cross_val_predict")


def linear_svc(**settings: Any) -> SVC:
    """An SVC for those who ask for another linear classifier."""
    known = {name: settings[name] for name in ("C", "tol", "class_weight") if name in settings}
    return SVC(kernel="linear", **known)


def pytest_configure(config: Any) -> None:
    """Import the modules as they are, so that all else is, and then once more."""
    warnings.simplefilter("ignore", exactcv.SlowFoldsWarning)
    for name in MODULES:
        importlib.import_module(name)
    theirs = {name: getattr(sklearn.model_selection, name) for name in DROP_INS}
    ours = {name: getattr(exactcv, name) for name in DROP_INS}
    if os.environ.get("EXACTCV_DROP_INS"):
        _set(ours)
    for name in MODULES:
        del sys.modules[name]
    for name in MODULES:
        module = importlib.import_module(name)
        if os.environ.get("EXACTCV_SVC"):
            for other in {"LinearSVC", "LogisticRegression"} & set(vars(module)):
                setattr(module, other, linear_svc)
    _set(theirs)


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Only tests that name one of the functions."""
    others = [item for item in items if not any(n in _source(item) for n in DROP_INS)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]


def _source(item: Any) -> str:
    return inspect.getsource(item.function)


def _set(names: dict[str, Any]) -> None:
    for name, value in names.items():
        setattr(sklearn.model_selection, name, value)
