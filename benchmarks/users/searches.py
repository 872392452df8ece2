"""Whole searches and single scores, as users write them, with our drop-ins and without.

    python -m benchmarks.users.searches --data DIR [--only search score] [--sets heart ...]

``search``: ``GridSearchCV`` over 11 C x 6 gammas, 5 folds, two jobs; exactcv's on ``SVC`` against
scikit-learn's on its own ``SVC`` and on that of scikit-learn-intelex.  ``score``:
``cross_val_score(SVC(), ...)``, one C, on ten classes.  Each side runs in a process of its own,
with its imports and a small fit done before the clock starts; wall seconds, and CPU seconds of all
processes beside them.  The best score of each side shows that they did the same work.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from joblib.externals.loky import get_reusable_executor
from sklearn import model_selection
from sklearn.datasets import load_iris
from sklearn.svm import SVC

import exactcv
from benchmarks.lib import command
from benchmarks.lib.machine import facts
from benchmarks.lib.results import markdown, read_records, write_records, write_section
from benchmarks.users.cells import FILE, TITLE
from benchmarks.users.peers import peers
from benchmarks.users.sets import Cs, load

SIDES = ("exactcv", "scikit-learn", "intelex")
SEARCHED = ("heart", "pima", "german", "splice", "a1a", "digits")
SCORED = ("digits",)
GAMMAS = np.logspace(-1, 1, 6)  # divided by the number of features
# The work, the sets it is done on, and how many times faster ours is to be.
WORKS: dict[str, tuple[tuple[str, ...], float]] = {
    "search": (SEARCHED, 8.0),
    "score": (SCORED, 1.0),
}


def search(side: str, X: np.ndarray, y: np.ndarray) -> float:
    """The best score of a grid search."""
    make: Any = SVC if side == "exactcv" else peers()[side]
    room: Any = exactcv if side == "exactcv" else model_selection
    grid = {"C": Cs, "gamma": GAMMAS / X.shape[1]}
    return float(room.GridSearchCV(make(), grid, cv=5, n_jobs=2).fit(X, y).best_score_)


def score(side: str, X: np.ndarray, y: np.ndarray) -> float:
    """The mean score of one model."""
    make: Any = SVC if side == "exactcv" else peers()[side]
    room: Any = exactcv if side == "exactcv" else model_selection
    return float(room.cross_val_score(make(), X, y, cv=5).mean())


def one(folder: str, work: str, name: str, side: str) -> dict[str, float]:
    """A run in this process."""
    run: Callable[[str, np.ndarray, np.ndarray], float] = search if work == "search" else score
    X, y = load(Path(folder), name)
    run(side, *load_iris(return_X_y=True))  # what is loaded when it is needed, and the workers
    before, start = _cpu(), perf_counter()
    best = run(side, X, y)
    wall = perf_counter() - start
    if side != "exactcv" and work == "search":
        get_reusable_executor().shutdown(wait=True)  # then its seconds count
    return {"seconds": wall, "cpu": _cpu() - before, "score": best}


def _cpu() -> float:
    used = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def text_of(kept: dict[str, Any]) -> str:
    head = ["work", "data", *(f"{s}: wall (s)" for s in SIDES), *(f"{s}: CPU (s)" for s in SIDES),
            "times faster", *(f"{s}: score" for s in SIDES)]  # fmt: skip
    lines = []
    for key, cell in kept.items():
        work, name = key.split()
        bar, least = WORKS[work][1], {}
        for figure in ("seconds", "cpu"):
            theirs = [cell[s][figure] for s in SIDES[1:] if s in cell]
            least[figure] = min(theirs, default=np.nan) / cell["exactcv"][figure]
        times = f"{least['seconds']:.1f} (CPU {least['cpu']:.1f})"
        lines.append([
            work, name,
            *(f"{cell[s]['seconds']:.2f}" if s in cell else "-" for s in SIDES),
            *(f"{cell[s]['cpu']:.2f}" if s in cell else "-" for s in SIDES),
            times if not least["seconds"] < bar else f"**{times}**",
            *(f"{cell[s]['score']:.4f}" if s in cell else "-" for s in SIDES),
        ])  # fmt: skip
    return markdown(head, lines)


def main() -> None:
    parser = command.parser(__doc__, {}, FILE)
    parser.add_argument("--only", nargs="+", default=[*WORKS], choices=[*WORKS])
    parser.add_argument("--sets", nargs="+", metavar="NAME")
    parser.add_argument("--sides", nargs="+", default=[*SIDES], choices=SIDES)
    parser.add_argument("--one", action="store_true", help="one run, in this process, as JSON")
    args = command.parse_with_data(parser)
    if args.one:
        json.dump(one(args.data, args.only[0], args.sets[0], args.sides[0]), sys.stdout)
        return
    records = read_records(FILE) if args.write else {}
    kept = records.setdefault("searches", {})
    for work in args.only:
        for name in [n for n in WORKS[work][0] if args.sets is None or n in args.sets]:
            cell = kept.setdefault(f"{work} {name}", {})
            for side in args.sides:
                out = command.run_module(
                    command.module(), "--data", args.data, "--only", work, "--sets", name,
                    "--sides", side, "--one",
                )  # fmt: skip
                found = json.loads(out.splitlines()[-1])
                if found["seconds"] < cell.get(side, {}).get("seconds", np.inf):
                    cell[side] = found
                command.say(f"{work} {name} {side}: {found}")
                if args.write:
                    write_records(FILE, records)
    text = f"Made by `{command.command_line()}` on\n\n{facts()}\n\n{text_of(kept)}"
    print(text)
    if args.write:
        write_section(FILE, "searches", text, TITLE)


if __name__ == "__main__":
    main()
