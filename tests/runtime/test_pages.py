"""Freed memory is kept while tasks run, and given back when none has come for a moment."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

COUNTS = """
import resource, time
import numpy as np
from exactcv.runtime import pages

pages.PATIENCE = 0.2

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def work():
    before = faults()
    for _ in range(100):
        np.ones(300_000)
    return faults() - before

found = [work()]
with pages.KeptPages():
    with pages.KeptPages():
        pass
    found.append(work())
    time.sleep(0.5)
    found.append(pages._PAGES.kept)
limit = time.monotonic() + 60
while pages._PAGES.kept and time.monotonic() < limit:
    time.sleep(0.05)
found += [pages._PAGES.kept, work()]
print(*map(int, found))
"""


def counts(setting: str | None) -> list[int]:
    environment = {k: v for k, v in os.environ.items() if k != "MALLOC_TRIM_THRESHOLD_"}
    if setting is not None:
        environment["MALLOC_TRIM_THRESHOLD_"] = setting
    shown = subprocess.run(
        [sys.executable, "-c", COUNTS], env=environment, capture_output=True, text=True, check=True
    )
    return [int(word) for word in shown.stdout.split()]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of the GNU C library")
def test_pages_are_kept_while_tasks_run() -> None:
    before, during, kept, kept_later, after = counts("65536")
    assert kept and not kept_later
    assert during * 4 < before and during * 4 < after


@pytest.mark.parametrize("setting", [None, "", "much", str(1 << 40)])
def test_nothing_is_changed_elsewhere(setting: str | None) -> None:
    assert counts(setting)[2] == 0
