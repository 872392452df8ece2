/* Small C kernels of the compiled core, written so that gcc turns them into vector code.
 *
 * On x86 Linux with gcc each kernel is compiled several times and the best version for the machine
 * is picked at load time, so that a portable build is not a slow one.  Everywhere else they are
 * plain C.  Reductions run in LANES independent accumulators: the order of every sum is then fixed
 * by the source, whatever the vector width, and no unsafe floating-point flags are needed.
 */
#ifndef EXACTCV_VECTOR_H
#define EXACTCV_VECTOR_H

#include <math.h>
#include <stddef.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define EXACTCV_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define EXACTCV_CLONES
#endif

#define EXACTCV_LANES 8
#define EXACTCV_MAX(a, b) ((a) > (b) ? (a) : (b))
#define EXACTCV_MIN(a, b) ((a) < (b) ? (a) : (b))

/* What one solution's rows add up to; see exactcv_tally. */
typedef struct {
    double residual; /* max of the natural residuals |u - prox(u + s)| */
    double box;      /* max violation of the box, in units of the slopes */
    double scale;    /* max |u| over training rows */
    double outside;  /* max |c| over rows that take no part */
    double sum;      /* sum of c */
    double size;     /* sum of |c| */
    double gap;      /* sum of the Fenchel-Young terms, divided by C */
    double loss;     /* sum of the weighted losses, divided by C */
    double norm;     /* c' h, that is ||f||^2 */
} exactcv_tally_t;

/* Add rows start ... stop - 1 of a one-knot problem to the tally.
 *
 * table holds five arrays of length n one after the other: knot, left slope, right slope, weight,
 * 1 / weight; the last four are zero for rows that take no part in training.  With v = u - knot and
 * s = -c / (C weight) the natural residual |u - prox(u + s)| is |v clipped to [s0 - s, s1 - s]|.
 */
EXACTCV_CLONES
static void exactcv_tally(const double *h, const double *c, const double *table, ptrdiff_t n,
                          ptrdiff_t start, ptrdiff_t stop, double C, double b,
                          exactcv_tally_t *out)
{
    const double *knot = table, *s0 = table + n, *s1 = table + 2 * n;
    const double *weight = table + 3 * n, *inverse = table + 4 * n;
    const double inverse_C = 1.0 / C;
    double residual[EXACTCV_LANES] = {0}, box[EXACTCV_LANES] = {0}, scale[EXACTCV_LANES] = {0};
    double outside[EXACTCV_LANES] = {0}, sum[EXACTCV_LANES] = {0}, size[EXACTCV_LANES] = {0};
    double gap[EXACTCV_LANES] = {0}, loss[EXACTCV_LANES] = {0}, norm[EXACTCV_LANES] = {0};
    ptrdiff_t i, k;

#define EXACTCV_ROW(i, k)                                                                        \
    {                                                                                            \
        const double u = h[i] + b, v = u - knot[i], s = -c[i] * (inverse[i] * inverse_C);        \
        const double left = s0[i] - s, right = s1[i] - s;                                        \
        const double near = EXACTCV_MIN(v, right);                                               \
        const double r = fabs(EXACTCV_MAX(left, near));                                          \
        const double beyond = EXACTCV_MAX(left, -right);                                         \
        const double used = inverse[i] > 0.0 ? fabs(u) : 0.0;                                    \
        const double unused = inverse[i] > 0.0 ? 0.0 : fabs(c[i]);                               \
        const double up = EXACTCV_MAX(v, 0.0), down = EXACTCV_MAX(-v, 0.0);                      \
        const double on_left = s0[i] * v, on_right = s1[i] * v;                                  \
        residual[k] = EXACTCV_MAX(r, residual[k]);                                               \
        box[k] = EXACTCV_MAX(beyond, box[k]);                                                    \
        scale[k] = EXACTCV_MAX(used, scale[k]);                                                  \
        outside[k] = EXACTCV_MAX(unused, outside[k]);                                            \
        sum[k] += c[i];                                                                          \
        size[k] += fabs(c[i]);                                                                   \
        const double width = s1[i] - s0[i], ahead = EXACTCV_MIN(right, width);                   \
        const double behind = EXACTCV_MIN(-left, width);                                         \
        gap[k] += weight[i] * (EXACTCV_MAX(ahead, 0.0) * up + EXACTCV_MAX(behind, 0.0) * down);  \
        loss[k] += weight[i] * EXACTCV_MAX(on_left, on_right);                                   \
        norm[k] += c[i] * h[i];                                                                  \
    }
    for (i = start; i + EXACTCV_LANES <= stop; i += EXACTCV_LANES)
        for (k = 0; k < EXACTCV_LANES; k++)
            EXACTCV_ROW(i + k, k)
    for (; i < stop; i++)
        EXACTCV_ROW(i, 0)
#undef EXACTCV_ROW

    for (k = 0; k < EXACTCV_LANES; k++) {
        out->residual = EXACTCV_MAX(residual[k], out->residual);
        out->box = EXACTCV_MAX(box[k], out->box);
        out->scale = EXACTCV_MAX(scale[k], out->scale);
        out->outside = EXACTCV_MAX(outside[k], out->outside);
        out->sum += sum[k];
        out->size += size[k];
        out->gap += gap[k];
        out->loss += loss[k];
        out->norm += norm[k];
    }
}

