"""The scores of all candidates on all splits, as they come in."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from time import perf_counter
from traceback import format_exc
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import FitFailedWarning

from ...exceptions import InputError
from ...types import IntArray
from .evaluate import fit_on
from .models import Candidate
from .scores import Answer, Scoring, StandIn, accuracies
from .splits import Data, rows_of

__all__ = ["Table"]


class Table:
    """One cell a candidate and split, candidate after candidate, in scikit-learn's own form."""

    def __init__(
        self,
        data: Data,
        scoring: Scoring,
        fit_params: Mapping[str, Any],
        score_params: Mapping[str, Any],
        n_candidates: int,
    ):
        self.data, self.scoring = data, scoring
        self.fit_params, self.score_params = fit_params, score_params
        self.cells: list[dict[str, Any]] = [{} for _ in range(n_candidates * data.n_splits)]
        weighted = set(score_params) == {"sample_weight"} and scoring.named is None
        self._quick = not score_params or weighted
        self._parts = ("test", "train") if data.with_train else ("test",)
        self._weight = np.asarray(score_params["sample_weight"]) if weighted else None

    @property
    def labels_suffice(self) -> bool:
        return self._quick and self.scoring.labels_suffice

    # ---- answers -------------------------------------------------------------------------------

    def answers(self, splits: Sequence[int], answer: Answer, seconds: float) -> None:
        start = perf_counter()
        bounds = self._bounds(splits)
        plain = self._accuracies(splits, answer, bounds) if self._quick else {}
        cells = []
        for k, split in enumerate(splits):
            known = {part: share[k] for part, share in plain.items()}
            cells.append(self._cell(answer, split, bounds[k], known))
        score_seconds = (perf_counter() - start) / len(splits)
        for split, cell in zip(splits, cells, strict=True):
            cell |= {"fit_time": seconds, "score_time": score_seconds, "fit_error": None}
            self._enter(answer.candidate, split, cell)

    def _bounds(self, splits: Sequence[int]) -> IntArray:
        """Of each split: where its test rows start and stop, and where its training rows stop."""
        data = self.data
        n_test = np.array([len(data.test[f]) for f in splits])
        n_train = np.array([len(data.train[f]) if data.with_train else 0 for f in splits])
        stop = np.cumsum(n_test + n_train)
        return np.column_stack([stop - n_train - n_test, stop - n_train, stop])

    def _accuracies(
        self, splits: Sequence[int], answer: Answer, bounds: IntArray
    ) -> dict[str, NDArray[np.float64]]:
        if not self.scoring.plain:
            return {}
        rows = np.concatenate([self.data.rows(f) for f in splits])
        correct = answer.codes() == self.data.codes[rows]
        weight = None if self._weight is None else self._weight[rows]
        if self._weight is not None and not all(
            self._weight[self.data.test[f]].sum() for f in splits
        ):
            return {}  # the scorer says what that means
        shares = {"test": accuracies(correct, bounds[:, :2], weight)}
        if self.data.with_train:
            shares["train"] = accuracies(correct, bounds[:, 1:], weight)
        return shares

    def _cell(
        self, answer: Answer, split: int, bounds: IntArray, known: Mapping[str, float]
    ) -> dict[str, Any]:
        names = self._parts
        if known and self.scoring.labels_suffice:
            return {f"{part}_scores": self._plainly(float(known[part])) for part in names}
        pairwise = answer.candidate.pairwise
        parts = {part: self.data.part(split, part, pairwise) for part in names}
        pieces = {
            "test": answer.part(slice(bounds[0], bounds[1])),
            "train": answer.part(slice(bounds[1], bounds[2])),
        }
        model = StandIn(
            [(parts[part][0], pieces[part]) for part in names],
            self.data.classes,
            lambda: fit_on(self.data, self.fit_params, answer.candidate, split),
        )
        return {
            f"{part}_scores": self._scores(model, split, part, parts[part], known.get(part))
            for part in names
        }

    def _plainly(self, share: float) -> Any:
        names = self.scoring.named
        return share if names is None else dict.fromkeys(names, share)

    def _scores(
        self, model: Any, split: int, part: str, rows: tuple[Any, Any], known: float | None
    ) -> Any:
        params = rows_of(self.score_params, self.data.n, getattr(self.data, part)[split])
        skip = self.scoring.plain if known is not None else frozenset()
        found = self.scoring.of_model(model, *rows, params, skip)
        if self.scoring.named is None or not skip:
            return found
        return {name: known if name in skip else found[name] for name in self.scoring.named}

    # ---- scikit-learn's own fits ---------------------------------------------------------------

    def fit_by_scikit_learn(self, candidate: Candidate, split: int) -> None:
        start = perf_counter()
        cell: dict[str, Any] = {"fit_error": None}
        try:
            model = fit_on(self.data, self.fit_params, candidate, split)
        except Exception:
            if self.scoring.error_score == "raise":
                raise
            cell |= {f"{part}_scores": self.scoring.failed() for part in self._parts}
            cell |= {"fit_error": format_exc(), "score_time": 0.0}
            cell["fit_time"] = perf_counter() - start
            self._enter(candidate, split, cell)
            return
        cell["fit_time"] = perf_counter() - start
        for part in self._parts:
            rows = self.data.part(split, part, candidate.pairwise)
            cell[f"{part}_scores"] = self._scores(model, split, part, rows, None)
        cell["score_time"] = perf_counter() - start - cell["fit_time"]
        self._enter(candidate, split, cell)

    # ---- what came out -------------------------------------------------------------------------

    def _enter(self, candidate: Candidate, split: int, cell: dict[str, Any]) -> None:
        cell["n_test_samples"] = len(self.data.test[split])
        self.cells[candidate.position * self.data.n_splits + split] = cell

    def finished(self) -> list[int]:
        """The candidates that were evaluated on every split."""
        return [k for k, cells in enumerate(self._by_candidate()) if all(cells)]

    def keep(self, candidates: Sequence[int]) -> None:
        """Forget all other candidates."""
        cells = self._by_candidate()
        self.cells = [cell for k in candidates for cell in cells[k]]

    def _by_candidate(self) -> list[list[dict[str, Any]]]:
        size = self.data.n_splits
        return [self.cells[start : start + size] for start in range(0, len(self.cells), size)]

    def check_failures(self, stacklevel: int = 3) -> None:
        """Warn of fits that failed; if all did, that is an error."""
        errors = Counter(cell["fit_error"] for cell in self.cells if cell["fit_error"])
        n_failed, n_fits = sum(errors.values()), len(self.cells)
        if not n_failed:
            return
        details = "\n".join(
            f"{count} fits failed with:\n{error}" for error, count in errors.items()
        )
        if n_failed == n_fits:
            raise InputError(
                f"All the {n_fits} fits failed; error_score='raise' raises the first error.\n"
                f"{details}"
            )
        warnings.warn(
            f"{n_failed} fits failed out of a total of {n_fits}. The score on these train-test "
            "partitions for these parameters will be set to "
            f"{self.scoring.error_score}.\n{details}",
            FitFailedWarning,
            stacklevel=stacklevel,
        )
        # A scorer that returns several figures is known as such only after it was called.
        scored = next(c["test_scores"] for c in self.cells if not c["fit_error"])
        if isinstance(scored, dict):
            for cell in self.cells:
                if cell["fit_error"]:
                    for part in self._parts:
                        cell[f"{part}_scores"] = dict.fromkeys(scored, self.scoring.error_score)
