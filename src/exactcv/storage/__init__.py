"""Tables that are read, models and results that are written."""
