"""report.html: whole, safe, self-contained, and shown without complaint by a browser."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss

import exactcv
from exactcv.report.html.page import Page, render
from exactcv.report.overview import LeftOutRows, overview

X, y = exactcv.datasets.make_mixture(60, 4, random_state=0)
NASTY = "<script>alert('x')</script> & \"quotes\""
LABELS = np.where(y > 0, NASTY, "well")


class Reader(HTMLParser):
    """Text and elements of a page, and whether every element is closed in order."""

    OPEN_ENDED = frozenset({"meta", "link", "br"})

    def __init__(self, page: str):
        super().__init__()
        self.stack: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}
        self.feed(page)
        self.close()
        assert self.stack == [], f"never closed: {self.stack}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.OPEN_ENDED:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.setdefault(self.stack[-1] if self.stack else "", []).append(data)

    def count(self, tag: str, cls: str | None = None) -> int:
        return sum(
            name == tag and (cls is None or cls in (attrs.get("class") or "").split())
            for name, attrs in self.elements
        )

    @property
    def words(self) -> str:
        return " ".join(
            text for tag, texts in self.text.items() if tag != "style" for text in texts
        )


@pytest.fixture(scope="module")
def runs() -> list[exactcv.CVResult]:
    grid: dict[str, Any] = {"lambdas": np.geomspace(0.1, 1e-4, 6), "output": "decision"}
    return [exactcv.cross_validate(X, LABELS, gamma=g, **grid) for g in (0.01, 0.1, 1.0)]


@pytest.fixture(scope="module")
def page(runs: list[exactcv.CVResult]) -> str:
    return render(
        Page(
            overview=overview(runs),
            title=NASTY,
            facts={"file": NASTY, NASTY: 3},
            row_names=[f"row <{k}>" for k in range(60)],
        )
    )


def test_every_part_is_there(page: str, runs: list[exactcv.CVResult]) -> None:
    read = Reader(page)
    for title in (
        "Error curve",
        "Left-out error over gamma and C",
        "Left-out decision values",
        "ROC of the left-out values",
        "Confusion matrix of the left-out rows",
        "Certificate",
        "Most suspicious rows",
        "How it was computed",
        "Reproduce it",
    ):
        assert any(heading.startswith(title) for heading in read.text["h2"]), title
    assert read.count("svg") == 4
    best = min(runs, key=lambda run: run.error.min())
    k = best.best
    for figure in (
        f"{best.error[k]:.4f}",
        f"{best.n_errors[k]} of 60",
        f"{best.Cs[k]:.4g}",
        f"{best.lambdas[k]:.4g}",
        f"{best.gamma:.4g}",
        "exact",
    ):
        assert figure in read.text["b"]
    low, high = best.interval[k]
    assert f"95% interval {low:.4f} to {high:.4f}" in read.text["small"]
    shares = [np.mean(best.wrong[k][y == sign]) for sign in (-1, 1)]
    for name, share in zip(("specificity", "sensitivity"), shares, strict=True):
        assert name in read.text["span"] and f"{1 - share:.1%}" in read.text["b"]
    # Six points and the chosen one, which is that of the 1-SE rule too; eighteen cells, one frame.
    it = overview(runs)
    assert it.one_se == it.best
    assert read.count("circle", "dot") == 6
    assert read.count("circle", "best") == 1
    assert read.count("rect", "ring") == read.count("rect", "ring-under") == 1


def test_one_point_that_is_both_is_drawn_and_named_once(runs: list[exactcv.CVResult]) -> None:
    it = overview(runs)
    read = Reader(render(Page(overview=replace(it, one_se=it.best))))
    assert read.count("circle", "one-se") == read.count("rect", "one-se") == 0
    assert "least error, also by the 1-SE rule" in read.words
    assert "Full frame: the best point, also by the 1-SE rule." in read.words
    other = (it.best[0], 0 if it.best[1] else 1)
    read = Reader(render(Page(overview=replace(it, one_se=other))))
    assert read.count("circle", "one-se") == read.count("rect", "one-se") == 1
    assert "dashed: the 1-SE rule" in read.words and "also by" not in read.words


def test_the_confusion_matrix_counts(page: str, runs: list[exactcv.CVResult]) -> None:
    best = min(runs, key=lambda run: run.error.min())
    cells = re.findall(r'<td class="(right|wrong)"[^>]*>(\d+)<', page)
    assert sum(int(n) for kind, n in cells if kind == "wrong") == best.n_errors[best.best]
    assert sum(int(n) for _, n in cells) == 60


def test_the_most_suspicious_row_comes_first(page: str, runs: list[exactcv.CVResult]) -> None:
    best = min(runs, key=lambda run: run.error.min())
    assert best.decision is not None
    margin = best.y * best.decision[best.best]
    worst = int(np.argmin(margin))
    first = page[page.index("Most suspicious rows") :]
    assert first.index(f"row &lt;{worst}&gt;") < first.index("</tr>", first.index("<tbody>"))
    assert f"{margin[worst]:.4f}" in first
    assert f">{sum(int(run.wrong[:, worst].sum()) for run in runs)}</td>" in first


def test_what_the_user_gives_is_escaped(page: str) -> None:
    assert "<script" not in page
    assert html.escape(NASTY, quote=False) in page
    assert "row <" not in page


def test_nothing_comes_from_elsewhere(page: str) -> None:
    read = Reader(page)
    assert {"script", "iframe", "img", "object"} & {tag for tag, _ in read.elements} == set()
    for _, attributes in read.elements:
        assert "src" not in attributes
        assert attributes.get("href") in (None, "data:,")
        assert not any(name.startswith("on") for name in attributes)
    style = "".join(read.text["style"])
    assert "@import" not in style and "url(" not in style
    assert "prefers-color-scheme: dark" in style
    assert any(a.get("name") == "viewport" for _, a in read.elements)


def test_the_same_result_gives_the_same_page(page: str, runs: list[exactcv.CVResult]) -> None:
    it = overview(runs)
    assert render(Page(overview=it)) == render(Page(overview=overview(runs)))


def test_labels_only(tmp_path: Path) -> None:
    result = exactcv.cross_validate(X, y, Cs=[0.1, 1.0])
    path = exactcv.write_html(result, tmp_path / "report.html")
    read = Reader(path.read_text(encoding="utf-8"))
    assert read.count("svg") == 1
    assert "Only the labels were computed" in read.words
    assert "their margins were not computed" in read.words


def test_warnings_are_shown() -> None:
    result = exactcv.cross_validate(X, y, lambdas=[100.0, 10.0])
    assert "not a fault of the computation" in Reader(render(Page(overview=overview(result)))).words


def test_several_classes(runs: list[exactcv.CVResult]) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=60)
    decision = rng.normal(size=(60, 3)) + 2 * np.eye(3)[truth]
    left_out = LeftOutRows(
        row=np.arange(60), truth=truth, predicted=decision.argmax(axis=1), decision=decision
    )
    it = replace(overview(runs[0]), classes=np.array(["a", "b", "c"]), left_out=left_out)
    read = Reader(render(Page(overview=it)))
    assert sum("AUC" in text for text in read.text["li"]) == 3
    assert read.count("td", "right") == 3 and read.count("td", "wrong") == 6
    many = replace(it, classes=np.arange(30).astype(str))
    assert "too many to show" in Reader(render(Page(overview=many))).words


def test_odd_results() -> None:
    single = [(np.arange(50), np.arange(50, 60))]
    one_point = exactcv.cross_validate(X, y, Cs=[1.0], cv=single, output="decision")
    Reader(render(Page(overview=overview(one_point))))  # one grid point, no standard error
    few = np.flatnonzero(y > 0)[:4]
    cv = [(np.setdiff1d(np.arange(60), few), few)]
    one_class = exactcv.cross_validate(X, y, Cs=[0.1, 1.0], cv=cv, output="decision")
    assert "there is no ROC curve" in Reader(render(Page(overview=overview(one_class)))).words
    linear = exactcv.cross_validate(X, y, kernel="linear", Cs=[0.1, 1.0])
    assert "gamma" not in Reader(render(Page(overview=overview(linear)))).text["span"]


def test_ties_are_neither_class() -> None:
    flat = exactcv.cross_validate(
        np.zeros((8, 8)), np.tile([-1, 1], 4), kernel="precomputed", Cs=[1.0], fit_intercept=False,
        output="decision",
    )  # fmt: skip
    assert "predicted neither" in Reader(render(Page(overview=overview(flat)))).words


def test_approximate_kernels_are_named_and_come_again() -> None:
    X, y = exactcv.datasets.make_mixture(60, 3, random_state=1)
    result = exactcv.cross_validate(X, y, approx="rff", n_components=7, lambdas=4, random_state=5)
    read = Reader(render(Page(overview=overview(result))))
    assert "approximate kernel (rff, 7 components); the rest is exact for it" in read.words
    names: dict[str, Any] = {"X": X, "y": y, "seed": 5}
    exec("".join(read.text["code"]), names)
    np.testing.assert_array_equal(names["result"].error, result.error)
    np.testing.assert_allclose(names["result"].weights, result.weights)


def test_the_code_gives_the_same_result(runs: list[exactcv.CVResult]) -> None:
    read = Reader(render(Page(overview=overview(runs[1]))))
    code = "".join(read.text["code"])
    names: dict[str, Any] = {"X": X, "y": LABELS, "print": lambda text: None}
    exec(code, names)
    np.testing.assert_array_equal(names["result"].error, runs[1].error)
    assert (
        "given by me"
        in Reader(render(Page(overview=overview(runs[1]), code="# given by me"))).words
    )


def test_row_names_must_fit(runs: list[exactcv.CVResult], tmp_path: Path) -> None:
    with pytest.raises(exactcv.InputError, match="3 entries for 60 rows"):
        exactcv.write_html(runs[0], tmp_path / "report.html", row_names=["a", "b", "c"])


def test_curve_of_losses_stays_in_its_chart() -> None:
    """Losses have the unit of the target: they may be far above 1, or far below."""
    from exactcv.report.html.frame import HEIGHT

    for scale in (1e4, 1e-4):
        model = exactcv.SVRCV(Cs=[0.1 * scale, scale], gamma=[0.1, 1.0], epsilon=[0.0, 0.1 * scale])
        page = render(Page(overview=model.fit(X, scale * X[:, 0])._overview(), title="numbers"))
        (points,) = re.findall(r'<polyline[^>]*points="([^"]*)"[^>]*class="curve"', page) or (
            re.findall(r'<polyline[^>]*class="curve"[^>]*points="([^"]*)"', page)
        )
        heights = [float(point.split(",")[1]) for point in points.split()]
        assert all(0.0 <= height <= HEIGHT for height in heights) and len(set(heights)) > 1
        assert "2 of gamma" in page and "2 of epsilon" in page
        assert "labels" not in page.split("Certificate")[1].split("Rows that")[0]


def test_numbers_stand_beside_one_number_for_all_rows() -> None:
    values = X[:, 0] + 0.3 * y
    page = render(Page(overview=exactcv.SVRCV(Cs=[1.0], gamma=0.1).fit(X, values)._overview()))
    away = np.abs(values - np.median(values)).mean()
    assert f"<b>{away:.4g}</b><span>mean absolute error, baseline</span>" in page
    lines = exactcv.QuantileSVRCV(Cs=[1.0], gamma=0.1, quantiles=[0.2]).fit(X, values)
    page = render(Page(overview=lines._overview()))
    least = min(mean_pinball_loss(values, np.full(60, value), alpha=0.2) for value in values)
    assert f"<b>{least:.4g}</b><span>loss, baseline</span>" in page
    assert "always the 0.2 quantile" in page


def test_every_c_is_drawn_in_steps() -> None:
    model = exactcv.SVCCV(Cs="all", gamma=0.1).fit(X, y)
    it, path = model._overview(), model.error_path_
    page = render(Page(overview=it))
    (line,) = re.findall(r'<polyline points="([^"]*)" class="curve step"', page)
    heights = [float(point.split(",")[1]) for point in line.split()]
    assert len(heights) == 2 * len(path.error)
    assert heights[::2] == heights[1::2]  # steps, and the lowest error is lowest on the page
    assert np.argmax(heights) // 2 == np.argmin(path.error)
    assert page.count('class="least"') == len(path.best)
    assert "Error at every C, gamma = 0.1" in page


def test_of_very_many_steps_those_that_can_be_seen_are_drawn() -> None:
    from exactcv.report.html.charts import step_curve

    it = exactcv.SVCCV(Cs="all", gamma=0.1).fit(X, y)._overview()
    edges = np.geomspace(1e-3, 1e3, 20_001)
    error = np.where(np.arange(20_000) == 7777, 0.1, 0.2 + 0.1 * (np.arange(20_000) % 2))
    drawn = str(step_curve(replace(it, steps=(edges, error))))
    (line,) = re.findall(r'<polyline points="([^"]*)"', drawn)
    assert len(line.split()) < 4000
    assert drawn.count('class="least"') == 1


def test_the_map_of_numbers_is_that_of_the_chosen_epsilon() -> None:
    model = exactcv.SVRCV(Cs=[0.1, 1.0], gamma=[0.1, 1.0], epsilon=[0.0, 0.1])
    it = model.fit(X, X[:, 0] + 0.1 * y)._overview()
    read = Reader(render(Page(overview=it)))
    assert f"R2 over gamma and C, epsilon = {model.epsilon_:.4g}" in read.words
    told = [text for text in read.text["title"] if text.startswith("C ") and "gamma" in text]
    own = it.parameter[1] == model.epsilon_  # type: ignore[index]
    assert it.score is not None and len(told) == 4
    assert {f"{value:.4f}" for value in it.score[own].ravel()} == {t.split()[-1] for t in told}


def test_rows_far_off_are_a_table() -> None:
    values = X[:, 0] + 0.1 * y
    values[5] += 9.0
    read = Reader(
        render(Page(overview=exactcv.SVRCV(Cs=[1.0], gamma=0.1).fit(X, values)._overview()))
    )
    assert {"observed", "predicted", "residual"} <= set(read.text["th"])
    assert f"{values[5]:.5g}" in read.text["td"][:40]


def test_scores_are_written_as_in_text() -> None:
    page = render(
        Page(overview=exactcv.SVRCV(Cs=[0.1, 1.0], gamma=0.1).fit(X, X[:, 0])._overview())
    )
    assert "R2 along C" in page and "r2" not in Reader(page).words


def test_very_long_labels_are_cut() -> None:
    labels = np.where(y > 0, "long" * 500 + "a", "long" * 500 + "b")
    result = exactcv.cross_validate(X, labels, Cs=[0.1, 1.0], output="decision")
    words = Reader(render(Page(overview=overview(result)))).words
    assert "long" * 20 not in words
    assert "longlong... (class 1)" in words and "longlong... (class 2)" in words
