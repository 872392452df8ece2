"""What is said of the inputs that people hand in most often by mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import exactcv

Y = np.arange(20) % 2
X = np.random.default_rng(0).normal(size=(20, 3)) + Y[:, None]
NAMES = np.where(Y == 1, "ill", "well")

FITS: dict[str, Callable[[Any, Any], Any]] = {
    "cross_validate": lambda X, y: exactcv.cross_validate(X, y, Cs=[1.0]),
    "SVCCV": lambda X, y: exactcv.SVCCV(Cs=[1.0]).fit(X, y),
    "SmoothSVC": lambda X, y: exactcv.SmoothSVC().fit(X, y),
}


@pytest.fixture(params=FITS)
def fit(request: pytest.FixtureRequest) -> Callable[[Any, Any], Any]:
    return FITS[request.param]


@pytest.mark.parametrize("kind", ["floats", "objects", "pandas", "list"])
def test_a_missing_label_names_y_and_its_row(fit: Callable[[Any, Any], Any], kind: str) -> None:
    y: Any = Y.astype(float)
    y[3] = np.nan
    if kind == "objects":
        y = NAMES.astype(object)
        y[3] = None
    elif kind == "pandas":
        y = pytest.importorskip("pandas").Series(y, index=np.arange(20)[::-1])
    elif kind == "list":
        y = [*NAMES[:3].tolist(), None, *NAMES[4:].tolist()]
    with pytest.raises(exactcv.InputError, match=r"y contains missing values.*row 3; drop"):
        fit(X, y)


def test_an_infinite_label_names_y(fit: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(exactcv.InputError, match="y contains infinity"):
        fit(X, np.where(Y == 1, np.inf, 0.0))


def test_text_in_x_names_its_column(fit: Callable[[Any, Any], Any]) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"]).assign(n="7", city=["Bonn"] * 20)
    with pytest.raises(exactcv.InputError, match=r"text in column 'city' .row 0: 'Bonn'.*OneHot"):
        fit(frame, Y)
    cells = X.astype(object)
    cells[4, 2] = "high"
    with pytest.raises(exactcv.InputError, match=r"^X has text in column 2 .row 4: 'high'"):
        fit(cells, Y)


def test_text_in_x_names_its_column_when_predicting() -> None:
    cells = X.astype(object)
    cells[0, 1] = "low"
    for model in (exactcv.SVCCV(Cs=[1.0]), exactcv.SmoothSVC()):
        with pytest.raises(exactcv.InputError, match=r"text in column 1 .row 0: 'low'"):
            model.fit(X, Y).predict(cells)


@pytest.mark.parametrize("scoring", ["f1", "precision", "recall"])
def test_scores_of_one_class_say_how_to_name_it(scoring: str) -> None:
    advice = rf"{scoring}_score, pos_label='well'\), or use scoring='{scoring}_macro'"
    with pytest.raises(exactcv.InputError, match=rf"make_scorer\({advice}"):
        exactcv.SVCCV(Cs=[1.0], scoring=scoring).fit(X, NAMES)
    assert exactcv.SVCCV(Cs=[1.0], scoring=f"{scoring}_macro").fit(X, NAMES).best_score_ > 0.5
    with pytest.raises(exactcv.InputError, match=f"use scoring='{scoring}_macro'"):
        exactcv.SVCCV(Cs=[1.0], scoring=scoring).fit(X, np.arange(20) % 3)
