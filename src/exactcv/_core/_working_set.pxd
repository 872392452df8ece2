"""The choice of the coefficients to move next, which the loops for one problem and for two share.

The searches are C (``working_set.h``), so that they become vector code; here they have names.
"""

cdef extern from "working_set.h" nogil:
    double LEAST_CURVATURE "EXACTCV_LEAST_CURVATURE"
    double LEAST_DIAGONAL "EXACTCV_LEAST_DIAGONAL"

    ctypedef struct Choice "exactcv_choice_t":
        Py_ssize_t i
        Py_ssize_t j
        double violation
        double top
        double bottom

    Choice first_of_pair "exactcv_first_of_pair"(
        const double *x, const double *e, const double *lower, const double *upper, Py_ssize_t n)
    Py_ssize_t second_of_pair "exactcv_second_of_pair"(
        const double *x, const double *e, const double *lower, const double *diagonal,
        const double *row, double own, double top, Py_ssize_t n)
    Choice single "exactcv_single"(
        const double *x, const double *e, const double *lower, const double *upper,
        const double *curvature, Py_ssize_t n)
    void shift "exactcv_shift"(
        double *e, double step, const double *row, const double *other, Py_ssize_t n)
    void shift_share "exactcv_shift_share"(
        double *e, double step, const double *row, double share, const double *other,
        double offset, Py_ssize_t n)
