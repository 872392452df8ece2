"""What is said of the runs of ``approximate_kernels``."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.lib.results import markdown, pyplot, save_figure

FIGURE = "approximate_kernels_accuracy"

Row = dict[str, Any]


def text(rows: dict[str, dict[str, Row]], repeats: int) -> str:
    """All parts that have been run; ``repeats``: of the runs for speed."""
    parts = [GRIDS, speed(rows.get("speed", {}), repeats), growth(rows.get("growth", {}))]
    parts += [accuracy(rows.get("accuracy", {})), dask(rows.get("dask", {}))]
    return "\n\n".join(part for part in parts if part)


GRIDS = (
    "50 lambdas each. `paper`: the problems (40) and (41) of the consolidated-CV paper with the "
    "papers' grid, e^6 to e^-6. For Nystroem the inner products of the features are the kernel "
    "(as approximated). The random features cos(w'x + b) of the paper are not scaled: their inner "
    "products are m / 2 times the kernel. Ours are scaled, so the same problem has lambdas 2 / m "
    "times as large: with m = 200, regularisation a hundred times weaker than for Nystroem. "
    "`kernel`: random features that are scaled, with e^6 to e^-6 as they are; the best lambda is "
    "the last then."
)


def speed(rows: dict[str, Row], repeats: int) -> str:
    lines = []
    for name, peer in rows.items():
        if not name.startswith("peer") or (mine := rows.get(name.replace("peer", "ours"))) is None:
            continue
        most, ratio = max(fit[2] for fit in peer["fits"]), peer["seconds"] / mine["seconds"]
        lines.append([
            f"{peer['n']:,}", peer["approx"], peer["grid"], f"{mine['seconds']:.1f} s",
            f"{peer['seconds']:.0f} s*", f"{ratio:.1f} times faster ({verdict(ratio >= 5)})",
            f"{mine['gap']:.0e}", f"{most} of 1000", f"{mine['test'] / mine['bayes']:.3f}",
            f"{mine['load']}, {peer['load']}",
        ])  # fmt: skip
    head = ["n", "features", "grid", "exactcv, LOO curve", "50 LinearSVC fits", "ratio (bar: 5)",
            "gap, ours", "its iterations, at most", "test error over Bayes",
            "load average"]  # fmt: skip
    note = (
        f"The quickest of {repeats} runs in turn. * estimated from nine lambdas. "
        '`LinearSVC(loss="hinge")`, default tolerance (1e-4) and iteration limit, on features that '
        "are there already (exactcv's time includes them); it does no cross-validation. m = 200, "
        "50 lambdas, two cores (LinearSVC uses one)."
    )
    return "\n\n".join(["## Speed", markdown(head, lines), note]) if lines else ""


def verdict(met: bool) -> str:
    return "met" if met else "missed"


def growth(rows: dict[str, Row]) -> str:
    if not rows:
        return ""
    runs = sorted(rows.values(), key=lambda row: (row["approx"], row["grid"], row["n"]))
    lines = []
    for row in runs:
        same = [r for r in runs if (r["approx"], r["grid"]) == (row["approx"], row["grid"])]
        base = next((r for r in same if r["n"] == 100_000), same[0])
        power = "-"
        if row["n"] > base["n"]:
            power = f"{np.log(row['seconds'] / base['seconds']) / np.log(row['n'] / base['n']):.2f}"
        lines.append([
            f"{row['n']:,}", row["approx"], row["grid"], f"{row['seconds']:.1f} s", power,
            f"{row['GB']:.1f}", f"{row['passes']}", f"{row['proved']:.5%}", f"{row['solved']}",
            f"{row['test']:.4f}", f"{row['test'] / row['bayes']:.3f}", f"{row['gap']:.0e}",
            row["features"], f"{row['load']}",
        ])  # fmt: skip
    head = ["n", "features", "grid", "time", "power of n from 100,000 (bar: 1.1)",
            "peak GB (bar: 8)", "passes", "labels proved", "solved", "test error",
            "over Bayes (bar: 1.1)", "gap", "kept in", "load average"]  # fmt: skip
    note = (
        "Leave-one-out error curve, m = 200, 50 lambdas, two threads. The rows are a file that is "
        "mapped into memory. Test error on 100,000 new rows at the lambda that leave-one-out "
        "picks, and the error of the Bayes rule on the same rows. The paper has 15.7 s for "
        "n = 100,000 and 831 s for 5,000,000 on its machine."
    )
    return "\n\n".join(["## Growth with n", markdown(head, lines), note])


def accuracy(rows: dict[str, Row]) -> str:
    if not rows:
        return ""
    lines = []
    for name, row in sorted(rows.items(), key=_by_kind):
        ratio = f"{row['test'] / row['bayes']:.3f}"
        line = [name, f"{row['seconds']:.1f} s", f"{row['test']:.4f}", ratio]
        lines.append([*line, f"{row['load']}"])
    head = ["run", "time", "test error", "over Bayes", "load average"]
    note = (
        "Leave-one-out curves; the names are as above. At n = 800 the kernel itself is better than "
        "its approximations, as the paper remarks, and quicker. At n = 100,000 Nystroem with 50 "
        "landmarks is better than 200 random features on the same grid. CPU seconds "
        "of the runs with m = 400 and 1000, and how they came about: [large.md](large.md).\n\n"
        f"![Test error against time](figures/{FIGURE}.png)"
    )
    return "\n\n".join(["## Accuracy against time", markdown(head, lines), note])


def _by_kind(run: tuple[str, Row]) -> tuple[Any, ...]:
    row = run[1]
    return -row["n"], row.get("approx", ""), row.get("grid", ""), row.get("m", 0)


def plot_accuracy(rows: dict[str, Row]) -> None:
    figure, ax = pyplot().subplots(figsize=(6, 4))
    for approx, grid, marker in (
        ("nystroem", "paper", "s"), ("rff", "kernel", "o"), ("rff", "paper", "^"),
    ):  # fmt: skip
        kind = (approx, grid)
        runs = [r for r in rows.values() if (r.get("approx"), r.get("grid")) == kind]
        runs = [r for r in runs if r["n"] > 800]
        runs.sort(key=lambda row: row["m"])
        if not runs:
            continue
        times, errors = [r["seconds"] for r in runs], [r["test"] for r in runs]
        ax.plot(times, errors, marker=marker, label=f"{approx}, grid `{grid}`")
        for row in runs:
            ax.annotate(f" {row['m']}", (row["seconds"], row["test"]))
    if few := rows.get("exact n=800"):
        ax.plot(few["seconds"], few["test"], "k*", label="exact kernel, n = 800")
    bayes = next(iter(rows.values()))["bayes"]
    ax.axhline(bayes, color="grey", linestyle=":", label="Bayes")
    ax.set(xscale="log", xlabel="seconds", ylabel="test error")
    ax.legend()
    figure.tight_layout()
    save_figure(figure, FIGURE, dpi=120)


def dask(rows: dict[str, Row]) -> str:
    if not rows:
        return ""
    head = ["n", "one process", "two workers", "speed-up", "sent", "received", "weights differ by",
            "labels that differ", "load average"]  # fmt: skip
    lines = [
        [
            f"{row['n']:,}", f"{row['one process']:.1f} s", f"{row['two workers']:.1f} s",
            f"{row['one process'] / row['two workers']:.2f}", f"{row['sent MB']:.1f} MB",
            f"{row['received MB']:.1f} MB", f"{row['weights differ by']:.0e}",
            f"{row['labels differ']}", f"{row['load']}",
        ]
        for row in rows.values()
    ]  # fmt: skip
    note = (
        "One thread each, Nystroem with m = 200, 50 lambdas, leave-one-out error curve; features "
        "are kept where they are made. Sent: guesses and open rows; received: labels, solutions "
        "and open rows. Small problems and the rows that bounds do not settle are solved on the "
        "workers; the client makes the first guess, on one thread, while they make features."
    )
    return "\n\n".join(["## Two Dask workers", markdown(head, lines), note])
