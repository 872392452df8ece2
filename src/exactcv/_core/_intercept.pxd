# cython: language_level=3
"""The rule of the intercept, for both judges' loops; see ``judge/intercept.py``."""

from libc.math cimport INFINITY, fabs


cdef inline double from_middle(double low, double high, double b) noexcept nogil:
    """How far b is from what the rule picks, or where no b will do, from the farther end."""
    if low > high:
        return max(fabs(low - b), fabs(high - b))
    return fabs(middle(low, high) - b)


cdef inline double middle(double low, double high) noexcept nogil:
    """The rule: the middle, or the end that exists."""
    if low == -INFINITY:
        return 0.0 if high == INFINITY else high
    return low if high == INFINITY else 0.5 * (low + high)
