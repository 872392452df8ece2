"""What ``method_options`` may hold with ``approx``."""

from __future__ import annotations

import numbers
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..exceptions import InputError, InputTypeError, UnsupportedError
from ..problem import checks
from .landmarks import LANDMARKS
from .passes.local import STORES

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """How the features are kept.

    features : "auto", "memory", "spill" or "recompute"
        "auto" is "memory" if that takes at most 40 percent of ``memory_limit`` (of half of what is
        free, without one), else "recompute".
    dtype : "float64" or "float32"
        Of the features; sums are in float64 whatever they are.
    chunk_rows : int
        Rows in a chunk, for input that does not come in chunks of its own.
    folder : path or None
        Where to spill; by default the system's folder for temporary files.
    target_rows : int or None
        Rows near the margin in a small problem, about; by default 8 for each component, and
        1000 at least.  It changes the way to the solution, not the solution.
    cluster : bool
        Use the Dask cluster of an active client.  Dask input is left to Dask in any case.
    landmarks : "random" or "kmeans"
        Which rows the landmarks of Nystroem are: see ``landmarks.py``.
    """

    features: str = "auto"
    dtype: str = "float64"
    chunk_rows: int = 8192
    folder: str | os.PathLike[str] | None = None
    target_rows: int | None = None
    cluster: bool = True
    landmarks: str = "random"

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Options:
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise UnsupportedError(
                    f"method_options has {name!r}; with approx it may have {', '.join(known)}"
                )
        options = cls(**given)
        checks.check_choice("method_options['features']", options.features, ("auto", *STORES))
        checks.check_choice("method_options['dtype']", options.dtype, ("float64", "float32"))
        for name in ("chunk_rows", "target_rows"):
            rows = getattr(options, name)
            number = isinstance(rows, numbers.Integral) and not isinstance(rows, bool)
            fits = number and int(rows) > 0
            if not (fits or (rows is None and name == "target_rows")):
                raise InputError(f"method_options[{name!r}] must be a positive int, got {rows!r}")
        _check_folder(options.folder)
        checks.check_flag("method_options['cluster']", options.cluster)
        checks.check_choice("method_options['landmarks']", options.landmarks, LANDMARKS)
        return options

    def target(self, m: int) -> int:
        """Rows in a small problem; two at least, for a first guess takes half of them."""
        return max(2, int(self.target_rows or max(1000, 8 * m)))

    def store_for(self, n: int, m: int, budget: int) -> str:
        """Where the features go."""
        if self.features != "auto":
            return self.features
        size = n * m * np.dtype(self.dtype).itemsize
        return "memory" if size <= 0.4 * budget else "recompute"


def _check_folder(folder: Any) -> None:
    if folder is None:
        return
    if not isinstance(folder, (str, os.PathLike)):
        raise InputTypeError(f"method_options['folder'] must be a path, got {folder!r}")
    if not os.path.isdir(folder):
        raise InputError(f"method_options['folder']: there is no folder {os.fspath(folder)!r}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"method_options['folder']: cannot write to {os.fspath(folder)!r}")
