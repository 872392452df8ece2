"""Table 2 of the rank-r paper: leave-one-out, time and accuracy.

    python -m benchmarks.papers.rank_r_ssvm.table2 --data DIR [--full] [--write]

Takes about two minutes; --full: with 7,000 rows besides, and about 3 GB.
"""

from __future__ import annotations

from . import rows

if __name__ == "__main__":
    rows.main(__doc__, "loo", "Table 2: leave-one-out")
