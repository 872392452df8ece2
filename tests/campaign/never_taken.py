"""Which lines of the compiled loops no test has ever reached.

In a copy of the repository, with a virtual environment of its own:

    pip install --no-build-isolation --no-deps --config-settings=build-dir=build \
        --config-settings=setup-args=-Db_coverage=true .
    pytest tests                                     (or some of them)
    python tests/campaign/never_taken.py build

gcov counts lines of the C that Cython writes; its comments say which line of the .pyx each is for.
What only handles errors of Python is not counted.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

CORE = Path(__file__).resolve().parents[2] / "src" / "exactcv" / "_core"
COUNTED = re.compile(r"\s*([^:]+):\s*\d+:(.*)")
ORIGIN = re.compile(r'/\* "([^"]*\.pyx)":(\d+)')
OF_ERRORS = ("__PYX_ERR", "_error;", "Pyx_Raise")
# The first line of a function says nothing: gcc runs none of it where the function is inlined.  Nor
# does what is said when memory is at an end.
NO_CODE = re.compile(r"\s*(def|cp?def [\w *]+) \*?\w+\(|\s*raise MemoryError")


def count_lines(report: Path, module: str) -> dict[int, bool]:
    """Line of the .pyx -> was any of its C ever run?"""
    found: dict[int, bool] = {}
    line = None
    for text in report.read_text(encoding="utf-8", errors="replace").splitlines():
        match = COUNTED.match(text)
        if match is None:
            continue
        count, code = match[1].strip(), match[2]
        origin = ORIGIN.search(code)
        if origin is not None:
            line = int(origin[2]) if origin[1].endswith(module) else None
        if line is None or count == "-" or any(word in code for word in OF_ERRORS):
            continue
        found[line] = found.get(line, False) or count[0] not in "#="
    return found


def main(build: str) -> None:
    lines = missed = 0
    with tempfile.TemporaryDirectory() as folder:
        for data in sorted(Path(build).resolve().rglob("*.gcda")):
            # Paths in it are relative to the folder of the build.
            command = ["gcov", "--object-directory", str(data.parent), str(data)]
            subprocess.run(command, cwd=build, check=True, capture_output=True)
            for report in Path(build).glob("*.gcov"):
                report.rename(Path(folder) / report.name)
        for report in sorted(Path(folder).glob("*.pyx.c.gcov")):
            module = report.name.removesuffix(".c.gcov")
            source = (CORE / module).read_text().splitlines()
            found = count_lines(report, module)
            found = {at: run for at, run in found.items() if not NO_CODE.match(source[at - 1])}
            never = [line for line, run in sorted(found.items()) if not run]
            print(f"{module}: {len(never)} of {len(found)} lines never run")
            for line in never:
                print(f"  {line}: {source[line - 1].strip()}")
            lines, missed = lines + len(found), missed + len(never)
    print(f"{missed} of {lines} lines never run")


if __name__ == "__main__":
    main(*sys.argv[1:])
