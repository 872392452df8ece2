"""What came out of ``error_path``: the number of left-out errors as a function of C."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputError, InputTypeError
from ..judge.certificate import Certificate
from ..report.words import paragraph
from ..runtime.frozen import freeze
from ..types import FloatArray, IntArray
from .every_c import Errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..report.steps_plot import StepsDisplay

__all__ = ["ErrorPath", "path_of"]

GRID = 50  # points of the grid that the path is compared with
EQUAL = 12  # decimals to which errors are the same: weights add up with some rounding


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ErrorPath:
    """The cross-validated error at every C: a step function with B steps.

    Attributes
    ----------
    C_range : (float, float)
        From where to where.
    breakpoints : (B,)
        The C at which the number of errors changes, rising.
    n_errors : (B + 1,)
        Left-out errors between them: ``n_errors[k]`` holds from ``breakpoints[k - 1]`` to
        ``breakpoints[k]``.
    error : (B + 1,)
        The same as a share of the tests (where ``SVCCV`` counts by sample weight, of their weight).
    best : (m, 2)
        All intervals of C at which the error is least.
    n_tests : int
        (row, fold) pairs that are tested: n in leave-one-out.
    changed_at, changed_row, changed_wrong : (E,)
        Every change of a single left-out label: at which C, of which row, and whether it is wrong
        from there on.  Where one row becomes right as another becomes wrong, the number stays.
    classes : ndarray
    kernel : str
    gamma : float or None
    certificate : Certificate
        Figures of ``n_errors``: the worst KKT violation and duality gap of the solutions from which
        each step follows, those at the ends of the stretches of C between which nothing changes.
    stats, timings : dict
    """

    C_range: tuple[float, float]
    breakpoints: FloatArray
    n_errors: IntArray
    error: FloatArray
    n_tests: int
    changed_at: FloatArray
    changed_row: IntArray
    changed_wrong: NDArray[np.bool_]
    classes: NDArray[Any]
    kernel: str
    gamma: float | None
    certificate: Certificate
    stats: dict[str, int]
    timings: dict[str, float]

    def __post_init__(self) -> None:
        freeze(self)

    @property
    def edges(self) -> FloatArray:
        """(B + 2,): the breakpoints with both ends of the range."""
        low, high = self.C_range
        return np.concatenate([[low], self.breakpoints, [high]])

    @cached_property
    def best(self) -> FloatArray:
        """(m, 2): all intervals of C at which the error is least."""
        least = np.round(self.error, EQUAL)
        which = np.flatnonzero(least == least.min())
        edges = self.edges
        return np.column_stack([edges[which], edges[which + 1]])

    @property
    def best_C(self) -> float:
        """The middle, on the logarithmic scale, of the widest interval in ``best``.

        Of equally wide ones the first; an interval that ends at an end of ``C_range`` may go on.
        """
        low, high = self.best.T
        return float(np.sqrt((low * high)[np.argmax(np.round(np.log(high / low), EQUAL))]))

    def at(self, C: Any) -> Any:
        """The number of left-out errors at C, a number or an array of them.

        At a breakpoint itself what holds above it is given.
        """
        try:
            Cs = np.asarray(C, dtype=float)
        except (TypeError, ValueError) as error:
            raise InputTypeError(f"C must be a number or an array of numbers, got {C!r}") from error
        low, high = self.C_range
        if not ((Cs >= low) & (Cs <= high)).all():
            raise InputError(
                f"C must lie in the range of this path, {low:g} to {high:g}; got {C!r}"
            )
        found = self.n_errors[np.searchsorted(self.breakpoints, Cs, side="right")]
        return int(found) if Cs.ndim == 0 else found

    def missed(self, Cs: Any = GRID) -> tuple[int, int]:
        """The least number of errors on a grid, and the least there is.

        ``Cs`` are the points, or how many there are, log-uniform in the range.
        """
        grid = self._grid(Cs)
        return int(np.min(self.at(grid))), int(self.n_errors.min())

    def _grid(self, Cs: Any) -> FloatArray:
        if np.ndim(Cs) == 0:
            low, high = self.C_range
            grid = np.geomspace(low, high, int(Cs))
            grid[[0, -1]] = low, high
            return grid
        return np.asarray(Cs, dtype=float)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each interval of C."""
        import pandas as pd

        edges = self.edges
        return pd.DataFrame(
            {
                "C_from": edges[:-1],
                "C_to": edges[1:],
                "n_errors": self.n_errors,
                "error": self.error,
                "kkt": self.certificate.kkt,
                "gap": self.certificate.gap,
            }
        )

    def summary(self) -> str:
        """The result in words."""
        low, high = self.C_range
        on_grid, least = self.missed()
        found = f"{self.n_tests} tests, {len(self.breakpoints)} values of C at which errors change"
        grid = f"{GRID} values of C find {on_grid} errors"
        grid += ": they miss the least" if on_grid > least else ", the least as well"
        kernel = self.kernel if self.gamma is None else f"{self.kernel}, gamma={self.gamma:.4g}"
        return "\n".join(
            [
                paragraph("every C", f"from {low:g} to {high:g}; {kernel}; {found}"),
                paragraph(
                    "least error",
                    f"{self.error.min():.4g} ({least} of {self.n_tests}) for {self._intervals()}",
                ),
                paragraph("on a grid", grid),
                paragraph("certificate", str(self.certificate)),
            ]
        )

    def _intervals(self) -> str:
        shown = [f"C from {a:.6g} to {b:.6g}" for a, b in self.best[:3]]
        more = len(self.best) - len(shown)
        rest = f" and {more} more interval{'s' if more > 1 else ''}" if more > 0 else ""
        return ", ".join(shown) + rest

    def __repr__(self) -> str:
        return (
            f"ErrorPath({len(self.breakpoints)} breakpoints, least error {self.error.min():.4g}, "
            f"{'exact' if self.certificate.exact else 'NOT exact'})"
        )

    def plot(self, ax: Axes | None = None, Cs: Any = GRID) -> StepsDisplay:
        """The steps, beside a grid and what it missed.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        Cs : int or array-like
            The grid: its points, or how many there are; 0 for none.

        Returns
        -------
        StepsDisplay
            With ``ax_`` and ``figure_``.
        """
        from ..report.steps_plot import StepsDisplay

        grid = self._grid(Cs) if np.ndim(Cs) or Cs else np.zeros(0)
        points = np.asarray(self.at(grid)) if len(grid) else np.zeros(0, dtype=int)
        return StepsDisplay(
            edges=self.edges,
            counts=self.n_errors,
            best=self.best,
            grid=grid,
            on_grid=points,
        ).plot(ax)


