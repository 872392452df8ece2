"""All that a summary, a plot or a report says of a cross-validation, as one plain object.

Results over one gamma (``CVResult``), over several, and fitted estimators all give an ``Overview``
of themselves; what is written or drawn depends on it alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputError, InputTypeError
from ..problem.intervals import wilson
from ..types import FloatArray, IntArray
from .after_tuning import AfterTuning

__all__ = [
    "HasOverview",
    "LeftOutNumbers",
    "LeftOutRows",
    "Overview",
    "Source",
    "beside",
    "join",
    "overview",
]

NORMAL = 1.959964  # the 97.5 percent point of the normal distribution


@dataclass(frozen=True, kw_only=True)
class LeftOutRows:
    """What became of the left-out rows at the chosen point; one entry for each (row, fold) pair.

    Attributes
    ----------
    row : (T,) int
    truth, predicted : (T,) int
        Indices into the classes; predicted is -1 where a value of zero predicts neither class.
    decision : (T,) or (T, k) or None
        Decision values: of two classes one, positive for the second; of k classes one each.
    wrong_at : (T,) int or None
        At how many points of the whole grid the pair is wrong.
    probability : (T, k) or None
        Of the classes, if probabilities were asked for.
    """

    row: IntArray
    truth: NDArray[np.integer]
    predicted: NDArray[np.integer]
    decision: FloatArray | None = None
    wrong_at: IntArray | None = None
    probability: FloatArray | None = None

    def margin(self) -> FloatArray | None:
        """How far each pair is on the right side: negative means wrong."""
        if self.decision is None or self.decision.ndim == 1:
            sign = np.where(self.truth > 0, 1.0, -1.0)
            return None if self.decision is None else sign * self.decision
        own = np.arange(len(self.truth)), self.truth
        others = self.decision.copy()
        others[own] = -np.inf
        return np.asarray(self.decision[own] - others.max(axis=1))

    def part(self, which: NDArray[np.bool_]) -> LeftOutRows:
        """Some of the pairs."""
        parts: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        return replace(self, **{k: v[which] for k, v in parts.items() if v is not None})


@dataclass(frozen=True, kw_only=True)
class LeftOutNumbers:
    """The same where y are numbers; one entry for each (row, fold) pair.

    Examples
    --------
    >>> pair = LeftOutNumbers(truth=np.array([1.0, 3.0]), predicted=np.array([1.0, 2.0]))
    >>> pair.mae, pair.r2
    (0.5, 0.5)
    >>> pair.constant(0.5)  # always the median: the least that a model should beat
    0.5
    """

    truth: FloatArray
    predicted: FloatArray

    @property
    def residual(self) -> FloatArray:
        return np.asarray(self.truth - self.predicted)

    @property
    def mae(self) -> float:
        return float(np.abs(self.residual).mean())

    @property
    def rmse(self) -> float:
        return float(np.sqrt((self.residual**2).mean()))

    @property
    def r2(self) -> float:
        """As in scikit-learn 1 or 0 if the truth does not vary."""
        left = float((self.residual**2).sum())
        total = float(((self.truth - self.truth.mean()) ** 2).sum())
        return 1.0 - left / total if total > 0 else float(left == 0.0)

    def constant(self, quantile: float) -> float:
        """The mean pinball loss if this quantile of the truth were predicted for every row."""
        apart = self.truth - np.quantile(self.truth, quantile, method="inverted_cdf")
        return float(np.maximum(quantile * apart, (quantile - 1.0) * apart).mean())


@dataclass(frozen=True, kw_only=True)
class Overview:
    """One cross-validation over G values of gamma and L of C.

    Attributes
    ----------
    Cs, lambdas : (L,)
    gammas : (G,)
        NaN where the kernel has none.
    error, se, n_errors, at_bound, kkt, gap : (G, L)
        As in ``CVResult``; of several classes the error is that of the votes.
    best, one_se, chosen : (int, int)
        Indices (gamma, C) of the least error (or the best score), of the smallest C within one
        standard error of it (None if that was not worked out), and of the point that was taken.
    left_out : LeftOutRows
        At the chosen point.
    score, scoring : (G, L) or None, str or None
        If something else than the error was minimised: larger is better.
    chance : float or None
        The score (accuracy, if there is none) of predictions that tell nothing of the class; None
        if that is not known.
    corrected : (float, float, float) or None
        The score (the error, if there is none) after tuning, corrected for the choice of the point,
        and the ends of its 95 percent interval; None if it was not worked out.
    effective : float or None
        How many tests those of the left-out rows amount to, where rows do not weigh the same.
    forgotten : int
        Tests of rows that the model has forgotten since: they count, but ``left_out`` has none.
    every_c : (float, float, int) or None
        The one point is the best of all C between these, with so many kernels.
    steps : (B + 2,) and (B + 1,) arrays, or None
        Then: where steps of the error begin and end, at the chosen gamma, and the error on each.
    grown : str
        How the default grid has grown, in words.
    settled : dict
        How many folds were settled in which way.
    unresolved : int
        How many solutions miss ``tol``.
    numbers : LeftOutNumbers or None
        Where y are numbers, which have no classes: the error is then the mean left-out loss, and
        ``left_out`` says only which rows were tested.
    parameter : (str, (G,)) or None
        Of the loss: its name and its value for each curve (a curve has one gamma and one value).
    nested : AfterTuning or None
        What a nested cross-validation found, if there was one.
    """

    Cs: FloatArray
    lambdas: FloatArray
    gammas: FloatArray
    error: FloatArray
    se: FloatArray
    n_errors: IntArray
    at_bound: FloatArray
    kkt: FloatArray
    gap: FloatArray
    best: tuple[int, int]
    one_se: tuple[int, int] | None
    chosen: tuple[int, int]
    left_out: LeftOutRows
    classes: NDArray[Any]
    n_rows: int
    n_folds: int
    leave_one_out: bool
    fit_intercept: bool
    method: str
    loss: str
    kernel: str = ""
    approx: str | None = None  # how the kernel is approximated, if it is
    scale_with_fold: bool = False
    score: FloatArray | None = None
    scoring: str | None = None
    chance: float | None = None
    corrected: tuple[float, float, float] | None = None
    effective: float | None = None
    forgotten: int = 0
    grown: str = ""
    every_c: tuple[float, float, int] | None = None
    steps: tuple[FloatArray, FloatArray] | None = None
    level_edge: bool = False  # best at an edge of the default grid, by no more than chance
    settled: dict[str, int] = field(default_factory=dict)
    exact: bool = True
    convex: bool = True
    unresolved: int = 0
    tol: float = 1e-8
    timings: dict[str, float] = field(default_factory=dict)
    numbers: LeftOutNumbers | None = None
    parameter: tuple[str, FloatArray] | None = None
    nested: AfterTuning | None = None

    @property
    def n_tested(self) -> int:
        return len(self.left_out.row) + self.forgotten

    def without(self, rows: IntArray) -> Overview:
        """The same, with nothing of what became of these rows one by one."""
        kept = ~np.isin(self.left_out.row, rows)
        return replace(
            self,
            left_out=self.left_out.part(kept),
            forgotten=self.forgotten + int(np.count_nonzero(~kept)),
            effective=self._tests,
        )

    @property
    def judged(self) -> FloatArray:
        """What the points of the grid were chosen by, (G, L): the score, else the error."""
        return self.error if self.score is None else self.score

    @property
    def judged_by(self) -> str:
        """Its name."""
        if self.score is not None:
            return self.scoring_name
        return "left-out error" if self.numbers is None else "left-out loss"

    @property
    def scoring_name(self) -> str:
        """The score as it is written in text."""
        return {"r2": "R2"}.get(str(self.scoring), self.scoring or "score")

    @property
    def same_parameter(self) -> NDArray[np.intp]:
        """The curves with the parameter of the best, which differ in gamma alone."""
        if self.parameter is None:
            return np.arange(len(self.gammas))
        values = self.parameter[1]
        return np.flatnonzero(values == values[self.best[0]])

    @property
    def baseline(self) -> float | None:
        """The same for predictions that tell nothing: always the commonest class."""
        if self.numbers is not None or np.count_nonzero(self.class_shares) < 2:
            return None
        if self.score is not None:
            return self.chance
        return 1.0 - (float(self.class_shares.max()) if self.chance is None else self.chance)

    @property
    def interval(self) -> tuple[FloatArray, FloatArray]:
        """The 95 percent interval of the error, low and high, each (G, L).

        A row that several folds test counts once: its tests are no news of other rows.
        """
        if self.numbers is not None:
            half = NORMAL * np.nan_to_num(self.se)
            return np.maximum(self.error - half, 0.0), self.error + half
        return wilson(self.error, self._tests)

    @property
    def _tests(self) -> float:
        """How many tests of their own there are."""
        return self.n_different if self.effective is None else self.effective

    @property
    def n_different(self) -> int:
        """How many rows were tested: among millions marked sooner than sorted."""
        seen = np.zeros(int(self.left_out.row.max(initial=-1)) + 1, dtype=bool)
        seen[self.left_out.row] = True
        return int(np.count_nonzero(seen))

    @property
    def class_shares(self) -> FloatArray:
        """Share of each class among the tested pairs."""
        counts = np.bincount(self.left_out.truth, minlength=len(self.classes))
        return np.asarray(counts / max(len(self.left_out.row), 1))


class HasOverview(Protocol):
    """A result or a fitted estimator."""

    def _overview(self) -> Overview: ...


# What can be shown; of several results, one a gamma, all together.
Source: TypeAlias = Overview | HasOverview | Sequence[HasOverview]


def overview(source: Source) -> Overview:
    """The overview of a result, of a list of results (one a gamma), or of a fitted estimator."""
    if isinstance(source, Overview):
        return source
    if hasattr(source, "_overview"):
        return source._overview()
    if isinstance(source, Sequence) and source and all(hasattr(r, "_overview") for r in source):
        return join([r._overview() for r in source])
    raise InputTypeError(
        f"expected a CVResult, a list of them or a fitted SVCCV, got {type(source).__name__}"
    )


def join(parts: Sequence[Overview]) -> Overview:
    """One overview of runs that differ in gamma alone."""
    first = parts[0]
    for part in parts[1:]:
        if not (np.array_equal(part.Cs, first.Cs) and part.n_tested == first.n_tested):
            raise InputError("the results differ in more than gamma: use the same Cs and folds")
    order = np.argsort([part.gammas[0] for part in parts], kind="stable")
    parts = [parts[k] for k in order]
    return beside(parts, _least(parts)[0])


def beside(parts: Sequence[Overview], g: int) -> Overview:
    """Runs of one gamma each, in the order given; run g has the best point of all."""
    first = parts[0]
    stacked: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("gammas", "error", "se", "n_errors", "at_bound", "kkt", "gap")
    }
    return replace(
        parts[g],
        best=(g, parts[g].best[1]),
        one_se=_moved(parts[g].one_se, g),
        corrected=None,  # those of the parts know nothing of the choice among parts
        left_out=replace(parts[g].left_out, wrong_at=_wrong_at(parts)),
        chosen=(g, parts[g].chosen[1]),
        settled={name: sum(part.settled[name] for part in parts) for name in first.settled},
        exact=all(part.exact for part in parts),
        convex=all(part.convex for part in parts),
        unresolved=sum(part.unresolved for part in parts),
        timings={name: sum(part.timings[name] for part in parts) for name in first.timings},
        **stacked,
    )


def _wrong_at(parts: Sequence[Overview]) -> IntArray | None:
    counts = [part.left_out.wrong_at for part in parts if part.left_out.wrong_at is not None]
    return np.sum(counts, axis=0) if len(counts) == len(parts) else None


def _moved(point: tuple[int, int] | None, g: int) -> tuple[int, int] | None:
    return None if point is None else (g, point[1])


def _least(parts: Sequence[Overview]) -> tuple[int, int]:
    """The least error of all; points with unresolved solutions last, then the smallest C."""
    keys = []
    for g, part in enumerate(parts):
        l = part.best[1]
        short = not max(part.kkt[0, l], part.gap[0, l]) <= part.tol
        keys.append((short, float(part.error[0, l]), float(part.Cs[l]), g))
    g = min(keys)[-1]
    return g, parts[g].best[1]
