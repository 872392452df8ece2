"""The command line of a script: the options that all have, and how it is written down.

Scripts are modules: ``python -m benchmarks.papers.magic_loo.table1``, from the root of the project.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Paths of one machine are not written down.
PATHS = {"--data": "DIR", "--keep": "FILE", "--python": "PYTHON"}


def parser(what: str | None, sizes: Mapping[str, str], results: str) -> argparse.ArgumentParser:
    """``--data``, ``--write``, and an option for each of the sizes, with what is said of it.

    ``results`` is the file, in the folder of results, that ``--write`` writes into.
    """
    made = argparse.ArgumentParser(
        prog=f"python -m {module()}",
        description=what,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--data",
        metavar="DIR",
        default=os.environ.get("EXACTCV_DATA"),
        help="folder of data sets; default: the environment variable EXACTCV_DATA",
    )
    if sizes:
        either = made.add_mutually_exclusive_group()
        for name, said in sizes.items():
            either.add_argument(f"--{name}", action="store_true", help=said)
    made.add_argument("--write", action="store_true", help=f"write into results/{results}.md")
    return made


def parse_with_data(made: argparse.ArgumentParser) -> argparse.Namespace:
    """The options, for a script that can do nothing without data sets."""
    given = made.parse_args()
    if given.data is None:
        made.error("give the folder of the data sets with --data or EXACTCV_DATA")
    return given


def module() -> str:
    """The name of the script that runs."""
    spec = sys.modules["__main__"].__spec__
    return Path(sys.argv[0]).stem if spec is None else spec.name


def command_line() -> str:
    """The command as it was given, without the paths."""
    words = ["python", "-m", module()]
    path_of: str | None = None
    for word in sys.argv[1:]:
        name, equals, _ = word.partition("=")
        if path_of is not None:
            words.append(PATHS[path_of])
            path_of = None
        elif equals and name in PATHS:
            words += [name, PATHS[name]]
        else:
            words.append(word)
            path_of = word if word in PATHS else None
    return shlex.join(words)


def run_module(name: str, *arguments: str) -> str:
    """What a module prints that runs in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", name, *arguments],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        cwd=ROOT,
    )
    return done.stdout


def say(text: str) -> None:
    """How far it is; the results themselves go to standard output."""
    print(text, file=sys.stderr, flush=True)
