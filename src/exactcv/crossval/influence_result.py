"""What came out of ``influence``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._core import _residuals
from ..exceptions import InputError, MissingExtraError
from ..judge.certificate import Certificate
from ..problem.inputs import Present
from ..report.words import paragraph
from ..runtime.frozen import freeze
from ..tolerances import TIE
from ..types import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from ..report.influence_plot import InfluenceDisplay

__all__ = ["Influence"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Influence:
    """What leaving out each of n rows does to the m rows that are watched.

    The rows that are watched are the training rows themselves, or those of ``X_test``.  Among the
    training rows a row's own value does not count in errors and losses: what the model without it
    says of it is ``left_out``.

    Attributes
    ----------
    change : (n, m)
        ``change[i, j]``: the decision value of row j without row i, less that with all rows.
    value : (m,)
        Decision values of the model of all rows.
    left_out : (n,)
        The decision value of each row by the model without it.
    error_change, loss_change : (n,)
        By how much the share of rows that are wrong, and the mean hinge loss, change when row i is
        left out; negative if the others are better off without it.
    benefit : (n,)
        What is gained by removing row i: by how much the sum of the losses of the others falls,
        and, where the training rows are watched, the loss of row i itself when it is left out,
        which is then no longer there.
    y, y_watched : (n,), (m,)
        Labels as signs: +1 is ``classes[1]``.
    classes : (2,)
    C : float
    kernel : str
    gamma : float or None
    certificate : Certificate
        The worst over all rows left out.
    seconds : float

    Notes
    -----
    Rows of weight 0 are as good as absent; everything about them is NaN.
    """

    change: FloatArray
    value: FloatArray
    left_out: FloatArray
    error_change: FloatArray
    loss_change: FloatArray
    benefit: FloatArray
    y: FloatArray
    y_watched: FloatArray
    classes: NDArray[Any]
    C: float
    kernel: str
    gamma: float | None
    certificate: Certificate
    seconds: float

    @classmethod
    def of(
        cls,
        present: Present,
        y_watched: FloatArray | None,
        *,
        change: FloatArray,
        value: FloatArray,
        left_out: FloatArray,
        **facts: Any,
    ) -> Influence:
        """From the rows that count; ``y_watched`` is None if those are watched themselves."""
        itself = y_watched is None
        signs = present.y[present.rows] if y_watched is None else y_watched
        errors, losses = _mean_changes(change, value, signs, itself)
        benefit = -losses * (len(value) - itself)
        if itself:
            benefit += _loss(signs * left_out)
        if not present.all:
            change, left_out = present.spread(change.T, np.nan).T, present.spread(left_out, np.nan)
            errors, losses = present.spread(errors, np.nan), present.spread(losses, np.nan)
            benefit = present.spread(benefit, np.nan)
            if itself:
                change, value = present.spread(change, np.nan), present.spread(value, np.nan)
        return cls(
            change=np.ascontiguousarray(change),
            value=value,
            left_out=left_out,
            error_change=errors,
            loss_change=losses,
            benefit=benefit,
            y=present.y.copy(),
            y_watched=present.y.copy() if y_watched is None else y_watched,
            **facts,
        )

    def __post_init__(self) -> None:
        freeze(self)

    def __repr__(self) -> str:
        exact = "exact" if self.certificate.exact else "NOT exact"
        first = self.helps_most(3).tolist()
        return (
            f"<Influence: {len(self.y)} rows on {len(self.value)}, C={self.C:.4g}; removing row "
            f"{', '.join(map(str, first)) or 'none'} helps most, {exact}>"
        )

    def helps_most(self, k: int | None = None) -> IntArray:
        """The rows whose removal helps, by ``benefit``, the first most of all.

        With ``k`` only the first so many.  Mislabelled rows are often among the first.
        """
        if k is not None and not (isinstance(k, (int, np.integer)) and k >= 0):
            raise InputError(f"k must be a whole number, 0 or more, or None, got {k!r}")
        order = np.argsort(-self.benefit, kind="stable")
        found = order[self.benefit[order] > 0]
        return found if k is None else found[:k]

    def to_frame(self) -> DataFrame:
        """One row for each training row, sorted: first those whose removal helps most.

        ``row``, ``label``, ``benefit``, ``left_out`` (its own left-out value), ``wrong`` (is that
        on the wrong side), ``loss_change``, ``error_change``, ``largest_change`` (the largest
        change of a watched row's value, with its sign) and ``of_row`` (which row that is).  Needs
        pandas.
        """
        try:
            import pandas
        except ImportError as missing:
            raise MissingExtraError(
                'to_frame() needs pandas: pip install "exactcv[pandas]"'
            ) from missing
        of_row, largest = self._largest()
        frame = pandas.DataFrame(
            {
                "row": np.arange(len(self.y)),
                "label": self.classes[(self.y > 0).astype(np.intp)],
                "benefit": self.benefit,
                "left_out": self.left_out,
                "wrong": _wrong(self.y * self.left_out),
                "loss_change": self.loss_change,
                "error_change": self.error_change,
                "largest_change": largest,
                "of_row": of_row,
            }
        )
        frame = frame[~np.isnan(self.left_out)]
        return frame.sort_values("benefit", ascending=False, kind="stable", ignore_index=True)

    def _largest(self) -> tuple[IntArray, FloatArray]:
        """For each row which other row's value it changes most, and by how much."""
        size = np.abs(self.change)
        if self._itself:
            np.fill_diagonal(size, -1.0)
        size[np.isnan(size)] = -1.0
        of_row = size.argmax(axis=1)
        return of_row, self.change[np.arange(len(size)), of_row]

    @property
    def _itself(self) -> bool:
        return self.change.shape[0] == self.change.shape[1] and np.array_equal(
            self.y, self.y_watched
        )

    def plot(self, *, ax: Axes | None = None, **options: Any) -> InfluenceDisplay:
        """Each row by its own left-out margin and by what its removal does to the others' loss.

        ``options`` go to ``Axes.scatter``; needs matplotlib.
        """
        from ..report.influence_plot import InfluenceDisplay

        display = InfluenceDisplay(
            margin=self.y * self.left_out, loss_change=self.loss_change, named=self.helps_most(5)
        )
        return display.plot(ax=ax, **options)

    def summary(self) -> str:
        """Which rows the others would be better off without, in words."""
        n = int(np.count_nonzero(~np.isnan(self.left_out)))
        helping = self.helps_most()
        first = ", ".join(f"{row} ({self.benefit[row]:.2g})" for row in helping[:10].tolist())
        wrong = int(np.count_nonzero(_wrong(self.y * self.left_out)))
        gamma = "" if self.gamma is None else f", gamma={self.gamma:.4g}"
        parts = [
            ("model", f"{self.kernel}, C={self.C:.4g}{gamma}"),
            ("left out", f"{wrong} of {n} rows are on the wrong side when they are left out"),
            (
                "helps most",
                f"removing row (and what that takes off the sum of losses) {first}"
                if len(helping)
                else "no row would be better removed",
            ),
            ("certificate", str(self.certificate)),
            ("time", f"{self.seconds:.3f} s"),
        ]
        head = f"Influence of {n} rows on {len(self.value)}, each left out once."
        return "\n".join([head, *(paragraph(label, text) for label, text in parts)])


def _wrong(margin: FloatArray) -> Any:
    return margin <= TIE


def _loss(margin: FloatArray) -> FloatArray:
    return np.maximum(0.0, 1.0 - margin)


def _mean_changes(
    change: FloatArray, value: FloatArray, signs: FloatArray, itself: bool
) -> tuple[FloatArray, FloatArray]:
    """Share of errors and mean loss without row i, less with all rows, over the watched rows.

    Where the rows are watched themselves, all of them but row i.
    """
    margin = signs * value
    wrong, loss = _wrong(margin), _loss(margin)
    errors, losses, count = np.empty(len(change)), np.empty(len(change)), len(value) - itself
    _residuals.margins(change, margin, signs, loss, TIE, errors, losses)
    if itself:  # a row does not count for itself
        own = margin + signs * change.diagonal()
        errors += wrong.astype(float) - _wrong(own)
        losses -= _loss(own) - loss
    return (errors - np.count_nonzero(wrong)) / count, losses / count
