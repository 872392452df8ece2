"""Files that are there whole or not at all.

A file is written under another name in the same folder, forced to the disk, and renamed; a reader,
or a run that starts after a crash, never sees half of it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..exceptions import FileError

__all__ = ["make_folder", "reason", "translated", "write_bytes", "write_parts", "write_text"]

TEMPORARY = ".exactcv-"  # how unfinished files begin


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file in one step; the old one, if any, stays until the new one is complete.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "note"
    >>> write_bytes(path, b"kept")
    >>> path.read_bytes(), len(list(path.parent.iterdir()))
    (b'kept', 1)
    """
    write_parts(path, [data])


def write_parts(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """The same of what comes in parts; if one of them cannot be made, nothing is written."""
    with translated("write", path):
        handle, name = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                for part in parts:
                    file.write(part)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        _sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """The same for text, in UTF-8 and with the line ends it has."""
    write_bytes(path, text.encode("utf-8"))


def make_folder(path: Path) -> None:
    """Make a folder that can be written to, or say why that is not possible."""
    with translated("make the folder", path):
        path.mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def translated(doing: str, path: Path) -> Iterator[None]:
    """Errors of the operating system become ours: what was tried, on which file, and the reason."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"cannot {doing} {str(path)!r}: {reason(error)}") from error


def reason(error: OSError) -> str:
    """Why it failed, and what to do about it where that is known."""
    text = error.strerror or str(error) or type(error).__name__
    advice = {
        errno.ENOSPC: "free some space and run the same command again",
        errno.EDQUOT: "free some space and run the same command again",
        errno.EFBIG: "the limit on file sizes (ulimit -f) is too low",
        errno.EROFS: "choose a folder that can be written to",
        errno.EACCES: "choose a folder that can be written to, or change its permissions",
        errno.ENOTDIR: "a file is in the place of a folder",
        errno.EEXIST: "a file is in the place of a folder",
    }.get(error.errno or 0)
    return text + (f"; {advice}" if advice else "")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(path: Path) -> None:
    """The new name is on the disk too; not every file system can do that."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
