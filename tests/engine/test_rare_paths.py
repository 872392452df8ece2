"""Paths of the compiled loops that ordinary problems do not take."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from _oracle import Start, make_task
from _problems import mixture

from exactcv._core._base import Base
from exactcv.engine import table as table_module


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [1.0, 30.0])
def test_columns_that_were_given_up_are_made_again(
    C: float, fit_intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room for as many as change at a time is room enough: the answers are the same."""
    small = mixture(160, 3, seed=1)
    task = make_task(small, C, fit_intercept=fit_intercept)
    plenty = [coef for _, _, coef in Start.of(task).drives()]
    monkeypatch.setattr(table_module, "Base", partial(Base, held=40))
    others = [len(table.columns.others) for _, table in Start.of(task).tables()]
    assert max(others) > 40
    scarce = [coef for _, _, coef in Start.of(task).drives()]
    assert len(scarce) == len(plenty)
    for one, other in zip(scarce, plenty, strict=True):
        assert one is not None and other is not None
        # By whichever product a column is made.
        assert small.K @ one == pytest.approx(small.K @ other, abs=1e-9 * max(1.0, C))
