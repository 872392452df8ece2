"""The README keeps its word: its code runs, prints what it says, and its links lead somewhere."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _command_line import run_commands

import exactcv

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)


@pytest.fixture
def no_window() -> Iterator[None]:
    """Figures that are drawn nowhere, and closed."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.mark.usefixtures("no_window")
def test_code_blocks_print_what_they_say() -> None:
    blocks = BLOCK.findall(README)
    assert len(blocks) >= 2
    names: dict[str, Any] = {}
    for code, expected in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), names)
        assert printed.getvalue() == expected


def test_commands_print_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    assert run_commands(README) == 1


def test_every_python_block_is_found() -> None:
    assert len(BLOCK.findall(README)) == README.count("```python")


def test_files_it_names_exist() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README) + re.findall(r"`python (\S+\.py)", README)
    local = [link for link in links if not link.startswith(("http:", "https:"))]
    assert local
    assert [link for link in local if not (ROOT / link).exists()] == []


def test_targets_it_names_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"`make (\w+)`", README))
    assert {"demo", "test"} <= targets
    assert [name for name in targets if not re.search(rf"^{name}:", makefile, re.MULTILINE)] == []


def test_methods_table_is_complete() -> None:
    listed = re.findall(r"^\| `(\w+)`", README, re.MULTILINE)
    assert sorted(listed) == sorted(exactcv.methods())
