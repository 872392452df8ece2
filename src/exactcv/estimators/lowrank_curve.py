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
from ..lowrank.budget import memory_of
from ..lowrank.features import FeatureMap
from ..lowrank.options import Options
from ..lowrank.task import FeatureProblem, FeatureTask, is_wide
from ..problem import checks, inputs
from ..problem.grid import Grid, make_grid
from ..problem.kernels import Kernel
from ..problem.loss_rules import LossRule
from ..report.overview import LeftOutRows, Overview
from ..runtime.progress import Progress, following
from ..runtime.threads import Workers
from ..runtime.user_line import user_level
from ..types import FloatArray
from .lowrank_rows import Rows

if TYPE_CHECKING:
    from .svc_cv import SVCCV

__all__ = [
    "ApproxCurve",
    "curve",
    "joined",
    "left_out_values",
    "packed",
    "unpacked",
    "with_point",
]


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


def curve(
    model: SVCCV,
    rows: Rows,
    kernel: Kernel,
    progress: bool | Progress,
    part: Grid | None = None,
    n_components: int | None = None,
) -> ApproxCurve:
    """Cross-validate all C with one gamma; ``part`` is the default grid, or what it gains."""
    grid, grown = part or make_grid(model.Cs, model.lambdas, rows.total), ""
    scorer = rows.scorer
    keeps = model.store_cv_results or not scorer.labels_only
    m = model.n_components if n_components is None else n_components
    if model.approx is None:
        m = rows.source.p

    def run(m: int) -> _Run:
        return _run(model, rows, kernel, grid, keeps, m, progress)

    if m == "auto":
        found, grown = enough_components(run, rows.n_used, model.memory_limit)
    else:
        found = run(inputs.check_components(m))
    n_solutions = len(grid) * (len(rows.folds) + 1)
    warn_if_short(found.certificate, grid.Cs, n_solutions, stacklevel=user_level() + 1)
    score, se = _scores(model, rows, found)
    places = _places(model, rows, score, se, found.certificate, grid.Cs)
    point = places["chosen"][1]
    shown = replace(
        _overview(model, rows, kernel, grid, found, point),
        **places,
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


def _scores(model: SVCCV, rows: Rows, found: _Run) -> tuple[FloatArray, FloatArray]:
    """Along the grid; the standard error of a scorer only at its best point, if it is needed."""
    scorer = rows.scorer
    if scorer.call is None:
        return 1.0 - found.error, found.se
    given = rows.shown, rows.score_arguments
    left_out = [_left_out(rows, found, l, model) for l in range(len(found.error))]
    score = np.array([one.score_with(scorer, *given) for one in left_out])
    se = np.full(len(score), np.nan)
    if model.select == "1se":
        best = _best(score, found.certificate, found.Cs)
        se[best] = jackknife_se(left_out[best], scorer, *given, rows.folds.pair_folds)
    return score, se


def _best(score: FloatArray, certificate: Certificate, Cs: FloatArray) -> int:
    return best_point(-score[None], certificate.short[None], Cs, np.zeros(1))[1]


def _places(
    model: SVCCV,
    rows: Rows,
    score: FloatArray,
    se: FloatArray,
    certificate: Certificate,
    Cs: FloatArray,
) -> dict[str, Any]:
    """The best point of a curve, that of the 1-SE rule where it is known, and the one taken."""
    best, one_se = _best(score, certificate, Cs), None
    if model.select == "1se" or rows.scorer.call is None:
        one_se = smallest_within(1.0 - score, certificate.short, Cs, best, float(se[best]))
    point = best if model.select == "min" or one_se is None else one_se
    return {
        "best": (0, best),
        "one_se": None if one_se is None else (0, one_se),
        "chosen": (0, point),
    }


def joined(model: SVCCV, rows: Rows, low: ApproxCurve, high: ApproxCurve) -> ApproxCurve:
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
    score, se = (
        np.concatenate(both) for both in zip(*((p.score, p.score_se) for p in parts), strict=True)
    )
    if rows.scorer.call is not None:
        stacked["score"] = score[None]
    certificate = Certificate.joined([one.certificate for one in parts])
    places = _places(model, rows, score, se, certificate, stacked["Cs"])
    taken = low if places["chosen"][1] < len(low.overview.Cs) else high
    counts = low.overview.settled, high.overview.settled
    shown = replace(
        taken.overview,
        **stacked,
        **places,
        settled={name: counts[0][name] + counts[1][name] for name in counts[0]},
        exact=certificate.exact,
        unresolved=low.overview.unresolved + high.overview.unresolved,
    )
    decisions = [one.decision for one in parts if one.decision is not None]
    return replace(
        taken,
        overview=shown,
        certificate=certificate,
        score=score,
        score_se=se,
        labels=np.concatenate([one.labels for one in parts]),
        decision=np.concatenate(decisions) if len(decisions) == 2 else None,
    )


def with_point(model: SVCCV, rows: Rows, one: ApproxCurve) -> ApproxCurve:
    """A joined curve with the model at the point that the 1-SE rule takes."""
    found = _at_point(model, rows, one, False, False)
    left_out = _left_out_rows(rows, found.all, 0)
    return replace(
        one,
        overview=replace(one.overview, left_out=left_out),
        weights=found.all.weights[:, 0].copy(),
        intercept=found.all.intercept[:, 0].copy(),
    )


def left_out_values(
    model: SVCCV, rows: Rows, chosen: ApproxCurve, progress: bool | Progress
) -> FloatArray:
    """Left-out decision values (T, P) at the chosen point alone.

    For one C this takes far less than all values of the grid.
    """
    if chosen.decision is not None:
        return chosen.decision[chosen.overview.chosen[1]]
    found = _at_point(model, rows, chosen, True, progress)
    assert found.decision is not None
    return found.decision[0]


def _at_point(
    model: SVCCV, rows: Rows, one: ApproxCurve, want_decision: bool, progress: bool | Progress
) -> _Run:
    """The chosen point alone, with the map that was fitted: nothing of its kernel is said again."""
    shown, at = one.overview, slice(one.overview.chosen[1], one.overview.chosen[1] + 1)
    grid = Grid(shown.Cs[at], shown.lambdas[at], shown.scale_with_fold)
    kernel, fmap = model._kernels()[0], one.feature_map
    return _run(model, rows, kernel, grid, want_decision, fmap.n_components, progress, fmap)


# --- one run --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Run:
    """What a cross-validation gave, and its error by weight."""

    all: FeatureResults
    Cs: FloatArray
    error: FloatArray
    se: FloatArray

    @property
    def best(self) -> int:
        return _best(1.0 - self.error, self.certificate, self.Cs)

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
        y=np.where(rows.codes > 0, np.int8(1), np.int8(-1)),
        weight=rows.weight,
        kernel=kernel,
        approx=model.approx,
        n_components=n_components,
        seed=rows.seed,
        fit_intercept=model.fit_intercept,
        loss=LossRule(model.loss),
        feature_map=feature_map,
    )
    wide = model.approx is None and is_wide(rows.source.p)
    options, budget = memory_of(model.memory_limit, Options(), rows.source, n_components, wide)
    task = FeatureTask(
        problem=problem,
        folds=count_by_weight(rows.folds, grid, rows.sample_weight),
        grid=grid,
        want_decision=want_decision,
        tol=float(model.tol),
        options=options,
        budget=budget,
    )
    n_threads = checks.check_n_threads(model.n_jobs)
    with following(progress) as watch, Workers(n_threads, watch) as workers:
        found = cross_validate_features(FeatureClasses(task, rows.codes), workers)
    error, se = error_and_se(found.wrong, rows.folds.offsets, rows.test_weight)
    return _Run(found, grid.Cs, error, se)


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
        approx=None if model.approx is None else f"{model.approx}, {count} components",
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
