"""The alpha-seeding benchmarks' measurements: kept in a file, so that sets can be run one by one.

A record is one scheme on one data set and one kind of folds.  Every script measures what it is
asked for, puts it among the records of earlier runs (``seeding_runs.json``), and makes its table
from all of them.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
RUNS, RESULTS = HERE / "seeding_runs.json", HERE / "RESULTS_seeding.md"
HEAD = "# Alpha seeding and the working-set solver\n"


@dataclass(frozen=True)
class Record:
    """One cross-validation.

    Attributes
    ----------
    data, k, scheme : str
        The set's file, the number of folds ("loo": leave-one-out), and the seed.
    name, n :
        The set's name and its rows.
    rounds, folds : int
        Folds run, and folds in all.
    seeding, seconds : float
        CPU seconds of the seeds, and of everything but the settling of near-ties.
    iterations, evaluations : int
        SMO iterations, kernel evaluations.
    close, settling : int
        Labels too near to zero for the tolerance, and the iterations it took to settle them.
    ties : int
        Decision values that are zero but for rounding.
    correct : int
        Rows predicted right.
    labels : str
        The predictions in the order of the folds: bits, base64.
    load : float
        Load average of the machine when it was measured.
    """

    data: str
    k: str
    scheme: str
    name: str
    n: int
    rounds: int
    folds: int
    seeding: float
    seconds: float
    iterations: int
    evaluations: int
    close: int
    settling: int
    ties: int
    correct: int
    tested: int
    labels: str
    load: float

    @property
    def accuracy(self) -> float:
        return self.correct / self.tested

    @property
    def share(self) -> float:
        return self.seeding / self.seconds

    def positive(self) -> np.ndarray:
        """Which of the tested rows were predicted to be of class +1."""
        packed = np.frombuffer(base64.b64decode(self.labels), dtype=np.uint8)
        return np.unpackbits(packed, count=self.tested).astype(bool)

    def differences(self, other: Record) -> int:
        """How many labels differ, of the rounds that both have run."""
        count = min(self.tested, other.tested)
        return int((self.positive()[:count] != other.positive()[:count]).sum())


def pack(positive: np.ndarray) -> str:
    return base64.b64encode(np.packbits(positive).tobytes()).decode()


class Records:
    """All records of one size ("quick" or "full"), in the order in which they were first made."""

    def __init__(self, size: str):
        self.size = size
        everything = json.loads(RUNS.read_text()) if RUNS.exists() else {}
        self._others = {key: value for key, value in everything.items() if key != size}
        self._mine = {_key(Record(**one)): Record(**one) for one in everything.get(size, [])}

    def add(self, record: Record) -> None:
        self._mine[_key(record)] = record

    def get(self, data: str, k: int | str, scheme: str) -> Record | None:
        return self._mine.get((data, str(k), scheme))

    def save(self) -> None:
        mine = [asdict(record) for _, record in sorted(self._mine.items())]
        RUNS.write_text(json.dumps(self._others | {self.size: mine}, indent=1, sort_keys=True))


def _key(record: Record) -> tuple[str, str, str]:
    return record.data, record.k, record.scheme


def write_section(key: str, title: str, text: str) -> None:
    """Put a section into the results file, in place of its old self."""
    old = RESULTS.read_text() if RESULTS.exists() else HEAD
    section = f"<!-- {key} -->\n## {title}\n\n{text}\n<!-- end {key} -->\n"
    pattern = re.compile(rf"<!-- {key} -->\n.*?<!-- end {key} -->\n", re.DOTALL)
    if pattern.search(old):
        RESULTS.write_text(pattern.sub(lambda _: section, old))
    else:
        RESULTS.write_text(f"{old}\n{section}")
