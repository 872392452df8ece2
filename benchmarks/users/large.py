"""A 5-fold curve with features, against LinearSVC on the same features; a leave-one-out curve.

    python -m benchmarks.users.large --data DIR [--sets a9a w8a] [--components 200] [--write]
    python -m benchmarks.users.large --data DIR --loo [--sets a9a w8a] [--components 200] [--write]
    python -m benchmarks.users.large --data DIR --landmarks [--sets a9a w8a mixture] [...] [--write]
    python -m benchmarks.users.large --data DIR --squared [--sets a9a w8a] [...] [--write]

All rows as they are, gamma = 1/p, Nystroem, 9 values of C from 1e-2 to 1e2.  CPU seconds of one
thread, both sides in one run.  Ours has the features in its time; LinearSVC (hinge loss, its own
tolerance) is given them; with ``--peer-folds K`` the fits of K folds alone, and their seconds times
5 / K.  With ``--loo``: the leave-one-out curve beside the 5-fold curve.  With
``--landmarks``: random rows beside the centres of k-means, C = 10; the set "mixture" is the papers'
simulation, 30,000 rows, p = 20, with gamma by the median rule and C = 0.1.  With ``--squared``: the
squared loss, both curves, beside the leave-one-out of RidgeCV on the same features.
"""

from __future__ import annotations

from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import process_time
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib import command
from benchmarks.lib.machine import facts
from benchmarks.lib.results import markdown, write_section
from exactcv.lowrank.landmarks import landmarks_among

FILE, TITLE = "large", "Large data, with features in place of a kernel"
HEADS = {
    "folds": ["data", "m", "exactcv (s)", "45 LinearSVC fits (s)", "times faster", "least error",
              "theirs", "fits that did not converge", "exact", "free rows, at most"],
    "leave-one-out": ["data", "m", "5-fold (s)", "leave-one-out (s)", "ratio (bar: 3)",
                      "least error", "labels proved", "solved", "peak GB", "exact"],
    "landmarks": ["data", "m", "landmarks", "left of a row on average", "at most", "5-fold error",
                  "landmarks (s)", "5-fold (s)"],
    "squared": ["data", "m", "5-fold (s)", "leave-one-out (s)", "RidgeCV, features given (s)",
                "least error", "values apart from RidgeCV's", "KKT violation", "peak GB", "exact"],
}  # fmt: skip
CS = 10.0 ** np.arange(-2.0, 2.1, 0.5)


def curve(X: np.ndarray, y: np.ndarray, m: int, cv: Any, **more: Any) -> tuple[float, Any]:
    """CPU seconds, and the result."""
    start = process_time()
    found = exactcv.cross_validate(
        X, y, approx="nystroem", n_components=m, gamma=1.0 / X.shape[1], Cs=CS, cv=cv,
        random_state=0, n_jobs=1, **more,
    )  # fmt: skip
    return process_time() - start, found


def left_out(X: np.ndarray, y: np.ndarray, m: int) -> list[str]:
    """Seconds of both curves, and how the labels of the second were settled."""
    folds, _ = curve(X, y, m, 5)
    alone, found = curve(X, y, m, "loo")
    solved = found.stats["solved"] + found.stats["fallback"]
    share = 1.0 - solved / found.wrong.size
    peak = getrusage(RUSAGE_SELF).ru_maxrss / 1e6
    return [
        str(m), f"{folds:.1f}", f"{alone:.1f}", f"{alone / folds:.1f}", f"{found.error.min():.4f}",
        f"{share:.3%}", str(solved), f"{peak:.1f}", str(found.certificate.exact),
    ]  # fmt: skip


def squared(X: np.ndarray, y: np.ndarray, m: int) -> list[str]:
    """Seconds of both curves with the squared loss, and of RidgeCV."""
    folds, _ = curve(X, y, m, 5, loss="squared")
    alone, found = curve(X, y, m, "loo", loss="squared", output="decision")
    peak = getrusage(RUSAGE_SELF).ru_maxrss / 1e6
    Z, start = found.feature_map.transform(X), process_time()
    ridge = RidgeCV(alphas=1.0 / CS, scoring=None, store_cv_results=True).fit(Z, y)
    theirs = process_time() - start
    ours = (found.decision - y) ** 2
    apart = np.abs(np.sqrt(ours) - np.sqrt(ridge.cv_results_.T)).max()
    return [
        str(m), f"{folds:.1f}", f"{alone:.1f}", f"{theirs:.1f}", f"{found.error.min():.4f}",
        f"{apart:.0e}", f"{found.certificate.kkt.max():.0e}", f"{peak:.1f}",
        str(found.certificate.exact),
    ]  # fmt: skip


