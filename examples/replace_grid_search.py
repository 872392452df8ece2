"""
Replacing a slow GridSearchCV
=============================

.. code-block:: sh

    python examples/replace_grid_search.py [--quick]

The digits 3, 5 and 8 that come with scikit-learn; C and gamma by 10 folds.  Three ways:

1. scikit-learn's GridSearchCV over SVC;
2. exactcv.GridSearchCV: the same call, the same table, the same choice;
3. exactcv.SVCCV: an estimator of its own, with a certificate, plots and a summary.

Scaling is done once, before the search: a scaler inside a pipeline changes with the fold, which
exactcv.GridSearchCV computes honestly, fold by fold, but more slowly.
"""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import exactcv


def digits(n_rows: int) -> tuple[Any, Any]:
    X, y = load_digits(return_X_y=True)
    rows = np.flatnonzero(np.isin(y, (3, 5, 8)))[:n_rows]
    return StandardScaler().fit_transform(X[rows]), y[rows]


def main(n_rows: int = 500, n_Cs: int = 20, n_gammas: int = 6) -> None:
    X, y = digits(n_rows)
    grid = {"C": np.geomspace(0.01, 100, n_Cs), "gamma": np.geomspace(1e-4, 0.1, n_gammas)}
    folds = StratifiedKFold(10)

    start = perf_counter()
    theirs = GridSearchCV(SVC(), grid, cv=folds).fit(X, y)
    seconds_theirs = perf_counter() - start

    start = perf_counter()
    ours = exactcv.GridSearchCV(SVC(), grid, cv=folds).fit(X, y)
    seconds_ours = perf_counter() - start

    scores = [search.cv_results_["mean_test_score"] for search in (theirs, ours)]
    print(f"scikit-learn: {seconds_theirs:.2f} s, {theirs.best_params_}")
    print(f"exactcv:      {seconds_ours:.2f} s, {ours.best_params_}")
    print(f"{seconds_theirs / seconds_ours:.0f} times faster, mean scores equal at "
          f"{(scores[0] == scores[1]).sum()} of {len(scores[0])} grid points\n")  # fmt: skip

    start = perf_counter()
    model = exactcv.SVCCV(Cs=grid["C"], gamma=list(grid["gamma"]), cv=folds).fit(X, y)
    print(f"SVCCV: {perf_counter() - start:.2f} s")
    print(model.summary())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="GridSearchCV, faster.")
    parser.add_argument("--quick", action="store_true", help="150 rows and a small grid")
    size = (150, 4, 2) if parser.parse_args().quick else ()
    main(*size)
