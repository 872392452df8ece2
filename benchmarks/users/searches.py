"""Whole searches and single scores, as users write them, with our drop-ins and without.

    python -m benchmarks.users.searches --data DIR [--only search score] [--sets heart ...]

``search``: ``GridSearchCV`` over 11 C x 6 gammas, 5 folds, two jobs; exactcv's on ``SVC`` against
scikit-learn's on its own ``SVC`` and on that of scikit-learn-intelex.  ``score``:
``cross_val_score(SVC(), ...)``, ``score_gamma`` the same with gamma = 1/p, ``score_cv``:
``SVCCV`` with one C against that score and one fit; one C each, two to ten classes.  Each side runs
in a process of its own, with its imports and a small fit done before the clock starts, and short
work several times; CPU seconds of all processes, which is what sides are compared by (wall seconds
of two jobs mean little on a machine that others use), and wall seconds beside them.  The best score
of each side shows that they did the same work.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from joblib.externals.loky import reusable_executor
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
SEARCHED = ("heart", "sonar", "australian", "pima", "german", "digits")
SCORED = ("digits", "wine", "iris", "breast_cancer", "heart", "sonar")
GAMMAS = np.logspace(-1, 1, 6)  # divided by the number of features
# The work, the sets it is done on, and how many times faster ours is to be.
WORKS: dict[str, tuple[tuple[str, ...], float]] = {
    "search": (SEARCHED, 8.0),
    "score": (SCORED, 1.0),
    "score_gamma": (SCORED, 1.0),
    "score_cv": (SCORED, 1.0),
}
AGAIN = 5  # what takes no second is done so often


def search(side: str, X: np.ndarray, y: np.ndarray) -> float:
    """The best score of a grid search."""
    make: Any = SVC if side == "exactcv" else peers()[side]
    room: Any = exactcv if side == "exactcv" else model_selection
    grid = {"C": Cs, "gamma": GAMMAS / X.shape[1]}
    return float(room.GridSearchCV(make(), grid, cv=5, n_jobs=2).fit(X, y).best_score_)


def score(side: str, X: np.ndarray, y: np.ndarray, **given: Any) -> float:
    """The mean score of one model."""
    make: Any = SVC if side == "exactcv" else peers()[side]
    room: Any = exactcv if side == "exactcv" else model_selection
    return float(room.cross_val_score(make(**given), X, y, cv=5).mean())


def score_gamma(side: str, X: np.ndarray, y: np.ndarray) -> float:
    """The same with a gamma that all folds share."""
    return score(side, X, y, gamma=1.0 / X.shape[1])


def score_cv(side: str, X: np.ndarray, y: np.ndarray) -> float:
    """The score of one model, and the model."""
    gamma = 1.0 / X.shape[1]
    if side == "exactcv":
        model = exactcv.SVCCV(Cs=[1.0], gamma=gamma, cv=5, n_jobs=1).fit(X, y)
        return float(model.best_score_)
    peers()[side](gamma=gamma).fit(X, y)
    return score(side, X, y, gamma=gamma)


def one(folder: str, work: str, name: str, side: str) -> dict[str, float]:
    """A run in this process."""
    run: Callable[[str, np.ndarray, np.ndarray], float] = RUNS[work]
    warnings.simplefilter("ignore")
    X, y = load(Path(folder), name)
    run(side, *load_iris(return_X_y=True))  # what is loaded when it is needed, and the workers
    found = []
    for _ in range(1 if work == "search" else AGAIN):
        before, start = _cpu(), perf_counter()
        best = run(side, X, y)
        wall = perf_counter() - start
        found.append({"seconds": wall, "cpu": _cpu() - before, "score": best})
    return min(found, key=lambda one: one["cpu"])


RUNS: dict[str, Callable[[str, np.ndarray, np.ndarray], float]] = {
    "search": search,
    "score": score,
    "score_gamma": score_gamma,
    "score_cv": score_cv,
}


def _cpu() -> float:
    """CPU seconds of this process and of the workers that joblib keeps (Linux alone tells)."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    ticks = 0
    for pid in getattr(reusable_executor._executor, "_processes", None) or {}:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return own.ru_utime + own.ru_stime + ticks / os.sysconf("SC_CLK_TCK")


def text_of(kept: dict[str, Any]) -> str:
    head = ["work", "data", *(f"{s}: wall (s)" for s in SIDES), *(f"{s}: CPU (s)" for s in SIDES),
            "times less CPU", *(f"{s}: score" for s in SIDES)]  # fmt: skip
    lines = []
    for key, cell in kept.items():
        work, name = key.split()
        bar, least = WORKS[work][1], {}
        for figure in ("seconds", "cpu"):
            theirs = [cell[s][figure] for s in SIDES[1:] if s in cell]
            least[figure] = min(theirs, default=np.nan) / cell["exactcv"][figure]
        times = f"{least['cpu']:.2g} (wall {least['seconds']:.2g})"
        lines.append([
            work, name,
            *(f"{cell[s]['seconds']:.3g}" if s in cell else "-" for s in SIDES),
            *(f"{cell[s]['cpu']:.3g}" if s in cell else "-" for s in SIDES),
            times if not least["cpu"] < bar else f"**{times}**",
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
                if found["cpu"] < cell.get(side, {}).get("cpu", np.inf):
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
