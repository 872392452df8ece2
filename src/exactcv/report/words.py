"""A cross-validation in words: what was chosen, how sure it is, and what would mislead."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from .overview import Overview, Source, overview

__all__ = ["Remark", "curve_table", "every_c_text", "remarks", "summary"]

WIDTH = 96
INDENT = 13

# How a fold was settled, in words; the order is that of the lines.
SETTLED = {
    "unchanged": "unchanged (the row left out had no coefficient)",
    "bound": "proved by a bound",
    "solved": "solved",
    "fallback": "solved by the fallback solver",
    "missing": "missing",
}


RemarkKind: TypeAlias = Literal[
    "unresolved", "not_convex", "edge_C", "edge_gamma", "upside_down", "majority", "chance"
]


@dataclass(frozen=True)
class Remark:
    """One thing by which a reader would be misled."""

    kind: RemarkKind
    text: str


def summary(source: Source) -> str:
    """What was chosen, how sure it is, what it cost, and what to look out for."""
    it = overview(source)
    lines = [heading(it) + "."]
    lines += [paragraph(label, text) for label, text in _parts(it)]
    lines += [paragraph("warning", remark.text) for remark in remarks(it)]
    return "\n".join(lines)


def heading(it: Overview) -> str:
    """The kind of run in one line."""
    scheme = "Leave-one-out" if it.leave_one_out else "Cross-validation"
    n_gammas, n_points = len(np.unique(it.gammas)), len(it.Cs)
    points = "grid point" if n_points == 1 else "grid points"
    grid = f"{n_points} {points}" if n_gammas == 1 else f"{n_points} values of C"
    gammas = "" if n_gammas == 1 else f" and {n_gammas} of gamma"
    if it.every_c is not None:
        grid = every_c_text(it.every_c)
    classes = "" if len(it.classes) <= 2 else f", {len(it.classes)} classes (one against one)"
    if it.parameter is not None and len(np.unique(it.parameter[1])) > 1:
        gammas += f", {len(np.unique(it.parameter[1]))} of {it.parameter[0]}"
    approx = "" if it.approx is None else f", approximate kernel ({it.approx})"
    return (
        f"{scheme} over {grid}{gammas}, {it.n_folds} folds{classes}, method {it.method!r}{approx}"
    )


def _parts(it: Overview) -> list[tuple[str, str]]:
    least = "least error" if it.numbers is None else "least loss"
    first = least if it.score is None else "best score"
    parts = [(first, _point(it, it.best))]
    if it.one_se is not None:
        parts.append(("1-SE rule", _one_se(it, it.one_se)))
    if it.chosen not in (it.best, it.one_se):
        parts.append(("taken", _point(it, it.chosen)))
    if it.error.size > 1 or it.every_c is not None:
        parts.append(("corrected", corrected_text(it)))
    if it.nested is not None:
        parts.append(("nested", it.nested.short()))
    if it.grown:
        parts.append(("grid", it.grown))
    parts.append(("certificate", certificate_text(it)))
    if it.settled:
        parts.append(("folds", settled_text(it)))
    if "total" in it.timings:
        parts.append(("time", timing_text(it)))
    return parts


def paragraph(label: str, text: str) -> str:
    """A label, and the text beside it."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=f"{label + ':':<{INDENT}}",
        subsequent_indent=" " * INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def where(it: Overview, point: tuple[int, int]) -> str:
    """C, lambda and gamma of a point of the grid."""
    g, l = point
    gamma = it.gammas[g]
    tail = "" if np.isnan(gamma) else f", gamma={gamma:.4g}"
    if it.parameter is not None:
        tail += f", {it.parameter[0]}={it.parameter[1][g]:.4g}"
    return f"C={it.Cs[l]:.4g} (lambda={it.lambdas[l]:.4g}{tail})"


