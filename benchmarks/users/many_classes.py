"""One C, several classes, k folds: our score against scikit-learn's, in turn in one process.

    python -m benchmarks.users.many_classes [--sets digits_500 iris ...] [--repeats 15] [--write]

``cross_val_score(SVC())`` (gamma="scale", of each fold its own), the same with gamma = 1/p, and
``SVCCV`` with one C against scikit-learn's score and one fit; 5 folds, standardised features,
scikit-learn's own data sets.  CPU seconds of one thread, the least of so many turns; the ratio of
the medians beside, which a busy machine spoils less evenly.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn import model_selection
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib import command
from benchmarks.lib.machine import facts
from benchmarks.lib.results import markdown, write_section
from benchmarks.users.cells import FILE, TITLE
from benchmarks.users.sets import load

SETS = ("digits", "digits_500", "iris", "wine", "breast_cancer")


def score(room: Any, X: np.ndarray, y: np.ndarray, **given: Any) -> float:
    """The mean score of one model."""
    return float(room.cross_val_score(SVC(**given), X, y, cv=5).mean())


def ours_with_model(X: np.ndarray, y: np.ndarray, gamma: float, C: float) -> float:
    """The score of one model, and the model."""
    return float(exactcv.SVCCV(Cs=[C], gamma=gamma, cv=5, n_jobs=1).fit(X, y).best_score_)


def theirs_with_model(X: np.ndarray, y: np.ndarray, gamma: float, C: float) -> float:
    """The same of scikit-learn's."""
    SVC(gamma=gamma, C=C).fit(X, y)
    return score(model_selection, X, y, gamma=gamma, C=C)


def works(X: np.ndarray, y: np.ndarray) -> dict[str, tuple[Callable[[], float], ...]]:
    """What is done, by us and by them."""
    gamma = 1.0 / X.shape[1]
    found: dict[str, tuple[Callable[[], float], ...]] = {
        '`SVC()`, gamma="scale"': (
            lambda: score(exactcv, X, y),
            lambda: score(model_selection, X, y),
        )
    }
    for C in (1.0, 100.0):
        found[f"gamma=1/p, C={C:g}"] = (
            lambda C=C: score(exactcv, X, y, gamma=gamma, C=C),
            lambda C=C: score(model_selection, X, y, gamma=gamma, C=C),
        )
        found[f"`SVCCV`, C={C:g}"] = (
            lambda C=C: ours_with_model(X, y, gamma, C),
            lambda C=C: theirs_with_model(X, y, gamma, C),
        )
    return found


def in_turn(sides: tuple[Callable[[], float], ...], repeats: int) -> tuple[list[Any], list[float]]:
    """CPU seconds of each side, run after run, and what each found."""
    seconds: list[list[float]] = [[] for _ in sides]
    scores = [side() for side in sides]  # what is loaded when it is needed
    for _ in range(repeats):
        for side, kept in zip(sides, seconds, strict=True):
            start = process_time()
            side()
            kept.append(process_time() - start)
    return seconds, scores


def main() -> None:
    parser = command.parser(__doc__, {}, FILE)
    parser.add_argument("--sets", nargs="+", default=[*SETS], choices=SETS)
    parser.add_argument("--repeats", type=int, default=15)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    head = ["data", "what", "exactcv (ms)", "scikit-learn (ms)", "exactcv over scikit-learn",
            "of medians", "scores differ"]  # fmt: skip
    lines = []
    with threadpool_limits(1):
        for name in args.sets:
            base, _, rows = name.partition("_5")
            X, y = load(Path(), base, int(f"5{rows}") if rows else None)
            for what, sides in works(X, y).items():
                (mine, theirs), scores = in_turn(sides, args.repeats)
                times = min(mine) / min(theirs)
                lines.append([
                    name, what, f"{1e3 * min(mine):.1f}", f"{1e3 * min(theirs):.1f}",
                    f"{times:.2f}" if times <= 1 else f"**{times:.2f}**",
                    f"{statistics.median(mine) / statistics.median(theirs):.2f}",
                    "no" if abs(scores[0] - scores[1]) < 1e-12 else f"{scores[0] - scores[1]:.1e}",
                ])  # fmt: skip
                command.say(" ".join(lines[-1]))
    text = f"Made by `{command.command_line()}` on\n\n{facts()}\n\n{markdown(head, lines)}"
    print(text)
    if args.write:
        write_section(FILE, "many_classes", text, TITLE)


if __name__ == "__main__":
    main()
