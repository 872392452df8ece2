"""Every tolerance of the library, in one place, with its reason."""

# A decision value this small predicts neither class and counts as an error.  The margin is 1, so
# this is far above rounding and far below anything a user would call a prediction.
TIE = 1e-9

# A coefficient this close to an end of its box, relative to the box, is taken to be at the end.
# It decides whether any coefficient is strictly inside, and so whether the intercept is a point
# or an interval (whose midpoint is then used).
AT_BOUND = 1e-9

# The engine solves again what misses this share of the caller's tolerance, so that what it returns
# is better than what is asked for.
POLISH = 0.1

# From this tolerance on the caller wants to save work: what meets it is not solved any further, and
# working-set steps stop at this share of it.
ROUGH = 1e-5
ROUGH_SHARE = 0.3


def aim(tol: float) -> float:
    """What the figures of a solution must meet so that it is not solved again.

    Examples
    --------
    >>> aim(1e-3), aim(1e-8) < 1e-8
    (0.001, True)
    """
    return tol if tol >= ROUGH else POLISH * tol


# The working-set solver, where the engine falls back on it.
REFIT = 1e-10

# A row has passed its knot when it is this far behind it, relative to the largest decision value.
CROSSING = 1e-12

# Rows whose pivot in a Cholesky factor is smaller than this, relative to the largest diagonal
# entry, depend on the rows before them.
DEPENDENT = 1e-9
