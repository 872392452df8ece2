"""Linear systems with K_MM, for sets M that change by a few rows at a time.

    G_MM x = r,    G = K + top 1 1' (with an intercept) + a ridge of 1e-12 top

A set B, the base, is factorised: G_BB = U'U.  Later sets M differ from it by rows that left (R) and
rows that came (A).  Then x on B and A, with x_R = 0, solves

    [ G_BB   V ] [ x_B ]   [ r_B ]         V = [ E_R, G_BA ],    D = [ 0   0    ],
    [ V'     D ] [ y   ] = [ g   ],                                 [ 0   G_AA ]

where y holds the multipliers of x_R = 0 and then x_A, and g = (0, r_A).  With W = U'^{-1} V,

    (D - W'W) y = g - W' U'^{-1} r_B,       x_B = U^{-1} (U'^{-1} r_B - W y).

A changed row costs one triangular solve, kept for as long as the base is; a new base is made when
the changes are too many to be worth it.  That of another factor of the same K, of more rows, may
take its place: training sets are what is left of all rows, and so are mostly their sets M.
"""

from libc.math cimport INFINITY
from libc.string cimport memcmp

from scipy.linalg.cython_blas cimport daxpy, ddot, dgemm, dgemv, dsyrk, dtrsm, dtrsv
from scipy.linalg.cython_lapack cimport dpotrf, dsytrf, dsytrs

import numpy as np

# Added to the diagonal, relative to the largest entry there.
cdef double RIDGE = 1e-12
# Factorising fewer rows than this is cheaper than keeping account of what changed.
cdef int SMALLEST = 96
# A base is kept until this share of its rows has changed.
cdef int SHARE = 4
# A base of fewer rows is not worth lending, nor one that saves less than this share of the work.
cdef int LENT = 500
cdef double SAVED = 0.5
# Block size of dsytrf's workspace, and of columns of W that begin at about the same row.
cdef int PANEL = 32
# So few columns are solved for panel by panel (BLAS would copy all of U for them), and so many
# columns of U make a panel, which is to stay in the processor's cache from one to the next.
cdef int NARROW = 3
cdef int WIDE = 32
# A multiplication in the few solves of an update takes as long as so many in a factorisation.
cdef double FEW = 3.125
# A base is firm if no pivot of its factor is smaller than this, relative to ``top``.
cdef double FIRM = 1e-10


cdef double _afresh_cost(double size) noexcept nogil:
    """Multiplications that a factorisation takes."""
    return size**3 / 6


cdef double _borrowed_cost(double n_base, double left, double came) noexcept nogil:
    """The same of the changes to a base that some rows have left, and to which some came.

    A row that leaves takes the part of the triangle below it, a third of it in the mean.
    """
    return n_base * (n_base * (left / 6 + came / 2) + (left + came) ** 2 / 2)


