"""Magic LOO, Table 3: leave-one-out and 10-fold CV on half the rows of the benchmark data."""

from __future__ import annotations

import numpy as np
import papers
from papers import data_set, ours, seconds, sklearn_refits

NAMES = ("hepatitis", "lsvt", "sonar", "arrhythmia", "musk", "valley", "australian")
QUICK = ("hepatitis", "lsvt", "sonar")


def main() -> None:
    args = papers.options(__doc__ or "")
    rows, skipped = [], set()
    for name in QUICK if args.quick else NAMES:
        found = data_set(args.data, name)
        if found is None:
            skipped.add(f"{name}: no {name}.csv.gz in --data or EXACTCV_DATA")
            continue
        rows.append(one_set(name, *found))
    if rows:
        keys = ("LOO magic", "LOO scikit-learn", "10-fold magic", "10-fold scikit-learn")
        series = {key: [float(row[key].rstrip("*")) for row in rows] for key in keys}
        papers.bars("magic_table3.png", [row["data"] for row in rows], series, "seconds")
    note = (
        "CPU seconds for 50 lambdas, no intercept in `magic` (as in the paper), one split, one "
        f"thread; * estimated from 10 fits. Not run: {'; '.join(sorted(skipped)) or 'nothing'}."
    )
    papers.publish(args, "Magic LOO, Table 3", [papers.table(rows), note])


def one_set(name: str, X: np.ndarray, y: np.ndarray) -> dict[str, str]:
    train = np.sort(np.random.default_rng(0).permutation(len(y))[: len(y) // 2])
    X, y = X[train], y[train]
    row = {"data": name, "n": str(len(y)), "p": str(X.shape[1])}
    for label, cv, folds in (("LOO", "loo", len(y)), ("10-fold", 10, 10)):
        magic = ours(X, y, "magic", cv=cv, fit_intercept=False, tol=1e-6)
        exact = ours(X, y, "exact", cv=cv, fit_intercept=False, tol=1e-6)
        peer = sklearn_refits(X, y, magic.result.gamma).seconds * folds / len(y)
        row[f"{label} magic"] = seconds(magic.seconds)
        row[f"{label} scikit-learn"] = seconds(peer) + "*"
        apart = np.nanmax(np.abs(magic.result.decision - exact.result.decision))
        row[f"{label} differs from `exact` by"] = f"{apart:.0e}"
    return row


if __name__ == "__main__":
    main()
