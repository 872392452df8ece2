"""Table 2 of the rank-r paper: leave-one-out, time and accuracy.

python benchmarks/ssvm_table2.py --data DIR            about two minutes
python benchmarks/ssvm_table2.py --data DIR --full     with 7,000 rows besides, and about 3 GB
"""

from __future__ import annotations

import ssvm


def main() -> None:
    chosen = ssvm.options("Leave-one-out of the smooth SVM (Table 2).")
    found = list(ssvm.rows("loo", chosen))
    ssvm.report(ssvm.section("Table 2: leave-one-out", chosen), ssvm.table(found), chosen)


if __name__ == "__main__":
    main()
