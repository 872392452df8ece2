"""
Imbalanced medical data
=======================

One malignant case in thirteen.

.. code-block:: sh

    python examples/imbalanced_medical.py [--quick] [--figure FILE]

The Wisconsin breast-cancer data that come with scikit-learn, with most malignant cases taken out
as in a screening population.  Predicting "benign" for everyone would be wrong for 8 percent only,
so accuracy says little.  Here

1. the error of a poor model is compared with that of always predicting the commonest class, which
   the summary warns of;
2. C and gamma are chosen by the area under the ROC curve of the left-out values, which
   leave-one-out can do because all left-out values are scored together;
3. the threshold for 95 percent sensitivity is read off left-out values, not off the training set,
   where it would be too good.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import recall_score, roc_curve
from sklearn.preprocessing import StandardScaler

import exactcv

SENSITIVITY = 0.95


def screening(n_malignant: int = 30, seed: int = 0) -> tuple[Any, Any]:
    """All benign cases and a few malignant ones, standardised; five features only."""
    data = load_breast_cancer()
    rng = np.random.default_rng(seed)
    malignant = rng.choice(np.flatnonzero(data.target == 0), n_malignant, replace=False)
    rows = np.sort(np.append(np.flatnonzero(data.target == 1), malignant))
    texture_and_symmetry = [1, 4, 8, 11, 18]  # the weaker features: a harder problem
    X = StandardScaler().fit_transform(data.data[rows][:, texture_and_symmetry])
    return X, np.where(data.target[rows] == 1, "benign", "malignant")


def main(n_points: int = 25, n_malignant: int = 30, figure: str | None = None) -> None:
    X, y = screening(n_malignant)
    share = (y == "malignant").mean()
    print(f"{len(y)} patients, {share:.1%} malignant\n")

    # 1. Chosen by accuracy, at strong regularisation.
    plain = exactcv.cross_validate(X, y, lambdas=np.geomspace(10.0, 0.1, 5))
    print(plain.summary(), end="\n\n")

    # 2. Chosen by the ROC curve, with weights that make up for the imbalance.
    grid = {"Cs": np.geomspace(1e-3, 10.0, n_points), "gamma": [0.01, 0.05, 0.2]}
    model = exactcv.SVCCV(
        **grid, scoring="roc_auc", class_weight="balanced", store_cv_results=True
    ).fit(X, y)
    print(model.summary(), end="\n\n")

    # 3. A threshold from left-out values: positive stands for classes_[1], "malignant".
    left_out = model.cv_results_["decision"][model.best_index_]
    trained = model.decision_function(X)
    print(f"threshold for {SENSITIVITY:.0%} sensitivity, and what it really gives:")
    for name, values in (("left-out values", left_out), ("training values", trained)):
        _, tpr, thresholds = roc_curve(y == "malignant", values)
        cut = thresholds[np.argmax(tpr >= SENSITIVITY)]
        called = np.where(left_out >= cut, "malignant", "benign")
        sensitivity = recall_score(y, called, pos_label="malignant")
        specificity = recall_score(y, called, pos_label="benign")
        print(
            f"  from {name}: {cut:7.3f}; sensitivity {sensitivity:.1%}, "
            f"specificity {specificity:.1%}"
        )
    if figure:
        import matplotlib

        matplotlib.use("Agg")
        model.plot("roc").figure_.savefig(figure, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Imbalanced data, by left-out values.")
    parser.add_argument("--quick", action="store_true", help="5 values of C")
    parser.add_argument("--figure", metavar="FILE", help="write the ROC curve to FILE")
    given = parser.parse_args()
    main(n_points=5 if given.quick else 25, figure=given.figure)
