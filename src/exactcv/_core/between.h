/* What ``_between.pyx`` needs of all rows, written as in ``vector.h`` so that gcc turns it into
 * vector code: sums in a fixed order, whatever the vector width. */
#ifndef EXACTCV_BETWEEN_H
#define EXACTCV_BETWEEN_H

#include "vector.h"

/* Complementary slackness between two solutions of one training set. */
typedef struct {
    double bend;    /* of the one's coefficients with the other's values, both ways */
    double gap0;    /* of the first with itself */
    double gap1;    /* of the second */
    double changed; /* 1 if a row has not the same state in both, else 0 */
    double free;    /* 1 if a row is free in the first, else 0 */
} exactcv_bend_t;

/* Rows without weight take no part.  off[i] is how far row i is from its knot at the worse end. */
EXACTCV_CLONES
static void exactcv_bend(const double *y, const double *weight, ptrdiff_t n, double closeness,
                         double C0, const double *coef0, const double *u0, double C1,
                         const double *coef1, const double *u1, double *restrict off,
                         exactcv_bend_t *out)
{
    double bend[EXACTCV_LANES] = {0}, gap0[EXACTCV_LANES] = {0}, gap1[EXACTCV_LANES] = {0};
    double changed[EXACTCV_LANES] = {0}, within[EXACTCV_LANES] = {0};
    ptrdiff_t i, k;

#define EXACTCV_ROW(i, k)                                                                        \
    {                                                                                            \
        const double used = weight[i] > 0.0 ? 1.0 : 0.0;                                         \
        const double box0 = C0 * weight[i], box1 = C1 * weight[i];                               \
        const double c0 = y[i] * coef0[i], c1 = y[i] * coef1[i];                                 \
        const double a0 = EXACTCV_MAX(c0, 0.0), a1 = EXACTCV_MAX(c1, 0.0);                       \
        const double r0 = box0 - a0, r1 = box1 - a1;                                             \
        const double p0 = EXACTCV_MAX(r0, 0.0), p1 = EXACTCV_MAX(r1, 0.0);                       \
        const double x0 = y[i] * u0[i] - 1.0, x1 = y[i] * u1[i] - 1.0;                           \
        const double s0 = fabs(x0), s1 = fabs(x1);                                               \
        const double some0 = a0 > closeness * box0 ? 1.0 : 0.0;                                  \
        const double some1 = a1 > closeness * box1 ? 1.0 : 0.0;                                  \
        const double in0 = p0 > closeness * box0 ? some0 : 0.0;                                  \
        const double in1 = p1 > closeness * box1 ? some1 : 0.0;                                  \
        const double by01 = x1 < 0.0 ? p0 : a0, by10 = x0 < 0.0 ? p1 : a1;                       \
        const double by00 = x0 < 0.0 ? p0 : a0, by11 = x1 < 0.0 ? p1 : a1;                       \
        const double differs = used * (fabs(in0 - in1) + fabs(some0 - some1));                   \
        bend[k] += used * (by01 * s1 + by10 * s0);                                               \
        gap0[k] += used * (by00 * s0);                                                           \
        gap1[k] += used * (by11 * s1);                                                           \
        changed[k] = EXACTCV_MAX(differs, changed[k]);                                           \
        within[k] = EXACTCV_MAX(used * in0, within[k]);                                          \
        off[i] = used > 0.0 ? EXACTCV_MAX(s0, s1) : 1e300;                                       \
    }
    for (i = 0; i + EXACTCV_LANES <= n; i += EXACTCV_LANES)
        for (k = 0; k < EXACTCV_LANES; k++)
            EXACTCV_ROW(i + k, k)
    for (; i < n; i++)
        EXACTCV_ROW(i, 0)
#undef EXACTCV_ROW

    out->bend = out->gap0 = out->gap1 = out->changed = out->free = 0.0;
    for (k = 0; k < EXACTCV_LANES; k++) {
        out->bend += bend[k];
        out->gap0 += gap0[k];
        out->gap1 += gap1[k];
        out->changed = EXACTCV_MAX(changed[k], out->changed);
        out->free = EXACTCV_MAX(within[k], out->free);
    }
}

#endif
