"""Plots of a cross-validation, after scikit-learn's Display objects.

Each class holds what it draws; ``from_result`` makes one from a ``CVResult`` (or a list of them,
one a gamma), ``from_estimator`` from a fitted estimator, and both draw it; ``plot`` draws it again.
The axes and artists are attributes (``ax_``, ``figure_``, ``line_`` ...), to be changed at will.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputError, InputTypeError
from ..types import FloatArray, HorizontalAxis, PlotKind
from .displays import Display
from .number_plots import PredictedDisplay, ResidualDisplay
from .overview import Overview, Source, overview

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "DISPLAYS",
    "ErrorCurveDisplay",
    "HeatMapDisplay",
    "LeftOutDisplay",
    "RocDisplay",
    "draw",
]


class ErrorCurveDisplay(Display):
    """What the grid was judged by along C: the left-out error with its standard error, or a score.

    Parameters
    ----------
    lambdas, Cs, error, se : (L,)
        ``error`` holds the score where that was asked for; ``se`` may be NaN: then there is no
        band.
    best, one_se : int
        The best point, and the smallest C within one standard error of it.  None if it belongs
        to another curve.
    label : str

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
    line_, band_, best_, one_se_ : artists
        ``band_`` and the two points are None where there is nothing to draw.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import exactcv
    >>> X, y = exactcv.datasets.make_mixture(40, 4, random_state=0)
    >>> display = exactcv.ErrorCurveDisplay.from_result(exactcv.cross_validate(X, y, lambdas=9))
    >>> display.ax_.get_xlabel()
    'C'
    """

    def __init__(
        self,
        *,
        lambdas: FloatArray,
        Cs: FloatArray,
        error: FloatArray,
        se: FloatArray,
        best: int | None,
        one_se: int | None,
        label: str = "left-out error",
    ):
        self.lambdas, self.Cs, self.error, self.se = lambdas, Cs, error, se
        self.best, self.one_se, self.label = best, one_se, label

    @classmethod
    def _from_overview(cls, it: Overview) -> Self:
        g = it.best[0]
        several = f", gamma={it.gammas[g]:.3g}" if len(it.gammas) > 1 else ""
        return cls(
            lambdas=it.lambdas,
            Cs=it.Cs,
            error=it.judged[g],
            se=it.se[g] if it.score is None else np.full(len(it.Cs), np.nan),
            best=it.best[1],
            one_se=it.one_se[1] if it.one_se is not None and it.one_se[0] == g else None,
            label=it.judged_by + several,
        )

    def plot(
        self, ax: Axes | None = None, *, against: HorizontalAxis = "C", **line_options: Any
    ) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : Axes, optional
        against : {"C", "lambda"}
            The horizontal axis.  Either way C grows to the right, so that lambda falls.
        **line_options :
            For the curve, as in ``Axes.plot``.
        """
        axes = {"lambda": self.lambdas, "C": self.Cs}
        if against not in axes:
            raise InputError(f"against={against!r} is not known; use 'lambda' or 'C'")
        ax = self._place(ax)
        x, error = axes[against], self.error
        order = np.argsort(x)
        name = self.label.partition(",")[0]
        options: dict[str, Any] = {"marker": ".", "label": self.label} | line_options
        (self.line_,) = ax.plot(x[order], error[order], **options)
        self.band_ = None
        if np.isfinite(self.se).any():
            most = 1.0 if name == "left-out error" else np.inf  # a share, or in the target's unit
            low, high = np.clip([error - self.se, error + self.se], 0.0, most)
            self.band_ = ax.fill_between(
                x[order], low[order], high[order], alpha=0.25, linewidth=0,
                color=self.line_.get_color(), label="one standard error",
            )  # fmt: skip
        least = name.startswith("left-out")
        self.best_ = self._mark(
            x, self.best, "o", name.replace("left-out", "least") if least else "best"
        )
        self.one_se_ = self._mark(x, self.one_se, "s", "1-SE rule")
        ax.set(xscale="log", xlabel=against, ylabel=name)
        if against == "lambda" and not ax.xaxis_inverted():
            ax.invert_xaxis()
        ax.legend()
        return self

    def _mark(self, x: FloatArray, index: int | None, marker: str, label: str) -> Any:
        if index is None:
            return None
        (point,) = self.ax_.plot(
            x[index], self.error[index], marker, color="black", markersize=7, label=label,
            fillstyle="full" if marker == "o" else "none", zorder=3,
        )  # fmt: skip
        return point


