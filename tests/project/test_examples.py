"""The examples run, in their quick form, and say what they should."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# A warning is an error, but for what an older matplotlib uses of a newer pyparsing.
WARNINGS = ["-W", "error"]
for module in ("matplotlib._fontconfig_pattern", "matplotlib._mathtext", "pyparsing.util"):
    WARNINGS += ["-W", f"ignore::DeprecationWarning:{module}"]


def run(name: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *WARNINGS, str(EXAMPLES / name), *arguments],
        capture_output=True, text=True, check=False, env=os.environ | {"MPLBACKEND": "Agg"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_gene_expression(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    text = run("gene_expression.py", "--quick", "--report", str(report))
    assert "certificate: exact" in text
    suspicious = text.split("most suspicious samples:")[1].splitlines()[0]
    swapped = text.split("swapped on purpose:")[1].splitlines()[0].split(",")
    found = {entry.split()[0] for entry in suspicious.split(",")}
    assert {row.strip() for row in swapped} <= found
    errors = [float(line.split()[-1]) for line in text.splitlines() if "random labels" in line]
    assert errors[0] < 0.25 < errors[1]
    assert "Most suspicious rows" in report.read_text(encoding="utf-8")


def test_imbalanced_medical(tmp_path: Path) -> None:
    figure = tmp_path / "roc.png"
    text = run("imbalanced_medical.py", "--quick", "--figure", str(figure))
    assert "no better than always predicting the commonest" in " ".join(text.split())
    assert "roc_auc" in text
    sensitivities = [float(part.split("%")[0]) for part in text.split("; sensitivity ")[1:]]
    assert sensitivities[0] >= 95.0
    assert sensitivities[0] > sensitivities[1]
    assert figure.stat().st_size > 1000


def test_replace_grid_search() -> None:
    text = run("replace_grid_search.py", "--quick")
    assert "mean scores equal at 8 of 8 grid points" in text
    assert "certificate: exact" in text


def test_plot_error_curve(tmp_path: Path) -> None:
    figure = tmp_path / "curve.png"
    run("plot_error_curve.py", str(figure))
    assert figure.stat().st_size > 1000


def test_fan_chart(tmp_path: Path) -> None:
    figure = tmp_path / "fan.png"
    text = run("fan_chart.py", str(figure), "--quick")
    assert "exact: True" in text and figure.stat().st_size > 1000
    shares = [float(word) for word in text.split("left-out rows below:")[1].split()[:3]]
    assert shares[0] < 0.2 < 0.35 < shares[1] < 0.65 < 0.8 < shares[2]


def test_house_prices() -> None:
    text = run("house_prices.py", "--quick")
    assert "exact: True" in text and "at least 80%" in text
    inside = [float(part.split("%")[0]) for part in text.split(": ")[1:] if "% of new" in part]
    assert len(inside) == 3 and min(inside) >= 80.0


def test_nested_error() -> None:
    found = [float(line.split()[-1]) for line in run("nested_error.py").splitlines()]
    least, corrected, nested = found
    assert least < 0.45 < min(corrected, nested) and max(corrected, nested) < 0.65


def test_patients_in_groups() -> None:
    text = run("patients_in_groups.py")
    errors = [float(part.split()[0]) for part in text.split("least error ")[1:]]
    assert errors[0] < 0.05 < 0.2 < errors[1]


def test_graph_kernel() -> None:
    text = run("graph_kernel.py")
    assert "certificate: exact" in text
    assert float(text.split("least error: ")[1].split()[0]) < 0.3


def test_large_data_dask() -> None:
    pytest.importorskip("dask.array")
    errors = [float(part.split(",")[0]) for part in run("large_data_dask.py").split("error ")[1:]]
    assert len(errors) == 3 and errors[2] < errors[0]


def test_every_c(tmp_path: Path) -> None:
    figure = tmp_path / "steps.png"
    text = run("every_c.py", str(figure))
    assert "exact" in text and figure.stat().st_size > 1000


def test_every_example_is_in_the_gallery_and_has_a_test() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    for path in EXAMPLES.glob("*.py"):
        assert f'"{path.name}"' in here or path.stem == "probabilities", path.name  # a benchmark
        title, underline = path.read_text(encoding="utf-8").splitlines()[1:3]
        assert path.stem == "plot_error_curve" or underline == "=" * len(title), path.name
    assert len(list(EXAMPLES.glob("*.py"))) >= 10


def test_clean_labels() -> None:
    text = run("clean_labels.py", "--quick")
    assert "the model without them is exact" in text
    precision = float(text.split("draws of the flips: precision ")[1].split()[0])
    assert precision > 0.6


def test_forget_rows() -> None:
    text = run("forget_rows.py", "--quick")
    assert "10 rows forgotten, one after the other; exact" in text
    difference = float(text.split("largest difference from a fit without them: ")[1].split()[0])
    assert difference < 1e-7
    assert "goes on forgetting: 11 rows" in text


def test_label_sets() -> None:
    text = run("label_sets.py", "--quick")
    found = [float(line.split("found ")[1].split(";")[0]) for line in text.splitlines()[:4]]
    assert found == sorted(found)
    assert found[-1] >= 0.9
