"""Write the golden file: ``python tests/golden/record.py [setting ...]``.

Do so only when results are meant to change, and say in the commit why.  With names, only those
settings are recorded anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["GOLDEN", "read", "write"]

GOLDEN = Path(__file__).with_name("golden.npz")

Records = dict[str, dict[str, np.ndarray]]


def write(path: Path, records: Mapping[str, Mapping[str, Any]]) -> None:
    """Pack records into one file.

    Thousands of small arrays would be mostly headers.  So all floats are one array, all integers
    and truth values another, and ``layout`` says whose they are; text is in the layout itself.
    """
    floats: list[np.ndarray] = []
    integers: list[np.ndarray] = []
    layout: dict[str, dict[str, Any]] = {}
    for setting, record in records.items():
        layout[setting] = {}
        for name, value in record.items():
            array = np.asarray(value)
            kind = array.dtype.kind
            entry: list[Any] = [kind, array.shape]
            if kind == "f":
                floats.append(array.ravel().astype(np.float64))
            elif kind in "bi":
                integers.append(array.ravel().astype(np.int64))
            elif kind == "U":
                entry.append(array.ravel().tolist())
            else:
                raise TypeError(f"{setting}: {name} has dtype {array.dtype}")
            layout[setting][name] = entry
    np.savez_compressed(
        path,
        floats=np.concatenate([np.zeros(0), *floats]),
        integers=np.concatenate([np.zeros(0, dtype=np.int64), *integers]),
        layout=np.array(json.dumps(layout)),
    )


def read(path: Path) -> Records:
    """The records of a file that `write` has written."""
    with np.load(path) as file:
        layout = json.loads(str(file["layout"]))
        left = {"f": file["floats"], "bi": file["integers"]}
    records: Records = {}
    for setting, entries in layout.items():
        records[setting] = {}
        for name, (kind, shape, *text) in entries.items():
            if kind == "U":
                array = np.array(text[0], dtype=str)
            else:
                store = "f" if kind == "f" else "bi"
                size = int(np.prod(shape))
                array, left[store] = left[store][:size], left[store][size:]
            records[setting][name] = (array.astype(bool) if kind == "b" else array).reshape(shape)
    return records


def main(names: list[str]) -> None:
    """Record all settings, or those of the names given."""
    from settings import SETTINGS  # beside this file, which is run as a script

    records = read(GOLDEN) if names else {}
    for name in names or SETTINGS:
        records[name] = SETTINGS[name].run()
    write(GOLDEN, {name: records[name] for name in SETTINGS if name in records})
    print(f"{len(records)} settings, {GOLDEN.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