def path_of(
    errors: Errors,
    rows: IntArray,
    tol: float,
    convex: bool,
    weight: FloatArray | None = None,
    **facts: Any,
) -> ErrorPath:
    """The step function from what was found.

    ``rows`` are the user's numbers of the rows that are tested, ``weight`` what each test counts.
    """
    wrong, marks = errors.wrong.copy(), np.empty(len(errors.Cs), dtype=bool)
    weight = np.ones(len(wrong)) if weight is None else weight
    count, total = int(wrong.sum()), float(weight @ wrong)
    breakpoints, counts, sums = list[float](), [count], [total]
    for k, (C, test) in enumerate(zip(errors.Cs.tolist(), errors.tests.tolist(), strict=True)):
        wrong[test] = marks[k] = not wrong[test]
        sign = 1 if wrong[test] else -1
        count, total = count + sign, total + sign * weight[test]
        if k + 1 < len(errors.Cs) and errors.Cs[k + 1] == C:
            continue
        if count != counts[-1] or abs(total - sums[-1]) > 1e-12 * weight.sum():
            breakpoints.append(C)
            counts.append(count)
            sums.append(total)
    steps = np.array(breakpoints)
    return ErrorPath(
        C_range=(errors.low, errors.high),
        breakpoints=steps,
        n_errors=np.array(counts),
        error=np.array(sums) / weight.sum(),
        n_tests=len(wrong),
        changed_at=errors.Cs,
        changed_row=rows[errors.tests],
        changed_wrong=marks,
        certificate=_certificate(errors, steps, tol, convex),
        stats=errors.stats,
        **facts,
    )


def _certificate(errors: Errors, steps: FloatArray, tol: float, convex: bool) -> Certificate:
    """The worst figures of the solutions in each interval, and of the nearest on either side."""
    C, fold, kkt, gap = errors.solved.T
    order = np.argsort(C, kind="stable")
    C, fold, kkt, gap = C[order], fold[order], kkt[order], gap[order]
    kkt, gap = np.nan_to_num(kkt, nan=np.inf), np.nan_to_num(gap, nan=np.inf)
    edges = np.concatenate([[errors.low], steps, [errors.high]])
    first = np.maximum(np.searchsorted(C, edges[:-1], side="right") - 1, 0)
    last = np.minimum(np.searchsorted(C, edges[1:]), len(C) - 1)
    worst = [
        np.array([one[a : b + 1].max() for a, b in zip(first, last, strict=True)])
        for one in (kkt, gap)
    ]
    unresolved = {
        (int(np.searchsorted(steps, C[k])), int(fold[k]))
        for k in np.flatnonzero(~((kkt <= tol) & (gap <= tol)))
    }
    unresolved |= {(int(np.searchsorted(steps, a)), number) for a, _, number in errors.unresolved}
    exact = convex and not unresolved
    return Certificate(worst[0], worst[1], exact, sorted(unresolved), tol, convex)
