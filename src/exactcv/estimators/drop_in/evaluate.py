"""All candidates on all splits: run the plan, and hand what it finds to whoever asked.

The unit of work is a group with one kernel (shared), one split with all its groups (by fold), or
one fit of scikit-learn's.  Units run on threads, each with one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.utils import check_array

from ...exceptions import NotExactWarning
from ...problem.checks import check_n_threads
from ...problem.folds import Folds, complement
from ...problem.kernels import Kernel, is_psd
from ...runtime.memory import check_memory
from ...runtime.progress import Progress, job
from ...runtime.threads import Workers
from ...runtime.user_line import user_level
from ...types import FloatArray, IntArray
from .matrices import KEPT, Matrices
from .models import Candidate, Foreign, Setting, row_weights
from .plan import FitParams, Group, make_plan, read_fit_params, warn_of_reasons
from .scores import Answer
from .solve import (
    Found,
    left_out_numbers,
    left_out_values,
    trained_numbers,
    trained_values,
)
from .splits import Data, as_numbers, copy_of_rows

__all__ = ["Evaluation", "Receiver"]

NOT_CONVEX = (
    "the kernel matrix is not positive semidefinite, so the problem has several local solutions "
    "and only its own solver finds those that scikit-learn would"
)

IN_COMPANY = "the callable kernel of two rows depends on the other rows it is given"

Unit = Callable[[Workers], None]
Where = tuple[IntArray, IntArray]


class Receiver(Protocol):
    """What the search does with the answers, as they come, from any thread."""

    @property
    def labels_suffice(self) -> bool: ...

    def answers(self, splits: Sequence[int], answer: Answer, seconds: float) -> None:
        """One candidate on some splits, row after row as in ``data.rows``; seconds a split."""
        ...

    def fit_by_scikit_learn(self, setting: Setting, split: int) -> bool:
        """Does scikit-learn's own fit work?"""
        ...


