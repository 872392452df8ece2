"""Where users tune: curves of left-out errors beside what users would run instead.

    python -m benchmarks.users.cells --data DIR [--sets a1a ...] [--gammas 1 10] [--works 5-fold]

A cell is one set and one gamma (in units of 1/p); 11 values of C from 1e-2 to 1e3.  CPU seconds of
one thread, kernel included on both sides, peers at their default tolerance.  K-fold is held against
the peers' fits of every fold, leave-one-out against their plain fits to all rows.  Every figure is
kept at once (with ``--write`` in results/users.json), the least of all runs; ``--sides ours`` runs
our side alone.  With ``--peer-folds K`` the peers run the first K folds, whose seconds are scaled
up: "~" in the table.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib import command
from benchmarks.lib.machine import facts
from benchmarks.lib.results import markdown, read_records, write_records, write_section
from benchmarks.users.peers import curve, peers
from benchmarks.users.sets import GAMMAS, SETS, Cs, load

FILE, TITLE = "users", "Where users tune: real data, C from 1e-2 to 1e3"
# The work, the folds, what is wanted, and the bar: how many times our seconds may be the peer's.
WORKS: dict[str, tuple[Any, str, float, float]] = {
    "5-fold": (5, "error", 1 / 3, 1 / 10),
    "10-fold": (10, "error", 1 / 5, np.inf),
    "LOO labels": ("loo", "error", 2.0, 1.0),
    "LOO values": ("loo", "decision", 3.0, np.inf),
}

Cell = dict[str, Any]


def folds_of(work: str, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]] | None:
    """The folds of both sides; None for leave-one-out."""
    k = WORKS[work][0]
    if k == "loo":
        return None
    return list(StratifiedKFold(k, shuffle=True, random_state=0).split(np.zeros(len(y)), y))


def ours(X: np.ndarray, y: np.ndarray, gamma: float, work: str) -> Cell:
    """CPU seconds, and what the certificate and the counts say."""
    folds, output = folds_of(work, y), WORKS[work][1]
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = process_time()
        if len(np.unique(y)) > 2:
            model = exactcv.SVCCV(Cs=Cs, gamma=gamma, cv=folds or "loo", n_jobs=1).fit(X, y)
            return {"seconds": process_time() - start, "exact": model.certificate_.exact}
        result = exactcv.cross_validate(
            X, y, gamma=gamma, Cs=Cs, cv=folds or "loo", output=output, n_jobs=1
        )
        seconds = process_time() - start
    certificate = result.certificate
    return {
        "seconds": seconds,
        "exact": certificate.exact,
        "worst": float(max(certificate.kkt.max(), certificate.gap.max())),
        "at_knot": max(result.stats["at_knot"]),
        "settled": {how: result.stats[how] for how in ("bound", "solved", "fallback")},
    }


def warm_up() -> None:
    """Load what is loaded when it is first needed: a user pays for it once, not in every cell."""
    X, y = exactcv.datasets.make_mixture(60, 3, random_state=0)
    for work in WORKS:
        ours(X, y, 0.3, work)
        for make in peers().values():
            curve(make, X, y, Cs[:2], 0.3, folds_of(work, y))


def keep_least(kept: Cell, side: str, found: Cell) -> None:
    """The quicker of two runs stays."""
    if found["seconds"] < kept.setdefault(side, {}).get("seconds", np.inf):
        kept[side] = found | {"load": round(os.getloadavg()[0], 1)}


def measure(cell: Cell, X: np.ndarray, y: np.ndarray, gamma: float, args: Any) -> None:
    """Run the works that are asked for, in turn."""
    for work in args.works:
        mine = cell.setdefault(work, {})
        for _ in range(args.repeats):
            if "ours" in args.sides:
                keep_least(mine, "exactcv", ours(X, y, gamma, work))
            for name, make in peers().items() if "peers" in args.sides else ():
                if work == "LOO values":  # the same plain fits
                    mine[name] = cell.get("LOO labels", {}).get(name, {})
                elif args.again or name not in mine:
                    folds = folds_of(work, y)
                    keep_least(mine, name, curve(make, X, y, Cs, gamma, folds, args.peer_folds))


def ratio(cell: Cell, work: str) -> float:
    """Our seconds over those of the faster peer."""
    sides = dict(cell.get(work, {}))
    mine = sides.pop("exactcv", {}).get("seconds", np.nan)
    return float(
        mine / min((side.get("seconds", np.nan) for side in sides.values()), default=np.nan)
    )


def table(cells: dict[str, Cell]) -> str:
    """One line a cell; what misses its bar is bold."""
    head = ["data", "n", "gamma", "free"]
    for work in WORKS:
        head += [f"{work}: ours", "faster peer", "times"]
    lines = []
    for key, cell in cells.items():
        name, gamma = key.split()
        free = max(
            (cell[w].get("exactcv", {}).get("at_knot", 0) for w in WORKS if w in cell), default=0
        )
        line = [name, str(cell["n"]), f"{gamma}/p", str(free)]
        for work, (_, _, bar, _) in WORKS.items():
            sides = dict(cell.get(work, {}))
            mine = sides.pop("exactcv", {}).get("seconds", np.nan)
            least = min((side.get("seconds", np.nan) for side in sides.values()), default=np.nan)
            about = "~" if any("of_folds" in side for side in sides.values()) else ""
            shown = mine / least
            text = f"{shown:.2f}" if bar >= 1 else f"{1 / shown:.1f}"
            text = text if not shown > bar else f"**{text}**"
            line += [f"{mine:.2f}", f"{about}{least:.2f}", f"{about}{text}"]
        line = ["-" if entry in ("nan", "~nan") else entry for entry in line]
        lines.append(line)
    return markdown(head, lines)


def summary(cells: dict[str, Cell]) -> str:
    said = []
    for work, (_, _, bar, middle) in WORKS.items():
        ratios = np.array([ratio(cell, work) for cell in cells.values()])
        ratios = ratios[np.isfinite(ratios)]
        if not len(ratios):
            continue
        over = int((ratios > bar).sum())
        median = f" (bar {show(middle)})" if np.isfinite(middle) else ""
        said.append(
            f"- {work}: worst cell {show(ratios.max())} (bar {show(bar)}; {over} of {len(ratios)} "
            f"cells miss it), median {show(float(np.median(ratios)))}{median}"
        )
    return "\n".join(said)


def show(ratio: float) -> str:
    return f"{ratio:.2f} times the fits" if ratio >= 1 else f"{1 / ratio:.1f} times faster"


def main() -> None:
    parser = command.parser(__doc__, {}, FILE)
    parser.add_argument("--sets", nargs="+", default=[*SETS], metavar="NAME")
    parser.add_argument("--gammas", nargs="+", type=float, default=[*GAMMAS])
    parser.add_argument("--works", nargs="+", default=[*WORKS], choices=[*WORKS])
    parser.add_argument("--sides", nargs="+", default=["ours", "peers"])
    parser.add_argument("--again", action="store_true", help="also peers that were measured before")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument(
        "--peer-folds", type=int, help="folds that peers run; the rest is estimated"
    )
    args = command.parse_with_data(parser)
    records = read_records(FILE) if args.write else {}
    cells: dict[str, Cell] = records.setdefault("cells", {})
    warm_up()
    for name in args.sets:
        X, y = load(Path(args.data), name)
        for gamma in args.gammas:
            cell = cells.setdefault(f"{name} {gamma:g}", {"n": len(y)})
            measure(cell, X, y, gamma / X.shape[1], args)
            times = {
                w: {s: round(f.get("seconds", np.nan), 2) for s, f in cell[w].items()}
                for w in args.works
            }
            command.say(f"{name} {gamma:g}/p: {times}")
            if args.write:
                write_records(FILE, records)
    order = [f"{name} {gamma:g}" for name in SETS for gamma in GAMMAS]
    cells = {key: cells[key] for key in order if "exactcv" in cells.get(key, {}).get("5-fold", {})}
    text = (
        f"Made by `{command.command_line()}` on\n\n{facts()}\n\n{summary(cells)}\n\n{table(cells)}"
    )
    print(text)
    if args.write:
        write_section(FILE, "cells", text, TITLE)


if __name__ == "__main__":
    main()
