"""``SVCCV.forget``: the same model without some rows, with its certificate.

An estimator keeps the rows that it was fitted to (`TrainedOn`); when it is first asked to forget,
their kernel matrix is computed once more and kept for the models to come.
"""

from __future__ import annotations

import copy
import numbers
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..crossval.moving_pairs import MovingPairs
from ..crossval.run import KernelRows, Plan
from ..exceptions import InputError, InputIndexError, InputTypeError, Interrupted, UnsupportedError
from ..judge.certificate import warn_if_short
from ..problem.checks import check_n_threads
from ..problem.kernels import Kernel
from ..runtime.memory import check_memory
from ..runtime.threads import Workers
from ..runtime.user_line import user_level
from ..types import FloatArray, IntArray
from .settings import dense
from .sv_layout import layout, pair_coefficients

if TYPE_CHECKING:
    from .svc_cv import SVCCV

__all__ = ["TrainedOn", "forget"]

Model = TypeVar("Model", bound="SVCCV")


@dataclass(frozen=True)
class TrainedOn:
    """The rows that a model knows.

    X : (m, p), perhaps with rows that are gone; or, if it is a ``matrix``, the kernel matrix of all
        rows that were given.
    rows : (m,), the number of each in what ``fit`` was given.
    codes, weight : (m,), class and weight in training; weight 0 if the row is gone.
    n_given : how many rows ``fit`` was given.
    held : what forgets rows, once it is needed.
    """

    X: Any
    rows: IntArray
    codes: IntArray
    weight: FloatArray
    n_given: int
    matrix: bool
    held: MovingPairs | None = None

    @classmethod
    def of(
        cls, X: Any, used: IntArray, codes: IntArray, weight: FloatArray, matrix: bool
    ) -> TrainedOn:
        """From what ``fit`` has read; the rows ``used`` have codes and weights."""
        n = X.shape[0]
        return cls(X if matrix or len(used) == n else X[used], used, codes, weight, n, matrix)

    def vectors(self, support: NDArray[np.integer[Any]]) -> Any:
        """The rows with these numbers."""
        return self.X[np.searchsorted(self.rows, support)]

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled or copied has nothing of the rows that are gone, and no kernel matrix."""
        there = np.flatnonzero(self.weight > 0)
        X = None if self.X is None or self.matrix else self.X[there]
        parts = {name: getattr(self, name)[there] for name in ("rows", "codes", "weight")}
        return parts | {"X": X, "n_given": self.n_given, "matrix": self.matrix, "held": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def forget(model: Model, rows: Any) -> Model:
    """A new model like the given one, but without these rows."""
    known = _known(model)
    gone = _read_rows(rows, known)
    _check_classes(known, gone, model.classes_)
    try:
        with Workers(check_n_threads(model.n_jobs)) as workers:
            held = _held(model, known, workers)
            after = held.without(gone, workers)
    except KeyboardInterrupt as stop:
        raise Interrupted("interrupted; the model is what it was") from stop
    weight = known.weight.copy()
    weight[gone] = 0.0
    found = _without(model, replace(known, weight=weight, held=after), known.rows[gone])
    warn_if_short(found.certificate_, np.array([model.C_]), 1, stacklevel=user_level() + 1)
    return found


def _known(model: SVCCV) -> TrainedOn:
    """The rows of a model that can forget."""
    if model.approx is not None:
        raise UnsupportedError(
            "a model with approx cannot forget: its features were drawn from the rows, and it "
            "keeps no coefficient for each; use approx=None"
        )
    if hasattr(model, "weights_"):
        raise UnsupportedError(
            "this model cannot forget: the kernel matrix did not fit, so it keeps no coefficient "
            "for each row; raise memory_limit, or fit fewer rows"
        )
    if model.loss != "hinge":
        raise UnsupportedError(f"only models with loss='hinge' forget rows, not {model.loss!r}")
    known: TrainedOn | None = getattr(model, "_trained_on", None)
    if known is None:
        raise UnsupportedError(
            "this model does not hold the rows that it was fitted to, since it was read from a "
            "file: fit it again; a pickled model holds them"
        )
    if known.X is None:
        raise UnsupportedError(
            "a copied or pickled model with kernel='precomputed' has no kernel matrix to forget "
            "rows with: fit it again"
        )
    if not model.certificate_.convex:
        raise UnsupportedError(
            "the kernel matrix is not positive semidefinite, so that the solution without a row "
            "is not the one that follows from this one"
        )
    return known


def _read_rows(rows: Any, known: TrainedOn) -> IntArray:
    """Which entries of ``known`` are meant."""
    if isinstance(rows, numbers.Integral) and not isinstance(rows, bool):
        rows = [rows]
    given = np.asarray(rows)
    if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
        raise InputTypeError(
            f"rows must be a row number or a list of them, got {_short(rows)}; for a mask use "
            "np.flatnonzero(mask)"
        )
    if not given.size:
        raise InputError("rows is empty: there is nothing to forget")
    given = given.astype(np.intp)
    outside = given[(given < 0) | (given >= known.n_given)]
    if len(outside):
        raise InputIndexError(
            f"there is no row {outside[0]}: rows are numbered from 0 to {known.n_given - 1} as "
            "they were given to fit"
        )
    numbers_, counts = np.unique(given, return_counts=True)
    if (counts > 1).any():
        raise InputError(f"row {numbers_[counts > 1][0]} is in the list more than once")
    place = np.full(known.n_given, -1, dtype=np.intp)
    place[known.rows[known.weight > 0]] = np.flatnonzero(known.weight > 0)
    absent = given[place[given] < 0]
    if len(absent):
        raise InputIndexError(
            f"row {absent[0]} is not in this model: it was forgotten already, or had weight 0"
        )
    return place[given]


def _check_classes(known: TrainedOn, gone: IntArray, classes: Any) -> None:
    there = known.weight > 0
    there[gone] = False
    left = np.bincount(known.codes[there], minlength=len(classes))
    if not left.all():
        lost = classes[left == 0].tolist()[0]
        raise InputError(
            f"without these rows there would be none of class {lost!r} left; a model without that "
            "class has to be fitted anew"
        )


def _held(model: SVCCV, known: TrainedOn, workers: Workers) -> MovingPairs:
    """What the model has kept, or makes now, from the coefficients it was fitted with."""
    if known.held is not None:
        return known.held
    check_memory(len(known.rows), model.memory_limit)
    if not known.matrix:
        # From here on the rows are our own: models to come take their support vectors from them.
        known = replace(known, X=known.X.copy())
        _check_unchanged(model, known)
    plan = Plan(fit_intercept=model.fit_intercept, tol=model.tol)
    kernel = Kernel(model.kernel, model.gamma_ or 1.0, model.degree, model.coef0)
    X = known.X[known.rows][:, known.rows] if known.matrix else known.X
    rows = KernelRows.of(np.ascontiguousarray(dense(X)), kernel, plan, workers)
    place = np.full(known.n_given, -1, dtype=np.intp)
    place[known.rows] = np.arange(len(known.rows))
    coef = pair_coefficients(
        model.dual_coef_, model.n_support_, place[model.support_], len(known.rows)
    )
    held = MovingPairs.of(
        rows, known.codes, known.weight, model.C_, model.fit_intercept, model.tol, workers, coef
    )
    model._trained_on = replace(known, held=held)
    return held


def _check_unchanged(model: SVCCV, known: TrainedOn) -> None:
    """Until now they were the caller's, who may have overwritten them."""
    there, fitted = known.vectors(model.support_), model.support_vectors_
    if not np.array_equal(dense(there), dense(fitted)):
        raise InputError(
            "the rows that this model was fitted to have been overwritten since: fit it again, or "
            "fit a copy of them"
        )


def _without(model: Model, known: TrainedOn, gone: IntArray) -> Model:
    """A copy of the model with another solution; settings and how they were chosen stay."""
    assert known.held is not None
    new = copy.copy(model)
    new._trained_on = known
    before = getattr(model, "forgotten_", np.zeros(0, dtype=np.intp))
    new.forgotten_ = np.union1d(before, gone)
    found = layout(known.held.fits, 0, known.codes)
    new.support_ = known.rows[found.support].astype(np.int32)
    new.n_support_, new.dual_coef_ = found.n_support, found.dual_coef
    new.intercept_, new.certificate_ = found.intercept, known.held.certificate
    if not known.matrix:
        new.__dict__.pop("support_vectors_", None)  # found when asked for: they may be large
    if "decision" in model.cv_results_:
        decision = model.cv_results_["decision"].copy()
        decision[:, gone] = np.nan
        new.cv_results_ = model.cv_results_ | {"decision": decision}
    new._shown = model._shown.without(gone)
    if callable(getattr(new, "_correction", None)):  # it would need the rows
        del new._correction
    return new


def _short(rows: Any) -> str:
    text = repr(rows)
    return text if len(text) <= 60 else text[:57] + "..."
