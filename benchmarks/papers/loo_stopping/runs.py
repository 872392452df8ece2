"""What the two tables of the LOO-stopping paper share: its data, its grids, its two approaches.

The 13 IDA sets; the original splits where they are stored, else seeded splits of the same size.
Linear kernel: C = 10^-2, ..., 10^2.  RBF kernel: C = 500^(i/7) and gamma = 2^(-11 i/7),
i = 0, ..., 7.  (The paper prints gamma = 2^(11 i/7).  From 1 to 2048 nearly all of those make K the
identity on standardised features, so a lost minus sign is assumed.)

*Standard* is Algorithm 2 and *proposed* Algorithm 3: the same checks, seeds and SMO loop, without
and with the second problem; both by plain SMO to 1e-3, as in the paper.  Where the label is not
proved, both go on to a certified solution; that part is counted apart.

A run may take hours.  With ``--keep FILE`` what is measured goes to FILE at once and is not
measured again, so that a run can be stopped, taken up again, or shared between processes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.lib import command, results
from exactcv.algorithms import get_method
from exactcv.algorithms.base import Method
from exactcv.algorithms.loo_stopping.method import LooStopping
from exactcv.judge.ledger import Ledger
from exactcv.problem.folds import Folds
from exactcv.problem.grid import Grid
from exactcv.problem.losses import hinge
from exactcv.problem.problem import Problem, Task
from exactcv.runtime.threads import Workers

FILE = "loo_stopping"
TRAIN_SIZE = {
    "banana": 400, "breast_cancer": 200, "diabetis": 468, "flare_solar": 666, "german": 700,
    "heart": 170, "image": 1300, "ringnorm": 400, "splice": 1000, "thyroid": 140, "titanic": 150,
    "twonorm": 400, "waveform": 400,
}  # fmt: skip
QUICK_SETS = ("heart", "thyroid", "titanic", "twonorm")
KERNELS = ("linear", "rbf")
REALIZATIONS = 5
# Unless in the full form: how many rows of a set are left out in turn (all of them if it has no
# more than SMALL), and what is cut down for the three largest sets, whose SMO takes hours.
LEFT_OUT, QUICK_LEFT_OUT, SMALL = 100, 40, 200
LESS = {
    ("german", "linear"): 20, ("image", "linear"): 20, ("splice", "linear"): 10,
    ("german", "rbf"): 60, ("image", "rbf"): 40, ("splice", "rbf"): 300,
}  # fmt: skip
COARSE = {("german", "rbf"), ("image", "rbf"), ("splice", "rbf"), ("splice", "linear")}
COUNTS = (
    "kernel_evaluations", "finish_evaluations", "iterations", "second_iterations", "check_1",
    "check_2", "check_3", "stopped", "converged", "switched_off",
)  # fmt: skip

Record = dict[str, Any]


@dataclass(frozen=True)
class Realization:
    """One split of one set."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    original: bool


