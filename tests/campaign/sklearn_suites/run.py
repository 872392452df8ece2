"""scikit-learn's own tests of what the drop-ins replace, with the drop-ins in its place.

Every test that passes with scikit-learn's functions must pass with ours, but for those listed in
docs/drop_ins.md, and those must fail.  Run twice: as the tests are, and with an SVC in place of
other linear classifiers, so that more of them reach our own code.

    python tests/campaign/sklearn_suites/run.py [-k EXPRESSION]
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[2] / "docs" / "drop_ins.md"
SUITES = [f"sklearn.model_selection.tests.test_{name}" for name in ("search", "validation")]


def listed() -> set[str]:
    """The tests that are known to differ: the first column of the table in the documentation."""
    return set(re.findall(r"^\| `(test_\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


def outcomes(drop_ins: bool, svc: bool, extra: Sequence[str]) -> dict[str, bool]:
    """Did each test pass?  Those that were skipped are left out."""
    settings = {"EXACTCV_DROP_INS": "1" if drop_ins else "", "EXACTCV_SVC": "1" if svc else ""}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-c", str(HERE / "pytest.ini"), "-p", "in_place"]
        command += [f"--rootdir={folder}", f"--junitxml={report}", *extra, "--pyargs", *SUITES]
        environment = os.environ | settings | {"PYTHONPATH": str(HERE)}
        subprocess.run(command, env=environment, cwd=folder, check=False)
        cases = ElementTree.parse(report).getroot().iter("testcase")
        found = {
            f"{case.get('classname')}.{case.get('name')}": {part.tag for part in case}
            for case in cases
        }
    return {
        name: not {"failure", "error"} & parts
        for name, parts in found.items()
        if "skipped" not in parts
    }


def differing(svc: bool, extra: Sequence[str]) -> tuple[set[str], set[str]]:
    """Tests that pass with scikit-learn's functions but not with ours, and all that were run."""
    before, after = (outcomes(drop_ins, svc, extra) for drop_ins in (False, True))
    differ = {_name(test) for test, passed in before.items() if passed and not after.get(test)}
    print(f"{len(before)} tests, {sum(before.values())} pass as they are, "
          f"{sum(after.values())} with the drop-ins")  # fmt: skip
    return differ, {_name(test) for test in before}


def _name(test: str) -> str:
    return test.partition("[")[0].rpartition(".")[2]


def main() -> int:
    """Say what differs; 1 if it is not what is listed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-k", help="only these tests, as in pytest")
    chosen = parser.parse_args().k
    extra = [] if chosen is None else ["-k", chosen]
    differ: set[str] = set()
    run: set[str] = set()
    for svc in (False, True):
        some, names = differing(svc, extra)
        differ |= some
        run |= names
    expected = listed() & run
    for name in sorted(differ - expected):
        print(f"differs, and is not listed in {PAGE.name}: {name}")
    for name in sorted(expected - differ):
        print(f"is listed in {PAGE.name}, but does not differ: {name}")
    return int(differ != expected)


if __name__ == "__main__":
    sys.exit(main())
