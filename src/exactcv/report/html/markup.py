"""HTML and SVG that cannot be broken by what is put into it.

``tag`` escapes every child that is not markup already, so text from the user (file names, class
labels, column names) is safe wherever it appears.
"""

from __future__ import annotations

from html import escape
from typing import Any

__all__ = ["Markup", "join", "tag"]

VOID = frozenset({"br", "circle", "line", "link", "meta", "path", "polyline", "rect"})


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """One element; attributes that are None are left out.

    ``cls`` is the class; an underscore in a name stands for a hyphen.

    Examples
    --------
    >>> tag("p", "a < b", tag("b", "c"), cls="note")
    '<p class="note">a &lt; b<b>c</b></p>'
    >>> tag("circle", cx=1.5, r=2)
    '<circle cx="1.5" r="2"/>'
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID and not children:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: Any) -> Markup:
    """Children one after the other; None is nothing, a list is its members."""
    return Markup("".join(_child(child) for child in children))


def _child(child: Any) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, (list, tuple)):
        return join(*child)
    return escape(str(child), quote=False)


def _attribute(key: str, value: Any) -> str:
    if value is None:
        return ""
    name = "class" if key == "cls" else key.replace("_", "-")
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f' {name}="{escape(text)}"'
