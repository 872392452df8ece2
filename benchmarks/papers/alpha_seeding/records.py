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
Key = tuple[str, str, str]  # data set, folds, scheme
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
    """All records of one size ("quick" or "full")."""

    def __init__(self, size: str):
        self.size = size
        self._all = _read().get(size, {})
        self._new: dict[Key, Record] = {}

    def add(self, record: Record) -> None:
        self._all[_key(record)] = self._new[_key(record)] = record

    def get(self, data: str, k: int | str, scheme: str) -> Record | None:
        return self._all.get((data, str(k), scheme))

    def save(self) -> None:
        """Put what is new into the file, which another run may have changed in the meantime."""
        everything = _read()
        everything[self.size] = everything.get(self.size, {}) | self._new
        self._all = everything[self.size] | self._new
        lists = {
            size: [asdict(record) for _, record in sorted(records.items())]
            for size, records in everything.items()
        }
        RUNS.write_text(json.dumps(lists, indent=1, sort_keys=True))


def _read() -> dict[str, dict[Key, Record]]:
    """Every record of the file, by size and key."""
    everything = json.loads(RUNS.read_text()) if RUNS.exists() else {}
    return {
        size: {_key(record): record for record in (Record(**one) for one in records)}
        for size, records in everything.items()
    }


def _key(record: Record) -> Key:
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
