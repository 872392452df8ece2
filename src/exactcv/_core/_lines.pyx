# cython: language_level=3, boundscheck=False, wraparound=False
# cython: cdivision=True, initializedcheck=False
"""The judge's passes over rows whose losses have knots and slopes of any kind.

What ``_residuals.pyx`` does for the hinge, whose knots and slopes are known.  Twins in NumPy:
``judge`` is ``reference/residuals.tally`` with ``intercept.doubt``, ``intercepts`` is
``intercept.canonical_intercept``.

The loops over rows are in ``lines.h``, which says what ``table`` holds.  Zero is a slope of every
loss, or lies between two.
"""

from libc.math cimport INFINITY, fabs, isfinite, sqrt
from libc.string cimport memset

from exactcv._core._intercept cimport from_middle, middle

cdef extern from "lines.h" nogil:
    ctypedef struct exactcv_sums_t:
        double residual
        double coarse
        double inside
        double total
        double size
        double stray
        double reach
        double norm
        double loss
        double bracket
        double wide

    double exactcv_away(
        const double *knots, Py_ssize_t n, Py_ssize_t m, Py_ssize_t i, double u)
    void exactcv_sums(
        const double *h, const double *coef, const double *table, Py_ssize_t n, Py_ssize_t m,
        Py_ssize_t start, Py_ssize_t stop, double C, double b, double unit, double near,
        exactcv_sums_t *out)
    void exactcv_line_limits(
        const double *h, const double *coef, const double *table, Py_ssize_t n, Py_ssize_t m,
        Py_ssize_t start, Py_ssize_t stop, double C, double unit, double near, double blur,
        double *low, double *high)

cdef double ROUNDOFF = 1.1102230246251565e-16
# As in ``_residuals.pyx`` and ``intercept.py``.
cdef double ROUNDING = 8.0
cdef double BALANCE = 32.0
cdef double DOUBT = 100.0
# Inside by this share of the widest box, a coefficient has the last word on b.
cdef double CLEAR = 1e-4
cdef double NEAR = 1e-6
cdef double UNSEEN = 4.0
# The same of the gap, in units of what rounding is charged with there.
cdef double BLUR = 4.0
cdef double TINY = 2.2250738585072014e-308


cdef struct Scales:
    double unit      # the largest knot
    double widest    # max sqrt(K_ii)
    double share     # 1 / the largest weight
    double most      # the widest box at C = 1
    double least     # the narrowest
    double near      # AT_BOUND


