"""Alpha seeding, Table 3: cold starts and SIR for k = 3, 10 and 100, and ``exact``.

    python benchmarks/seeding_table3.py --data DIR [--quick | --full] [--only FILE ...] [--write]

For k = 100 on the two large sets the first 30 folds stand for all, as in the paper for MNIST.
"""

from __future__ import annotations

from machine import facts
from seeding import Loaded, Row, differences, load, parse, run_exact, run_scheme, say, write_section

KS = (3, 10, 100)
LARGE, ENOUGH = 3000, 30


def measure(loaded: Loaded, k: int) -> tuple[Row, Row, Row | None, int]:
    folds = loaded.folds(k)
    count = ENOUGH if k > ENOUGH and len(loaded.y) > LARGE else k
    say(f"{loaded.what.name}, k = {k}")
    cold, sir = (run_scheme(loaded, scheme, folds, count) for scheme in ("cold", "sir"))
    exact = run_exact(loaded, folds)
    return cold, sir, exact, count


def main() -> None:
    settings = parse(__doc__)
    lines = [
        "| data | n | k | folds run | cold CPU s | SIR CPU s | exact CPU s (all folds) | "
        "cold iterations | SIR iterations | cold evaluations | SIR evaluations | seeding share | "
        "accuracy | labels |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for loaded in load(settings):
        for k in KS:
            cold, sir, exact, count = measure(loaded, k)
            lines.append(
                f"| {loaded.what.name} | {len(loaded.y)} | {k} | {count} | {cold.seconds:.3f} | "
                f"{sir.seconds:.3f} | {f'{exact.seconds:.3f}' if exact else '-'} | "
                f"{cold.iterations} | {sir.iterations} | {cold.evaluations:.3g} | "
                f"{sir.evaluations:.3g} | {sir.share:.1%} | {sir.accuracy:.2%} | "
                f"{differences([cold, sir])} |"
            )
    write_section(settings, "table3", "Table 3: the effect of k", "\n".join(lines), facts())


if __name__ == "__main__":
    main()