/* What rows start ... stop - 1 demand of the intercept: *low <= b <= *high (see intercept.py).
 *
 * A coefficient within ``near`` of an end of its box, relative to the box, is taken to be there.
 */
EXACTCV_CLONES
static void exactcv_limits(const double *h, const double *c, const double *table, ptrdiff_t n,
                           ptrdiff_t start, ptrdiff_t stop, double C, double near,
                           double *low, double *high)
{
    const double *knot = table, *s0 = table + n, *s1 = table + 2 * n, *inverse = table + 4 * n;
    const double inverse_C = 1.0 / C;
    double lows[EXACTCV_LANES], highs[EXACTCV_LANES];
    ptrdiff_t i, k;

/* No branches, or gcc would not vectorise: a row that sets no limit is pushed out of the way. */
#define EXACTCV_ROW(i, k)                                                                        \
    {                                                                                            \
        const double s = -c[i] * (inverse[i] * inverse_C);                                       \
        const double slack = near * (s1[i] - s0[i]) + 1e-15;                                     \
        const double room = knot[i] - h[i];                                                      \
        const double left = 1e300 * (s - s0[i] - slack), right = -1e300 * (s1[i] - s - slack);   \
        const double from = EXACTCV_MIN(room, left), to = EXACTCV_MAX(room, right);              \
        lows[k] = EXACTCV_MAX(from, lows[k]);                                                    \
        highs[k] = EXACTCV_MIN(to, highs[k]);                                                    \
    }
    for (k = 0; k < EXACTCV_LANES; k++) {
        lows[k] = -1e300;
        highs[k] = 1e300;
    }
    for (i = start; i + EXACTCV_LANES <= stop; i += EXACTCV_LANES)
        for (k = 0; k < EXACTCV_LANES; k++)
            EXACTCV_ROW(i + k, k)
    for (; i < stop; i++)
        EXACTCV_ROW(i, 0)
#undef EXACTCV_ROW

    for (k = 0; k < EXACTCV_LANES; k++) {
        *low = lows[k] > -1e280 && lows[k] > *low ? lows[k] : *low;
        *high = highs[k] < 1e280 && highs[k] < *high ? highs[k] : *high;
    }
}

/* mark[i] = max(mark[i], |x[i] - base[i]|): where does x differ from base? */
EXACTCV_CLONES
static void exactcv_mark(const double *x, const double *base, ptrdiff_t start, ptrdiff_t stop,
                         double *mark)
{
    for (ptrdiff_t i = start; i < stop; i++) {
        const double d = fabs(x[i] - base[i]);
        mark[i] = EXACTCV_MAX(d, mark[i]);
    }
}

/* out = out + base + a * x */
EXACTCV_CLONES
static void exactcv_add(const double *base, const double *x, double a, ptrdiff_t n, double *out)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] += base[i] + a * x[i];
}

/* h = h + sum over k of a[k] * row k of K, eight rows at a time: the rows come from memory that is
 * slower than the processor, so several streams at once are quicker than one after the other.
 * Fewer than eight are filled up with zeros times the first row. */
EXACTCV_CLONES
static void exactcv_add_rows(const double *K, ptrdiff_t n, const ptrdiff_t *rows, const double *a,
                             ptrdiff_t count, double *restrict h)
{
    for (ptrdiff_t start = 0; start < count; start += 8) {
        const double *r[8];
        double w[8];
        for (ptrdiff_t k = 0; k < 8; k++) {
            const int used = start + k < count;
            r[k] = K + n * rows[used ? start + k : start];
            w[k] = used ? a[start + k] : 0.0;
        }
        if (count - start < 3) { /* not worth eight streams */
            for (ptrdiff_t i = 0; i < n; i++)
                h[i] += w[0] * r[0][i] + w[1] * r[1][i];
            continue;
        }
        for (ptrdiff_t i = 0; i < n; i++)
            h[i] += ((w[0] * r[0][i] + w[1] * r[1][i]) + (w[2] * r[2][i] + w[3] * r[3][i])) +
                    ((w[4] * r[4][i] + w[5] * r[5][i]) + (w[6] * r[6][i] + w[7] * r[7][i]));
    }
}

#endif