cdef class Lines:
    """The rows of one training set: what is judged, and on what scale.

    Parameters
    ----------
    table : (4 + 2 m, n)
    m : int
        Knots a row.
    scales : (unit, widest, share, most, least, near)
    intercept : bool
    """

    cdef const double[:, ::1] table
    cdef Py_ssize_t m, n
    cdef Scales scales
    cdef bint intercept

    def __init__(self, const double[:, ::1] table, Py_ssize_t m, scales, bint intercept):
        self.table, self.m, self.n, self.intercept = table, m, table.shape[1], intercept
        (self.scales.unit, self.scales.widest, self.scales.share, self.scales.most,
         self.scales.least, self.scales.near) = scales

    def judge(self, const double[:, ::1] h, const double[:, ::1] coef,
              const double[::1] intercept, const double[::1] C, const Py_ssize_t[::1] own,
              const double[::1] blurred, double[:, ::1] out):
        """KKT violation, duality gap, primal objective and floor of each solution.

        ``own[k]`` is a row that solution k leaves out besides, or -1; ``blurred[k]`` is what its h
        may be off by besides rounding, in the Euclidean norm.
        """
        cdef Py_ssize_t k
        cdef exactcv_sums_t sums
        cdef double unsure
        with nogil:
            for k in range(coef.shape[0] if self.n > 0 else 0):
                sums = self._sums(&h[k, 0], &coef[k, 0], intercept[k], C[k], own[k])
                self._conclude(&sums, intercept[k], C[k], blurred[k], &out[k, 0])
                if self.intercept:
                    unsure = self._doubt(&h[k, 0], &coef[k, 0], intercept[k], C[k], own[k], &sums)
                    out[k, 0] = max(out[k, 0], (unsure + blurred[k]) / self.scales.unit)

    def intercepts(self, const double[:, ::1] h, const double[:, ::1] coef,
                   const double[::1] C, const Py_ssize_t[::1] own, double[::1] out):
        """The intercept that the rule picks for each solution."""
        cdef Py_ssize_t k
        cdef double low, high
        with nogil:
            for k in range(coef.shape[0] if self.n > 0 else 0):
                self._limits(&h[k, 0], &coef[k, 0], C[k], own[k], 1.0, 0.0, &low, &high)
                out[k] = middle(low, high)

    cdef exactcv_sums_t _sums(self, const double *h, const double *coef, double b, double C,
                              Py_ssize_t own) noexcept nogil:
        cdef exactcv_sums_t s
        cdef const double *table = &self.table[0, 0]
        cdef double unit = self.scales.unit, size, stiff
        memset(&s, 0, sizeof(s))
        exactcv_sums(h, coef, table, self.n, self.m, 0, self.n if own < 0 else own, C, b, unit,
                     NEAR * unit, &s)
        if own >= 0:
            exactcv_sums(h, coef, table, self.n, self.m, own + 1, self.n, C, b, unit, NEAR * unit,
                         &s)
            size, stiff = fabs(coef[own]), self.table[2, own]
            s.residual = max(s.residual, size * max(stiff, unit * self.scales.share / C))
            if exactcv_away(&self.table[3, 0], self.n, self.m, own, h[own] + b) <= unit:
                s.coarse = max(s.coarse, stiff)
            s.size += size
            s.norm += coef[own] * h[own]
            s.stray += size * stiff
            s.reach += size * stiff
        return s

    cdef void _conclude(self, exactcv_sums_t *s, double b, double C, double blurred,
                        double *out) noexcept nogil:
        cdef double widest = self.scales.widest, unit = self.scales.unit
        cdef double root = widest if widest > 0.0 else 1.0
        cdef double noise = ROUNDOFF * s.reach, norm = sqrt(max(s.norm + blurred * s.size, 0.0))
        cdef double off = fabs(s.total) if self.intercept else 0.0
        cdef double stray = s.stray / root + off * widest
        cdef double kkt = (max(s.residual, noise * s.coarse / (root * root)) + blurred) / unit
        cdef double primal = 0.5 * norm * norm + s.loss, gap, floor
        if off > 0.0:
            kkt = max(kkt, off / s.size)
        if not self.intercept:
            kkt = max(kkt, fabs(b))
        # The brackets change by at most the error of each u times its part of ``wide``, none of
        # which is more than the widest box: the norm of those parts by Cauchy and Schwarz.
        gap = s.bracket + noise * s.wide + blurred * sqrt(s.wide * C * self.scales.most)
        gap += 0.5 * stray * stray
        gap += off * (2.0 * unit + fabs(b) + norm * widest)
        gap = stray + sqrt(2.0 * max(gap, 0.0))
        if self.intercept:
            gap += UNSEEN * ROUNDOFF * s.size * widest
        gap = 0.5 * gap * gap
        floor = max(ROUNDING * noise / unit, BLUR * noise * s.wide / max(primal, TINY))
        # A number that is not finite never survives all of these sums.
        if not (isfinite(primal + gap + s.norm + s.size + b) and isfinite(kkt)):
            kkt, gap, floor = INFINITY, INFINITY, 0.0
        out[0], out[1], out[2], out[3] = kkt, gap, primal, floor

    cdef double _doubt(self, const double *h, const double *coef, double b, double C,
                       Py_ssize_t own, exactcv_sums_t *s) noexcept nogil:
        """How far b may be from what the rule picks; see ``intercept.doubt``."""
        cdef double blur = BALANCE * ROUNDOFF * s.size, off = fabs(s.total), low, high, strict
        if s.inside > DOUBT * self.scales.near * C * self.scales.most + blur + off:
            if s.inside > CLEAR * C * self.scales.most:
                return 0.0
            self._limits(h, coef, C, own, 0.0, s.inside / self.n, &low, &high)
            return max(low - b, b - high, 0.0)
        self._limits(h, coef, C, own, 0.0, blur, &low, &high)
        strict = from_middle(low, high, b)
        self._limits(h, coef, C, own, DOUBT, blur + (off if off <= CLEAR * s.size else 0.0), &low,
                     &high)
        if off > blur or C * self.scales.least <= blur:
            return max(fabs(low - b), fabs(high - b))
        return max(strict, from_middle(low, high, b))

    cdef void _limits(self, const double *h, const double *coef, double C, Py_ssize_t own,
                      double times, double blur, double *low, double *high) noexcept nogil:
        """The ends of the interval of intercepts; see ``intercept.intercept_limits``.

        A coefficient is at a level if it is within ``times`` AT_BOUND / tau + ``blur`` of it.
        """
        cdef const double *table = &self.table[0, 0]
        cdef double unit = self.scales.unit, near = times * self.scales.near * unit
        low[0], high[0] = -INFINITY, INFINITY
        exactcv_line_limits(h, coef, table, self.n, self.m, 0, self.n if own < 0 else own, C, unit,
                            near, blur, low, high)
        if own >= 0:
            exactcv_line_limits(h, coef, table, self.n, self.m, own + 1, self.n, C, unit, near,
                                blur, low, high)
