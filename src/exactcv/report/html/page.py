"""``report.html``: a cross-validation as one page that needs nothing else.

No network, no scripts: charts are SVG in the page, colours follow the reader's light or dark mode,
and everything that comes from the user is escaped (``markup.py``).  The page is a function
of a ``Page`` alone, and has no date in it: the same result gives the same file, byte for byte, but
for the seconds it took.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from . import charts, left_out
from .markup import Markup, tag
from .pieces import card, table
from .tiles import tiles

__all__ = ["Page", "render", "write_html"]

LONGEST = 60  # letters of a label


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

    def row_name(self, row: int) -> Any:
        """What the reader knows a row by."""
        return row if self.row_names is None else self.row_names[row]


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
    if any(len(str(label)) > LONGEST for label in it.classes):
        short = np.array(
            [_short(k, str(label)) for k, label in enumerate(it.classes)], dtype=object
        )
        it = replace(it, classes=short)
        page = replace(page, overview=it)
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
        tiles(it),
        [tag("p", tag("b", "Note: "), r.text, cls="warning") for r in report.remarks(it)],
        tag("div", _curve(it), _map(it), *left_out.cards(it), _certificate(it), cls="grid-2"),
        left_out.single_rows(it, page.row_name),
        _how(page),
        _for_a_paper(it),
        _reproduce(page),
        tag("footer", f"Made by exactcv {version('exactcv')}."),
    )  # fmt: skip
    return "<!DOCTYPE html>\n" + tag("html", head, tag("body", main), lang="en") + "\n"


def _short(k: int, label: str) -> str:
    """A label that leaves room for others; its number tells it from those that begin alike."""
    return label if len(label) <= LONGEST else f"{label[:40]}... (class {k + 1})"


# ---- parts ---------------------------------------------------------------------------------------


def _steps(it: Overview, several: str) -> Markup:
    """The curve where it is known at every C."""
    words = [("line", it.judged_by), ("least", "least error"), ("best", "middle of the widest")]
    note = tag("p", "Every C of the range, not a grid; lambda falls as C grows.", cls="soft")
    return card("Error at every C" + several, charts.step_curve(it), charts.legend(*words), note)


def _curve(it: Overview) -> Markup:
    several = ""
    for name, values in [("gamma", it.gammas), *([] if it.parameter is None else [it.parameter])]:
        if len(np.unique(values)) > 1 or name == "quantile":
            several += f", {name} = {values[it.best[0]]:.4g}"
    if it.steps is not None:
        chosen = it.gammas[it.best[0]]
        return _steps(it, "" if np.isnan(chosen) else f", gamma = {chosen:.4g}")
    words = [("line", it.judged_by)]
    if it.score is None and np.isfinite(it.se[it.best[0]]).any():
        words.append(("area", "one standard error"))
    best = it.judged_by.replace("left-out", "least") if it.score is None else "best score"
    words.append(("best", f"{best}, also by the 1-SE rule" if it.one_se == it.best else best))
    if it.one_se is not None and it.one_se != it.best and it.one_se[0] == it.best[0]:
        words.append(("one-se", "1-SE rule"))
    title = "Error curve" if it.numbers is None else "Left-out loss"
    title = title if it.score is None else f"{it.judged_by} along C"
    note = tag("p", "lambda falls as C grows: more regularisation is on the left.", cls="soft")
    return card(title + several, charts.error_curve(it), charts.legend(*words), note)


def _map(it: Overview) -> Markup | None:
    gammas = it.gammas[it.same_parameter]
    if len(gammas) < 2 or len(np.unique(gammas)) < len(gammas) or len(np.unique(it.Cs)) < 2:
        return None
    several = ""
    if len(gammas) < len(it.gammas) and it.parameter is not None:
        several = f", {it.parameter[0]} = {it.parameter[1][it.best[0]]:.4g}"
    worst, best = charts.ends(it)
    digits = ".4f" if it.numbers is None else ".4g"
    scale = tag("div", f"{worst:{digits}}", tag("i"), f"{best:{digits}}", cls="ramp")
    drawn = it.one_se is not None and it.one_se[0] in it.same_parameter
    rule = "; dashed: the 1-SE rule" if drawn else ""
    if it.one_se == it.best:
        rule = ", also by the 1-SE rule"
    note = tag("p", f"Bright is good. Full frame: the best point{rule}.", cls="soft")
    name = it.judged_by
    name = name[0].upper() + name[1:] if it.score is None else name
    return card(f"{name} over gamma and C{several}", charts.heat_map(it), scale, note)


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
    return card("Certificate", tag("p", text), table(rows))


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
    return card("How it was computed", table(rows), cls="card wide")


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
    gained = report.corrected_text(it)
    note = tag("p", f"{gained[0].upper()}{gained[1:]}.") if it.error.size > 1 else None
    paragraphs = [tag("p", part) for part in methods_text(it).split("\n") if part]
    nested = None if it.nested is None else tag("p", "Nested: ", it.nested.short(), ".")
    return card("For a paper", note, nested, *paragraphs, cls="card wide")


def _reproduce(page: Page) -> Markup:
    code = page.code if page.code is not None else reproducing_code(page.overview)
    return card("Reproduce it", tag("pre", tag("code", code), tabindex=0), cls="card wide")


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
