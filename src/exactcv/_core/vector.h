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
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define EXACTCV_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define EXACTCV_CLONES
#endif

#define EXACTCV_LANES 8
#define EXACTCV_MAX(a, b) ((a) > (b) ? (a) : (b))
#define EXACTCV_MIN(a, b) ((a) < (b) ? (a) : (b))
/* The rounding of a bound, relative to it (intercept.BLURRED). */
#define EXACTCV_BLURRED 7.1e-15

/* What one solution's rows add up to; see exactcv_tally, and ``judge/piecewise_linear.py`` for why.
 */
typedef struct {
    double residual; /* max of the natural residuals */
    double coarse;   /* max of stiff over rows within 1 of their knot */
    double lack;     /* max by which a row near its knot, with room to grow, falls short of it */
    double inside;   /* max distance of a coefficient from both ends of its box */
    double sum;      /* sum of the coefficients, each brought into its box */
    double size;     /* sum of |c| */
    double stray;    /* sum of stiff times what was cut off to bring c into its box */
    double reach;    /* sum of stiff |c| */
    double norm;     /* c' h, that is ||f||^2 */
    double loss;     /* sum of C_i L_i(u_i), but for the rows of lack */
    double kept;     /* sum of the Fenchel-Young terms, but for the same rows */
    double lean;     /* sum of |c| at or beyond the knot: what scaling f up costs */
    double tilt;     /* the same for rows that fall far short */
} exactcv_tally_t;

/* Add rows start ... stop - 1 of a hinge problem to the tally; the solution is scale times coef, and
 * its values scale times h.
 *
 * table holds four arrays of length n one after the other: y, weight (zero for rows that take no
 * part), 1 / weight (for those: of the heaviest row), and stiff = sqrt(K_ii max K).  Everything is
 * turned by y, so that 0 <= c <= C weight, and u >= 1 is the flat side.
 */
EXACTCV_CLONES
static void exactcv_tally(const double *h, const double *coef, const double *table, ptrdiff_t n,
                          ptrdiff_t start, ptrdiff_t stop, double scale, double C, double b,
                          double near, double slack, exactcv_tally_t *out)
{
    const double *y = table, *weight = table + n, *inverse = table + 2 * n, *stiff = table + 3 * n;
    const double inverse_C = 1.0 / C;
    double residual[EXACTCV_LANES] = {0}, coarse[EXACTCV_LANES] = {0}, lack[EXACTCV_LANES] = {0};
    double sum[EXACTCV_LANES] = {0}, size[EXACTCV_LANES] = {0}, stray[EXACTCV_LANES] = {0};
    double reach[EXACTCV_LANES] = {0}, norm[EXACTCV_LANES] = {0}, loss[EXACTCV_LANES] = {0};
    double kept[EXACTCV_LANES] = {0}, lean[EXACTCV_LANES] = {0}, tilt[EXACTCV_LANES] = {0};
    double inside[EXACTCV_LANES] = {0};
    ptrdiff_t i, k;

#define EXACTCV_ROW(i, k)                                                                        \
    {                                                                                            \
        const double u = y[i] * (scale * h[i] + b), c = y[i] * (scale * coef[i]), v = u - 1.0;   \
        const double box = C * weight[i], positive = EXACTCV_MAX(c, 0.0);                        \
        const double in = EXACTCV_MIN(positive, box), right = box - in;                          \
        const double over = EXACTCV_MAX(v, 0.0), under = EXACTCV_MAX(-v, 0.0);                   \
        const double share = inverse[i] * inverse_C, tau = EXACTCV_MAX(stiff[i], share);         \
        /* the natural residual is v clipped to [tau (c - box), tau c] */                        \
        const double from = tau * (c - box), to = tau * c, most = EXACTCV_MIN(v, to);            \
        const double r = fabs(EXACTCV_MAX(from, most));                                          \
        /* 1 or 0: is the row on the flat side, or near it?  and can its coefficient grow? */    \
        const double flat = v >= -near ? 1.0 : 0.0, open = tau * right > slack ? flat : 0.0;     \
        const double mild = open * under, hard = under - mild;                                   \
        const double around = over + under <= 1.0 ? stiff[i] : 0.0;                              \
        const double depth = EXACTCV_MIN(in, right);                                             \
        residual[k] = EXACTCV_MAX(r, residual[k]);                                               \
        coarse[k] = EXACTCV_MAX(around, coarse[k]);                                              \
        lack[k] = EXACTCV_MAX(mild, lack[k]);                                                    \
        inside[k] = EXACTCV_MAX(depth, inside[k]);                                               \
        sum[k] += y[i] * in;                                                                     \
        size[k] += fabs(c);                                                                      \
        stray[k] += stiff[i] * fabs(c - in);                                                     \
        reach[k] += stiff[i] * fabs(c);                                                          \
        norm[k] += coef[i] * h[i];                                                               \
        loss[k] += box * hard;                                                                   \
        kept[k] += in * over + right * hard;                                                     \
        lean[k] += flat * in;                                                                    \
        tilt[k] += (1.0 - open) * (right * (1.0 + fabs(u)));                                     \
    }
    for (i = start; i + EXACTCV_LANES <= stop; i += EXACTCV_LANES)
        for (k = 0; k < EXACTCV_LANES; k++)
            EXACTCV_ROW(i + k, k)
    for (; i < stop; i++)
        EXACTCV_ROW(i, 0)
#undef EXACTCV_ROW

    for (k = 0; k < EXACTCV_LANES; k++) {
        out->residual = EXACTCV_MAX(residual[k], out->residual);
        out->coarse = EXACTCV_MAX(coarse[k], out->coarse);
        out->lack = EXACTCV_MAX(lack[k], out->lack);
        out->inside = EXACTCV_MAX(inside[k], out->inside);
        out->sum += sum[k];
        out->size += size[k];
        out->stray += stray[k];
        out->reach += reach[k];
        out->norm += scale * scale * norm[k];
        out->loss += loss[k];
        out->kept += kept[k];
        out->lean += lean[k];
        out->tilt += tilt[k];
    }
}

