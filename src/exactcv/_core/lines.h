/* The passes of ``_lines.pyx`` over rows of losses with m knots, written so that gcc turns them into
 * vector code for one and for two knots; see ``vector.h`` for how.
 *
 * table holds 4 + 2 m arrays of length n one after the other: weight (zero for rows that take no
 * part), 1 / weight (for those: of the heaviest row), stiff = sqrt(K_ii max K), the knots, and the
 * slopes.
 */
#ifndef EXACTCV_LINES_H
#define EXACTCV_LINES_H

#include "vector.h"

/* What one solution's rows add up to; ``judge/piecewise_linear.py`` says why. */
typedef struct {
    double residual; /* max of the natural residuals */
    double coarse;   /* max of stiff over rows within a unit of a knot */
    double inside;   /* max distance of a coefficient from both ends of its box */
    double total;    /* sum of the coefficients, each brought into its box */
    double size;     /* sum of |c| */
    double stray;    /* sum of stiff times what was cut off to bring c into its box */
    double reach;    /* sum of stiff |c| */
    double norm;     /* c' h, that is ||f||^2 */
    double loss;     /* sum of C_i L_i(u_i) */
    double bracket;  /* sum of the Fenchel-Young terms */
    double wide;     /* by how much the brackets may change for an error of 1 in u */
} exactcv_sums_t;

#define EXACTCV_INLINE static inline __attribute__((always_inline))

/* The distance of u from the nearest knot. */
EXACTCV_INLINE double exactcv_away(const double *knots, ptrdiff_t n, ptrdiff_t m, ptrdiff_t i,
                                   double u)
{
    double away = fabs(u - knots[i]);
    for (ptrdiff_t q = 1; q < m; q++) {
        const double here = fabs(u - knots[q * n + i]);
        away = EXACTCV_MIN(here, away);
    }
    return away;
}

/* Add rows start ... stop - 1; ``near`` is how close to a knot a row may be on either side of it. */
EXACTCV_INLINE void exactcv_sum_rows(const double *h, const double *coef, const double *table,
                                     ptrdiff_t n, const ptrdiff_t m, ptrdiff_t start,
                                     ptrdiff_t stop, double C, double b, double unit, double near,
                                     exactcv_sums_t *out)
{
    const double *weight = table, *inverse = table + n, *stiff = table + 2 * n;
    const double *knots = table + 3 * n, *slopes = knots + m * n;
    const double share = unit / C;
    double residual[EXACTCV_LANES] = {0}, coarse[EXACTCV_LANES] = {0}, inside[EXACTCV_LANES] = {0};
    double total[EXACTCV_LANES] = {0}, size[EXACTCV_LANES] = {0}, stray[EXACTCV_LANES] = {0};
    double reach[EXACTCV_LANES] = {0}, norm[EXACTCV_LANES] = {0}, loss[EXACTCV_LANES] = {0};
    double bracket[EXACTCV_LANES] = {0}, wide[EXACTCV_LANES] = {0};
    ptrdiff_t i, k, q;

/* prox is u - prox(u - tau c), from the last segment to the first; below and above are how far the
 * knots around each segment are from u, as far as the segment lies between. */
#define EXACTCV_ROW(i, k)                                                                        \
    {                                                                                            \
        const double u = h[i] + b, c = coef[i], box = C * weight[i], own = inverse[i] * share;   \
        const double tau = EXACTCV_MAX(stiff[i], own);                                           \
        const double top = -box * slopes[i], bottom = -box * slopes[m * n + i];                  \
        const double raised = EXACTCV_MAX(c, bottom), in = EXACTCV_MIN(raised, top);             \
        const double away = exactcv_away(knots, n, m, i, u);                                     \
        const double around = away <= unit ? stiff[i] : 0.0;                                     \
        const double from_bottom = in - bottom, from_top = top - in;                             \
        const double depth = EXACTCV_MIN(from_bottom, from_top);                                 \
        double prox = tau * (bottom - c), here = bottom, young = 0.0, lost = 0.0;                \
        for (q = m - 1; q >= 0; q--) {                                                           \
            const double knot = knots[q * n + i], level = -box * slopes[q * n + i];              \
            const double lower = EXACTCV_MAX(knot - u, prox), upper = tau * (level - c);         \
            prox = EXACTCV_MIN(upper, lower);                                                    \
            here = u > knot ? here : level;                                                      \
        }                                                                                        \
        for (q = 0; q <= m; q++) {                                                               \
            const double level = -box * slopes[q * n + i];                                       \
            const double high = EXACTCV_MAX(in - level, 0.0), low = EXACTCV_MAX(level - in, 0.0); \
            const double falls = EXACTCV_MAX(-level, 0.0), rises = EXACTCV_MAX(level, 0.0);      \
            double above = 0.0, below = 0.0;                                                     \
            if (q > 0) {                                                                         \
                const double last = knots[(q - 1) * n + i];                                      \
                const double end = q == m ? u : EXACTCV_MIN(u, knots[(q < m ? q : 0) * n + i]);  \
                above = EXACTCV_MAX(end - last, 0.0);                                            \
            }                                                                                    \
            if (q < m) {                                                                         \
                const double last = q == 0 ? u : EXACTCV_MAX(u, knots[(q ? q - 1 : 0) * n + i]); \
                below = EXACTCV_MAX(knots[q * n + i] - last, 0.0);                               \
            }                                                                                    \
            young += high * above + low * below;                                                 \
            lost += falls * above + rises * below;                                               \
        }                                                                                        \
        prox = fabs(prox);                                                                       \
        residual[k] = EXACTCV_MAX(prox, residual[k]);                                            \
        coarse[k] = EXACTCV_MAX(around, coarse[k]);                                              \
        inside[k] = EXACTCV_MAX(depth, inside[k]);                                               \
        total[k] += in;                                                                          \
        size[k] += fabs(c);                                                                      \
        stray[k] += stiff[i] * fabs(c - in);                                                     \
        reach[k] += stiff[i] * fabs(c);                                                          \
        norm[k] += c * h[i];                                                                     \
        loss[k] += lost;                                                                         \
        bracket[k] += young;                                                                     \
        wide[k] += away <= near ? top - bottom : fabs(here - in);                                \
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
        out->inside = EXACTCV_MAX(inside[k], out->inside);
        out->total += total[k];
        out->size += size[k];
        out->stray += stray[k];
        out->reach += reach[k];
        out->norm += norm[k];
        out->loss += loss[k];
        out->bracket += bracket[k];
        out->wide += wide[k];
    }
}

