"""How a 5-fold curve grows with the number of rows, in time and memory.

    python -m benchmarks.users.growth --data DIR [--sets a9a w8a] [--rows 1250 2500 5000 10000]

Rows at random, standardised; gamma = 1/p and 10/p; 11 values of C from 1e-2 to 1e3.  CPU seconds of
one thread, each side in a process of its own, whose peak memory is taken too; the peers run at the
largest size only, with ``--peer-folds K`` the first K folds, whose seconds are scaled up ("~").
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lib import command
from benchmarks.lib.machine import facts
from benchmarks.lib.results import markdown, read_records, write_records, write_section
from benchmarks.users.cells import FILE, TITLE, folds_of, ours
from benchmarks.users.peers import curve, peers
from benchmarks.users.sets import Cs, load

KEY = "growth"
GAMMAS = (1.0, 10.0)
ROWS = (1250, 2500, 5000, 10000)
SIDES = ("exactcv", "scikit-learn", "intelex")


def one(
    folder: str, name: str, rows: int, gamma: float, side: str, peer_folds: int | None
) -> dict[str, Any]:
    """A run in this process: seconds, and how much memory it took beyond what was there before."""
    X, y = load(Path(folder), name, rows)
    if side == "exactcv":
        ours(X[:200], y[:200], gamma / X.shape[1], "5-fold")  # load what is loaded when needed
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if side == "exactcv":
        found = ours(X, y, gamma / X.shape[1], "5-fold")
    else:
        folds = folds_of("5-fold", y)
        found = curve(peers()[side], X, y, Cs, gamma / X.shape[1], folds, peer_folds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return found | {"kernels": peak * 1024 / (8.0 * len(y) ** 2)}


def text_of(kept: dict[str, Any]) -> str:
    head = ["data", "gamma", "rows", *(f"{side} (s)" for side in SIDES), "times faster",
            "power of n", "peak memory / kernel matrix", "free"]  # fmt: skip
    lines, last = [], {}
    for key, cell in kept.items():
        name, gamma, rows = key.split()
        mine = cell["exactcv"]
        power = "-"
        if (name, gamma) in last:
            n, seconds = last[name, gamma]
            power = f"{np.log(mine['seconds'] / seconds) / np.log(int(rows) / n):.2f}"
        last[name, gamma] = int(rows), mine["seconds"]
        theirs = [cell[side]["seconds"] for side in SIDES[1:] if side in cell]
        lines.append([
            name, f"{gamma}/p", rows,
            *(_shown(cell[side]) if side in cell else "-" for side in SIDES),
            f"{min(theirs) / mine['seconds']:.1f}" if theirs else "-", power,
            f"{mine['kernels']:.2f}", str(mine["at_knot"]),
        ])  # fmt: skip
    return markdown(head, lines)


def _shown(found: dict[str, Any]) -> str:
    """Seconds; "~" if they are scaled up from some of the folds."""
    return f"{'~' if 'of_folds' in found else ''}{found['seconds']:.1f}"


def main() -> None:
    parser = command.parser(__doc__, {}, FILE)
    parser.add_argument("--sets", nargs="+", default=["a9a", "w8a"], metavar="NAME")
    parser.add_argument("--rows", nargs="+", type=int, default=[*ROWS])
    parser.add_argument("--gammas", nargs="+", type=float, default=[*GAMMAS])
    parser.add_argument("--sides", nargs="+", default=[*SIDES], choices=SIDES)
    parser.add_argument(
        "--peer-folds", type=int, help="folds that peers run; the rest is estimated"
    )
    parser.add_argument("--one", action="store_true", help="one run, in this process, as JSON")
    args = command.parse_with_data(parser)
    if args.one:
        which = args.sets[0], args.rows[0], args.gammas[0], args.sides[0]
        found = one(args.data, *which, args.peer_folds)
        json.dump(found, sys.stdout)
        return
    records = read_records(FILE) if args.write else {}
    kept = records.setdefault(KEY, {})
    for name in args.sets:
        for gamma in args.gammas:
            for rows in args.rows:
                cell = kept.setdefault(f"{name} {gamma:g} {rows}", {})
                for side in args.sides:
                    if side != "exactcv" and rows < max(ROWS):
                        continue
                    out = command.run_module(
                        command.module(), "--data", args.data, "--sets", name, "--rows",
                        str(rows), "--gammas", str(gamma), "--sides", side, "--one",
                        *(["--peer-folds", str(args.peer_folds)] if args.peer_folds else []),
                    )  # fmt: skip
                    found = json.loads(out.splitlines()[-1])
                    if found["seconds"] < cell.get(side, {}).get("seconds", np.inf):
                        cell[side] = found
                    command.say(f"{name} {gamma:g}/p {rows} {side}: {found}")
                    if args.write:
                        write_records(FILE, records)
    text = f"Made by `{command.command_line()}` on\n\n{facts()}\n\n{text_of(kept)}"
    print(text)
    if args.write:
        write_section(FILE, KEY, text, TITLE)


if __name__ == "__main__":
    main()
