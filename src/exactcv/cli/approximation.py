"""Exact kernel or approximate one: what was asked for, or what memory and patience allow.

Left to itself, ``tune`` takes the exact kernel if its matrix fits and the grid is done in a few
hours, else Nystroem features: they exist for every kernel that the command line offers, random
Fourier features for two of them only, and they are the more accurate at the same number of
components (on the simulation of the consolidated-CV paper, too), for their landmarks are rows of
the data and so lie where the data are.

What the exact kernel would take is told from the number of rows and of grid points alone, so that
the same command chooses alike on every machine, and with ``--nested`` as without, for that is to
tell the error of the same model: on 5,000 rows of real data a grid point with five folds takes a
second or two of one thread, more rows take between their square and their cube, and leave-one-out
some four times as long.

Of a linear kernel the columns of the table are features already.  They take the place of a matrix
that is too much, and always do if they are sparse and many (the words of texts): what they take
then hangs on the entries, and the kernel would be made of dense rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..exceptions import InputError, MemoryLimitError
from ..lowrank.task import is_wide
from ..lowrank.wide.method import most_on_margin
from ..runtime.memory import budget_of, matrix_size, shortage
from ..storage.run_folder import settings_in
from ..types import Approx
from .loading import Loaded
from .settings import TuneSettings

__all__ = ["DEFAULT_COMPONENTS", "Choice", "choose_kernel", "kernel_of_table"]

DEFAULT_COMPONENTS = 200
# Of so many rows five folds tell as much as leave-one-out, and their left-out values, which
# predictions.csv has, cost far less: with weak regularisation each row would be solved alone.
MANY_ROWS, DEFAULT_FOLDS = 5000, "5"
# Hours of one thread that the exact kernel may take; seconds of a grid point with POINT_FOLDS
# folds at POINT_ROWS rows, and the power of the rows by which they grow.
MOST_HOURS = 2.0
POINT_SECONDS, POINT_ROWS, POINT_FOLDS, POWER = 1.6, 5000, 5, 2.5
ALONE = 4.0  # leave-one-out, in units of those folds


@dataclass(frozen=True)
class Choice:
    """The settings with the choice made, and how it came about, if there is something to say.

    ``columns``: those of the table take the place of the linear kernel's matrix.  ``folds`` says
    why they are not those of leave-one-out, if nobody has named them.
    """

    settings: TuneSettings
    said: str | None = None
    columns: bool = False
    folds: str = "there are many rows; --cv loo leaves each out alone"


def kernel_of_table(
    loaded: Loaded,
    settings: TuneSettings,
    out: Path | None,
    memory_limit: str | None,
    numbers: bool = False,
) -> Choice:
    """The choice for a table, before anything is allocated; ``out`` may have an earlier run."""
    n, p = loaded.X.shape
    if loaded.weight is not None:  # rows of weight 0 are as good as absent
        n = int(np.count_nonzero(loaded.weight > 0))
    before, done = (None, False) if out is None else settings_in(out)
    if before is not None and before.get("approx") == "auto":  # runs of numbers once said so
        before = before | {"approx": None}
    return choose_kernel(
        settings,
        n=n,
        # The exact kernel is computed from dense rows.
        extra_bytes=8 * n * p if sparse.issparse(loaded.X) else 0,
        n_columns=None if numbers else p,
        stay_sparse=sparse.issparse(loaded.X),
        memory_limit=memory_limit,
        before=before,
        done=done,
    )


def choose_kernel(
    settings: TuneSettings,
    *,
    n: int,
    extra_bytes: int = 0,
    n_columns: int | None = None,
    stay_sparse: bool = False,
    memory_limit: str | None = None,
    before: dict[str, Any] | None = None,
    done: bool = False,
) -> Choice:
    """Settle ``approx`` and ``components``.

    Parameters
    ----------
    n : int
        Rows that count.
    extra_bytes : int
        What the exact kernel takes besides its matrix.
    n_columns : int, optional
        Of the table, if they may take the place of the linear kernel's matrix.
    stay_sparse : bool
        Are these columns sparse?
    memory_limit : str, optional
        By default what the system has available.
    before, done : dict, bool
        Settings of the run that is to go on, and whether it is finished: it keeps its kernel,
        however much memory there is now.
    """
    settings.rows_outside(n)  # refuses more outer folds than rows before anything is done
    if settings.approx in ("rff", "nystroem"):
        made = _approximate(settings, settings.approx, n)
        return Choice(made, f"{_words(made)}, as asked for; --approx none takes the exact one")
    went = _kernel_of(before, settings, n) if settings.approx == "auto" else None
    short = shortage(n, memory_limit, extra_bytes)
    if went is not None and went["approx"] is not None:
        made = _with_folds(settings, n, approx=went["approx"], components=went["components"])
        return Choice(made, _chosen(made, n, settings))
    kept = went is not None
    too_much = short is not None or (not kept and _is_slow(settings, n))
    if n_columns is not None and _by_columns(settings, n_columns, stay_sparse):
        many = is_wide(n_columns) and settings.approx == "auto"
        if too_much or many:
            return _columns(settings, n, n_columns, memory_limit)
    if not too_much or (kept and done):
        said = "exact; --components is not used" if settings.components else None
        return Choice(replace(settings, approx=None, components=None), said)
    if settings.approx == "none" or kept:
        raise MemoryLimitError(
            f"{short} or raise --memory-limit, or let features stand in for the kernel: --approx "
            "nystroem or rff" + (" (the run in --out has the exact one)" if kept else "")
        )
    conflict = settings.approx_conflict("nystroem")
    if conflict is not None:
        raise MemoryLimitError(
            f"{short} or raise --memory-limit; an approximate kernel would fit but does not go "
            f"with {conflict}"
        )
    made = _approximate(settings, "nystroem", n)
    return Choice(made, _chosen(made, n, settings))


def _is_slow(settings: TuneSettings, n: int) -> bool:
    """Would the exact kernel take too long, where features may step in?"""
    if settings.approx == "none" or settings.every_c or settings.approx_conflict("nystroem"):
        return False
    return exact_hours(settings, n) > MOST_HOURS


def _by_columns(settings: TuneSettings, n_columns: int, stay_sparse: bool) -> bool:
    """Can the columns stand for the linear kernel, where nothing else was asked for?"""
    if settings.kernel != "linear" or settings.every_c:
        return False
    if is_wide(n_columns) and not (stay_sparse and settings.loss == "hinge"):
        return False
    return settings.approx_conflict("nystroem") is None


def _columns(settings: TuneSettings, n: int, n_columns: int, memory_limit: str | None) -> Choice:
    """The columns in place of the matrix, and folds that can be done with them."""
    said = f"exact: the {n_columns} columns take the place of the linear kernel's matrix"
    made = _with_folds(settings, n, approx=None, components=None)
    if made.cv is None and made.groups is None and is_wide(n_columns):
        most = most_on_margin(budget_of(memory_limit))
        if n > most:  # all rows may be on the margin
            made = replace(made, cv=DEFAULT_FOLDS)
            why = f"memory may be too small for leave-one-out of more than {most} rows"
            return Choice(made, said, columns=True, folds=f"{why}; --cv loo tries")
    return Choice(made, said, columns=True)


def exact_hours(settings: TuneSettings, n: int) -> float:
    """Hours of one thread for the exact kernel, roughly (see the top of this file).

    Examples
    --------
    >>> default = TuneSettings(target="y")
    >>> round(exact_hours(default, 5000), 1), round(exact_hours(default, 32561))
    (0.2, 24)
    """
    folds = ALONE
    if settings.cv not in (None, "loo"):
        folds = (int(settings.cv) + 1) / (POINT_FOLDS + 1)
    point = POINT_SECONDS * (n / POINT_ROWS) ** POWER
    return settings.n_points * point * folds / 3600


def _approximate(settings: TuneSettings, approx: Approx, n: int) -> TuneSettings:
    asked, outside = settings.components, settings.rows_outside(n)
    if approx == "nystroem" and asked is not None and asked > outside:
        where = "" if outside == n else " outside a fold of --nested"
        raise InputError(
            f"--components {asked} is more than the {outside} rows{where}: Nystroem takes its "
            "landmarks from them; use at most that many, or --approx none"
        )
    # Folds by class may be a little larger than the others.
    most = n if outside == n else outside - outside // 10
    components = asked or min(
        DEFAULT_COMPONENTS, most if approx == "nystroem" else DEFAULT_COMPONENTS
    )
    return _with_folds(settings, n, approx=approx, components=components)


def _with_folds(settings: TuneSettings, n: int, **kernel: Any) -> TuneSettings:
    """With features in place of the kernel: the folds too, if they were not named."""
    if settings.cv is None and settings.groups is None and n >= MANY_ROWS:
        kernel |= {"cv": DEFAULT_FOLDS}
    return replace(settings, **kernel)


def _kernel_of(
    before: dict[str, Any] | None, settings: TuneSettings, n: int
) -> dict[str, Any] | None:
    """The kernel of an earlier run that differs in nothing else."""
    if before is None:
        return None
    kernel = {name: before.get(name) for name in ("approx", "components")}
    if kernel["approx"] is None:
        same = replace(settings, approx=None, components=None)
    else:
        components = settings.components or kernel["components"]
        same = _with_folds(settings, n, approx=kernel["approx"], components=components)
    return kernel if same.record() == before else None


def _words(settings: TuneSettings) -> str:
    return f"approximate kernel ({settings.approx}, {settings.components} components)"


def _chosen(settings: TuneSettings, n: int, asked: TuneSettings) -> str:
    """Nothing that differs from run to run, for the report is the same when a run went on."""
    why = f"the kernel matrix of {n} rows ({matrix_size(n)}) would not fit into memory"
    hours = exact_hours(asked, n)
    if hours > MOST_HOURS:
        why = (
            f"the exact kernel of {n} rows would take {matrix_size(n)} and, roughly, {hours:.0f} "
            "hours of one processor"
        )
    return (
        f"{_words(settings)}, since {why}; --approx none forces the exact one, --components sets "
        "their number"
    )