/* What rows start ... stop - 1 demand of the intercept: *low <= b <= *high (see intercept.py).
 *
 * A coefficient is at a level if it is within ``near`` / tau + ``blur`` of it, or its rounding.  A
 * row that sets no limit is pushed out of the way.
 */
EXACTCV_INLINE void exactcv_limit_rows(const double *h, const double *coef, const double *table,
                                       ptrdiff_t n, const ptrdiff_t m, ptrdiff_t start,
                                       ptrdiff_t stop, double C, double unit, double near,
                                       double blur, double *low, double *high)
{
    const double *weight = table, *inverse = table + n, *stiff = table + 2 * n;
    const double *knots = table + 3 * n, *slopes = knots + m * n;
    const double share = unit / C;
    double lows[EXACTCV_LANES], highs[EXACTCV_LANES];
    ptrdiff_t i, k, q;

#define EXACTCV_ROW(i, k)                                                                        \
    {                                                                                            \
        const double c = coef[i], box = C * weight[i], own = inverse[i] * share;                 \
        const double tau = EXACTCV_MAX(stiff[i], own), close = near / tau + blur;                \
        const double away = box > 0.0 ? 0.0 : 1e300;                                             \
        for (q = 0; q < m; q++) {                                                                \
            const double room = knots[q * n + i] - h[i];                                         \
            const double level = -box * slopes[q * n + i];                                       \
            const double after = -box * slopes[(q + 1) * n + i];                                 \
            const double least = level - (close + EXACTCV_BLURRED * fabs(level));                \
            const double most = after + (close + EXACTCV_BLURRED * fabs(after));                 \
            const double from = room - (c < least ? away : 1e300);                               \
            const double to = room + (c > most ? away : 1e300);                                  \
            lows[k] = EXACTCV_MAX(from, lows[k]);                                                \
            highs[k] = EXACTCV_MIN(to, highs[k]);                                                \
        }                                                                                        \
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

EXACTCV_CLONES
static void exactcv_sums(const double *h, const double *coef, const double *table, ptrdiff_t n,
                         ptrdiff_t m, ptrdiff_t start, ptrdiff_t stop, double C, double b,
                         double unit, double near, exactcv_sums_t *out)
{
    if (m == 1)
        exactcv_sum_rows(h, coef, table, n, 1, start, stop, C, b, unit, near, out);
    else if (m == 2)
        exactcv_sum_rows(h, coef, table, n, 2, start, stop, C, b, unit, near, out);
    else
        exactcv_sum_rows(h, coef, table, n, m, start, stop, C, b, unit, near, out);
}

EXACTCV_CLONES
static void exactcv_line_limits(const double *h, const double *coef, const double *table,
                                ptrdiff_t n, ptrdiff_t m, ptrdiff_t start, ptrdiff_t stop,
                                double C, double unit, double near, double blur, double *low,
                                double *high)
{
    if (m == 1)
        exactcv_limit_rows(h, coef, table, n, 1, start, stop, C, unit, near, blur, low, high);
    else if (m == 2)
        exactcv_limit_rows(h, coef, table, n, 2, start, stop, C, unit, near, blur, low, high);
    else
        exactcv_limit_rows(h, coef, table, n, m, start, stop, C, unit, near, blur, low, high);
}

#endif
