"""A table that is made row by row, and kept: of the magic-LOO and consolidated-CV papers.

``--rows`` runs some rows only; ``--write`` keeps what was found in results/FILE.json, row by row,
and makes the section of results/FILE.md and the figure from all rows kept there.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from . import command, results
from .machine import facts

FILE = "consolidated_and_magic"
HEAD = "The papers' tables: magic LOO and consolidated CV"

Row = dict[str, Any]


@dataclass
class Table:
    """A table in the making: ``cases`` by row name, what is said about the rows, the figure.

    ``body`` turns the rows kept so far into paragraphs; ``figure`` gets the rows and draws under
    the name ``key``.
    """

    key: str
    title: str
    cases: Callable[[argparse.Namespace], dict[str, Callable[[], Row]]]
    body: Callable[[dict[str, Row]], Iterable[str]]
    figure: Callable[[str, dict[str, Row]], None]

    def main(self, what: str | None) -> None:
        args = options(what)
        cases = self.cases(args)
        kept: dict[str, Row] = results.read_records(FILE).get(self.key, {}) if args.write else {}
        for row, run in cases.items():
            if args.rows and row not in args.rows:
                continue
            size = "full" if args.full else "quick"
            kept[row] = run() | {"load": round(os.getloadavg()[0], 1), "size": size}
            command.say(f"{row}: {kept[row]}")
            if args.write:
                kept |= _store(self.key, {row: kept[row]})
        order = [*cases, *(row for row in kept if row not in cases)]
        kept = {row: kept[row] for row in order if row in kept}
        if kept:
            self._publish(args, kept)
        else:
            print(f"no rows; there are: {', '.join(cases) or 'none (is --data given?)'}")

    def _publish(self, args: argparse.Namespace, kept: dict[str, Row]) -> None:
        sizes = " and ".join(sorted({f"--{row['size']}" for row in kept.values()}))
        made = f"Made by `python -m {command.module()} --write` with {sizes}"
        load = f"load average at the end of each row {[row['load'] for row in kept.values()]}"
        text = "\n\n".join(
            [f"## {self.title}", f"{made}; {load}. The last row on", facts(), *self.body(kept)]
        )
        print(text)
        if args.write:
            self.figure(self.key, kept)
            shown = f"![{self.title}](figures/{self.key}.png)"
            results.write_section(FILE, self.key, f"{text}\n\n{shown}", HEAD)


def options(what: str | None) -> argparse.Namespace:
    sizes = {
        "quick": "one run, no large sizes (default)",
        "full": "the papers' sizes and numbers of runs",
    }
    made = command.parser(what, sizes, FILE)
    made.add_argument("--rows", nargs="+", metavar="ROW", help="only these, such as p=20,n=400")
    return made.parse_args()


def _store(key: str, rows: dict[str, Row]) -> dict[str, Row]:
    """Add rows to those kept; returns all, also those that others have added meanwhile."""
    stored = results.read_records(FILE)
    rows = stored.get(key, {}) | rows
    results.write_records(FILE, stored | {key: rows})
    return rows


def table(rows: Sequence[dict[str, str]]) -> str:
    """Markdown of rows that need not have the same columns."""
    names: list[str] = []
    for row in rows:
        names += [name for name in row if name not in names]
    return results.markdown(names, [[row.get(name, "-") for name in names] for row in rows])
