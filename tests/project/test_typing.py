"""Type checkers see what users see: ``make check`` runs them on ``tests/typing``."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from pathlib import Path
from types import ModuleType

import matplotlib as mpl
import pytest
from sklearn.model_selection import GridSearchCV

import exactcv
from exactcv.estimators.drop_in import grid_search

HERE = Path(__file__).parents[1] / "typing"


@pytest.fixture
def downstream() -> ModuleType:
    spec = importlib.util.spec_from_file_location("downstream", HERE / "downstream.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tree_of(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def for_type_checkers(body: list[ast.stmt]) -> list[ast.stmt]:
    """What stands under ``if TYPE_CHECKING``."""
    blocks = [s for s in body if isinstance(s, ast.If) and ast.unparse(s.test) == "TYPE_CHECKING"]
    return [statement for block in blocks for statement in block.body]


def test_downstream_uses_every_public_name(downstream):
    used = {
        node.attr
        for node in ast.walk(tree_of(downstream))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "exactcv"
    }
    assert set(exactcv.__all__) <= used


def test_downstream_runs(downstream, tmp_path):
    mpl.use("Agg")
    downstream.main(tmp_path)


def test_type_checkers_see_the_names_that_are_imported_when_asked_for():
    seen = {
        alias.name: node.module
        for node in for_type_checkers(tree_of(exactcv).body)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == exactcv._LAZY


def test_grid_search_has_the_constructor_that_type_checkers_see():
    (cls,) = (node for node in tree_of(grid_search).body if isinstance(node, ast.ClassDef))
    declared = {s.name: s.args for s in for_type_checkers(cls.body) if hasattr(s, "args")}
    arguments = declared["__init__"]
    names = [a.arg for a in [*arguments.args, *arguments.kwonlyargs]]
    values = [None, None, None, *map(ast.unparse, arguments.kw_defaults)]
    real = inspect.signature(GridSearchCV.__init__).parameters
    assert names == list(real)
    assert values[3:] == [repr(p.default) for p in list(real.values())[3:]]
