"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from time import process_time
from types import ModuleType

import numpy as np
import scipy
import sklearn
from joblib import cpu_count
from threadpoolctl import threadpool_info

import exactcv


def count_cpu_time(*modules: ModuleType) -> None:
    """Let the library's own timings be CPU time, too: other work on the machine disturbs less."""
    for module in modules:
        assert hasattr(module, "perf_counter")
        vars(module)["perf_counter"] = process_time


def facts() -> str:
    """A markdown list."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    lines = [
        f"CPU: {_cpu()}, {cpu_count()} cores, load average {load} at the start",
        f"RAM: {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB",
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, exactcv {exactcv.__version__}",
        f"BLAS: {_blas()}",
        f"system: {platform.system()} {platform.machine()}",
    ]
    return "\n".join(f"- {line}" for line in lines)


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def _blas() -> str:
    found = {
        f"{lib['internal_api']} {lib['version']} ({lib.get('architecture', 'unknown')})"
        for lib in threadpool_info()
        if lib["user_api"] == "blas"
    }
    return ", ".join(sorted(found)) + ", one thread"
