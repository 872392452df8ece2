"""Summaries: what they say, and each warning exactly when it applies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import exactcv
from exactcv import NotExactWarning
from exactcv.report import words as report
from exactcv.report.overview import LeftOutRows, Overview, join, overview


def make(
    error: Any, *, Cs: Any = (0.1, 1.0, 10.0), gammas: Any = (0.5,), n: int = 40, **facts: Any
) -> Overview:
    """An overview with the errors given, of n rows in balanced classes, all else unremarkable."""
    error = np.atleast_2d(np.asarray(error, dtype=float))
    best = tuple(int(k) for k in np.unravel_index(np.argmin(error), error.shape))
    truth = np.arange(n) % 2
    wrong = np.arange(n) < round(float(error[best]) * n)
    Cs = np.asarray(Cs, dtype=float)
    plain: dict[str, Any] = {
        "Cs": Cs,
        "lambdas": 1 / (2 * n * Cs),
        "gammas": np.asarray(gammas, dtype=float),
        "error": error,
        "se": np.full(error.shape, 0.01),
        "n_errors": np.round(error * n).astype(int),
        "at_bound": np.full(error.shape, 0.2),
        "kkt": np.full(error.shape, 1e-12),
        "gap": np.full(error.shape, 1e-13),
        "best": best,
        "one_se": best,
        "chosen": best,
        "left_out": LeftOutRows(
            row=np.arange(n), truth=truth, predicted=np.where(wrong, 1 - truth, truth)
        ),
        "classes": np.array(["no", "yes"]),
        "n_rows": n,
        "n_folds": n,
        "leave_one_out": True,
        "fit_intercept": True,
        "method": "exact",
        "loss": "hinge",
        "settled": {"unchanged": 60, "bound": 40, "solved": 20, "fallback": 0, "missing": 0},
        "timings": {"folds": 0.5, "total": 1.0},
    }
    return Overview(**(plain | facts))


def kinds(it: Any) -> list[str]:
    return [remark.kind for remark in report.remarks(it)]


def test_the_summary_says_what_was_chosen_and_how() -> None:
    it = make([0.3, 0.1, 0.2], one_se=(0, 0))
    text = " ".join(report.summary(it).split())
    assert text.startswith("Leave-one-out over 3 grid points, 40 folds, method 'exact'.")
    assert "least error: 0.1000 (4 of 40 wrong; 95% interval 0.0396 to 0.2305) at C=1 (" in text
    assert "(lambda=0.0125, gamma=0.5)" in text
    assert "1-SE rule: 0.3000 (12 of 40 wrong; 95% interval 0.1807 to 0.4543) at C=0.1" in text
    assert "certificate: exact: KKT violation at most 1.0e-12" in text
    assert "of 120 fits of a fold at a grid point, 60 (50%) unchanged" in text
    assert "40 (33%) proved by a bound, 20 (17%) solved" in text
    assert "fallback" not in text
    assert "warning:" not in text
    assert max(map(len, report.summary(it).splitlines())) <= report.WIDTH


def test_scores_gammas_and_classes_are_named() -> None:
    error = np.array([[0.3, 0.2, 0.3], [0.3, 0.1, 0.2], [0.2, 0.4, 0.2]])
    it = make(
        error,
        gammas=(0.1, 1.0, 10.0),
        classes=np.array([1, 2, 3]),
        score=1 - error,
        scoring="roc_auc",
        chosen=(1, 2),
    )
    text = report.summary(it)
    assert "3 values of C and 3 of gamma, 40 folds, 3 classes" in text
    assert "best score:  roc_auc 0.9000 at C=1" in text
    assert "taken:       roc_auc 0.8000 at C=10" in text


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ([0.3, 0.1, 0.2], []),
        ([0.1, 0.2, 0.3], ["smallest C", "smaller C, that is larger lambda"]),
        ([0.3, 0.2, 0.1], ["largest C", "larger C, that is smaller lambda"]),
        ([0.0, 0.2, 0.3], []),  # nothing is better than no error
    ],
)
def test_the_edge_of_the_C_grid(error: list[float], expected: list[str]) -> None:
    for Cs in ((0.1, 1.0, 10.0), (1.0, 10.0, 100.0)):
        it = make(error, Cs=Cs)
        assert kinds(it) == (["edge_C"] if expected else [])
        assert all(words in report.summary(it) for words in expected)


def test_a_single_grid_point_has_no_edge() -> None:
    assert kinds(make([0.2], Cs=[1.0])) == []


@pytest.mark.parametrize(("best", "words"), [(0, "smaller gamma"), (1, None), (2, "larger gamma")])
def test_the_edge_of_the_gamma_grid(best: int, words: str | None) -> None:
    error = np.full((3, 3), 0.3)
    error[best, 1] = 0.1
    it = make(error, gammas=(0.1, 1.0, 10.0))
    assert kinds(it) == ([] if words is None else ["edge_gamma"])
    assert words is None or words in report.summary(it)


def test_a_kernel_without_gamma_has_no_gamma_edge() -> None:
    it = make([0.3, 0.1, 0.2], gammas=(np.nan,))
    assert kinds(it) == []
    assert "gamma" not in report.summary(it)


@pytest.mark.parametrize(
    ("at_bound", "error", "intercept", "expected"),
    [
        (1.0, 1.0, True, True),
        (0.95, 0.6, True, True),
        (1.0, 0.4, True, False),  # many at the bound, yet no worse than guessing
        (0.5, 1.0, True, False),  # wrong for another reason
        (1.0, 1.0, False, False),  # without an intercept nothing flips
    ],
)
def test_upside_down_errors(at_bound: float, error: float, intercept: bool, expected: bool) -> None:
    it = make([error, 0.1, 0.2], at_bound=np.array([[at_bound, 0.3, 0.2]]), fit_intercept=intercept)
    assert kinds(it) == (["upside_down"] if expected else [])
    assert ("minority" in report.summary(it)) == expected


def test_upside_down_means_worse_than_guessing_among_several_classes() -> None:
    facts: dict[str, Any] = {"at_bound": np.array([[1.0, 0.3, 0.2]])}
    three = np.array(["a", "b", "c"])
    assert kinds(make([0.6, 0.1, 0.2], classes=three, **facts)) == []
    assert kinds(make([0.9, 0.1, 0.2], classes=three, **facts)) == ["upside_down"]


def test_balanced_leave_one_out_is_explained_from_real_data() -> None:
    X, y = exactcv.datasets.make_mixture(40, 4, random_state=0)
    result = exactcv.cross_validate(X, y, lambdas=[100.0, 1.0, 0.05, 0.02, 0.001])
    assert result.error[0] == 1.0
    assert "upside_down" in kinds(result)
    text = " ".join(result.summary().split())
    assert "error reaches 100%" in text and "not a fault of the computation" in text
    quiet = exactcv.cross_validate(X, y, lambdas=[0.02, 0.01, 0.001])
    assert "upside_down" not in kinds(quiet)
    no_intercept = exactcv.cross_validate(X, y, lambdas=[100.0, 0.01], fit_intercept=False)
    assert "upside_down" not in kinds(no_intercept)


@pytest.mark.parametrize(("n_wrong", "expected"), [(10, True), (11, True), (9, False)])
def test_the_majority_class(n_wrong: int, expected: bool) -> None:
    truth = (np.arange(40) < 10).astype(int)
    predicted = np.where(np.arange(40) < n_wrong, 1 - truth, truth)
    left_out = LeftOutRows(row=np.arange(40), truth=truth, predicted=predicted)
    it = make([0.5, n_wrong / 40, 0.6], left_out=left_out)
    assert kinds(it) == (["majority"] if expected else [])
    if expected:
        text = " ".join(report.summary(it).split())
        assert "commonest class, no (0.2500)" in text
        assert "0 of 10 are recognised" in text
        assert "may carry no signal" in text
    scored = replace(it, score=1 - it.error, scoring="roc_auc")
    assert kinds(scored) == []


def test_the_majority_explains_an_edge_at_strong_regularisation() -> None:
    truth = (np.arange(40) < 10).astype(int)
    left_out = LeftOutRows(row=np.arange(40), truth=truth, predicted=np.zeros(40, dtype=int))
    assert kinds(make([0.25, 0.3, 0.3], left_out=left_out)) == ["majority"]
    assert kinds(make([0.3, 0.3, 0.25], left_out=left_out)) == ["edge_C", "majority"]


def test_one_class_tested_is_no_majority() -> None:
    truth = np.zeros(40, dtype=int)
    left_out = LeftOutRows(row=np.arange(40), truth=truth, predicted=truth)
    assert kinds(make([0.2, 0.0, 0.1], left_out=left_out)) == []


def test_unresolved_and_not_convex() -> None:
    it = make([0.3, 0.1, 0.2])
    short = replace(it, exact=False, unresolved=3, kkt=np.array([[1e-3, 0, 0]]))
    assert kinds(short) == ["unresolved"]
    assert "NOT exact, 3 solutions miss the tolerance" in report.summary(short)
    bent = replace(it, exact=False, convex=False)
    assert kinds(bent) == ["not_convex"]
    assert "stationary points only" in report.summary(bent)


def test_a_result_that_misses_the_tolerance_says_so(
    stub: Callable[..., Any], small: tuple[np.ndarray, np.ndarray]
) -> None:
    stub(kkt=1e-3)
    with pytest.warns(NotExactWarning):
        result = exactcv.cross_validate(*small, method="stub", Cs=[1.0, 2.0])
    assert kinds(result) == ["unresolved"]


def test_results_over_gamma_are_joined() -> None:
    X, y = exactcv.datasets.make_mixture(40, 4, random_state=0)
    runs = [exactcv.cross_validate(X, y, gamma=g, Cs=[0.1, 1, 10], cv=5) for g in (1.0, 0.01, 0.1)]
    it = overview(runs)
    assert it.gammas.tolist() == [0.01, 0.1, 1.0]
    assert it.error[it.best] == min(run.error.min() for run in runs) == it.error.min()
    assert it.settled["solved"] == sum(run.stats["solved"] for run in runs)
    chosen = {0.01: runs[1], 0.1: runs[2], 1.0: runs[0]}[it.gammas[it.best[0]]]
    assert (it.left_out.predicted != it.left_out.truth).sum() == chosen.n_errors[it.best[1]]
    with pytest.raises(exactcv.InputError, match="more than gamma"):
        overview([runs[0], exactcv.cross_validate(X, y, Cs=[1.0], cv=5)])
    with pytest.raises(exactcv.InputTypeError, match="CVResult"):
        overview("nonsense")


def test_the_table_marks_the_chosen_points() -> None:
    table = report.curve_table(make([0.3, 0.1, 0.2], one_se=(0, 0))).splitlines()
    assert [line.split()[-1] for line in table[1:3]] == ["1-SE", "best"]
    long = make(np.linspace(0.5, 0.1, 60), Cs=np.geomspace(0.1, 10, 60))
    assert "of the 60 grid points" in report.curve_table(long)


def test_no_error_at_all_is_no_certainty() -> None:
    it = make([0.0, 0.1, 0.2], se=np.zeros((1, 3)))
    assert "0.0000 (0 of 40 wrong; 95% interval 0.0000 to 0.0876)" in report.summary(it)
    assert "0.0000, 0.0876" in report.curve_table(it)


def test_rows_that_several_folds_test_count_once() -> None:
    it = make([0.3, 0.1, 0.2])
    rows = replace(it.left_out, row=np.arange(40) // 2)
    wide = replace(it, left_out=rows).interval
    assert wide[0][0, 1] < it.interval[0][0, 1] and wide[1][0, 1] > it.interval[1][0, 1]


@pytest.mark.parametrize(
    "scoring", ["balanced_accuracy", "roc_auc", "f1", "neg_log_loss", "accuracy"]
)
def test_chance_is_said_whatever_the_scoring(scoring: str) -> None:
    """Labels that have nothing to do with the rows; left-out values even speak against them."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    noise = exactcv.SVCCV(Cs=[1e-4, 1e-3], scoring=scoring).fit(X, y)
    said = [remark for remark in report.remarks(noise) if remark.kind in ("chance", "majority")]
    assert len(said) == 1 and "no better than" in said[0].text
    assert report.no_better_than_chance(overview(noise))
    learnt = exactcv.SVCCV(Cs=[1.0, 10.0], scoring=scoring).fit(X + 4.0 * y[:, None], y)
    assert not {"chance", "majority"} & set(kinds(learnt))


