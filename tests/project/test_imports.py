"""What ``make check`` cannot see: which imports stand inside functions, and how quick ours is."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "exactcv"


@dataclass(frozen=True)
class Import:
    importer: str
    line: int
    target: str
    inside: bool  # a function

    def __str__(self) -> str:
        return f"{self.importer}, line {self.line}: {self.target}"


def rooms() -> dict[str, int]:
    """Each room's place in the house, the first one 0, from the contract of import-linter."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = settings["contracts"]
    floors = [floor.split(" : ") for floor in reversed(contract["layers"])]
    return {room: place for place, floor in enumerate(floors) for room in floor}


def module_name(path: Path) -> str:
    parts = ("exactcv", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(part for part in parts if part != "__init__")


MODULES = {module_name(path): path for path in SOURCE.rglob("*.py")}


def imports_of(module: str) -> Iterator[Import]:
    """Imports of our own modules that are carried out when the code runs."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]

    def visit(node: ast.AST, inside: bool) -> Iterator[Import]:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in names(node, package):
                yield Import(module, node.lineno, name, inside)
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    yield from visit(ast.parse(path.read_text()), False)


def names(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[str]:
    """The modules of ours that one statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in MODULES)
        return
    above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
    base = ".".join([*above, *([node.module] if node.module else [])])
    for alias in node.names:
        found = next((m for m in (f"{base}.{alias.name}", base) if m in MODULES), None)
        if found is not None:
            yield found


def room_of(module: str) -> str:
    return module.split(".")[1]


ALL = [found for module in MODULES for found in imports_of(module)]


def test_every_room_has_its_place():
    named = {room_of(module) for module in MODULES if module != "exactcv"}
    assert named == set(rooms())


def test_imports_inside_functions_follow_the_house():
    """They keep ``import exactcv`` quick, and never get round the order of the rooms."""
    place = rooms()
    wrong = [
        str(found)
        for found in ALL
        if found.inside and place[room_of(found.target)] > place[room_of(found.importer)]
    ]
    assert not wrong


def test_imports_inside_functions_close_no_circle():
    """Each of them could stand at the top of its module."""
    graph: dict[str, set[str]] = {module: set() for module in MODULES}
    for found in ALL:
        if found.target not in ("exactcv", found.importer):
            graph[found.importer].add(found.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


def test_import_exactcv_leaves_scikit_learn_alone():
    code = "import sys, exactcv; print('sklearn' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
