"""Consolidated CV, Table 2: time on the benchmark data, nine tenths of the rows for training."""

from __future__ import annotations

import numpy as np
import papers
from papers import data_set, ours, run_peers, seconds, test_error

NAMES = ("sonar", "heart", "arrhythmia", "musk", "valley", "australian", "leuk", "chess")
QUICK = ("sonar", "heart")
METHODS = ("exact", "consolidated", "magic")


def main() -> None:
    args = papers.options(__doc__ or "")
    names = QUICK if args.quick else NAMES if args.full else NAMES[:-1]
    rows, skipped = [], {"malaria: the data were not found"}
    for name in names:
        found = data_set(args.data, name)
        if found is None:
            skipped.add(f"{name}: no {name}.csv.gz in --data or EXACTCV_DATA")
            continue
        rows.append(one_set(name, *found, skipped))
    if rows:
        series = {name: [float(row[name]) for row in rows] for name in METHODS}
        papers.bars("consolidated_table2.png", [row["data"] for row in rows], series, "seconds")
    papers.publish(args, "Consolidated CV, Table 2", [papers.table(rows), notes(skipped)])


def one_set(name: str, X: np.ndarray, y: np.ndarray, skipped: set[str]) -> dict[str, str]:
    order = np.random.default_rng(0).permutation(len(y))
    train, test = np.sort(order[: int(0.9 * len(y))]), order[int(0.9 * len(y)) :]
    X_train, y_train = X[train], y[train]
    runs = {method: ours(X_train, y_train, method, tol=1e-6) for method in METHODS}
    row = {"data": name, "n": str(len(train)), "p": str(X.shape[1])}
    row |= {method: seconds(run.seconds) for method, run in runs.items()}
    row["magic / consolidated"] = f"{runs['magic'].seconds / runs['consolidated'].seconds:.2f}"
    row |= run_peers(X_train, y_train, runs["exact"].result.gamma, skipped)
    base = runs["exact"].result
    apart = [np.abs(run.result.decision - base.decision).max() for run in runs.values()]
    errors = {test_error(run, X_train, X[test], y[test]) for run in runs.values()}
    row["decision values differ by"] = f"{max(apart):.0e}"
    row["exact at 1e-6"] = "yes" if all(r.result.certificate.exact for r in runs.values()) else "NO"
    row["fallback"] = str(sum(r.result.stats["fallback"] for r in runs.values()))
    row["test error"] = " / ".join(f"{error:.3f}" for error in sorted(errors))
    return row


def notes(skipped: set[str]) -> str:
    return (
        "CPU seconds for 50 lambdas and all leave-one-out decision values, one split, BLAS on one "
        "thread; * estimated from a sample. Features are standardised. One test error: all methods "
        f"have the same. Not run: {'; '.join(sorted(skipped))}."
    )


if __name__ == "__main__":
    main()
