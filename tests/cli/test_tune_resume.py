"""Runs that are cut short, folders that are not theirs, disks that are full."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from _command_line import QUICK, Cut, columns_of, results, run, write_csv

from exactcv.crossval.tuning import Curve
from exactcv.exceptions import FileError
from exactcv.storage import arrays, atomic
from exactcv.storage.run_folder import CurveFiles


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "data.csv", columns_of())


def tune(table: Path, out: Path, *more: str) -> int:
    return run("tune", table, "--target", "y", "--out", out, *QUICK, *more)


def test_a_run_cut_short_goes_on_and_ends_the_same(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    options = ("--probability", "--gammas", "3")
    assert tune(table, whole, *options) == 0
    save = CurveFiles.save

    def cut(self: CurveFiles, number: int, curve: Curve) -> None:
        if number == 2:
            raise Cut
        save(self, number, curve)

    monkeypatch.setattr(CurveFiles, "save", cut)
    with pytest.raises(Cut):
        tune(table, out, *options)
    assert {path.name for path in out.iterdir()} == {"run.json", "unfinished"}
    kept = {path.name: path.stat().st_mtime_ns for path in (out / "unfinished").iterdir()}
    assert sorted(kept) == ["gamma-001", "gamma-002"]
    monkeypatch.setattr(CurveFiles, "save", save)
    capsys.readouterr()
    assert tune(table, out, *options, "--n-jobs", "2") == 0
    assert "going on with 2 finished gamma(s)" in capsys.readouterr().out
    assert results(out) == results(whole)
    assert json.loads((out / "run.json").read_text())["timings"]["gammas_taken_up"] == 2

    before = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    assert tune(table, out, *options) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert before == {path.name: path.stat().st_mtime_ns for path in out.iterdir()}


# The second gamma is saved, then nothing more happens: the moment to be killed.
STALLED = """
import sys, time
from exactcv.cli import main as cli
from exactcv.storage.run_folder import CurveFiles
save = CurveFiles.save
def stall(self, number, curve):
    save(self, number, curve)
    if number == 1:
        print("ready", file=sys.stderr, flush=True)
        time.sleep(600)
CurveFiles.save = stall
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_process_is_continued(table: Path, tmp_path: Path, how: signal.Signals) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    options = ("tune", table, "--target", "y", *QUICK, "--gammas", "4", "--no-progress", "--out")
    with subprocess.Popen(
        [sys.executable, "-c", STALLED, *map(str, options), str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "ready\n"
        process.send_signal(how)
        error = process.stderr.read()
    assert process.returncode == (-signal.SIGKILL if how == signal.SIGKILL else 130), error
    if how == signal.SIGINT:
        assert "2 finished gamma(s) are kept in" in error and "Traceback" not in error
    assert not (out / "model.exactcv").exists()
    for folder in (out, whole):
        assert run(*options, folder) == 0
    assert results(out) == results(whole)
    assert json.loads((out / "run.json").read_text())["timings"]["gammas_taken_up"] == 2


def test_other_data_or_settings_are_refused_and_nothing_is_lost(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert tune(table, out) == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert tune(table, out, "--cv", "5") == 1
    assert 'cv was "loo", now "5"' in capsys.readouterr().err
    table.write_text(table.read_text().replace("class 1", "class 2", 1))
    assert tune(table, out) == 1
    error = capsys.readouterr().err
    assert "the data file has changed" in error and "nothing in it was changed" in error
    other = write_csv(tmp_path / "other.csv", columns_of())
    assert tune(other, out) == 1
    assert 'file was "data.csv", now "other.csv"' in capsys.readouterr().err
    assert before == {path.name: path.read_bytes() for path in out.iterdir()}


def test_a_run_that_never_began_gives_way(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert tune(table, out, "--loss", "logistic") == 1
    assert "does not support loss='logistic'" in capsys.readouterr().err
    assert tune(table, out) == 0
    assert json.loads((out / "run.json").read_text())["settings"]["loss"] == "hinge"


def test_folders_of_something_else(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.html").write_text("mine")
    assert tune(table, out) == 1
    assert "not the folder of a run" in capsys.readouterr().err
    assert (out / "report.html").read_text() == "mine"
    (out / "report.html").unlink()
    (out / "run.json").write_text('{"somebody": "else"}')
    assert tune(table, out) == 1
    assert "is not a run.json of exactcv" in capsys.readouterr().err
    (out / "run.json").unlink()
    (out / "notes.txt").write_text("harmless")
    assert tune(table, out) == 0
    assert (out / "notes.txt").read_text() == "harmless"
    (tmp_path / "file").write_text("")
    assert tune(table, tmp_path / "file" / "out") == 1
    assert "a file is in the place of a folder" in capsys.readouterr().err


def test_a_damaged_part_is_computed_again(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    assert tune(table, whole) == 0
    monkeypatch.setattr("exactcv.cli.tune._write", lambda *_: (_ for _ in ()).throw(Cut()))
    with pytest.raises(Cut):
        tune(table, out)
    monkeypatch.undo()
    part = out / "unfinished" / "gamma-001"
    changed = bytearray(part.read_bytes())
    changed[len(changed) // 2] ^= 1
    part.write_bytes(bytes(changed))
    assert tune(table, out) == 0
    assert "gamma-001 is computed again" in capsys.readouterr().err
    assert results(out) == results(whole)


@pytest.fixture
def nobody() -> Iterator[None]:
    """Root may write anywhere, so root becomes someone else for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


def test_a_read_only_folder(
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    out = tmp_path / "out"
    assert tune(table, out) == 0  # everything that is needed is imported by now
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    for path in (out, tmp_path / "empty"):
        path.mkdir(exist_ok=True)
        path.chmod(0o555)
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    request.getfixturevalue("nobody")
    for folder in ("out", "empty", "empty/new"):
        assert tune(Path(table.name), Path(folder)) == 1
        error = capsys.readouterr().err
        assert f"'{folder}" in error and "choose a folder that can be written to" in error
    assert before == {path.name: path.read_bytes() for path in Path("out").iterdir()}


def test_two_processes_do_not_share_a_folder(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, seen = tmp_path / "out", []
    save = CurveFiles.save

    def second(self: CurveFiles, number: int, curve: Curve) -> None:
        if not seen:
            seen.append(tune(table, out))
        save(self, number, curve)

    monkeypatch.setattr(CurveFiles, "save", second)
    assert tune(table, out) == 0
    assert seen == [1]
    assert "another process is at work" in capsys.readouterr().err
    assert not (out / ".lock").exists()


FULL_DISK = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from exactcv.cli import main as cli
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.exit(cli.main(sys.argv[2:]))
"""


def test_no_room_is_said_and_the_run_goes_on_later(table: Path, tmp_path: Path) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    assert tune(table, whole) == 0
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    size = (whole / "model.exactcv").stat().st_size - 1  # parts fit, the model does not
    command = ["tune", table, "--target", "y", "--out", out, *QUICK]
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(size), *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "cannot write" in done.stderr and "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in out.iterdir()) == ["run.json", "unfinished"]
    assert len(list((out / "unfinished").iterdir())) == 2
    assert tune(table, out) == 0
    assert results(out) == results(whole)


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    arrays.write(path, "test", {"x": np.arange(3)})
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(FileError, match="No space left on device; free some space"):
        arrays.write(path, "test", {"x": np.arange(4)})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
