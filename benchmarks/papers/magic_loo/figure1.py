"""Magic LOO, Figure 1: speed-up of magic over ordinary leave-one-out, smooth losses.

    python -m benchmarks.papers.magic_loo.figure1

Drawn from the runs that `benchmarks.papers.repeated` has kept (``--cells "magic figure 1"``): the
paper's simulation with p = n / 2, no intercept, 50 lambdas, gradients to 1e-8.  Ordinary
leave-one-out is the same accelerated proximal gradient, each fold with its own kernel matrix,
inverse and path; its time is estimated from two folds.
"""

from __future__ import annotations

import numpy as np

from benchmarks.lib.results import pyplot, read_records, save_figure

FILE, CELLS = "paper_runs", "magic figure 1, n="
LOSSES = ("logistic", "squared_hinge")
PAPER = {"logistic": 10.0, "squared_hinge": 12.0}  # at n = 400, from the text


def draw() -> str:
    """Means with their standard errors, a panel for each loss; returns the figure's place."""
    kept = {
        int(name.removeprefix(CELLS)): [*runs.values()]
        for name, runs in read_records(FILE).items()
        if name.startswith(CELLS)
    }
    figure, axes = pyplot().subplots(1, 2, figsize=(7, 3), layout="constrained", sharey=True)
    for axis, loss in zip(axes, LOSSES, strict=True):
        sizes = sorted(kept)
        ratios = [[run[f"speed-up, {loss}"] for run in kept[n]] for n in sizes]
        errors = [np.std(one, ddof=min(1, len(one) - 1)) / np.sqrt(len(one)) for one in ratios]
        axis.errorbar(sizes, [np.mean(one) for one in ratios], errors, fmt="o-", label="here")
        axis.plot([400], [PAPER[loss]], "k_", markersize=14, label="paper (n = 400)")
        axis.set_title(loss.replace("_", " "))
        axis.set_xlabel("n")
    axes[0].set_ylabel("speed-up over ordinary\nleave-one-out")
    axes[0].set_ylim(bottom=0)
    axes[0].legend(frameon=False)
    return save_figure(figure, "magic_loo_figure1")


if __name__ == "__main__":
    print(draw())
