"""A lock belongs to one holder at a time, on every system."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from exactcv.storage import lock as module
from exactcv.storage.lock import Lock


def test_a_second_holder_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    first = Lock(path)
    with pytest.raises(BlockingIOError):
        Lock(path)
    first.release()
    first.release()
    assert not path.exists()
    Lock(path).release()


def test_a_file_system_without_locks_lets_everybody_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(_: Any) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr(module, "_take", none)
    locks = [Lock(tmp_path / ".lock") for _ in range(2)]
    for lock in locks:
        lock.release()


def test_the_form_for_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held: set[str] = set()

    def locking(_: int, mode: int, count: int) -> None:
        assert (mode, count) == (2, 1)
        if held:
            raise PermissionError(13, "Permission denied")
        held.add("one")

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
    try:
        windows = importlib.reload(module)
        first = windows.Lock(tmp_path / ".lock")
        with pytest.raises(BlockingIOError):
            windows.Lock(tmp_path / ".lock")
        first.release()
        assert not (tmp_path / ".lock").exists()
    finally:
        monkeypatch.undo()
        importlib.reload(module)
