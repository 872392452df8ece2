"""The error after tuning: whether the honest figures hold, on data whose truth is known.

    python -m benchmarks.users.honest_studies [--parts coverage noise] [--seconds 600] [--write]

Sets are kept in ``results/honest_error.json`` as they are done, so that a run goes on where the
last one ended; ``--seconds 0`` only makes the tables anew.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib import command
from benchmarks.lib.results import RESULTS, markdown, read_records, write_section
from benchmarks.users.honest_error import FILE, TITLE, gammas
from exactcv import SVCCV, leave_pair_out
from exactcv.problem.intervals import wilson

SMALL_GRID: dict[str, Any] = {"Cs": np.geomspace(1e-2, 1e3, 12)}
ROWS, FRESH = 100, 20_000
SETS = range(10_000, 10_500)  # the interval was settled on sets with other seeds
DRAWS, PAIR_DRAWS = range(200), range(2000)


# ---- one set -------------------------------------------------------------------------------------


def covered(seed: int, folds: int) -> list[float]:
    """One simulated set: true, least, corrected and nested error, and the latter two intervals."""
    X, y = exactcv.datasets.make_mixture(ROWS + FRESH, 20, random_state=seed)
    X, y, fresh, truth = X[:ROWS], y[:ROWS], X[ROWS:], y[ROWS:]
    model: Any = SVCCV(gamma=gammas(X), cv=folds, n_jobs=1, **SMALL_GRID)
    nested = model.nested_score(X, y, outer=folds)
    model.fit(X, y)
    corrected = model.corrected_score_
    true = float(np.mean(model.predict(fresh) != truth))
    return [true, 1.0 - float(model.best_score_), corrected.error, nested.error,
            *corrected.error_interval, *nested.interval]  # fmt: skip


def coin(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """40 rows whose labels say nothing."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 5)), rng.integers(0, 2, 40)
    while min(np.bincount(y, minlength=2)) < 12:  # every fold needs both classes
        y = rng.integers(0, 2, 40)
    return X, y


def guessed(seed: int, kind: str) -> list[float]:
    """Least, corrected and nested error on noise."""
    X, y = coin(seed)
    cv: Any = 10 if kind == "stratified" else KFold(10, shuffle=True, random_state=0)
    model: Any = SVCCV(gamma=gammas(X), cv=cv, n_jobs=1, **SMALL_GRID)
    nested = model.nested_score(X, y, outer=cv)
    model.fit(X, y)
    return [1.0 - float(model.best_score_), model.corrected_score_.error, nested.error]


def compared(seed: int) -> list[float]:
    """Leave-pair-out and pooled AUC on noise, means over C."""
    found = leave_pair_out(*coin(seed), n_jobs=1, tournament=False, **SMALL_GRID)
    return [float(found.auc.mean()), float(found.pooled_auc.mean())]


STUDIES: dict[str, dict[str, tuple[range, Callable[[int], list[float]]]]] = {
    "coverage": {
        "5 folds": (SETS, lambda seed: covered(seed, 5)),
        "10 folds": (SETS, lambda seed: covered(seed, 10)),
    },
    "noise": {
        "stratified": (DRAWS, lambda seed: guessed(seed, "stratified")),
        "plain": (DRAWS, lambda seed: guessed(seed, "plain")),
        "pairs": (PAIR_DRAWS, compared),
    },
}


def more(part: str, seconds: float) -> dict[str, dict[str, list[float]]]:
    """Sets that are missing, for so long; all that there are then."""
    records = read_records(FILE)
    found = {name: records.get(f"{part}, {name}", {}) for name in STUDIES[part]}
    start = process_time()
    for name, (seeds, one) in STUDIES[part].items():
        for seed in seeds:
            if str(seed) not in found[name] and process_time() - start < seconds:
                found[name][str(seed)] = [float(f"{figure:.5g}") for figure in one(seed)]
                keep(records | {f"{part}, {key}": value for key, value in found.items()})
    return found


def keep(records: dict[str, Any]) -> None:
    """One line a set."""
    parts = []
    for name in sorted(records):
        lines = [f"  {json.dumps(seed)}: {json.dumps(v)}" for seed, v in records[name].items()]
        parts.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "}")
    (RESULTS / f"{FILE}.json").write_text("{\n" + ",\n".join(parts) + "}\n", encoding="utf-8")


