"""The papers' grid with this code and with earlier code, in turns.

    python -m benchmarks.peers.earlier --python OTHER/.venv/bin/python [--only loo-n800 ...]

``--python`` is an interpreter in whose environment the earlier code is installed.  Each side works
in a process of its own that stays; they take turns, case by case and repeat by repeat, and the
least CPU seconds of each count.  Everything is included: kernel matrix, gamma by the median rule,
path, folds, certificate.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from benchmarks.lib import command
from benchmarks.lib.machine import facts
from benchmarks.lib.results import markdown, write_section

CASES: dict[str, dict[str, Any]] = {
    f"{kind}-n{n}-p{p}": {"n": n, "p": p, "cv": cv, "output": output}
    for kind, cv, output in (
        ("loo-values", "loo", "decision"),
        ("loo-labels", "loo", "error"),
        ("10-fold", 10, "error"),
    )
    for n in (200, 400, 800, 1600)
    for p in (20, 200)
}
ALLOWED = 1.1  # times the seconds of the earlier code
# What the process of a side runs: plain exactcv, whatever its version, one case a line.
SIDE = """
import json, sys
from time import process_time
import exactcv
from threadpoolctl import threadpool_limits
with threadpool_limits(limits=1):
    for line in sys.stdin:
        n, p, cv, output = json.loads(line)
        X, y = exactcv.datasets.make_mixture(n, p, random_state=0)
        start = process_time()
        found = exactcv.cross_validate(X, y, lambdas=50, cv=cv, output=output, n_jobs=1)
        seconds = process_time() - start
        print(json.dumps([seconds, found.n_errors.tolist()]), flush=True)
"""


class Side:
    """One version of the code."""

    def __init__(self, python: str):
        self._process = subprocess.Popen(
            [python, "-c", SIDE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, case: dict[str, Any]) -> tuple[float, list[int]]:
        """CPU seconds, and the number of errors along the grid."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps([*case.values()]) + "\n")
        process.stdin.flush()
        seconds, errors = json.loads(process.stdout.readline())
        return seconds, errors


def repeats(seconds: float) -> int:
    """Short work is done more often."""
    return 20 if seconds < 0.1 else 8 if seconds < 0.5 else 4


def compare(now: Side, then: Side, case: dict[str, Any]) -> list[str]:
    """The least seconds of both, and whether they agree."""
    first, errors = now.run(case)
    _, errors_then = then.run(case)
    ours, theirs = [], []
    for _ in range(repeats(first)):
        ours.append(now.run(case)[0])
        theirs.append(then.run(case)[0])
    ratio = min(ours) / min(theirs)
    shown = f"{ratio:.2f}" if ratio <= ALLOWED else f"**{ratio:.2f}**"
    same = "yes" if errors == errors_then else "no"
    return [f"{min(theirs):.3f}", f"{min(ours):.3f}", shown, same]


def main() -> None:
    parser = command.parser(__doc__, {}, "peers")
    parser.add_argument("--python", required=True, help="interpreter with the earlier code")
    parser.add_argument("--only", nargs="+", default=[""], metavar="PREFIX")
    args = parser.parse_args()
    now, then = Side(sys.executable), Side(args.python)
    lines = []
    for name, case in CASES.items():
        if name.startswith(tuple(args.only)):
            lines.append([name, *compare(now, then, case)])
            command.say(" ".join(lines[-1]))
    head = ["work", "earlier (s)", "now (s)", f"now / earlier (bar {ALLOWED})", "same errors"]
    text = f"Made by `{command.command_line()}` on\n\n{facts()}\n\n{markdown(head, lines)}"
    print(text)
    if args.write:
        write_section("peers", "earlier", f"## Beside earlier code\n\n{text}", "")


if __name__ == "__main__":
    main()
