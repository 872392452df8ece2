"""A result in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .ledger import HOW

if TYPE_CHECKING:
    from .result import CVResult

__all__ = ["certificate_line", "curve_table", "remarks", "settled_line", "summary"]


def summary(result: CVResult) -> str:
    """What was chosen, how sure it is, what it cost, and what to look out for."""
    scheme = "Leave-one-out" if result.leave_one_out else "Cross-validation"
    lines = [
        f"{scheme} over {len(result.Cs)} grid points, {result.fold_error.shape[1]} folds, "
        f"method {result.method!r}" + _kernel_note(result),
        _point_line(result, "least error", result.best),
        _point_line(result, "1-SE rule", result.one_se),
        certificate_line(result),
        settled_line(result),
        timing_line(result),
    ]
    return "\n".join(lines + [f"note: {text}" for text in remarks(result)])


def _kernel_note(result: CVResult) -> str:
    if result.approx is None or result.feature_map is None:
        return ""
    m = result.feature_map.n_components
    return f", approximate kernel ({result.approx}, {m} components)"


def _point_line(result: CVResult, name: str, index: int) -> str:
    return (
        f"{name + ':':<13}lambda={result.lambdas[index]:.4g} (C={result.Cs[index]:.4g}), "
        f"error {result.error[index]:.4f} +- {result.se[index]:.4f} "
        f"({result.n_errors[index]} of {len(result.test_row)})"
    )


def certificate_line(result: CVResult) -> str:
    """The worst residual and gap, and whether all is exact."""
    certificate = result.certificate
    verdict = "exact" if certificate.exact else f"NOT exact, {len(certificate.unresolved)} short"
    if not certificate.convex:
        verdict += ", stationary points only (K is not positive semidefinite)"
    return (
        f"{'certificate:':<13}{verdict}: KKT violation {_largest(certificate.kkt):.1e}, duality "
        f"gap {_largest(certificate.gap):.1e} (tolerance {certificate.tol:.0e})"
    )


def _largest(values: np.ndarray) -> float:
    return float(np.fmax.reduce(values))


def settled_line(result: CVResult) -> str:
    """How many folds were settled in which way."""
    counts = {name: result.stats[name] for name in HOW if name != "missing" or result.stats[name]}
    total = max(sum(counts.values()), 1)
    shown = ", ".join(f"{name} {count} ({count / total:.0%})" for name, count in counts.items())
    return f"{'folds:':<13}{shown}"


def timing_line(result: CVResult) -> str:
    parts = ", ".join(f"{k} {v:.3f}" for k, v in result.timings.items() if k != "total")
    return f"{'time:':<13}{result.timings['total']:.3f} s ({parts})"


def remarks(result: CVResult) -> list[str]:
    """Plain warnings about the curve."""
    found = []
    if result.certificate.unresolved:
        found.append(
            f"{len(result.certificate.unresolved)} solutions miss the tolerance; see "
            "result.certificate.unresolved, and compare with method='refit'."
        )
    chosen, low, high = result.Cs[result.best], result.Cs.min(), result.Cs.max()
    if low < high and chosen in (low, high):
        end, way = ("smallest", "larger") if chosen == low else ("largest", "smaller")
        found.append(
            f"the least error is at the {end} C of the grid; a better value may lie beyond: "
            f"extend the grid towards {way} lambda."
        )
    upside_down = (result.at_bound > 0.9) & (result.error > 0.5)
    if result.leave_one_out and result.fit_intercept and upside_down.any():
        found.append(
            f"at {int(upside_down.sum())} grid points (lambda >= "
            f"{result.lambdas[upside_down].min():.3g}) nearly every coefficient is at its bound "
            f"and the left-out error reaches {result.error[upside_down].max():.0%}. This is no "
            "fault of the computation: regularisation is so strong that the intercept alone "
            "decides, and leaving a row out of balanced classes makes its own class the minority."
        )
    return found


def curve_table(result: CVResult, n_rows: int = 13, width: int = 30) -> str:
    """An excerpt of the grid, always with the chosen points, and the error as bars."""
    even = np.linspace(0, len(result.Cs) - 1, min(n_rows, len(result.Cs))).round().astype(int)
    chosen = np.unique(np.append(even, [result.best, result.one_se]))
    top = max(float(result.error.max()), 1e-12)
    lines = [f"{'lambda':>10} {'C':>10} {'error':>7} {'+- se':>7} {'wrong':>6}"]
    for k in chosen:
        bar = "#" * round(width * float(result.error[k]) / top)
        marks = [name for name, at in (("best", result.best), ("1-SE", result.one_se)) if at == k]
        lines.append(
            f"{result.lambdas[k]:>10.4g} {result.Cs[k]:>10.4g} {result.error[k]:>7.4f} "
            f"{result.se[k]:>7.4f} {result.n_errors[k]:>6d}  {bar:<{width}} {', '.join(marks)}"
        )
    if len(chosen) < len(result.Cs):
        lines.append(f"({len(chosen)} of the {len(result.Cs)} grid points)")
    return "\n".join(line.rstrip() for line in lines)
