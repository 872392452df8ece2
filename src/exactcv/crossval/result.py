"""What came out of a cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import MissingExtraError
from ..judge.certificate import Certificate
from ..lowrank.entries import Entries
from ..problem.folds import Folds
from ..problem.inputs import Present
from ..problem.intervals import wilson
from ..problem.targets import Target
from ..report.overview import Overview
from ..report.presentation import Presented
from ..runtime.frozen import freeze
from ..types import (
    Approx,
    BoolArray,
    FloatArray,
    IntArray,
    LossName,
    ScorerLike,
    Seed,
    Select,
    Vector,
)
from .choice import best_point, smallest_within
from .overviews import of_result, with_correction
from .run import Ran

if TYPE_CHECKING:
    import pandas as pd

    from ..lowrank.features import FeatureMap
    from .corrected import Corrected

__all__ = [
    "CVResult",
    "by_row",
    "choose",
    "make_result",
    "side_by_side",
    "spread_of",
    "standard_error",
]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CVResult(Presented):
    """The result of ``cross_validate``; arrays follow the grid, of length L, and are read-only.

    A *pair* is a row together with a fold that tests it; there are T of them.

    Attributes
    ----------
    Cs, lambdas : (L,)
        The grid in both languages, C = 1 / (2 n lambda), in the order it was given.
    error : (L,)
        Mean left-out error over all pairs.  A decision value of zero counts as an error.
    se : (L,)
        Standard error of ``error``: the standard deviation of the folds' errors over the square
        root of their number; NaN for a single fold.
    interval : (L, 2)
        The 95 percent interval of ``error`` at each grid point, Wilson's; a row that several folds
        test counts once.  Of the least error it is too good by what the choice has gained.
    n_errors : (L,) int
        Number of wrong pairs.
    decision : (L, n) or None
        Left-out decision values; the mean if several folds test a row, NaN if none does (or its
        weight is 0).  None with ``output="error"``.
    wrong : (L, n) bool
        Is the row on the wrong side: by ``decision``, or else by the majority of the folds that
        test it, a draw being wrong.  False for rows that are never tested.
    best : int
        Index of the least error; among equals the smallest C.  Grid points with unresolved
        solutions are passed over, here and in ``one_se``, while there are others.
    one_se : int
        Index of the smallest C whose error is at most ``error[best] + se[best]``.
    objective, intercept : (L,)
        Of the full-data fit: (1/n) sum_i w_i L(y_i, f(x_i) + b) + lambda ||f||^2, and b.
    coef : (L, n) or None
        Signed dual coefficients of the full-data fit: f = K coef + intercept.  None with
        ``approx``, and with ``kernel="linear"`` where the kernel matrix does not fit; ``weights``
        takes its place.
    at_bound : (L,)
        Share of the rows (with positive weight) whose coefficient is at its upper bound; NaN for
        losses that have none ("squared_hinge", "squared").
    certificate : Certificate
        ``kkt`` and ``gap``, worst over folds, ``exact``, ``unresolved``, ``tol``.
    stats : dict
        How folds were settled (``unchanged``, ``bound``, ``solved``, ``fallback``), and what the
        method counted.
    timings : dict
        Seconds: ``kernel``, ``path``, ``folds``, ``certificate``, ``total``.
    test_row, test_fold : (T,) int
        Row and fold of each pair.
    pair_decision : (L, T) or None
    pair_wrong : (L, T) bool
    n_folds : int
    classes : (2,)
        The labels; positive decision values stand for ``classes[1]``.
    y : (n,)
        The labels of the rows as signs: +1 is ``classes[1]``.
    method, loss, kernel : str
    gamma : float or None
        The value used by the kernel.
    scale_with_fold : bool
        Were lambdas given?  A fold that trains on m of n rows then has C n / m (except LOO).
    leave_one_out, fit_intercept : bool
    approx : str or None
        "rff" or "nystroem": the kernel is that of ``feature_map``, and all else is exact for it.
    weights : (L, m) or None
        In place of ``coef``: f(x) = feature_map.transform(x) @ weights[l] + intercept[l].
    feature_map : object or None
        In place of ``coef``: has ``transform``, ``n_components`` and ``gamma``.
    grown : str
        How the default grid has grown, in words; empty if it has not.
    """

    Cs: FloatArray
    lambdas: FloatArray
    error: FloatArray
    se: FloatArray
    n_errors: IntArray
    decision: FloatArray | None
    wrong: BoolArray
    best: int
    one_se: int
    objective: FloatArray
    coef: FloatArray | None  # None with approx: of n numbers a grid point there are too many
    intercept: FloatArray
    at_bound: FloatArray
    certificate: Certificate
    stats: dict[str, Any]
    timings: dict[str, float]
    test_row: IntArray
    test_fold: IntArray
    pair_decision: FloatArray | None
    pair_wrong: BoolArray
    n_folds: int
    classes: NDArray[Any]
    y: FloatArray
    method: str
    loss: LossName
    kernel: str
    gamma: float | None
    scale_with_fold: bool
    leave_one_out: bool
    fit_intercept: bool
    approx: Approx | None = None
    weights: FloatArray | None = None
    feature_map: FeatureMap | None = None
    grown: str = ""

    def __post_init__(self) -> None:
        freeze(self)

    def __repr__(self) -> str:
        exact = "exact" if self.certificate.exact else "NOT exact"
        low, high = self.interval[self.best]
        return (
            f"<CVResult: {len(self.Cs)} grid points, {self.n_folds} folds, "
            f"least error {self.error[self.best]:.4g} ({low:.4g} to {high:.4g}) at "
            f"C={self.Cs[self.best]:.4g}, {exact}>"
        )

    @staticmethod
    def _worth(ran: Ran[Any]) -> BoolArray | FloatArray:
        """(L, T): what is averaged over tests."""
        wrong: BoolArray = ran.ledger.wrong
        return wrong

    @staticmethod
    def _ranked(error: FloatArray) -> FloatArray:
        """The error, so that numbers are equal where nothing is to choose between them."""
        return error

    @cached_property
    def fold_error(self) -> FloatArray:
        """(L, F): the share of each fold's tests that is wrong."""
        return fold_errors(
            self.pair_wrong, np.searchsorted(self.test_fold, np.arange(self.n_folds + 1))
        )

    @property
    def interval(self) -> FloatArray:
        """(L, 2): the 95 percent interval of ``error`` (Wilson's, over the rows tested)."""
        return np.column_stack(wilson(self.error, len(np.unique(self.test_row))))

    def corrected(
        self,
        n_bootstrap: int = 1000,
        random_state: Seed | None = None,
        scoring: ScorerLike | None = None,
        *,
        select: Select = "min",
        groups: Vector | None = None,
    ) -> Corrected:
        """The error after tuning: the least error of the grid without what the choice has gained.

        The least of many errors is too good.  Here the choice is repeated on bootstrap samples of
        the left-out results and judged by the rows outside each sample (BBC-CV: Tsamardinos,
        Greasidou and Borboudakis, Machine Learning 107, 2018); nothing is trained again.

        Parameters
        ----------
        n_bootstrap : int
            Samples.
        random_state : int, RandomState or None
            Draws them.
        scoring : str, callable or None
            Any scikit-learn scorer, of which the best is chosen; None is accuracy.  One that needs
            decision values needs ``output="decision"``.  Common ones by name take a fraction of a
            second; others are called ``n_bootstrap`` times for each grid point.
        select : {"min", "1se"}
            The rule whose choice is judged: ``best`` or ``one_se``.
        groups : array-like of shape (n,), optional
            Rows of a group are drawn together; give them if the folds kept them together.

        Returns
        -------
        Corrected
            ``error``, ``score``, ``interval``, ``optimism`` and more.

        Examples
        --------
        >>> import exactcv
        >>> X, y = exactcv.datasets.make_mixture(60, 4, random_state=0)
        >>> result = exactcv.cross_validate(X, y, lambdas=20)
        >>> corrected = result.corrected(random_state=0)
        >>> bool(corrected.error >= result.error[result.best])
        True
        """
        from .corrected import correct_result

        return correct_result(self, n_bootstrap, random_state, scoring, select, groups)

    @cached_property
    def _corrected_once(self) -> Corrected:
        """For ``summary()`` and the like, which say the same each time."""
        return self.corrected(random_state=0)

    def _overview(self) -> Overview:
        return with_correction(self)

    def _plain_overview(self) -> Overview:
        """Without what the choice has gained."""
        return of_result(self)

    def to_frame(self) -> pd.DataFrame:
        """One row per grid point (needs pandas)."""
        try:
            import pandas as pd
        except ImportError as missing:
            raise MissingExtraError(
                'to_frame() needs pandas: pip install "exactcv[pandas]"'
            ) from missing
        columns = ("error", "se", "n_errors", "objective", "intercept", "at_bound")
        table = {"lambda": self.lambdas, "C": self.Cs}
        table |= {"error_low": self.interval[:, 0], "error_high": self.interval[:, 1]}
        table |= {name: getattr(self, name) for name in columns}
        table |= {"kkt": self.certificate.kkt, "gap": self.certificate.gap}
        return pd.DataFrame(table)


