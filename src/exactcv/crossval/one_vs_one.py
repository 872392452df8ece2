"""Several classes: one binary problem for each pair of them, over one kernel matrix.

For classes 0 < 1 < ... < k-1 the pair (a, b), a < b, trains on the rows of these two classes, with
class b positive, and votes for one of them on every row.  The class with most votes is predicted,
the first of those that draw: LIBSVM's way, and so that of scikit-learn's ``SVC``.

Leaving a row out touches only the pairs of its class.  So each pair is solved on its own part of
the kernel matrix, by any method, with the folds cut down to its rows; rows of other classes are
*guests*, evaluated by one product with the coefficients of the fold that tests them (leave-one-out:
with those of the full data).  Against rows of weight zero in the whole matrix, which would need no
copies, this took a half (leave-one-out) to under a third (10 folds) of the time on the 45 pairs of
the digits data.

C is the same for every pair, as in ``SVC``; with lambdas C = 1 / (2 n lambda), n counting the rows
of all classes.

Signs: here a positive value always speaks for the second class of the pair, as it does for two
classes in scikit-learn.  LIBSVM and scikit-learn's "ovo" columns have the opposite sign
(`ovo_columns`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..judge.certificate import Certificate
from ..judge.ledger import HOW, Ledger
from ..problem.problem import Guests
from ..runtime.threads import Workers
from ..tolerances import TIE
from ..types import BoolArray, FloatArray, IntArray
from .classes import Classes, ManyClasses, PairFit, Part, SolvedPair
from .run import run
from .small_pairs import groups_of, solve_together

__all__ = [
    "PairResults",
    "added_counts",
    "by_class",
    "cross_validate_pairs",
    "largest_first",
    "most_votes",
    "ovo_columns",
    "ovr_columns",
    "votes_of",
    "worst_certificate",
]


@dataclass(frozen=True)
class PairResults:
    """Left-out results of all pairs, along the grid (L) and the tested (row, fold) pairs (T).

    Attributes
    ----------
    votes : (L, T, k) int
        A left-out value of zero (up to 1e-9) votes against the row's own class; between two other
        classes it votes for the second, as in LIBSVM.
    wrong : (L, T) bool
        Is the row's class not the one with most votes?
    decision : (L, T, P) or None
        Positive for the second class of the pair; None unless wanted.
    fits : tuple of P PairFit
    certificate : Certificate
        The worst over pairs; ``unresolved`` counts folds as the caller does.
    at_bound : (L,)
        Share of the coefficients, over all pairs, that are at their bound.
    stats : dict
        (grid point, fold, pair) slots by how they were settled, and what the method counted, added
        up over the pairs where it is a number.
    """

    votes: NDArray[np.intp]
    wrong: BoolArray
    decision: FloatArray | None
    fits: tuple[PairFit, ...]
    certificate: Certificate
    at_bound: FloatArray
    stats: dict[str, int]

    @property
    def labels(self) -> IntArray:
        """(L, T): the class with most votes."""
        return most_votes(self.votes)

    def labels_at(self, l: int) -> IntArray:
        """(T,): the same at one grid point."""
        return most_votes(self.votes[l])


def cross_validate_pairs(task: ManyClasses, workers: Workers) -> PairResults:
    """Cross-validate every pair, and let them vote.

    Examples
    --------
    >>> import numpy as np
    >>> from exactcv.crossval.run import KernelRows
    >>> from exactcv.problem.folds import leave_one_out_folds
    >>> from exactcv.problem.grid import Grid
    >>> x = np.array([0.0, 0.1, 1.0, 1.1, 2.0, 2.1])
    >>> K = np.exp(-3.0 * (x[:, None] - x) ** 2)
    >>> grid = Grid(np.array([1.0]), np.array([1 / 12]), scale_with_fold=False)
    >>> codes = np.array([0, 0, 1, 1, 2, 2])
    >>> task = ManyClasses(KernelRows(K), codes, np.ones(6), leave_one_out_folds(6), grid)
    >>> with Workers(1) as workers:
    ...     found = cross_validate_pairs(task, workers)
    >>> found.labels, found.decision.shape
    (array([[0, 0, 1, 1, 2, 2]]), (1, 6, 3))
    """
    workers.watch.expect(len(task.pairs))
    order = largest_first(task)
    if len(order) > 1:
        task = replace(task, rows=task.rows.compared())
    # Each pair in one thread: there are enough of them.
    groups = groups_of(task, order)
    together = workers.map(lambda pairs: solve_together(task, pairs, workers.alone()), groups)
    done = [solved for group in together for solved in group]
    have = {(one.fit.first, one.fit.second) for one in done}
    rest = [pair for pair in order if pair not in have]
    if len(order) == 1:
        done += [_solve(task, *pair, workers) for pair in rest]
    else:
        done += workers.map(lambda pair: _solve(task, *pair, workers.alone()), rest)
    return _gather(task, sorted(done, key=lambda one: (one.fit.first, one.fit.second)))


def largest_first(task: Classes) -> list[tuple[int, int]]:
    """The pairs, so that no thread is left with a large one when the others are done."""
    sizes = np.bincount(task.codes)
    return sorted(task.pairs, key=lambda pair: -sizes[pair[0]] - sizes[pair[1]])


def by_class(codes: IntArray) -> tuple[IntArray, IntArray] | None:
    """The rows of each class together: their order, and the place of each; None for two classes.

    In a kernel matrix in that order the part of a pair is four blocks, and much quicker to copy.

    Examples
    --------
    >>> by_class(np.array([2, 0, 1, 0]))
    (array([1, 3, 2, 0]), array([3, 0, 2, 1]))
    """
    if len(codes) == 0 or codes.max() < 2:
        return None
    order = np.argsort(codes, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return order, place


# --- votes -------------------------------------------------------------------------------------


def votes_of(decision: FloatArray, n_classes: int) -> NDArray[np.intp]:
    """Votes (..., k) from pair decisions (..., P).

    A value of zero, up to 1e-9, votes for the second class of its pair, as zero does in LIBSVM.

    Examples
    --------
    >>> votes_of(np.array([[-1.0, -0.5, 2.0]]), 3)
    array([[2, 0, 1]])
    """
    votes = np.zeros((*decision.shape[:-1], n_classes), dtype=np.intp)
    for p, (a, b) in enumerate(combinations(range(n_classes), 2)):
        _cast(votes, a, b, decision[..., p] > -TIE)
    return votes


def most_votes(votes: NDArray[np.intp]) -> IntArray:
    """The class with most votes; the first of those that draw."""
    return np.asarray(votes.argmax(axis=-1))


def _cast(votes: NDArray[np.intp], first: int, second: int, for_second: BoolArray) -> None:
    votes[..., first] += ~for_second
    votes[..., second] += for_second


def ovo_columns(decision: FloatArray) -> FloatArray:
    """scikit-learn's "ovo" columns: positive for the first class of the pair."""
    return -decision


