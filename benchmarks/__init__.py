"""Benchmarks: README.md says what there is, and how each script is started."""
