# cython: language_level=3, boundscheck=False, wraparound=False
# cython: cdivision=True, initializedcheck=False
"""The judge's passes over rows whose losses have knots and slopes of any kind.

What ``_residuals.pyx`` does for the hinge, whose knots and slopes are known.  Twins in NumPy:
``judge`` is ``reference/residuals.tally`` with ``intercept.doubt``, ``intercepts`` is
``intercept.canonical_intercept``.

Each row of ``table`` has: weight (zero: takes no part), 1 / weight (for those: of the heaviest
row), stiff = sqrt(K_ii max K), the m knots, the m + 1 slopes.  Zero is a slope of every
loss, or lies between two.
"""

from libc.math cimport INFINITY, fabs, isfinite, sqrt

cdef double ROUNDOFF = 1.1102230246251565e-16
# As in ``_residuals.pyx`` and ``intercept.py``.
cdef double ROUNDING = 8.0
cdef double BALANCE = 32.0
cdef double DOUBT = 100.0
cdef double NEAR = 1e-6
# The same of the gap, in units of what rounding is charged with there.
cdef double BLUR = 4.0
cdef double TINY = 2.2250738585072014e-308
cdef double BLURRED = 7.1e-15


cdef struct Scales:
    double unit      # the largest knot
    double widest    # max sqrt(K_ii)
    double share     # 1 / the largest weight
    double most      # the widest box at C = 1
    double least     # the narrowest
    double near      # AT_BOUND


cdef struct Sums:
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


