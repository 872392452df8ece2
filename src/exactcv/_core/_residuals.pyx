# cython: language_level=3, boundscheck=False, wraparound=False
# cython: cdivision=True, initializedcheck=False
"""The judge's hot loops: h = K c for blocks of nearby solutions, and one pass over each.

Twins in NumPy, in ``reference/residuals.py``: ``judge`` is ``tally``, ``intercepts`` is
``intercept.canonical_intercept``, and ``margins``, ``touched_columns``, ``nearby_values`` and
``tested_values`` bear their names.
"""

from libc.math cimport INFINITY, fabs, isfinite, sqrt
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dgemm

from exactcv._core._intercept cimport from_middle, middle

cdef extern from "vector.h" nogil:
    ctypedef struct exactcv_tally_t:
        double residual
        double coarse
        double lack
        double inside
        double sum
        double size
        double stray
        double reach
        double norm
        double loss
        double kept
        double lean
        double tilt

    void exactcv_tally(
        const double *h, const double *coef, const double *table, Py_ssize_t n,
        Py_ssize_t start, Py_ssize_t stop, double scale, double C, double b, double near,
        double slack, exactcv_tally_t *out)
    void exactcv_limits(
        const double *h, const double *coef, const double *table, Py_ssize_t n,
        Py_ssize_t start, Py_ssize_t stop, double scale, double C, double near, double blur,
        double *low, double *high)
    void exactcv_mark(
        const double *x, const double *base, Py_ssize_t start, Py_ssize_t stop, double *mark)
    double exactcv_size(const double *x, const double *scale, Py_ssize_t n)
    void exactcv_margins(
        const double *change, const double *margin, const double *sign, const double *before,
        Py_ssize_t n, double tie, double *wrong, double *more)
    void exactcv_add(
        const double *base, const double *x, double a, Py_ssize_t n, double *out)


cdef double ROUNDOFF = 1.1102230246251565e-16
# The floor of the figures in units of the rounding of u: the gap has four times as much.
cdef double ROUNDING = 8.0
# What is called a bound is in doubt from this many roundings of sum |c| to this many times
# AT_BOUND (``intercept.py``).
cdef double BALANCE = 32.0
cdef double DOUBT = 100.0
# Inside by this share of the widest box, a coefficient has the last word on b.
cdef double CLEAR = 1e-4
# Rows this close to their knot may be on either side of it.
cdef double NEAR = 1e-6
# What sum c may be off by though it seems to be 0, in roundings of sum |c|.
cdef double UNSEEN = 4.0


def judge(
    const double[:, ::1] h,
    const double[:, ::1] coef,
    const Py_ssize_t[::1] at,
    const double[::1] scale,
    const double[::1] intercept,
    const double[::1] C,
    const double[:, :, ::1] tables,
    const Py_ssize_t[::1] which,
    const Py_ssize_t[::1] own,
    double widest,
    const double[::1] heaviest,
    const double[::1] lightest,
    double slack,
    bint fit_intercept,
    const double[::1] blurred,
    double[:, ::1] out,
):
    """KKT violation, duality gap, primal objective and floor of each solution (hinge loss).

    Solution k is ``scale[k]`` times ``coef[at[k]]``, its values those times ``h[at[k]]``, and it is
    one of training set ``which[k]``.  ``own[k]`` is a row that it leaves out beyond
    those without weight in ``tables[which[k]]``, or -1.
    out[k] = (violation, absolute gap, primal, floor).  See ``judge/piecewise_linear.py`` for what
    they mean; ``widest`` is max sqrt(K_ii), ``heaviest`` the largest weight of each training set,
    ``lightest`` the least and ``blurred[k]`` what the h of solution k may be off by besides
    rounding.
    """
    cdef Py_ssize_t n = coef.shape[1], k, j, w
    cdef exactcv_tally_t t
    cdef const double *table
    cdef const double *c
    cdef const double *u
    cdef double size, stiff, s
    with nogil:
        for k in range(at.shape[0]):
            memset(&t, 0, sizeof(t))
            j, w, s = own[k], which[k], scale[k]
            u, c, table = &h[at[k], 0], &coef[at[k], 0], &tables[w, 0, 0]
            exactcv_tally(
                u, c, table, n, 0, n if j < 0 else j, s, C[k], intercept[k], NEAR, slack, &t)
            if j >= 0:
                exactcv_tally(
                    u, c, table, n, j + 1, n, s, C[k], intercept[k], NEAR, slack, &t)
                size, stiff = fabs(s * c[j]), tables[w, 3, j]
                t.residual = max(t.residual, size * max(stiff, 1.0 / (C[k] * heaviest[w])))
                t.size += size
                t.norm += s * s * (c[j] * u[j])
                size *= stiff
                t.stray += size
                t.reach += size
            conclude(&t, intercept[k], widest, fit_intercept, blurred[k], &out[k, 0])
            if fit_intercept:
                size = doubt(u, c, table, n, j, s, C[k], intercept[k], &t, heaviest[w],
                             lightest[w], slack)
                out[k, 0] = max(out[k, 0], size)


