"""How long ``import exactcv`` takes, beside scikit-learn: the bar is its own time plus 0.2 s."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.lib.harness import Bar, Case, Report, Row, Settings

ALLOWED = 0.2  # seconds beyond scikit-learn's own
IMPORTS = {
    "import exactcv": ("import exactcv", "import sklearn"),
    "import of SVCCV and GridSearchCV": (
        "from exactcv import SVCCV, GridSearchCV",
        "from sklearn.svm import SVC; from sklearn.model_selection import GridSearchCV",
    ),
}
# User and system time of the import alone: how busy the machine is matters less.
SCRIPT = "from time import process_time as now; t = now(); {}; print(now() - t)"


def cases(settings: Settings) -> list[Case]:
    return [Case("import-time", _import_time)]


def _import_time(settings: Settings, report: Report) -> None:
    for work, (ours, peer) in IMPORTS.items():
        pairs = [(_seconds(ours), _seconds(peer)) for _ in range(settings.repeats(5))]
        mine, others = (min(times) for times in zip(*pairs, strict=True))
        what = f"`{peer}` ({others:.2f} s), plus {ALLOWED} s"
        report.rows.append(Row(f"{work} (CPU)", mine, others + ALLOWED, what, Bar(1.0)))


def _seconds(statement: str) -> float:
    """CPU seconds of one import in a fresh interpreter."""
    command = [sys.executable, "-c", SCRIPT.format(statement)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
