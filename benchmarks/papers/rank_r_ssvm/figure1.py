"""Figure 1 of the rank-r paper: support vectors and r at each Newton step of the full fit.

python benchmarks/ssvm_figure1.py --data DIR --write   also draws figures/ssvm_figure1.png
"""

from __future__ import annotations

import ssvm

import exactcv


def main() -> None:
    chosen = ssvm.options("Support vectors and r per Newton step (Figure 1).")
    steps = {}
    for name in chosen.only or ssvm.NAMES:
        X, y = ssvm.load(name, chosen.data)
        for kernel in ("linear",) if name in ssvm.WIDE else ("linear", "rbf"):
            model = exactcv.SmoothSVC(C=ssvm.C, kernel=kernel, gamma=ssvm.GAMMA).fit(X, y)
            steps[f"{name}, {kernel}"] = model.steps_
    lines = ["data | " + " | ".join(f"step {k}" for k in range(max(map(len, steps.values()))))]
    lines = [f"| {lines[0]} |", "|" + " --- |" * (lines[0].count("|") + 1)]
    for name, found in steps.items():
        cells = [f"{support} ({r})" for support, r in found]
        cells += [""] * (lines[0].count("|") - 2 - len(cells))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    text = "Support vectors, and in brackets how many rows changed sides (r), from zero, c = 1.\n\n"
    text += "\n".join(lines)
    if chosen.write:
        draw(steps)
        text += "\n\n![Support vectors and r at each Newton step](figures/ssvm_figure1.png)"
    ssvm.report("Figure 1: support vectors and r", text, chosen)


def draw(steps: dict[str, list[tuple[int, int]]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, -(-len(steps) // 2), figsize=(9, 5), squeeze=False)
    for ax in axes.ravel()[len(steps) :]:
        ax.set_axis_off()
    for ax, (name, found) in zip(axes.ravel(), steps.items(), strict=False):
        ax.plot([support for support, _ in found], "o-", label="support vectors")
        ax.plot([r for _, r in found], "s--", label="r")
        ax.set(title=name, xlabel="Newton step", ylim=(0, None))
        ax.set_xticks(range(len(found)))
    axes[0, 0].legend(fontsize=8)
    figure.tight_layout()
    ssvm.FIGURES.mkdir(exist_ok=True)
    figure.savefig(ssvm.FIGURES / "ssvm_figure1.png", dpi=80)


if __name__ == "__main__":
    main()