def test_a_scorer_that_cannot_judge_chance_says_nothing() -> None:
    def fussy(model: Any, X: Any, y: Any) -> float:
        found = model.predict(X)
        if len(np.unique(found)) < 2:
            raise ValueError("one class only")
        return float((found == y).mean())

    X, y = exactcv.datasets.make_mixture(30, 3, random_state=0)
    model = exactcv.SVCCV(Cs=[1.0, 10.0], scoring=fussy).fit(X, y)
    assert overview(model).chance is None and "chance" not in kinds(model)


# ---- what the choice has gained ------------------------------------------------------------------


def test_the_summary_says_that_the_least_error_is_too_good() -> None:
    text = " ".join(report.summary(make([0.2, 0.1, 0.2], corrected=(0.14, 0.05, 0.25))).split())
    assert "corrected: error after tuning 0.1400 (95% interval 0.0500 to 0.2500): the least" in text
    assert "is the best of 3, and so too good" in text
    without = " ".join(report.summary(make([0.2, 0.1, 0.2])).split())
    assert "corrected_score_ or nested_cross_validate" in without
    assert "corrected" not in report.summary(make([0.1], Cs=[1.0]))


def test_of_several_results_no_part_speaks_for_all() -> None:
    parts = [make([0.2, 0.1, 0.2], gammas=[g], corrected=(0.14, 0.05, 0.25)) for g in (0.1, 1.0)]
    assert join(parts).corrected is None


