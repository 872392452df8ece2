"""The search of ``SVCCV(approx=...)``: a curve a gamma, and a default grid that grows.

Who gives neither C nor lambda gets the grid of ``problem/grid.py``, three gammas around the median
rule if no gamma is given either, and both grow while the best point is at an edge
(``crossval/growth.py``): gamma by one at a time over all C, C by a decade for all gammas.  An edge
has to win by more than chance: of many rows the best points lie in a long valley, whose floor is
level but for noise.  Of very many rows a sample says where the grid begins (``lowrank_pilot.py``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..crossval.choice import best_point
from ..crossval.growth import edge, growth_text
from ..crossval.scoring import check_defined
from ..crossval.tuning import Store
from ..problem.gamma import GAMMA_STEP
from ..problem.grid import MOST_GROWTH, End, Grid, feature_grid
from ..problem.kernels import Kernel
from ..runtime.progress import Progress, job
from ..types import BoolArray, FloatArray
from .lowrank_curve import ApproxCurve, curve, joined, unpacked, with_point
from .lowrank_pilot import Region, region_of
from .lowrank_rows import Rows

if TYPE_CHECKING:
    from .svc_cv import SVCCV

__all__ = ["Search"]

# From so many tests on an edge of the default grid has to win by more than chance.
MANY_TESTS = 1000


class Search:
    """Curves, one a gamma; see the top of this file.

    ``curves`` belong to one grid of C at any time, so that a search that is stopped is complete as
    far as it went.
    """

    def __init__(
        self,
        model: SVCCV,
        rows: Rows,
        kernels: list[Kernel],
        store: Store | None,
    ):
        self.model, self.rows, self.store = model, rows, store
        self.kernels = kernels
        self.curves: list[ApproxCurve] = []
        given = not (model.Cs is None and model.lambdas is None)
        self.grid: Grid | None = None if given else rows.default_grid(model.approx)
        # (gamma x'y)^degree: there gamma does no more than C.
        idle = model.kernel == "poly" and model.coef0 == 0
        fixed = given or model.gamma is not None or idle or not kernels[0].uses_gamma
        self.new_gammas: tuple[int, int] | None = None if fixed else (0, 0)
        self.region: Region | None = None
        self._number = 0  # of the next curve in the store

    def run(self, verbose: bool) -> None:
        """All curves; what is complete when it is stopped stays."""
        more: list[End] = [] if self.new_gammas is None else ["low", "high"]
        if more:
            self.region = region_of(self.model, self.rows)
        if self.region is not None:
            self.grid = feature_grid(self.rows.total, self.region.lambda_)
            self.kernels = [replace(self.kernels[0], gamma=self.region.gamma)]
        with job(verbose, len(self.kernels) + len(more)) as progress:
            for kernel in self.kernels:
                self.curves.append(self._curve(kernel, progress, self.grid))
            for end in more:
                self._insert(end, -1 if end == "high" else 0, progress)
        while self._grow(verbose):
            pass

    @property
    def score(self) -> FloatArray:
        """Of every point, (gammas, L)."""
        return np.array([one.score for one in self.curves])

    def best(self) -> tuple[int, int]:
        """The best score of all: (gamma, C)."""
        score, short = self.score, np.array([one.certificate.short for one in self.curves])
        check_defined(score, self.model.scoring)
        return best_point(-score, short, self.curves[0].overview.Cs, self._gammas())

    def chosen(self, g: int) -> ApproxCurve:
        """The curve of the chosen gamma, with the model at the chosen point."""
        one = self.curves[g]
        if self.model.select == "min" or self.grid is None or self.grid.grown == (0, 0):
            return one
        return with_point(self.model, self.rows, one)

    def grown_text(self) -> str:
        """Where the default grid lies and what it has gained, in words."""
        if self.grid is None:
            return ""
        words = ["" if self.region is None else self.region.text]
        words.append(growth_text(self.grid, self.new_gammas or (0, 0)))
        if self.level_edge():
            words.append(
                "its best point is at an edge, but beats those inside by no more than chance"
            )
        return "; ".join(text for text in words if text)

    def progress_text(self) -> str:
        """How much was done when it was stopped."""
        done, wanted = len(self.curves), len(self.kernels)
        more = ", while the default grid grew" if self.grid is not None and done == wanted else ""
        return f"{done} of {wanted} gammas done{more}"

    # ---- steps ----------------------------------------------------------------------------------

    def _curve(
        self, kernel: Kernel, progress: bool | Progress, part: Grid | None, m: int | None = None
    ) -> ApproxCurve:
        """The curve from the store if it is there; else it is computed and put there."""
        number, store = self._number, self.store
        self._number += 1
        found: ApproxCurve | None = None if store is None else store.load(number)
        if found is None:
            found = curve(self.model, self.rows, kernel, progress, part, m)
            if store is not None:
                store.save(number, found)
        return found

    def _grow(self, verbose: bool) -> bool:
        """One step of growth, if there is one to be made."""
        if self.grid is None:
            return False
        score, best = self.score, self.best()
        if self.rows.scorer.call is None and score[best] >= 1.0:
            return False
        end = self._edge(score, best, axis=1)
        part = None if end is None else self.grid.next_decade(end)
        if end is not None and part is not None:
            self._decade(end, self.grid, part, verbose)
            return True
        end = self._edge(score, best, axis=0)
        if end is None or self.new_gammas is None or self.new_gammas[end == "high"] >= MOST_GROWTH:
            return False
        self._gamma(end, best[0], self.new_gammas, verbose)
        return True

    def _edge(self, score: FloatArray, best: tuple[int, int], axis: int) -> End | None:
        """The end of an axis where the best point is, if it wins by more than chance."""
        end = edge(score, best, axis)
        return None if end is None or self._by_chance(score, best, axis) else end

    def _by_chance(self, score: FloatArray, best: tuple[int, int], axis: int) -> bool:
        """Is the point better than those off its line by no more than one standard error?

        Both have the same tests, so it is that of their difference: of so many tests that one has
        right and the other wrong.  Where scores are no sums over tests, nothing is known of it; of
        few tests next to nothing, and there more points cost little.
        """
        if self.rows.scorer.call is not None or len(self.rows.truth) < MANY_TESTS:
            return False
        line = [slice(None)] * 2
        line[axis] = slice(best[axis], best[axis] + 1)
        rest = np.array(score)
        rest[tuple(line)] = -np.inf
        other = np.unravel_index(np.nanargmax(rest), rest.shape)
        there, here = self._wrong(*map(int, other)), self._wrong(*best)
        gained, lost = (self.rows.test_weight[side] for side in (there & ~here, here & ~there))
        noise = np.sqrt((gained**2).sum() + (lost**2).sum())
        return bool(gained.sum() - lost.sum() <= noise)

    def _wrong(self, g: int, l: int) -> BoolArray:
        """Which tests are wrong."""
        k, truth = len(self.rows.classes), self.rows.truth
        found = unpacked(self.curves[g].labels[l : l + 1], k, len(truth))[0]
        return np.asarray(found != truth)

    def level_edge(self) -> bool:
        """Is the best point at an edge of the default grid by no more than chance?"""
        if self.grid is None:
            return False
        score, best = self.score, self.best()
        axes = (1,) if self.new_gammas is None else (0, 1)
        at = [a for a in axes if score.shape[a] > 2 and best[a] in (0, score.shape[a] - 1)]
        return bool(at) and all(self._by_chance(score, best, axis) for axis in at)

    def _decade(self, end: End, grid: Grid, part: Grid, verbose: bool) -> None:
        """More C for every gamma."""
        with job(verbose, len(self.curves)) as progress:
            found = [
                self._curve(kernel, progress, part, one.feature_map.n_components)
                for kernel, one in zip(self.kernels, self.curves, strict=True)
            ]
        pairs = zip(self.curves, found, strict=True)
        if end == "low":
            pairs = zip(found, self.curves, strict=True)
        self.curves = [joined(self.model, self.rows, *both) for both in pairs]
        self.grid = grid.with_decade(part, end)

    def _gamma(self, end: End, g: int, gained: tuple[int, int], verbose: bool) -> None:
        """One more gamma, for all C."""
        with job(verbose, 1) as progress:
            self._insert(end, g, progress)
        low, high = gained
        self.new_gammas = (low, high + 1) if end == "high" else (low + 1, high)

    def _insert(self, end: End, g: int, progress: bool | Progress) -> None:
        """The gamma next to the g-th, which is at that end."""
        step = GAMMA_STEP if end == "high" else 1.0 / GAMMA_STEP
        kernel = replace(self.kernels[g], gamma=float(self._gammas()[g]) * step)
        found = self._curve(kernel, progress, self.grid)
        at = len(self.curves) if end == "high" else 0
        self.curves.insert(at, found)
        self.kernels.insert(at, kernel)

    def _gammas(self) -> FloatArray:
        return np.concatenate([one.overview.gammas for one in self.curves])
