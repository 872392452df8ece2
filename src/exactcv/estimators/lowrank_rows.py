"""The rows that ``SVCCV(approx=...)`` is fitted to, wherever they are, and their folds."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import StratifiedKFold

from ..crossval.requests import linear_scale
from ..crossval.scoring import Scorer, stand_in
from ..exceptions import InputError, UnsupportedError
from ..lowrank.open_source import open_source
from ..lowrank.options import Options
from ..lowrank.passes.distributed import as_local
from ..lowrank.rows.kept import keep_rows
from ..lowrank.rows.sources import ArrayRows, RowSource
from ..problem import inputs
from ..problem.checks import seed_from
from ..problem.folds import Folds
from ..problem.grid import Grid, default_grid, feature_grid
from ..problem.intervals import effective_count
from ..types import Approx, FloatArray, IntArray
from .settings import rows_of

if TYPE_CHECKING:
    from .svc_cv import SVCCV

__all__ = ["Rows"]


@dataclass(frozen=True)
class Rows:
    """The rows that count, and what is the same for every gamma.

    Rows of weight zero are not among them, wherever the rows come from.

    Attributes
    ----------
    source : RowSource
    classes, codes : (k,), (rows,)
        Of millions of rows numbers of eight bytes would be most of the memory: codes have as few
        as will do.
    sample_weight, weight : (rows,)
        How many rows each counts for, and the same times the weight of its class; one number for
        all, broadcast, if they are the same.
    folds : Folds
    seed : int
        Draws the features.
    keep : (rows,)
        Their places among all ``n``; None if they are all.
    groups : (rows,) or None
    scorer : Scorer
    score_arguments : dict
        What the scorer gets besides, one entry a test.
    """

    source: RowSource
    classes: NDArray[Any]
    codes: NDArray[np.integer]
    sample_weight: FloatArray
    weight: FloatArray
    folds: Folds
    seed: int
    keep: IntArray | None
    n: int
    groups: NDArray[Any] | None
    scorer: Scorer
    score_arguments: dict[str, Any]

    @classmethod
    def of(
        cls,
        model: SVCCV,
        X: Any,
        y: Any,
        sample_weight: Any,
        groups: Any,
        scorer: Scorer,
        check: Callable[..., Folds] = inputs.check_training_parts,
    ) -> Rows:
        """Folds and seed are settled here, once: all gammas see the same folds and features.

        X may be a source already; ``check`` refuses folds that cannot be used.
        """
        X, y = _in_memory(model, X, y)
        columns = [name for name in (y, sample_weight, groups) if isinstance(name, str)]
        source = open_source(X, columns, Options().chunk_rows)
        _check_scorer(source, scorer)
        n = source.n
        y, given, groups = (_local(source, one) for one in (y, sample_weight, groups))
        labels, classes, codes = inputs.encode_labels(y, n)
        used = inputs.read_sample_weight(given, n)
        keep = np.flatnonzero(used > 0)
        groups = inputs.read_groups(groups, n)
        split_with, score_with = model._route(given, groups, {}, scorer)
        if len(keep) < n:
            source, used = keep_rows(source, keep), used[keep]
            groups = None if groups is None else groups[keep]
        split_with = {name: rows_of(value, keep, n) for name, value in split_with.items()}
        score_with = {name: rows_of(value, keep, n) for name, value in score_with.items()}
        if len(keep) < n:
            labels, classes, codes = inputs.encode_labels(labels[keep], len(keep))
        if len(classes) < 2:
            among = "" if len(keep) == n else ", among the rows with positive weight"
            raise InputError(
                f"y has one class only, {classes[0]!r}{among}; a classifier needs rows of two "
                "classes or more"
            )
        counts = np.bincount(codes, weights=used)
        factors = inputs.class_factors(model.class_weight, counts, classes)
        weight = inputs.times_class_weight(used, factors, codes, classes)
        # Splitters need the number of rows; where these are not in memory, that is all they get.
        shown = source.X if isinstance(source, ArrayRows) else stand_in(len(keep))
        stratified = model.cv is None or isinstance(model.cv, (numbers.Integral, StratifiedKFold))
        split_by = codes if stratified else labels  # splits do not hang on names, which are longer
        folds = model._folds(shown, split_by, keep, n, split_with)
        folds = check(folds, codes, classes, weight, keep)
        tested = folds.pair_rows
        return cls(
            source=source,
            classes=classes,
            codes=codes.astype(np.min_scalar_type(-len(classes))),
            sample_weight=_even(used),
            weight=_even(weight),
            folds=folds,
            seed=seed_from(model.random_state),
            keep=None if len(keep) == n else keep,
            n=n,
            groups=groups,
            scorer=scorer,
            score_arguments={name: value[tested] for name, value in score_with.items()},
        )

    @property
    def n_used(self) -> int:
        return len(self.codes)

    @property
    def total(self) -> float:
        """How many rows lambda counts."""
        return float(self.sample_weight.sum())

    def default_grid(self, approx: Approx | None) -> Grid:
        """The grid of who gives none: without an approximation, that of the linear kernel."""
        if approx is None:
            return default_grid(self.total, linear_scale(self.source))
        return feature_grid(self.total)

    @cached_property
    def truth(self) -> NDArray[np.integer]:
        """The class of each test."""
        return self.codes[self.folds.pair_rows]

    @cached_property
    def tested(self) -> IntArray:
        """The row of each test, among all rows."""
        rows = self.folds.pair_rows
        return rows if self.keep is None else self.keep[rows]

    @cached_property
    def test_weight(self) -> FloatArray:
        weight, rows = self.sample_weight, self.folds.pair_rows
        return np.broadcast_to(weight[:1], rows.shape) if _is_one(weight) else weight[rows]

    @property
    def effective_tests(self) -> float | None:
        """How many rows the tested ones amount to; None if all weigh the same."""
        if _is_one(self.sample_weight):
            return None
        weight = self.sample_weight[np.unique(self.folds.pair_rows)]
        return None if (weight == weight[0]).all() else effective_count(weight)

    @cached_property
    def shown(self) -> Any:
        """The rows of the tests, as the scorer sees them, if it may look at them."""
        X = self.source.X if isinstance(self.source, ArrayRows) else None
        return self.scorer.tests_of(X, self.folds.pair_rows)


def _in_memory(model: SVCCV, X: Any, y: Any) -> tuple[Any, Any]:
    """Rows in memory in scikit-learn's way; others stay as they are, without names to learn."""
    frame = hasattr(X, "iloc") and not hasattr(X, "dask")
    if frame or isinstance(X, (np.ndarray, list)) or sparse.issparse(X):
        return model._read_rows(X, y)
    model.__dict__.pop("feature_names_in_", None)  # of an earlier fit
    return X, y


def _even(weight: FloatArray) -> FloatArray:
    """One number for all rows, if they weigh the same."""
    if (weight == weight[0]).all():
        return np.broadcast_to(weight[:1].copy(), weight.shape)
    return weight


def _is_one(weight: FloatArray) -> bool:
    return weight.strides == (0,)


def _local(source: RowSource, given: Any) -> Any:
    """Labels, weights or groups, which may be a column of the source or a Dask collection."""
    return source.column(given) if isinstance(given, str) else as_local(given)


def _check_scorer(source: RowSource, scorer: Scorer) -> None:
    """Scikit-learn's scorers look at predictions alone; of others nobody knows."""
    if scorer.needs_rows and not isinstance(source, ArrayRows):
        raise UnsupportedError(
            f"scoring={scorer.name!r} is a function of the rows, which are not in memory; use "
            "sklearn.metrics.make_scorer, or load the rows"
        )
