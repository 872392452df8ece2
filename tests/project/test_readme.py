"""The README keeps its word: its code runs, prints what it says, and its links lead somewhere."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import exactcv
from exactcv.cli import main as cli

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
SHELL = re.compile(r"^```sh\n(.*?)^```\n(?:```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)


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
    blocks = [found for found in SHELL.findall(README) if "exactcv " in found[0]]
    assert blocks
    for commands, expected in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            for line in commands.splitlines():
                program, *arguments = shlex.split(line)
                if program == "python":
                    exec(compile(arguments[1], "README.md", "exec"), {})
                else:
                    assert program == "exactcv"
                    assert cli.main(arguments) == 0
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert doctest.OutputChecker().check_output(expected, printed.getvalue(), flags), (
            printed.getvalue()
        )


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