def ovr_columns(decision: FloatArray, n_classes: int) -> FloatArray:
    """scikit-learn's "ovr" columns (..., k): votes, and below them the sum of confidences.

    Each class has its votes plus s / (3 (|s| + 1)), where s adds up the pair decisions in its
    favour: less than a vote, so it only decides between classes with equally many.  Here, unlike
    in `votes_of` (and unlike in SVC's ``predict``), zero votes for the first class.

    Examples
    --------
    >>> ovr_columns(np.array([[-1.0, -1.0, 1.0]]), 3).round(2)
    array([[ 2.22, -0.22,  1.  ]])
    """
    sums = np.zeros((*decision.shape[:-1], n_classes))
    for p, (a, b) in enumerate(combinations(range(n_classes), 2)):
        sums[..., a] -= decision[..., p]
        sums[..., b] += decision[..., p]
    votes = np.zeros(sums.shape, dtype=np.intp)
    for p, (a, b) in enumerate(combinations(range(n_classes), 2)):
        _cast(votes, a, b, decision[..., p] > TIE)
    columns: FloatArray = votes + sums / (3.0 * (np.abs(sums) + 1.0))
    return columns


# --- one pair ----------------------------------------------------------------------------------


def _solve(task: ManyClasses, first: int, second: int, workers: Workers) -> SolvedPair:
    """Cross-validate one pair, and evaluate it on the rows of other classes."""
    pair = task.pair(first, second)
    part, guests = pair.part, pair.task.guests
    ran = run(pair.task, task.plan.method, workers)
    ledger = ran.ledger
    decision = _everywhere(task, ledger, part, guests)
    lost = task.codes[task.folds.pair_rows[part.alone]]
    decision[:, part.alone] = np.where(lost == first, 1.0, -1.0)
    for_second = decision > -TIE
    # Among its own rows the ledger knows which are wrong, with or without a value; a tie is.
    truth = task.codes[task.folds.pair_rows[part.own]] == second
    by_ledger = truth ^ ledger.wrong[:, : len(truth)]
    if not task.ties_are_wrong:
        unknown = np.isnan(decision[:, part.own])
        by_ledger = np.where(unknown, by_ledger, for_second[:, part.own])
    for_second[:, part.own] = by_ledger
    fit = PairFit(first, second, pair.rows, ledger.coef, ledger.intercept)
    kept = decision if task.plan.want_decision else np.zeros((0, 0))
    counts = {name: n for name, n in ran.stats.items() if isinstance(n, int)} | ledger.counts()
    return SolvedPair(fit, part, for_second, kept, ran.certificate, ledger.at_bound(), counts)