cdef class Factor:
    """G_MM, ready to solve with, for a sequence of sets M.

    Parameters
    ----------
    K : (n, n)
    constant : bool
        Add the largest diagonal entry to all of G (see ``_active_set.pyx`` for why).

    Attributes
    ----------
    top : float
        The constant that was added, or would have been.
    updated : bool
        Does the present set differ from the one that was factorised?
    firm : bool
        Is the base far from singular?
    n_factorised : int
    """

    def __init__(self, K, bint constant):
        n = K.shape[0]
        self.K, self.constant = K, constant
        self.base = np.empty(n, dtype=np.intp)
        self.place = np.full(n, -1, dtype=np.intp)  # where in the base a row is
        self.column_of = np.full(n, -1, dtype=np.intp)  # which column of W is its own
        self.column_rows = np.empty(n, dtype=np.intp)
        self.changed = np.empty(n, dtype=np.intp)
        self.listed = np.empty(n, dtype=np.intp)
        self.seen = np.zeros(n, dtype=np.int64)
        self.triangle = np.empty(16 * 16)
        self.columns = self.inner = self.schur = self.work = np.empty(1)
        self.z, self.y = np.empty(2 * n), np.empty(2 * n)  # of two right sides
        self.ones, self.ones_inner = np.empty(n), np.empty(n)
        self.n_ones = -1
        self.pivots = np.empty(1, dtype=np.intc)

    def solve_with(self, rows, rhs):
        """x for M = ``rows``; of two right sides, a row each, for both."""
        at = np.ascontiguousarray(rows, dtype=np.intp)
        x = np.array(rhs, dtype=float, ndmin=2)
        cdef double[:, ::1] view = x
        if self.prepare(at, len(at), True) != 0:
            raise np.linalg.LinAlgError("G_MM is not positive definite")
        self.solve(at, len(at), &view[0, 0], &view[1, 0] if len(x) == 2 else NULL)
        return x.reshape(np.shape(rhs))

    def lean_on(self, Factor other):
        """Sets near the base of ``other``, which must not change meanwhile, are solved from that.

        Both are factors of one and the same K.
        """
        same = &other.K[0, 0] == &self.K[0, 0] and other.constant == self.constant
        self.lender = other if same and other.firm and other.n_base >= LENT else None
        self.distrusted = False

    def worth_lending(self, Py_ssize_t left):
        """Is the base of any use to a factor whose sets lack at least so many of its rows?"""
        return (self.firm and self.n_base >= LENT and left <= self.n_base / SHARE
                and _borrowed_cost(self.n_base, left, 0.0)
                < (1.0 - SAVED) * _afresh_cost(self.n_base - left))

    @property
    def rows(self):
        """The rows of the base."""
        return np.array(self.base[:self.n_base])

    def release(self):
        """Give the memory back; nothing is known any more."""
        self._clear()
        self.triangle, self.borrowed = np.empty(16 * 16), False
        self.columns = self.inner = self.schur = self.work = np.empty(1)

    def census(self, const signed char[::1] state):
        """How many rows are at a knot, and how many multiplications M = these rows would take.

        ``state`` as in ``_active_set.pyx``.
        """
        cdef Py_ssize_t i
        cdef Py_ssize_t size = 0
        cdef Py_ssize_t missing = -1
        cdef bint listed = self.firm or self.lender is not None
        for i in range(state.shape[0]):
            if state[i] > 0 and state[i] % 2 == 1:
                if listed:
                    self.listed[size] = i
                size += 1
        if self.firm and self.room > 0:
            missing = self._find_changes(self.listed, size, False)
        if missing >= 0:
            return size, FEW * missing * size**2 / 2
        return size, min(_afresh_cost(size), self._borrowed_cost(self.listed, size))

    def start_over(self):
        """As if nothing had been factorised yet, but by whom it leans on."""
        self._clear()
        self.distrusted = False

    cdef void _clear(self) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(self.n_base):
            self.place[self.base[i]] = -1
        for i in range(self.n_columns):
            self.column_of[self.column_rows[i]] = -1
        self.n_base = self.n_columns = self.n_changed = self.room = 0
        self.n_ones = -1
        self.updated = self.firm = False

    cdef void forget(self) noexcept nogil:
        """The next set is factorised, unless it is the base itself."""
        self.room = 0
        self.distrusted = self.distrusted or self.borrowed

    cdef int prepare(self, const Py_ssize_t[::1] rows, Py_ssize_t size, bint few):
        """Make ready for M = rows[:size]; returns LAPACK's info, 0 if all is well.

        ``few``: only few rows have changed since the last time.  Updates of a base that is nearly
        singular (repeated rows) rarely hold when many have.
        """
        cdef Py_ssize_t missing
        cdef int info
        if size == self.n_base and not memcmp(&rows[0], &self.base[0], size * sizeof(Py_ssize_t)):
            self.n_changed, self.updated = 0, False
            return 0
        if self.room > 0 and (few or self.firm):
            with nogil:
                missing = self._find_changes(rows, size, True)
                info = self._update() if missing >= 0 else -1
            if info == 0:
                return 0
        if self._borrowed_cost(rows, size) < (1.0 - SAVED) * _afresh_cost(size):
            self._borrow()
            with nogil:
                self._find_changes(rows, size, True)
                info = self._update()
            if info == 0:
                return 0
        return self._afresh(rows, size)

    cdef double _borrowed_cost(self, const Py_ssize_t[::1] rows, Py_ssize_t size) noexcept nogil:
        """Multiplications if M is solved from the base of another; infinite if it can not be.

        It may serve other sets in other threads meanwhile: nothing in it is touched.
        """
        cdef Py_ssize_t i
        cdef Py_ssize_t kept = 0
        cdef double n_base, left, came
        if self.lender is None or self.distrusted:
            return INFINITY
        for i in range(size):
            kept += self.lender.place[rows[i]] >= 0
        n_base, left, came = self.lender.n_base, self.lender.n_base - kept, size - kept
        if left + came > n_base / SHARE:
            return INFINITY
        return _borrowed_cost(n_base, left, came)

    def _borrow(self):
        """Take the base of another."""
        cdef Py_ssize_t i
        self._clear()
        self.triangle, self.borrowed = self.lender.triangle, True
        self.n_base, self.top, self.firm = self.lender.n_base, self.lender.top, True
        for i in range(self.n_base):
            self.base[i] = self.lender.base[i]
            self.place[self.base[i]] = i
        self._make_room()

    cdef Py_ssize_t _find_changes(self, const Py_ssize_t[::1] rows, Py_ssize_t size,
                                  bint list_them) noexcept nogil:
        """Rows that left or came and have no column yet; -1 if they are too many."""
        cdef Py_ssize_t i, row
        cdef Py_ssize_t count = 0
        cdef Py_ssize_t missing = 0
        self.stamp += 1
        for i in range(size):
            self.seen[rows[i]] = self.stamp
        for i in range(self.n_base + size):
            row = self.base[i] if i < self.n_base else rows[i - self.n_base]
            if i < self.n_base:
                if self.seen[row] == self.stamp:
                    continue
            elif self.place[row] >= 0:
                continue
            if self.column_of[row] < 0:
                missing += 1
                if self.n_columns + missing > self.room:
                    return -1
            if list_them:
                self.changed[count] = row
            count += 1
        if list_them:
            self.n_changed = count
        return missing

    cdef int _afresh(self, const Py_ssize_t[::1] rows, Py_ssize_t size):
        """Factorise G_MM and make M the base."""
        cdef Py_ssize_t i, j, row
        cdef int k = <int>size
        cdef int info
        cdef char uplo = b'U'
        if self.borrowed or size * size > self.triangle.shape[0]:
            self.triangle, self.borrowed = np.empty((size + size // 4) ** 2), False
        with nogil:
            self._clear()
            self.n_base = size
            self.n_factorised += 1
            self.top = 0.0
            for i in range(size):
                self.top = max(self.top, self.K[rows[i], rows[i]])
            if self.top == 0.0:  # every row in M is the origin of a linear kernel
                self.top = 1.0
            for i in range(size):
                row = rows[i]
                self.base[i] = row
                self.place[row] = i
                for j in range(i + 1):
                    self.triangle[i * size + j] = self._entry(row, rows[j])
            dpotrf(&uplo, &k, &self.triangle[0], &k, &info)
            self.firm = info == 0
            for i in range(size):
                self.firm = self.firm and self.triangle[i * size + i] ** 2 > FIRM * self.top
        if info != 0:
            for i in range(size):
                self.place[rows[i]] = -1
            self.n_base = 0
        elif size >= SMALLEST:
            self._make_room()
        return info

    def _make_room(self):
        """Memory for the changes to come."""
        self.room = self.n_base // SHARE
        if self.columns.shape[0] < self.room * self.n_base:
            self.columns = np.empty(self.room * self.n_base)
            self.inner, self.schur = np.empty(self.room**2), np.empty(self.room**2)
            self.work = np.empty(PANEL * self.room)
            self.pivots = np.empty(self.room, dtype=np.intc)

    cdef inline double _entry(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """G_ij."""
        cdef double entry = self.K[i, j]
        if self.constant:
            entry += self.top
        if i == j:
            entry += RIDGE * self.top
        return entry

    cdef int _update(self) noexcept nogil:
        """Columns of W for rows that have none yet, then the factor of D - W'W."""
        cdef Py_ssize_t i, j, k, row, other
        cdef Py_ssize_t first = self.n_columns
        cdef double* column
        cdef int n_base = <int>self.n_base
        cdef int room = <int>self.room
        cdef int n_new, n_old, size, info
        cdef int n_work = PANEL * room
        cdef double one = 1.0
        cdef double zero = 0.0
        cdef char upper = b'U'
        cdef char yes = b'T'
        cdef char no = b'N'
        self.updated = self.n_changed > 0
        if not self.updated:
            return 0
        for i in range(self.n_changed):
            row = self.changed[i]
            if self.column_of[row] >= 0:
                continue
            column = &self.columns[self.n_columns * self.n_base]
            for k in range(self.n_base):
                column[k] = 0.0 if self.place[row] >= 0 else self._entry(self.base[k], row)
            if self.place[row] >= 0:
                column[self.place[row]] = 1.0
            self.column_of[row] = self.n_columns
            self.column_rows[self.n_columns] = row
            self.n_columns += 1
        n_old, n_new = <int>first, <int>(self.n_columns - first)
        if n_new > 0:
            self._halfway(first)
            column = &self.columns[first * self.n_base]
            if n_old > 0:
                dgemm(&yes, &no, &n_old, &n_new, &n_base, &one, &self.columns[0], &n_base, column,
                      &n_base, &zero, &self.inner[first * self.room], &room)
            dsyrk(&upper, &yes, &n_new, &n_base, &one, column, &n_base, &zero,
                  &self.inner[first * self.room + first], &room)
        size = <int>self.n_changed
        for i in range(self.n_changed):
            row, k = self.changed[i], self.column_of[self.changed[i]]
            for j in range(i + 1):
                other = self.column_of[self.changed[j]]
                # Column k of W'W is there down to row k only.
                self.schur[i * size + j] = -self.inner[max(k, other) * self.room + min(k, other)]
                if self.place[row] < 0 and self.place[self.changed[j]] < 0:
                    self.schur[i * size + j] += self._entry(row, self.changed[j])
        dsytrf(&upper, &size, &self.schur[0], &size, &self.pivots[0], &self.work[0], &n_work,
               &info)
        return info

    cdef void _halfway(self, Py_ssize_t first) noexcept nogil:
        """Columns of V become those of W = U'^{-1} V.

        Rows that left come first, in the order of the base; what stands above the first of them in
        a panel stays 0.
        """
        cdef Py_ssize_t start, last, corner
        cdef int size, width
        cdef int n_base = <int>self.n_base
        cdef double one = 1.0
        cdef char left = b'L'
        cdef char upper = b'U'
        cdef char yes = b'T'
        cdef char no = b'N'
        while first < self.n_columns:
            start, last = self.place[self.column_rows[first]], first + 1
            if start < 0:
                start, last = 0, self.n_columns
            while (last < min(first + PANEL, self.n_columns)
                   and self.place[self.column_rows[last]] >= start):
                last += 1
            size, width, corner = n_base - <int>start, <int>(last - first), start * (n_base + 1)
            if width <= NARROW:
                self._panels(yes, start, &self.columns[first * self.n_base], width)
            else:
                dtrsm(&left, &upper, &yes, &no, &size, &width, &one, &self.triangle[corner],
                      &n_base, &self.columns[first * self.n_base + start], &n_base)
            first = last

    cdef void _panels(self, char trans, Py_ssize_t start, double* x, int count) noexcept nogil:
        """x := U'^{-1} x or U^{-1} x for columns x, whose entries before ``start`` stay 0.

        U comes from memory once, whether there is one column or several.
        """
        cdef Py_ssize_t step, first
        cdef Py_ssize_t n_panels = (self.n_base - start + WIDE - 1) // WIDE
        cdef int k, above, width
        cdef int n_base = <int>self.n_base
        cdef int one = 1
        cdef double plus = 1.0
        cdef double minus = -1.0
        cdef double* right
        cdef double* panel
        cdef char upper = b'U'
        cdef char no = b'N'
        for step in range(n_panels):
            first = start + WIDE * (step if trans == b'T' else n_panels - 1 - step)
            above, width = <int>(first - start), <int>min(WIDE, self.n_base - first)
            panel = &self.triangle[first * self.n_base + start]
            for k in range(count):
                right = x + k * self.n_base + start
                if trans == b'T' and above > 0:
                    dgemv(&trans, &above, &width, &minus, panel, &n_base, right, &one, &plus,
                          right + above, &one)
                dtrsv(&upper, &trans, &no, &width, panel + above, &n_base, right + above, &one)
                if trans == b'N' and above > 0:
                    dgemv(&trans, &above, &width, &minus, panel, &n_base, right + above, &one,
                          &plus, right, &one)

    cdef void solve(self, const Py_ssize_t[::1] rows, Py_ssize_t size, double* x,
                    double* other) noexcept nogil:
        """x := G_MM^{-1} x, for the M that was prepared; the same for ``other``, if not NULL."""
        cdef Py_ssize_t i, k
        cdef int r
        cdef int n_base = <int>self.n_base
        cdef int n_changed = <int>self.n_changed
        cdef int count = 1 if other == NULL else 2
        cdef int one = 1
        cdef int info
        cdef double minus
        cdef char upper = b'U'
        cdef double* z = &self.z[0]
        cdef double* y = &self.y[0]
        cdef double* column
        cdef double* right[2]
        right[0], right[1] = x, other
        for k in range(count * self.n_base):
            z[k] = 0.0
        for i in range(size):
            k = self.place[rows[i]]
            if k >= 0:
                for r in range(count):
                    z[r * n_base + k] = right[r][i]
            else:
                # Taken up below, where the rows that came are gone through in the same order.
                self.seen[rows[i]] = -1 - i
        self._panels(b'T', 0, z, count)
        if self.updated:
            for i in range(n_changed):
                k = self.changed[i]
                column = &self.columns[self.column_of[k] * self.n_base]
                for r in range(count):
                    y[r * n_changed + i] = (
                        (right[r][-1 - self.seen[k]] if self.place[k] < 0 else 0.0)
                        - ddot(&n_base, column, &one, z + r * n_base, &one)
                    )
            dsytrs(&upper, &n_changed, &count, &self.schur[0], &n_changed, &self.pivots[0], y,
                   &n_changed, &info)
            for i in range(n_changed):
                column = &self.columns[self.column_of[self.changed[i]] * self.n_base]
                for r in range(count):
                    minus = -y[r * n_changed + i]
                    daxpy(&n_base, &minus, column, &one, z + r * n_base, &one)
        self._panels(b'N', 0, z, count)
        for r in range(count):
            for i in range(size):
                k = self.place[rows[i]]
                if k >= 0:
                    right[r][i] = z[r * n_base + k]
            if self.updated:
                for i in range(n_changed):
                    k = self.changed[i]
                    if self.place[k] < 0:
                        right[r][-1 - self.seen[k]] = y[r * n_changed + i]

    cdef double move(self, const Py_ssize_t[::1] rows, Py_ssize_t size, double* x,
                     const double* left, double total) noexcept nogil:
        """From r to x for the M that was prepared, when rows of the base leave it on the way:

            G_MM x + G_MR left_R + beta = r,        sum x + sum left_R = -total

        with R the rows of the base that are not in M (without the constant beta is 0, and nothing
        is said of sums).  Returns beta.

        Where r is 0 but for a few rows, or in all of them, the factor is gone through once instead
        of four times: left_R are the values that the multipliers of R keep, what a constant gives
        is known since the base is, and the sums come of it.
        """
        cdef Py_ssize_t i, k, row, from_
        cdef Py_ssize_t first = self.n_base
        cdef int n_changed = <int>self.n_changed
        cdef int count = 2 if self.constant else 1
        cdef int one = 1
        cdef int length, info
        cdef double minus
        cdef double beta = 0.0
        cdef double of_x = total
        cdef double of_one = 0.0
        cdef char upper = b'U'
        cdef double* z = &self.z[0]
        cdef double* y = &self.y[0]
        cdef double* other = &self.y[n_changed]
        for k in range(self.n_base):
            z[k] = 0.0
        for i in range(size):
            k = self.place[rows[i]]
            if k < 0:
                self.seen[rows[i]] = -1 - i
            elif x[i] != 0.0:
                z[k], first = x[i], min(first, k)
        if first < self.n_base:
            self._panels(b'T', first, z, 1)
        if self.constant:
            self._know_ones()
        length = <int>(self.n_base - first)
        for i in range(n_changed):
            row, k = self.changed[i], self.column_of[self.changed[i]]
            y[i] = left[row] if self.place[row] >= 0 else x[-1 - self.seen[row]]
            if length > 0:
                y[i] -= ddot(&length, &self.columns[k * self.n_base + first], &one, z + first, &one)
            if self.constant:
                other[i] = (1.0 if self.place[row] < 0 else 0.0) - self.ones_inner[k]
        if n_changed > 0:
            dsytrs(&upper, &n_changed, &count, &self.schur[0], &n_changed, &self.pivots[0], y,
                   &n_changed, &info)
        if self.constant:
            if length > 0:
                of_x += ddot(&length, &self.ones[first], &one, z + first, &one)
            of_one = self.ones_size
            for i in range(n_changed):
                row, k = self.changed[i], self.column_of[self.changed[i]]
                minus = (1.0 if self.place[row] < 0 else 0.0) - self.ones_inner[k]
                of_x += minus * y[i]
                of_one += minus * other[i]
            beta = of_x / of_one
            for k in range(self.n_base):
                z[k] -= beta * self.ones[k]
            for i in range(n_changed):
                y[i] -= beta * other[i]
        for i in range(n_changed):
            row, k = self.changed[i], self.column_of[self.changed[i]]
            from_ = max(self.place[row], 0)  # a row that left has nothing above its place
            length, minus = <int>(self.n_base - from_), -y[i]
            daxpy(&length, &minus, &self.columns[k * self.n_base + from_], &one, z + from_, &one)
        self._panels(b'N', 0, z, 1)
        for i in range(size):
            k = self.place[rows[i]]
            if k >= 0:
                x[i] = z[k]
        for i in range(n_changed):
            if self.place[self.changed[i]] < 0:
                x[-1 - self.seen[self.changed[i]]] = y[i]
        return beta

    cdef void _know_ones(self) noexcept nogil:
        """``ones`` = U'^{-1} 1, its square, and its products with the columns of W."""
        cdef Py_ssize_t k
        cdef int one = 1
        cdef int n_base = <int>self.n_base
        if self.n_ones < 0:
            for k in range(self.n_base):
                self.ones[k] = 1.0
            self._panels(b'T', 0, &self.ones[0], 1)
            self.ones_size = ddot(&n_base, &self.ones[0], &one, &self.ones[0], &one)
            self.n_ones = 0
        while self.n_ones < self.n_columns:
            self.ones_inner[self.n_ones] = ddot(&n_base, &self.columns[self.n_ones * self.n_base],
                                                &one, &self.ones[0], &one)
            self.n_ones += 1
