"""Leave-one-out where users tune: the price of all left-out labels in units of plain fits.

    python benchmarks/users/leave_one_out.py --data DIR [--sets a1a,chess] [--gammas 1,10]

CPU seconds, one thread, 11 values of C from 1e-2 to 1e3, kernel included on both sides; peers at
their default tolerance.  A cell is one set and one gamma (in units of 1/p).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.users.peers import peers, plain_fits
from benchmarks.users.sets import GAMMAS, SETS, Cs, load

BARS = {"error": 2.0, "decision": 3.0}
MEDIAN_BAR = 1.0


@dataclass
class Cell:
    """One set and one gamma: the least CPU seconds of each side over the repeats."""

    name: str
    n: int
    gamma: float
    ours: dict[str, float] = field(default_factory=dict)
    worst: dict[str, float] = field(default_factory=dict)
    fits: dict[str, float] = field(default_factory=dict)
    gaps: dict[str, float] = field(default_factory=dict)
    settled: str = ""
    exact: bool = True

    @property
    def best_fits(self) -> float:
        return min(self.fits.values(), default=float("nan"))

    def ratio(self, output: str) -> float:
        return self.ours.get(output, float("nan")) / self.best_fits

    def line(self) -> str:
        shown = [self.name, str(self.n), f"{self.gamma:g}/p"]
        for output in BARS:
            if output in self.ours:
                shown.append(f"{self.ours[output]:.2f}")
        shown += [f"{seconds:.2f}" for seconds in self.fits.values()]
        for output, bar in BARS.items():
            if output in self.ours:
                mark = "" if self.ratio(output) <= bar else " **over**"
                shown.append(f"{self.ratio(output):.2f}{mark}")
        certificate = f"{max(self.worst.values()):.0e}" + ("" if self.exact else " NOT EXACT")
        gaps = ", ".join(f"{gap:.0e}" for gap in self.gaps.values())
        return "| " + " | ".join([*shown, certificate, gaps, self.settled]) + " |"


def header(outputs: list[str], rivals: list[str]) -> str:
    titles = ["data", "n", "gamma", *(f"LOO {output} (s)" for output in outputs)]
    titles += [f"11 fits, {rival} (s)" for rival in rivals]
    titles += [f"{output} / fits" for output in outputs]
    titles += ["our certificate", "their gaps", "how folds were settled"]
    return "| " + " | ".join(titles) + " |\n|" + "---|" * len(titles)


def ours(X: np.ndarray, y: np.ndarray, gamma: float, output: str) -> tuple[float, exactcv.CVResult]:
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = process_time()
        result = exactcv.cross_validate(X, y, gamma=gamma, Cs=Cs, cv="loo", output=output, n_jobs=1)
        return process_time() - start, result


def measure(
    name: str, X: np.ndarray, y: np.ndarray, gamma: float, outputs: list[str],
    rivals: dict[str, Callable], repeats: int,
) -> Cell:  # fmt: skip
    cell, value = Cell(name, len(y), gamma), gamma / X.shape[1]
    for _ in range(repeats):
        for output in outputs:
            seconds, result = ours(X, y, value, output)
            cell.ours[output] = min(seconds, cell.ours.get(output, np.inf))
            certificate = result.certificate
            cell.worst[output] = float(max(certificate.kkt.max(), certificate.gap.max()))
            cell.exact &= certificate.exact
            counts = {how: result.stats[how] for how in ("bound", "solved", "fallback")}
            cell.settled = ", ".join(f"{how} {count}" for how, count in counts.items())
        for rival, make in rivals.items():
            seconds, gap = plain_fits(make, X, y, Cs, value)
            cell.fits[rival] = min(seconds, cell.fits.get(rival, np.inf))
            cell.gaps[rival] = gap
    return cell


def summary(cells: list[Cell], outputs: list[str]) -> str:
    lines = []
    for output in outputs:
        ratios = np.array([cell.ratio(output) for cell in cells])
        over = int((ratios > BARS[output]).sum())
        lines.append(
            f"LOO {output}: median {np.median(ratios):.2f}, worst {ratios.max():.2f} times the "
            f"plain fits; {over} of {len(cells)} cells over the bar of {BARS[output]:g}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with NAME.csv.gz, ida/")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--gammas", default=",".join(f"{g:g}" for g in GAMMAS))
    parser.add_argument("--outputs", default="error,decision")
    parser.add_argument("--rows", type=int, help="cut every set down to so many rows")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--write", type=Path, help="where to write the table, in Markdown")
    given = parser.parse_args()
    outputs, rivals, cells = given.outputs.split(","), peers(), []
    text = [header(outputs, list(rivals))]
    print(text[0], flush=True)
    for name in given.sets.split(","):
        X, y = load(given.data, name, given.rows)
        for gamma in map(float, given.gammas.split(",")):
            cells.append(measure(name, X, y, gamma, outputs, rivals, given.repeats))
            text.append(cells[-1].line())
            print(text[-1], flush=True)
    text.append("\n" + summary(cells, outputs))
    print(text[-1])
    if given.write:
        given.write.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
