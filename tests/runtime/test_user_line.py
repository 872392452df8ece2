"""Warnings point at the line of the user, whatever lies between."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

import exactcv
from exactcv.runtime.user_line import split_at_user_line, user_level

RNG = np.random.default_rng(0)
Y = np.arange(20) % 2
X = RNG.normal(size=(20, 3)) + Y[:, None]
ODD = X @ X.T - 3.0 * np.eye(20)  # not positive semidefinite


RUNS: dict[str, tuple[str, Callable[[], Any]]] = {
    "cross_validate": (
        "semidefinite",
        lambda: exactcv.cross_validate(ODD, Y, kernel="precomputed", Cs=[0.1]),
    ),
    "SVCCV": (
        "semidefinite",
        lambda: exactcv.SVCCV(kernel="precomputed", Cs=[0.1]).fit(ODD, Y),
    ),
    "by scikit-learn": (
        "semidefinite",
        lambda: cross_val_score(exactcv.SVCCV(kernel="sigmoid", coef0=-2.0, Cs=[0.1]), X, Y, cv=2),
    ),
    "unresolved": (
        "do not meet tol",
        lambda: exactcv.SVCCV(Cs=[1.0], tol=1e-300).fit(X, Y),
    ),
    "a splitter of scikit-learn": (
        "least populated class",
        lambda: exactcv.SVCCV(Cs=[1.0], cv=5).fit(X, np.arange(20) < 3),
    ),
    "weights": (
        "takes no sample_weight",
        lambda: exactcv.SVCCV(Cs=[1.0], scoring=lambda model, X, y: 1.0).fit(X, Y, np.ones(20)),
    ),
}


@pytest.mark.parametrize("how", RUNS)
def test_warnings_name_the_file_of_the_user(how: str) -> None:
    words, run = RUNS[how]
    with pytest.warns(UserWarning, match=words) as caught:
        run()
    assert {warning.filename for warning in caught} == {__file__}


def test_in_a_thread_of_ours_it_is_no_line_of_threading() -> None:
    levels: list[int] = []
    # As if the code of the thread were ours.
    code = compile("levels.append(user_level())", "x.py", "exec")
    space = {"__name__": "exactcv.x", "levels": levels, "user_level": user_level}
    thread = threading.Thread(target=exec, args=(code, space))
    thread.start()
    thread.join()
    assert levels == [2]


def test_called_by_a_user_it_is_the_line_itself() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("here", stacklevel=user_level())
    assert caught[0].filename == __file__


def test_what_a_splitter_warns_of_is_heard_even_if_it_fails() -> None:
    def pairs() -> Any:
        warnings.warn("too few", UserWarning, stacklevel=1)
        raise ValueError("none at all")
        yield

    with pytest.warns(UserWarning, match="too few"), pytest.raises(ValueError, match="none at"):
        split_at_user_line(pairs())
