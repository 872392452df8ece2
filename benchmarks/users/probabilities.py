"""Probabilities of several classes, against scikit-learn's calibration.

    python -m benchmarks.users.probabilities [--write]

``SVCCV(probability=True)`` against ``CalibratedClassifierCV(SVC(), ensemble=False)`` with the same
C and gamma = 1 / p, on standardised data: log-loss on the half that was not trained on, mean over
random halves, and how often the most probable class is not the predicted one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib import command
from benchmarks.lib.data import standardised
from benchmarks.lib.results import markdown, write_section

FILE, TITLE = "probabilities", "Probabilities of several classes"
DATA = {"iris": (load_iris, 20), "wine": (load_wine, 20), "digits": (load_digits, 4)}
CS = (0.1, 1.0, 10.0)


def one_half(X: np.ndarray, y: np.ndarray, C: float, seed: int) -> tuple[float, ...]:
    """Log-loss of both, and the share of rows where argmax and predict differ, of both."""
    train, new = train_test_split(np.arange(len(y)), test_size=0.5, random_state=seed, stratify=y)
    gamma = 1.0 / X.shape[1]
    ours: Any = exactcv.SVCCV(Cs=[C], gamma=gamma, probability=True).fit(X[train], y[train])
    peer = CalibratedClassifierCV(SVC(C=C, gamma=gamma), ensemble=False).fit(X[train], y[train])
    losses, differ = [], []
    predicted = ours.predict(X[new])
    for model in (ours, peer):
        p = model.predict_proba(X[new])
        losses.append(float(log_loss(y[new], p)))
        differ.append(float((model.classes_[p.argmax(axis=1)] != predicted).mean()))
    return *losses, *differ


def table() -> str:
    lines = []
    for name, (load, n_halves) in DATA.items():
        X, y = load(return_X_y=True)
        for C in CS:
            runs = np.array([one_half(standardised(X), y, C, seed) for seed in range(n_halves)])
            ours, theirs, differ, they_differ = runs.mean(axis=0)
            better = int((runs[:, 0] <= runs[:, 1]).sum())
            lines.append(
                [name, f"{C:g}", f"{ours:.4f}", f"{theirs:.4f}", f"{better} of {n_halves}",
                 f"{differ:.2%}", f"{they_differ:.2%}"]
            )  # fmt: skip
            command.say(" ".join(lines[-1]))
    head = ["data", "C", "log-loss: SVCCV", "CalibratedClassifierCV", "no worse in",
            "argmax is not predict: SVCCV", "CalibratedClassifierCV"]  # fmt: skip
    return markdown(head, lines)


def main() -> None:
    given = command.parser(__doc__, {}, FILE).parse_args()
    with threadpool_limits(limits=1):
        found = table()
    text = (
        f"Made by `{command.command_line()}`. Standardised data, gamma = 1 / p, half of the rows "
        "for training, log-loss on the other half, mean over random halves. Both predict with the "
        "same kind of SVM; SVCCV fits its sigmoids to the exact leave-one-out values of each pair "
        f"of classes, CalibratedClassifierCV to 5 folds, each class against the rest.\n\n{found}"
    )
    print(text)
    if given.write:
        write_section(FILE, "probabilities", text, TITLE)


if __name__ == "__main__":
    main()
