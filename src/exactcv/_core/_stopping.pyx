# cython: language_level=3, boundscheck=False, wraparound=False
# cython: cdivision=True, initializedcheck=False
"""Two dual problems of one left-out row, side by side.

Driver: ``algorithms/loo_stopping/dual_pair.py``.
Twin: ``reference/stopping.py``.

    first    max over c   G(c) = t' c - 1/2 c' K  c    subject to  lower <= c <= upper  (sum c = 0)
    second   max over d   H(d) = t' d - 1/2 d' K' d    subject to  lower <= d <= upper

The first is the left-out problem; it is solved by SMO, as in ``_smo.pyx``.  The second is the same
with the decision value of the left-out row r held at zero; its kernel is

    K'_ij = K_ij - K_ir - K_rj + K_rr      (with an intercept; no sum to keep)
    K'_ij = K_ij - K_ir K_rj / K_rr        (without)

that is K'_i = K_i - share_i K_r - offset_i with share = 1, offset = K_ir - K_rr, or
share = K_ir / K_rr, offset = 0.  It is solved one coordinate at a time.  e = t - K c, g = t - K' d.

All arrays have one entry for each row of K; rows that take no part have lower = upper = 0.  Every
function stops as soon as some c, b and d prove the label of row r:  F(c, b) + slack < H(d).
"""

from libc.math cimport INFINITY, fabs

from ._working_set cimport (
    LEAST_CURVATURE,
    Choice,
    first_of_pair,
    second_of_pair,
    shift,
    shift_share,
    single,
)

cdef enum:
    CONVERGED = 0
    STOPPED = 1
    CANCELLED = 2
    PROVED = 3
    LOOK_EVERY = 500  # iterations between looks at the cancel flag
    CHECK_EVERY = 4  # iterations between two evaluations of F


cdef struct Pair:
    # The fixed part, then the moving part of both problems; arrays of length n.
    const double *K
    const double *target
    const double *lower
    const double *upper
    const double *diagonal
    const double *scale
    const double *curvature
    const double *share
    const double *offset
    const double *row_r
    double *c
    double *e
    double *d
    double *g
    double *work
    Py_ssize_t n
    Py_ssize_t r
    double tie
    double rounding
    double G
    double H
    double best_F
    double best_value


cdef Choice choose(Pair *p, bint fit_intercept) noexcept nogil:
    """What to move in the first problem: a pair, or without an intercept one coefficient."""
    cdef Choice best
    if not fit_intercept:
        return single(p.c, p.e, p.lower, p.upper, p.diagonal, p.n)
    best = first_of_pair(p.c, p.e, p.lower, p.upper, p.n)
    if best.i >= 0 and best.top > best.bottom:
        best.j = second_of_pair(
            p.c, p.e, p.lower, p.diagonal, p.K + best.i * p.n, p.diagonal[best.i], best.top, p.n
        )
    return best


