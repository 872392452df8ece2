"""What the scripts for the tables of the magic-LOO and consolidated-CV papers share.

Each script makes one table or figure:  python magic_table1.py [--quick | --full] [--data DIR].
The default sizes are the papers' without the largest; ``--write`` puts the table in
RESULTS_papers1.md, between markers of its own.  Times are CPU seconds of one thread, so that
other work on the machine disturbs them little.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from machine import facts
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import exactcv
from exactcv.folds import leave_one_out_folds
from exactcv.ledger import Ledger
from exactcv.losses import hinge
from exactcv.methods.magic import one_path
from exactcv.parallel import Workers
from exactcv.problem import Grid, Problem, Task
from exactcv.smooth_losses import SMOOTH_LOSSES

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS_papers1.md"
FIGURES = HERE / "figures"
HEAD = "# The papers' tables: magic LOO and consolidated CV\n"
N_TEST = 10_000


def options(what: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=what)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="the smallest sizes, one run")
    size.add_argument("--full", action="store_true", help="the papers' sizes and numbers of runs")
    parser.add_argument(
        "--data", default=os.environ.get("EXACTCV_DATA"), help="folder of data sets"
    )
    parser.add_argument("--write", action="store_true", help=f"write to {RESULTS.name}")
    return parser.parse_args()


# ---- data ----------------------------------------------------------------------------------------


def simulation(n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test rows of one draw of centres."""
    X, y = exactcv.datasets.make_mixture(n + N_TEST, p, random_state=seed)
    return X[:n], y[:n], X[n:], y[n:]


def data_set(folder: str | None, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """A standardised data set, or None if it is not there."""
    path = Path(folder or "") / f"{name}.csv.gz"
    if folder is None or not path.exists():
        return None
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    X, y = table[:, :-1], table[:, -1]
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), y


# ---- our side ------------------------------------------------------------------------------------


@dataclass
class Timed:
    """Seconds, and the result where there is one; ``note`` says how it was estimated."""

    seconds: float
    result: Any = None
    note: str = ""


def ours(X: np.ndarray, y: np.ndarray, method: str, **kwargs: Any) -> Timed:
    """All left-out decision values, from raw data to certificate, BLAS on one thread."""
    with threadpool_limits(limits=1):
        start = process_time()
        result = exactcv.cross_validate(X, y, method=method, output="decision", **kwargs)
        return Timed(process_time() - start, result)


def one_by_one(X: np.ndarray, y: np.ndarray, gamma: float, loss: str, sample: int = 4) -> Timed:
    """Ordinary leave-one-out with the solver of ``magic``: one fold after the other, each with the
    kernel matrix of its own rows, its own inverses, and its own path; estimated from some folds."""
    K, n = rbf_kernel(X, gamma=gamma), len(y)
    lambdas = np.exp(np.linspace(6, -6, 50))
    seconds = 0.0
    rows = np.linspace(0, n - 1, sample).astype(int)
    for j in rows:
        train = np.delete(np.arange(n), j)
        with threadpool_limits(limits=1), Workers(1) as workers:
            start = process_time()
            part = np.ascontiguousarray(K[np.ix_(train, train)])
            make = {"hinge": hinge, **SMOOTH_LOSSES}[loss]
            problem = Problem(part, y[train], np.ones(n - 1), make(y[train]), True)
            # C of leave-one-out: 1 / (2 n lambda), with all n rows.
            grid = Grid(1 / (2 * n * lambdas), lambdas, False)
            task = Task(problem, leave_one_out_folds(n - 1), grid, True, 1e-8)
            one_path(task, Ledger(task), workers)
            seconds += process_time() - start
    return Timed(seconds * n / sample, note=f"estimated from {sample} folds")


