"""What the benchmarks of the smooth SVM share: data, our runs, the peers, and the report.

The paper (Tseng & Lee 2012) sets c = 1 and, for the RBF kernel, gamma = 0.1.  Features are
scaled to [-1, 1] here, LIBSVM's custom; the paper does not say what it did.  It matters: with
standardised features the penalised intercept costs 20 points of accuracy on colon.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib import command, machine
from benchmarks.lib.data import read_rows, scaled
from benchmarks.lib.results import markdown, write_section
from exactcv.algorithms.rank_update import method as rank_update
from exactcv.algorithms.rank_update.design import Design, make_design
from exactcv.algorithms.rank_update.newton_armijo import leave_afresh
from exactcv.crossval import run as assembly_line
from exactcv.judge import ledger

from . import printed

FILE = "rank_r_ssvm"
NAMES = ("ionosphere", "pima", "colon", "leuk")
WIDE = ("colon", "leuk")  # p >> n: the paper runs them with the linear kernel only
STRATEGIES, KERNELS = ("I", "II", "auto"), ("linear", "rbf")
GAMMA, C, FOLDS = 0.1, 1.0, 10  # C is the paper's c, twice the C of `cross_validate`
FACE = "face (simulated)"
SHORT, LONG, MOST = 2.0, 10.0, 30  # seconds that repeats may take, and how many there are

# The bars.  Solving afresh factorises a matrix of size m and forms it besides: at least 4/3 m^3
# operations for each Newton step where the other side of A is no shorter than m.  An update of rank
# r fetches r columns, at most 4 m^2 each, and refines for about 24 m^2.  At r = m / 10 and m = 100
# that makes 4/3 against 0.64 m^3, twice as much, for the single Newton step that every fold needs.
SMALL_RANK, LEAST_GAIN, WORST_CHOICE = 0.1, 2.0, 1.3

HOW_MEASURED = """\
c = 1; RBF with gamma = 0.1; features scaled to [-1, 1]; one thread; CPU time of the process
(of Tables 2 and 3, but for the face set, on a core of its own; the load is that of the other
core), the least of {repeat} or more runs, taken in turn (one run of what takes over ten seconds).
*SSVM*: every fold from zero by Newton's method, each step factorising the smaller of the two
matrices (I + c A'SA and S^-1 + c AA'); *warm*: the same, started at the full solution,
whose time is counted. I, II, auto: `cross_validate(..., method="rank_update")`, the full fit and
all folds (leave-one-out folds a block at a time; SSVM and warm fold by fold); the certificate,
which recomputes every gradient, is the same work for all and is listed on its own. *LIBSVM*:
scikit-learn's `SVC` (hinge loss, unpenalised intercept: another model), kernel matrix given, `fit`
alone, in leave-one-out for support vectors only; scikit-learn offers no warm start for it. A star:
estimated from that many folds, evenly spread.
*l_sv*: support vectors; *size*: of the smaller matrix; *steps*, *r*: Newton steps and the rank of
the update at the solution (rows that changed sides and columns that left), means over the folds
that were solved. *gain*: the faster of SSVM and warm over auto; the bar of {gain:g} is on rows with
r at most {share:g} of the size, by the counts of operations (`rank_update`); others: "no bar".
*choice*: auto over the better strategy, bar {choice:g}, on every row.
"{face}" is not the MIT set but a simulation of its size, 7,000 smooth 19 x 19 images, and only
run with --full."""


@dataclass(frozen=True)
class Cell:
    """Seconds, accuracy, and from how many folds they were estimated (None: all)."""

    seconds: float
    accuracy: float
    sample: int | None = None

    def __str__(self) -> str:
        star = "" if self.sample is None else f" *{self.sample}"
        return f"{_figure(self.seconds)}{star}"


@dataclass(frozen=True)
class Row:
    name: str
    kernel: str
    cv: str
    cells: dict[str, Cell]
    certificate: float
    gradient: float
    spread: float
    support: int
    size: int
    steps: float
    rank: float

    @property
    def gain(self) -> float:
        return min(self.cells[x].seconds for x in ("SSVM", "warm")) / self.cells["auto"].seconds

    @property
    def choice(self) -> float:
        both = [self.cells[x].seconds for x in ("I", "II") if x in self.cells]
        return self.cells["auto"].seconds / min(both)

    @property
    def gain_verdict(self) -> str:
        if self.rank > SMALL_RANK * self.size:
            return "no bar"
        return "met" if self.gain >= LEAST_GAIN else "MISSED"

    @property
    def choice_verdict(self) -> str:
        return "met" if self.choice <= WORST_CHOICE else "MISSED"


def options(what: str | None) -> argparse.Namespace:
    parser = command.parser(what, {"full": f"also the 7,000 rows of {FACE}"}, FILE)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="data sets")
    parser.add_argument("--kernels", nargs="+", default=KERNELS, choices=KERNELS)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--sample", type=int, default=20, help="folds of the slow peers")
    return command.parse_with_data(parser)


def load(name: str, folder: str) -> tuple[np.ndarray, np.ndarray]:
    """Features scaled to [-1, 1] and labels +-1."""
    X, y = faces() if name == FACE else read_rows(folder, name)
    return scaled(X), y


def faces(n: int = 7000, side: int = 19) -> tuple[np.ndarray, np.ndarray]:
    """A stand-in for the MIT face set: smooth random images; a third show a common pattern."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(0)
    images = gaussian_filter(rng.normal(size=(n, side, side)), (0, 1.5, 1.5))
    pattern = gaussian_filter(rng.normal(size=(side, side)), 2.0)
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    amount = np.where(y > 0, 1.0, 0.0) * rng.uniform(0.6, 1.6, n)
    images /= images.std()
    images += amount[:, None, None] * pattern / pattern.std()
    return images.reshape(n, -1), y


