"""``exactcv demo``: leave-one-out on a bundled data set, and what ordinary refits would cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

from ..crossval.cross_validate import cross_validate
from ..crossval.result import CVResult
from ..datasets import load_breast_cancer
from ..problem.kernels import Kernel, kernel_matrix
from ..report import words as report
from ..runtime.threads import SingleThreadedBlas
from ..storage.atomic import make_folder, write_bytes
from ..types import FloatArray, Output

__all__ = ["demo", "estimate_refits"]


def demo(
    *,
    method: str = "exact",
    output: Output = "decision",
    n_jobs: int = 1,
    progress: bool = True,
    out: Path | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Run it, print the table and the times, and write the report if there is a folder for it."""
    X, y = load_breast_cancer()
    n = len(y)
    say(f"Breast cancer (Wisconsin), standardised: {n} rows, {X.shape[1]} features.")
    say("Kernel SVM (RBF, median gamma), leave-one-out over the default grid of C.\n")
    result = cross_validate(X, y, method=method, output=output, n_jobs=n_jobs, progress=progress)
    say(report.curve_table(result) + "\n")
    say(report.summary(result) + "\n")

    K, _ = kernel_matrix(X, Kernel())
    seconds, n_timed = estimate_refits(K, y, result.Cs)
    total = result.timings["total"]
    say(f"this run, everything included:     {total:10.2f} s")
    say(f"ordinary refits with scikit-learn: {seconds:10.2f} s  ({seconds / total:.0f} times)")
    say(
        f"The second line is an estimate: {n_timed} of the {n * len(result.Cs)} fits of\n"
        "SVC(kernel='precomputed') were timed, at C spread over the grid with rows left\n"
        "out at random, and their mean multiplied up; computing the kernel is not counted."
    )
    if out is not None:
        say("\nwritten: " + ", ".join(str(path) for path in _write(result, out)))


def _write(result: CVResult, out: Path) -> list[Path]:
    """The report, and the curve if it can be drawn."""
    from ..report.html.page import Page, render
    from .results import curve_png

    make_folder(out)
    page = Page(overview=result._overview(), title="Breast cancer (Wisconsin)")
    files: dict[str, bytes | None] = {
        "report.html": render(page).encode(),
        "curve.png": curve_png(result),
    }
    written = []
    for name, data in files.items():
        if data is not None:
            write_bytes(out / name, data)
            written.append(out / name)
    return written


def estimate_refits(
    K: FloatArray, y: FloatArray, Cs: FloatArray, n_timed: int = 26
) -> tuple[float, int]:
    """Seconds that leave-one-out by refitting would take, and how many fits were timed."""
    from sklearn.svm import SVC

    rng = np.random.default_rng(0)
    n, spent = len(y), 0.0
    grid = np.linspace(0, len(Cs) - 1, n_timed).round().astype(int)
    with SingleThreadedBlas():
        for k in grid:
            train = np.delete(np.arange(n), rng.integers(n))
            K_train, y_train = K[np.ix_(train, train)], y[train]
            start = perf_counter()
            SVC(kernel="precomputed", C=Cs[k]).fit(K_train, y_train)
            spent += perf_counter() - start
    return spent / n_timed * n * len(Cs), n_timed
