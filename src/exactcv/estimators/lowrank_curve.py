"""One gamma of ``SVCCV(approx=...)``: its rows and folds, its curve, its best point."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import LeaveOneOut

from ..crossval.choice import best_point, smallest_within
from ..crossval.cross_validate import cross_validate
from ..crossval.overviews import of_result
from ..crossval.result import CVResult
from ..crossval.tuning import error_and_se
from ..exceptions import NotPSDWarning
from ..judge.certificate import Certificate
from ..lowrank.features import FeatureMap
from ..lowrank.open_source import open_source
from ..lowrank.options import Options
from ..lowrank.passes.distributed import as_local
from ..lowrank.rows.kept import keep_rows
from ..lowrank.rows.sources import ArrayRows, RowSource
from ..problem import inputs
from ..problem.checks import seed_from
from ..problem.folds import Folds
from ..problem.grid import Grid, feature_grid, make_grid
from ..problem.intervals import effective_count
from ..report.overview import LeftOutRows, Overview
from ..runtime.progress import Progress
from ..types import FloatArray, IntArray, Output

if TYPE_CHECKING:
    from .svc_cv import SVCCV

__all__ = ["ApproxCurve", "Rows", "curve", "joined", "left_out_values", "with_point"]


@dataclass(frozen=True)
class Rows:
    """The rows that count, and what is the same for every gamma.

    Rows of weight zero are not among them, wherever the rows come from.  ``weight`` is None if
    every row counts once; ``keep`` are the places of these rows among all ``n``, None if they are
    all there.
    """

    source: RowSource
    y: NDArray[Any]
    weight: FloatArray | None
    cv: Any
    seed: int
    keep: NDArray[np.intp] | None
    n: int

    @classmethod
    def of(cls, model: SVCCV, X: Any, y: Any, sample_weight: Any, groups: Any) -> Rows:
        """Folds and seed are settled here, once: all gammas see the same folds and features."""
        columns = [name for name in (y, sample_weight, groups) if isinstance(name, str)]
        source = open_source(X, columns, Options().chunk_rows)
        n, keep = source.n, np.arange(source.n)
        labels, _, _ = inputs.encode_labels(_local(source, y), n)
        weight = None
        if sample_weight is not None:
            weight = inputs.read_sample_weight(_local(source, sample_weight), n)
            keep = np.flatnonzero(weight > 0)
        groups = inputs.read_groups(_local(source, groups), n)
        if weight is not None and len(keep) < n:
            source, labels, weight = keep_rows(source, keep), labels[keep], weight[keep]
            groups = None if groups is None else groups[keep]
        return cls(
            source=source,
            y=labels,
            weight=weight,
            cv=_same_folds(model, source, labels, groups, keep, n),
            seed=_seed(model),
            keep=None if len(keep) == n else keep,
            n=n,
        )

    @property
    def default_grid(self) -> Grid:
        """The grid of who gives none."""
        return feature_grid(self.total)

    @property
    def total(self) -> float:
        """What the rows amount to, each by its weight."""
        return float(len(self.y) if self.weight is None else self.weight.sum())

    @property
    def uneven(self) -> bool:
        """Do some rows count more than others?"""
        return self.weight is not None and not (self.weight == self.weight[0]).all()

    def effective_tests(self, tested: IntArray) -> float | None:
        """How many rows the tested ones amount to; None if all weigh the same."""
        if self.weight is None or not self.uneven:
            return None
        return effective_count(self.weight[np.unique(tested)])


def _local(source: RowSource, given: Any) -> Any:
    """Labels, weights or groups, which may be a column of the source or a Dask collection."""
    return source.column(given) if isinstance(given, str) else as_local(given)


def _seed(model: SVCCV) -> int:
    """A number to draw features with; an int as it is, so that they are ``cross_validate``'s."""
    given = model.random_state
    return int(given) if isinstance(given, numbers.Integral) else seed_from(given)


def _same_folds(
    model: SVCCV,
    source: RowSource,
    labels: NDArray[Any],
    groups: Any,
    keep: NDArray[np.intp],
    n: int,
) -> Any:
    """``cv`` for every gamma; leave-one-out stays what it is."""
    cv = model.cv
    if isinstance(cv, LeaveOneOut) or (isinstance(cv, str) and cv == "loo"):
        return cv
    # Splitters need the number of rows; where these are not in memory, that is all they get.
    rows = np.broadcast_to(np.zeros(1), (source.n, 1))
    if isinstance(source, ArrayRows):
        rows = source.X
    split_with = {} if groups is None else {"groups": groups}
    return SameFolds(model._folds(rows, labels, keep, n, split_with))