def test_error(timed: Timed, X: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> float:
    """Error of the full-data fit at the lambda that leave-one-out picks."""
    result = timed.result
    l = result.best
    f = rbf_kernel(X_test, X, gamma=result.gamma) @ result.coef[l] + result.intercept[l]
    return float(np.mean(y_test * f <= 0))


# ---- peers ---------------------------------------------------------------------------------------


def sklearn_refits(X: np.ndarray, y: np.ndarray, gamma: float, sample: int = 10) -> Timed:
    """``SVC.fit`` on a precomputed kernel for each (lambda, row); estimated from a few each."""
    K, n = rbf_kernel(X, gamma=gamma), len(y)
    lambdas = np.exp(np.linspace(6, -6, 50))
    seconds = 0.0
    for k in range(sample):
        C = 1 / (2 * n * lambdas[int((k + 0.5) * 50 / sample)])
        train = np.delete(np.arange(n), k * n // sample)
        part, labels = np.ascontiguousarray(K[np.ix_(train, train)]), y[train]
        with threadpool_limits(limits=1):
            start = process_time()
            SVC(C=C, kernel="precomputed", cache_size=1000).fit(part, labels)
            seconds += process_time() - start
    return Timed(seconds * 50 * n / sample, note=f"estimated from {sample} fits")


def libsvm_cv(X: np.ndarray, y: np.ndarray, gamma: float, sample: int = 2) -> Timed | str:
    """LIBSVM's own cross-validation, ``-t 4 -v n``; some lambdas, or why not."""
    try:
        from libsvm.svmutil import svm_parameter, svm_problem, svm_train
    except ImportError:
        return "LIBSVM: the package libsvm-official is not installed"
    K, n = rbf_kernel(X, gamma=gamma), len(y)
    problem = svm_problem(y, np.column_stack([np.arange(1, n + 1), K]), isKernel=True)
    seconds = 0.0
    for k in range(sample):
        lam = np.exp(6 - 12 * (k + 0.5) / sample)
        parameter = svm_parameter(f"-q -t 4 -m 1000 -c {1 / (2 * n * lam)} -v {n}")
        start = process_time()
        with Silence():
            svm_train(problem, parameter)
        seconds += process_time() - start
    return Timed(seconds * 50 / sample, note=f"estimated from {sample} lambdas")


class Silence:
    """LIBSVM prints its accuracy whatever it is told."""

    def __enter__(self) -> None:
        sys.stdout.flush()
        self.held, self.out = sys.stdout, open(os.devnull, "w")
        sys.stdout = self.out

    def __exit__(self, *_: object) -> None:
        sys.stdout = self.held
        self.out.close()


def torchkm_cv(X: np.ndarray, y: np.ndarray, gamma: float) -> Timed | str:
    """TorchKM's leave-one-out; fold ids must be 1..n."""
    try:
        import torch
        from torchkm.cvksvm import cvksvm
    except ImportError:
        return "TorchKM: the package torchkm is not installed"
    K, n = rbf_kernel(X, gamma=gamma), len(y)
    lambdas = np.exp(np.linspace(6, -6, 50))
    start = process_time()
    model = cvksvm(
        Kmat=torch.from_numpy(K), y=torch.from_numpy(y), nlam=50, ulam=torch.from_numpy(lambdas),
        foldid=torch.arange(1, n + 1), nfolds=n, device="cpu",
    )  # fmt: skip
    model.fit()
    return Timed(process_time() - start)


R_SCRIPT = """
args <- commandArgs(TRUE); d <- as.matrix(read.csv(args[1], header=FALSE)); p <- ncol(d)
x <- d[,-p]; y <- factor(d[,p]); n <- nrow(x); gamma <- as.numeric(args[2])
k <- as.integer(args[3]); lam <- exp(6 - 12 * (seq_len(k) - 0.5) / k); t <- 0
for (i in seq_len(k)) { C <- 1 / (2 * n * lam[i]); out <- 1 + (i * 7) %% n
  t <- t + if (args[4] == "kernlab") system.time(kernlab::ksvm(x[-out,], y[-out], kernel="rbfdot",
    kpar=list(sigma=gamma), C=C, scaled=FALSE))[1] else system.time(e1071::svm(x[-out,], y[-out],
    gamma=gamma, cost=C, scale=FALSE))[1] }
cat(t * 50 * n / k)
"""


def r_refits(
    X: np.ndarray, y: np.ndarray, gamma: float, package: str, sample: int = 10
) -> Timed | str:
    """kernlab or e1071, one fit a fold, through Rscript; or why not."""
    if shutil.which("Rscript") is None:
        return f"{package}: Rscript is not installed"
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".csv") as table:
        np.savetxt(table, np.column_stack([X, y]), delimiter=",")
        table.flush()
        command = ["Rscript", "-e", R_SCRIPT, table.name, str(gamma), str(sample), package]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"{package}: {done.stderr.strip().splitlines()[-1] if done.stderr else 'R failed'}"
    return Timed(float(done.stdout), note=f"estimated from {sample} fits")


PEERS: dict[str, Callable[..., Timed | str]] = {
    "scikit-learn": sklearn_refits,
    "LIBSVM -v n": libsvm_cv,
    "kernlab": lambda X, y, gamma: r_refits(X, y, gamma, "kernlab"),
    "e1071": lambda X, y, gamma: r_refits(X, y, gamma, "e1071"),
    "TorchKM": torchkm_cv,
}


def run_peers(X: np.ndarray, y: np.ndarray, gamma: float, skipped: set[str]) -> dict[str, str]:
    """Seconds of each peer as text; those that cannot run leave their reason in ``skipped``."""
    out = {}
    for name, run in PEERS.items():
        found = run(X, y, gamma)
        if isinstance(found, str):
            skipped.add(found)
        else:
            out[name] = f"{seconds(found.seconds)}" + ("*" if found.note else "")
    return out


# ---- tables --------------------------------------------------------------------------------------


def seconds(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def table(rows: Sequence[dict[str, str]]) -> str:
    names: list[str] = []
    for row in rows:
        names += [name for name in row if name not in names]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(row.get(name, "-") for name in names) + " |" for row in rows]
    return "\n".join(lines)


def publish(args: argparse.Namespace, title: str, body: Iterable[str]) -> None:
    """Print a section, and with --write put it in the results between its own markers."""
    name = Path(sys.argv[0]).stem
    flags = "".join(f" --{flag}" for flag in ("quick", "full") if getattr(args, flag))
    command = f"Made by `python benchmarks/{name}.py{flags} --write` on"
    text = "\n\n".join([f"## {title}", command, facts(), *body])
    print(text)
    if not args.write:
        return
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    old = RESULTS.read_text() if RESULTS.exists() else HEAD
    section = f"{begin}\n{text}\n{end}\n"
    if begin in old:
        head, rest = old.split(begin)
        old = head + section + rest.split(end + "\n", 1)[1]
    else:
        old = old.rstrip("\n") + "\n\n" + section
    RESULTS.write_text(old)


def bars(path: str, labels: Sequence[str], series: dict[str, Sequence[float]], ylabel: str) -> None:
    """A grouped bar chart on a log scale, saved as PNG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    width = 0.8 / len(series)
    for k, (name, values) in enumerate(series.items()):
        axes.bar(np.arange(len(labels)) + k * width, values, width, label=name)
    axes.set_xticks(np.arange(len(labels)) + 0.4 - width / 2, labels, fontsize=7)
    axes.set_yscale("log")
    axes.set_ylabel(ylabel)
    axes.legend(fontsize=7)
    FIGURES.mkdir(exist_ok=True)
    figure.savefig(FIGURES / path, dpi=90)
    plt.close(figure)
