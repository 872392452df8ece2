"""What cards are made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .markup import Markup, tag

__all__ = ["card", "head_row", "scrolled", "table"]


def card(title: str, *content: Any, cls: str = "card") -> Markup:
    """A part of the page with its heading."""
    return tag("section", tag("h2", title), *content, cls=cls)


def table(rows: Iterable[tuple[Any, Any]]) -> Markup:
    """Names, and what they stand for."""
    body = [tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in rows]
    return scrolled(tag("table", tag("tbody", body)))


def scrolled(content: Markup) -> Markup:
    """What may be wider than the page; it can be scrolled by keyboard too."""
    return tag("div", content, cls="scroll", tabindex=0)


def head_row(names: Iterable[tuple[str, str | None]]) -> Markup:
    """The head of a table: names, and the class of each column."""
    cells = [tag("th", name, scope="col", cls=cls) for name, cls in names]
    return tag("thead", tag("tr", cells))
