"""``exactcv report`` and ``--open``."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path

import pytest
from _command_line import QUICK, columns_of, run, write_csv

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    urls: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: bool(urls.append(url)) or True)
    return urls


def tuned(tmp_path: Path, *more: object) -> Path:
    names = {"name": [f"=row {k}" for k in range(36)]}
    path, out = write_csv(tmp_path / "data.csv", columns_of() | names), tmp_path / "out"
    assert run("tune", path, "--target", "y", "--id", "name", *QUICK, *more, "--out", out) == 0
    return out


@pytest.mark.parametrize(
    "more", [(), ("--nested", "3"), ("--approx", "nystroem", "--components", "8")]
)
def test_the_page_is_made_again_byte_for_byte(tmp_path: Path, more: tuple[str, ...]) -> None:
    out = tuned(tmp_path, *more)
    before = (out / "report.html").read_bytes()
    assert b"=row " in before  # names of suspicious rows
    assert (b"after tuning (nested" in before) == (b"Nested: " in before) == ("--nested" in more)
    assert run("report", out, "--out", tmp_path / "copy.html") == 0
    assert (tmp_path / "copy.html").read_bytes() == before
    (out / "report.html").unlink()
    assert run("report", out) == 0
    assert (out / "report.html").read_bytes() == before
    (out / "predictions.csv").unlink()
    assert run("report", out) == 0
    assert b"=row " not in (out / "report.html").read_bytes()


def test_folders_without_a_finished_run_are_refused(tmp_path: Path, capsys: Captured) -> None:
    assert run("report", tmp_path / "none") == 1
    assert "No such file" in capsys.readouterr().err
    out = tuned(tmp_path)
    record = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps(record | {"status": "running"}))
    assert run("report", out) == 1
    assert "is not finished" in capsys.readouterr().err
    (out / "run.json").write_text(json.dumps({k: v for k, v in record.items() if k != "page"}))
    assert run("report", out) == 1
    assert "earlier version" in capsys.readouterr().err
    (out / "run.json").write_text("[]")
    assert run("report", out) == 1
    assert "not a run.json" in capsys.readouterr().err


def test_open_shows_the_page(tmp_path: Path, opened: list[str], capsys: Captured) -> None:
    out = tuned(tmp_path, "--open")
    page = (out / "report.html").resolve().as_uri()
    assert opened == [page]
    assert run("report", out, "--open") == 0
    assert opened == [page, page]
    assert run("tune", tmp_path / "data.csv", "--target", "y", "--open") == 2
    assert "--open needs --out" in capsys.readouterr().err


def test_without_a_browser_the_path_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    out = tuned(tmp_path, "--open")
    assert f"no browser was found; the page is {out / 'report.html'}" in capsys.readouterr().err
