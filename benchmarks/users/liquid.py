"""A 5-fold curve to a rough tolerance, beside the figures of liquidSVM.

    python -m benchmarks.users.liquid --data DIR

liquidSVM (R package 1.2.4, one thread) was timed once, on another machine, beside scikit-learn's
``SVC``; its figures are scaled by how scikit-learn's time here compares with the one there.  It has
no intercept and stops at a tolerance of its own.  Ours is run at tol = 1e-3 and 1e-8; what the
certificate says of either, and how many labels differ between the two, stands beside.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib import command
from benchmarks.lib.machine import facts
from benchmarks.lib.results import markdown, read_records, write_records, write_section
from benchmarks.users.cells import FILE, TITLE, folds_of, warm_up
from benchmarks.users.peers import curve
from benchmarks.users.sets import GAMMAS, Cs, load

# CPU seconds of (liquidSVM, scikit-learn) at gamma = 0.1/p, 1/p, 10/p, on one and the same machine.
THERE = {
    "a1a": ((0.54, 4.5), (0.66, 4.0), (0.55, 6.0)),
    "a9a_5000": ((4.4, 34.9), (4.8, 36.1), (5.2, 66.6)),
}
TOLS = (1e-3, 1e-8)


def ours(X: np.ndarray, y: np.ndarray, gamma: float, tol: float) -> tuple[dict[str, Any], Any]:
    """CPU seconds and the certificate, and the result itself."""
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = process_time()
        result = exactcv.cross_validate(
            X, y, gamma=gamma, Cs=Cs, cv=folds_of("5-fold", y), tol=tol, n_jobs=1
        )
        seconds = process_time() - start
    certificate = result.certificate
    worst = float(max(certificate.kkt.max(), certificate.gap.max()))
    found = {"seconds": seconds, "worst": worst, "missed": len(certificate.unresolved)}
    return {**found, "unproved": certificate.unproved}, result


def measure(X: np.ndarray, y: np.ndarray, gamma: float, again: bool, kept: dict[str, Any]) -> None:
    errors = []
    for tol in TOLS:
        found, result = ours(X, y, gamma, tol)
        errors.append(np.asarray(result.error))
        if found["seconds"] < kept.get(f"{tol:g}", {}).get("seconds", np.inf):
            kept[f"{tol:g}"] = found
    kept["labels"] = len(Cs) * len(y)
    kept["differ"] = round(float(np.abs(errors[0] - errors[1]).sum()) * len(y))
    if again or "scikit-learn" not in kept:
        kept["scikit-learn"] = curve(SVC, X, y, Cs, gamma, folds_of("5-fold", y))


def text_of(cells: dict[str, Any]) -> str:
    head = ["data", "gamma", "scikit-learn here (s)", "liquidSVM scaled (s)", "tol=1e-3 (s)",
            "over liquidSVM (bar 1)", "worst figure", "labels not proved",
            "tol=1e-8 (s)", "over liquidSVM (bar 2.5)", "labels that differ (net)"]  # fmt: skip
    lines = []
    for key, cell in cells.items():
        name, gamma = key.split()
        liquid, there = THERE[name][GAMMAS.index(float(gamma))]
        here = cell["scikit-learn"]["seconds"]
        scaled = liquid * here / there
        rough, fine = cell["0.001"], cell["1e-08"]
        lines.append([
            name, f"{gamma}/p", f"{here:.2f}", f"{scaled:.2f}", f"{rough['seconds']:.2f}",
            bold(rough["seconds"] / scaled, 1.0), f"{rough['worst']:.0e}",
            f"{rough['unproved']} of {cell['labels']}",
            f"{fine['seconds']:.2f}", bold(fine["seconds"] / scaled, 2.5), str(cell["differ"]),
        ])  # fmt: skip
    return markdown(head, lines)


def bold(ratio: float, bar: float) -> str:
    return f"{ratio:.2f}" if ratio <= bar else f"**{ratio:.2f}**"


def main() -> None:
    parser = command.parser(__doc__, {}, FILE)
    parser.add_argument("--sets", nargs="+", default=[*THERE], choices=[*THERE])
    parser.add_argument("--gammas", nargs="+", type=float, default=[*GAMMAS])
    parser.add_argument("--again", action="store_true", help="also scikit-learn, if it was timed")
    args = command.parse_with_data(parser)
    records = read_records(FILE) if args.write else {}
    cells = records.setdefault("liquid", {})
    warm_up()
    for name in args.sets:
        X, y = load(Path(args.data), name)
        for gamma in args.gammas:
            cell = cells.setdefault(f"{name} {gamma:g}", {})
            measure(X, y, gamma / X.shape[1], args.again, cell)
            command.say(f"{name} {gamma:g}/p: {cell}")
            if args.write:
                write_records(FILE, records)
    text = f"Made by `{command.command_line()}` on\n\n{facts()}\n\n{text_of(cells)}"
    print(text)
    if args.write:
        write_section(FILE, "liquid", text, TITLE)


if __name__ == "__main__":
    main()
