"""Do all strategies of the smooth SVM and an ordinary refit give the same left-out values?

Every fold of every data set, kernel and scheme, c from 1e-3 to 1e3, without sampling.  A refit
knows nothing of the fold's place in the full problem: it gets the training rows (and the kernel
matrix between them) as data of their own.

    python -m benchmarks.papers.rank_r_ssvm.agreement --data DIR [--only NAME] [--write]

Takes about fifteen minutes; colon and leuk alone a few seconds.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import product

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib.command import say
from benchmarks.lib.data import scaled
from benchmarks.lib.results import markdown
from exactcv.algorithms.rank_update.design import Design, make_design
from exactcv.algorithms.rank_update.newton_armijo import leave_afresh

from . import rows

BREAST = "breast cancer"
CS = 10.0 ** np.arange(-3, 4)
STRATEGIES = ("I", "II", "none", "auto")
BAR, GRADIENT = 1e-8, 1e-10
# Strategy I inverts a matrix of this size for each c; beyond it takes too long to be of use.
LARGEST = 3000
EPSILON = float(np.finfo(float).eps)

HOW = f"""\
The largest differences, over all folds, all rows and c = 1e-3, 1e-2, ..., 1e3, between left-out
decision values: of strategies I, II, none and auto against ordinary refits (bar {BAR:.0e}), and of
the strategies among themselves (strategy I is left out of leuk, linear, where it inverts a matrix
of 7,130 rows; smaller tests cover p >> n).  Features scaled to [-1, 1]; RBF with the median gamma.
*gradient*: the largest ||g|| of any fold and strategy as certified, and its c (bar
{GRADIENT:.0e}); *limit*: a worst-case bound for what float64 may leave of the gradient at that c
when the solution is stored without any error but rounding, eps ||H|| ||u|| (in the linear model,
where w = X' coef is stored as coef, eps ||H|| ||X|| ||coef||).  A gradient above the bar but below
this limit is marked "rounding": the bar is missed there, and float64 does not promise better."""


@dataclass(frozen=True)
class Agreement:
    name: str
    kernel: str
    cv: str
    to_refit: float
    among: float
    gradient: float
    at: float
    limit: float
    exact: bool

    @property
    def verdict(self) -> str:
        if self.to_refit > BAR or not self.exact or self.gradient > max(GRADIENT, self.limit):
            return "MISSED"
        return "met" if self.gradient <= GRADIENT else "values met; gradient: rounding"


def load(name: str, folder: str) -> tuple[np.ndarray, np.ndarray]:
    if name != BREAST:
        return rows.load(name, folder)
    X, y = load_breast_cancer(return_X_y=True)
    return scaled(X), np.where(y == 1, 1.0, -1.0)


def compare(name: str, kernel: str, cv: str, folder: str) -> Agreement:
    X, y = load(name, folder)
    runs = {
        strategy: rows.cross_validated(X, y, kernel, cv, strategy, "median", CS)
        for strategy in STRATEGIES
        if strategy != "I" or kernel != "linear" or X.shape[1] < LARGEST
    }
    auto = runs["auto"]
    values = np.array([found.decision for found in runs.values()])
    data = X if kernel == "linear" else rbf_kernel(X, gamma=auto.gamma)
    refits = np.array([refit(data, y, kernel, cv, c) for c in CS])
    # The certificate is relative to max(1, ||theta||); the bar is on ||g||.
    solutions = zip(auto.coef, auto.intercept, strict=True)
    lengths = np.array([length(data, kernel, coef, b) for coef, b in solutions])
    worst = np.max([found.certificate.kkt for found in runs.values()], axis=0)
    gradient = worst * np.maximum(1.0, lengths)
    limit = EPSILON * (1.0 + CS * top(data, y, kernel)) * stored(data, kernel, auto, lengths)
    # The largest, unless another one is beyond its limit.
    beyond = gradient > np.maximum(GRADIENT, limit)
    at = int(np.argmax(np.where(beyond, np.inf, gradient)))
    return Agreement(
        name=f"{name}, {X.shape[0]} x {X.shape[1]}",
        kernel=kernel,
        cv=cv,
        to_refit=float(np.abs(values - refits).max()),
        among=float(np.ptp(values, axis=0).max()),
        gradient=float(gradient[at]),
        at=float(CS[at]),
        limit=float(limit[at]),
        exact=all(found.certificate.exact for found in runs.values()),
    )


def refit(data: np.ndarray, y: np.ndarray, kernel: str, cv: str, c: float) -> np.ndarray:
    """Left-out decision values of all rows at one c, each fold solved on its own."""
    values, none = np.empty(len(y)), np.zeros(0, dtype=np.intp)
    whole = design(data, y, kernel)
    guess = leave_afresh(whole, c, whole.used, none, whole.used).active
    for out in rows.folds_of(y, cv):
        train = np.setdiff1d(np.arange(len(y)), out)
        part = data[train] if kernel == "linear" else data[np.ix_(train, train)]
        mine = design(part, y[train], kernel)
        # From zero where that takes no hours; a guess changes the road, not the minimum.
        start = mine.used if len(y) < 400 or cv != "loo" else guess[train]
        found = leave_afresh(mine, c, mine.used, none, start)
        w, b = mine.split(found.theta)
        values[out] = (data[out] if kernel == "linear" else data[np.ix_(out, train)]) @ w + b
    return values


def design(data: np.ndarray, y: np.ndarray, kernel: str) -> Design:
    return make_design(data, y, np.ones(len(y)), True, kernel != "linear")


def length(data: np.ndarray, kernel: str, coef: np.ndarray, b: float) -> float:
    """||theta|| of a full-data solution."""
    w = data.T @ coef if kernel == "linear" else coef
    return float(np.hypot(np.linalg.norm(w), b))


def stored(
    data: np.ndarray, kernel: str, found: exactcv.CVResult, lengths: np.ndarray
) -> np.ndarray:
    """The size of what float64 rounds off, in units of theta: theta's, or of X' coef."""
    if kernel != "linear":
        return lengths
    return np.linalg.norm(data, 2) * np.linalg.norm(found.coef, axis=1)


def top(data: np.ndarray, y: np.ndarray, kernel: str) -> float:
    """The largest eigenvalue of A'A."""
    return float(np.linalg.norm(design(data, y, kernel).A, 2) ** 2)


def table(found: list[Agreement]) -> str:
    head = ["data", "kernel", "folds", "from refits", "among strategies", "gradient", "at c"]
    body = [
        [
            *(row.name, row.kernel, row.cv, f"{row.to_refit:.0e}", f"{row.among:.0e}"),
            *(f"{row.gradient:.0e}", f"{row.at:g}", f"{row.limit:.0e}", row.verdict),
        ]
        for row in found
    ]
    return HOW + "\n\n" + markdown([*head, "limit", "bars"], body)


def main() -> None:
    chosen = rows.options(__doc__)
    missed = []
    for name in chosen.only or (*rows.NAMES, BREAST):
        found = []
        with threadpool_limits(1):
            for kernel, cv in product(("linear", "rbf"), ("loo", "10-fold")):
                found.append(compare(name, kernel, cv, chosen.data))
                say(str(found[-1]))
        missed += [row for row in found if row.verdict == "MISSED"]
        rows.report(f"Agreement of strategies and refits: {name}", table(found), chosen)
    if missed:
        sys.exit(f"bars were missed: {missed}")


if __name__ == "__main__":
    main()
