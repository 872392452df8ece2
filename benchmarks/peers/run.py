"""Run the benchmarks and print, or write down, what they say.

python benchmarks/run.py            the full table, about 6 minutes
python benchmarks/run.py --quick    small sizes, less than a minute
python benchmarks/run.py --write    the full table into RESULTS.md and README.md
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from pathlib import Path

import drop_in
import import_time
import k_fold
import leave_one_out
import machine
from harness import Case, Report, Row, Settings, run_cases
from ours import warm_up

HERE = Path(__file__).resolve().parent
RESULTS, README = HERE / "RESULTS.md", HERE.parent / "README.md"
# What stands after this line of RESULTS.md, the list of the papers' tables, is written by hand.
KEPT = "<!-- below: kept by run.py -->\n"
README_TABLE = re.compile(r"(<!-- times: begin -->\n).*?(<!-- times: end -->)", re.DOTALL)

HOW_MEASURED = """\
Ours is `exactcv.cross_validate(X, y)` from the raw data with everything included: kernel matrix,
gamma by the median rule, path, folds, certificate. The peer is scikit-learn's
`SVC(kernel="precomputed")`, default tolerance 1e-3, cache for the whole matrix; it gets the kernel
matrix and its slices for nothing, and only `fit` is timed. 50 lambdas (for 10-fold with n = 10,000
from 1e3 to 1e-3, else the papers' grid, e^6 to e^-6). One BLAS thread; both sides in turn in one
run; the quickest run of each. Where our side uses two threads, the peer's time is still the sum of
its fits on one. Gaps are relative duality gaps, the worst over all fits.

The GridSearchCV rows set `exactcv.GridSearchCV` against scikit-learn's, both on the raw data with
`n_jobs=2` (threads here, processes there), scoring and the final refit included."""


def main() -> int:
    options = _options()
    settings = Settings(options.quick, options.repeat, options.data, options.fetch)
    cases = _chosen(settings, options.only)
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    facts = machine.facts()
    warm_up()
    report = run_cases(cases, settings)
    text = _text(report, facts, _command(options))
    print(text)
    if options.write:
        RESULTS.write_text(text + _kept())
        if not options.quick and not options.only:
            _into_readme(report)
    return 1 if report.failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Benchmarks of exactcv against scikit-learn.")
    parser.add_argument("--quick", action="store_true", help="small sizes, less than a minute")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="cases whose names start so")
    parser.add_argument("--list", action="store_true", help="list the cases and stop")
    parser.add_argument("--repeat", type=int, metavar="N", help="runs of each side")
    parser.add_argument(
        "--data",
        metavar="DIR",
        default=os.environ.get("EXACTCV_DATA"),
        help="folder with chess.csv.gz; default: the environment variable EXACTCV_DATA",
    )
    parser.add_argument("--fetch", action="store_true", help="download chess from OpenML if needed")
    parser.add_argument("--write", action="store_true", help="write RESULTS.md")
    return parser.parse_args()


def _chosen(settings: Settings, only: list[str] | None) -> list[Case]:
    sources = (leave_one_out, k_fold, drop_in, import_time)
    every = [case for source in sources for case in source.cases(settings)]
    if not only:
        return every
    chosen = [case for case in every if case.name.startswith(tuple(only))]
    if not chosen:
        sys.exit(f"no case starts with {', '.join(only)}; there are: {_names(every)}")
    return chosen


def _names(cases: list[Case]) -> str:
    return ", ".join(case.name for case in cases)


def _command(options: argparse.Namespace) -> str:
    """The command that made the figures, without the path of the data."""
    words = ["python benchmarks/run.py"]
    words += [f"--{name}" for name in ("quick", "fetch", "write") if getattr(options, name)]
    words += ["--only", *map(shlex.quote, options.only)] if options.only else []
    words += [f"--repeat {options.repeat}"] if options.repeat else []
    words += ["--data DIR"] if options.data else []
    return " ".join(words)


# ---- words -------------------------------------------------------------------------------------


def _text(report: Report, facts: str, command: str) -> str:
    parts = [
        f"# Benchmarks\n\nMade by `{command}`.\n\n{facts}\n\n{HOW_MEASURED}",
        "## Times\n\n" + _main_table(report.rows),
    ]
    missing = [
        f"- {name}: {word}, {reason}"
        for word, which in (("skipped", report.skipped), ("failed", report.failed))
        for name, reason in which.items()
    ]
    if missing:
        parts.append("\n".join(missing))
    parts.append("## Where the time goes\n\n" + _parts_table(report.rows))
    return "\n\n".join(parts + report.notes) + "\n"


def _kept() -> str:
    """The marker and what follows it in RESULTS.md."""
    _, marker, rest = RESULTS.read_text().partition(KEPT) if RESULTS.exists() else ("", "", "")
    return f"\n{marker}{rest}" if marker else ""


def _table(head: list[str], body: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _main_table(rows: list[Row]) -> str:
    head = ["work", "ours", "peer", "peer is", "ratio", "bar", "", "worst KKT", "gap ours"]
    head += ["gap peer", "folds settled"]
    return _table(head, [_main_cells(row) for row in rows])


def _main_cells(row: Row) -> list[str]:
    cells = [row.work, _amount(row.ours, row.unit), _amount(row.peer, row.unit), row.peer_is]
    cells += [row.ratio, str(row.bar or ""), row.verdict]
    if row.run is None:
        return cells + [""] * 4
    kkt = f"{row.run.kkt:.0e}" + ("" if row.run.exact else " **NOT exact**")
    return [*cells, kkt, f"{row.run.gap:.0e}", f"{row.peer_gap:.0e}", row.run.settled_shares]


def _parts_table(rows: list[Row]) -> str:
    names = ("kernel", "path", "folds", "certificate", "total")
    body = [
        [row.work, *(f"{row.run.timings[name]:.3g}" for name in names)] for row in rows if row.run
    ]
    return _table(["work", *(f"{name} (s)" for name in names)], body)


def _into_readme(report: Report) -> None:
    """The README shows the larger sizes only."""
    body = [
        [row.work, _amount(row.ours, "s"), f"{_amount(row.peer, 's')} ({row.peer_is})", row.ratio]
        for row in report.rows
        if row.unit == "s" and not any(f"n={n}," in row.work for n in (200, 400))
    ]
    table = _table(["work", "exactcv", "scikit-learn", "ratio"], body)
    text = README.read_text()
    README.write_text(README_TABLE.sub(lambda found: f"{found[1]}{table}\n{found[2]}", text))


def _amount(value: float, unit: str) -> str:
    digits = max(0, 1 - int(f"{value:e}".split("e")[1]))
    return f"{value:,.{digits}f} {unit}"


if __name__ == "__main__":
    sys.exit(main())