@dataclass
class Evaluation:
    """One call: the data, the fit parameters and the receiver."""

    data: Data
    fit_params: Mapping[str, Any]
    receiver: Receiver
    misses: list[int] = field(default_factory=list)
    foreign: list[tuple[Setting, int, str]] = field(default_factory=list)  # and why
    reasons: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._plain: Matrices | None = None
        self._several = False
        self._lock = Lock()

    def run(
        self,
        candidates: Sequence[Candidate | Foreign],
        n_jobs: Any,
        show_progress: bool = False,
    ) -> None:
        """Evaluate them all; Ctrl-C leaves the receiver with what was finished by then."""
        plan = make_plan(candidates, self.fit_params)
        plan.warn()  # before the work: it may take long
        splits = range(self.data.n_splits)
        self.foreign = [(setting, split, "") for setting in plan.foreign for split in splits]
        units: list[Unit] = [partial(self._shared, group) for group in plan.shared]
        for groups in plan.by_fold:
            alike = [group for group in groups if self._by_gamma_alone(group)]
            units += [partial(self._with_own_gammas, group) for group in alike]
            rest = [group for group in groups if group not in alike]
            units += [partial(self._by_fold, rest, split) for split in splits if rest]
        self._several = len(units) > 1
        n_runs = len(units) + len(self.foreign)
        n_threads = check_n_threads(n_jobs)
        with job(show_progress, n_runs) as progress, Workers(n_threads) as workers:
            _run_all(units, workers, progress)
            if isinstance(progress, Progress):
                progress.expect(len(units) + len(self.foreign) - n_runs)
            _run_all([partial(self._foreign, *pair) for pair in self.foreign], workers, progress)
        self._warn()

    def _warn(self) -> None:
        """What the work has brought to light."""
        warn_of_reasons(self.reasons)
        if sum(self.misses):
            warnings.warn(
                f"{sum(self.misses)} solutions do not meet the tolerance 1e-8: they are beyond the "
                "accuracy of float64; standardise the features or leave out the largest C",
                NotExactWarning,
                stacklevel=user_level(),
            )

    # ---- one kernel for all folds --------------------------------------------------------------

    def _shared(self, group: Group, workers: Workers) -> None:
        start = perf_counter()
        data, params = self.data, self._params(group)
        workers.watch.say(_in_words(group, data.n_splits))
        try:
            matrices = self._matrices(group.first)
            kernel = group.kernel.on(matrices.X)
            check_memory(data.n)
            K = matrices.matrix(kernel, workers)
            weight = self._weights(group.first, params, np.arange(data.n))
            numbers = data.numbers if group.first.numeric else None
        except Exception as error:
            self._give_up(group, range(data.n_splits), str(error))
            return
        obstacle = _obstacle(K, kernel, matrices.rows)
        if obstacle is not None:
            self._give_up(group, range(data.n_splits), obstacle)
            return
        order, place = matrices.order, matrices.place
        regular = [f for f in range(data.n_splits) if self._regular(f, weight, numbers is None)]
        if regular and numbers is not None:
            shared = K, numbers[order], weight[order], self._folds(regular).moved(place), group.Cs
            found = left_out_numbers(*shared, float(group.first.svc.epsilon), workers)
            self._hand_over(group, regular, found, np.zeros(0, dtype=np.intp), start)
        elif regular:
            found = left_out_values(
                K,
                data.codes[order],
                weight[order],
                self._folds(regular).moved(place),
                group.Cs,
                self._labels_only(group),
                workers,
            )
            self._hand_over(group, regular, found, np.arange(len(data.classes)), start)
        for split in sorted(set(range(data.n_splits)) - set(regular)):
            where = place[data.train[split]], place[data.rows(split)]
            weights = weight[data.train[split]]
            self._one_fold(group, split, K, weights, where, perf_counter(), workers)

    # ---- one gamma a fold ----------------------------------------------------------------------

    def _by_gamma_alone(self, group: Group) -> bool:
        """Is gamma all that differs from fold to fold, of an RBF kernel of small data?"""
        first, data, splits = group.first, self.data, range(self.data.n_splits)
        if first.before or first.numeric or group.kernel.name != "rbf" or data.n > KEPT:
            return False
        if first.svc.class_weight == "balanced":
            return False
        try:
            weight = self._weights(first, self._params(group), np.arange(data.n))
        except Exception:
            return False  # what is wrong with it is said elsewhere
        regular = all(self._regular(split, weight, True) for split in splits)
        return regular and not self._folds(splits).leave_one_out

    def _with_own_gammas(self, group: Group, workers: Workers) -> None:
        start, data, splits = perf_counter(), self.data, range(self.data.n_splits)
        workers.watch.say(_in_words(group, data.n_splits))
        try:
            matrices = self._matrices(group.first)
            check_memory(2 * data.n)
            kernels = [group.kernel.on(matrices.X[train]) for train in data.train]
            kernels.append(group.kernel.on(matrices.X))
            squares = matrices.distances().squares
            weight = self._weights(group.first, self._params(group), np.arange(data.n))
        except Exception as error:
            self._give_up(group, splits, str(error))
            return
        order, folds = matrices.order, self._folds(splits).moved(matrices.place)
        found = left_out_values(
            squares,
            data.codes[order],
            weight[order],
            folds,
            group.Cs,
            self._labels_only(group),
            workers,
            gammas=np.array([float(kernel.gamma) for kernel in kernels]),
        )
        self._hand_over(group, splits, found, np.arange(len(data.classes)), start)

    def _matrices(self, candidate: Candidate) -> Matrices:
        """Of the data as they are, the same whoever asks; or after steps that learn nothing."""
        if candidate.before:
            steps = _Steps(candidate, {})
            X = _dense(steps.fit_transform(copy_of_rows(self.data.X), self.data.y))
            return self._matrices_of(X, candidate, shared=False)
        with self._lock:
            if self._plain is None:
                self._plain = self._matrices_of(_dense(self.data.X), candidate, self._several)
        return self._plain

    def _matrices_of(self, X: FloatArray, candidate: Candidate, shared: bool) -> Matrices:
        given = candidate.pairwise or callable(candidate.kernel.name)
        return Matrices.of(X, self.data.codes, not (given or candidate.numeric), shared)

    def _regular(self, split: int, weight: FloatArray, classes: bool) -> bool:
        """Does the training set have all classes (two at least), and no row twice?"""
        train = self.data.train[split]
        if not classes:
            return bool((weight[train] > 0).any()) and self.data.once_each(split)
        here = len(np.unique(self.data.codes[train[weight[train] > 0]]))
        return 2 <= here == len(self.data.classes) and self.data.once_each(split)

    def _folds(self, splits: Sequence[int]) -> Folds:
        left_out = tuple(complement(self.data.train[f], self.data.n) for f in splits)
        return Folds(self.data.n, left_out, tuple(self.data.rows(f) for f in splits))

    def _labels_only(self, group: Group) -> bool:
        breaking = any(getattr(one.svc, "break_ties", False) for one in group.candidates)
        return self.receiver.labels_suffice and not breaking

    # ---- one problem a fold --------------------------------------------------------------------

    def _by_fold(self, groups: Sequence[Group], split: int, workers: Workers) -> None:
        """One split: its steps are fitted once, its kernels once each."""
        data, first = self.data, groups[0].first
        params = self._params(groups[0])
        train = data.train[split]
        workers.watch.expect(len(groups))
        workers.watch.say(f"fold {split + 1}, {sum(len(g.candidates) for g in groups)} candidates")
        try:
            matrices, where = self._matrices_of_split(first, params, split)
            check_memory(len(matrices.X))
        except Exception as error:
            for group in groups:
                self._give_up(group, [split], str(error))
            return
        for group in groups:
            start = perf_counter()
            try:
                kernel = group.kernel.on(matrices.X[matrices.order[where[0]]])
                K = matrices.matrix(kernel, workers)
                weight = self._weights(group.first, params, train)
            except Exception as error:
                self._give_up(group, [split], str(error))
                continue
            obstacle = _obstacle(K, kernel, matrices.rows)
            if obstacle is None:
                self._one_fold(group, split, K, weight, where, start, workers)
            else:
                self._give_up(group, [split], obstacle)
            workers.watch.part_done()

    def _matrices_of_split(
        self, candidate: Candidate, params: FitParams, split: int
    ) -> tuple[Matrices, Where]:
        """And where training and test rows stand in the matrices."""
        data, train = self.data, self.data.train[split]
        if not candidate.before:
            matrices = self._matrices(candidate)
            return matrices, (matrices.place[train], matrices.place[data.rows(split)])
        X, n_train = self._transformed(candidate, params, split), len(train)
        everyone = np.arange(len(X), dtype=np.intp)
        return Matrices(X, everyone, everyone), (everyone[:n_train], everyone[n_train:])

    def _transformed(self, candidate: Candidate, params: FitParams, split: int) -> FloatArray:
        """Rows [training as fitted, test, (training as transformed later)]."""
        data = self.data
        given = {
            name: data.params_of(split, "train", values) for name, values in params.steps.items()
        }
        steps = _Steps(candidate, given)
        blocks = [_dense(steps.fit_transform(*data.copy_of_part(split, "train")))]
        blocks.append(_dense(steps.transform(data.copy_of_part(split, "test")[0])))
        if data.with_train:
            blocks.append(_dense(steps.transform(data.copy_of_part(split, "train")[0])))
        return np.vstack(blocks)

    def _one_fold(
        self,
        group: Group,
        split: int,
        K: FloatArray,
        weight: FloatArray,
        where: Where,
        start: float,
        workers: Workers,
    ) -> None:
        """The path of one training set.

        ``where`` says at which rows of K training and test rows stand; ``weight`` belongs to the
        training rows.
        """
        data, train = self.data, self.data.train[split]
        if group.first.numeric:
            self._one_fold_of_numbers(group, split, K, weight, where, start, workers)
            return
        present = np.unique(data.codes[train])
        used = np.unique(data.codes[train[weight > 0]])
        if len(used) < 2 or len(used) < len(present):
            self._give_up(group, [split], "a class has no weight in a training set")
            return
        rows, test = where
        codes = np.searchsorted(present, data.codes[train])
        full_codes, full_weight = np.full(len(K), -1, dtype=np.intp), np.zeros(len(K))
        full_codes[rows] = codes
        np.add.at(full_weight, rows, weight)
        found = trained_values(K, full_codes, full_weight, group.Cs, test, workers)
        self._hand_over(group, [split], found, present, start)

    def _one_fold_of_numbers(
        self,
        group: Group,
        split: int,
        K: FloatArray,
        weight: FloatArray,
        where: Where,
        start: float,
        workers: Workers,
    ) -> None:
        """The same where y are numbers."""
        data, train = self.data, self.data.train[split]
        if not (weight > 0).any():
            self._give_up(group, [split], "a training set has no weight")
            return
        rows, test = where
        numbers, full_weight = np.zeros(len(K)), np.zeros(len(K))
        numbers[rows] = data.numbers[train]
        np.add.at(full_weight, rows, weight)
        epsilon = float(group.first.svc.epsilon)
        found = trained_numbers(K, numbers, full_weight, group.Cs, epsilon, test, workers)
        self._hand_over(group, [split], found, np.zeros(0, dtype=np.intp), start)

    # ---- small change --------------------------------------------------------------------------

    def _params(self, group: Group) -> FitParams:
        params = read_fit_params(group.first, self.fit_params)
        assert params is not None  # the plan has sorted out the others
        return params

    def _weights(self, candidate: Candidate, params: FitParams, rows: IntArray) -> FloatArray:
        data = self.data
        sample_weight = as_numbers(params.sample_weight, data.n)
        labels = data.labels[rows]
        mine = None if sample_weight is None else sample_weight[rows]
        if candidate.numeric or candidate.svc.class_weight is None:
            return np.ones(len(rows)) if mine is None else np.maximum(mine, 0.0)
        return row_weights(candidate.class_weights(labels), labels, mine)

    def _hand_over(
        self, group: Group, splits: Sequence[int], found: Found, present: IntArray, start: float
    ) -> None:
        self.misses.append(found.misses)
        seconds = (perf_counter() - start) / (len(group.candidates) * len(splits))
        for candidate in group.candidates:
            l = int(np.searchsorted(group.Cs, candidate.svc.C))
            values = None if found.values is None else found.values[l]
            answer = Answer(candidate, values, found.labels[l], present)
            self.receiver.answers(splits, answer, seconds)

    def _give_up(self, group: Group, splits: Sequence[int], reason: str) -> None:
        """Leave it to scikit-learn: its own fit fails too, and says why, or else we say it."""
        self.foreign += [(candidate, f, reason) for candidate in group.candidates for f in splits]

    def _foreign(self, setting: Setting, split: int, reason: str, workers: Workers) -> None:
        workers.watch.say("scikit-learn's own fits")
        if self.receiver.fit_by_scikit_learn(setting, split):
            self.reasons.append(reason)