def _figures(it: Overview, point: tuple[int, int]) -> str:
    if it.numbers is not None:
        own = it.numbers
        figures = f"MAE {own.mae:.4g}, RMSE {own.rmse:.4g}, R2 {own.r2:.4f}; "
        return (
            f"{it.error[point]:.4g} ({figures if point == it.chosen else ''}{interval(it, point)})"
        )
    counts = f"{it.n_errors[point]} of {it.n_tested} wrong"
    return f"{it.error[point]:.4f} ({counts}; {interval(it, point)})"


def interval(it: Overview, point: tuple[int, int]) -> str:
    """How sure the error at a point is, in words."""
    low, high = it.interval
    digits = ".4f" if it.numbers is None else ".4g"
    return f"95% interval {low[point]:{digits}} to {high[point]:{digits}}"


def _point(it: Overview, point: tuple[int, int]) -> str:
    if it.score is None:
        return f"{_figures(it, point)} at {where(it, point)}"
    score = f"{it.scoring_name} {it.score[point]:.4f}"
    what = "error" if it.numbers is None else f"{it.loss.replace('_', '-')} loss"
    return f"{score} at {where(it, point)}; left-out {what} {_figures(it, point)}"


def _one_se(it: Overview, point: tuple[int, int]) -> str:
    if point == it.best:
        return "the same point: no smaller C is within one standard error of it"
    return f"{_point(it, point)}, the smallest C within one standard error of the best"


def every_c_text(of: tuple[float, float, int]) -> str:
    """Of what the point is the best, if it is of every C (`Overview.every_c`)."""
    low, high, n_kernels = of
    gammas = "" if n_kernels == 1 else f" with {n_kernels} values of gamma"
    return f"every C from {low:.4g} to {high:.4g}{gammas}"


def corrected_text(it: Overview) -> str:
    """What the choice of the point has gained, in words."""
    best = "least error" if it.numbers is None else "least loss"
    best = best if it.score is None else "best score"
    if it.every_c is not None:
        return (
            f"the {best} is the best of {every_c_text(it.every_c)}, and so too good by what the "
            "choice gained; nested_cross_validate on a grid tells how much"
        )
    why = f"the {best} is the best of {it.error.size}, and so too good by what the choice gained"
    if it.corrected is None:
        return f"{why}; corrected(), corrected_score_ or nested_cross_validate tell how much"
    value, low, high = it.corrected
    what = ("error" if it.numbers is None else "loss") if it.score is None else it.scoring_name
    digits = ".4f" if it.numbers is None else ".4g"
    return (
        f"{what} after tuning {value:{digits}} (95% interval {low:{digits}} to {high:{digits}}): "
        f"{why}; here the "
        "choice is repeated on bootstrap samples and judged by the rows outside them"
    )


def certificate_text(it: Overview) -> str:
    """The worst residual and gap, and whether all is exact."""
    verdict = "exact"
    if it.unresolved:
        verdict = f"NOT exact, {it.unresolved} solutions miss the tolerance"
    elif not it.exact:
        verdict = "NOT exact"
    if not it.convex:
        verdict += ", stationary points only (K is not positive semidefinite)"
    return (
        f"{verdict}: KKT violation at most {_largest(it.kkt):.1e}, duality gap at most "
        f"{_largest(it.gap):.1e} (tolerance {it.tol:.0e}), computed afresh from the coefficients"
    )


def _largest(values: np.ndarray) -> float:
    return float(np.fmax.reduce(values, axis=None))


def settled_text(it: Overview) -> str:
    """How many folds were settled in which way."""
    total = sum(it.settled.values())
    shown = [
        f"{it.settled[name]} ({it.settled[name] / max(total, 1):.0%}) {words}"
        for name, words in SETTLED.items()
        if it.settled.get(name)
    ]
    return f"of {total} fits of a fold at a grid point, " + ", ".join(shown or ["none was settled"])


def timing_text(it: Overview) -> str:
    """Seconds, and where they went."""
    parts = ", ".join(f"{k} {v:.3f}" for k, v in it.timings.items() if k != "total")
    return f"{it.timings['total']:.3f} s" + (f" ({parts})" if parts else "")


# ---- what would mislead --------------------------------------------------------------------------


