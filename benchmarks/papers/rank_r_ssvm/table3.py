"""Table 3 of the rank-r paper: 10-fold cross-validation, time and accuracy.

python benchmarks/ssvm_table3.py --data DIR            about a minute
python benchmarks/ssvm_table3.py --data DIR --full     with 7,000 rows besides, and about 3 GB
"""

from __future__ import annotations

import ssvm


def main() -> None:
    chosen = ssvm.options("10-fold cross-validation of the smooth SVM (Table 3).")
    found = list(ssvm.rows("k-fold", chosen))
    ssvm.report(ssvm.section("Table 3: 10-fold", chosen), ssvm.table(found), chosen)


if __name__ == "__main__":
    main()
