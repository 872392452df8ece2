"""Errors and warnings.  Every error derives from ``ExactCVError``."""

from __future__ import annotations

TYPE_CHECKING = False  # as in exactcv/__init__.py

if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "ClusterError",
    "ExactCVError",
    "FileError",
    "InputError",
    "InputIndexError",
    "InputTypeError",
    "Interrupted",
    "MemoryLimitError",
    "MissingExtraError",
    "NotExactWarning",
    "NotPSDWarning",
    "SlowFoldsWarning",
    "UnsupportedError",
]


class ExactCVError(Exception):
    """The base of all errors raised by exactcv."""


class InputError(ExactCVError, ValueError):
    """An argument has a value that cannot be used."""


class InputTypeError(InputError, TypeError):
    """An argument has a type that cannot be used."""


class InputIndexError(InputError, IndexError):
    """An argument names an entry that is not there."""


class UnsupportedError(ExactCVError, ValueError):
    """The request makes sense, but the chosen method cannot do it."""


class MemoryLimitError(ExactCVError, MemoryError):
    """A table or the kernel matrix would not fit; raised before it is allocated."""


class FileError(ExactCVError, OSError):
    """A file or folder cannot be read or written, or holds something else than it should."""


class MissingExtraError(ExactCVError, ImportError):
    """An optional package is needed; the message names the extra to install."""


class ClusterError(ExactCVError, RuntimeError):
    """The cluster that was to do the work has gone or lost a task; there is no result."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a long run; ``partial`` holds what was finished by then.

    A ``KeyboardInterrupt``, so that whatever handles Ctrl-C handles this; therefore the one
    exception here that is no ``ExactCVError``: ``except Exception`` must not swallow it.

    Attributes
    ----------
    partial : object or None
        None if nothing is complete, else: from ``cross_validate`` the ``CVResult`` of what is
        complete; from ``SVCCV`` and ``GridSearchCV`` the estimator itself, fitted to the best of
        what is complete; from ``cross_val_score`` and ``cross_val_predict`` a masked array.
    """

    def __init__(self, message: str = "interrupted", partial: Any = None):
        super().__init__(message)
        self.partial = partial


class NotPSDWarning(UserWarning):
    """The kernel matrix is not positive semidefinite, so a solution may be a local one."""


class NotExactWarning(UserWarning):
    """Some solutions do not meet the tolerance; see ``certificate.unresolved``."""


class SlowFoldsWarning(UserWarning):
    """The folds share no kernel matrix, since a setting differs from fold to fold, or are not ours.

    Then scikit-learn's own code computes them, at its own speed.
    """
