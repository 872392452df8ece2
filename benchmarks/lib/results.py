"""The folder of results: sections of Markdown, kept records, figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .command import command_line

RESULTS = Path(__file__).resolve().parents[1] / "results"
FIGURES = RESULTS / "figures"


# ---- text ----------------------------------------------------------------------------------------


def write_section(file: str, key: str, text: str, title: str) -> None:
    """Put a section into results/FILE.md, which begins with the title if it is new."""
    put_section(RESULTS / f"{file}.md", key, text, f"# {title}\n")


def publish(
    file: str, key: str, title: str, paragraphs: Iterable[str], head: str, write: bool
) -> None:
    """Print a section that says which command made it; with ``write`` put it into results/FILE.md.

    ``head`` is the title of the file, if it is new.
    """
    made = f"Made by `{command_line()}`."
    text = "\n\n".join([f"## {title}", made, *paragraphs])
    print(text)
    if write:
        write_section(file, key, text, head)


def put_section(path: Path, key: str, text: str, new: str = "") -> None:
    """Put a section between markers of its own; what stands outside the markers is kept."""
    begin, end = f"<!-- {key}: begin -->\n", f"<!-- {key}: end -->\n"
    old = path.read_text(encoding="utf-8") if path.exists() else new
    section = begin + text.rstrip("\n") + "\n" + end
    if begin in old:
        before, _, rest = old.partition(begin)
        path.write_text(before + section + rest.partition(end)[2], encoding="utf-8")
    else:
        path.write_text(old.rstrip("\n") + "\n\n" + section, encoding="utf-8")


def markdown(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def seconds(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


# ---- records -------------------------------------------------------------------------------------


def read_records(file: str) -> dict[str, Any]:
    """What earlier runs have kept in results/FILE.json."""
    path = RESULTS / f"{file}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_records(file: str, records: dict[str, Any]) -> None:
    path = RESULTS / f"{file}.json"
    path.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")


# ---- figures -------------------------------------------------------------------------------------


def pyplot() -> Any:
    """matplotlib without a screen; loaded only by those who draw."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def save_figure(figure: Any, name: str, dpi: int = 90) -> str:
    """Keep it as PNG; returns its place as the results files say it."""
    FIGURES.mkdir(exist_ok=True)
    figure.savefig(FIGURES / f"{name}.png", dpi=dpi)
    pyplot().close(figure)
    return f"{FIGURES.name}/{name}.png"


def bars(name: str, labels: Sequence[str], series: dict[str, Sequence[float]], ylabel: str) -> None:
    """A grouped bar chart on a log scale."""
    figure, axes = pyplot().subplots(figsize=(7, 3.4), layout="constrained")
    width = 0.8 / len(series)
    for k, (label, values) in enumerate(series.items()):
        axes.bar([at + k * width for at in range(len(labels))], values, width, label=label)
    middles = [at + 0.4 - width / 2 for at in range(len(labels))]
    axes.set_xticks(middles, labels, fontsize=7)
    axes.set_yscale("log")
    axes.set_ylabel(ylabel)
    axes.legend(fontsize=6, ncols=2)
    save_figure(figure, name)
