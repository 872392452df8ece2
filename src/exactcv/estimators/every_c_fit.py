"""``SVCCV(Cs="all")``: the point is chosen among every C, then fitted as ever."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..crossval.classes import ManyClasses
from ..crossval.error_path import follow_path, path_plan
from ..crossval.error_path_result import ErrorPath
from ..crossval.scoring import Scorer
from ..crossval.tuning import Tuning
from ..exceptions import InputError, Interrupted, UnsupportedError
from ..problem.grid import make_grid
from ..report.overview import Overview
from ..runtime.threads import Workers
from ..types import FloatArray

__all__ = ["check_every_c", "fit_every_c", "wants_every_c"]


def wants_every_c(Cs: Any) -> bool:
    """Is it every C that is asked for?"""
    return isinstance(Cs, str) and Cs == "all"


def check_every_c(model: Any, scorer: Scorer) -> None:
    """Refuse what does not go with Cs="all", with a reason."""
    path_plan(model.method, model.loss, model.fit_intercept, model.tol)
    if model.lambdas is not None:
        raise InputError("give Cs='all' or lambdas, not both")
    if model.approx is not None:
        raise UnsupportedError("every C needs the kernel matrix: leave out approx")
    if scorer.call is not None or scorer.pairs:
        raise UnsupportedError(
            f"every C means counting errors; scoring={model.scoring!r} changes in other ways than "
            "by steps: leave it out, or tune on a grid of C"
        )
    if model.select != "min":
        raise UnsupportedError("every C goes with select='min'; the 1-SE rule is for a grid of C")


class Paths(NamedTuple):
    """The tuning of the best point alone, the paths of all kernels, and which is the best's."""

    tuning: Tuning
    paths: list[ErrorPath]
    best: int

    @classmethod
    def of(cls, tuning: Tuning, paths: list[ErrorPath]) -> Paths:
        """Of equally good kernels that with the widest interval of C is taken."""
        rank = [(round(float(p.error.min()), 12), -_widest(p)) for p in paths]
        best = min(range(len(paths)), key=rank.__getitem__)
        n = float(tuning.sample_weight.sum())
        grid = make_grid([paths[best].best_C], None, n)
        return cls(replace(tuning, grid=grid, kernels=[tuning.kernels[best]]), paths, best)


def fit_every_c(
    model: Any,
    tuning: Tuning,
    keep: NDArray[np.intp],
    n_threads: int,
    finish: Callable[..., FloatArray | None],
    start: float,
) -> tuple[Tuning, FloatArray | None]:
    """Fit a model to the best of every C; the tuning of that point, and what ``finish`` gives.

    Ctrl-C when some kernels are done leaves the model fitted to the best of them.
    """
    stopped = None
    try:
        with Workers(n_threads) as workers:
            found = _paths(tuning, keep, workers)
    except Interrupted as stop:
        if stop.partial is None:
            raise
        found, stopped = stop.partial, stop
    with Workers(n_threads) as workers:
        values = finish(found.tuning.search(workers), workers, start)
    model.error_paths_, model.error_path_ = found.paths, found.paths[found.best]
    model._shown = shown_for_every_c(model._shown, found.paths, found.best)
    model._correction = _refuse_correction
    if stopped is not None:
        raise Interrupted(
            f"interrupted with {len(found.paths)} of {len(tuning.kernels)} gammas done; the "
            "estimator is fitted to the best of them, and is the `partial` of this exception",
            model,
        ) from stopped
    return found.tuning, values


def _paths(tuning: Tuning, keep: NDArray[np.intp], workers: Workers) -> Paths:
    """The paths of all kernels; the range of C is that of the grid.

    ``Interrupted`` brings what was complete by then, if anything was.
    """
    low, high = float(tuning.grid.Cs.min()), float(tuning.grid.Cs.max())
    paths: list[ErrorPath] = []
    try:
        for kernel in tuning.kernels:
            start = perf_counter()
            with workers.followed(tuning.show_progress):
                rows = tuning.kernel_rows(kernel, workers)
                task = ManyClasses(
                    rows, tuning.codes, tuning.weight, tuning.folds, tuning.grid, tuning.plan
                )
                more = start, tuning.classes, kernel, keep, tuning.sample_weight
                paths.append(follow_path(task, low, high, workers, *more))
    except KeyboardInterrupt as stop:
        done = Paths.of(tuning, paths) if paths else None
        raise Interrupted("interrupted before the first gamma was done", done) from stop
    return Paths.of(tuning, paths)


def _refuse_correction() -> NoReturn:
    """Of the point that was chosen alone a correction would know nothing of the choice."""
    raise UnsupportedError(
        "the best of every C is not corrected for the choice; nested_cross_validate on a grid "
        "tells how much that gains"
    )


def shown_for_every_c(it: Overview, paths: list[ErrorPath], best: int) -> Overview:
    """The overview of the best point, which says what it was the best of."""
    own = paths[best]
    every_c = (*own.C_range, len(paths))
    return replace(it, one_se=None, every_c=every_c, steps=(own.edges, own.error))


def _widest(path: ErrorPath) -> float:
    low, high = path.best.T
    return float(np.log(high / low).max())
