"""The report in a real browser: on a phone and on a wide screen, light, dark and printed."""

from __future__ import annotations

import html
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _browser import browse, colours, needs_chromium, probe

import exactcv
from exactcv.report.after_tuning import AfterTuning
from exactcv.report.html.page import Page, render
from exactcv.report.overview import overview

pytestmark = needs_chromium

WIDTHS = (360, 768, 1440)
NASTY = "<script>alert('x')</script> & \"quotes\""


def two_classes() -> Page:
    X, y = exactcv.datasets.make_mixture(60, 4, random_state=0)
    model = exactcv.SVCCV(
        Cs=np.geomspace(1e-3, 1e3, 13), gamma=[0.01, 0.1, 1.0], probability=True
    ).fit(X, np.where(y > 0, "malignant", NASTY))
    nested = AfterTuning(
        n_folds=5, leave_one_out=False, error=0.3, low=0.2, high=0.4, score=0.7,
        scoring="accuracy", optimism=0.02,
    )  # fmt: skip
    shown = replace(overview(model), nested=nested)
    return Page(overview=shown, title=NASTY, facts={NASTY: 3})


def three_classes() -> Page:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    X = rng.normal(size=(60, 3)) + np.eye(3)[y]
    model = exactcv.SVCCV(
        Cs=[0.1, 1.0, 10.0], gamma=[0.1, 1.0], scoring="balanced_accuracy", cv=5
    ).fit(X, y)
    return Page(overview=overview(model))


def numbers() -> Page:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    y = 1e5 * (X[:, 0] + 0.1 * rng.normal(size=60))
    model = exactcv.SVRCV(Cs=[1e4, 1e5], gamma=[0.1, 1.0], epsilon=1e3).fit(X, y)
    return Page(overview=overview(model))


def every_c() -> Page:
    X, y = exactcv.datasets.make_mixture(60, 4, random_state=0)
    model = exactcv.SVCCV(Cs="all", gamma=[0.01, 0.1]).fit(X, np.where(y > 0, "w" * 60, "b"))
    return Page(overview=overview(model), title="x" * 90)


def axe_core() -> str:
    package = pytest.importorskip("axe_core_python")
    return resources.files(package).joinpath("axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module", params=[two_classes, three_classes, numbers, every_c])
def page(request: Any) -> str:
    return render(request.param())


def test_a_browser_shows_it_without_complaint(page: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    shown, console = browse(path, "--dump-dom")
    assert console == []
    assert html.unescape(shown).count("Made by exactcv") == 1
    # The net catches something: a page with an error does write to the console.
    path.write_text("<script>nonsense()</script>", encoding="utf-8")
    assert browse(path, "--dump-dom")[1] != []


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_it_fits_and_can_be_read_by_everyone(page: str, tmp_path: Path, mode: str) -> None:
    """Nothing is cut or lies on something else, and axe-core finds nothing."""
    found = probe(page, tmp_path, WIDTHS, mode, axe_core())
    assert sorted(found) == sorted(WIDTHS)
    for width, said in found.items():
        assert said["needed"] <= width
        for fault in ("outside", "overlaps", "cut", "broken"):
            assert said[fault] == [], (width, fault)


def test_the_probe_sees_faults(tmp_path: Path) -> None:
    bad = (
        "<!DOCTYPE html><html><body><div style='width:2000px;color:#eee'>wide and pale</div>"
        "<svg width=100 height=20><text y=10>one</text><text y=12>two</text></svg></body></html>"
    )
    found = probe(bad, tmp_path, (768,), "light", axe_core())[768]
    assert found["needed"] >= 2000 and found["outside"] and found["overlaps"] == ["one on two"]
    assert any(rule.startswith("color-contrast") for rule in found["broken"])


def test_screenshots_differ_with_the_mode_and_it_prints(page: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    for mode in ("light", "dark"):
        browse(path, f"--screenshot={tmp_path / mode}.png", "--window-size=768,1200", colours(mode))
    pictures = [(tmp_path / f"{mode}.png").read_bytes() for mode in ("light", "dark")]
    assert pictures[0] != pictures[1]
    printed = tmp_path / "report.pdf"
    browse(path, f"--print-to-pdf={printed}", "--no-pdf-header-footer", colours("dark"))
    content = printed.read_bytes()
    assert content.startswith(b"%PDF") and 2 <= content.count(b"/Type /Page\n") <= 12
