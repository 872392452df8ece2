"""Results as the report sees them (``report/overview.py``)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..exceptions import InputError
from ..judge.ledger import HOW
from ..report.overview import LeftOutRows, Overview
from ..tolerances import TIE
from .growth import growth_text

if TYPE_CHECKING:
    from .corrected import Corrected
    from .result import CVResult
    from .tuning import Tuned, Tuning

__all__ = [
    "DRAWING",
    "QUICK",
    "SORTING",
    "of_result",
    "of_tuned",
    "shown_correction",
    "with_correction",
]

QUICK = 5_000_000  # left-out labels, for which a thousand bootstraps take about a second
SORTING = 10  # what a score of sorted values takes there, in terms of one of labels
DRAWING = 15  # what the samples take, for each row, before there is any score


def of_result(result: CVResult) -> Overview:
    """The overview of one result; the point taken is ``best``."""
    taken = result.best
    certificate = result.certificate
    return Overview(
        Cs=result.Cs,
        lambdas=result.lambdas,
        gammas=np.array([np.nan if result.gamma is None else result.gamma]),
        error=result.error[None],
        se=result.se[None],
        n_errors=result.n_errors[None],
        at_bound=result.at_bound[None],
        kkt=certificate.kkt[None],
        gap=certificate.gap[None],
        best=(0, result.best),
        one_se=(0, result.one_se),
        chosen=(0, taken),
        left_out=_left_out(result, taken),
        classes=result.classes,
        n_rows=len(result.y),
        n_folds=result.n_folds,
        leave_one_out=result.leave_one_out,
        fit_intercept=result.fit_intercept,
        method=result.method,
        loss=result.loss,
        kernel=result.kernel,
        approx=_approximation(result),
        scale_with_fold=result.scale_with_fold,
        grown=result.grown,
        settled={name: result.stats.get(name, 0) for name in HOW},
        exact=certificate.exact,
        convex=certificate.convex,
        unresolved=len(certificate.unresolved),
        tol=certificate.tol,
        timings=dict(result.timings),
    )


def with_correction(result: CVResult) -> Overview:
    """The same with the error after tuning, where that is quickly worked out."""
    if result.pair_wrong.size > QUICK:
        return result._plain_overview()
    try:
        corrected = shown_correction(result._corrected_once, True, len(result.Cs))
    except InputError:  # too few rows for it, which corrected() says
        return result._plain_overview()
    return replace(result._plain_overview(), corrected=corrected)


def _approximation(result: CVResult) -> str | None:
    """How the kernel is approximated, in words."""
    if result.feature_map is None:
        return None
    return f"{result.approx}, {result.feature_map.n_components} components"


def _left_out(result: CVResult, l: int) -> LeftOutRows:
    truth = (result.y[result.test_row] > 0).astype(np.intp)
    wrong, decision = result.pair_wrong[l], None
    predicted = np.where(wrong, 1 - truth, truth)
    if result.pair_decision is not None:
        decision = result.pair_decision[l]
        predicted[np.abs(decision) <= TIE] = -1
    return LeftOutRows(
        row=result.test_row,
        truth=truth,
        predicted=predicted,
        decision=decision,
        wrong_at=result.pair_wrong.sum(axis=0),
    )


def of_tuned(
    tuning: Tuning,
    tuned: Tuned,
    *,
    left_out: LeftOutRows,
    corrected: Corrected | None,
    n_rows: int,
    seconds: float,
) -> Overview:
    """The overview of a tuned estimator; ``left_out`` at the chosen point."""
    certificate, curves = tuned.certificate, tuned.curves
    by_curve: dict[str, Any] = {
        name: np.array([getattr(curve, name) for curve in curves])
        for name in ("error", "se", "n_errors", "at_bound")
    }
    figures: dict[str, Any] = {
        name: getattr(certificate, name).reshape(tuned.score.shape) for name in ("kkt", "gap")
    }
    scoring = tuning.scorer.shown_name
    return Overview(
        Cs=tuning.grid.Cs,
        lambdas=tuning.grid.lambdas,
        gammas=tuned.gammas,
        best=tuned.best,
        one_se=tuned.one_se,
        chosen=(tuned.kernel, tuned.point),
        left_out=left_out,
        classes=tuning.classes,
        n_rows=n_rows,
        n_folds=len(tuning.folds),
        leave_one_out=tuning.folds.leave_one_out,
        fit_intercept=tuning.plan.fit_intercept,
        method=tuning.plan.method,
        loss=tuning.plan.loss,
        kernel=tuning.kernels[0].label,
        approx=None,
        scale_with_fold=tuning.grid.scale_with_fold,
        score=None if scoring is None else tuned.score,
        chance=tuned.chance,
        corrected=shown_correction(corrected, scoring is None, tuned.score.size),
        effective=tuning.effective_tests,
        grown=growth_text(tuning.grid, tuning.new_gammas or (0, 0)),
        scoring=scoring,
        settled={name: sum(curve.stats[name] for curve in curves) for name in HOW},
        exact=certificate.exact,
        convex=certificate.convex,
        unresolved=len(certificate.unresolved),
        tol=certificate.tol,
        timings={"total": seconds},
        **by_curve,
        **figures,
    )


def shown_correction(
    corrected: Corrected | None, by_error: bool, n_points: int
) -> tuple[float, float, float] | None:
    """As an error if that was minimised; nothing if there was no choice."""
    if corrected is None or n_points == 1:
        return None
    if by_error:
        return corrected.error, *corrected.error_interval
    return corrected.score, *corrected.interval
