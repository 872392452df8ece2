"""``report.html``: a cross-validation as one page that needs nothing else.

No network, no scripts: charts are SVG in the page, colours follow the reader's light or dark mode,
and everything that comes from the user is escaped (``markup.py``).  The page is a function
of a ``Page`` alone, and has no date in it: the same result gives the same file, byte for byte, but
for the seconds it took.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ...exceptions import InputError
from ...types import FilePath
from .. import words as report
from ..methods_text import methods_text
from ..overview import Overview, Source, overview
from ..plots import roc_curves
from . import charts, number_charts
from .markup import Markup, tag

__all__ = ["Page", "render", "write_html"]

MOST_SUSPICIOUS = 20
MOST_CLASSES = 20  # in the confusion matrix


@dataclass(frozen=True, kw_only=True)
class Page:
    """What the report shows.

    Attributes
    ----------
    overview : Overview
    title : str
    facts : mapping
        About the data: file, target, rows, how features were prepared; name to text.
    row_names : sequence or None
        How the rows are called; their numbers, from 0, if not given.
    code : str or None
        Code that gives the same result; worked out from the overview if not given.
    """

    overview: Overview
    title: str = "Cross-validation report"
    facts: Mapping[str, Any] = field(default_factory=dict)
    row_names: Sequence[Any] | None = None
    code: str | None = None


def write_html(
    source: Source,
    path: FilePath,
    *,
    title: str = "Cross-validation report",
    facts: Mapping[str, Any] | None = None,
    row_names: Sequence[Any] | None = None,
    code: str | None = None,
) -> Path:
    """Write the report of a result, a list of results (one a gamma) or a fitted estimator.

    Parameters
    ----------
    source : CVResult, list of CVResult, or fitted SVCCV
    path : path of the file; it is replaced if it exists
    title, facts, row_names, code :
        See ``Page``.

    Examples
    --------
    >>> import exactcv, tempfile, pathlib
    >>> X, y = exactcv.datasets.make_mixture(40, 4, random_state=0)
    >>> result = exactcv.cross_validate(X, y, lambdas=9, output="decision")
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> exactcv.write_html(result, folder / "report.html", title="A mixture").name
    'report.html'
    """
    it = overview(source)
    if row_names is not None and len(row_names) != it.n_rows:
        raise InputError(f"row_names has {len(row_names)} entries for {it.n_rows} rows")
    page = Page(overview=it, title=title, facts=facts or {}, row_names=row_names, code=code)
    target = Path(path)
    target.write_text(render(page), encoding="utf-8")
    return target


def render(page: Page) -> str:
    """The page as text."""
    it = page.overview
    style = resources.files("exactcv").joinpath("report/html/style.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", page.title),
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(style)),
    )
    main = tag(
        "main",
        tag("h1", page.title),
        tag("p", report.heading(it), ".", cls="soft"),
        _figures(it),
        [tag("p", tag("b", "Note: "), r.text, cls="warning") for r in report.remarks(it)],
        tag("div", _curve(it), _map(it), *_of_left_out(it), _certificate(it), cls="grid-2"),
        _far_off(page) if it.numbers is not None else _suspicious(page),
        _how(page),
        _for_a_paper(it),
        _reproduce(page),
        tag("footer", f"Made by exactcv {version('exactcv')}."),
    )  # fmt: skip
    return "<!DOCTYPE html>\n" + tag("html", head, tag("body", main), lang="en") + "\n"


# ---- parts ---------------------------------------------------------------------------------------


def _of_left_out(it: Overview) -> list[Markup | None]:
    """What became of the left-out rows."""
    if it.numbers is None:
        return [_values(it), _roc(it), _confusion(it)]
    return [
        _card("Left-out predictions", number_charts.predicted(it.numbers)),
        _card("Left-out residuals", number_charts.residuals(it.numbers)),
    ]


def _far_off(page: Page, most: int = 15) -> Markup:
    """The rows with the largest left-out residuals."""
    it = page.overview
    assert it.numbers is not None
    order = np.argsort(-np.abs(it.numbers.residual), kind="stable")[:most]
    rows = [
        (
            _row_name(page, int(it.left_out.row[t])),
            f"observed {it.numbers.truth[t]:.6g}, predicted {it.numbers.predicted[t]:.6g}, "
            f"residual {it.numbers.residual[t]:.6g}",
        )
        for t in order
    ]
    return _card("Rows that are far off", _table(rows), cls="card wide")


def _figures(it: Overview) -> Markup:
    """The numbers that matter most."""
    g, l = it.chosen
    if it.numbers is not None:
        return _figures_of_numbers(it)
    doubt = "short" if report.no_better_than_chance(it) else ""
    of_error = f"left-out error, {report.interval(it, it.chosen)}"
    shown = [("" if it.score is not None else doubt, f"{it.error[g, l]:.4f}", of_error)]
    if it.score is not None:
        shown.insert(0, (doubt, f"{it.score[g, l]:.4f}", str(it.scoring)))
    if it.corrected is not None:
        value, low, high = it.corrected
        what = "error" if it.score is None else it.scoring
        of_it = f"{what} after tuning (corrected for the choice), 95% {low:.4f} to {high:.4f}"
        shown.append(("", f"{value:.4f}", of_it))
    shown.append(("", f"{it.n_errors[g, l]} of {it.n_tested}", "left-out rows wrong"))
    shown.append(("", f"{it.Cs[l]:.4g}", "C"))
    shown.append(("", f"{it.lambdas[l]:.4g}", "lambda"))
    if not np.isnan(it.gammas[g]):
        shown.append(("", f"{it.gammas[g]:.4g}", "gamma"))
    areas = _areas(it)
    if len(areas) == 1:
        shown.append(("", f"{areas[0]:.4f}", "left-out AUC"))
    shown.append(("exact", "exact", "certificate") if it.exact else ("short", "NOT exact", ""))
    cells = [
        tag("div", tag("b", v), tag("span", n), cls=f"figure {c}".strip()) for c, v, n in shown
    ]
    return tag("div", cells, cls="figures")


def _figures_of_numbers(it: Overview) -> Markup:
    g, l = it.chosen
    assert it.numbers is not None
    doubt = "short" if it.numbers.r2 <= 0.0 and it.loss != "pinball" else ""
    shown = [
        (doubt, f"{it.numbers.r2:.4f}", "left-out R2"),
        ("", f"{it.numbers.mae:.4g}", "left-out mean absolute error"),
        ("", f"{it.numbers.rmse:.4g}", "left-out root mean squared error"),
        ("", f"{it.error[g, l]:.4g}", f"left-out loss, {report.interval(it, it.chosen)}"),
        ("", f"{it.Cs[l]:.4g}", "C"),
    ]
    if not np.isnan(it.gammas[g]):
        shown.append(("", f"{it.gammas[g]:.4g}", "gamma"))
    if it.parameter is not None:
        shown.append(("", f"{it.parameter[1][g]:.4g}", it.parameter[0]))
    shown.append(("exact", "exact", "certificate") if it.exact else ("short", "NOT exact", ""))
    cells = [
        tag("div", tag("b", v), tag("span", n), cls=f"figure {c}".strip()) for c, v, n in shown
    ]
    return tag("div", cells, cls="figures")


def _areas(it: Overview) -> list[float]:
    if it.left_out.decision is None or np.count_nonzero(it.class_shares) < 2:
        return []
    return [area for *_, area in roc_curves(it)]


def _card(title: str, *content: Any, cls: str = "card") -> Markup:
    return tag("section", tag("h2", title), *content, cls=cls)


def _curve(it: Overview) -> Markup:
    several = ""
    for name, values in [("gamma", it.gammas), *([] if it.parameter is None else [it.parameter])]:
        if len(np.unique(values)) > 1:
            several += f", {name} = {values[it.best[0]]:.4g}"
    words = [
        ("line", "left-out error" if it.numbers is None else "left-out loss"),
        ("area", "one standard error"),
        (
            "best",
            ("least error" if it.numbers is None else "least loss")
            if it.score is None
            else "best score",
        ),
    ]
    if it.one_se is not None:
        words.append(("one-se", "1-SE rule"))
    title = "Error curve" if it.numbers is None else "Left-out loss"
    return _card(title + several, charts.error_curve(it), charts.legend(*words))


def _map(it: Overview) -> Markup | None:
    repeated = len(np.unique(it.gammas)) < len(it.gammas)  # one curve for each epsilon too
    if len(np.unique(it.gammas)) < 2 or len(np.unique(it.Cs)) < 2 or repeated:
        return None
    values = it.error if it.score is None else it.score
    best, worst = (np.nanmin, np.nanmax) if it.score is None else (np.nanmax, np.nanmin)
    scale = tag("div", f"{best(values):.4f}", tag("i"), f"{worst(values):.4f}", cls="ramp")
    name = "Left-out error" if it.score is None else str(it.scoring)
    note = tag("p", "Full frame: the best point; dashed: the 1-SE rule.", cls="soft")
    return _card(f"{name} over gamma and C", charts.heat_map(it), scale, note)


def _values(it: Overview) -> Markup:
    if it.left_out.decision is None:
        return _absent("Left-out decision values")
    key = charts.legend(*[(f"class-{k % 6}", f"class {c}") for k, c in enumerate(it.classes)])
    note = None
    if len(it.classes) > 2:
        note = tag(
            "p", "The value of a row's own class less the largest of the others.", cls="soft"
        )
    return _card("Left-out decision values", charts.histogram(it), key, note)


def _roc(it: Overview) -> Markup | None:
    if it.left_out.decision is None:
        return None
    if np.count_nonzero(it.class_shares) < 2:
        return _card("ROC", tag("p", "All tested rows are of one class: there is no ROC curve."))
    several = len(it.classes) > 2
    names = [str(c) for c in it.classes]
    words = [
        (f"class-{names.index(label) % 6}" if several else "line", f"{label}: AUC {area:.4f}")
        for label, _, _, area in roc_curves(it)
    ]
    title = "ROC of the left-out values" + (", each class against the rest" if several else "")
    return _card(title, charts.roc(it), charts.legend(*words))


def _absent(title: str) -> Markup:
    text = (
        "Only the labels were computed. Left-out decision values and their ROC curve need "
        "output='decision' (cross_validate) or store_cv_results=True (SVCCV)."
    )
    return _card(title, tag("p", text, cls="soft"))


def _confusion(it: Overview) -> Markup:
    """True classes down, predictions across; shares are of the row."""
    k, left_out = len(it.classes), it.left_out
    if k > MOST_CLASSES:
        return _card("Confusion matrix", tag("p", f"{k} classes: too many to show.", cls="soft"))
    counts = np.zeros((k, k + 1), dtype=int)
    np.add.at(counts, (left_out.truth, left_out.predicted), 1)  # -1, a tie, is the last column
    width = k + bool(counts[:, k].any())
    names = [*(str(c) for c in it.classes), "neither"][:width]
    rows = []
    for i in range(k):
        shares = counts[i] / max(counts[i].sum(), 1)
        cells = [
            tag("td", counts[i, j], tag("small", f"{shares[j]:.1%}"),
                cls="right" if i == j else "wrong", style=f"--share:{shares[j]:.3f}")
            for j in range(width)
        ]  # fmt: skip
        rows.append(tag("tr", tag("th", f"is {names[i]}", scope="row"), cells))
    head = tag("tr", tag("td"), [tag("th", f"predicted {name}", scope="col") for name in names])
    table = tag("table", tag("thead", head), tag("tbody", rows), cls="confusion")
    return _card("Confusion matrix of the left-out rows", tag("div", table, cls="scroll"))


def _certificate(it: Overview) -> Markup:
    rows = [
        ("verdict", "exact" if it.exact else "NOT exact"),
        ("largest KKT violation", f"{np.fmax.reduce(it.kkt, axis=None):.2e}"),
        ("largest duality gap", f"{np.fmax.reduce(it.gap, axis=None):.2e}"),
        ("tolerance", f"{it.tol:.0e}"),
        ("solutions that miss it", it.unresolved),
        ("kernel matrix", "positive semidefinite" if it.convex else "NOT positive semidefinite"),
    ]
    if it.approx is not None:
        rows.append(("kernel", f"approximate kernel ({it.approx}); the rest is exact for it"))
    text = (
        "Every solution, of all rows and of every fold that was solved, was checked from its "
        "coefficients alone, not by the solver that found it"
    )
    text += "." if it.numbers is not None else (
        "; labels that were not computed were proved by a bound."
    )  # fmt: skip
    return _card("Certificate", tag("p", text), _table(rows))


def _table(rows: Any) -> Markup:
    body = [tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in rows]
    return tag("div", tag("table", tag("tbody", body)), cls="scroll")


def _suspicious(page: Page) -> Markup:
    """Rows that the others contradict most."""
    it = page.overview
    left_out, margin = it.left_out, it.left_out.margin()
    title = "Most suspicious rows"
    text = (
        "The rows that the model without them contradicts most: look here for wrong labels and "
        "measurements. The loss is max(0, 1 - margin), the margin being "
        + ("the decision value towards the row's own class." if len(it.classes) == 2
           else "the value of the row's own class less the largest of the others.")
    )  # fmt: skip
    if margin is None:
        wrong = np.flatnonzero(left_out.predicted != left_out.truth)
        order, text = wrong, "Rows whose left-out label is wrong; their loss was not computed."
    else:
        order = np.argsort(margin, kind="stable")
        order = order[margin[order] < 1.0]
    order = order[:MOST_SUSPICIOUS]
    if not len(order):
        return _card(title, tag("p", "None: every left-out row has no loss."), cls="card wide")
    head = ["row", "class", "predicted", "margin", "loss"][: 3 if margin is None else 5]
    rows = []
    for t in order:
        k = left_out.predicted[t]
        cells = [_row_name(page, int(left_out.row[t])), it.classes[left_out.truth[t]]]
        cells.append("neither" if k < 0 else it.classes[k])
        numbers = [] if margin is None else [margin[t], max(0.0, 1.0 - margin[t])]
        rows.append(
            tag(
                "tr",
                [tag("td", c) for c in cells],
                [tag("td", f"{v:.4f}", cls="n") for v in numbers],
            )
        )
    columns = [
        tag("th", name, scope="col", cls="n" if k > 2 else None) for k, name in enumerate(head)
    ]
    table = tag("table", tag("thead", tag("tr", columns)), tag("tbody", rows))
    return _card(
        title, tag("p", text, cls="soft"), tag("div", table, cls="scroll"), cls="card wide"
    )


def _row_name(page: Page, row: int) -> Any:
    return row if page.row_names is None else page.row_names[row]


def _how(page: Page) -> Markup:
    it = page.overview
    scheme = "leave-one-out" if it.leave_one_out else f"{it.n_folds} folds"
    same = "lambda" if it.scale_with_fold else "C"
    rows = [
        *page.facts.items(),
        ("rows", it.n_rows),
        *([] if it.numbers is not None else [("classes", ", ".join(map(str, it.classes)))]),
        ("folds", f"{scheme}; {it.n_tested} tests; the same {same} in every fold"),
        ("loss and kernel", f"{it.loss}, {it.kernel}".rstrip(", ")),
        ("intercept", "yes" if it.fit_intercept else "no"),
        ("method", it.method),
        ("grid", _grid(it)),
    ]
    if it.settled:
        rows.append(("folds settled", report.settled_text(it)))
    if "total" in it.timings:
        rows.append(("time", report.timing_text(it)))
    return _card("How it was computed", _table(rows), cls="card wide")


def _grid(it: Overview) -> str:
    text = f"{len(it.Cs)} values of C from {it.Cs.min():.4g} to {it.Cs.max():.4g}"
    gammas = np.unique(it.gammas)
    if len(gammas) > 1:
        text += f", {len(gammas)} of gamma from {gammas[0]:.4g} to {gammas[-1]:.4g}"
    if it.parameter is not None and len(found := np.unique(it.parameter[1])) > 1:
        text += f", {len(found)} of {it.parameter[0]} from {found[0]:.4g} to {found[-1]:.4g}"
    return text + (f"; {it.grown}" if it.grown else "")


def _for_a_paper(it: Overview) -> Markup:
    """What the choice has gained, and a text to paste."""
    said = report.corrected_text(it)
    note = tag("p", said[:1].upper() + said[1:], ".") if it.error.size > 1 else None
    paragraphs = [tag("p", part) for part in methods_text(it).split("\n") if part]
    return _card("For a paper", note, *paragraphs, cls="card wide")


def _reproduce(page: Page) -> Markup:
    code = page.code if page.code is not None else reproducing_code(page.overview)
    return _card("Reproduce it", tag("pre", tag("code", code)), cls="card wide")


def reproducing_code(it: Overview) -> str:
    """Code that runs the same cross-validation on X, y, as far as the result knows."""
    name, values = ("lambdas", it.lambdas) if it.scale_with_fold else ("Cs", it.Cs)
    grid = ", ".join(f"{v!r}" for v in values.tolist())
    gammas = [g for g in it.gammas.tolist() if not np.isnan(g)]
    settings = [f"{name}=[{grid}]"]
    if it.kernel:
        settings.insert(0, f"kernel={it.kernel!r}")
    if gammas:
        settings.append(f"gamma={gammas[0]!r}" if len(gammas) == 1 else f"gamma={gammas!r}")
    if it.approx is not None:
        approx, count = it.approx.split(", ")
        settings.append(f"approx={approx!r}, n_components={count.split()[0]}, random_state=seed")
    settings.append('cv="loo"' if it.leave_one_out else "cv=folds")
    if it.parameter is not None:
        settings.append(f"{it.parameter[0]}={it.parameter[1][it.chosen[0]].item()!r}")
    for key, default in (("method", "exact"), ("loss", "hinge"), ("fit_intercept", True)):
        if getattr(it, key) != default:
            settings.append(f"{key}={getattr(it, key)!r}")
    given = "# X, y: the data" + ("" if it.leave_one_out else "; folds: the splitter that was used")
    given += "" if it.approx is None else "; seed: the random_state"
    several = len(gammas) > 1 or len(it.classes) > 2
    call = "exactcv.SVCCV(" if several else "exactcv.cross_validate(\n    X, y,"
    body = "".join(f"\n    {setting}," for setting in settings)
    end = "\n).fit(X, y)" if several else '\n    output="decision",\n)'
    shown = "model" if several else "result"
    return f"import exactcv\n\n{given}\n{shown} = {call}{body}{end}\nprint({shown}.summary())\n"