/* What rows start ... stop - 1 demand of the intercept: *low <= b <= *high (see intercept.py), of
 * a solution as in exactcv_tally.
 *
 * A coefficient within ``near`` / tau + ``blur`` of an end of its box is taken to be there, and of
 * the upper end also within its rounding.
 */
EXACTCV_CLONES
static void exactcv_limits(const double *h, const double *coef, const double *table, ptrdiff_t n,
                           ptrdiff_t start, ptrdiff_t stop, double scale, double C, double near,
                           double blur, double *low, double *high)
{
    const double *y = table, *weight = table + n, *inverse = table + 2 * n, *stiff = table + 3 * n;
    const double inverse_C = 1.0 / C;
    double lows[EXACTCV_LANES], highs[EXACTCV_LANES];
    ptrdiff_t i, k;

/* A row that sets no limit is pushed out of the way.  y (c - box) < 0 says that c has room to grow
 * towards y, and so that y (u - y) >= 0: a limit from below for y > 0, from above for y < 0. */
#define EXACTCV_ROW(i, k)                                                                        \
    {                                                                                            \
        const double share = inverse[i] * inverse_C, tau = EXACTCV_MAX(stiff[i], share);         \
        const double c = y[i] * (scale * coef[i]), box = C * weight[i];                          \
        const double room = y[i] - scale * h[i];                                                 \
        const double most = (1.0 - EXACTCV_BLURRED) * box;                                       \
        const double away = box > 0.0 ? 0.0 : 1e300;                                             \
        const double grows = tau * (most - c - blur) > near ? away : 1e300;                      \
        const double falls = tau * (c - blur) > near ? away : 1e300;                             \
        const double below = y[i] > 0.0 ? grows : falls, above = y[i] > 0.0 ? falls : grows;     \
        const double from = room - below, to = room + above;                                     \
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

/* Lists the rows where value + step * moved is above high or below low by more than tol; returns how
 * many they are.  Few are, so that stretches without any are passed over by the largest excess. */
EXACTCV_CLONES
static ptrdiff_t exactcv_outside(const double *value, const double *moved, double step,
                                 const double *low, const double *high, double tol, ptrdiff_t n,
                                 ptrdiff_t *found)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t from = 0; from < n; from += 8 * EXACTCV_LANES) {
        const ptrdiff_t stop = EXACTCV_MIN(from + 8 * EXACTCV_LANES, n);
        double excess[EXACTCV_LANES] = {0}, most = 0.0;
        ptrdiff_t i = from, k;
        for (; i + EXACTCV_LANES <= stop; i += EXACTCV_LANES)
            for (k = 0; k < EXACTCV_LANES; k++) {
                const double x = value[i + k] + step * moved[i + k];
                const double over = x - (high[i + k] + tol), under = (low[i + k] - tol) - x;
                const double here = EXACTCV_MAX(over, under);
                excess[k] = EXACTCV_MAX(here, excess[k]);
            }
        for (k = 0; k < EXACTCV_LANES; k++)
            most = EXACTCV_MAX(excess[k], most);
        for (i = most > 0.0 ? from : i; i < stop; i++) {
            const double x = value[i] + step * moved[i];
            found[count] = i;
            count += (x > high[i] + tol) | (x < low[i] - tol);
        }
    }
    return count;
}