def measure(name: str, kernel: str, cv: str, chosen: argparse.Namespace) -> Row:
    """All columns of one row."""
    machine.count_cpu_time(ledger, assembly_line, rank_update)
    X, y = load(name, chosen.data)
    with threadpool_limits(1):
        tries = {s: [cross_validated(X, y, kernel, cv, s)] for s in STRATEGIES}
        short = [s for s, found in tries.items() if _seconds(found[0]) < LONG]
        start = process_time()
        while "auto" in short and _again(len(tries["auto"]), start, chosen.repeat):
            for s in short:
                tries[s].append(cross_validated(X, y, kernel, cv, s))
        runs = {s: min(found, key=_seconds) for s, found in tries.items()}
        auto = runs["auto"]
        cells = _afresh(X, y, kernel, cv, auto, chosen)
        for strategy, run in runs.items():
            cells[strategy] = Cell(_seconds(run), float(1 - run.error[0]))
        cells["LIBSVM"] = _libsvm(X, y, kernel, cv, chosen)
    values = np.array([run.decision[0] for run in runs.values()])
    support = auto.stats["support_vectors"][0]
    return Row(
        name=f"{name}, {len(y)} x {X.shape[1]}",
        kernel=kernel,
        cv=cv,
        cells=cells,
        certificate=auto.timings["certificate"],
        gradient=float(auto.certificate.kkt[0]),
        spread=float(np.ptp(values, axis=0).max()),
        support=support,
        size=min(support, (X.shape[1] if kernel == "linear" else len(y)) + 1),
        steps=auto.stats["newton_steps"] / max(auto.stats["solved"], 1),
        rank=auto.stats["mean_rank"],
    )


def cross_validated(
    X: np.ndarray,
    y: np.ndarray,
    kernel: str,
    cv: str,
    strategy: str,
    gamma: float | str = GAMMA,
    cs: Sequence[float] = (C,),
) -> exactcv.CVResult:
    """All left-out decision values; ``cs`` are the paper's."""
    return exactcv.cross_validate(
        X,
        y,
        kernel=kernel,
        gamma=gamma,
        Cs=0.5 * np.asarray(cs),
        cv="loo" if cv == "loo" else FOLDS,
        loss="squared_hinge",
        method="rank_update",
        method_options={"strategy": strategy},
        output="decision",
        n_jobs=1,
    )