def one(X: np.ndarray, y: np.ndarray, m: int, peer_folds: int) -> list[str]:
    """Seconds, error and certificate of both sides."""
    seconds, ours = curve(X, y, m, 5)
    assert ours.feature_map is not None
    Z = ours.feature_map.transform(X)
    theirs, wrong, missed = _linear_svc(Z, y, peer_folds)
    best = int(np.argmin(ours.error))
    return [
        str(m), f"{seconds:.1f}", f"{theirs:.1f}", f"{theirs / seconds:.1f}",
        f"{ours.error[best]:.4f}", f"{wrong.min():.4f}", str(missed),
        str(ours.certificate.exact), str(max(ours.stats["free"])),
    ]  # fmt: skip


def landmarks(X: np.ndarray, y: np.ndarray, m: int, gamma: Any, C: float) -> list[list[str]]:
    """What the features leave of k(x, x) = 1, and the error, for both kinds of landmarks."""
    lines = []
    for how in ("random", "kmeans"):
        start = process_time()
        found = exactcv.cross_validate(
            X, y, approx="nystroem", n_components=m, gamma=gamma, Cs=[C], cv=5, random_state=0,
            n_jobs=1, method_options={"landmarks": how},
        )  # fmt: skip
        seconds = process_time() - start
        assert found.feature_map is not None
        left = 1.0 - (found.feature_map.transform(X[::10]) ** 2).sum(axis=1)
        start = process_time()
        landmarks_among(X, m, how)
        lines.append(
            [str(m), how, f"{left.mean():.4f}", f"{left.max():.3f}", f"{found.error[0]:.4f}",
             f"{process_time() - start:.2f}", f"{seconds:.1f}"]
        )  # fmt: skip
    return lines


def _linear_svc(Z: np.ndarray, y: np.ndarray, n_folds: int) -> tuple[float, np.ndarray, int]:
    """Seconds of five folds, told from the first ones; error; and fits that did not converge."""
    wrong, missed = np.zeros(len(CS)), 0
    folds = list(StratifiedKFold(5).split(Z, y))[:n_folds]
    start = process_time()
    for l, C in enumerate(CS):
        for train, test in folds:
            with catch_warnings():
                simplefilter("ignore")
                model = LinearSVC(C=C, loss="hinge", random_state=0).fit(Z[train], y[train])
            missed += model.n_iter_ >= model.max_iter
            wrong[l] += np.count_nonzero(model.predict(Z[test]) != y[test])
    n_tests = sum(len(test) for _, test in folds)
    return (process_time() - start) * 5 / n_folds, wrong / n_tests, missed


def rows_of(name: str, folder: str) -> tuple[np.ndarray, np.ndarray]:
    """A set of the folder, or the simulation."""
    if name == "mixture":
        return exactcv.datasets.make_mixture(30_000, 20, random_state=0)
    table = pd.read_csv(Path(folder) / f"{name}.csv.gz")
    return table.drop(columns="y").to_numpy(float), table["y"].to_numpy()


def _lines(
    key: str, name: str, X: np.ndarray, y: np.ndarray, m: int, peer_folds: int
) -> list[list[str]]:
    """The lines of one set with m features."""
    if key == "leave-one-out":
        return [[name, *left_out(X, y, m)]]
    if key == "squared":
        return [[name, *squared(X, y, m)]]
    if key == "folds":
        return [[name, *one(X, y, m, peer_folds)]]
    simulated = name == "mixture"
    gamma, C = ("median", 0.1) if simulated else (1.0 / X.shape[1], 10.0)
    return [[name, *line] for line in landmarks(X, y, m, gamma, C)]


def main() -> None:
    parser = command.parser(__doc__, {}, FILE)
    parser.add_argument("--sets", nargs="+", default=["a9a", "w8a"], metavar="NAME")
    parser.add_argument("--components", nargs="+", type=int, default=[200, 500])
    parser.add_argument(
        "--peer-folds", type=int, default=5, help="of LinearSVC; times five over it"
    )
    parser.add_argument("--loo", action="store_true", help="leave-one-out beside 5-fold")
    parser.add_argument("--landmarks", action="store_true", help="random rows beside k-means")
    parser.add_argument("--squared", action="store_true", help="the squared loss")
    args = command.parse_with_data(parser)
    asked = {"landmarks": args.landmarks, "leave-one-out": args.loo, "squared": args.squared}
    key = next((name for name, given in asked.items() if given), "folds")
    lines: list[list[Any]] = []
    with threadpool_limits(limits=1):
        for name in args.sets:
            X, y = rows_of(name, args.data)
            for m in args.components:
                found = _lines(key, name, X, y, m, args.peer_folds)
                lines += found
                for line in found:
                    command.say(" ".join(line))
    text = f"`{command.command_line()}`\n\n{facts()}\n\n{markdown(HEADS[key], lines)}"
    print(text)
    if args.write:
        write_section(FILE, key, text, TITLE)


if __name__ == "__main__":
    main()
