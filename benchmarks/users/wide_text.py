"""Sparse text-like rows with more columns than rows go into a matrix of: five folds and LOO.

    python -m benchmarks.users.wide_text [--rows N] [--Cs 0.03 0.1 0.3] [--cv loo 5] [--check K]

Simulated: 100 words a row from a Zipf distribution over 50,000, tf-idf, rows of length 1; labels
from 30 words that count, with noise.  `cross_validate(kernel="linear")` with all its certificates
against as many fits of LinearSVC (hinge loss, its own tolerance 1e-4, an intercept that it shrinks)
for five folds; n + 1 fits of it for LOO are as many times the full-data fit, which is timed.  CPU
seconds of one thread; the peak is that of the whole process.

--check K compares K left-out labels of each C, half of rows that may turn when left out and half
by lot, with folds of that one row: these are solved over all other rows, without any of the proofs.
"""

from __future__ import annotations

from resource import RUSAGE_SELF, getrusage
from time import process_time
from warnings import catch_warnings, simplefilter

import numpy as np
from scipy import sparse
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib import command
from benchmarks.lib.machine import facts
from benchmarks.lib.results import markdown, write_section

FILE, TITLE = "large", "Large data, with features in place of a kernel"
HEAD = ["rows", "entries a row", "folds", "Cs", "exactcv (CPU s)", "LinearSVC (CPU s)", "exact",
        "errors", "free rows", "labels by proof", "solved", "over all rows", "peak GB",
]  # fmt: skip
COLUMNS, WORDS, INFORMATIVE, NOISE = 50_000, 100, 30, 0.2


def text_rows(n: int, seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Rows and labels."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, COLUMNS + 1)
    share /= share.sum()
    words = np.minimum(np.searchsorted(np.cumsum(share), rng.random(n * WORDS)), COLUMNS - 1)
    rows = np.repeat(np.arange(n), WORDS)
    X = sparse.csr_matrix((np.ones(n * WORDS), (rows, words)), shape=(n, COLUMNS))
    X.sum_duplicates()
    found = np.bincount(X.indices, minlength=COLUMNS)
    X.data = 1.0 + np.log(X.data)
    X = X @ sparse.diags(np.log((1.0 + n) / (1.0 + found)) + 1.0)
    length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = sparse.csr_matrix(sparse.diags(1.0 / length) @ X)
    w = np.zeros(COLUMNS)
    w[rng.choice(300, INFORMATIVE, replace=False)] = rng.normal(size=INFORMATIVE)
    score = X @ w
    score = (score - np.median(score)) / score.std()
    return X, np.where(score + NOISE * rng.normal(size=n) > 0, 1, -1)


def linear_svc(X: sparse.csr_matrix, y: np.ndarray, C: float, cv: str) -> float:
    """CPU seconds of its fits; of LOO what n + 1 would take."""
    start = process_time()
    parts = [np.arange(len(y))]
    if cv != "loo":
        parts += [train for train, _ in StratifiedKFold(int(cv)).split(X, y)]
    for train in parts:
        with catch_warnings():
            simplefilter("ignore")
            LinearSVC(C=C, loss="hinge", random_state=0, max_iter=20_000).fit(X[train], y[train])
    seconds = process_time() - start
    return seconds * (len(y) + 1) if cv == "loo" else seconds


def labels_apart(
    X: sparse.csr_matrix, y: np.ndarray, found: exactcv.CVResult, l: int, count: int, limit: str
) -> int:
    """How many of some left-out labels differ from those of problems without the row."""
    n, C, rng = len(y), float(found.Cs[l]), np.random.default_rng(0)
    margin = y * (X @ found.weights[l] + found.intercept[l])
    near = np.flatnonzero((margin > 0) & (margin < C))
    some = np.union1d(
        rng.choice(near, min(len(near), count // 2), replace=False), rng.choice(n, count // 2)
    )
    folds = [(np.delete(np.arange(n), row), [row]) for row in some]
    one_by_one = exactcv.cross_validate(
        X, y, kernel="linear", Cs=[C], cv=folds, random_state=0, memory_limit=limit
    )
    return int(np.count_nonzero(one_by_one.wrong[0, some] != found.wrong[l, some]))


def one(n: int, cv: str, Cs: list[float], limit: str, check: int = 0) -> list[str]:
    """A line of the table."""
    X, y = text_rows(n)
    start = process_time()
    found = exactcv.cross_validate(
        X, y, kernel="linear", Cs=Cs, cv=cv if cv == "loo" else int(cv), random_state=0,
        memory_limit=limit,
    )  # fmt: skip
    seconds, peak = process_time() - start, getrusage(RUSAGE_SELF).ru_maxrss / 1e6
    stats = found.stats
    command.say(f"{n} {cv}: {seconds:.1f} CPU s, {found.timings}, {peak:.2f} GB, {stats}")
    if check and cv == "loo":
        apart = [labels_apart(X, y, found, l, check, limit) for l in range(len(Cs))]
        command.say(f"of {check} labels of each C apart from those solved without the row: {apart}")
    theirs = sum(linear_svc(X, y, C, cv) for C in Cs)
    line = [
        str(n), f"{X.nnz / n:.0f}", cv, " ".join(f"{C:g}" for C in Cs), f"{seconds:.1f}",
        f"{theirs:.1f}", str(found.certificate.exact),
        " ".join(f"{error:.4f}" for error in found.error), " ".join(map(str, stats["free"])),
        str(stats["bound"] + stats["unchanged"]), str(stats["solved"]), str(stats["fallback"]),
        f"{peak:.2f}",
    ]  # fmt: skip
    command.say(" ".join(line))
    return line


def main() -> None:
    parser = command.parser(__doc__, {}, FILE)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--Cs", type=float, nargs="+", default=[0.03, 0.1, 0.3])
    parser.add_argument("--cv", nargs="+", default=["loo", "5"])
    parser.add_argument("--memory-limit", default="2GB")
    parser.add_argument("--check", type=int, default=0)
    args = parser.parse_args()
    with threadpool_limits(limits=1):
        lines = [one(args.rows, cv, args.Cs, args.memory_limit, args.check) for cv in args.cv]
    text = f"`{command.command_line()}`\n\n{facts()}\n\n{markdown(HEAD, lines)}"
    print(text)
    if args.write:
        write_section(FILE, "text", text, TITLE)


if __name__ == "__main__":
    main()
