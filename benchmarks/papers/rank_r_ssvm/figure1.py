"""Figure 1 of the rank-r paper: support vectors and r at each Newton step of the full fit.

    python -m benchmarks.papers.rank_r_ssvm.figure1 --data DIR [--write]

With --write it also draws the figure.
"""

from __future__ import annotations

import exactcv
from benchmarks.lib.results import markdown, pyplot, save_figure

from . import rows


def main() -> None:
    chosen = rows.options(__doc__)
    steps = {}
    for name in chosen.only or rows.NAMES:
        X, y = rows.load(name, chosen.data)
        for kernel in ("linear",) if name in rows.WIDE else ("linear", "rbf"):
            model = exactcv.SmoothSVC(C=rows.C, kernel=kernel, gamma=rows.GAMMA).fit(X, y)
            steps[f"{name}, {kernel}"] = model.steps_
    longest = max(map(len, steps.values()))
    body = [
        [name, *(f"{support} ({r})" for support, r in found), *[""] * (longest - len(found))]
        for name, found in steps.items()
    ]
    text = "Support vectors, and in brackets how many rows changed sides (r), from zero, c = 1.\n\n"
    text += markdown(["data", *(f"step {k}" for k in range(longest))], body)
    if chosen.write:
        text += f"\n\n![Support vectors and r at each Newton step]({draw(steps)})"
    rows.report("Figure 1: support vectors and r", text, chosen)


def draw(steps: dict[str, list[tuple[int, int]]]) -> str:
    figure, axes = pyplot().subplots(2, -(-len(steps) // 2), figsize=(9, 5), squeeze=False)
    for ax in axes.ravel()[len(steps) :]:
        ax.set_axis_off()
    for ax, (name, found) in zip(axes.ravel(), steps.items(), strict=False):
        ax.plot([support for support, _ in found], "o-", label="support vectors")
        ax.plot([r for _, r in found], "s--", label="r")
        ax.set(title=name, xlabel="Newton step", ylim=(0, None))
        ax.set_xticks(range(len(found)))
    axes[0, 0].legend(fontsize=8)
    figure.tight_layout()
    return save_figure(figure, "rank_r_ssvm_figure1", dpi=80)


if __name__ == "__main__":
    main()
