"""Magic LOO, Figure 1: speed-up of magic over ordinary leave-one-out, smooth losses."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable
from functools import partial

from benchmarks.lib.comparison import one_by_one, ours
from benchmarks.lib.data import simulation
from benchmarks.lib.kept_table import Row, Table, table
from benchmarks.lib.results import bars, seconds

from . import MAGIC

LOSSES = ("logistic", "squared_hinge")
TOL = 1e-8


def cases(args: Namespace) -> dict[str, Callable[[], Row]]:
    sizes = [100, 200, 400] + [800] * args.full
    return {f"n={n}": partial(one_size, n) for n in sizes}


def one_size(n: int) -> Row:
    X, y, *_ = simulation(n, n // 5, 0, 10, **MAGIC)
    row: Row = {}
    for loss in LOSSES:
        spent, result = ours(X, y, "magic", loss=loss, tol=TOL)
        alone = one_by_one(X, y, result.gamma, loss, tol=TOL)
        row[loss] = {
            "magic": spent,
            "alone": alone,
            "gradient": float(result.certificate.kkt.max()),
            "fallback": result.stats["fallback"],
        }
    return row


def body(rows: dict[str, Row]) -> Iterable[str]:
    cells = [
        {
            "": name,
            "loss": loss,
            "magic": seconds(row[loss]["magic"]),
            "fold by fold": seconds(row[loss]["alone"]) + "*",
            "speed-up": f"{row[loss]['alone'] / row[loss]['magic']:.1f}",
            "gradient norm": f"{row[loss]['gradient']:.0e}",
            "fallback": str(row[loss]["fallback"]),
        }
        for name, row in rows.items()
        for loss in LOSSES
    ]
    return [
        table(cells),
        "CPU seconds for 50 lambdas and all folds, the paper's simulation (mean 2, noise 4), p = "
        "n / 5, with an intercept, BLAS on one thread; * estimated from two folds. Fold by fold: "
        "the same accelerated proximal gradient, each fold with its own kernel matrix, inverse and "
        "path.",
    ]


def figure(key: str, rows: dict[str, Row]) -> None:
    series = {
        loss: [row[loss]["alone"] / row[loss]["magic"] for row in rows.values()] for loss in LOSSES
    }
    bars(key, list(rows), series, "speed-up over ordinary leave-one-out")


TABLE = Table("magic_loo_figure1", "Magic LOO, Figure 1", cases, body, figure)

if __name__ == "__main__":
    TABLE.main(__doc__)
