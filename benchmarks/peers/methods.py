"""All methods on the same work, for the page "which method when".

    python benchmarks/methods_table.py [--write]

CPU seconds (the quickest of three runs) for the papers' simulation and grid, leave-one-out and 10
folds, from the raw data to the certificate.  `--write` puts the table into RESULTS_methods.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from machine import facts
from threadpoolctl import threadpool_limits

import exactcv

RESULTS = Path(__file__).with_name("RESULTS_methods.md")
WORK: dict[str, dict[str, Any]] = {
    "LOO error": {"cv": "loo"},
    "LOO decision": {"cv": "loo", "output": "decision"},
    "10-fold": {"cv": 10},
}
LOSS = {"rank_update": "squared_hinge", "least_squares": "squared"}
TOO_LONG = 60.0  # CPU seconds: then one run is enough


def measure(name: str, X: Any, y: Any, arguments: dict[str, Any]) -> tuple[str, Any]:
    """CPU seconds as text (a dash if the method cannot do it), and the result."""
    best, result = np.inf, None
    for _ in range(3):
        start = process_time()
        try:
            result = exactcv.cross_validate(
                X, y, method=name, loss=LOSS.get(name, "hinge"), lambdas=20, **arguments
            )
        except exactcv.UnsupportedError:
            return "-", None
        best = min(best, process_time() - start)
        if best > TOO_LONG:
            break
    return f"{best:.3g}", result


def table(n: int, p: int) -> str:
    X, y = exactcv.datasets.make_mixture(n, p, random_state=0)
    exactcv.cross_validate(X[:20], y[:20], lambdas=3)  # imports
    works = " | ".join(f"{work} (CPU s)" for work in WORK)
    lines = [
        f"| method | loss | {works} | same labels | worst KKT |",
        "|---" * (4 + len(WORK)) + "|",
    ]
    exact = {
        work: exactcv.cross_validate(X, y, lambdas=20, **arguments)
        for work, arguments in WORK.items()
    }
    names = ["exact", *(name for name in sorted(exactcv.methods()) if name != "exact")]
    for name in names:
        cells, same, kkt = [], [], [0.0]
        for work, arguments in WORK.items():
            seconds, result = measure(name, X, y, arguments)
            cells.append(seconds)
            if result is not None:
                kkt.append(float(result.certificate.kkt.max()))
                same.append(bool((result.pair_wrong == exact[work].pair_wrong).all()))
        agrees = "another model" if name in LOSS else ("yes" if all(same) else "NO")
        loss = LOSS.get(name, "hinge")
        lines.append(f"| `{name}` | {loss} | {' | '.join(cells)} | {agrees} | {max(kkt):.0e} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument("-n", type=int, default=150)
    parser.add_argument("-p", type=int, default=20)
    given = parser.parse_args()
    with threadpool_limits(limits=1):
        found = table(given.n, given.p)
    if given.write:
        RESULTS.write_text(
            "# All methods on the same work\n\n"
            "Made by `python benchmarks/methods_table.py --write` on\n\n"
            f"{facts()}\n\n<!-- methods: begin -->\n"
            f"The papers' simulation with n = {given.n}, p = {given.p}; 20 values of lambda from "
            "e^6 to e^-6, an RBF kernel, one thread; CPU seconds of `cross_validate` from the raw "
            "data to the certificate, the quickest of three runs. A dash: the method does not do "
            "that. Same labels: all left-out labels equal those of `exact`.\n\n"
            f"{found}\n<!-- methods: end -->\n",
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
