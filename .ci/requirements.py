"""Print the requirements that pyproject.toml lists, one a line.

    python .ci/requirements.py [--lowest] PART ...

PART is "build", "run" or the name of an extra.  With --lowest each is pinned to the lowest version
that is allowed.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def requirements(listed: dict[str, Any], parts: Sequence[str]) -> Iterator[str]:
    """The entries of these parts; an extra that names others of the project stands for theirs."""
    project = listed["project"]
    known = {
        "build": listed["build-system"]["requires"],
        "run": project["dependencies"],
        **project["optional-dependencies"],
    }
    own = re.compile(rf"{project['name']}\[(.*)\]")
    for part in parts:
        for entry in known[part]:
            extras = own.fullmatch(entry)
            yield from requirements(listed, extras[1].split(",")) if extras else [entry]


if __name__ == "__main__":
    parts = [word for word in sys.argv[1:] if word != "--lowest"]
    with PYPROJECT.open("rb") as file:
        found = list(requirements(tomllib.load(file), parts))
    if "--lowest" in sys.argv:
        found = [entry.replace(">=", "==") for entry in found]
    print(*found, sep="\n")
