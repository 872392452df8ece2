"""Table 3 of the rank-r paper: 10-fold cross-validation, time and accuracy.

    python -m benchmarks.papers.rank_r_ssvm.table3 --data DIR [--full] [--write]

Takes about a minute; --full: with 7,000 rows besides, and about 3 GB.
"""

from __future__ import annotations

from . import rows

if __name__ == "__main__":
    rows.main(__doc__, "k-fold", "Table 3: 10-fold")
