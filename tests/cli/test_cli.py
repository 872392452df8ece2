"""The command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import exactcv
from exactcv.cli import demo
from exactcv.cli import main as cli
from exactcv.datasets import load_breast_cancer, make_mixture


def test_demo_prints_table_certificate_and_both_times(
    stub: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    stub()
    monkeypatch.setattr(demo, "load_breast_cancer", lambda: make_mixture(40, 4, random_state=0))
    assert cli.main(["demo", "--method", "stub"]) == 0
    text, progress = capsys.readouterr()
    assert progress.startswith("exactcv: kernel matrix, 40 rows")
    for expected in (
        "lambda",
        "best",
        "certificate: exact",
        "folds:",
        "estimate",
        "26 of the 1000",
    ):
        assert expected in text
    table = text.split("\n\n")[1].splitlines()
    assert 11 <= len(table) <= 16
    assert cli.main(["demo", "--method", "stub", "--quiet", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curve.png", "report.html"]


def test_methods_are_listed(
    stub: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    method = stub()
    monkeypatch.setattr(cli, "methods", lambda: {"stub": method.support})
    assert cli.main(["methods"]) == 0
    assert "losses: hinge; folds: any" in capsys.readouterr().out
    monkeypatch.undo()
    assert cli.main(["methods"]) == 0
    assert "option max_steps=None: steps of one seed" in capsys.readouterr().out


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"exactcv {exactcv.__version__}"
    assert cli.main([]) == 2
    assert "demo" in capsys.readouterr().out


def test_errors_are_one_line_and_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", "--method", "magik"]) == 1
    assert capsys.readouterr().err.startswith("exactcv: error: method='magik' is not known")


def test_mixture_follows_the_paper() -> None:
    X, y = make_mixture(20_000, 4, random_state=0)
    assert sorted(np.unique(y).tolist()) == [-1.0, 1.0]
    assert (y > 0).sum() == 10_000
    within = X[y > 0].var(axis=0)
    assert (within > 9.0 - 0.3).all()  # 3 squared, plus the spread of ten centres
    assert (within < 9.0 + 5.0).all()
    assert (make_mixture(20_000, 4, random_state=0)[0] == X).all()
    centres = [make_mixture(400, 2, random_state=k) for k in range(60)]
    difference = np.mean([X[y > 0].mean(0) - X[y < 0].mean(0) for X, y in centres], axis=0)
    np.testing.assert_allclose(difference, [1.0, -1.0], atol=0.3)
    with pytest.raises(exactcv.InputError, match="n must be"):
        make_mixture(1, 4)


def test_breast_cancer_is_standardised() -> None:
    X, y = load_breast_cancer()
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1.0)
    assert set(y) == {-1.0, 1.0}


def test_warnings_are_in_colour_where_colours_can_be_shown() -> None:
    @click.command()
    def talk() -> None:
        cli._say("time: 1 s\nwarning: no better than chance,\n         indeed\nend")

    shown = CliRunner().invoke(talk, color=True).output.splitlines()
    assert [line.startswith("\x1b[31m") for line in shown] == [False, True, True, False]
    assert "\x1b" not in CliRunner().invoke(talk).output