class HeatMapDisplay(Display):
    """The left-out error (or a score) over gamma and C.

    Parameters
    ----------
    gammas, Cs : (G,), (L,)
    values : (G, L)
    best, one_se : (int, int)
        ``one_se`` may be None.
    quantity : str
        What the values are.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
    image_, colorbar_, best_, one_se_ : artists
    """

    def __init__(
        self,
        *,
        gammas: FloatArray,
        Cs: FloatArray,
        values: FloatArray,
        best: tuple[int, int],
        one_se: tuple[int, int] | None,
        quantity: str = "left-out error",
    ):
        self.gammas, self.Cs, self.values = gammas, Cs, values
        self.best, self.one_se, self.quantity = best, one_se, quantity

    @classmethod
    def _from_overview(cls, it: Overview) -> Self:
        if len(np.unique(it.gammas)) < 2 or len(np.unique(it.Cs)) < 2:
            raise InputError(
                "a heat map needs at least two values of gamma and two of C: give SVCCV a list "
                "of gammas, or from_result a list of results"
            )
        return cls(
            gammas=it.gammas, Cs=it.Cs, values=it.judged,
            best=it.best, one_se=it.one_se, quantity=it.judged_by,
        )  # fmt: skip

    def plot(self, ax: Axes | None = None, *, colorbar: bool = True, **mesh_options: Any) -> Self:
        """Draw the map; ``mesh_options`` as in ``Axes.pcolormesh``."""
        ax = self._place(ax)
        rows, columns = np.argsort(self.gammas), np.argsort(self.Cs)
        x, y = cell_edges(self.Cs[columns]), cell_edges(self.gammas[rows])
        # Good is bright in either case.
        least_is_best = self.quantity.startswith("left-out")
        options: dict[str, Any] = {"cmap": "viridis_r" if least_is_best else "viridis"}
        values = self.values[np.ix_(rows, columns)]
        self.image_ = ax.pcolormesh(x, y, values, **(options | mesh_options))
        self.colorbar_ = self.figure_.colorbar(self.image_, ax=ax) if colorbar else None
        if self.colorbar_ is not None:
            self.colorbar_.set_label(self.quantity)
        self.best_ = self._mark(self.best, "o", "best")
        self.one_se_ = self._mark(self.one_se, "s", "1-SE rule")
        ax.set(xscale="log", yscale="log", xlabel="C", ylabel="gamma")
        ax.legend()
        return self

    def _mark(self, point: tuple[int, int] | None, marker: str, label: str) -> Any:
        if point is None:
            return None
        (artist,) = self.ax_.plot(
            self.Cs[point[1]], self.gammas[point[0]], marker, markersize=8, color="white",
            markeredgecolor="black", fillstyle="full" if marker == "o" else "none", label=label,
        )  # fmt: skip
        return artist


def cell_edges(values: FloatArray) -> FloatArray:
    """Edges of cells around rising values, halfway between them on a log scale.

    Examples
    --------
    >>> cell_edges(np.array([1.0, 100.0]))
    array([1.e-01, 1.e+01, 1.e+03])
    """
    logs = np.log10(values)
    middle = 0.5 * (logs[1:] + logs[:-1])
    ends = 2 * logs[0] - middle[0], 2 * logs[-1] - middle[-1]
    edges: FloatArray = 10.0 ** np.concatenate([[ends[0]], middle, [ends[1]]])
    return edges


class LeftOutDisplay(Display):
    """The left-out decision values at the chosen point, by class.

    With more than two classes, the value of a row's own class less the largest of the others:
    negative means wrong.

    Parameters
    ----------
    values : (T,)
    truth : (T,) int
    classes : (k,)

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
    bars_ : list of artists, one a class
    boundary_ : the line at zero
    """

    def __init__(self, *, values: FloatArray, truth: NDArray[np.integer], classes: NDArray[Any]):
        self.values, self.truth, self.classes = values, truth, classes

    @classmethod
    def _from_overview(cls, it: Overview) -> Self:
        decision, margin = _need_decision(it), it.left_out.margin()
        assert margin is not None
        values = decision if decision.ndim == 1 else margin
        return cls(values=values, truth=it.left_out.truth, classes=it.classes)

    def plot(self, ax: Axes | None = None, *, bins: Any = 30, **bar_options: Any) -> Self:
        """Draw one histogram a class; ``bar_options`` as in ``Axes.hist``."""
        ax = self._place(ax)
        edges: Any = np.histogram_bin_edges(self.values, bins=bins)
        self.bars_ = []
        for k, label in enumerate(self.classes):
            options: dict[str, Any] = {"alpha": 0.6, "label": str(label)} | bar_options
            bars = ax.hist(self.values[self.truth == k], bins=edges, **options)[2]
            self.bars_.append(bars)
        self.boundary_ = ax.axvline(0.0, color="black", linewidth=1)
        binary = len(self.classes) == 2
        name = "left-out decision value" if binary else "left-out margin of a row's own class"
        ax.set(xlabel=name, ylabel="rows")
        ax.legend(title="class")
        return self