def _seconds(run: exactcv.CVResult) -> float:
    return run.timings["path"] + run.timings["folds"]


def _again(done: int, start: float, repeat: int) -> bool:
    """At least ``repeat`` runs, more of short ones, one of what takes long."""
    spent = process_time() - start
    return (done < repeat and spent < LONG) or (done < MOST and spent < SHORT) or not done


def _several(run: Callable[[], Any], repeat: int) -> list[Any]:
    found: list[Any] = []
    start = process_time()
    while _again(len(found), start, repeat):
        found.append(run())
    return found


def folds_of(y: np.ndarray, cv: str) -> list[np.ndarray]:
    if cv == "loo":
        return list(np.arange(len(y))[:, None])
    return [test for _, test in StratifiedKFold(FOLDS).split(y[:, None], y)]


def _sampled(folds: list[np.ndarray], size: int) -> tuple[list[np.ndarray], int | None]:
    if len(folds) <= size:
        return folds, None
    where = np.linspace(0, len(folds) - 1, size).round().astype(int)
    return [folds[k] for k in where], size


def _afresh(
    X: np.ndarray,
    y: np.ndarray,
    kernel: str,
    cv: str,
    auto: exactcv.CVResult,
    chosen: argparse.Namespace,
) -> dict[str, Cell]:
    """Solving each fold by fresh factorisations, from zero and from the full solution."""
    design = _design(X, y, kernel)
    before = process_time()
    full = leave_afresh(design, C, design.used, np.zeros(0, dtype=np.intp), design.used)
    at_first = {"SSVM": 0.0, "warm": process_time() - before}
    every = folds_of(y, cv)
    folds, sample = _sampled(every, chosen.sample)
    accuracy = float(1 - auto.error[0])
    cells = {}
    for title, start in (("SSVM", design.used), ("warm", full.active)):
        run = partial(_solve_folds, design, y, folds, start)
        seconds, wrong = min(_several(run, chosen.repeat))
        if sample is None:
            accuracy = 1 - wrong
        # A fold without support vectors is unchanged in the linear model: warm skips it too.
        work = len(every)
        if title == "warm" and kernel == "linear" and cv == "loo":
            work = int(full.active.sum())
        cells[title] = Cell(at_first[title] + seconds * work / len(folds), accuracy, sample)
    return cells


def _solve_folds(
    design: Design, y: np.ndarray, folds: list[np.ndarray], start: np.ndarray
) -> tuple[float, float]:
    """Seconds and error of solving these folds one by one."""
    seconds, wrong, tested = 0.0, 0, 0
    for out in folds:
        train = design.used.copy()
        train[out] = False
        before = process_time()
        found = leave_afresh(design, C, train, design.columns(out), start)
        seconds += process_time() - before
        wrong += int((y[out] * found.f[out] <= 0).sum())
        tested += len(out)
    return seconds, wrong / tested


def _design(X: np.ndarray, y: np.ndarray, kernel: str) -> Design:
    data = X if kernel == "linear" else _matrix(X, kernel)
    return make_design(data, y, np.ones(len(y)), True, kernel != "linear")


def _matrix(X: np.ndarray, kernel: str) -> np.ndarray:
    from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

    return linear_kernel(X) if kernel == "linear" else rbf_kernel(X, gamma=GAMMA)


def _libsvm(X: np.ndarray, y: np.ndarray, kernel: str, cv: str, chosen: argparse.Namespace) -> Cell:
    K, every = _matrix(X, kernel), folds_of(y, cv)
    everyone = np.arange(len(y))
    before = process_time()
    full = SVC(C=C, kernel="precomputed", cache_size=2000).fit(K, y)
    seconds, sample = process_time() - before, None
    work, right, tested = every, 0.0, len(y)
    if cv == "loo":
        vectors = set(full.support_.tolist())
        f = full.decision_function(K)
        idle = [k for k in range(len(y)) if k not in vectors]
        right = float((y[idle] * f[idle] > 0).sum())
        work = [out for out in every if int(out[0]) in vectors]
    some, sample = _sampled(work, len(work) if len(y) < 1000 else chosen.sample)
    spent, good = 0.0, 0
    for out in some:
        train = np.setdiff1d(everyone, out)
        part = K[np.ix_(train, train)]
        before = process_time()
        model = SVC(C=C, kernel="precomputed", cache_size=2000).fit(part, y[train])
        spent += process_time() - before
        good += int((model.predict(K[np.ix_(out, train)]) == y[out]).sum())
    share = len(work) / max(len(some), 1)
    return Cell(seconds + spent * share, (right + good * share) / tested, sample)


