"""The command line: ``exactcv demo`` and ``exactcv methods``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from . import __version__, report
from .datasets import load_breast_cancer
from .exceptions import ExactCVError
from .kernels import Kernel, kernel_matrix
from .losses import FloatArray
from .methods import methods
from .validate import OUTPUTS, cross_validate

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help()
        return 2
    try:
        arguments.run(arguments)
    except ExactCVError as error:
        print(f"exactcv: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("exactcv: interrupted", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="exactcv", description="Exact cross-validation of kernel SVMs, with certificates."
    )
    parser.add_argument("--version", action="version", version=f"exactcv {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    demo = commands.add_parser("demo", help="leave-one-out over 50 lambdas on a bundled data set")
    demo.add_argument("--output", choices=OUTPUTS, default="decision", help="default: decision")
    demo.add_argument("--method", default="exact", help="see 'exactcv methods'; default: exact")
    demo.add_argument("--jobs", type=int, default=1, help="threads; default: 1")
    demo.add_argument("--quiet", action="store_true", help="show no progress")
    demo.set_defaults(run=_demo)
    listing = commands.add_parser("methods", help="list the methods and what they support")
    listing.set_defaults(run=_methods)
    return parser


def _methods(_: argparse.Namespace) -> None:
    for name, support in methods().items():
        print(f"{name}: {support.summary}")
        print(f"    losses: {', '.join(support.losses)}; folds: {', '.join(support.folds)}")
        print(f"    from: {support.paper}")


def _demo(arguments: argparse.Namespace) -> None:
    X, y = load_breast_cancer()
    n = len(y)
    print(f"Breast cancer (Wisconsin), standardised: {n} rows, {X.shape[1]} features.")
    print("Kernel SVM (RBF, median gamma), leave-one-out at 50 values of lambda.\n")
    result = cross_validate(
        X,
        y,
        method=arguments.method,
        output=arguments.output,
        n_jobs=arguments.jobs,
        progress=not arguments.quiet,
    )
    print(report.curve_table(result), end="\n\n")
    print(report.summary(result), end="\n\n")

    K, _ = kernel_matrix(X, Kernel())
    seconds, n_timed = estimate_refits(K, y, result.Cs)
    total = result.timings["total"]
    print(f"this run, everything included:     {total:10.2f} s")
    print(f"ordinary refits with scikit-learn: {seconds:10.2f} s  ({seconds / total:.0f} times)")
    print(
        f"The second line is an estimate: {n_timed} of the {n * len(result.Cs)} fits of\n"
        "SVC(kernel='precomputed') were timed, at lambdas spread over the grid with rows left\n"
        "out at random, and their mean multiplied up; computing the kernel is not counted."
    )


def estimate_refits(
    K: FloatArray, y: FloatArray, Cs: FloatArray, n_timed: int = 26
) -> tuple[float, int]:
    """Seconds that leave-one-out by refitting would take, and how many fits were timed."""
    from sklearn.svm import SVC

    rng = np.random.default_rng(0)
    n, spent = len(y), 0.0
    grid = np.linspace(0, len(Cs) - 1, n_timed).round().astype(int)
    with threadpool_limits(limits=1):
        for k in grid:
            train = np.delete(np.arange(n), rng.integers(n))
            K_train, y_train = K[np.ix_(train, train)], y[train]
            start = perf_counter()
            SVC(kernel="precomputed", C=Cs[k]).fit(K_train, y_train)
            spent += perf_counter() - start
    return spent / n_timed * n * len(Cs), n_timed


if __name__ == "__main__":
    sys.exit(main())
