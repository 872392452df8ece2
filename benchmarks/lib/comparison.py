"""Leave-one-out by our methods, by the same solver fold by fold, and by other libraries.

For the tables of the magic-LOO and consolidated-CV papers.  Times are CPU seconds of one thread, so
that other work on the machine disturbs them little.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

import exactcv
from exactcv.algorithms.magic import one_path
from exactcv.judge.ledger import Ledger
from exactcv.problem.differentiable import LOSS_BY_NAME
from exactcv.problem.folds import leave_one_out_folds
from exactcv.problem.grid import Grid
from exactcv.problem.problem import Problem, Task
from exactcv.runtime.threads import Workers

from .data import Draw
from .kept_table import Row, table
from .other_solvers import LAMBDAS, PEERS, Fit, Job
from .results import bars, seconds

METHODS = ("exact", "consolidated", "magic")
ALONE = "same solver, fold by fold"


# ---- our side ------------------------------------------------------------------------------------


def ours(X: np.ndarray, y: np.ndarray, method: str, **kwargs: Any) -> tuple[float, Any]:
    """All left-out decision values, from raw data to certificate, BLAS on one thread."""
    with threadpool_limits(limits=1):
        start = process_time()
        result = exactcv.cross_validate(
            X, y, method=method, output="decision", **({"lambdas": 50} | kwargs)
        )
        return process_time() - start, result


def one_by_one(
    X: np.ndarray,
    y: np.ndarray,
    gamma: float,
    loss: str,
    fit_intercept: bool = True,
    tol: float = 1e-6,
) -> float:
    """Ordinary leave-one-out with the solver of ``magic``, estimated from two folds.

    One fold comes after the other, each with the kernel matrix of its own rows, its own inverses
    and its own path.
    """
    K, n, sample = rbf_kernel(X, gamma=gamma), len(y), 2
    seconds = 0.0
    for j in np.linspace(0, n - 1, sample).astype(int):
        train = np.delete(np.arange(n), j)
        with threadpool_limits(limits=1), Workers(1) as workers:
            start = process_time()
            part = np.ascontiguousarray(K[np.ix_(train, train)])
            f_loss = LOSS_BY_NAME[loss](y[train])
            problem = Problem(part, y[train], np.ones(n - 1), f_loss, fit_intercept)
            # C of leave-one-out: 1 / (2 n lambda), with all n rows.
            grid = Grid(1 / (2 * n * LAMBDAS), LAMBDAS, False)
            task = Task(problem, leave_one_out_folds(n - 1), grid, True, tol)
            one_path(task, Ledger(task), workers)
            seconds += process_time() - start
    return seconds * n / sample


# ---- all sides -----------------------------------------------------------------------------------


def run_peers(job: Job, leave_out: Sequence[str] = ()) -> tuple[dict[str, Fit], list[str]]:
    """Each peer's times and fit, and the reasons of those that did not run."""
    fits, skipped = {}, []
    for name, run in PEERS.items():
        if name in leave_out:
            continue
        found = run(job)
        if isinstance(found, str):
            skipped.append(found)
        else:
            fits[name] = found
    return fits, skipped


def compare(draws: Sequence[Draw], leave_out: Sequence[str] = ()) -> Row:
    """Seconds, objective and test error of every column.

    Ours are means over the draws; peers and the same solver fold by fold take the first draw, at
    the lambda that leave-one-out picks there.
    """
    found = {name: [ours(d[0], d[1], name, tol=1e-6) for d in draws] for name in METHODS}
    X, y, X_test, y_test = draws[0]
    base = found["exact"][0][1]
    job = Job(X, y, base.gamma, base.best, len(y))
    alone = one_by_one(X, y, base.gamma, "hinge")
    fits, skipped = run_peers(job, leave_out)
    times = {name: float(np.mean([spent for spent, _ in found[name]])) for name in METHODS}
    fits = {n: Fit(0.0, r.coef[base.best], float(r.intercept[base.best])) for n in METHODS
            for r in [found[n][0][1]]} | fits  # fmt: skip
    quality = {name: _quality(job, fit, X_test, y_test) for name, fit in fits.items()}
    apart = {
        name: max(
            float(np.abs(r.decision - e.decision).max())
            for (_, r), (_, e) in zip(found[name], found["exact"], strict=True)
        )
        for name in METHODS
    }
    return {
        "seconds": times | {ALONE: alone} | {k: f.seconds for k, f in fits.items() if f.basis},
        "basis": {k: f.basis for k, f in fits.items() if f.basis} | {ALONE: "2 folds"},
        "objective": {k: v[0] for k, v in quality.items()},
        "test error": {k: v[1] for k, v in quality.items()},
        "decision": max(apart.values()),
        "exact": all(r.certificate.exact for name in METHODS for _, r in found[name]),
        "fallback": sum(r.stats["fallback"] for name in METHODS for _, r in found[name]),
        "runs": len(draws),
        "skipped": skipped,
    }


