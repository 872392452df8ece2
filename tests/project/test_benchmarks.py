"""The benchmarks follow the library: they load, and what is written of them names what is there."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
SCRIPTS = sorted(path for path in BENCHMARKS.rglob("*.py") if path.name != "__init__.py")
TEXTS = sorted(BENCHMARKS.rglob("*.md"))
COMMAND = re.compile(r"python -m (benchmarks(?:\.\w+)+)")
LINK = re.compile(r"\]\(([^)#:]+)\)")


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@pytest.mark.parametrize("script", SCRIPTS, ids=module_of)
def test_every_module_loads(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.syspath_prepend(ROOT)
    import_module(module_of(script))


def test_commands_that_are_written_down_exist() -> None:
    places = [*TEXTS, *SCRIPTS, ROOT / "README.md", ROOT / "Makefile", *ROOT.glob("docs/*.md")]
    named = {name for place in places for name in COMMAND.findall(place.read_text("utf-8"))}
    assert len(named) > 10
    assert named <= {module_of(script) for script in SCRIPTS}


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_links_of_the_results_lead_somewhere(text: Path) -> None:
    links = LINK.findall(text.read_text("utf-8"))
    assert [link for link in links if not (text.parent / link).exists()] == []


def test_runs_are_taken_up_column_by_column(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.syspath_prepend(ROOT)
    repeated = import_module("benchmarks.papers.repeated")
    kept = {"cell": {"0": {"s, quick": 1.0, "apart": 2.0}}}
    done: list[tuple[int, list[str]]] = []

    def work(run: int, columns: list[str]) -> dict[str, float]:
        done.append((run, columns))
        return {f"s, {column}": 3.0 for column in columns} | {"apart": 1.0}

    monkeypatch.setattr(repeated.results, "read_records", lambda file: kept)
    monkeypatch.setattr(repeated.results, "write_records", lambda file, records: None)
    todo = {"cell": repeated.Cell({"quick": 2, "slow": 1}, work)}
    for _ in range(2):  # the second time there is nothing left to do
        repeated.measure(todo, [], None, float("inf"))
    assert done == [(0, ["slow"]), (1, ["quick"])]
    first = kept["cell"]["0"]
    assert (first["s, quick"], first["s, slow"], first["apart"]) == (1.0, 3.0, 2.0)
    repeated.measure({"more": todo["cell"]}, [], None, 0.0)
    assert "more" not in kept
