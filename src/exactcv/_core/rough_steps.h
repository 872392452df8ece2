/* The passes over all rows of one working-set step, for _rough.pyx; single precision.
 *
 * Row i has h_i = (K c)_i.  c_i wants to grow if the intercept is below up_i - h_i, and to shrink
 * if it is above down_i - h_i; up_i = -inf where it cannot grow, down_i = inf where it cannot
 * shrink.
 *
 * Written for vector code like vector.h, with twice the lanes.  A search for the largest value
 * keeps values only, which is far quicker than to keep track of where they were met; the place is
 * looked up in the end, in the BLOCK of rows that had it.  Of equal values the first one wins.
 */
#ifndef EXACTCV_ROUGH_STEPS_H
#define EXACTCV_ROUGH_STEPS_H

#include "vector.h"

#define EXACTCV_WIDE 16
#define EXACTCV_BLOCK 128

/* Curvature taken where the true one is lost in single precision. */
#define EXACTCV_ROUGH_CURVATURE 1e-6f

/* Who wants to grow most, by how much, and the least of what those that can shrink allow. */
typedef struct {
    ptrdiff_t i;
    float top;
    float bottom;
} exactcv_extremes_t;

/* Run ROW(i, k) for from <= i < stop, on lane k. */
#define EXACTCV_EACH_WIDE(from, stop, ROW)                                                       \
    {                                                                                            \
        ptrdiff_t i_ = (from);                                                                   \
        for (; i_ + EXACTCV_WIDE <= (stop); i_ += EXACTCV_WIDE)                                  \
            for (ptrdiff_t k_ = 0; k_ < EXACTCV_WIDE; k_++)                                      \
                ROW(i_ + k_, k_)                                                                 \
        for (; i_ < (stop); i_++)                                                                \
            ROW(i_, 0)                                                                           \
    }

static inline float exactcv_largest(const float *lanes)
{
    float out = lanes[0];
    for (ptrdiff_t k = 1; k < EXACTCV_WIDE; k++)
        out = EXACTCV_MAX(lanes[k], out);
    return out;
}

/* h += step (row - other), and the extremes at the new h. */
EXACTCV_CLONES
static exactcv_extremes_t exactcv_advance(float *restrict h, float step, const float *row,
                                          const float *other, const float *up, const float *down,
                                          ptrdiff_t n)
{
    exactcv_extremes_t out = {0, -INFINITY, INFINITY};
    float top[EXACTCV_WIDE], bottom[EXACTCV_WIDE];
    for (ptrdiff_t k = 0; k < EXACTCV_WIDE; k++)
        bottom[k] = INFINITY;
    for (ptrdiff_t from = 0; from < n; from += EXACTCV_BLOCK) {
        const ptrdiff_t stop = EXACTCV_MIN(from + EXACTCV_BLOCK, n);
        for (ptrdiff_t k = 0; k < EXACTCV_WIDE; k++)
            top[k] = -INFINITY;
#define EXACTCV_ROW(i, k)                                                                        \
    {                                                                                            \
        const float now = h[i] + step * (row[i] - other[i]);                                     \
        const float grows = up[i] - now, shrinks = down[i] - now;                                \
        h[i] = now;                                                                              \
        top[k] = EXACTCV_MAX(grows, top[k]);                                                     \
        bottom[k] = EXACTCV_MIN(shrinks, bottom[k]);                                             \
    }
        EXACTCV_EACH_WIDE(from, stop, EXACTCV_ROW)
#undef EXACTCV_ROW
        const float best = exactcv_largest(top);
        if (best > out.top) {
            out.top = best;
            out.i = from;
        }
    }
    for (ptrdiff_t k = 0; k < EXACTCV_WIDE; k++)
        out.bottom = EXACTCV_MIN(bottom[k], out.bottom);
    while (out.i < n && up[out.i] - h[out.i] != out.top)
        out.i++;
    return out;
}