@dataclass(frozen=True)
class Model:
    """One kernel and its grid of C."""

    gamma: float | None
    Cs: np.ndarray

    def kernel(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        inner = A @ B.T
        if self.gamma is None:
            return inner
        square = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2.0 * inner
        return np.exp(-self.gamma * np.maximum(square, 0.0))

    def task(self, data: Realization, left_out: np.ndarray) -> Task:
        """Leave out these rows, one at a time; all others train."""
        K = self.kernel(data.X, data.X)
        n = len(data.y)
        problem = Problem(
            np.ascontiguousarray((K + K.T) / 2), data.y, np.ones(n), hinge(data.y), True
        )
        grid = Grid(self.Cs, 1 / (2 * n * self.Cs), scale_with_fold=False)
        rows = tuple(left_out.astype(np.intp)[:, None])
        return Task(problem, Folds(n, rows, rows), grid, want_decision=False, tol=1e-8)


@dataclass(frozen=True)
class Work:
    """One model on one realization of a set, and how many of its rows are left out in turn."""

    name: str
    realization: int
    kernel: str
    model: int
    left_out: int
    coarse: bool

    def rows(self) -> np.ndarray:
        """Which rows: a seeded sample, in order."""
        n = TRAIN_SIZE[self.name]
        order = np.random.default_rng([self.realization, n, 1]).permutation(n)
        return np.sort(order[: self.left_out])


class Bench:
    """Measures, and remembers what it measured."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.file = Path(options.keep) if options.keep else None
        self.known: dict[str, Record] = {}
        if self.file and self.file.exists():
            for line in self.file.read_text().splitlines():
                self.known.update(json.loads(line))

    def measure(self, work: Work, who: str) -> Record:
        """What ``who`` does on this work; see `contenders`."""
        key = _key(work, who)
        if key not in self.known:
            self.known[key] = self._run(work, contender(who))
            if self.file:
                with self.file.open("a") as out:
                    out.write(json.dumps({key: self.known[key]}) + "\n")
        return self.known[key]

    def has(self, work: Work) -> bool:
        """Have all contenders been measured on this work?"""
        return all(_key(work, who) in self.known for who in contenders())

    def _run(self, work: Work, method: Method) -> Record:
        """One run on one thread; seconds of processor time, which others' work hardly changes."""
        data = realization(self.options.data, work.name, work.realization)
        model = models(work.kernel, work.coarse)[work.model]
        task = model.task(data, work.rows())
        with threadpool_limits(limits=1), Workers(1) as workers:
            ledger = Ledger(task)
            start = process_time()
            stats = method.run(task, ledger, workers)
            seconds = process_time() - start
        values = ledger.coef @ model.kernel(data.X, data.X_test) + ledger.intercept[:, None]
        return {
            "seconds": seconds,
            "exact": bool(ledger.certificate().exact),
            "wrong": np.packbits(ledger.wrong).tobytes().hex(),
            "loo": ledger.wrong.mean(axis=1).tolist(),
            "test": (data.y_test * values <= 0).mean(axis=1).tolist(),
            "counts": {name: np.asarray(stats[name]).tolist() for name in COUNTS if name in stats},
        }


def _key(work: Work, who: str) -> str:
    return "/".join(map(str, (*vars(work).values(), who)))


def contenders() -> dict[str, Callable[[], Method]]:
    return {
        "standard": lambda: LooStopping(stopping=False, limit=None),
        "proposed": lambda: LooStopping(stopping=True, limit=None),
        "loo_stopping": lambda: get_method("loo_stopping"),
        "exact": lambda: get_method("exact"),
    }


def contender(who: str) -> Method:
    """One of the contenders; "eps=...": the standard approach at that eps, at its word."""
    if who.startswith("eps="):
        return LooStopping(stopping=False, limit=None, epsilon=float(who[4:]))
    return contenders()[who]()


def arguments(description: str | None) -> argparse.Namespace:
    sizes = {"quick": "four sets, few rows, smaller grids", "full": "the paper's form: hours"}
    parser = command.parser(description, sizes, FILE)
    parser.add_argument("--sets", nargs="+", choices=sorted(TRAIN_SIZE), metavar="NAME")
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS))
    parser.add_argument("--left-out", type=int, metavar="N", help="rows left out of a larger set")
    parser.add_argument("--realizations", type=int, default=1, help="of Table 3 (--full: 5)")
    parser.add_argument("--keep", metavar="FILE", help="what was measured, for the next run")
    parser.add_argument("--kept", action="store_true", help="Table 3 of what is kept, no more")
    options = command.parse_with_data(parser)
    options.realizations = REALIZATIONS if options.full else options.realizations
    options.sets = options.sets or (list(QUICK_SETS) if options.quick else sorted(TRAIN_SIZE))
    return options


def origin(data: str, name: str, count: int) -> str:
    """How many of the first realizations are the original splits, if not all are."""
    stored = sum(realization(data, name, k).original for k in range(count))
    if stored == count:
        return ""
    return " (seeded splits)" if not stored else f" ({stored} of {count} splits original)"


def left_out(options: argparse.Namespace, name: str, kernel: str) -> int:
    """How many rows of a set are left out in turn."""
    n = TRAIN_SIZE[name]
    if options.full or (n <= SMALL and not options.quick):
        return n
    usual = QUICK_LEFT_OUT if options.quick else LESS.get((name, kernel), LEFT_OUT)
    return min(n, options.left_out or usual)


def is_coarse(options: argparse.Namespace, name: str, kernel: str) -> bool:
    """Is the grid cut down?"""
    return bool(options.quick or ((name, kernel) in COARSE and not options.full))


@lru_cache(maxsize=2)
def realization(data: str, name: str, k: int) -> Realization:
    """The k-th split of a set."""
    stored = np.load(Path(data) / "ida" / f"{name}.npz")
    x, t, splits = stored["x"], stored["t"].astype(float), stored["train"]
    original = k < len(splits)
    seeded = np.random.default_rng([k, len(t)]).permutation(len(t))[: TRAIN_SIZE[name]]
    train = splits[k] if original else seeded
    test = np.setdiff1d(np.arange(len(t)), train)
    return Realization(x[train], t[train], x[test], t[test], original)


def models(kernel: str, coarse: bool) -> list[Model]:
    """The paper's grid; ``coarse``: C up to 1, or every second value of C and gamma."""
    if kernel == "linear":
        return [Model(None, 10.0 ** np.arange(-2, 1 if coarse else 3))]
    steps = np.arange(0, 8, 2 if coarse else 1) / 7
    return [Model(float(2.0 ** (-11 * i)), 500.0**steps) for i in steps]


def publish(
    options: argparse.Namespace, key: str, title: str, started: str, paragraphs: list[str]
) -> None:
    """Print a section, and with --write put it into the results file."""
    results.publish(FILE, key, title, [started, *paragraphs], "LOO stopping", options.write)