def make_result(
    ran: Ran[Any],
    seconds: float,
    *,
    kernel_seconds: float,
    gamma: float | None,
    present: Present,
    kind: type[CVResult] = CVResult,
    **facts: Any,
) -> CVResult:
    """From pairs to rows and curves; ``facts`` are fields that the run does not know.

    The run has seen the rows of positive weight; the result speaks of all rows.
    """
    task, ledger, certificate = ran.task, ran.ledger, ran.certificate
    folds, Cs, problem = task.folds, task.grid.Cs, task.problem
    wrong, pair_decision = ledger.wrong, ledger.decision if task.want_decision else None
    worth = kind._worth(ran)
    error, se = worth.sum(axis=1) / worth.shape[1], standard_error(worth, folds.offsets)
    best, one_se = choose(Cs, kind._ranked(error), error, se, certificate)
    decision, row_wrong = by_row(folds, problem.y, problem.target, pair_decision, wrong)
    coef, test_row = ledger.coef, folds.pair_rows
    if not present.all:
        decision = None if decision is None else present.spread(decision, np.nan)
        coef = None if coef is None else present.spread(coef, 0.0)
        row_wrong, test_row = present.spread(row_wrong, False), present.rows[test_row]
    if isinstance(ledger, Entries):
        gamma = ledger.feature_map.gamma
        facts |= {"weights": ledger.weights, "feature_map": ledger.feature_map}
        facts["approx"] = ledger.task.problem.approx
    return kind(
        Cs=Cs,
        lambdas=task.grid.lambdas,
        error=error,
        se=se,
        n_errors=wrong.sum(axis=1),
        decision=decision,
        wrong=row_wrong,
        best=best,
        one_se=one_se,
        objective=ledger.objective,
        coef=coef,
        intercept=ledger.intercept,
        at_bound=ledger.at_bound(),
        certificate=certificate,
        stats=ran.stats | ledger.counts(),
        timings={"kernel": kernel_seconds} | ran.timings | {"total": seconds},
        test_row=test_row,
        test_fold=folds.pair_folds,
        pair_decision=pair_decision,
        pair_wrong=wrong,
        n_folds=len(folds),
        y=present.y.copy(),
        gamma=gamma,
        scale_with_fold=task.grid.scale_with_fold,
        leave_one_out=folds.leave_one_out,
        fit_intercept=problem.fit_intercept,
        **facts,
    )


