"""The peers of the papers' tables: what others need for the same cross-validation.

Each peer gives CPU seconds for 50 lambdas and all folds (leave-one-out, or ``folds`` of them),
estimated from a sample where it is slow, and its own fit to all rows at one C, so that objective
and test error can be compared.  A peer that is not installed gives the reason instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

__all__ = ["LAMBDAS", "PEERS", "Fit", "Job"]

LAMBDAS = np.exp(np.linspace(6, -6, 50))


@dataclass
class Fit:
    """Seconds; the fit to all rows, f = K coef + intercept; how the seconds were found."""

    seconds: float
    coef: np.ndarray | None = None
    intercept: float = 0.0
    basis: str = ""


@dataclass
class Job:
    """Rows, labels, kernel, number of folds, and the grid point of the fit to all rows."""

    X: np.ndarray
    y: np.ndarray
    gamma: float
    best: int
    folds: int

    @property
    def n(self) -> int:
        return len(self.y)

    def C(self, l: int) -> float:
        return float(1 / (2 * self.n * LAMBDAS[l]))

    def kernel(self) -> np.ndarray:
        return rbf_kernel(self.X, gamma=self.gamma)

    def grid_sample(self, size: int) -> list[int]:
        """Grid points evenly spread."""
        return [int((k + 0.5) * len(LAMBDAS) / size) for k in range(size)]

    def train(self, k: int) -> np.ndarray:
        """Training rows of one fold; which one changes with k."""
        block = np.array_split(np.arange(self.n), self.folds)[k * 7 % self.folds]
        return np.delete(np.arange(self.n), block)


def scikit_learn(job: Job, sample: int = 20) -> Fit:
    """``SVC.fit`` on a precomputed kernel for each (lambda, fold); slices of K not counted."""
    K, seconds = job.kernel(), 0.0
    with threadpool_limits(limits=1):
        for k, l in enumerate(job.grid_sample(sample)):
            train = job.train(k)
            part, labels = np.ascontiguousarray(K[np.ix_(train, train)]), job.y[train]
            start = process_time()
            SVC(C=job.C(l), kernel="precomputed", cache_size=1000).fit(part, labels)
            seconds += process_time() - start
        model = SVC(C=job.C(job.best), kernel="precomputed").fit(K, job.y)
    coef = np.zeros(job.n)
    coef[model.support_] = model.dual_coef_[0]
    total = seconds * len(LAMBDAS) * job.folds / sample
    return Fit(total, coef, float(model.intercept_[0]), f"{sample} fits")


def libsvm(job: Job) -> Fit | str:
    """LIBSVM's own cross-validation on a precomputed kernel, ``-t 4 -v folds``."""
    try:
        from libsvm.svmutil import svm_parameter, svm_problem, svm_train
    except ImportError:
        return "LIBSVM: the package libsvm-official is not installed"
    K, n = job.kernel(), job.n
    problem = svm_problem(job.y, np.column_stack([np.arange(1, n + 1), K]), isKernel=True)
    sample = 4 if n <= 450 else 2
    seconds = 0.0
    # One thread: LIBSVM's OpenMP threads would count as CPU time while they wait.
    with _Silence(), threadpool_limits(limits=1):
        for l in job.grid_sample(sample):
            parameter = svm_parameter(f"-q -t 4 -m 1000 -c {job.C(l)} -v {job.folds}")
            start = process_time()
            svm_train(problem, parameter)
            seconds += process_time() - start
        model = svm_train(problem, svm_parameter(f"-q -t 4 -c {job.C(job.best)}"))
    coef = np.zeros(n)
    first = model.get_labels()[0]
    for row, (value,) in zip(model.get_sv_indices(), model.get_sv_coef(), strict=True):
        coef[row - 1] = first * value
    b = -first * model.rho[0]
    return Fit(seconds * len(LAMBDAS) / sample, coef, float(b), f"{sample} lambdas")


class _Silence:
    """LIBSVM prints its accuracy whatever it is told."""

    def __enter__(self) -> None:
        self.held, self.out = sys.stdout, open(os.devnull, "w")
        sys.stdout = self.out

    def __exit__(self, *_: object) -> None:
        sys.stdout = self.held
        self.out.close()


