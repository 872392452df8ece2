"""What users have now: ``SVC`` of scikit-learn and of scikit-learn-intelex, as they come."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits


def peers() -> dict[str, Callable[..., SVC]]:
    """Those that are installed."""
    found = {"scikit-learn": SVC}
    try:
        import daal4py
        from sklearnex import svm
    except ImportError:
        return found
    daal4py.daalinit(1)
    return found | {"intelex": svm.SVC}


def curve(
    make: Callable[..., SVC],
    X: np.ndarray,
    y: np.ndarray,
    Cs: np.ndarray,
    gamma: float,
    folds: list[tuple[np.ndarray, np.ndarray]] | None,
    most: int | None = None,
) -> dict[str, float]:
    """CPU seconds of fits and predictions of every fold and C, and the worst relative duality gap.

    Without folds there is one fit to all rows for each C, and nothing to predict.  Of more than
    ``most`` folds the first are run, and their seconds scaled up (``of_folds`` tells).
    """
    worst, seconds = 0.0, 0.0
    run = folds if most is None or folds is None else folds[:most]
    for train, test in run or [(np.arange(len(y)), np.arange(0))]:
        for C in Cs:
            model = make(C=C, gamma=gamma)
            with threadpool_limits(limits=1):
                start = process_time()
                model.fit(X[train], y[train])
                if len(test):
                    model.predict(X[test])
                seconds += process_time() - start
            if folds is None and len(model.classes_) == 2:
                worst = max(worst, duality_gap(model, X, y, C))
    found = {"seconds": seconds, "gap": worst}
    if folds is not None and run is not None and len(run) < len(folds):
        found |= {"seconds": seconds * len(folds) / len(run), "of_folds": len(run)}
    return found


def duality_gap(model: SVC, X: np.ndarray, y: np.ndarray, C: float) -> float:
    """(primal - dual) / primal, from the model's own coefficients and values."""
    value = model.decision_function(X)
    coef = np.ravel(model.dual_coef_)
    h = value[model.support_] - float(np.ravel(model.intercept_)[0])
    norm = float(coef @ h)
    primal = 0.5 * norm + C * float(np.maximum(0.0, 1.0 - y * value).sum())
    return (primal - (float(np.abs(coef).sum()) - 0.5 * norm)) / primal