def _everywhere(task: ManyClasses, ledger: Ledger, part: Part, guests: Guests | None) -> FloatArray:
    """Left-out values of the pair along all T tests (NaN where only the label is known)."""
    own, pair_rows = part.own, task.folds.pair_rows
    values = np.full((len(task.grid), len(own)), np.nan)
    values[:, own] = ledger.decision[:, : int(np.count_nonzero(own))]
    if guests is None:
        return values
    others = ~(own | part.alone)
    if not part.folds.leave_one_out:
        for at, found in zip(part.guest_at, ledger.guests, strict=True):
            values[:, at] = found
            others[at] = False
    # Where the pair has no fold of its own, the model is that of the full data.
    if others.any():
        full = ledger.coef, ledger.intercept
        values[:, others] = Ledger.elsewhere(guests, pair_rows[others], *full)
    return values


# --- all pairs ---------------------------------------------------------------------------------


def _gather(task: ManyClasses, done: list[SolvedPair]) -> PairResults:
    n_grid, n_tests = len(task.grid), len(task.folds.pair_rows)
    by_class = np.zeros((task.n_classes, n_grid, n_tests), dtype=np.intp)
    for one in done:
        _cast(np.moveaxis(by_class, 0, -1), one.fit.first, one.fit.second, one.for_second)
    votes = np.ascontiguousarray(np.moveaxis(by_class, 0, -1))
    decision = None
    if task.plan.want_decision:
        decision = np.stack([one.decision for one in done], axis=-1)
    wrong = most_votes(votes) != task.codes[task.folds.pair_rows]
    sizes = np.array([len(one.fit.rows) for one in done], dtype=float)
    shares = [one.at_bound for one in done]
    return PairResults(
        votes=votes,
        wrong=wrong,
        decision=decision,
        fits=tuple(one.fit for one in done),
        certificate=worst_certificate(done, task.plan.tol, task.rows.psd),
        at_bound=np.average(shares, axis=0, weights=sizes),
        stats=added_counts(done, len(task.grid), len(task.folds)),
    )


class Judged(Protocol):
    """A pair that was cross-validated."""

    @property
    def part(self) -> Part: ...
    @property
    def certificate(self) -> Certificate: ...
    @property
    def counts(self) -> dict[str, int]: ...


def worst_certificate(done: Sequence[Judged], tol: float, convex: bool) -> Certificate:
    """One certificate for all pairs, with folds numbered as the caller does."""
    found = [one.certificate for one in done]
    unresolved = set()
    for one in done:
        for l, fold in one.certificate.unresolved:
            known = 0 <= fold < len(one.part.kept)
            unresolved.add((l, int(one.part.kept[fold]) if known else -1))
    return Certificate(
        kkt=np.max([certificate.kkt for certificate in found], axis=0),
        gap=np.max([certificate.gap for certificate in found], axis=0),
        exact=all(certificate.exact for certificate in found),
        unresolved=sorted(unresolved),
        tol=tol,
        convex=convex,
        not_converged=sum(certificate.not_converged for certificate in found),
        unproved=sum(certificate.unproved for certificate in found),
    )


def added_counts(done: Sequence[Judged], n_grid: int, n_folds: int) -> dict[str, int]:
    """Slots by how they were settled; what the method counted is added up."""
    totals: dict[str, int] = dict.fromkeys(HOW, 0)
    for one in done:
        for name, count in one.counts.items():
            totals[name] = totals.get(name, 0) + count
        totals["unchanged"] += n_grid * (n_folds - len(one.part.kept))
    return totals
