"""A cross-validation as one self-contained HTML page: no network, no scripts."""