@dataclass(frozen=True)
class SameFolds:
    """Folds that were made before, as a splitter; the training part is what is not left out.

    A list of pairs would hold nearly all rows once for each fold.
    """

    folds: Folds

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]:
        for left_out, test in zip(self.folds.left_out, self.folds.test, strict=True):
            train = np.ones(self.folds.n, dtype=bool)
            train[left_out] = False
            yield np.flatnonzero(train), test


# --- one gamma ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ApproxCurve:
    """What came out for one gamma, along the grid of C.

    The point taken is ``overview.chosen``: the best one, or that of the 1-SE rule.  ``weights``
    and ``intercept`` are those of its full-data model; ``decision`` (L, n) is kept on request.
    ``wrong`` says which tests are, (L, T) in bits, eight to a byte.
    """

    overview: Overview
    certificate: Certificate
    weights: FloatArray
    intercept: float
    feature_map: FeatureMap
    wrong: NDArray[np.uint8]
    decision: FloatArray | None = None

    @property
    def gamma(self) -> float | None:
        return self.feature_map.gamma


def curve(
    model: SVCCV,
    rows: Rows,
    gamma: Any,
    progress: bool | Progress,
    part: Grid | None = None,
    n_components: int | None = None,
) -> ApproxCurve:
    """Cross-validate all C with one gamma; ``part`` is the default grid, or what it gains."""
    grid, lambdas = _grid(model, rows) if part is None else _of_lambdas(rows, part.lambdas)
    output: Output = "decision" if model.store_cv_results else "error"
    result = _run(model, rows, gamma, grid, output, progress, n_components)
    error, se = _error_and_se(result, rows)
    Cs = result.Cs
    places = _places(model, error, se, result.certificate, Cs)
    point = places["chosen"][1]
    shown = replace(
        of_result(result),
        lambdas=result.lambdas if lambdas is None else lambdas,
        error=error[None],
        se=se[None],
        **places,
        left_out=_left_out(result, rows, point),
        n_rows=rows.n,
        effective=rows.effective_tests(result.test_row),
        timings={},
    )
    assert result.weights is not None and result.feature_map is not None
    decision = result.decision
    if decision is not None and rows.keep is not None:
        decision = np.full((len(Cs), rows.n), np.nan)
        decision[:, rows.keep] = result.decision
    return ApproxCurve(
        overview=shown,
        certificate=result.certificate,
        weights=result.weights[point].copy(),
        intercept=float(result.intercept[point]),
        feature_map=result.feature_map,
        wrong=np.packbits(result.pair_wrong, axis=1),
        decision=decision,
    )


def _places(
    model: SVCCV, error: FloatArray, se: FloatArray, certificate: Certificate, Cs: FloatArray
) -> dict[str, Any]:
    """The best point of a curve, that of the 1-SE rule, and the one taken."""
    short = certificate.short
    _, best = best_point(error[None], short[None], Cs, np.zeros(1))
    one_se = smallest_within(error, short, Cs, best, float(se[best]))
    point = best if model.select == "min" else one_se
    return {"best": (0, best), "one_se": (0, one_se), "chosen": (0, point)}


def joined(model: SVCCV, low: ApproxCurve, high: ApproxCurve) -> ApproxCurve:
    """The curve of two parts of the grid of C, with the same gamma and the same features.

    The model at its best point is there; that of the 1-SE rule may be another than both parts
    have, and then `with_point` is to find it.
    """
    parts = (low, high)
    across = ("error", "se", "n_errors", "at_bound", "kkt", "gap")
    stacked: dict[str, Any] = {
        name: np.concatenate([getattr(one.overview, name) for one in parts], axis=-1)
        for name in ("Cs", "lambdas", *across)
    }
    certificate = Certificate.joined([one.certificate for one in parts])
    places = _places(model, stacked["error"][0], stacked["se"][0], certificate, stacked["Cs"])
    first = places["chosen"][1] < len(low.overview.Cs)
    taken = low if first else high
    shown = replace(
        taken.overview,
        **stacked,
        **places,
        settled={
            name: low.overview.settled[name] + count
            for name, count in high.overview.settled.items()
        },
        exact=certificate.exact,
        unresolved=low.overview.unresolved + high.overview.unresolved,
    )
    decisions = [one.decision for one in parts if one.decision is not None]
    return replace(
        taken,
        overview=shown,
        certificate=certificate,
        wrong=np.concatenate([one.wrong for one in parts]),
        decision=np.concatenate(decisions) if decisions else None,
    )


def with_point(model: SVCCV, rows: Rows, one: ApproxCurve) -> ApproxCurve:
    """A joined curve with the model at the point that the 1-SE rule takes."""
    values, gamma = _at_point(model, rows, one)
    result = _run(model, rows, gamma, values, "error", False, one.feature_map.n_components)
    assert result.weights is not None
    shown = replace(one.overview, left_out=_left_out(result, rows, 0))
    return replace(
        one,
        overview=shown,
        weights=result.weights[0].copy(),
        intercept=float(result.intercept[0]),
    )