def _quality(job: Job, fit: Fit, X_test: np.ndarray, y_test: np.ndarray) -> tuple[float, float]:
    """Objective and test error of a fit to all rows."""
    assert fit.coef is not None
    h = job.kernel() @ fit.coef
    hinge_loss = np.maximum(0, 1 - job.y * (h + fit.intercept)).mean()
    f = rbf_kernel(X_test, job.X, gamma=job.gamma) @ fit.coef + fit.intercept
    return float(hinge_loss + LAMBDAS[job.best] * fit.coef @ h), float(np.mean(y_test * f <= 0))


def comparison(rows: dict[str, Row]) -> list[str]:
    """Three tables of rows made by `compare`: seconds, ratios, agreement."""
    columns = [*METHODS, ALONE, *PEERS]
    times = [
        {"": name} | {c: _marked(row, c) for c in columns if c in row["seconds"]}
        for name, row in rows.items()
    ]
    ratios = [{"": name} | _ratios(row["seconds"]) for name, row in rows.items()]
    agree = [{"": name} | _agreement(row) for name, row in rows.items()]
    return [table(times), table(ratios), table(agree)]


def _marked(row: Row, column: str) -> str:
    return seconds(row["seconds"][column]) + ("*" if row["basis"].get(column) else "")


def _ratios(spent: dict[str, float]) -> dict[str, str]:
    out = {"magic / consolidated": f"{spent['magic'] / spent['consolidated']:.2f}"}
    for method in ("magic", "consolidated"):
        out[f"fold by fold / {method}"] = f"{spent[ALONE] / spent[method]:.1f}"
    peers = {name: spent[name] for name in PEERS if name in spent}
    if peers:
        quickest = min(peers, key=lambda name: peers[name])
        for method in METHODS:
            ratio = peers[quickest] / spent[method]
            out[f"quickest peer / {method}"] = f"{ratio:.3g} ({quickest})"
    return out


def _agreement(row: Row) -> dict[str, str]:
    """Objective and test error of `exact`, and how far from them the others are."""
    objective, error = row["objective"], row["test error"]
    out = {"objective": f"{objective['exact']:.6f}", "test error": f"{error['exact']:.4f}"}
    for name in objective:
        if name != "exact":
            by = objective[name] - objective["exact"]
            out[name] = f"{by:+.0e}, {error[name] - error['exact']:+.4f}"
    out["decision values differ by"] = f"{row['decision']:.0e}"
    out["certified at 1e-6"] = "yes" if row["exact"] else "**NO**"
    out["fallback"] = str(row["fallback"])
    return out


def not_run(rows: dict[str, Row]) -> str:
    reasons = sorted({reason for row in rows.values() for reason in row.get("skipped", [])})
    return f"Not run: {'; '.join(reasons) or 'nothing'}."


def time_bars(key: str, rows: dict[str, Row]) -> None:
    """Seconds of every column that all rows have."""
    names = [c for c in [*METHODS, ALONE, *PEERS] if all(c in r["seconds"] for r in rows.values())]
    series = {name: [row["seconds"][name] for row in rows.values()] for name in names}
    bars(key, [name.replace(",", "\n") for name in rows], series, "CPU seconds, 50 lambdas")