/* How many of the margins m = margin + sign * change are at most tie (*wrong), and the sum of what
 * their losses max(0, 1 - m) are more than before (*more). */
EXACTCV_CLONES
static void exactcv_margins(const double *change, const double *margin, const double *sign,
                            const double *before, ptrdiff_t n, double tie, double *wrong,
                            double *more)
{
    double count[EXACTCV_LANES] = {0}, sum[EXACTCV_LANES] = {0};
    ptrdiff_t i, k;

#define EXACTCV_ROW(i, k)                                                                        \
    {                                                                                            \
        const double m = margin[i] + sign[i] * change[i], lack = 1.0 - m;                        \
        count[k] += m <= tie ? 1.0 : 0.0;                                                        \
        sum[k] += EXACTCV_MAX(lack, 0.0) - before[i];                                            \
    }
    for (i = 0; i + EXACTCV_LANES <= n; i += EXACTCV_LANES)
        for (k = 0; k < EXACTCV_LANES; k++)
            EXACTCV_ROW(i + k, k)
    for (; i < n; i++)
        EXACTCV_ROW(i, 0)
#undef EXACTCV_ROW
    *wrong = *more = 0.0;
    for (k = 0; k < EXACTCV_LANES; k++) {
        *wrong += count[k];
        *more += sum[k];
    }
}

/* The sum of |x| * scale. */
EXACTCV_CLONES
static double exactcv_size(const double *x, const double *scale, ptrdiff_t n)
{
    double sum[EXACTCV_LANES] = {0}, total = 0.0;
    ptrdiff_t i, k;
    for (i = 0; i + EXACTCV_LANES <= n; i += EXACTCV_LANES)
        for (k = 0; k < EXACTCV_LANES; k++)
            sum[k] += fabs(x[i + k]) * scale[i + k];
    for (; i < n; i++)
        sum[0] += fabs(x[i]) * scale[i];
    for (k = 0; k < EXACTCV_LANES; k++)
        total += sum[k];
    return total;
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

/* y = y + a x. */
EXACTCV_CLONES
static void exactcv_axpy(double a, const double *restrict x, ptrdiff_t n, double *restrict y)
{
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

/* d = exp(-gamma d) in place, for gamma d >= 0, to about one unit in the last place; where the
 * result would be below 1e-307 it is 0.
 *
 * With x = -gamma d = k log 2 + r, |r| <= (log 2) / 2, it is 2^k times a Taylor polynomial in r of
 * degree 13.  Adding 1.5 * 2^52 rounds to the integer k, which is then found in the last bits. */
EXACTCV_CLONES
static void exactcv_rbf(double *restrict d, ptrdiff_t n, double gamma)
{
    const double shift = 6755399441055744.0, least = -707.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double all = -gamma * d[i], x = EXACTCV_MAX(all, least);
        const double shifted = x * 1.4426950408889634 + shift, k = shifted - shift;
        const double r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
        const double s = r * r, t = s * s;
        const double low = (0.5 + r * (1.0 / 6)) + s * (1.0 / 24 + r * (1.0 / 120));
        const double high = (1.0 / 720 + r * (1.0 / 5040)) + s * (1.0 / 40320 + r * (1.0 / 362880));
        const double last = (1.0 / 3628800 + r * (1.0 / 39916800)) +
                            s * (1.0 / 479001600 + r * (1.0 / 6227020800.0));
        const double sum = r + s * (low + t * (high + t * last));
        int64_t bits;
        double power;
        memcpy(&bits, &shifted, sizeof bits);
        bits = (int64_t)(((uint64_t)bits + 1023) << 52);
        memcpy(&power, &bits, sizeof power);
        d[i] = all < least ? 0.0 : power + power * sum;
    }
}

#endif
