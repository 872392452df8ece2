"""The campaign: thousands of random and degenerate problems against judges that are not ours.

    make campaign                      (or: python -m campaign.run --count 1000 --seed 0, in tests/)

Each problem is cross-validated with every value solved, and once more with labels by proof where
that is possible.  What the certificate calls exact is held against the truth (``truth.py``): a
label must be right, a value no further off than the duality gap implies.  Both runs must agree on
every label.  A failure prints the few lines that show it again; the exit status says whether there
was one.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass

import numpy as np
from _oracle import Run, make_task, run
from _problems import Small
from campaign.cases import Case, make_case
from campaign.truth import Truth, solve_all

from exactcv import tolerances
from exactcv.judge.ledger import PROVED
from exactcv.problem.folds import Folds, make_folds

TOL = 1e-8
# Methods besides ``exact`` and ``refit``, one a case, for problems that are not extreme.
OTHERS = ("ato", "mir", "sir", "avg", "top", "loo_stopping", "consolidated", "magic")
MILD = 1e3
SLOW = 2.0


@dataclass(frozen=True)
class Failure:
    """One claim that does not hold."""

    case: Case
    method: str
    what: str
    l: int
    pair: int
    detail: str

    def __str__(self) -> str:
        return (
            f"FAILURE {self.what}, method {self.method}, {self.case}, C number {self.l}, pair "
            f"{self.pair}: {self.detail}\n"
            f"    from campaign.run import examine; examine({self.case.number}, "
            f"methods=[{self.method!r}])"
        )


def examine(
    number: int, methods: list[str] | None = None, quick: bool = True, counts: Counter | None = None
) -> list[Failure]:
    """All failures of problem ``number``; ``counts`` adds up what was looked at."""
    counts = Counter() if counts is None else counts
    case = make_case(number)
    folds = make_folds(case.cv, None, case.y)
    small = Small(case.K, case.y, case.weight)
    task = make_task(small, case.Cs, folds, fit_intercept=case.fit_intercept)
    start = time.process_time()
    tasks = dict.fromkeys(methods or _methods(case, folds), task)
    if "exact" in tasks:
        tasks["exact, labels by proof"] = make_task(
            small, case.Cs, folds, fit_intercept=case.fit_intercept, decision=False
        )
    runs, failures = {}, []
    for name, one in tasks.items():
        try:
            runs[name] = run(one, name.split(",", maxsplit=1)[0])
        except Exception as error:  # whatever it is, a user would see it
            failures.append(Failure(case, name, "error", -1, -1, repr(error)))
    spent = time.process_time() - start
    truth = solve_all(case.K, case.y, case.weight, folds, task.grid, case.fit_intercept, quick)
    counts["problems"] += 1
    counts["truth by Clarabel"] += int((truth.by == 1).sum())
    counts["truth in whole numbers"] += int((truth.by == 2).sum())
    counts["truth by interior point"] += int((truth.by == 3).sum())
    counts["truth open"] += int(truth.open.sum())
    for method, one in runs.items():
        failures += _lies(case, folds, method, one, truth, counts)
    failures += _disagreements(case, folds, runs)
    if spent > SLOW:
        counts["slow"] += 1
        print(f"slow: {spent:.1f} s, {case}", flush=True)
    return failures


def _methods(case: Case, folds: Folds) -> list[str]:
    chosen = ["exact", "refit"]
    hard = case.Cs.max() * np.abs(case.K.diagonal()).max() > MILD or np.ptp(case.weight) > 0.9
    if folds.leave_one_out and not hard:
        chosen.append(OTHERS[case.number % len(OTHERS)])
    return chosen


def _claimed(one: Run, folds: Folds) -> np.ndarray:
    """Which pairs are called exact."""
    ledger = one.ledger
    sound = (ledger.kkt <= TOL) & (ledger.gap <= TOL)
    return (sound[:, :-1] | (ledger.how == PROVED))[:, folds.pair_folds]


def _lies(
    case: Case, folds: Folds, method: str, one: Run, truth: Truth, counts: Counter
) -> list[Failure]:
    """Labels and values that are called exact and are not."""
    ledger, top = one.ledger, float(np.diagonal(case.K).max())
    claimed = _claimed(one, folds) & ~truth.open
    y = case.y[folds.pair_rows]
    right = y * truth.value > tolerances.TIE
    edge = np.abs(y * truth.value - tolerances.TIE) <= truth.error + 0.1 * tolerances.TIE
    kkt, gap = ledger.kkt[:, folds.pair_folds], ledger.gap_abs[:, folds.pair_folds]
    valued = claimed & np.isfinite(ledger.decision)
    with np.errstate(invalid="ignore"):
        off = np.abs(ledger.decision - truth.value)
        # f, b (a quantile of values of f, at a row that misses its knot by kkt), the truth, h + b.
        allowed = 2.0 * np.sqrt(2.0 * gap * top) + 2.0 * kkt + truth.error
        allowed = allowed + 1e-15 * (1.0 + np.abs(truth.value))
        checks = {
            "wrong label": claimed & (ledger.wrong == right) & ~edge,
            "wrong value": valued & (off > allowed),
        }
    counts["labels"] += claimed.size
    counts["labels called exact"] += int(claimed.sum())
    counts["values called exact"] += int(valued.sum())
    failures = []
    for what, bad in checks.items():
        counts[what] += int(bad.sum())
        for l, p in np.argwhere(bad)[:1]:
            detail = (
                f"value {ledger.decision[l, p]!r}, truth {truth.value[l, p]!r} +- "
                f"{truth.error[l, p]:.1e}, kkt {kkt[l, p]:.1e}, gap implies {allowed[l, p]:.1e}"
            )
            failures.append(Failure(case, method, what, int(l), int(p), detail))
    return failures


def _disagreements(case: Case, folds: Folds, runs: dict[str, Run]) -> list[Failure]:
    """Labels that change when proofs are switched off."""
    one, two = runs.get("exact"), runs.get("exact, labels by proof")
    if one is None or two is None:
        return []
    both = _claimed(one, folds) & _claimed(two, folds)
    differ = np.argwhere(both & (one.ledger.wrong != two.ledger.wrong))[:1]
    return [Failure(case, "exact", "proof", int(l), int(p), "label differs") for l, p in differ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="number of the first problem")
    parser.add_argument("--thorough", action="store_true", help="the interior point for everything")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    counts: Counter = Counter()
    failures = 0
    for number in range(chosen.seed, chosen.seed + chosen.count):
        for failure in examine(number, quick=not chosen.thorough, counts=counts):
            print(failure, flush=True)
            failures += 1
        if (number + 1) % 500 == 0:
            print(f"{number + 1}: {dict(counts)}", flush=True)
    print({**counts, "failures": failures})
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