cdef void move_pair(Pair *p, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """Raise c_i and lower c_j by the same best step; update e and G."""
    cdef const double *row_i = p.K + i * p.n
    cdef const double *row_j = p.K + j * p.n
    cdef double curvature = p.diagonal[i] + p.diagonal[j] - 2.0 * row_i[j]
    cdef double room_i = p.upper[i] - p.c[i], room_j = p.c[j] - p.lower[j]
    cdef double rise = p.e[i] - p.e[j]
    cdef double step = min(rise / max(curvature, LEAST_CURVATURE), min(room_i, room_j))
    p.c[i] = p.upper[i] if step >= room_i else p.c[i] + step
    p.c[j] = p.lower[j] if step >= room_j else p.c[j] - step
    shift(p.e, step, row_i, row_j, p.n)
    p.G += step * (rise - 0.5 * step * curvature)


cdef double best_step(
    Pair *p, const double *x, Py_ssize_t i, double slope, double bend
) noexcept nogil:
    """How far x_i moves: to its optimum or to the end of its box."""
    cdef double new = x[i] + slope / max(bend, LEAST_CURVATURE)
    return max(p.lower[i], min(p.upper[i], new)) - x[i]


cdef void move_first(Pair *p, Py_ssize_t i) noexcept nogil:
    """Move c_i alone by its best step; update e and G."""
    cdef const double *row = p.K + i * p.n
    cdef double step = best_step(p, p.c, i, p.e[i], p.diagonal[i])
    cdef Py_ssize_t k
    p.G += step * (p.e[i] - 0.5 * step * p.diagonal[i])
    p.c[i] += step
    for k in range(p.n):
        p.e[k] -= step * row[k]


cdef void move_second(Pair *p, Py_ssize_t i) noexcept nogil:
    """Move d_i by its best step; update g and H."""
    cdef const double *row = p.K + i * p.n
    cdef double step = best_step(p, p.d, i, p.g[i], p.curvature[i])
    p.H += step * (p.g[i] - 0.5 * step * p.curvature[i])
    p.d[i] += step
    shift_share(p.g, step, row, p.share[i], p.row_r, p.offset[i], p.n)


cdef void swap(double *v, double *w, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef double held = v[a]
    v[a] = v[b]
    v[b] = held
    held = w[a]
    w[a] = w[b]
    w[b] = held


cdef double quantile(double *v, double *w, Py_ssize_t size, double target) noexcept nogil:
    """The smallest v whose weight, with that of all smaller ones, is at least target.

    Quickselect with a three-way partition (values tie often); v and w are left in disorder.
    """
    cdef Py_ssize_t start = 0, end = size, low, high, k
    cdef double pivot, weight_low, weight_same
    while end - start > 1:
        pivot = v[start + (end - start) // 2]
        low, k, high = start, start, end
        weight_low = weight_same = 0.0
        while k < high:
            if v[k] < pivot:
                weight_low += w[k]
                swap(v, w, low, k)
                low += 1
                k += 1
            elif v[k] > pivot:
                high -= 1
                swap(v, w, k, high)
            else:
                weight_same += w[k]
                k += 1
        if low > start and target <= weight_low:
            end = low
        elif target <= weight_low + weight_same or high == end:
            return pivot
        else:
            target -= weight_low + weight_same
            start = high
    return v[start] if size > 0 else 0.0


cdef double best_intercept(Pair *p) noexcept nogil:
    """The b that minimises F(c, .): a quantile of e with weights upper - lower.

    Row i loses max(upper_i (e_i - b), lower_i (e_i - b)): as b passes e_i the slope of the sum,
    at first -sum upper, rises by upper_i - lower_i.
    """
    cdef double *weight = p.work + p.n
    cdef double target = 0.0
    cdef Py_ssize_t k, size = 0
    for k in range(p.n):
        if p.upper[k] > p.lower[k]:
            p.work[size] = p.e[k]
            weight[size] = p.upper[k] - p.lower[k]
            target += p.upper[k]
            size += 1
    return quantile(p.work, weight, size, target)


cdef bint proves(Pair *p, bint fit_intercept) noexcept nogil:
    """Is the best F found so far below H?  H and the rounding are worked out afresh."""
    cdef double b = best_intercept(p) if fit_intercept else 0.0
    cdef double F = 0.0, H = 0.0, size = 0.0, over
    cdef Py_ssize_t k
    for k in range(p.n):
        over = p.e[k] - b
        F += 0.5 * p.c[k] * (p.target[k] - p.e[k])
        F += p.upper[k] * over if over > 0.0 else p.lower[k] * over
        H += 0.5 * p.d[k] * (p.target[k] + p.g[k])
        size += (fabs(p.c[k]) + 4.0 * fabs(p.d[k])) * p.scale[k]
    p.H = H
    if F < p.best_F:
        p.best_F = F
        p.best_value = p.target[p.r] - p.e[p.r] + b
    return p.best_F + p.tie + p.rounding * size < H


def pair_steps(
    const double[:, ::1] K,
    Py_ssize_t r,
    const double[:, ::1] fixed,
    double[:, ::1] moving,
    double tie,
    double rounding,
    bint fit_intercept,
    bint second,
    double eps,
    Py_ssize_t max_iter,
    const int[::1] cancel,
):
    """Steps in turn in both problems (``second``), or in the first alone; see the module's top.

    ``fixed`` stacks target, lower, upper, diagonal, scale = sqrt(diagonal) and, for the second
    problem, curvature = diag K', share, offset; ``moving`` stacks c, e, d, g, which move in place,
    and two rows of scratch.  ``tie`` and ``rounding`` make up the slack of the proof.

    Returns (status, steps of the first, steps of the second, violation, value): status 0 converged
    to eps, 1 stopped, 2 cancelled, 3 proved; then ``value`` is a decision value of row r with the
    proved sign.  Steps of the second problem in rows of K that the first has just used are not
    counted.
    """
    cdef Pair p = Pair(
        &K[0, 0], &fixed[0, 0], &fixed[1, 0], &fixed[2, 0], &fixed[3, 0], &fixed[4, 0],
        &fixed[5, 0], &fixed[6, 0], &fixed[7, 0], &K[r, 0],
        &moving[0, 0], &moving[1, 0], &moving[2, 0], &moving[3, 0], &moving[4, 0],
        K.shape[0], r, tie, rounding, 0.0, 0.0, INFINITY, 0.0,
    )
    cdef Choice choice, other
    cdef Py_ssize_t done = 0, done_second = 0, k
    cdef int status = STOPPED
    with nogil:
        for k in range(p.n):
            p.G += 0.5 * p.c[k] * (p.target[k] + p.e[k])
            p.H += 0.5 * p.d[k] * (p.target[k] + p.g[k])
        while True:
            # F is never below G, so it need not be worked out before H has passed G.
            if second and done % CHECK_EVERY == 0 and p.H > p.G and proves(&p, fit_intercept):
                status = PROVED
                break
            choice = choose(&p, fit_intercept)
            if not choice.violation > eps:
                status = PROVED if second and proves(&p, fit_intercept) else CONVERGED
                break
            if done >= max_iter:
                break
            if done % LOOK_EVERY == 0 and cancel[0]:
                status = CANCELLED
                break
            if fit_intercept:
                move_pair(&p, choice.i, choice.j)
            else:
                move_first(&p, choice.i)
            done += 1
            if second:
                # The rows of K just used serve the second problem too, at no further cost.
                move_second(&p, choice.i)
                if choice.j >= 0:
                    move_second(&p, choice.j)
                other = single(p.d, p.g, p.lower, p.upper, p.curvature, p.n)
                if other.i >= 0:
                    move_second(&p, other.i)
                    done_second += 1
    return status, done, done_second, choice.violation, p.best_value


def lower_quantile(const double[::1] values, const double[::1] weights, double target):
    """The weighted quantile that gives the intercept, for the tests."""
    cdef double[::1] v = values.copy(), w = weights.copy()
    return quantile(&v[0], &w[0], v.shape[0], target)
