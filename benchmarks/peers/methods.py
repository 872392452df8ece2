"""All methods on the same work, for the page "which method when".

    python -m benchmarks.peers.methods [--write]

CPU seconds (the quickest of three runs) for the papers' simulation and grid, leave-one-out and 10
folds, from the raw data to the certificate.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib import command
from benchmarks.lib.machine import facts
from benchmarks.lib.results import markdown, write_section

FILE, TITLE = "methods", "All methods on the same work"
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
    head = ["method", "loss", *(f"{work} (CPU s)" for work in WORK), "same labels", "worst KKT"]
    lines = []
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
        lines.append([f"`{name}`", loss, *cells, agrees, f"{max(kkt):.0e}"])
        command.say(" ".join(lines[-1]))
    return markdown(head, lines)


def main() -> None:
    parser = command.parser(__doc__, {}, FILE)
    parser.add_argument("-n", type=int, default=150)
    parser.add_argument("-p", type=int, default=20)
    given = parser.parse_args()
    with threadpool_limits(limits=1):
        found = table(given.n, given.p)
    text = (
        f"The papers' simulation with n = {given.n}, p = {given.p}; 20 values of lambda from "
        "e^6 to e^-6, an RBF kernel, one thread; CPU seconds of `cross_validate` from the raw "
        "data to the certificate, the quickest of three runs. A dash: the method does not do "
        f"that. Same labels: all left-out labels equal those of `exact`.\n\n{found}"
    )
    print(text)
    if given.write:
        # The page "which method when" shows the second section.
        made = f"Made by `{command.command_line()}` on\n\n{facts()}"
        write_section(FILE, "made", made, TITLE)
        write_section(FILE, "methods", text, TITLE)


if __name__ == "__main__":
    main()
