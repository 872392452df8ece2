"""The scores of all candidates on all splits, as they come in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from joblib.logger import short_format_time
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection._validation import (
    _fit_and_score,
    _insert_error_scores,
    _warn_or_raise_about_fit_failures,
)

from ...types import IntArray
from .evaluate import fit_on
from .models import Setting
from .scores import Answer, NumbersStandIn, Scoring, StandIn, accuracies
from .splits import Data

__all__ = ["Call", "Table"]


@dataclass(frozen=True)
class Call:
    """What was asked for, beside the data and the scores."""

    estimator: Any
    fit_params: Mapping[str, Any]
    score_params: Mapping[str, Any]
    verbose: int = 0
    search: bool = False  # of several candidates?


class Table:
    """One cell a candidate and split, candidate after candidate, in scikit-learn's own form."""

    def __init__(self, data: Data, scoring: Scoring, call: Call, n_candidates: int):
        self.data, self.scoring, self.call, self.n_candidates = data, scoring, call, n_candidates
        self.cells: list[dict[str, Any]] = [{} for _ in range(n_candidates * data.n_splits)]
        score_params = call.score_params
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
        shared = (perf_counter() - start) / len(splits)
        for k, split in enumerate(splits):
            start = perf_counter()
            known = {part: share[k] for part, share in plain.items()}
            cell = self._cell(answer, split, bounds[k], known)
            score_seconds = shared + perf_counter() - start
            cell |= {"fit_time": seconds, "score_time": score_seconds, "fit_error": None}
            cell["n_test_samples"] = len(self.data.test[split])
            if self.call.verbose > 1:
                self._say(answer.candidate, split, cell)
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
        model = (NumbersStandIn if answer.candidate.numeric else StandIn)(
            [(parts[part][0], pieces[part]) for part in names],
            self.data.classes,
            lambda: fit_on(self.data, self.call.fit_params, answer.candidate, split),
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
        params = self.data.params_of(split, part, self.call.score_params)
        skip = self.scoring.plain if known is not None else frozenset()
        found = self.scoring.of_model(model, *rows, params, skip)
        if self.scoring.named is None or not skip:
            return found
        return {name: known if name in skip else found[name] for name in self.scoring.named}

    def _say(self, setting: Setting, split: int, cell: Mapping[str, Any]) -> None:
        """The line that scikit-learn prints for each fit."""
        verbose, params = self.call.verbose, setting.params or {}
        where = f" {split + 1}/{self.data.n_splits}" if verbose > 2 and self.call.search else ""
        if verbose > 9 and self.call.search:
            where += f"; {setting.position + 1}/{self.n_candidates}"
        words = ", ".join(f"{name}={params[name]}" for name in sorted(params))
        if verbose > 9:
            print(f"[CV{where}] START {words}".ljust(80, "."))
        words += ";" if words else ""
        if verbose > 2:
            words += _in_words(cell["test_scores"], cell.get("train_scores"))
        words += f" total time={short_format_time(cell['fit_time'] + cell['score_time'])}"
        print(f"[CV{where}] END ".ljust(80 - len(words), ".") + words)

    # ---- scikit-learn's own fits ---------------------------------------------------------------

    def fit_by_scikit_learn(self, setting: Setting, split: int) -> bool:
        data, call = self.data, self.call
        progress = {
            "split_progress": (split, data.n_splits),
            "candidate_progress": (setting.position, self.n_candidates),
        }
        cell = _fit_and_score(
            clone(call.estimator),
            data.X,
            data.y,
            scorer=self.scoring.scorer,
            train=data.train[split],
            test=data.test[split],
            verbose=call.verbose,
            parameters=setting.params,
            fit_params=call.fit_params,
            score_params=call.score_params,
            return_train_score=data.with_train,
            return_n_test_samples=True,
            return_times=True,
            error_score=self.scoring.error_score,
            **(progress if call.search else {}),
        )
        self._enter(setting, split, cell)
        return cell["fit_error"] is None

    # ---- what came out -------------------------------------------------------------------------

    def _enter(self, setting: Setting, split: int, cell: dict[str, Any]) -> None:
        self.cells[setting.position * self.data.n_splits + split] = cell

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

    def check_failures(self) -> None:
        """Warn of fits that failed; if all did, that is an error."""
        _warn_or_raise_about_fit_failures(self.cells, self.scoring.error_score)
        # A scorer that returns several figures is known as such only after it was called.
        _insert_error_scores(self.cells, self.scoring.error_score)


def _in_words(test: Any, train: Any) -> str:
    if not isinstance(test, dict):
        both = f"{test:.3f}" if train is None else f"(train={train:.3f}, test={test:.3f})"
        return f", score={both}"
    return "".join(
        f" {name}: ("
        + ("" if train is None else f"train={train[name]:.3f}, ")
        + f"test={test[name]:.3f})"
        for name in sorted(test)
    )
