"""exactcv against scikit-learn: run the cases and print, or write down, what they say.

python -m benchmarks.peers.run            the full table, about 6 minutes
python -m benchmarks.peers.run --quick    small sizes, less than a minute
python -m benchmarks.peers.run --write    the full table into results/peers.md and README.md
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.lib import command, machine
from benchmarks.lib.harness import Case, Report, Row, Settings, run_cases
from benchmarks.lib.ours import warm_up
from benchmarks.lib.results import markdown, put_section, write_section

from . import drop_in, import_time, k_fold, leave_one_out

README = command.ROOT / "README.md"

HOW_MEASURED = """\
Ours is `exactcv.cross_validate(X, y, lambdas=50)` from the raw data with everything included:
kernel matrix, gamma by the median rule, path, folds, certificate. The peer is scikit-learn's
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
    text = _text(report, facts)
    print(text)
    if options.write:
        write_section("peers", "peers", text, "exactcv against scikit-learn")
        if not options.quick and not options.only:
            put_section(README, "times", _readme_table(report))
    return 1 if report.failed else 0


def _options() -> argparse.Namespace:
    sizes = {"quick": "small sizes, less than a minute"}
    parser = command.parser(__doc__, sizes, "peers")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="cases whose names start so")
    parser.add_argument("--list", action="store_true", help="list the cases and stop")
    parser.add_argument("--repeat", type=int, metavar="N", help="runs of each side")
    parser.add_argument("--fetch", action="store_true", help="download chess from OpenML if needed")
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


# ---- words -------------------------------------------------------------------------------------


def _text(report: Report, facts: str) -> str:
    parts = [
        f"Made by `{command.command_line()}`.\n\n{facts}\n\n{HOW_MEASURED}",
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


def _main_table(rows: list[Row]) -> str:
    head = ["work", "ours", "peer", "peer is", "ratio", "bar", "", "worst KKT", "gap ours"]
    head += ["gap peer", "folds settled"]
    return markdown(head, [_main_cells(row) for row in rows])


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
    return markdown(["work", *(f"{name} (s)" for name in names)], body)


def _readme_table(report: Report) -> str:
    """The README shows the larger sizes only."""
    body = [
        [row.work, _amount(row.ours, "s"), f"{_amount(row.peer, 's')} ({row.peer_is})", row.ratio]
        for row in report.rows
        if row.unit == "s" and not any(f"n={n}," in row.work for n in (200, 400))
    ]
    return markdown(["work", "exactcv", "scikit-learn", "ratio"], body)


def _amount(value: float, unit: str) -> str:
    digits = max(0, 1 - int(f"{value:e}".split("e")[1]))
    return f"{value:,.{digits}f} {unit}"


if __name__ == "__main__":
    sys.exit(main())
