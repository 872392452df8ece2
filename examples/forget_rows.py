"""
A row that has to go
====================

A row that has to go: patients withdraw their consent, and the model forgets them.

.. code-block:: sh

    python examples/forget_rows.py [--quick]

The model without a row is not approximated, and not fitted anew: the coefficients move to where
they are without it.  The certificate checks the conditions of the problem without the row from the
coefficients alone, so it proves that the row has no part in the model any more.
"""

from __future__ import annotations

import argparse
import pickle
from time import perf_counter

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import exactcv


def main(n_gone: int) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    start = perf_counter()
    model = exactcv.SVCCV(gamma=[0.01, 0.03, 0.1]).fit(X, y)
    print(f"tuned in {perf_counter() - start:.2f} s: C={model.C_:.3g}, gamma={model.gamma_:.3g}")

    gone = np.random.default_rng(0).permutation(len(y))[:n_gone]
    current, seconds = model, []
    for row in gone:
        start = perf_counter()
        current = current.forget(row)
        seconds.append(perf_counter() - start)
        assert current.certificate_.exact
    print(f"{n_gone} rows forgotten, one after the other; {current.certificate_}")
    print(f"the first took {1e3 * seconds[0]:.1f} ms, the others {1e3 * np.mean(seconds[1:]):.1f}")

    rest = np.setdiff1d(np.arange(len(y)), gone)
    fresh = exactcv.SVCCV(Cs=[model.C_], gamma=model.gamma_).fit(X[rest], y[rest])
    values, expected = current.decision_function(X), fresh.decision_function(X)
    print(f"largest difference from a fit without them: {np.abs(values - expected).max():.1e}")
    kept = pickle.loads(pickle.dumps(current))  # holds nothing of the rows that are gone
    print(f"a pickled model goes on forgetting: {len(kept.forget(int(rest[0])).forgotten_)} rows")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A model that forgets rows.")
    parser.add_argument("--quick", action="store_true", help="10 rows instead of 100")
    main(10 if parser.parse_args().quick else 100)
