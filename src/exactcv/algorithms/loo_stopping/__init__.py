"""Left-out labels without solving to the end: sufficiency checks and a stopping condition."""