class RocDisplay(Display):
    """The ROC curve of the left-out decision values; of k classes one each, against the rest.

    Parameters
    ----------
    curves : list of (label, fpr, tpr, auc)

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
    lines_ : list of artists
    line_ : the first of them
    chance_level_ : artist
    """

    def __init__(self, *, curves: list[tuple[str, FloatArray, FloatArray, float]]):
        self.curves = curves

    @classmethod
    def _from_overview(cls, it: Overview) -> Self:
        return cls(curves=roc_curves(it))

    @property
    def roc_auc(self) -> list[float]:
        """The area under each curve."""
        return [auc for *_, auc in self.curves]

    def plot(self, ax: Axes | None = None, **line_options: Any) -> Self:
        """Draw the curves; ``line_options`` as in ``Axes.plot``."""
        ax = self._place(ax)
        self.lines_ = []
        for label, fpr, tpr, auc in self.curves:
            options: dict[str, Any] = {"label": f"{label} (AUC = {auc:.3f})"} | line_options
            self.lines_ += ax.plot(fpr, tpr, **options)
        self.line_ = self.lines_[0]
        (self.chance_level_,) = ax.plot(
            [0, 1], [0, 1], "--", color="grey", linewidth=1, label="chance"
        )
        ax.set(
            xlabel="false positive rate", ylabel="true positive rate",
            xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal",
        )  # fmt: skip
        ax.legend(loc="lower right")
        return self


def roc_curves(it: Overview) -> list[tuple[str, FloatArray, FloatArray, float]]:
    """(label, false positive rate, true positive rate, area) from the left-out values."""
    from sklearn.metrics import auc, roc_curve

    decision, truth = _need_decision(it), it.left_out.truth
    columns = {1: decision} if decision.ndim == 1 else dict(enumerate(decision.T))
    out = []
    for k, values in columns.items():
        positive = truth == k
        if positive.all() or not positive.any():
            continue
        fpr, tpr, _ = roc_curve(positive, values)
        out.append((str(it.classes[k]), fpr, tpr, float(auc(fpr, tpr))))
    if not out:
        raise InputError("the tested rows are all of one class: there is no ROC curve")
    return out


def _need_decision(it: Overview) -> FloatArray:
    if it.left_out.decision is None:
        raise InputError(
            "this plot needs the left-out decision values: cross_validate(..., output='decision') "
            "or SVCCV(..., store_cv_results=True)"
        )
    return it.left_out.decision


DISPLAYS: dict[str, type[Display]] = {
    "error": ErrorCurveDisplay,
    "heatmap": HeatMapDisplay,
    "decision": LeftOutDisplay,
    "roc": RocDisplay,
}
OF_NUMBERS: dict[str, type[Display]] = {
    "decision": PredictedDisplay,
    "residuals": ResidualDisplay,
}


def draw(
    source: Source, kind: PlotKind = "error", *, ax: Axes | None = None, **options: Any
) -> Any:
    """The display of one kind, drawn; ``source`` as in ``overview``."""
    if not isinstance(kind, str):
        raise InputTypeError(f"kind={kind!r} is not a name; axes are given as plot(ax=...)")
    known = DISPLAYS | OF_NUMBERS
    if kind not in known:
        raise InputError(f"kind={kind!r} is not known; use one of {', '.join(map(repr, known))}")
    it = overview(source)
    if it.numbers is None:
        if kind not in DISPLAYS:
            raise InputError(f"kind={kind!r} is a plot of numbers, and the result is of classes")
        return DISPLAYS[kind].from_result(it, ax=ax, **options)
    if kind == "roc":
        raise InputError("kind='roc' is a plot of classes, and the result is of numbers")
    return (OF_NUMBERS.get(kind) or DISPLAYS[kind]).from_result(it, ax=ax, **options)
