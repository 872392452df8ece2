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

#include <stdint.h>

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

/* i = the first i <= i_ < stop with HIT(i_); n if there is none.  All of them are looked at, which is
 * vector code, and quicker than to stop at the first. */
#define EXACTCV_FIRST(i, stop, HIT)                                                              \
    {                                                                                            \
        const int32_t size_ = (int32_t)((stop) - (i));                                           \
        int32_t first_[EXACTCV_WIDE], least_ = INT32_MAX, j_ = 0;                                \
        for (int32_t k_ = 0; k_ < EXACTCV_WIDE; k_++)                                            \
            first_[k_] = INT32_MAX;                                                              \
        for (; j_ + EXACTCV_WIDE <= size_; j_ += EXACTCV_WIDE)                                   \
            for (int32_t k_ = 0; k_ < EXACTCV_WIDE; k_++) {                                      \
                const int32_t at_ = HIT((i) + j_ + k_) ? j_ + k_ : INT32_MAX;                    \
                first_[k_] = EXACTCV_MIN(at_, first_[k_]);                                       \
            }                                                                                    \
        for (; j_ < size_; j_++)                                                                 \
            if (HIT((i) + j_))                                                                   \
                least_ = EXACTCV_MIN(j_, least_);                                                \
        for (int32_t k_ = 0; k_ < EXACTCV_WIDE; k_++)                                            \
            least_ = EXACTCV_MIN(first_[k_], least_);                                            \
        i = least_ == INT32_MAX ? n : (i) + least_;                                              \
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
    const ptrdiff_t stop = EXACTCV_MIN(out.i + EXACTCV_BLOCK, n);
#define EXACTCV_HIT(i) (up[i] - h[i] == out.top)
    EXACTCV_FIRST(out.i, stop, EXACTCV_HIT)
#undef EXACTCV_HIT
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
    const ptrdiff_t end = EXACTCV_MIN(j + EXACTCV_BLOCK, n);
#define EXACTCV_HIT(i)                                                                           \
    (exactcv_gain(top - (down[i] - h[i]), own + diagonal[i] - 2.0f * row[i]) == found)
    EXACTCV_FIRST(j, end, EXACTCV_HIT)
#undef EXACTCV_HIT
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

/* h = h + sum over k of a[k] * row k of K, eight rows at a time; see exactcv_add_rows. */
EXACTCV_CLONES
static void exactcv_add_single(const float *K, ptrdiff_t n, const ptrdiff_t *rows, const float *a,
                               ptrdiff_t count, float *restrict h)
{
    for (ptrdiff_t start = 0; start < count; start += 8) {
        const float *r[8];
        float w[8];
        for (ptrdiff_t k = 0; k < 8; k++) {
            const int used = start + k < count;
            r[k] = K + n * rows[used ? start + k : start];
            w[k] = used ? a[start + k] : 0.0f;
        }
        for (ptrdiff_t i = 0; i < n; i++)
            h[i] += ((w[0] * r[0][i] + w[1] * r[1][i]) + (w[2] * r[2][i] + w[3] * r[3][i])) +
                    ((w[4] * r[4][i] + w[5] * r[5][i]) + (w[6] * r[6][i] + w[7] * r[7][i]));
    }
}

#endif