cdef inline double doubt(
    const double *h, const double *coef, const double *table, Py_ssize_t n, Py_ssize_t own,
    double scale, double C, double b, exactcv_tally_t *t, double heaviest, double lightest,
    double near,
) noexcept nogil:
    """How far b may be from what the rule picks; see ``intercept.doubt``."""
    cdef double blur = BALANCE * ROUNDOFF * t.size, off = fabs(t.sum), low, high, strict
    if t.inside > DOUBT * near * C * heaviest + blur + off:
        if t.inside > CLEAR * C * heaviest:
            return 0.0
        limits(h, coef, table, n, own, scale, C, 0.0, t.inside / n, &low, &high)
        return max(low - b, b - high, 0.0)
    limits(h, coef, table, n, own, scale, C, 0.0, blur, &low, &high)
    strict = from_middle(low, high, b)
    limits(h, coef, table, n, own, scale, C, near * DOUBT,
           blur + (off if off <= CLEAR * t.size else 0.0), &low, &high)
    if off > blur or C * lightest <= blur:
        return max(fabs(low - b), fabs(high - b))
    return max(strict, from_middle(low, high, b))


cdef inline void conclude(
    exactcv_tally_t *t, double b, double widest, bint fit_intercept, double blurred, double *out,
) noexcept nogil:
    """From the sums over one solution's rows to its figures."""
    cdef double unit = widest if widest > 0.0 else 1.0
    cdef double noise = ROUNDOFF * t.reach, norm = sqrt(max(t.norm + blurred * t.size, 0.0))
    cdef double off = fabs(t.sum) if fit_intercept else 0.0
    cdef double stray = t.stray / unit + off * widest
    cdef double kkt = max(t.residual + blurred, noise * t.coarse / (unit * unit) + blurred)
    cdef double lack = t.lack + noise + blurred, theta, gap, primal = 0.5 * norm * norm + t.loss
    if off > 0.0:
        kkt = max(kkt, off / t.size)
    if not fit_intercept:
        kkt = max(kkt, fabs(b))
    gap = INFINITY
    if lack < 0.5:
        theta = lack / (1.0 - lack)
        gap = theta * norm + stray
        gap = (1.0 + theta) * t.kept + theta * (2.0 * t.lean + t.tilt) + 0.5 * gap * gap
        gap = stray + sqrt(2.0 * (gap + off * (2.0 + fabs(b) + norm * widest)))
        if fit_intercept:
            gap += UNSEEN * ROUNDOFF * t.size * widest
        gap = 0.5 * gap * gap
    # A number that is not finite never survives all of these sums.
    if not (isfinite(primal + gap + t.norm + t.size + b) and isfinite(kkt)):
        kkt = INFINITY
        gap = INFINITY
        noise = 0.0
    out[0] = kkt
    out[1] = gap
    out[2] = primal
    out[3] = ROUNDING * noise


def intercepts(
    const double[:, ::1] h,
    const double[:, ::1] coef,
    const Py_ssize_t[::1] at,
    const double[::1] scale,
    const double[::1] C,
    const double[:, :, ::1] tables,
    const Py_ssize_t[::1] which,
    const Py_ssize_t[::1] own,
    double near,
    double[::1] out,
):
    """The intercept that the rule picks for each solution, given as in `judge` (hinge loss)."""
    cdef Py_ssize_t k, n = coef.shape[1]
    cdef double low, high
    with nogil:
        for k in range(at.shape[0]):
            limits(&h[at[k], 0], &coef[at[k], 0], &tables[which[k], 0, 0], n, own[k], scale[k],
                   C[k], near, 0.0, &low, &high)
            out[k] = middle(low, high)


cdef inline void limits(
    const double *h, const double *coef, const double *table, Py_ssize_t n, Py_ssize_t own,
    double scale, double C, double near, double blur, double *low, double *high,
) noexcept nogil:
    """The ends of the interval of intercepts; see ``intercept.intercept_limits``."""
    low[0], high[0] = -INFINITY, INFINITY
    exactcv_limits(h, coef, table, n, 0, n if own < 0 else own, scale, C, near, blur, low, high)
    if own >= 0:
        exactcv_limits(h, coef, table, n, own + 1, n, scale, C, near, blur, low, high)


def sizes(const double[:, ::1] coef, const double[::1] scale, double[::1] out):
    """out[k] = sum_i |coef[k, i]| scale[i]; the twin is ``np.abs(coef) @ scale``."""
    cdef Py_ssize_t k, n = coef.shape[1]
    with nogil:
        for k in range(coef.shape[0]):
            out[k] = exactcv_size(&coef[k, 0], &scale[0], n)


