"""Tables of one results file, each made row by row and kept.

``--parts`` runs some tables, ``--rows`` some of their rows; ``--write`` keeps what was found in
results/FILE.json and makes the table of results/FILE.md from all rows kept there.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from threadpoolctl import threadpool_limits

from . import command, results

__all__ = ["Part", "run_parts"]


@dataclass(frozen=True)
class Part:
    """One table: its title and head, and what makes each row from the folder of data sets.

    A row is what stands beside its name, without the name.
    """

    title: str
    head: list[str]
    rows: Mapping[str, Callable[[str], list[str]]]


def run_parts(what: str | None, file: str, title: str, parts: Mapping[str, Part]) -> None:
    """The command line of such a script, on one thread."""
    parser = command.parser(what, {}, file)
    parser.add_argument("--parts", nargs="+", default=list(parts), choices=list(parts))
    parser.add_argument("--rows", nargs="+", metavar="ROW", help="only these of each table")
    given = command.parse_with_data(parser)
    warnings.simplefilter("ignore")
    for key in given.parts:
        part = parts[key]
        kept: dict[str, list[str]] = results.read_records(file).get(key, {}) if given.write else {}
        for name, work in part.rows.items():
            if given.rows and name not in given.rows:
                continue
            with threadpool_limits(1):
                kept[name] = work(given.data)
            command.say(f"{name}: {kept[name]}")
            if given.write:
                kept = _store(file, key, kept)
        rows = [[name, *kept[name]] for name in part.rows if name in kept]
        text = f"**{part.title}**\n\n{results.markdown(part.head, rows)}"
        print(text + "\n", flush=True)
        if given.write:
            made = f"`python -m {command.module()} --data DIR --parts {key} --write`"
            results.write_section(file, key, f"Made by {made}.\n\n{text}", title)


def _store(file: str, key: str, rows: dict[str, list[str]]) -> dict[str, list[str]]:
    """Add rows to those kept; returns all of the table."""
    stored = results.read_records(file)
    rows = stored.get(key, {}) | rows
    results.write_records(file, stored | {key: rows})
    return rows