class _Steps:
    """A candidate's steps before the SVC, one after the other as in a pipeline's ``fit``."""

    def __init__(self, candidate: Candidate, fit_params: Mapping[str, Mapping[str, Any]]):
        self._steps = [(name, clone(step)) for name, step in candidate.before]
        self._fit_params = fit_params

    def fit_transform(self, X: Any, y: Any) -> Any:
        for name, step in self._steps:
            given = self._fit_params.get(name, {})
            if hasattr(step, "fit_transform"):
                X = step.fit_transform(X, y, **given)
            else:
                X = step.fit(X, y, **given).transform(X)
        return X

    def transform(self, X: Any) -> Any:
        for _, step in self._steps:
            X = step.transform(X)
        return X


def fit_on(data: Data, fit_params: Mapping[str, Any], candidate: Candidate, split: int) -> Any:
    """scikit-learn's own fit of one candidate on one split."""
    X, y = data.part(split, "train", candidate.pairwise)
    given = data.params_of(split, "train", fit_params)
    return clone(candidate.estimator).fit(X, y, **given)


def _run_all(units: Sequence[Unit], workers: Workers, progress: bool | Progress) -> None:
    """Units side by side if there are enough of them, else threads inside each."""
    settings = get_config()  # scikit-learn keeps them by thread

    def run(unit: Unit) -> None:
        alone = workers.alone()
        with config_context(**settings), alone.followed(progress):
            unit(alone)

    if len(units) >= 2 * workers.n_threads or workers.n_threads == 1:
        workers.map(run, units)
        return
    for unit in units:
        with workers.followed(progress):
            unit(workers)