def remarks(source: Source) -> list[Remark]:
    """Plain warnings, each only where it applies."""
    it = overview(source)
    found: list[tuple[RemarkKind, str]] = [
        ("unresolved", _unresolved(it)),
        ("not_convex", _not_convex(it)),
        ("edge_C", _edge_C(it)),
        ("edge_gamma", _edge_gamma(it)),
    ]
    if it.numbers is not None:
        found.append(("chance", _no_better_than_mean(it)))
    else:
        found += [
            ("upside_down", _upside_down(it)),
            ("majority", _majority(it)),
            ("chance", _chance(it)),
        ]
    return [Remark(kind, text) for kind, text in found if text]


def _unresolved(it: Overview) -> str:
    if not it.unresolved:
        return ""
    return (
        f"{it.unresolved} solutions miss the tolerance, so the errors there are not proved; see "
        "certificate.unresolved for which. They are mostly those of the largest C: standardise "
        "the features, leave out the largest C, or compare with method='refit'."
    )


def _not_convex(it: Overview) -> str:
    if it.convex:
        return ""
    return (
        "the kernel matrix is not positive semidefinite, so a fold may have several local "
        "solutions and the left-out errors belong to the ones that were found."
    )


def _edge_C(it: Overview) -> str:
    C, least, most = it.Cs[it.best[1]], it.Cs.min(), it.Cs.max()
    if least == most or least < C < most or _perfect(it) or it.level_edge:
        return ""
    if least == C and _no_better_than_majority(it):
        return ""  # the reason is another: there only the intercept is left
    end, way, other = ("smallest", "smaller", "larger")
    if most == C:
        end, way, other = ("largest", "larger", "smaller")
    return (
        f"the best point is at the {end} C of the grid (C={C:.4g}); a better one may lie beyond: "
        f"extend the grid to {way} C, that is {other} lambda."
    )


def _edge_gamma(it: Overview) -> str:
    gammas = it.gammas
    if it.level_edge:
        return ""
    if len(gammas) < 2 or np.isnan(gammas).any() or gammas.min() == gammas.max() or _perfect(it):
        return ""
    gamma = gammas[it.best[0]]
    if gamma not in (gammas.min(), gammas.max()):
        return ""
    if gamma == gammas.min() and _no_better_than_majority(it):
        return ""  # as at the edge of C
    end, way = ("smallest", "smaller") if gamma == gammas.min() else ("largest", "larger")
    return (
        f"the best point is at the {end} gamma of the grid (gamma={gamma:.4g}); a better one may "
        f"lie beyond: extend the grid to {way} gamma."
    )


def _perfect(it: Overview) -> bool:
    """Nothing can be better than no error at all."""
    return it.score is None and float(it.error[it.best]) == 0.0


def _upside_down(it: Overview) -> str:
    """Worse than guessing, with nearly all coefficients at their bounds."""
    guessing = 1.0 - 1.0 / len(it.classes)
    here = (it.at_bound > 0.9) & (it.error > guessing)
    if not (it.fit_intercept and here.any()):
        return ""
    lambdas = np.broadcast_to(it.lambdas, here.shape)[here]
    what = "a row out" if it.leave_one_out else "rows out"
    own = "its own class the minority" if it.leave_one_out else "their own class the minority"
    taken = " The chosen point is one of them: take a smaller lambda." if here[it.chosen] else ""
    return (
        f"at {int(here.sum())} grid points (lambda >= {lambdas.min():.3g}) nearly every "
        f"coefficient sits at its bound C and the left-out error reaches "
        f"{it.error[here].max():.0%}. This is the true error, not a fault of the computation: "
        "regularisation is so strong that the intercept alone decides, in favour of the larger "
        f"class, and leaving {what} of balanced classes makes {own}, so that it is predicted "
        f"wrong. It ends where lambda is small enough for the kernel to matter.{taken}"
    )


def no_better_than_chance(it: Overview) -> bool:
    """Is the best point no better than predictions that tell nothing of the class?"""
    if it.score is not None:
        return it.chance is not None and bool(it.score[it.best] <= it.chance + 1e-12)
    return _no_better_than_majority(it)


