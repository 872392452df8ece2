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
        from sklearnex import svm
    except ImportError:
        return found
    return found | {"intelex": svm.SVC}


def plain_fits(
    make: Callable[..., SVC], X: np.ndarray, y: np.ndarray, Cs: np.ndarray, gamma: float
) -> tuple[float, float]:
    """CPU seconds of one fit for each C, and the worst relative duality gap among them."""
    worst, seconds = 0.0, 0.0
    for C in Cs:
        model = make(C=C, gamma=gamma)
        with threadpool_limits(limits=1):
            start = process_time()
            model.fit(X, y)
            seconds += process_time() - start
        worst = max(worst, duality_gap(model, X, y, C))
    return seconds, worst


def duality_gap(model: SVC, X: np.ndarray, y: np.ndarray, C: float) -> float:
    """(primal - dual) / primal, from the model's own coefficients and values."""
    value = model.decision_function(X)
    coef = np.ravel(model.dual_coef_)
    h = value[model.support_] - float(np.ravel(model.intercept_)[0])
    norm = float(coef @ h)
    primal = 0.5 * norm + C * float(np.maximum(0.0, 1.0 - y * value).sum())
    return (primal - (float(np.abs(coef).sum()) - 0.5 * norm)) / primal