def margins(
    const double[:, ::1] change,
    const double[::1] margin,
    const double[::1] sign,
    const double[::1] before,
    double tie,
    double[::1] wrong,
    double[::1] more,
):
    """Of values that change, a solution in each row: how many are on the wrong side, and the sum of
    what their hinge losses are more than ``before``; ``margin`` is sign times the value so far.
    """
    cdef Py_ssize_t k, n = change.shape[1]
    if n == 0:
        return
    with nogil:
        for k in range(change.shape[0]):
            exactcv_margins(&change[k, 0], &margin[0], &sign[0], &before[0], n, tie, &wrong[k],
                            &more[k])


def touched_columns(
    const double[:, ::1] coef,
    const double[::1] base,
    const Py_ssize_t[::1] own,
    double[::1] mark,
    Py_ssize_t[::1] columns,
):
    """Where any solution differs from ``base``, each one's own row aside.

    Fills the front of ``columns`` and returns how many there are; ``mark`` is scratch.
    """
    cdef Py_ssize_t n = coef.shape[1], k, i, count = 0
    with nogil:
        memset(&mark[0], 0, n * sizeof(double))
        for k in range(coef.shape[0]):
            exactcv_mark(&coef[k, 0], &base[0], 0, own[k], &mark[0])
            exactcv_mark(&coef[k, 0], &base[0], own[k] + 1, n, &mark[0])
        for i in range(n):
            if mark[i] > 0.0:
                columns[count] = i
                count += 1
    return count


def nearby_values(
    const double[:, ::1] K,
    const double[:, ::1] coef,
    const double[::1] base,
    const double[::1] h_base,
    const Py_ssize_t[::1] own,
    const Py_ssize_t[::1] columns,
    double[::1] pack,
    double[::1] panel,
    double[:, ::1] out,
):
    """out[k] = K coef[k], given h_base = K base and the columns in which coef differs from base.

    K coef = h_base + K[:, columns] (coef - base)[columns] + K[:, own] (coef - base)[own], where the
    own row (own[k]) is left out of the middle term if it is one of the columns.
    The rows of K are taken a panel at a time, so that K is never copied as a whole: ``panel`` has
    room for some rows of K, and ``pack`` for that many entries a solution.
    """
    cdef int n = <int> K.shape[0], block = <int> coef.shape[0], width
    cdef Py_ssize_t capacity = panel.shape[0] // n, start = 0, count = columns.shape[0], k, i, j
    cdef double one = 1.0, beta = 0.0
    with nogil:
        if count == 0:
            memset(&out[0, 0], 0, <size_t> n * block * sizeof(double))
        while start < count:
            width = <int> min(capacity, count - start)
            for i in range(width):
                memcpy(&panel[i * n], &K[columns[start + i], 0], n * sizeof(double))
            for k in range(block):
                for i in range(width):
                    j = columns[start + i]
                    pack[k * width + i] = 0.0 if j == own[k] else coef[k, j] - base[j]
            # BLAS counts columns first: out' (n, block) += panel' (n, width) pack' (width, block)
            dgemm(b"N", b"N", &n, &block, &width, &one, &panel[0], &n, &pack[0], &width,
                  &beta, &out[0, 0], &n)
            beta = 1.0
            start += width
        for k in range(block):
            j = own[k]
            exactcv_add(&h_base[0], &K[j, 0], coef[k, j] - base[j], n, &out[k, 0])


def tested_values(
    const double[:, ::1] h,
    const double[::1] intercept,
    const double[::1] blur,
    const Py_ssize_t[:] where,
    const Py_ssize_t[:] which,
    const Py_ssize_t[:] offsets,
    const Py_ssize_t[:] rows,
    const double[:] y,
    double tie,
    double[:, ::1] decision,
    unsigned char[:, ::1] wrong,
    unsigned char[::1] blurred,
):
    """What solution k, of fold ``which[k]`` at grid point ``where[k]``, says of the fold's rows.

    Fold f is tested on rows[offsets[f] : offsets[f + 1]]; its values are entered at those places
    of ``decision``, and in ``wrong`` whether they do not have the sign of y, as no value up to
    ``tie`` has.  ``blurred[k]`` says whether a label changes if its value does by ``blur[k]``.
    """
    cdef Py_ssize_t k, t, line
    cdef double value, sign
    with nogil:
        for k in range(h.shape[0]):
            line, blurred[k] = where[k], 0
            for t in range(offsets[which[k]], offsets[which[k] + 1]):
                value, sign = h[k, rows[t]] + intercept[k], y[rows[t]]
                decision[line, t] = value
                wrong[line, t] = not sign * value > tie
                if (sign * (value - blur[k]) > tie) != (sign * (value + blur[k]) > tie):
                    blurred[k] = 1