/* What the pair of i and another row gains, twice: rise^2 / (K_ii + K_jj - 2 K_ij). */
static inline float exactcv_gain(float rise, float curve)
{
    const float used = EXACTCV_MAX(rise, 0.0f);
    return used * used / EXACTCV_MAX(curve, EXACTCV_ROUGH_CURVATURE);
}

/* Second half of the choice (Fan, Chen & Lin 2005, WSS 2): the row that can shrink with which row i
 * gains most; row is row i of K, own is K_ii, top is what row i wants.  n if there is none. */
EXACTCV_CLONES
static ptrdiff_t exactcv_partner(const float *h, const float *down, const float *diagonal,
                                 const float *row, float own, float top, ptrdiff_t n)
{
    float best[EXACTCV_WIDE], found = 0.0f;
    ptrdiff_t j = n;
    for (ptrdiff_t from = 0; from < n; from += EXACTCV_BLOCK) {
        const ptrdiff_t stop = EXACTCV_MIN(from + EXACTCV_BLOCK, n);
        for (ptrdiff_t k = 0; k < EXACTCV_WIDE; k++)
            best[k] = 0.0f;
#define EXACTCV_ROW(i, k)                                                                        \
    {                                                                                            \
        const float rise = top - (down[i] - h[i]), curve = own + diagonal[i] - 2.0f * row[i];    \
        const float gain = exactcv_gain(rise, curve);                                            \
        best[k] = EXACTCV_MAX(gain, best[k]);                                                    \
    }
        EXACTCV_EACH_WIDE(from, stop, EXACTCV_ROW)
#undef EXACTCV_ROW
        const float here = exactcv_largest(best);
        if (here > found) {
            found = here;
            j = from;
        }
    }
    for (; j < n; j++)
        if (exactcv_gain(top - (down[j] - h[j]), own + diagonal[j] - 2.0f * row[j]) == found)
            break;
    return j;
}

/* Without an intercept there is no pair: the row with the largest size^2 / K_ii, where size is how
 * far h_i is short of up_i or beyond down_i.  h += step row first.  top is the largest size. */
EXACTCV_CLONES
static exactcv_extremes_t exactcv_advance_one(float *restrict h, float step, const float *row,
                                              const float *up, const float *down,
                                              const float *diagonal, ptrdiff_t n)
{
    exactcv_extremes_t out = {n, 0.0f, 0.0f};
    float best[EXACTCV_WIDE], most[EXACTCV_WIDE], found = 0.0f;
    for (ptrdiff_t k = 0; k < EXACTCV_WIDE; k++)
        most[k] = 0.0f;
    for (ptrdiff_t from = 0; from < n; from += EXACTCV_BLOCK) {
        const ptrdiff_t stop = EXACTCV_MIN(from + EXACTCV_BLOCK, n);
        for (ptrdiff_t k = 0; k < EXACTCV_WIDE; k++)
            best[k] = 0.0f;
#define EXACTCV_ROW(i, k)                                                                        \
    {                                                                                            \
        const float now = h[i] + step * row[i];                                                  \
        const float grows = up[i] - now, shrinks = now - down[i];                                \
        const float size = EXACTCV_MAX(grows, shrinks), gain = exactcv_gain(size, diagonal[i]);  \
        h[i] = now;                                                                              \
        best[k] = EXACTCV_MAX(gain, best[k]);                                                    \
        most[k] = EXACTCV_MAX(size, most[k]);                                                    \
    }
        EXACTCV_EACH_WIDE(from, stop, EXACTCV_ROW)
#undef EXACTCV_ROW
        const float here = exactcv_largest(best);
        if (here > found) {
            found = here;
            out.i = from;
        }
    }
    for (; out.i < n; out.i++) {
        const float grows = up[out.i] - h[out.i], shrinks = h[out.i] - down[out.i];
        if (exactcv_gain(EXACTCV_MAX(grows, shrinks), diagonal[out.i]) == found)
            break;
    }
    out.top = exactcv_largest(most);
    return out;
}

#endif
