"""What nested cross-validations of classes and of numbers share: the splits, the outer loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ..exceptions import InputError, Interrupted
from ..judge.certificate import Certificate
from ..problem.folds import Folds, complement, folds_among, holds_pairs
from ..problem.kernels import Kernel, gamma_value
from ..runtime.progress import job
from ..runtime.threads import Workers
from ..types import FloatArray, IntArray
from .nested_parts import Outer, Parts
from .run import KernelRows

__all__ = ["InnerSplits", "Matrices", "added", "fold_by_fold", "outside", "settled", "worst"]


@dataclass(frozen=True)
class InnerSplits:
    """How the rows outside an outer fold are split: what the user gave, for all rows."""

    cv: Any
    labels: Any  # as splitters see them
    groups: Any
    random_state: Any
    keep: IntArray  # the user's numbers of the rows
    n: int  # rows that the user has
    stratify: bool = True

    def among(
        self, shown: Any, train: IntArray, fold: int, check: Callable[[Folds], Folds]
    ) -> Folds:
        """Inner folds of the rows ``train``, which outer fold ``fold`` leaves.

        ``shown`` are all rows as splitters see them; ``check`` refuses folds that cannot be used.
        """
        groups = None if self.groups is None else self.groups[train]
        try:
            folds = folds_among(
                self.keep[train], self.n, self.cv, shown[train], self.labels[train], groups,
                self.random_state, stratify=self.stratify,
            )  # fmt: skip
            return check(folds)
        except InputError as error:
            raise InputError(f"among the rows outside outer fold {fold}: {error}") from error

    def for_estimator(self, train: IntArray, fold: int) -> Any:
        """The ``cv`` of an estimator that is fitted to the rows ``train`` alone."""
        if not holds_pairs(self.cv):
            return self.cv
        folds = self.among(self.keep, train, fold, lambda folds: folds)
        n = len(train)
        pairs = zip(folds.left_out, folds.test, strict=True)
        return [(complement(out, n), test) for out, test in pairs]


class HasKernels(Protocol):
    """A tuning of classes or of numbers."""

    def kernel_rows(self, kernel: Kernel, workers: Workers) -> KernelRows: ...


class Matrices:
    """The kernel matrices of all rows, each made once."""

    def __init__(self, tuning: HasKernels):
        self.tuning = tuning
        self.made: dict[Kernel, KernelRows] = {}

    def whole(self, kernel: Kernel, workers: Workers) -> KernelRows:
        if kernel not in self.made:
            self.made[kernel] = self.tuning.kernel_rows(kernel, workers)
        return self.made[kernel]

    def among(self, rows: IntArray) -> Callable[[Kernel, Workers], KernelRows]:
        return lambda kernel, workers: self.whole(kernel, workers).part(rows)


def settled(kernels: list[Kernel], X: FloatArray, weight: FloatArray) -> list[Kernel]:
    """Kernels with gamma as numbers, from all rows."""
    numbers = [gamma_value(X, kernel, weight) for kernel in kernels]
    return [
        kernel if gamma is None else replace(kernel, gamma=gamma)
        for kernel, gamma in zip(kernels, numbers, strict=True)
    ]


def outside(outer: Folds, fold: int) -> IntArray:
    """The rows that an outer fold leaves to train on."""
    return complement(outer.left_out[fold], outer.n)


def fold_by_fold(
    outer: Folds,
    one: Callable[[int], Outer],
    gather: Callable[[list[Outer]], Any],
    store: Parts | None,
    show_progress: bool,
    workers: Workers,
) -> Any:
    """One outer fold after the other, then ``gather`` of all.

    Folds that ``store`` knows are taken from there, the others put there.  Ctrl-C becomes
    ``Interrupted``, with what ``gather`` makes of the folds that are complete.
    """
    done: list[Outer] = []
    try:
        with job(show_progress, len(outer)) as progress:
            for fold in range(len(outer)):
                with workers.followed(progress):
                    workers.watch.say(f"outer fold {fold + 1}")
                    done.append(_kept(fold, one, store))
    except KeyboardInterrupt as stop:
        raise Interrupted(
            f"interrupted with {len(done)} of {len(outer)} outer folds complete; what they "
            "say is the `partial` of this exception",
            gather(done) if done else None,
        ) from stop
    return gather(done)


def _kept(fold: int, one: Callable[[int], Outer], store: Parts | None) -> Outer:
    """One outer fold from the store if it is there; else it is computed and put there."""
    name = f"outer-{fold + 1:05d}"
    found = None if store is None else store.load(name)
    if found is not None:
        return Outer.of_tree(found)
    new = one(fold)
    if store is not None:
        store.save(name, new.tree())
    return new


def worst(done: list[Outer]) -> Certificate:
    """The worst of all grid points and inner folds, outer fold by outer fold."""
    found = [one.certificate for one in done]
    return Certificate(
        kkt=np.array([np.fmax.reduce(one.kkt) for one in found]),
        gap=np.array([np.fmax.reduce(one.gap) for one in found]),
        exact=all(one.exact for one in found),
        unresolved=[(f, inner) for f, one in enumerate(found) for _, inner in one.unresolved],
        tol=found[0].tol,
        convex=all(one.convex for one in found),
        not_converged=sum(one.not_converged for one in found),
        unproved=sum(one.unproved for one in found),
    )


def added(done: list[Outer]) -> dict[str, int]:
    """What outer folds counted, added up."""
    names = dict.fromkeys(name for one in done for name in one.stats)
    return {name: sum(one.stats.get(name, 0) for one in done) for name in names}
