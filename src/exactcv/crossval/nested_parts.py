"""Finished parts of a nested cross-validation, and how they are kept while it runs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from ..judge.certificate import Certificate
from ..types import FloatArray, IntArray

__all__ = ["Outer", "Parts"]


_NUMBERS = ("C", "gamma", "inner_score", "score", "parameter")


class Parts(Protocol):
    """Keeps finished parts by name, as trees of arrays, numbers and text."""

    def load(self, name: str) -> dict[str, Any] | None: ...

    def save(self, name: str, tree: dict[str, Any]) -> None: ...


@dataclass(frozen=True)
class Outer:
    """What came of one outer fold."""

    C: float
    gamma: float
    inner_score: float
    labels: IntArray  # (t,)
    decision: FloatArray  # (t, P)
    score: float  # NaN if the scorer is not asked fold by fold
    certificate: Certificate
    stats: dict[str, int]
    grid: tuple[FloatArray, FloatArray]
    parameter: float = np.nan  # of the loss, where it has one

    def tree(self) -> dict[str, Any]:
        """What `of_tree` makes the same of; numbers that may be NaN are text."""
        plain = {name: getattr(self, name) for name in ("labels", "decision", "stats")}
        for name in _NUMBERS:
            plain[name] = repr(float(getattr(self, name)))
        proof = {field.name: getattr(self.certificate, field.name) for field in fields(Certificate)}
        proof["unresolved"] = [list(pair) for pair in self.certificate.unresolved]
        return plain | {"certificate": proof, "grid": list(self.grid)}

    @classmethod
    def of_tree(cls, tree: dict[str, Any]) -> Outer:
        numbers = {name: float(tree[name]) for name in _NUMBERS}
        proof = dict(tree["certificate"])
        proof["unresolved"] = [(int(l), int(f)) for l, f in proof["unresolved"]]
        Cs, gammas = tree["grid"]
        return cls(
            labels=tree["labels"],
            decision=tree["decision"],
            stats=tree["stats"],
            certificate=Certificate(**proof),
            grid=(Cs, gammas),
            **numbers,
        )
