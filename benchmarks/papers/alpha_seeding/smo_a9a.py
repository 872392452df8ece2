"""The working-set solver on a9a without a kernel matrix, beside scikit-learn's SVC.

    python -m benchmarks.papers.alpha_seeding.smo_a9a --data DIR [--full] [--write]

Both sides get the same rows, C, gamma, tolerance 1e-3 and a cache of 200 MB, on one thread; ours
holds float64 rows, the peer float32.  The peer gets the features dense, which is quicker for it
than sparse (with which ours works).  Both dual objectives are worked out here, in float64, from the
coefficients alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter, process_time

import numpy as np
from scipy import sparse
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.lib.data import read_rows
from benchmarks.lib.results import markdown
from exactcv.engine.kernel_rows import CachedRows
from exactcv.engine.smo import solve
from exactcv.problem.kernels import Kernel
from exactcv.problem.losses import hinge

from .runs import Settings, finish, parse

C, GAMMA, TOL, BUDGET = 100.0, 0.5, 1e-3, 200_000_000
QUICK_ROWS = 10_000
BLOCK = 1000


@dataclass(frozen=True)
class Side:
    """One solver's run."""

    name: str
    seconds: float
    cpu: float
    iterations: int
    evaluations: int | None
    coef: np.ndarray

    @property
    def n_support(self) -> int:
        return int(np.count_nonzero(self.coef))


def ours(X: np.ndarray, y: np.ndarray) -> Side:
    source = CachedRows(sparse.csr_matrix(X), Kernel("rbf", gamma=GAMMA), BUDGET)
    start, cpu = perf_counter(), process_time()
    answer = solve(source, hinge(y), np.full(len(y), C), tol=TOL, polish=False)
    seconds, cpu = perf_counter() - start, process_time() - cpu
    assert answer.converged
    return Side("exactcv", seconds, cpu, answer.iterations, answer.kernel_evaluations, answer.coef)


def peer(X: np.ndarray, y: np.ndarray) -> Side:
    model = SVC(C=C, gamma=GAMMA, tol=TOL, cache_size=BUDGET / 1e6)
    start, cpu = perf_counter(), process_time()
    model.fit(X, y)
    seconds, cpu = perf_counter() - start, process_time() - cpu
    coef = np.zeros(len(y))
    coef[model.support_] = model.dual_coef_[0]
    return Side("scikit-learn SVC", seconds, cpu, int(model.n_iter_[0]), None, coef)


def objective(X: np.ndarray, y: np.ndarray, coef: np.ndarray) -> float:
    """y'c - 1/2 c'Kc, block by block."""
    source = CachedRows(X, Kernel("rbf", gamma=GAMMA), BUDGET)
    used = np.flatnonzero(coef)
    square = 0.0
    for first in range(0, len(used), BLOCK):
        rows = used[first : first + BLOCK]
        square += coef[rows] @ (source.block(rows, used) @ coef[used])
    return float(y @ coef - 0.5 * square)


def report(settings: Settings) -> list[str]:
    X, y = read_rows(settings.data, "a9a")
    if not settings.full:
        X, y = X[:QUICK_ROWS], y[:QUICK_ROWS]
    sides = [ours(X, y), peer(X, y)]
    values = [objective(X, y, side.coef) for side in sides]
    head = ["solver", "wall s", "CPU s", "iterations", "kernel evaluations", "support vectors"]
    body = []
    for side, value in zip(sides, values, strict=True):
        count = "not told" if side.evaluations is None else f"{side.evaluations:.3g}"
        figures = [f"{side.seconds:.1f}", f"{side.cpu:.1f}", str(side.iterations), count]
        body.append([side.name, *figures, str(side.n_support), f"{value:.4f}"])
    ratio = sides[0].cpu / sides[1].cpu
    apart = abs(values[0] - values[1]) / abs(values[1])
    verdict = "met" if ratio <= 3 and apart <= 1e-4 else "**not met**"
    return [
        f"a9a, {len(y)} rows, C = {C:g}, gamma = {GAMMA:g}, tolerance {TOL:g}, cache 200 MB:",
        "",
        markdown([*head, "dual"], body),
        "",
        f"CPU time {ratio:.2f} times the peer's (bar: at most 3), objectives {apart:.1e} apart "
        f"relatively (bar: 1e-4): {verdict}.",
    ]


def main() -> None:
    settings = parse(__doc__)
    with threadpool_limits(limits=1):
        lines = report(settings)
    finish(settings, "smo_a9a", "The solver without a kernel matrix", lines)


if __name__ == "__main__":
    main()
