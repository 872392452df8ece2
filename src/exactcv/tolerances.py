"""Every tolerance of the library, in one place, with its reason."""

# A decision value this small predicts neither class and counts as an error.  The margin is 1, so
# this is far above rounding and far below anything a user would call a prediction.
TIE = 1e-9

# A coefficient this close to an end of its box, relative to the box, is taken to be at the end.
# It decides whether any coefficient is strictly inside, and so whether the intercept is a point
# or an interval (whose midpoint is then used).
AT_BOUND = 1e-9
