"""The exact engine: a path for the full data, then each fold from it (see ``methods/exact.py``)."""
