"""
Wrong labels: which rows would the model be better off without?
===============================================================

One label in twenty of a real data set is flipped on purpose.  `exactcv.influence` leaves out every
row once, exactly, and sorts rows by what their removal would gain; the first of them are looked at,
as somebody would who could ask for the true label.  Since it is known here which labels are wrong,
we can count: of the rows looked at, how many are flipped?

.. code-block:: sh

    python examples/clean_labels.py [--quick]
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import exactcv


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Wrong labels: which rows would the model be better off without?"
    )
    parser.add_argument("--quick", action="store_true", help="two draws of the flips, not ten")
    n_draws = 2 if parser.parse_args().quick else 10
    precision, errors = [], []
    for seed in range(n_draws):
        hits, before, after = clean_once(seed, show=seed == 0)
        precision.append(hits.mean())
        errors.append((before, after))
    print(f"{n_draws} draws of the flips: precision {np.mean(precision):.2f} on average")
    before, after = np.mean(errors, axis=0)
    print(f"error on rows with true labels: {before:.3f} before, {after:.3f} after, on average")


def clean_once(seed: int, show: bool) -> tuple[np.ndarray, float, float]:
    """Flip labels, look for them, forget the suspects; which of these were flipped, and errors."""
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    flipped = np.random.default_rng(seed).choice(len(y), size=len(y) // 20, replace=False)
    given = y.copy()
    given[flipped] = 1 - given[flipped]

    tuned = exactcv.SVCCV().fit(X, given)
    found = exactcv.influence(X, given, C=tuned.C_, gamma=tuned.gamma_)
    suspects = found.helps_most(len(flipped))
    hits = np.isin(suspects, flipped)

    # Rows that are gone need no new fit: the model forgets them.
    cleaned = tuned.forget(suspects)
    before, after = (1.0 - model.score(X_test, y_test) for model in (tuned, cleaned))
    if show:
        print(f"{len(y)} rows, {len(flipped)} labels flipped; C={tuned.C_:.3g}")
        print(found.summary())
        print(found.to_frame().head(5).round(3).to_string(index=False))
        print(f"of the first {len(suspects)} rows {hits.sum()} are flipped")
        print(f"the model without them is {cleaned.certificate_}")
    return hits, before, after


if __name__ == "__main__":
    main()