# ---- tables --------------------------------------------------------------------------------------


def coverage(found: dict[str, dict[str, list[float]]]) -> str:
    lines, said = [], []
    for folds, sets in found.items():
        if not sets:
            continue
        table = np.array(list(sets.values()))
        true, least, nested = table[:, 0], table[:, 1], table[:, 3]
        means = zip(("least", "corrected", "nested", "true"), table[:, [1, 2, 3, 0]].mean(axis=0),
                    strict=True)  # fmt: skip
        said.append(f"{folds} ({len(table)} sets): " + ", ".join(f"{n} {m:.3f}" for n, m in means))
        intervals = {
            "nested": table[:, 6:8],
            "Wilson's, of the least error": np.column_stack(wilson(least, ROWS)),
            "Wilson's, of the nested error": np.column_stack(wilson(nested, ROWS)),
            "corrected": table[:, 4:6],
        }
        for name, ends in intervals.items():
            above, below = true > ends[:, 1], true < ends[:, 0]
            held = ~(above | below)
            sure = 100 * float(held.std()) / np.sqrt(len(held))
            lines.append([folds, str(len(held)), name, f"{100 * held.mean():.1f} (+- {sure:.1f})",
                          f"{100 * above.mean():.1f}", f"{100 * below.mean():.1f}",
                          f"{np.diff(ends).mean():.3f}"])  # fmt: skip
    head = ["inner and outer", "sets", "95 percent interval", "holds the true error, percent",
            "truth above", "below", "mean width"]  # fmt: skip
    return (
        f"Sets of {ROWS} rows of the papers' simulation (p = 20), seeds from {SETS[0]:,} on, 60 "
        "grid points; the true error of the tuned model from 20,000 fresh rows. Bar: the nested "
        "interval holds it in 90 to 98 percent. How wide it is had been settled before, on sets "
        "with other seeds.\n\n"
        f"Mean errors. {'; '.join(said)}.\n\n" + markdown(head, lines)
    )


def noise(found: dict[str, dict[str, list[float]]]) -> str:
    lines = []
    for kind in ("stratified", "plain"):
        table = list(found[kind].values())
        figures = [f"{mean:.3f} (+- {wide:.3f})" for mean, wide in _means(table)]
        lines.append([kind, str(len(table)), *figures])
    first = [v for seed, v in found["pairs"].items() if int(seed) in DRAWS]
    compared = []
    for table in (first, list(found["pairs"].values())):
        (mean, off), (low, low_off) = _means(table)
        compared.append([str(len(table)), f"{mean:.4f} (+- {off:.4f})",
                         f"{low:.3f} (+- {low_off:.3f})"])  # fmt: skip
    return (
        "Labels drawn by a coin, n = 40, 60 grid points, ten inner and ten outer folds; means with "
        "their standard errors. Bars: nested within .03 of .5, corrected within .03 of nested, "
        "leave-pair-out within .01 of .5.\n\n"
        + markdown(["folds", "draws", "least error", "corrected", "nested"], lines)
        + "\n\nOf labels by a coin, those of a test fold are independent of the rest only if the "
        "folds were cut without looking at them: then one half is the truth. Stratified folds give "
        "the test sets the class shares of the training sets, so that predicting the commoner of "
        "the 40 labels is right in more than half of the tests.\n\n"
        + markdown(["draws", "leave-pair-out AUC", "pooled leave-one-out AUC"], compared)
        + "\n\n(Means over 12 values of C, gamma by the median rule.)"
    )


def _means(table: list[list[float]]) -> list[tuple[float, float]]:
    values = np.array(table)
    wide = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return list(zip(values.mean(axis=0).tolist(), wide.tolist(), strict=True))


TABLES = {"coverage": coverage, "noise": noise}


def main() -> None:
    parser = command.parser(__doc__, {}, FILE)
    parser.add_argument("--parts", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--seconds", type=float, default=3600.0, help="CPU seconds a part")
    given = parser.parse_args()
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", exactcv.NotExactWarning)
        for part in given.parts:
            text = TABLES[part](more(part, given.seconds))
            print(text, flush=True)
            if given.write:
                write_section(FILE, part, text, TITLE)


if __name__ == "__main__":
    main()
