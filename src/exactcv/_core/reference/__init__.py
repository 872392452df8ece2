"""The compiled loops once more, in plain NumPy: what the tests compare them with."""
