"""The folder of a run: whose it is, what of it is finished, and what it holds in the end.

``run.json`` says what is computed there (data and settings, with their fingerprint) from the first
moment on.  Every finished gamma becomes a file in ``unfinished/``; when the last is done results
are written, ``run.json`` is marked as done, and ``unfinished/`` is removed.  All files are written
in one step (``atomic.py``).  So a run can be killed at any moment: started again, it takes up
the gammas that are there and ends with the same files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
import shutil
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..crossval.classes import PairFit
from ..crossval.tuning import Curve
from ..estimators.lowrank_curve import ApproxCurve
from ..exceptions import FileError
from ..judge.certificate import Certificate
from ..problem.kernels import Kernel
from . import arrays, feature_maps
from .atomic import TEMPORARY, make_folder, translated, write_text
from .lock import Lock

__all__ = ["CurveFiles", "RunFolder", "describe", "finished_run", "settings_in"]

RUN = "run.json"
UNFINISHED = "unfinished"
RESULTS = ("model.exactcv", "cv.csv", "predictions.csv", "curve.png", "report.html")
LOCK = ".lock"
PACKAGES = ("exactcv", "numpy", "scipy", "scikit-learn")  # of the last digits, all are to blame


def describe(data: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """What a run is: its data, its settings, and the versions of what computes it."""
    versions = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    run = {"data": data, "settings": settings, "versions": versions}
    text = json.dumps(run, sort_keys=True, ensure_ascii=False)
    return {"fingerprint": hashlib.sha256(text.encode()).hexdigest()} | run


def settings_in(path: Path) -> tuple[dict[str, Any] | None, bool]:
    """The settings of the run in a folder, and whether it is finished; None if there is none.

    What cannot be read is left for ``RunFolder`` to complain of.
    """
    try:
        found = json.loads((path / RUN).read_text(encoding="utf-8"))
        settings, status = found["settings"], found["status"]
    except (OSError, ValueError, KeyError, TypeError):
        return None, False
    return (settings, status == "done") if isinstance(settings, dict) else (None, False)


def finished_run(path: Path) -> dict[str, Any]:
    """What ``run.json`` says of a run that is done; ``FileError`` if there is none."""
    with translated("read", path / RUN):
        text = (path / RUN).read_text(encoding="utf-8")
    try:
        found = json.loads(text)
        done = found["status"] == "done"
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(f"{str(path / RUN)!r} is not a run.json of exactcv") from error
    if not done:
        raise FileError(f"the run in {str(path)!r} is not finished: the same tune command goes on")
    return dict(found)


class RunFolder:
    """A folder that belongs to one run, and to one process at a time; a context manager."""

    def __init__(self, path: Path, run: dict[str, Any]):
        self.path, self.run = path, run
        self._lock: Lock | None = None

    def __enter__(self) -> RunFolder:
        make_folder(self.path)
        self._take_lock()
        try:
            self.done = self._compare()
            if not self.done:
                self._write({"status": "running"})
                make_folder(self.path / UNFINISHED)
                self._sweep()
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._release()

    @property
    def curves(self) -> CurveFiles:
        return CurveFiles(self.path / UNFINISHED, self.run["fingerprint"])

    @property
    def parts(self) -> PartFiles:
        return PartFiles(self.path / UNFINISHED, self.run["fingerprint"])

    def finish(self, result: dict[str, Any], page: dict[str, Any], timings: dict[str, Any]) -> None:
        """All results are written: say so, and clear away what they were made of.

        ``page`` is what the report says besides the figures of the model.
        """
        self._write({"status": "done", "result": result, "page": page, "timings": timings})
        shutil.rmtree(self.path / UNFINISHED, ignore_errors=True)
        self.done = True

    def _write(self, more: dict[str, Any]) -> None:
        text = json.dumps(self.run | more, indent=2, ensure_ascii=False) + "\n"
        write_text(self.path / RUN, text)

    def _compare(self) -> bool:
        """Is this the folder of the same run?  True if it is finished."""
        path = self.path / RUN
        if not path.exists():
            there = [name for name in RESULTS if (self.path / name).exists()]
            if there:
                raise FileError(
                    f"{str(self.path)!r} has a {there[0]} but no {RUN}: it is not the folder of a "
                    "run; choose another --out, or move these files away"
                )
            return False
        with translated("read", path):
            text = path.read_text(encoding="utf-8")
        try:
            found = json.loads(text)
            same = found["fingerprint"] == self.run["fingerprint"]
            finished = found["status"] == "done"
            differences = [] if same else _differences(found, self.run)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FileError(
                f"{str(path)!r} is not a run.json of exactcv; choose another --out"
            ) from error
        if not same and not finished and not self.curves.count:
            return False  # it has nothing yet that could be lost
        if not same:
            raise FileError(
                f"{str(self.path)!r} belongs to another run, and nothing in it was changed: "
                f"{'; '.join(differences)}. Choose another --out, or remove the folder"
            )
        return finished and all((self.path / n).exists() for n in found["result"]["files"])

    def _sweep(self) -> None:
        """Remove what a killed run was just writing."""
        for folder in (self.path, self.path / UNFINISHED):
            for path in folder.glob(TEMPORARY + "*"):
                with contextlib.suppress(OSError):
                    path.unlink()

    def _take_lock(self) -> None:
        """One process at a time."""
        with translated("write in the folder", self.path):
            try:
                self._lock = Lock(self.path / LOCK)
            except BlockingIOError:
                raise FileError(
                    f"another process is at work in {str(self.path)!r}; wait for it, or choose "
                    "another --out"
                ) from None

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """How two runs differ, in words."""
    out = []
    if old["data"].get("sha256") != new["data"]["sha256"]:
        out.append("the data file has changed")
    for part in ("data", "settings", "versions"):
        for name in {**old[part], **new[part]}:
            before, now = old[part].get(name), new[part].get(name)
            if before != now and name not in ("sha256", "rows"):
                out.append(f"{name} was {_short(before)}, now {_short(now)}")
    return out[:6] or ["its settings differ"]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


class CurveFiles:
    """Finished curves, one file each: a ``Store`` for ``Tuning``."""

    def __init__(self, folder: Path, fingerprint: str):
        self.folder, self.fingerprint = folder, fingerprint
        self.taken_up = 0

    def _path(self, number: int) -> Path:
        return self.folder / f"gamma-{number + 1:03d}"

    def load(self, number: int) -> Curve | ApproxCurve | None:
        path = self._path(number)
        if not path.exists():
            return None
        try:
            tree = arrays.read(path, "curve")
            if tree["fingerprint"] != self.fingerprint:
                raise FileError("it belongs to another run")
            curve = feature_maps.curve_in(tree) if "feature_map" in tree else _curve(tree)
        except (FileError, KeyError, TypeError, ValueError) as error:
            warnings.warn(f"{path.name} is computed again: {error}", UserWarning, stacklevel=2)
            return None
        self.taken_up += 1
        return curve

    def save(self, number: int, curve: Curve | ApproxCurve) -> None:
        if isinstance(curve, ApproxCurve):
            tree = feature_maps.curve_tree(curve)
        else:
            tree = _curve_tree(curve)
        arrays.write(self._path(number), "curve", tree | {"fingerprint": self.fingerprint})

    @property
    def count(self) -> int:
        return len(list(self.folder.glob("gamma-*")))


class PartFiles:
    """Finished parts of a nested cross-validation, one file each: ``nested_parts.Parts``."""

    def __init__(self, folder: Path, fingerprint: str):
        self.folder, self.fingerprint = folder, fingerprint

    def load(self, name: str) -> dict[str, Any] | None:
        path = self.folder / name
        if not path.exists():
            return None
        try:
            tree: dict[str, Any] = arrays.read(path, "part")
            if tree["fingerprint"] != self.fingerprint:
                raise FileError("it belongs to another run")
        except (FileError, KeyError, TypeError, ValueError) as error:
            warnings.warn(f"{path.name} is computed again: {error}", UserWarning, stacklevel=2)
            return None
        return tree

    def save(self, name: str, tree: dict[str, Any]) -> None:
        arrays.write(self.folder / name, "part", tree | {"fingerprint": self.fingerprint})

    @property
    def count(self) -> int:
        return len(list(self.folder.glob("outer-*"))) + len(list(self.folder.glob("pairs-*")))


_PLAIN = ("gamma", "error", "se", "n_errors", "labels", "score", "at_bound", "stats", "decision")
_KERNEL = ("name", "gamma", "degree", "coef0")
_FIT = ("first", "second", "rows", "coef", "intercept")
_CERTIFICATE = ("kkt", "gap", "exact", "tol", "convex", "not_converged", "unproved")


def _curve_tree(curve: Curve) -> dict[str, Any]:
    certificate = {name: getattr(curve.certificate, name) for name in _CERTIFICATE}
    certificate["unresolved"] = [list(pair) for pair in curve.certificate.unresolved]
    return {name: getattr(curve, name) for name in _PLAIN} | {
        "kernel": {name: getattr(curve.kernel, name) for name in _KERNEL},
        "fits": [{name: getattr(fit, name) for name in _FIT} for fit in curve.fits],
        "certificate": certificate,
    }


def _curve(tree: dict[str, Any]) -> Curve:
    certificate = dict(tree["certificate"])
    certificate["unresolved"] = [(int(l), int(f)) for l, f in certificate["unresolved"]]
    return Curve(
        kernel=Kernel(**tree["kernel"]),
        fits=tuple(PairFit(**fit) for fit in tree["fits"]),
        certificate=Certificate(**certificate),
        **{name: tree[name] for name in _PLAIN},
    )
