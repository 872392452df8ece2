"""One gamma of ``SVCCV(approx=...)``: its curve, its score, its best point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..crossval.choice import best_point, smallest_within
from ..crossval.components import enough_components
from ..crossval.feature_pairs import FeatureClasses, FeatureResults, cross_validate_features
from ..crossval.overviews import QUICK
from ..crossval.scoring import LeftOut, jackknife_se, shaped
from ..crossval.tuning import count_by_weight, error_and_se
from ..judge.certificate import Certificate, warn_if_short
from ..judge.ledger import HOW
from ..lowrank.features import FeatureMap
from ..lowrank.options import Options
from ..lowrank.task import FeatureProblem, FeatureTask
from ..problem import checks, inputs
from ..problem.grid import Grid, make_grid
from ..problem.kernels import Kernel
from ..report.overview import LeftOutRows, Overview
from ..runtime.memory import budget_of
from ..runtime.progress import Progress, following
from ..runtime.threads import Workers
from ..runtime.user_line import user_level
from ..types import FloatArray
from .lowrank_rows import Rows

if TYPE_CHECKING:
    from .svc_cv import SVCCV

__all__ = ["ApproxCurve", "curve", "left_out_values", "packed", "unpacked"]


@dataclass(frozen=True)
class ApproxCurve:
    """What came out for one gamma, along the grid of C.

    The point taken is ``overview.chosen``: the best one, or that of the 1-SE rule.  ``weights``
    (P, m) and ``intercept`` (P,) are those of its full-data models, positive for the second class
    of each pair.  ``labels`` are the left-out predictions (L, T), `packed`; ``decision`` (L, T, P)
    is kept on request.  ``score_se`` is NaN where it was not worked out.
    """

    overview: Overview
    certificate: Certificate
    weights: FloatArray
    intercept: FloatArray
    feature_map: FeatureMap
    score: FloatArray
    score_se: FloatArray
    labels: NDArray[Any]
    decision: FloatArray | None = None

    @property
    def gamma(self) -> float | None:
        return self.feature_map.gamma


def packed(found: FeatureResults) -> NDArray[Any]:
    """The left-out predictions (L, T), of two classes eight to a byte."""
    if found.voted is not None:
        return np.asarray(found.voted)
    return np.stack([np.packbits(found.labels_at(l)) for l in range(len(found.wrong))])


def unpacked(labels: NDArray[Any], n_classes: int, n_tests: int) -> NDArray[Any]:
    """Class numbers (L, T) again."""
    return np.unpackbits(labels, axis=1, count=n_tests) if n_classes == 2 else labels


def curve(model: SVCCV, rows: Rows, kernel: Kernel, progress: bool | Progress) -> ApproxCurve:
    """Cross-validate all C with one gamma."""
    grid, grown, scorer = make_grid(model.Cs, model.lambdas, rows.total), "", rows.scorer
    keeps = model.store_cv_results or not scorer.labels_only

    def run(m: int) -> _Run:
        return _run(model, rows, kernel, grid, keeps, m, progress)

    if model.n_components == "auto":
        found, grown = enough_components(run, rows.n_used, model.memory_limit)
    else:
        found = run(inputs.check_components(model.n_components))
    n_solutions = len(grid) * (len(rows.folds) + 1)
    warn_if_short(found.certificate, grid.Cs, n_solutions, stacklevel=user_level() + 1)
    score, se = _score(model, rows, found)
    best, one_se, point = _chosen(model, rows, found, grid, score, se)
    shown = replace(
        _overview(model, rows, kernel, grid, found, point),
        best=(0, best),
        one_se=None if one_se is None else (0, one_se),
        score=None if scorer.call is None else score[None],
        scoring=scorer.shown_name,
        grown=grown,
    )
    decision = found.decision
    if not model.store_cv_results and decision is not None and decision.size > QUICK:
        decision = None  # it was wanted for the score alone
    return ApproxCurve(
        overview=shown,
        certificate=found.certificate,
        weights=found.all.weights[:, point].copy(),
        intercept=found.all.intercept[:, point].copy(),
        feature_map=found.feature_map,
        score=score,
        score_se=se,
        labels=packed(found.all),
        decision=decision,
    )


def _score(model: SVCCV, rows: Rows, found: _Run) -> tuple[FloatArray, FloatArray]:
    """What is to be maximised, along the grid, and its standard error as far as it is known."""
    if rows.scorer.call is None:
        return 1.0 - found.error, found.se
    tests = rows.shown, rows.score_arguments
    left_out = (_left_out(rows, found, l, model) for l in range(len(found.error)))
    score = np.array([one.score_with(rows.scorer, *tests) for one in left_out])
    return score, np.full(len(score), np.nan)


def _chosen(
    model: SVCCV, rows: Rows, found: _Run, grid: Grid, score: FloatArray, se: FloatArray
) -> tuple[int, int | None, int]:
    """The best point, that of the 1-SE rule if its standard error is known, and the one taken.

    Where the 1-SE rule is asked for, the standard error at the best point is worked out.
    """
    short, by_accuracy = found.certificate.short, rows.scorer.call is None
    _, best = best_point(-score[None], short[None], grid.Cs, np.zeros(1))
    if not by_accuracy and model.select == "1se":
        tests = rows.shown, rows.score_arguments, rows.folds.pair_folds
        se[best] = jackknife_se(_left_out(rows, found, best, model), rows.scorer, *tests)
    if model.select == "min" and not by_accuracy:
        return best, None, best
    one_se = smallest_within(1.0 - score, short, grid.Cs, best, float(se[best]))
    return best, one_se, best if model.select == "min" else one_se


def left_out_values(
    model: SVCCV, rows: Rows, chosen: ApproxCurve, progress: bool | Progress
) -> FloatArray:
    """Left-out decision values (T, P) at the chosen point alone.

    For one C this takes far less than all values of the grid.
    """
    point = chosen.overview.chosen[1]
    if chosen.decision is not None:
        return chosen.decision[point]
    grid = make_grid(model.Cs, model.lambdas, rows.total).part(np.array([point]))
    # The map that was fitted, so that nothing has to be said of its kernel again.
    found = _run(
        model, rows, model._kernels()[0], grid, True, chosen.feature_map.n_components, progress,
        chosen.feature_map,
    )  # fmt: skip
    assert found.decision is not None
    return found.decision[0]


# --- one run --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Run:
    """What a cross-validation gave, and its error by weight."""

    all: FeatureResults
    error: FloatArray
    se: FloatArray
    best: int

    @property
    def feature_map(self) -> FeatureMap:
        return self.all.feature_map

    @property
    def certificate(self) -> Certificate:
        return self.all.certificate

    @property
    def decision(self) -> FloatArray | None:
        return self.all.decision


def _run(
    model: SVCCV,
    rows: Rows,
    kernel: Kernel,
    grid: Grid,
    want_decision: bool,
    n_components: int,
    progress: bool | Progress,
    feature_map: FeatureMap | None = None,
) -> _Run:
    problem = FeatureProblem(
        source=rows.source,
        y=np.where(rows.codes > 0, 1.0, -1.0),
        weight=rows.weight,
        kernel=kernel,
        approx=str(model.approx),
        n_components=n_components,
        seed=rows.seed,
        fit_intercept=model.fit_intercept,
        feature_map=feature_map,
    )
    task = FeatureTask(
        problem=problem,
        folds=count_by_weight(rows.folds, grid, rows.sample_weight),
        grid=grid,
        want_decision=want_decision,
        tol=float(model.tol),
        options=Options(),
        budget=budget_of(model.memory_limit),
    )
    n_threads = checks.check_n_threads(model.n_jobs)
    with following(progress) as watch, Workers(n_threads, watch) as workers:
        found = cross_validate_features(FeatureClasses(task, rows.codes), workers)
    error, se = error_and_se(found.wrong, rows.folds.offsets, rows.test_weight)
    _, best = best_point(error[None], found.certificate.short[None], grid.Cs, np.zeros(1))
    return _Run(found, error, se, best)


def _left_out(rows: Rows, found: _Run, l: int, model: SVCCV) -> LeftOut:
    """The left-out results of one grid point, as scorers see them."""
    decision = None if found.decision is None else found.decision[l]
    values = found.all.labels_at(l), decision, rows.test_weight
    return LeftOut(rows.classes, rows.truth, *values, model.decision_function_shape)


def _overview(
    model: SVCCV, rows: Rows, kernel: Kernel, grid: Grid, found: _Run, point: int
) -> Overview:
    certificate, stats = found.certificate, found.all.stats
    count = found.feature_map.n_components
    gamma = found.feature_map.gamma
    return Overview(
        Cs=grid.Cs,
        lambdas=grid.lambdas,
        gammas=np.array([np.nan if gamma is None else gamma]),
        error=found.error[None],
        se=found.se[None],
        n_errors=found.all.wrong.sum(axis=1)[None],
        at_bound=found.all.at_bound[None],
        kkt=certificate.kkt[None],
        gap=certificate.gap[None],
        best=(0, point),
        one_se=None,
        chosen=(0, point),
        left_out=_left_out_rows(rows, found.all, point),
        classes=rows.classes,
        n_rows=rows.n,
        n_folds=len(rows.folds),
        leave_one_out=rows.folds.leave_one_out,
        fit_intercept=model.fit_intercept,
        method=model.method,
        loss=model.loss,
        kernel=kernel.label,
        approx=f"{model.approx}, {count} components",
        scale_with_fold=grid.scale_with_fold,
        effective=rows.effective_tests,
        settled={name: stats.get(name, 0) for name in HOW},
        exact=certificate.exact,
        convex=certificate.convex,
        unresolved=len(certificate.unresolved),
        tol=certificate.tol,
    )


def _left_out_rows(rows: Rows, found: FeatureResults, point: int) -> LeftOutRows:
    """A left-out value of zero votes against the row's own class."""
    values = None if found.decision is None else found.decision[point]
    return LeftOutRows(
        row=rows.tested,
        truth=rows.truth,
        predicted=found.labels_at(point),
        decision=None if values is None else shaped(values, len(rows.classes), "ovr"),
    )
