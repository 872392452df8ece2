"""What a release needs agrees with itself."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import exactcv

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere() -> None:
    found = re.search(r"^\s*version: '(.*)',$", read("meson.build"), re.MULTILINE)
    assert found is not None and found[1] == exactcv.__version__
    assert f"\nversion: {found[1]}\n" in read("CITATION.cff")
    assert f"\n## {found[1]} - " in read("CHANGELOG.md")


def test_the_address_is_the_same_everywhere() -> None:
    home = PROJECT["project"]["urls"]["Homepage"]
    assert f"repository-code: {home}\n" in read("CITATION.cff")
    assert f"{home}/security/policy" in read(".github/ISSUE_TEMPLATE/config.yml")


def test_the_same_pythons_are_promised_built_and_tested() -> None:
    promised = [
        entry.rpartition(" ")[2]
        for entry in PROJECT["project"]["classifiers"]
        if re.search(r":: 3\.\d+$", entry)
    ]
    assert PROJECT["project"]["requires-python"] == f">={promised[0]}"
    built = re.findall(r"cp3(\d+)-", PROJECT["tool"]["cibuildwheel"]["build"])
    assert [f"3.{minor}" for minor in built] == promised
    tested = re.search(r"python: \[(.*)\]", read(".github/workflows/tests.yml"))
    assert tested is not None and tested[1].replace('"', "").split(", ") == promised


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_well_formed_and_call_what_there_is(path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert found["permissions"] == {"contents": "read"}
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    extras = PROJECT["project"]["optional-dependencies"]
    for job in found["jobs"].values():
        assert set(job.get("needs", [])) <= set(found["jobs"]) or job["needs"] in found["jobs"]
        text = "\n".join(step.get("run", "") for step in job["steps"])
        assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= targets
        named = [name for part in re.findall(r"\.\[(.*?)\]", text) for name in part.split(",")]
        assert set(named) <= set(extras)
        for tests in re.findall(r"\btests/[\w/.]+", text):
            assert (ROOT / tests).exists()


@pytest.mark.parametrize("name", ["bug", "idea", "config"])
def test_issue_templates_are_well_formed(name: str) -> None:
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(read(f".github/ISSUE_TEMPLATE/{name}.yml"))
    assert "contact_links" in found or {"name", "description", "body"} <= set(found)
