/* Which coefficients to move next, and the move, for the loops of _smo.pyx and _stopping.pyx.
 *
 *     max over x   t' x - 1/2 x' K x    subject to   lower <= x <= upper   (and sum x = 0)
 *
 * with e = t - K x, the slope.  Written for vector code like vector.h: LANES searches side by side,
 * each with its best value and where it was met (a double, so that all selects have one width).
 * Everything is read before it is compared, or gcc would see control flow.  Of equal values the
 * first in the array wins, as in numpy.argmax.
 */
#ifndef EXACTCV_WORKING_SET_H
#define EXACTCV_WORKING_SET_H

#include "vector.h"

/* Curvature taken where the true one is zero or negative (K singular or indefinite), in units of
 * the diagonal entries it comes from: an absolute figure would hold up every step where K is tiny.
 */
#define EXACTCV_LEAST_CURVATURE 1e-12
/* The same for one coefficient, whose diagonal entry is its curvature. */
#define EXACTCV_LEAST_DIAGONAL 1e-300

/* A working set {i, j} (-1: nobody), the violation of the KKT conditions, the largest slope of
 * those that can grow and the smallest of those that can shrink. */
typedef struct {
    ptrdiff_t i;
    ptrdiff_t j;
    double violation;
    double top;
    double bottom;
} exactcv_choice_t;

/* Run ROW(i, k, from) for every i = from + k < n, on lane k. */
#define EXACTCV_EACH(n, ROW)                                                                     \
    {                                                                                            \
        double from_ = 0.0;                                                                      \
        ptrdiff_t i_, k_;                                                                        \
        for (i_ = 0; i_ + EXACTCV_LANES <= (n); i_ += EXACTCV_LANES, from_ += EXACTCV_LANES)     \
            for (k_ = 0; k_ < EXACTCV_LANES; k_++)                                               \
                ROW(i_ + k_, k_, from_)                                                          \
        for (k_ = 0; i_ + k_ < (n); k_++)                                                        \
            ROW(i_ + k_, k_, from_)                                                              \
    }

/* Keep value, and where it was met, if it is the lane's largest so far. */
#define EXACTCV_KEEP(best, met, value, from, k)                                                  \
    {                                                                                            \
        const int better = (value) > best[k];                                                    \
        best[k] = better ? (value) : best[k];                                                    \
        met[k] = better ? (from) : met[k];                                                       \
    }

/* Where the largest of the lanes was met, the first place if several are; -1 if none exceeds
 * ``start``. */
static inline ptrdiff_t exactcv_winner(const double *best, const double *met, double start)
{
    double found = start, where = -1.0;
    for (ptrdiff_t k = 0; k < EXACTCV_LANES; k++) {
        const double here = met[k] + (double)k;
        if (best[k] > found || (best[k] == found && where >= 0.0 && here < where)) {
            found = best[k];
            where = here;
        }
    }
    return (ptrdiff_t)where;
}

/* First half of the choice of a pair: i = argmax of e over those that can grow. */
EXACTCV_CLONES
static exactcv_choice_t exactcv_first_of_pair(const double *x, const double *e,
                                              const double *lower, const double *upper,
                                              ptrdiff_t n)
{
    exactcv_choice_t out = {-1, -1, 0.0, -INFINITY, INFINITY};
    double top[EXACTCV_LANES], met[EXACTCV_LANES], bottom[EXACTCV_LANES];
    for (ptrdiff_t k = 0; k < EXACTCV_LANES; k++) {
        top[k] = -INFINITY;
        met[k] = 0.0;
        bottom[k] = INFINITY;
    }
#define EXACTCV_ROW(i, k, from)                                                                  \
    {                                                                                            \
        const double at = x[i], slope = e[i], low = lower[i], high = upper[i];                   \
        const double grows = at < high ? slope : -INFINITY;                                      \
        const double shrinks = at > low ? slope : INFINITY;                                      \
        EXACTCV_KEEP(top, met, grows, from, k)                                                   \
        bottom[k] = EXACTCV_MIN(shrinks, bottom[k]);                                             \
    }
    EXACTCV_EACH(n, EXACTCV_ROW)
#undef EXACTCV_ROW
    out.i = exactcv_winner(top, met, -INFINITY);
    for (ptrdiff_t k = 0; k < EXACTCV_LANES; k++) {
        out.top = EXACTCV_MAX(top[k], out.top);
        out.bottom = EXACTCV_MIN(bottom[k], out.bottom);
    }
    out.violation = out.top - out.bottom;
    return out;
}

