"""The alpha-seeding benchmarks' measurements: kept in a file, so that sets can be run one by one.

A record is one scheme on one data set and one kind of folds.  Every script measures what it is
asked for, puts it among the records of earlier runs (results/alpha_seeding.json), and makes its
table from all of them.
"""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.lib.results import read_records, write_records

FILE = "alpha_seeding"
Key = tuple[str, str, str]  # data set, folds, scheme


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

    def seeding_cells(self) -> list[str]:
        """Share of the seeds, iterations and evaluations, which LIBSVM does not tell."""
        if self.scheme == "exact":
            return ["-"] * 3
        evaluations = f"{self.evaluations:.3g}" if self.evaluations else "not told"
        return [f"{self.share:.1%}", str(self.iterations), evaluations]

    def settled_cell(self) -> str:
        """Labels settled beside the chain, and in how many iterations."""
        return "-" if self.scheme == "exact" else f"{self.close} ({self.settling})"

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
        write_records(FILE, lists)


def _read() -> dict[str, dict[Key, Record]]:
    """Every record of the file, by size and key."""
    return {
        size: {_key(record): record for record in (Record(**one) for one in records)}
        for size, records in read_records(FILE).items()
    }


def _key(record: Record) -> Key:
    return record.data, record.k, record.scheme
