"""``exactcv tune`` and ``predict`` on tables as people have them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _command_line import QUICK, columns_of, read, rows, run, write_csv
from sklearn.datasets import dump_svmlight_file

import exactcv
from exactcv.cli.results import to_csv
from exactcv.runtime import memory

Captured = pytest.CaptureFixture[str]


def german(path: Path, columns: dict[str, Any]) -> Path:
    """The same table as a German spreadsheet writes it."""
    names, cells = list(columns), zip(*columns.values(), strict=True)
    lines = [";".join(str(cell).replace(".", ",") for cell in row) for row in cells]
    path.write_text("\n".join([";".join(names), *lines]) + "\n")
    return path


def test_decimal_commas(tmp_path: Path, capsys: Captured) -> None:
    plain = write_csv(tmp_path / "plain.csv", columns_of())
    path = german(tmp_path / "german.csv", columns_of())
    assert run("tune", path, "--target", "y", *QUICK) == 1
    assert "--decimal ," in capsys.readouterr().err
    outs = [tmp_path / "a", tmp_path / "b"]
    assert run("tune", plain, "--target", "y", *QUICK, "--out", outs[0]) == 0
    assert run("tune", path, "--target", "y", "--decimal", ",", *QUICK, "--out", outs[1]) == 0
    assert (outs[0] / "cv.csv").read_bytes() == (outs[1] / "cv.csv").read_bytes()
    assert "--decimal ," in (outs[1] / "report.html").read_text(encoding="utf-8")
    capsys.readouterr()
    assert run("predict", outs[1], path) == 1
    assert "--decimal ," in capsys.readouterr().err
    assert run("predict", outs[1], path, "--decimal", ",") == 0
    assert run("tune", path, "--target", "y", "--decimal", ",", "--thousands", ",") == 2


def test_identifiers_and_groups_are_asked_for(tmp_path: Path, capsys: Captured) -> None:
    columns = columns_of()
    columns["y"] = [f"class {k // 3 % 2}" for k in range(36)]
    path = write_csv(
        tmp_path / "data.csv",
        columns
        | {
            "sample": [f"s{k}" for k in range(36)],
            "patient": [f"p{k // 3}" for k in range(36)],
        },
    )
    assert run("tune", path, "--target", "y", *QUICK) == 1
    error = capsys.readouterr().err
    assert "'sample' names the rows" in error and "'patient' looks like a group" in error
    given = ("tune", path, "--target", "y", "--id", "sample", *QUICK)
    assert run(*given) == 1
    assert "'sample'" not in capsys.readouterr().err
    assert run(*given, "--groups", "patient") == 0
    assert run(*given, "--keep", "patient", "--out", tmp_path / "kept") == 0
    assert len(exactcv.load_model(tmp_path / "kept").preparation.features) == 3 + 12


def test_text_that_a_spreadsheet_would_run(tmp_path: Path) -> None:
    columns = columns_of()
    columns["y"] = [["=cmd()", "-1"][k % 2] for k in range(36)]
    columns["name"] = [f"@n{k}" for k in range(36)]
    path, out = write_csv(tmp_path / "data.csv", columns), tmp_path / "out"
    given = ("tune", path, "--target", "y", "--id", "name", *QUICK)
    assert run(*given, "--out", out) == 0
    first = read(out / "predictions.csv")[0]
    assert (first["id"], first["target"]) == ("'@n0", "'=cmd()")
    assert read(out / "predictions.csv")[1]["target"] == "-1"
    assert {row["predicted"] for row in read(out / "predictions.csv")} <= {"'=cmd()", "-1"}
    plain = tmp_path / "plain.csv"
    assert run("predict", out, path, "--out", plain, "--no-escape") == 0
    assert read(plain)[0]["id"] == "@n0"
    assert run("predict", out, path, "--out", plain) == 0
    assert read(plain)[0]["id"] == "'@n0"
    assert run(*given, "--no-escape", "--out", tmp_path / "bare") == 0
    assert read(tmp_path / "bare" / "predictions.csv")[0]["target"] == "=cmd()"


def test_headers_are_escaped_and_numbers_are_not() -> None:
    text = to_csv(["=a", "b"], [["+1", "+x"], [-1.5, -2]])
    assert text == "'=a,b\n+1,-1.5\n'+x,-2\n"


def test_query_numbers_are_told_and_can_be_groups(tmp_path: Path, capsys: Captured) -> None:
    X, y = rows()
    path = tmp_path / "data.svm"
    dump_svmlight_file(X, y, str(path), query_id=np.arange(36) // 4)
    given = ("tune", path, "--target", "target", *QUICK)
    assert run(*given) == 0
    assert "--groups qid leaves the rows of a query out together" in capsys.readouterr().out
    assert run(*given, "--groups", "qid") == 0
    said = capsys.readouterr().out
    assert "9 folds" in said and "--groups qid" not in said
    assert run(*given, "--id", "qid") == 1


def test_predict_where_the_target_is_partly_empty(tmp_path: Path, capsys: Captured) -> None:
    columns, out = columns_of(), tmp_path / "out"
    path = write_csv(tmp_path / "data.csv", columns)
    assert run("tune", path, "--target", "y", *QUICK, "--out", out) == 0
    labels = list(columns["y"])
    columns["y"] = ["" if k < 30 else label for k, label in enumerate(labels)]
    new = write_csv(tmp_path / "new.csv", columns)
    capsys.readouterr()
    assert run("predict", out, new, "--out", tmp_path / "p.csv") == 0
    predicted = [row["predicted"] for row in read(tmp_path / "p.csv")]
    wrong = sum(a != b for a, b in zip(predicted[30:], labels[30:], strict=True))
    said = capsys.readouterr().err
    assert f"({wrong} of 6 rows wrong; 95% interval " in said
    assert "; the other 30 have no target)" in said
    assert run("tune", new, "--target", "y", *QUICK) == 1
    assert "missing in 30 of 36 rows (first: row 1)" in capsys.readouterr().err


# ---- memory --------------------------------------------------------------------------------------


def test_a_table_larger_than_the_limit_is_said(tmp_path: Path, capsys: Captured) -> None:
    path = write_csv(tmp_path / "data.csv", columns_of(600))
    assert run("tune", path, "--target", "y", *QUICK, "--memory-limit", "30kB") == 1
    error = capsys.readouterr().err
    assert "rows of data.csv take" in error and "--memory-limit is 30.0 kB" in error
    assert "Traceback" not in error


def test_what_numpy_could_not_allocate_is_said(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 7.45 GiB for an array with shape (31623, 31623)")

    monkeypatch.setattr("exactcv.cli.tune.fit_svc", fail)
    path = write_csv(tmp_path / "data.csv", columns_of())
    assert run("tune", path, "--target", "y", *QUICK) == 1
    error = capsys.readouterr().err
    assert "unable to allocate 7.45 GiB" in error and "--memory-limit" in error


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux only")
def test_the_limit_on_addresses_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = {"now": (used + 50_000_000, resource.RLIM_INFINITY)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    left = memory.available_memory()
    assert left is not None and left <= 60_000_000
    limits["now"] = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    assert memory._address_space_available() is None


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux only")
def test_under_ulimit_the_approximate_kernel_steps_in(tmp_path: Path) -> None:
    X, y = rows(5000)
    path = tmp_path / "data.svm"
    dump_svmlight_file(X, y, str(path))
    code = (
        "import resource, sys; from exactcv.cli.main import main; import exactcv.cli.tune;"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize();"
        # Less than the 800 MB that the exact kernel would take.
        "resource.setrlimit(resource.RLIMIT_AS, (used + 500_000_000, resource.RLIM_INFINITY));"
        "sys.exit(main(sys.argv[1:]))"
    )
    arguments = ["tune", str(path), "--target", "target", "--cv", "2", "--n-jobs", "1"]
    grid = ["--lambdas", "0.1", "--gammas", "1", "--components", "20"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, *grid], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "approximate kernel (nystroem, 20 components), since the kernel matrix" in done.stdout


def test_a_target_in_another_notation(tmp_path: Path, capsys: Captured) -> None:
    columns = columns_of()
    numbers = np.random.default_rng(0).normal(size=36).round(3)
    columns["y"] = [str(v).replace(".", ",") for v in numbers]
    path = write_csv(tmp_path / "data.csv", columns)
    for more in ((), ("--stream",)):
        assert run("tune", path, "--target", "y", *QUICK, *more) == 1
        error = capsys.readouterr().err
        assert "the target 'y' has '0,126' in row 1" in error and "--decimal ," in error
        assert "--task classification" in error and "--categorical" not in error
    few = write_csv(tmp_path / "few.csv", columns | {"y": ["0,5", "1,5"] * 18})
    assert run("tune", few, "--target", "y", *QUICK) == 1
    assert run("tune", few, "--target", "y", "--task", "classification", *QUICK) == 0


def test_a_target_that_is_infinite_somewhere(tmp_path: Path, capsys: Captured) -> None:
    columns = columns_of()
    columns["y"] = ["inf" if k == 4 else f"{k}.5" for k in range(36)]
    path = write_csv(tmp_path / "data.csv", columns)
    assert run("tune", path, "--target", "y", *QUICK) == 1
    assert "column 'y' is infinite in row 5" in capsys.readouterr().err


def test_too_many_classes_of_text_are_not_called_numbers(tmp_path: Path, capsys: Captured) -> None:
    path = write_csv(tmp_path / "data.csv", columns_of() | {"y": [f"n{k}" for k in range(36)]})
    assert run("tune", path, "--target", "y", *QUICK) == 1
    error = capsys.readouterr().err
    assert "is it the right column?" in error and "numbers" not in error
    cells = ["n.d." if k == 3 else f"{k}.5" for k in range(36)]
    path = write_csv(tmp_path / "mixed.csv", columns_of() | {"y": cells})
    assert run("tune", path, "--target", "y", *QUICK) == 1
    assert "For numbers: row 4 has 'n.d.', which is none" in capsys.readouterr().err


def test_one_row_is_said_in_the_singular(tmp_path: Path, capsys: Captured) -> None:
    columns = columns_of() | {"y": ["a"] * 35 + ["b"]}
    path = write_csv(tmp_path / "data.csv", columns)
    assert run("tune", path, "--target", "y", *QUICK) == 0
    assert "b (1 row)" in capsys.readouterr().out


def test_a_score_of_numbers_for_classes(tmp_path: Path, capsys: Captured) -> None:
    path = write_csv(tmp_path / "data.csv", columns_of())
    assert run("tune", path, "--target", "y", "--scoring", "r2", *QUICK) == 1
    assert "a score of numbers, not of classes" in capsys.readouterr().err