def torchkm(job: Job) -> Fit | str:
    """TorchKM's cross-validation with its defaults; leave-one-out needs fold ids 1..n."""
    try:
        import torch
        from torchkm.cvksvm import cvksvm
    except ImportError:
        return "TorchKM: the package torchkm is not installed"
    torch.set_num_threads(1)
    sample = 5 if job.n <= 450 else 3
    points = sorted({*job.grid_sample(sample), job.best})
    ids = np.concatenate(
        [np.full(len(part), k + 1) for k, part in enumerate(np.array_split(job.y, job.folds))]
    )
    K, y = torch.from_numpy(job.kernel()), torch.from_numpy(job.y.astype(float))
    start = process_time()
    model = cvksvm(
        Kmat=K, y=y, nlam=len(points), ulam=torch.from_numpy(LAMBDAS[points]),
        foldid=torch.from_numpy(ids), nfolds=job.folds, device="cpu",
    )  # fmt: skip
    with _Silence():
        model.fit()
    seconds = (process_time() - start) * len(LAMBDAS) / len(points)
    found = model.alpmat.numpy()[:, points.index(job.best)]
    return Fit(seconds, found[1:], float(found[0]), f"{len(points)} lambdas")


# ksvm is timed on the rows and on the kernel matrix, and the quicker form counts.
R_SCRIPT = """
a <- commandArgs(TRUE); d <- as.matrix(read.csv(a[1], header=FALSE)); p <- ncol(d)
x <- d[,-p]; y <- factor(d[,p]); n <- nrow(x); g <- as.numeric(a[2])
jobs <- as.matrix(read.csv(a[3], header=FALSE)); C0 <- as.numeric(a[5])
if (a[4] == "kernlab") {
  suppressMessages(library(kernlab)); K <- kernelMatrix(rbfdot(sigma=g), x)
  rows <- function(i, C) ksvm(x[i,], y[i], kernel="rbfdot", kpar=list(sigma=g), C=C, scaled=FALSE,
                              fit=FALSE)
  mat <- function(i, C) ksvm(as.kernelMatrix(K[i,i]), y[i], C=C, fit=FALSE)
  forms <- list(rows, mat)
} else {
  suppressMessages(library(e1071))
  forms <- list(function(i, C) svm(x[i,], y[i], gamma=g, cost=C, scale=FALSE, fitted=FALSE,
                                   cachesize=1000))
}
times <- sapply(forms, function(f) { t <- 0
  for (k in seq_len(nrow(jobs))) { i <- setdiff(seq_len(n), jobs[k,2]:jobs[k,3])
    t <- t + sum(system.time(f(i, jobs[k,1]))[1:2]) }
  t })
m <- forms[[1]](seq_len(n), C0)
if (a[4] == "kernlab") { cf <- coef(m)[[1]]; ix <- alphaindex(m)[[1]]; b <- -b(m) } else {
  cf <- m$coefs[,1]; ix <- m$index; b <- -m$rho }
cat(min(times), b, sep="\\n"); cat("\\n"); cat(paste(ix, cf), sep="\\n")
"""


def r_package(job: Job, package: str, sample: int = 10) -> Fit | str:
    """kernlab or e1071, one fit a fold, through Rscript."""
    if shutil.which("Rscript") is None:
        return f"{package}: Rscript is not installed"
    lines = []
    for k, l in enumerate(job.grid_sample(sample)):
        out = np.setdiff1d(np.arange(job.n), job.train(k)) + 1
        lines.append(f"{job.C(l)!r},{out[0]},{out[-1]}")
    with tempfile.TemporaryDirectory() as folder:
        table, wanted = Path(folder) / "rows.csv", Path(folder) / "jobs.csv"
        np.savetxt(table, np.column_stack([job.X, job.y]), delimiter=",")
        wanted.write_text("\n".join(lines) + "\n")
        command = ["Rscript", "-e", R_SCRIPT, str(table), repr(job.gamma), str(wanted), package]
        command.append(repr(job.C(job.best)))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"{package}: {done.stderr.strip().splitlines()[-1] if done.stderr else 'R failed'}"
    seconds, b, *pairs = done.stdout.split("\n")
    coef = np.zeros(job.n)
    for pair in pairs:
        if pair:
            row, value = pair.split()
            coef[int(row) - 1] = float(value)
    # R's packages take the class of the first row, or of the first level, as positive.
    sign = 1.0 if (coef * job.y).sum() > 0 else -1.0
    total = float(seconds) * len(LAMBDAS) * job.folds / sample
    return Fit(total, sign * coef, sign * float(b), f"{sample} fits")


PEERS = {
    "scikit-learn": scikit_learn,
    "kernlab": lambda job: r_package(job, "kernlab"),
    "e1071": lambda job: r_package(job, "e1071"),
    "LIBSVM -v": libsvm,
    "TorchKM": torchkm,
}
