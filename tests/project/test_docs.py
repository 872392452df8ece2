"""The documentation keeps its word: its code runs and prints what it says, and it builds."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from _command_line import SHELL

from exactcv.algorithms import REGISTRY

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
SAME = doctest.OutputChecker().check_output


@pytest.mark.parametrize(
    "page", [p for p in PAGES if "```python" in p.read_text()], ids=lambda page: page.name
)
def test_code_blocks_print_what_they_say(page: Path) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    known = dict(REGISTRY)
    names: dict[str, Any] = {}
    try:
        for code, expected in BLOCK.findall(page.read_text(encoding="utf-8")):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, page.name, "exec"), names)
            assert SAME(expected, printed.getvalue(), doctest.ELLIPSIS), printed.getvalue()
    finally:
        REGISTRY.clear()
        REGISTRY.update(known)
        plt.close("all")


def test_the_commands_are_those_of_the_readme() -> None:
    """Which are run (test_readme)."""
    shown = SHELL.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    for page in PAGES:
        for found in SHELL.findall(page.read_text(encoding="utf-8")):
            assert found in shown or "exactcv " not in found[0], page.name


def test_every_page_is_in_the_table_of_contents() -> None:
    contents = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [p.stem for p in PAGES if p.stem != "index" and f"\n{p.stem}\n" not in contents] == []


def test_the_public_names_are_in_the_reference() -> None:
    import exactcv

    reference = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    missing = [n for n in exactcv.__all__ if not n.startswith("_") and n not in reference]
    assert missing == []


def test_whatever_users_call_says_what_it_does() -> None:
    import exactcv

    called = {name: getattr(exactcv, name) for name in exactcv.__all__}
    for name, cls in list(called.items()):
        if isinstance(cls, type):
            public = (method for method in dir(cls) if not method.startswith("_"))
            called |= {f"{name}.{method}": getattr(cls, method) for method in public}
    silent = [
        name
        for name, what in called.items()
        if (getattr(what, "__module__", None) or "").startswith("exactcv") and not what.__doc__
    ]
    assert silent == []


def test_the_pages_build_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="sphinx is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html",
         "-D", "plot_gallery=0",  # the examples have tests of their own
         "-d", str(tmp_path / "trees"), str(ROOT / "docs"), str(tmp_path / "html")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    reference = (tmp_path / "html" / "api.html").read_text(encoding="utf-8")
    assert "Exact cross-validation of a kernel machine over a whole" in reference