def _no_better_than_mean(it: Overview) -> str:
    """Left-out predictions that are worse than none, of a loss that is about the middle."""
    assert it.numbers is not None
    least, most = it.numbers.truth.min(), it.numbers.truth.max()
    if least == most and len(it.numbers.truth) > 1:
        return (
            f"y is {least:.6g} in every tested row: there is nothing to learn, and R2 says nothing."
        )
    if not it.numbers.r2 <= 0.0 or it.loss == "pinball":
        return ""
    return (
        f"the left-out predictions explain nothing (R2 {it.numbers.r2:.4f}): always predicting the "
        "mean would be as good. The features or the kernel may carry no signal."
    )


def _no_better_than_majority(it: Overview) -> bool:
    if it.numbers is not None:
        return False
    shares = it.class_shares
    several = np.count_nonzero(shares) > 1
    best = shares.max() if it.chance is None or it.score is not None else it.chance
    return bool(several and it.error[it.best] >= 1.0 - best - 1e-12)


def _chance(it: Overview) -> str:
    if it.score is None or not no_better_than_chance(it):
        return ""
    return (
        f"the best {it.scoring_name}, {it.score[it.best]:.4f}, is no better than chance: "
        "predictions that are the same for every row, and so tell nothing of the class, have "
        f"{it.chance:.4f}. The features or the kernel may carry no signal."
    )


def _majority(it: Overview) -> str:
    # Who maximises something else has asked for more errors.
    if it.score is not None or not _no_better_than_majority(it):
        return ""
    shares, left_out = it.class_shares, it.left_out
    common = int(shares.argmax())
    rare = left_out.truth != common
    found = int((left_out.predicted == left_out.truth)[rare].sum())
    advice = (
        "The features or the kernel may carry no signal."
        if not found
        else "If they are what matters, judge by another score (SVCCV's scoring) and the ROC curve."
    )
    return (
        f"the least error, {it.error[it.best]:.4f}, is no better than always predicting the "
        f"commonest class, {it.classes[common]!s} ({1.0 - shares[common]:.4f}); of the other rows "
        f"{found} of {int(rare.sum())} are recognised. {advice} class_weight='balanced' makes "
        "rare classes count as much as common ones."
    )


def curve_table(source: Source, n_rows: int = 13, width: int = 30) -> str:
    """An excerpt of the grid at the chosen gamma, always with the chosen points, with bars."""
    it = overview(source)
    g = it.chosen[0]
    even = np.linspace(0, len(it.Cs) - 1, min(n_rows, len(it.Cs))).round().astype(int)
    named = {"best": it.best, "1-SE": it.one_se, "taken": it.chosen}
    if it.chosen in (it.best, it.one_se):
        del named["taken"]
    points = [point for point in named.values() if point is not None and point[0] == g]
    shown = np.unique(np.append(even, [l for _, l in points]))
    top = max(float(it.error[g].max()), 1e-12)
    low, high = it.interval
    counts = it.numbers is None
    wide, digits = (7, ".4f") if counts else (10, ".4g")
    head = f"{'error' if counts else 'loss':>{wide}} {'95% interval':>{2 * wide + 2}}"
    lines = [f"{'lambda':>10} {'C':>10} {head}" + (f" {'wrong':>6}" if counts else "")]
    for l in shown:
        bar = "#" * round(width * float(it.error[g, l]) / top)
        marks = [name for name, at in named.items() if at == (g, l)]
        lines.append(
            f"{it.lambdas[l]:>10.4g} {it.Cs[l]:>10.4g} {it.error[g, l]:>{wide}{digits}} "
            + f"{low[g, l]:>{wide}{digits}}, {high[g, l]:<{wide}{digits}}".rstrip().ljust(
                2 * wide + 2
            )
            + (f" {it.n_errors[g, l]:>6d}" if counts else "")
            + f"  {bar:<{width}} "
            f"{', '.join(marks)}"
        )
    if len(shown) < len(it.Cs):
        lines.append(f"({len(shown)} of the {len(it.Cs)} grid points)")
    return "\n".join(line.rstrip() for line in lines)
