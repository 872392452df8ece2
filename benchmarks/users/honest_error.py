"""The error after tuning: what the honest figures cost (whether they hold: ``honest_studies.py``).

    python -m benchmarks.users.honest_error [--parts loo pairs ...] [--write]

Costs are CPU seconds of one thread, ratios within one run, the plain side the least of three.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib import command
from benchmarks.lib.results import markdown, write_section
from exactcv import SVCCV, cross_validate, leave_pair_out, nested_cross_validate
from exactcv.problem.kernels import Kernel, gamma_value

FILE, TITLE = "honest_error", "The error after tuning"
CS = np.geomspace(1e-2, 1e3, 50)
TIMES = (0.25, 0.5, 1.0, 2.0, 4.0)  # gammas, in units of the median rule


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    start = process_time()
    found = work()
    return process_time() - start, found


def least(work: Callable[[], Any], times: int = 3) -> float:
    return min(cpu(work)[0] for _ in range(times))


def gammas(X: np.ndarray) -> list[float]:
    middle = gamma_value(X, Kernel())
    assert middle is not None
    return [middle * times for times in TIMES]


def mixture(n: int) -> tuple[np.ndarray, np.ndarray]:
    return exactcv.datasets.make_mixture(n, 20, random_state=0)


def grids() -> list[tuple[str, dict[str, Any]]]:
    return [("C from 1e-2 to 1e3", {"Cs": CS}), ("the papers' lambdas", {"lambdas": 50})]


# ---- what it costs -------------------------------------------------------------------------------


def loo(sizes: tuple[int, ...] = (100, 200), last: int | None = None) -> str:
    """Leave-one-out inside leave-one-out, 50 C x 5 gammas."""
    lines = []
    for name, grid in grids()[:last]:
        spent = []
        for n in sizes:
            X, y = mixture(n)
            settings: dict[str, Any] = {"n_jobs": 1, **grid}
            plain = least(lambda X=X, y=y, s=settings: SVCCV(gamma=gammas(X), **s).fit(X, y))
            work = partial(nested_cross_validate, X, y, gammas=gammas(X), **settings)
            seconds, found = cpu(work)
            assert found.certificate.exact
            spent.append(seconds)
            fits = 250 * n * (n - 1)
            lines.append([str(n), name, f"{fits:,}", f"{plain:.2f}", f"{seconds:.1f}",
                          f"{seconds / plain:.0f}", f"{seconds / fits * 1e6:.1f}"])  # fmt: skip
            command.say(" | ".join(lines[-1]))
        power = np.polyfit(np.log(sizes), np.log(spent), 1)[0]
        command.say(f"{name}: grows with n to the power {power:.2f}")
        lines[-1][1] += f" (grows with n to the power {power:.2f})"
    head = ["n", "grid", "inner models", "plain LOO s", "nested s", "times plain", "us a model"]
    return (
        "LOO inside LOO, papers' simulation (p = 20), 50 values of C x 5 gammas around the median "
        "rule. Bar: 60 times plain at n = 200.\n\n" + markdown(head, lines)
    )


def large() -> str:
    """The same up to n = 500."""
    bar = "Bar at n = 500: 5 minutes on two cores, which is 600 seconds of one."
    return loo((100, 250, 500), 1).replace("Bar: 60 times plain at n = 200.", bar)


def folds() -> str:
    """Five outer folds, inner leave-one-out."""
    lines = []
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    for name, grid in grids():
        settings: dict[str, Any] = {"n_jobs": 1, **grid}
        plain = least(lambda s=settings: SVCCV(gamma=gammas(X), **s).fit(X, y), 2)
        seconds, found = cpu(
            partial(nested_cross_validate, X, y, gammas=gammas(X), outer=5, **settings)
        )
        lines.append([name, f"{plain:.1f}", f"{seconds:.1f}", f"{seconds / plain:.1f}",
                      f"{found.error:.4f}", str(found.certificate.exact)])  # fmt: skip
        command.say(" | ".join(lines[-1]))
    head = ["grid", "plain LOO s", "nested s", "times plain", "error after tuning", "exact"]
    return (
        "Five outer folds with inner LOO, breast cancer (n = 569), 50 C x 5 gammas. Bar: 8 times "
        "plain LOO.\n\n" + markdown(head, lines)
    )


def pairs() -> str:
    """Leave-pair-out, n = 400."""
    X, y = mixture(400)
    lines = []
    for name, grid in grids():
        row = {
            output: least(lambda g=grid, o=output: cross_validate(X, y, n_jobs=1, output=o, **g), 2)
            / (400 * 50)
            for output in ("error", "decision")
        }
        for tournament in (False, True):
            seconds, found = cpu(
                partial(leave_pair_out, X, y, n_jobs=1, tournament=tournament, **grid)
            )
            assert found.certificate.exact
            count = 400 * 399 // 2 if tournament else found.n_pairs
            pair = seconds / (count * 50)
            lines.append([name, "all" if tournament else "of two classes", f"{seconds:.1f}",
                          f"{pair * 1e6:.1f}", f"{row['decision'] * 1e6:.1f}",
                          f"{pair / row['decision']:.2f}", f"{row['error'] * 1e6:.1f}",
                          f"{pair / row['error']:.2f}"])  # fmt: skip
            command.say(" | ".join(lines[-1]))
    head = ["grid", "pairs", "s", "us a pair", "us a row (value)", "ratio", "us a row (label)",
            "ratio"]  # fmt: skip
    return (
        "Leave-pair-out, n = 400, 50 values of C. A left-out row costs what it costs in plain LOO, "
        "with its value (as leave-pair-out compares values) or with its label alone. Bar: 3.\n\n"
        + markdown(head, lines)
    )


def refits(sample: int = 300) -> str:
    """Against refits with scikit-learn, estimated from a sample of the models."""
    X, y = mixture(200)
    n, rng = 200, np.random.default_rng(0)
    kernels = [np.exp(-g * ((X[:, None] - X) ** 2).sum(-1)) for g in gammas(X)]
    ours = cpu(partial(nested_cross_validate, X, y, gammas=gammas(X), Cs=CS, n_jobs=1))[0]
    theirs = []
    for _ in range(sample):
        K, C = kernels[rng.integers(5)], float(rng.choice(CS))
        left = rng.choice(n, 2, replace=False)
        train = np.delete(np.arange(n), left)
        part = np.ascontiguousarray(K[np.ix_(train, train)])
        model = SVC(C=C, kernel="precomputed")

        def one(m: SVC = model, P: Any = part, t: Any = train, o: Any = left, K: Any = K) -> Any:
            return m.fit(P, y[t]).predict(K[np.ix_(o[:1], t)])

        theirs.append(cpu(one)[0])
    each, count = float(np.mean(theirs)), 250 * n * (n - 1)
    error = float(np.std(theirs, ddof=1) / np.sqrt(sample) / each)
    # Each unordered pair once would be enough for them too.
    total = each * count / 2
    lines = [[f"{count:,}", f"{each * 1e3:.2f} (+- {100 * error:.0f}%)", f"{total:,.0f}",
              f"{ours:.1f}", f"{total / ours:,.0f}", f"{2 * total / ours:,.0f}"]]  # fmt: skip
    command.say(" | ".join(lines[0]))
    head = ["inner models", "scikit-learn, ms a model", "all pairs once, s", "ours, s", "times",
            "times, if every inner fold is fitted"]  # fmt: skip
    return (
        f"LOO inside LOO at n = 200 against `SVC` on precomputed kernels, from a sample of "
        f"{sample} models. Bar: 1,000 times.\n\n" + markdown(head, lines)
    )


PARTS: dict[str, Callable[[], str]] = {
    "loo": loo, "large": large, "folds": folds, "pairs": pairs, "refits": refits,
}  # fmt: skip


def main() -> None:
    parser = command.parser(__doc__, {}, FILE)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    given = parser.parse_args()
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", exactcv.NotExactWarning)
        for part in given.parts:
            text = PARTS[part]()
            print(text, flush=True)
            if given.write:
                write_section(FILE, part, text, TITLE)


if __name__ == "__main__":
    main()