def rows(cv: str, chosen: argparse.Namespace) -> Iterator[Row]:
    names = chosen.only or [*NAMES, *([FACE] if chosen.full else [])]
    for kernel in chosen.kernels:
        for name in names:
            if kernel == "rbf" and name in WIDE:
                continue
            command.say(f"{name}, {kernel}, {cv} ...")
            yield measure(name, kernel, cv, chosen)


COLUMNS = ("SSVM", "warm", "I", "II", "auto", "LIBSVM")


def table(found: list[Row]) -> str:
    """Times, then accuracies."""
    head = [
        "data",
        "kernel",
        *COLUMNS,
        "paper: SSVM / I / II / LIBSVM",
        "certificate",
        "l_sv",
        "size",
        "steps",
        "r",
        "r / size",
    ]
    head += ["gain", "bar", "choice", "bar"]
    body = []
    for row in found:
        body.append(
            [
                *(row.name, row.kernel),
                *(str(row.cells[name]) for name in COLUMNS),
                printed.times(row.cv, row.kernel, row.name),
                *(_figure(row.certificate), str(row.support), str(row.size), f"{row.steps:.1f}"),
                *(f"{row.rank:.1f}", f"{row.rank / row.size:.2f}"),
                *(f"{row.gain:.1f}", row.gain_verdict),
                *(f"{row.choice:.2f}", row.choice_verdict),
            ]
        )
    accuracy_head = ["data", "kernel", "SSVM, I, II, auto", "LIBSVM", "paper: SSVM", "LIBSVM"]
    accuracy_head += ["strategies differ", "kkt"]
    accuracy = [
        [
            *(row.name, row.kernel),
            *(_percent(row.cells["auto"]), _percent(row.cells["LIBSVM"])),
            *printed.accuracies(row.cv, row.kernel, row.name),
            *(f"{row.spread:.0e}", f"{row.gradient:.0e}"),
        ]
        for row in found
    ]
    return (
        "Seconds of CPU time.\n\n"
        + markdown(head, body)
        + "\n\nAccuracy in percent; the largest difference between the strategies' left-out "
        "decision values; the\nlargest relative gradient norm over all folds.\n\n"
        + markdown(accuracy_head, accuracy)
    )


def section(title: str, chosen: argparse.Namespace) -> str:
    """A part of the data sets or kernels has a section of its own."""
    parts = [*(chosen.only or ()), *(chosen.kernels if chosen.kernels != KERNELS else ())]
    return ", ".join([title, *parts])


def report(title: str, text: str, chosen: argparse.Namespace) -> None:
    """Print a section, and with --write put it into the results file."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    made = f"`{command.command_line()}` (load average {load} at the end)"
    section = f"## {title}\n\n{made}\n\n{text}"
    print(section)
    if not chosen.write:
        return
    how = HOW_MEASURED.format(
        repeat=chosen.repeat, face=FACE, share=SMALL_RANK, gain=LEAST_GAIN, choice=WORST_CHOICE
    )
    head = "Smooth SVM with rank-r updates"
    write_section(FILE, "how measured", f"{machine.facts()}\n\n{how}", head)
    write_section(FILE, title, section, head)


def main(what: str | None, cv: str, title: str) -> None:
    """One table: leave-one-out or k-fold."""
    chosen = options(what)
    report(section(title, chosen), table(list(rows(cv, chosen))), chosen)


def _figure(seconds: float) -> str:
    return f"{seconds:.3f}" if seconds < 1 else f"{seconds:.3g}"


def _percent(cell: Cell) -> str:
    return f"{100 * cell.accuracy:.2f}"
