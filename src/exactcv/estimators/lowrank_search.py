"""The search of ``SVCCV(approx=...)``: a curve a gamma, and a default grid that grows.

Who gives neither C nor lambda gets the grid of ``problem/grid.py``, three gammas around the median
rule if no gamma is given either, and both grow while the best point is at an edge
(``crossval/growth.py``): gamma by one at a time over all C, C by a decade for all gammas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..crossval.choice import best_point
from ..crossval.growth import edge, growth_text
from ..crossval.tuning import Store
from ..problem.gamma import GAMMA_STEP
from ..problem.grid import MOST_GROWTH, End, Grid
from ..problem.kernels import Kernel
from ..runtime.progress import Progress, job
from ..types import FloatArray
from .lowrank_curve import ApproxCurve, Rows, curve, joined, with_point

if TYPE_CHECKING:
    from .svc_cv import SVCCV

__all__ = ["Search"]


class Search:
    """Curves, one a gamma; see the top of this file.

    ``curves`` belong to one grid of C at any time, so that a search that is stopped is complete as
    far as it went.
    """

    def __init__(self, model: SVCCV, rows: Rows, kernels: list[Kernel], store: Store | None):
        self.model, self.rows, self.store = model, rows, store
        self.gammas: list[Any] = [kernel.gamma for kernel in kernels]
        self.curves: list[ApproxCurve] = []
        given = not (model.Cs is None and model.lambdas is None)
        self.grid: Grid | None = None if given else rows.default_grid
        # (gamma x'y)^degree: there gamma does no more than C.
        idle = model.kernel == "poly" and model.coef0 == 0
        fixed = given or model.gamma is not None or idle or not kernels[0].uses_gamma
        self.new_gammas: tuple[int, int] | None = None if fixed else (0, 0)
        self._number = 0  # of the next curve in the store

    def run(self, verbose: bool) -> None:
        """All curves; what is complete when it is stopped stays."""
        around = 0 if self.new_gammas is None else 2
        with job(verbose, len(self.gammas) + around) as progress:
            for gamma in self.gammas:
                self.curves.append(self._curve(gamma, progress, self.grid))
            if around:
                middle = self._gammas()[0]
                self.gammas = [middle / GAMMA_STEP, middle, middle * GAMMA_STEP]
                self.curves.insert(0, self._curve(self.gammas[0], progress, self.grid))
                self.curves.append(self._curve(self.gammas[2], progress, self.grid))
        while self._grow(verbose):
            pass

    def best(self) -> tuple[int, int]:
        """The least error of all: (gamma, C)."""
        short = np.array([one.certificate.short for one in self.curves])
        return best_point(self._error(), short, self.curves[0].overview.Cs, self._gammas())

    def chosen(self, g: int) -> ApproxCurve:
        """The curve of the chosen gamma, with the model at the chosen point."""
        one = self.curves[g]
        if self.model.select == "min" or self.grid is None or self.grid.grown == (0, 0):
            return one
        return with_point(self.model, self.rows, one)

    def grown_text(self) -> str:
        """What the default grid has gained, in words."""
        return "" if self.grid is None else growth_text(self.grid, self.new_gammas or (0, 0))

    def progress_text(self) -> str:
        """How much was done when it was stopped."""
        done, wanted = len(self.curves), len(self.gammas)
        more = ", while the default grid grew" if self.grid is not None and done == wanted else ""
        return f"{done} of {wanted} gammas done{more}"

    # ---- steps ----------------------------------------------------------------------------------

    def _curve(
        self, gamma: Any, progress: bool | Progress, part: Grid | None, m: int | None = None
    ) -> ApproxCurve:
        """The curve from the store if it is there; else it is computed and put there."""
        number, store = self._number, self.store
        self._number += 1
        found: ApproxCurve | None = None if store is None else store.load(number)
        if found is None:
            found = curve(self.model, self.rows, gamma, progress, part, m)
            if store is not None:
                store.save(number, found)
        return found

    def _grow(self, verbose: bool) -> bool:
        """One step of growth, if there is one to be made."""
        if self.grid is None:
            return False
        score, best = 1.0 - self._error(), self.best()
        if score[best] >= 1.0:
            return False
        end = edge(score, best, axis=1)
        part = None if end is None else self.grid.next_decade(end)
        if end is not None and part is not None:
            self._decade(end, self.grid, part, verbose)
            return True
        end = edge(score, best, axis=0)
        if end is None or self.new_gammas is None or self.new_gammas[end == "high"] >= MOST_GROWTH:
            return False
        self._gamma(end, best[0], self.new_gammas, verbose)
        return True

    def _decade(self, end: End, grid: Grid, part: Grid, verbose: bool) -> None:
        """More C for every gamma."""
        with job(verbose, len(self.curves)) as progress:
            found = []
            for one in self.curves:
                gamma = "median" if one.gamma is None else one.gamma
                found.append(self._curve(gamma, progress, part, one.feature_map.n_components))
        pairs = zip(self.curves, found, strict=True)
        if end == "low":
            pairs = zip(found, self.curves, strict=True)
        self.curves = [joined(self.model, low, high) for low, high in pairs]
        self.grid = grid.with_decade(part, end)

    def _gamma(self, end: End, g: int, gained: tuple[int, int], verbose: bool) -> None:
        """One more gamma, for all C."""
        gamma = float(self._gammas()[g]) * (GAMMA_STEP if end == "high" else 1.0 / GAMMA_STEP)
        with job(verbose, 1) as progress:
            found = self._curve(gamma, progress, self.grid)
        if end == "high":
            self.curves, self.new_gammas = [*self.curves, found], (gained[0], gained[1] + 1)
        else:
            self.curves, self.new_gammas = [found, *self.curves], (gained[0] + 1, gained[1])
        self.gammas = list(self._gammas())

    def _error(self) -> FloatArray:
        return np.concatenate([one.overview.error for one in self.curves])

    def _gammas(self) -> FloatArray:
        return np.concatenate([one.overview.gammas for one in self.curves])