def test_a_result_and_an_estimator_say_the_same_each_time() -> None:
    X, y = exactcv.datasets.make_mixture(40, 4, random_state=0)
    result = exactcv.cross_validate(X, y, lambdas=9)
    found = result.corrected(random_state=0)
    assert result._overview().corrected == (found.error, *found.error_interval)
    model = exactcv.SVCCV(lambdas=9, gamma=[0.1, 1.0], scoring="roc_auc").fit(X, y)
    shown = model._overview().corrected
    assert shown == (model.corrected_score_.score, *model.corrected_score_.interval)
    assert f"roc_auc after tuning {shown[0]:.4f}" in model.summary()


def test_a_paragraph_for_a_paper() -> None:
    X, y = exactcv.datasets.make_mixture(40, 4, random_state=0)
    model = exactcv.SVCCV(Cs=[0.1, 1.0, 10.0], gamma=[0.1, 1.0], cv=5, select="1se").fit(X, y)
    text = model.methods_text()
    corrected = model.corrected_score_
    assert text.startswith("The data have 40 rows in 2 classes (")
    for said in (
        "support vector machine (hinge loss) with the RBF kernel",
        "Among 3 values of C from 0.1 to 10 times 2 values of gamma from 0.1 to 1",
        "5-fold cross-validation",
        f"exactcv {exactcv.__version__} (method 'exact')",
        f"cross-validated error of {1.0 - model.best_score_:.4f}",
        f"error after tuning is {corrected.error:.4f}",
        "Tsamardinos, E. Greasidou",
    ):
        assert said in text
    assert "Tsamardinos" not in exactcv.SVCCV(Cs=[1.0]).fit(X, y).methods_text()
