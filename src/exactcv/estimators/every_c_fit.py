"""``SVCCV(Cs="all")``: the point is chosen among every C, then fitted as ever."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..crossval.error_path import follow_path, path_plan
from ..crossval.error_path_result import ErrorPath
from ..crossval.one_vs_one import ManyClasses
from ..crossval.scoring import Scorer
from ..crossval.tuning import Tuning
from ..exceptions import InputError, Interrupted, UnsupportedError
from ..problem.grid import make_grid
from ..report.overview import Overview
from ..runtime.threads import Workers

__all__ = ["check_every_c", "narrowed", "shown_for_every_c", "wants_every_c"]


def wants_every_c(Cs: Any) -> bool:
    """Is it every C that is asked for?"""
    return isinstance(Cs, str) and Cs == "all"


def check_every_c(model: Any, scorer: Scorer) -> None:
    """Refuse what does not go with Cs="all", with a reason."""
    path_plan(model.method, model.loss, model.fit_intercept, model.tol)
    if model.lambdas is not None:
        raise InputError("give Cs='all' or lambdas, not both")
    if model.approx is not None:
        raise UnsupportedError("Cs='all' needs the kernel matrix: leave out approx")
    if scorer.call is not None or scorer.pairs:
        raise UnsupportedError(
            f"Cs='all' counts errors; scoring={model.scoring!r} changes in other ways than by "
            "steps: use scoring=None, or a grid of Cs"
        )
    if model.select != "min":
        raise UnsupportedError("Cs='all' goes with select='min'; the 1-SE rule is for a grid of Cs")


def narrowed(
    tuning: Tuning, keep: NDArray[np.intp], workers: Workers
) -> tuple[Tuning, list[ErrorPath], int]:
    """The tuning of the best point alone, the paths of all kernels, and which is the best's.

    Of equally good kernels that with the widest interval of C is taken.  The range of C is that of
    the grid.
    """
    low, high = float(tuning.grid.Cs.min()), float(tuning.grid.Cs.max())
    paths = []
    try:
        for kernel in tuning.kernels:
            start = perf_counter()
            with workers.followed(tuning.show_progress):
                rows = tuning.kernel_rows(kernel, workers)
                task = ManyClasses(
                    rows, tuning.codes, tuning.weight, tuning.folds, tuning.grid, tuning.plan
                )
                paths.append(
                    follow_path(
                        task,
                        low,
                        high,
                        workers,
                        start,
                        tuning.classes,
                        kernel,
                        keep,
                        tuning.sample_weight,
                    )
                )
    except KeyboardInterrupt as stop:
        raise Interrupted("interrupted before every C was looked at") from stop
    rank = [(round(float(p.error.min()), 12), -_widest(p)) for p in paths]
    best = min(range(len(paths)), key=rank.__getitem__)
    n = float(tuning.sample_weight.sum())
    grid = make_grid([paths[best].best_C], None, n)
    return replace(tuning, grid=grid, kernels=[tuning.kernels[best]]), paths, best


def shown_for_every_c(it: Overview, paths: list[ErrorPath], best: int) -> Overview:
    """The overview of the best point, which says what it was the best of."""
    own = paths[best]
    every_c = (*own.C_range, len(paths))
    return replace(it, one_se=None, every_c=every_c, steps=(own.edges, own.error))


def _widest(path: ErrorPath) -> float:
    low, high = path.best.T
    return float(np.log(high / low).max())
