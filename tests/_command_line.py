"""Running the command line, and the tables it is run on."""

from __future__ import annotations

import contextlib
import csv
import doctest
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from exactcv.cli import main as cli

QUICK = ("--Cs", "0.1,1,10", "--gammas", "2", "--n-jobs", "1")


SHELL = re.compile(r"^```sh\n(.*?)^```\n(?:```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)

RESULTS = {
    "model.exactcv", "cv.csv", "predictions.csv", "report.html", "curve.png", "run.json",
}  # fmt: skip


def rows(n: int = 36, n_classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, 3)) + 0.8 * y[:, None], y


def write_csv(path: Path, columns: dict[str, Any]) -> Path:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def columns_of(n: int = 36, n_classes: int = 2) -> dict[str, Any]:
    X, y = rows(n, n_classes)
    return {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": [f"class {k}" for k in y]}


def run(*arguments: object) -> int:
    return cli.main([str(argument) for argument in arguments])


def read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def results(out: Path) -> dict[str, Any]:
    """All files; timings are left out."""
    found: dict[str, Any] = {path.name: path.read_bytes() for path in out.iterdir()}
    found["run.json"] = json.loads(found["run.json"])
    found["run.json"].pop("timings")
    lines = found["report.html"].decode().replace("<tr>", "\n<tr>").splitlines()
    found["report.html"] = [line for line in lines if ">time<" not in line]
    return found


def run_commands(page: str) -> int:
    """Run the commands of a page in the current folder; how many blocks print what they say."""
    blocks = [found for found in SHELL.findall(page) if "exactcv " in found[0]]
    for commands, expected in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            for line in commands.splitlines():
                program, *arguments = shlex.split(line)
                if program == "python":
                    exec(compile(arguments[1], "a command", "exec"), {})
                else:
                    assert program == "exactcv"
                    assert cli.main(arguments) == 0
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert doctest.OutputChecker().check_output(expected, printed.getvalue(), flags), (
            printed.getvalue()
        )
    return len(blocks)


class Cut(BaseException):
    """Stands for the end of the process."""
