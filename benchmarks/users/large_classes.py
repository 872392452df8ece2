"""A 5-fold curve of ten classes with features, against LinearSVC one against one.

    python -m benchmarks.users.large_classes [--rows 60000] [--components 500] [--n-jobs 2]

Scikit-learn's digits (1,797 images of 8 x 8), each pixel three by three, at random places in
28 x 28, with noise: 784 numbers a row.  Copies of an image are in one fold.  gamma = 0.02,
Nystroem, 5 values of C from 1e-2 to 1e2.  CPU seconds and wall time of the whole fit, features
included.  LinearSVC (hinge loss, its own tolerance) is given the features and the best C alone, one
thread, so that its error can be put beside ours.
"""

from __future__ import annotations

from resource import RUSAGE_SELF, getrusage
from time import perf_counter, process_time
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib import command
from benchmarks.lib.machine import facts
from benchmarks.lib.results import markdown, write_section

FILE, TITLE = "large", "Large data, with features in place of a kernel"
HEAD = ["rows", "m", "threads", "exactcv (CPU s)", "wall (s)", "peak GB", "least error", "at C",
        "exact", "LinearSVC's error there", "its CPU s (that C alone)", "fits not converged",
]  # fmt: skip
CS = 10.0 ** np.arange(-2.0, 2.1)
GAMMA, SIDE, PIXEL, NOISE = 0.02, 28, 3, 0.1


def digits(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, classes, and the image that each row is made of."""
    X, y = load_digits(return_X_y=True)
    images = np.kron(X.reshape(-1, 8, 8) / 16.0, np.ones((PIXEL, PIXEL)))
    rng = np.random.default_rng(seed)
    which = np.concatenate([rng.permutation(len(y)) for _ in range(-(-n // len(y)))])[:n]
    rows, size = NOISE * rng.normal(size=(n, SIDE, SIDE)), 8 * PIXEL
    for row, image in zip(rows, which, strict=True):
        a, b = rng.integers(0, SIDE - size + 1, 2)
        row[a : a + size, b : b + size] += images[image]
    return rows.reshape(n, -1), y[which], which


def linear_svc(
    Z: np.ndarray, y: np.ndarray, groups: np.ndarray, C: float
) -> tuple[float, float, int]:
    """CPU seconds, error, and how many fits stopped before they converged."""
    start, wrong, missed = process_time(), 0, 0
    for train, test in StratifiedGroupKFold(5).split(Z, y, groups):
        model = OneVsOneClassifier(LinearSVC(C=C, loss="hinge", random_state=0))
        with catch_warnings():
            simplefilter("ignore")
            model.fit(Z[train], y[train])
        missed += sum(one.n_iter_ >= one.max_iter for one in model.estimators_)
        wrong += np.count_nonzero(model.predict(Z[test]) != y[test])
    return process_time() - start, wrong / len(y), missed


def one(n: int, m: int, n_jobs: int) -> list[str]:
    """A line of the table."""
    X, y, groups = digits(n)
    model = exactcv.SVCCV(
        approx="nystroem", n_components=m, gamma=GAMMA, Cs=CS, cv=StratifiedGroupKFold(5),
        random_state=0, n_jobs=n_jobs,
    )  # fmt: skip
    start, wall = process_time(), perf_counter()
    model.fit(X, y, groups=groups)
    start, wall = process_time() - start, perf_counter() - wall
    peak = getrusage(RUSAGE_SELF).ru_maxrss / 1e6
    ours = [
        str(n), str(m), str(n_jobs), f"{start:.0f}", f"{wall:.0f}", f"{peak:.1f}",
        f"{1 - model.best_score_:.4f}", f"{model.C_:g}", str(model.certificate_.exact),
    ]  # fmt: skip
    command.say(" ".join(ours))
    seconds, error, missed = linear_svc(model.feature_map_.transform(X), y, groups, model.C_)
    return [*ours, f"{error:.4f}", f"{seconds:.0f}", str(missed)]


def main() -> None:
    parser = command.parser(__doc__, {}, FILE)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--components", type=int, default=500)
    parser.add_argument("--n-jobs", type=int, default=2)
    args = parser.parse_args()
    with threadpool_limits(limits=1):
        line = one(args.rows, args.components, args.n_jobs)
    text = f"`{command.command_line()}`\n\n{facts()}\n\n{markdown(HEAD, [line])}"
    print(text)
    if args.write:
        write_section(FILE, "classes", text, TITLE)


if __name__ == "__main__":
    main()
