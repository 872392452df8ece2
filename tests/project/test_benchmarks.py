"""The benchmarks follow the library: they load, and what is written of them names what is there."""

from __future__ import annotations

import re
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest

from exactcv import cross_validate, methods
from exactcv.algorithms.options import read_options

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


def test_options_and_files_that_the_page_on_the_papers_names_exist() -> None:
    text = (BENCHMARKS / "results" / "papers.md").read_text("utf-8")
    code = re.findall(r"`([^`]+)`", text)
    options = {(method, o.name): o for method, s in methods().items() for o in s.options}
    ours = {name for _, name in options}
    named = {name for piece in code for name in re.findall(r"\b(\w+)=", piece)}
    assert {"bounds", "match", "delta_f", "max_steps"} <= named
    assert named <= ours | {*signature(cross_validate).parameters}
    for name, value in re.findall(r'\b(\w+)="(\w+)"', " ".join(code)):
        for (method, own), option in options.items():
            if own == name:  # refuses a value that is no choice
                assert read_options(method, [option], {name: value}) == {name: value}
    files = {piece for piece in code if re.fullmatch(r"(\w+/)*\w+\.py", piece)}
    assert len(files) > 2
    assert [file for file in files if not list(ROOT.glob(f"src/**/{file}"))] == []
