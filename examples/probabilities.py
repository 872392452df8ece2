"""
Probabilities from exact left-out values
========================================

``SVCCV(probability=True)`` against ``CalibratedClassifierCV``.

``SVCCV(probability=True)`` trains one model on all rows and fits its sigmoid to leave-one-out
decision values, which cost next to nothing.  ``CalibratedClassifierCV`` fits the sigmoid to those
of 5 folds (``ensemble=False``), or averages five models, each trained on 4/5 of the rows and
calibrated on the rest (``ensemble=True``).  All get the same C and gamma.  Half of each data set
is kept for the test; figures are means over random halves, with the standard error of the
difference to exactcv.

.. code-block:: sh

    python examples/probabilities.py
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_wine, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from exactcv import SVCCV

N_HALVES = 10
CS = np.geomspace(0.01, 100, 15)


def brier(y: Any, p: Any) -> float:
    """Mean squared distance between probabilities and what happened, over all classes."""
    return float(((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1).mean())


def one_half(X: Any, y: Any, seed: int) -> dict[str, tuple[float, float, float]]:
    """Log-loss, Brier score and seconds of each way on one random half."""
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=seed
    )
    scale = StandardScaler().fit(X_train)
    X_train, X_test = scale.transform(X_train), scale.transform(X_test)
    start = perf_counter()
    ours = SVCCV(Cs=CS, probability=True).fit(X_train, y_train)
    found = {"SVCCV": (ours, perf_counter() - start)}
    for ensemble in (False, True):
        start = perf_counter()
        peer = CalibratedClassifierCV(SVC(C=ours.C_, gamma=ours.gamma_), ensemble=ensemble)
        name = f"CalibratedClassifierCV(ensemble={ensemble})"
        found[name] = (peer.fit(X_train, y_train), perf_counter() - start)
    scores = {}
    for name, (model, seconds) in found.items():
        p = model.predict_proba(X_test)
        scores[name] = (log_loss(y_test, p), brier(y_test, p), seconds)
    return scores


def main() -> None:
    hard = make_classification(300, 10, n_informative=4, flip_y=0.15, class_sep=0.7, random_state=0)
    data = {
        "breast cancer, 284 rows": load_breast_cancer(return_X_y=True),
        "wine, 89 rows, 3 classes": load_wine(return_X_y=True),
        "noisy, 150 rows": hard,
    }
    for title, (X, y) in data.items():
        runs = [one_half(X, y, seed) for seed in range(N_HALVES)]
        print(f"\n{title}\n{'':<40}{'log-loss':>18}{'Brier score':>18}{'seconds':>9}")
        first = np.array([run["SVCCV"] for run in runs])
        for name in runs[0]:
            mine = np.array([run[name] for run in runs])
            mean = mine.mean(axis=0)
            se = (mine - first).std(axis=0, ddof=1) / np.sqrt(N_HALVES)
            shown = [f"{mean[k]:.4f}" + (f" +- {se[k]:.4f}" if se[k] else "") for k in (0, 1)]
            print(f"{name:<40}{shown[0]:>18}{shown[1]:>18}{mean[2]:>9.3f}")
    print("\nSVCCV's seconds include the choice among 15 values of C by leave-one-out; the others")
    print("are given its choice.")


if __name__ == "__main__":
    main()