def _obstacle(K: FloatArray, kernel: Kernel, X: FloatArray) -> str | None:
    """What only shows in the kernel matrix of the rows X."""
    if not is_psd(K, kernel):
        return NOT_CONVEX
    if callable(kernel.name):
        some = np.unique(np.linspace(0, len(X) - 1, 16).astype(np.intp))
        part = np.asarray(kernel.name(X[some[::2]], X[some[1::2]]), dtype=float)
        expected = K[np.ix_(some[::2], some[1::2])]
        if part.shape != expected.shape or not np.allclose(
            part, expected, rtol=1e-9, atol=1e-9 * float(np.abs(expected).max())
        ):
            return IN_COMPANY
    return None


def _in_words(group: Group, n_splits: int) -> str:
    """What one group is, for those who wait."""
    kernel = group.kernel
    name = kernel.name if isinstance(kernel.name, str) else "callable"
    gamma = kernel.gamma if isinstance(kernel.gamma, str) else f"{kernel.gamma or 0.0:.4g}"
    gamma = "" if kernel.gamma is None else f", gamma={gamma}"
    return f"{name} kernel{gamma}: {len(group.Cs)} values of C, {n_splits} folds"


def _dense(X: Any) -> FloatArray:
    checked: Any = check_array(X, dtype=np.float64, order="C", accept_sparse="csr")
    return np.ascontiguousarray(checked.toarray() if hasattr(checked, "toarray") else checked)
