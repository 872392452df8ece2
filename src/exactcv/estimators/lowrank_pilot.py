"""Where to search: what a sample of the rows finds by itself.

With many rows every grid point is work over all of them, and most points of a wide grid are far
from the best.  So whoever leaves gamma and C to `SVCCV` has them sought among some thousand rows
first, on the default grid that grows; the grid of all rows is a small one around what was found
there, and grows in turn.  Lambda hardly depends on the number of rows, but rather falls with it, so
that the grid reaches further down than up.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from ..lowrank.rows.sampling import smallest_keys
from .lowrank_rows import Rows

if TYPE_CHECKING:
    from .svc_cv import SVCCV

__all__ = ["PILOT_ROWS", "Region", "region_of"]

# Rows of the sample; it is worth its while if there are so many times more.
PILOT_ROWS, WORTH = 2048, 8
FOLDS = 5
MOST_COMPONENTS = 100  # of the sample: where the grid is to lie does not hang on more


@dataclass(frozen=True)
class Region:
    """The point that the sample chose."""

    gamma: float
    lambda_: float

    @property
    def text(self) -> str:
        return (
            f"the default grid lies around gamma={self.gamma:.4g}, lambda={self.lambda_:.4g}, the "
            f"choice of a sample of {PILOT_ROWS} rows"
        )


def region_of(model: SVCCV, rows: Rows) -> Region | None:
    """What a sample of the rows chooses; None if there are too few rows, or folds are special."""
    plain = isinstance(model.cv, (int, StratifiedKFold)) or model.cv is None or model.cv == "loo"
    if not plain or rows.groups is not None or rows.n_used < WORTH * PILOT_ROWS:
        return None
    some = np.sort(smallest_keys(rows.n_used, PILOT_ROWS, rows.seed))
    codes = rows.codes[some]
    if np.bincount(codes, minlength=len(rows.classes)).min() < 2 * FOLDS:
        return None
    asked = MOST_COMPONENTS if model.n_components == "auto" else int(model.n_components)
    few: Any = clone(model).set_params(
        cv=StratifiedKFold(FOLDS),
        select="min",
        probability=False,
        store_cv_results=False,
        random_state=rows.seed,
        n_components=min(asked, MOST_COMPONENTS),
        verbose=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is said of the sample, nothing is reported
        few.fit(rows.source.take(some), rows.classes[codes], rows.sample_weight[some])
    return Region(float(few.gamma_), float(few.lambda_))
