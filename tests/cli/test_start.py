"""Ctrl-C while the command line is still loading."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import exactcv
from exactcv.cli import early_interrupt

SIGNAL = "import signal\nsignal.raise_signal(signal.SIGINT)\n"
START = "from exactcv.cli.start import main; sys.exit(main())"


def run(folder: Path, before: str = "", *arguments: str) -> tuple[int, str]:
    """The command with the modules in this folder before all others."""
    code = f"import signal, sys; sys.path.insert(0, {str(folder)!r}); {before}{START}"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


def test_it_is_one_line(tmp_path: Path) -> None:
    # NumPy is the first thing that takes long to import.
    (tmp_path / "numpy.py").write_text(SIGNAL)
    assert run(tmp_path) == (130, "exactcv: interrupted\n")


def test_it_is_one_line_where_python_ignores_exceptions(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text(
        "import signal\n\n"
        "class Last:\n"
        "    def __del__(self):\n"
        "        signal.raise_signal(signal.SIGINT)\n\n"
        "Last()\n"
        "raise SystemExit(0)\n"
    )
    assert run(tmp_path) == (130, "exactcv: interrupted\n")


def test_it_is_one_line_while_a_command_loads(tmp_path: Path) -> None:
    (tmp_path / "scipy").mkdir()
    (tmp_path / "scipy" / "__init__.py").write_text(SIGNAL)
    assert run(tmp_path, "", "demo") == (130, "exactcv: interrupted\n")


def test_a_job_that_ignores_it_goes_on(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text(SIGNAL + "raise SystemExit(7)\n")
    before = "signal.signal(signal.SIGINT, signal.SIG_IGN); "
    assert run(tmp_path, before) == (7, "")


def test_once_a_command_is_at_work_it_is_an_exception() -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        early_interrupt.end_at_once()
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        early_interrupt.ready()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_nothing_that_takes_time_is_loaded_first() -> None:
    # typing and enum take longer than all that is ours; -S: without what .pth files import.
    slow = {"numpy", "email", "click", "typing", "enum", "re"}
    code = f"import sys, exactcv.cli.start; print(*(set(sys.modules) & {slow!r}))"
    path = {**os.environ, "PYTHONPATH": str(Path(exactcv.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, env=path
    )
    assert done.stdout.strip() == ""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux only")
def test_a_limit_that_nothing_fits_into_gives_no_traceback(tmp_path: Path) -> None:
    """ulimit -v where not even the libraries fit: they say so under several names."""
    table = tmp_path / "data.csv"
    table.write_text("a,y\n" + "".join(f"{k}.5,{k % 2}\n" for k in range(30)))
    before = (
        "import os, resource; os.environ['OPENBLAS_NUM_THREADS'] = '1'; "  # which waits for others
        "resource.setrlimit(resource.RLIMIT_AS, (150 << 20, -1)); "
        f"sys.argv = ['exactcv', 'tune', {str(table)!r}, '--target', 'y', '--Cs', '1']; "
    )
    status, said = run(tmp_path, before)
    assert status in (0, 1, -signal.SIGABRT) and "Traceback" not in said
