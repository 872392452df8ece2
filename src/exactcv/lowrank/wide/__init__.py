"""Linear kernels with many columns and sparse rows: w in all of them, rows as they are."""