/* Second half (Fan, Chen & Lin 2005, WSS 2): j = argmax of (e_i - e_j)^2 / a_ij, twice what the
 * step gains if no bound stops it, over those that can shrink and have e_j < e_i = top.
 * a_ij = K_ii + K_jj - 2 K_ij; row is row i of K and own is K_ii. */
EXACTCV_CLONES
static ptrdiff_t exactcv_second_of_pair(const double *x, const double *e, const double *lower,
                                        const double *diagonal, const double *row, double own,
                                        double top, ptrdiff_t n)
{
    double best[EXACTCV_LANES], met[EXACTCV_LANES];
    for (ptrdiff_t k = 0; k < EXACTCV_LANES; k++) {
        best[k] = -1.0;
        met[k] = 0.0;
    }
#define EXACTCV_ROW(i, k, from)                                                                  \
    {                                                                                            \
        const double at = x[i], low = lower[i], rise = top - e[i];                               \
        const double both = own + diagonal[i], bend = both - 2.0 * row[i];                       \
        const double least = EXACTCV_LEAST_CURVATURE * fabs(both) + EXACTCV_LEAST_DIAGONAL;      \
        const double gain = rise * rise / EXACTCV_MAX(bend, least);                              \
        const double shrinks = at > low ? gain : -1.0;                                           \
        const double value = rise > 0.0 ? shrinks : -1.0;                                        \
        EXACTCV_KEEP(best, met, value, from, k)                                                  \
    }
    EXACTCV_EACH(n, EXACTCV_ROW)
#undef EXACTCV_ROW
    return exactcv_winner(best, met, -1.0);
}

/* No sum to keep: the largest e_i^2 / curvature_i among the coordinates that can move. */
EXACTCV_CLONES
static exactcv_choice_t exactcv_single(const double *x, const double *e, const double *lower,
                                       const double *upper, const double *curvature, ptrdiff_t n)
{
    exactcv_choice_t out = {-1, -1, 0.0, 0.0, 0.0};
    double best[EXACTCV_LANES], met[EXACTCV_LANES], violation[EXACTCV_LANES];
    for (ptrdiff_t k = 0; k < EXACTCV_LANES; k++) {
        best[k] = -1.0;
        met[k] = violation[k] = 0.0;
    }
#define EXACTCV_ROW(i, k, from)                                                                  \
    {                                                                                            \
        const double at = x[i], slope = e[i], low = lower[i], high = upper[i], fall = -slope;    \
        const double up = at < high ? slope : 0.0, down = at > low ? fall : 0.0;                 \
        const double size = EXACTCV_MAX(up, down);                                               \
        const double gain = size * size / EXACTCV_MAX(curvature[i], EXACTCV_LEAST_DIAGONAL);     \
        const double value = size > 0.0 ? gain : -1.0;                                           \
        violation[k] = EXACTCV_MAX(size, violation[k]);                                          \
        EXACTCV_KEEP(best, met, value, from, k)                                                  \
    }
    EXACTCV_EACH(n, EXACTCV_ROW)
#undef EXACTCV_ROW
    out.i = exactcv_winner(best, met, -1.0);
    for (ptrdiff_t k = 0; k < EXACTCV_LANES; k++)
        out.violation = EXACTCV_MAX(violation[k], out.violation);
    out.top = out.violation;
    out.bottom = -out.violation;
    return out;
}

/* e = e - step (row - other) */
EXACTCV_CLONES
static void exactcv_shift(double *restrict e, double step, const double *row, const double *other,
                          ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        e[i] -= step * (row[i] - other[i]);
}

/* e = e - step (row - share * other - offset) */
EXACTCV_CLONES
static void exactcv_shift_share(double *restrict e, double step, const double *row, double share,
                                const double *other, double offset, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        e[i] -= step * (row[i] - share * other[i] - offset);
}

#endif
