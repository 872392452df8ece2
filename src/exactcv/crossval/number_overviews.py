"""Results of numbers as the report sees them (``report/overview.py``)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..judge.ledger import HOW
from ..report.overview import LeftOutNumbers, LeftOutRows, Overview
from ..types import IntArray
from .growth import growth_text
from .overviews import shown_correction

if TYPE_CHECKING:
    from .corrected import Corrected
    from .number_tuning import NumbersTuned
    from .regression_result import RegressionResult

__all__ = ["of_numbers_result", "of_numbers_tuned"]


def tested_rows(row: IntArray) -> LeftOutRows:
    """Which rows were tested, and nothing of classes."""
    nothing = np.zeros(len(row), dtype=np.intp)
    return LeftOutRows(row=row, truth=nothing, predicted=nothing)


def of_numbers_result(result: RegressionResult, plain: Overview) -> Overview:
    """The overview of a result of numbers; ``plain`` has what is common to all."""
    assert result.pair_decision is not None
    name = next(iter(result.parameters), None)
    return replace(
        plain,
        left_out=tested_rows(result.test_row),
        numbers=LeftOutNumbers(
            truth=result.y[result.test_row], predicted=result.pair_decision[plain.chosen[1]]
        ),
        parameter=None if name is None else (name, np.array([result.parameters[name]])),
    )


def approximation(tuned: NumbersTuned) -> str | None:
    """How the kernel of the chosen model is approximated, in words."""
    features = tuned.tuning.features
    if features is None:
        return None
    return f"{features.approx}, {tuned.curve.n_components} components"


def of_numbers_tuned(
    tuned: NumbersTuned,
    keep: IntArray,
    corrected: Corrected | None,
    n_rows: int,
    seconds: float,
) -> Overview:
    """The overview of a tuned estimator; ``keep`` are the user's numbers of the rows."""
    tuning, curves, certificate = tuned.tuning, tuned.curves, tuned.certificate
    plan, scorer, tests = tuning.plans[0], tuning.scorer, tuning.folds.pair_rows
    shape = tuned.score.shape
    by_curve: dict[str, Any] = {
        name: np.array([getattr(curve, name) for curve in curves])
        for name in ("error", "se", "at_bound")
    }
    name = next(iter(plan.parameters), None)
    return Overview(
        Cs=tuning.grid.Cs,
        lambdas=tuning.grid.lambdas,
        gammas=tuned.gammas,
        n_errors=np.zeros(shape, dtype=np.intp),
        kkt=certificate.kkt.reshape(shape),
        gap=certificate.gap.reshape(shape),
        best=tuned.best,
        one_se=tuned.one_se,
        chosen=tuned.chosen,
        left_out=tested_rows(keep[tests]),
        classes=np.empty(0),
        n_rows=n_rows,
        n_folds=len(tuning.folds),
        leave_one_out=tuning.folds.leave_one_out,
        fit_intercept=plan.fit_intercept,
        method=plan.method,
        loss=plan.loss,
        kernel=tuning.kernels[0].label,
        scale_with_fold=tuning.grid.scale_with_fold,
        score=None if scorer is None else tuned.score,
        scoring=None if scorer is None else scorer.name,
        corrected=shown_correction(corrected, scorer is None, tuned.score.size),
        grown="; ".join(
            text
            for text in (tuned.curve.grown, growth_text(tuning.grid, tuning.new_gammas or (0, 0)))
            if text
        ),
        settled={how: sum(curve.settled[how] for curve in curves) for how in HOW},
        exact=certificate.exact,
        convex=certificate.convex,
        unresolved=len(certificate.unresolved),
        tol=certificate.tol,
        timings={"total": seconds},
        approx=approximation(tuned),
        numbers=LeftOutNumbers(truth=tuning.y[tests], predicted=tuned.curve.decision[tuned.point]),
        parameter=None if name is None else (name, np.array([curve.parameter for curve in curves])),
        **by_curve,
    )