cdef class Lines:
    """The rows of one training set: what is judged, and on what scale.

    Parameters
    ----------
    table : (n, 4 + 2 m)
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
        self.table, self.m, self.n, self.intercept = table, m, table.shape[0], intercept
        (self.scales.unit, self.scales.widest, self.scales.share, self.scales.most,
         self.scales.least, self.scales.near) = scales

    def judge(self, const double[:, ::1] h, const double[:, ::1] coef,
              const double[::1] intercept, const double[::1] C, const Py_ssize_t[::1] own,
              double[:, ::1] out):
        """KKT violation, duality gap, primal objective and floor of each solution.

        ``own[k]`` is a row that solution k leaves out besides, or -1.
        """
        cdef Py_ssize_t k
        cdef Sums sums
        cdef double unsure
        with nogil:
            for k in range(coef.shape[0]):
                sums = self._sums(&h[k, 0], &coef[k, 0], intercept[k], C[k], own[k])
                self._conclude(&sums, intercept[k], &out[k, 0])
                if self.intercept:
                    unsure = self._doubt(&h[k, 0], &coef[k, 0], intercept[k], C[k], own[k], &sums)
                    out[k, 0] = max(out[k, 0], unsure / self.scales.unit)

    def intercepts(self, const double[:, ::1] h, const double[:, ::1] coef,
                   const double[::1] C, const Py_ssize_t[::1] own, double[::1] out):
        """The intercept that the rule picks for each solution."""
        cdef Py_ssize_t k
        cdef double low, high
        with nogil:
            for k in range(coef.shape[0]):
                self._limits(&h[k, 0], &coef[k, 0], C[k], own[k], 1.0, 0.0, &low, &high)
                out[k] = middle(low, high)

    cdef inline double _tau(self, Py_ssize_t i, double C, bint takes_part) noexcept nogil:
        cdef double inverse = self.table[i, 1] if takes_part else self.scales.share
        return max(self.table[i, 2], self.scales.unit * inverse / C)

    cdef Sums _sums(self, const double *h, const double *coef, double b, double C,
                    Py_ssize_t own) noexcept nogil:
        cdef Sums s
        cdef Py_ssize_t i, k, m = self.m
        cdef double u, c, box, tau, top, bottom, inside, prox, away, here, level, knot, last, stiff
        cdef double above, below, end, unit = self.scales.unit
        s.residual = s.coarse = s.inside = s.total = s.size = s.stray = s.reach = 0.0
        s.norm = s.loss = s.bracket = s.wide = 0.0
        for i in range(self.n):
            u, c, stiff = h[i] + b, coef[i], self.table[i, 2]
            box = 0.0 if i == own else C * self.table[i, 0]
            tau = self._tau(i, C, i != own)
            top, bottom = -box * self.table[i, 3 + m], -box * self.table[i, 3 + 2 * m]
            inside = min(max(c, bottom), top)
            # u - prox(u - tau c), from the last segment to the first
            prox, away, here = tau * (bottom - c), INFINITY, bottom
            for k in range(m - 1, -1, -1):
                knot, level = self.table[i, 3 + k], -box * self.table[i, 3 + m + k]
                prox = min(tau * (level - c), max(knot - u, prox))
                away = min(away, fabs(u - knot))
                if not u > knot:
                    here = level
            s.residual = max(s.residual, fabs(prox))
            if away <= unit:
                s.coarse = max(s.coarse, stiff)
            s.inside = max(s.inside, min(inside - bottom, top - inside))
            s.total += inside
            s.size += fabs(c)
            s.stray += stiff * fabs(c - inside)
            s.reach += stiff * fabs(c)
            s.norm += c * h[i]
            s.wide += top - bottom if away <= NEAR * unit else fabs(here - inside)
            # Fenchel and Young, segment by segment, for this coefficient and (the loss) for none
            last = 0.0
            for k in range(m + 1):
                level = -box * self.table[i, 3 + m + k]
                if k > 0:
                    end = u if k == m else min(u, self.table[i, 3 + k])
                    above = max(end - last, 0.0)
                    s.bracket += max(inside - level, 0.0) * above
                    s.loss += max(-level, 0.0) * above
                if k < m:
                    knot = self.table[i, 3 + k]
                    below = max(knot - (u if k == 0 else max(u, last)), 0.0)
                    s.bracket += max(level - inside, 0.0) * below
                    s.loss += max(level, 0.0) * below
                    last = knot
        return s

    cdef void _conclude(self, Sums *s, double b, double *out) noexcept nogil:
        cdef double widest = self.scales.widest, unit = self.scales.unit
        cdef double root = widest if widest > 0.0 else 1.0
        cdef double noise = ROUNDOFF * s.reach, norm = sqrt(max(s.norm, 0.0))
        cdef double off = fabs(s.total) if self.intercept else 0.0
        cdef double stray = s.stray / root + off * widest
        cdef double kkt = max(s.residual, noise * s.coarse / (root * root)) / unit
        cdef double primal = 0.5 * norm * norm + s.loss, gap, floor
        if off > 0.0:
            kkt = max(kkt, off / s.size)
        if not self.intercept:
            kkt = max(kkt, fabs(b))
        gap = s.bracket + noise * s.wide + 0.5 * stray * stray
        gap += off * (2.0 * unit + fabs(b) + norm * widest)
        gap = stray + sqrt(2.0 * max(gap, 0.0))
        gap = 0.5 * gap * gap
        floor = max(ROUNDING * noise / unit, BLUR * noise * s.wide / max(primal, TINY))
        # A number that is not finite never survives all of these sums.
        if not (isfinite(primal + gap + s.norm + s.size + b) and isfinite(kkt)):
            kkt, gap, floor = INFINITY, INFINITY, 0.0
        out[0], out[1], out[2], out[3] = kkt, gap, primal, floor

    cdef double _doubt(self, const double *h, const double *coef, double b, double C,
                       Py_ssize_t own, Sums *s) noexcept nogil:
        """How far b may be from what the rule picks; see ``intercept.doubt``."""
        cdef double blur = BALANCE * ROUNDOFF * s.size, off = fabs(s.total), low, high, strict, lax
        if s.inside > DOUBT * self.scales.near * C * self.scales.most + blur + off:
            return 0.0
        self._limits(h, coef, C, own, 0.0, blur, &low, &high)
        strict = middle(low, high)
        self._limits(h, coef, C, own, DOUBT, blur, &low, &high)
        lax = middle(low, high)
        if off > blur or C * self.scales.least <= blur:
            return max(fabs(low - b), fabs(high - b))
        return max(fabs(strict - b), fabs(lax - b))

    cdef void _limits(self, const double *h, const double *coef, double C, Py_ssize_t own,
                      double times, double blur, double *low, double *high) noexcept nogil:
        """The ends of the interval of intercepts; see ``intercept.intercept_limits``.

        A coefficient is at a level if it is within ``times`` AT_BOUND / tau + ``blur`` of it.
        """
        cdef Py_ssize_t i, k, m = self.m
        cdef double box, near, room, level, after
        low[0], high[0] = -INFINITY, INFINITY
        for i in range(self.n):
            box = C * self.table[i, 0]
            if i == own or not box > 0.0:
                continue
            near = times * self.scales.near * self.scales.unit / self._tau(i, C, True) + blur
            for k in range(m):
                room = self.table[i, 3 + k] - h[i]
                level = -box * self.table[i, 3 + m + k]
                after = -box * self.table[i, 4 + m + k]
                if coef[i] < level - (near + BLURRED * fabs(level)):
                    low[0] = max(low[0], room)
                if coef[i] > after + (near + BLURRED * fabs(after)):
                    high[0] = min(high[0], room)


cdef inline double middle(double low, double high) noexcept nogil:
    """The rule: the middle, or the end that exists."""
    if low == -INFINITY:
        return 0.0 if high == INFINITY else high
    return low if high == INFINITY else 0.5 * (low + high)