_ALONG_THE_GRID = (
    "Cs", "lambdas", "error", "se", "n_errors", "decision", "wrong", "objective", "coef",
    "intercept", "at_bound", "pair_decision", "pair_wrong", "weights",
)  # fmt: skip


def side_by_side(parts: Sequence[CVResult], grown: str) -> CVResult:
    """Results that differ in their grids alone, as one of the grids one after the other."""
    first = parts[0]
    joined: dict[str, Any] = {
        name: None
        if getattr(first, name) is None
        else np.concatenate([getattr(part, name) for part in parts])
        for name in _ALONG_THE_GRID
    }
    certificate = Certificate.joined([part.certificate for part in parts])
    ranked = type(first)._ranked(joined["error"])
    best, one_se = choose(joined["Cs"], ranked, joined["error"], joined["se"], certificate)
    return replace(
        first,
        **joined,
        certificate=certificate,
        best=best,
        one_se=one_se,
        stats=_added([part.stats for part in parts]),
        timings={name: sum(part.timings[name] for part in parts) for name in first.timings},
        grown=grown,
    )


def _added(counts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Numbers add up; of other things the last stands."""
    total = dict(counts[0])
    for more in counts[1:]:
        for name, value in more.items():
            adds = isinstance(value, (int, float)) and isinstance(total.get(name, 0), (int, float))
            total[name] = total.get(name, 0) + value if adds else value
    return total


def choose(
    Cs: FloatArray,
    ranked: FloatArray,
    error: FloatArray,
    se: FloatArray,
    certificate: Certificate,
) -> tuple[int, int]:
    """The indices ``best`` and ``one_se``; ``ranked`` is the error, equal where it counts so."""
    short = certificate.short
    _, best = best_point(ranked[None].astype(float), short[None], Cs, np.zeros(1))
    return best, smallest_within(error, short, Cs, best, float(se[best]))


def fold_errors(wrong: BoolArray | FloatArray, offsets: IntArray) -> FloatArray:
    """(L, F): the share of each fold's tests that is wrong, or their mean loss.

    `offsets` as in ``Folds``.
    """
    sizes = np.diff(offsets)
    return np.asarray(np.add.reduceat(wrong, offsets[:-1], axis=1, dtype=float) / sizes)


def standard_error(wrong: BoolArray | FloatArray, offsets: IntArray) -> FloatArray:
    """The standard deviation of the folds' errors over the square root of their number.

    NaN for a single fold.  Where every fold has one test the errors are zeros and ones, and nothing
    of the size of ``wrong`` is needed.
    """
    n_folds = len(offsets) - 1
    if n_folds == wrong.shape[1] > 1 and wrong.dtype == bool:
        error = wrong.mean(axis=1)
        return np.asarray(np.sqrt(error * (1.0 - error) / (n_folds - 1)))
    return spread_of(fold_errors(wrong, offsets))


def spread_of(fold_error: FloatArray) -> FloatArray:
    """The standard error of the mean over folds, the last axis; NaN for a single fold."""
    n_folds = fold_error.shape[1]
    if n_folds < 2:
        return np.full(len(fold_error), np.nan)
    return np.asarray(fold_error.std(axis=1, ddof=1) / np.sqrt(n_folds))


def by_row(
    folds: Folds,
    y: FloatArray,
    target: Target,
    pair_decision: FloatArray | None,
    pair_wrong: BoolArray,
) -> tuple[FloatArray | None, BoolArray]:
    """Decision values and labels of each row, from those of its pairs."""
    if len(folds.pair_rows) == folds.n and (folds.pair_rows == np.arange(folds.n)).all():
        return pair_decision, pair_wrong  # leave-one-out, row by row
    rows, starts, order = _grouped(folds)
    counts = np.diff(np.append(starts, len(order)))
    wrong = np.zeros((len(pair_wrong), folds.n), dtype=bool)
    if pair_decision is None:
        votes = np.add.reduceat(pair_wrong[:, order], starts, axis=1, dtype=np.intp)
        wrong[:, rows] = 2 * votes >= counts
        return None, wrong
    decision = np.full(wrong.shape, np.nan)
    decision[:, rows] = np.add.reduceat(pair_decision[:, order], starts, axis=1) / counts
    wrong[:, rows] = target.wrong(y[rows], decision[:, rows])
    # A row tested once keeps the ledger's word to the bit.
    once = counts == 1
    wrong[:, rows[once]] = pair_wrong[:, order[starts[once]]]
    return decision, wrong


def _grouped(folds: Folds) -> tuple[IntArray, IntArray, IntArray]:
    """The rows that are tested, and where each one's pairs start once sorted by row."""
    order = np.argsort(folds.pair_rows, kind="stable")
    rows, starts = np.unique(folds.pair_rows[order], return_index=True)
    return rows, starts, order