def left_out_values(
    model: SVCCV, rows: Rows, chosen: ApproxCurve, progress: bool | Progress
) -> tuple[FloatArray, FloatArray]:
    """Left-out decision values and weights, one for each test, at the chosen point alone.

    For one C this takes far less than ``output="decision"`` for the whole grid.
    """
    values, gamma = _at_point(model, rows, chosen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPSDWarning)  # it has been said
        m = chosen.feature_map.n_components
        result = _run(model, rows, gamma, values, "decision", progress, m)
    assert result.pair_decision is not None
    weight = np.ones(len(result.test_row))
    if rows.weight is not None:
        weight = rows.weight[result.test_row]
    return np.asarray(result.pair_decision[0]), weight


def _at_point(
    model: SVCCV, rows: Rows, one: ApproxCurve
) -> tuple[dict[str, FloatArray], float | str]:
    """The grid of the chosen point alone, and gamma, for ``cross_validate``."""
    point = one.overview.chosen[1]
    if model.Cs is None and model.lambdas is None:
        grid, _ = _of_lambdas(rows, one.overview.lambdas)
    else:
        grid = _explicit(_grid(model, rows)[0], one)
    gamma = "median" if one.gamma is None else one.gamma
    return {name: value[point : point + 1] for name, value in grid.items()}, gamma


def _of_lambdas(rows: Rows, lambdas: FloatArray) -> tuple[dict[str, Any], FloatArray]:
    """As `_grid`, for these lambdas."""
    return {"lambdas": lambdas * (rows.total / len(rows.y))}, lambdas


def _grid(model: SVCCV, rows: Rows) -> tuple[dict[str, Any], FloatArray | None]:
    """``Cs`` or ``lambdas`` for ``cross_validate``, and the lambdas as they are to be shown.

    ``cross_validate`` counts rows in C = 1 / (2 n lambda), ``SVCCV`` adds up their weights W:
    lambda W / n gives the first the C of the second.
    """
    if rows.weight is None:
        return {"Cs": model.Cs, "lambdas": model.lambdas}, None
    grid = make_grid(model.Cs, model.lambdas, rows.total)
    if model.Cs is not None:
        return {"Cs": grid.Cs}, grid.lambdas
    return _of_lambdas(rows, grid.lambdas)


def _explicit(grid: dict[str, Any], chosen: ApproxCurve) -> dict[str, FloatArray]:
    """The same grid as arrays: a number of lambdas, or none at all, stands for the papers' grid."""
    if grid.get("Cs") is not None:
        return {"Cs": chosen.overview.Cs}
    lambdas = grid.get("lambdas")
    if isinstance(lambdas, np.ndarray) and lambdas.ndim:
        return {"lambdas": lambdas}
    return {"lambdas": chosen.overview.lambdas}


def _run(
    model: SVCCV,
    rows: Rows,
    gamma: Any,
    grid: dict[str, Any],
    output: Output,
    progress: bool | Progress,
    n_components: int | None = None,
) -> CVResult:
    source: Any = rows.source  # besides what users may give
    return cross_validate(
        source,
        rows.y,
        kernel=model.kernel,
        gamma=gamma.item() if isinstance(gamma, np.generic) else gamma,
        degree=model.degree,
        coef0=model.coef0,
        **grid,
        cv=rows.cv,
        sample_weight=rows.weight,
        class_weight=model.class_weight,
        fit_intercept=model.fit_intercept,
        output=output,
        n_jobs=model.n_jobs,
        tol=model.tol,
        random_state=rows.seed,
        progress=progress,
        approx=model.approx,
        n_components=model.n_components if n_components is None else n_components,
        memory_limit=model.memory_limit,
    )


def _error_and_se(result: CVResult, rows: Rows) -> tuple[FloatArray, FloatArray]:
    """Errors count by weight, as everywhere in ``SVCCV``."""
    if rows.weight is None or not rows.uneven:
        return result.error, result.se
    sizes = np.bincount(result.test_fold)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return error_and_se(result.pair_wrong, offsets, rows.weight[result.test_row])


def _left_out(result: CVResult, rows: Rows, point: int) -> LeftOutRows:
    """A left-out value of zero votes against the row's own class."""
    tested = result.test_row
    truth = (result.y[tested] > 0).astype(np.intp)
    wrong = result.pair_wrong[point]
    decision = None if result.pair_decision is None else result.pair_decision[point]
    return LeftOutRows(
        row=tested if rows.keep is None else rows.keep[tested],
        truth=truth,
        predicted=np.where(wrong, 1 - truth, truth),
        decision=decision,
    )
