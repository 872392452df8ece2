"""``ConformalSVC``: sets of labels with guaranteed coverage, by exact full conformal prediction."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..crossval.conformal import Conformal, NewRows
from ..crossval.moving_pairs import MovingPairs
from ..crossval.one_vs_one import most_votes, votes_of
from ..crossval.run import KernelRows, Plan
from ..crossval.scoring import shaped
from ..exceptions import InputError, Interrupted, UnsupportedError
from ..judge.certificate import Certificate, warn_if_short
from ..problem import checks, inputs
from ..problem.kernels import Kernel, kernel_between
from ..problem.repeated import first_equal
from ..runtime.memory import check_memory
from ..runtime.progress import following
from ..runtime.threads import Workers
from ..runtime.user_line import user_level
from ..types import (
    BoolArray,
    FloatArray,
    KernelFunction,
    KernelName,
    Matrix,
    MemoryLimit,
    Vector,
)
from .rows import read_new_rows, read_training_rows
from .settings import dense
from .sv_layout import layout, pair_decisions
from .typed import TypedClassifier

__all__ = ["ConformalSVC"]

# p-values are whole numbers over n + 1; this is far less than their spacing.
EQUAL = 1e-12


class ConformalSVC(TypedClassifier, ClassifierMixin, BaseEstimator):
    """Kernel SVM whose sets of labels have a guaranteed coverage: exact full conformal prediction.

    For each new row and each label that it might have, the row is added to the training rows with
    that label, and every row of this larger set is left out once: its *score* is the left-out
    decision value in favour of its own class (of several classes the least over the pairs with each
    other class).  The p-value of the label is the share of rows, the new one included, that score
    at most as high as the new one.  Labels with a large enough p-value make up the set.

    If the new row and the training rows are exchangeable (drawn alike and independently, say), the
    set holds the true label with at least the probability asked for: on average over training and
    new rows, for any distribution, at any number of rows, however good or bad the model is.  No row
    is set aside for calibration, and nothing is approximated: every comparison is proved or solved
    to a certified tolerance.

    Parameters
    ----------
    C : float
        The bound of every coefficient, as in scikit-learn's ``SVC``.
    kernel : {"rbf", "laplacian", "poly", "sigmoid", "linear", "precomputed"} or callable
    gamma : float or "auto"
        "auto" is 1 / number of features.  Rules that look at the rows ("median", "scale") are
        refused: they would treat training rows and new ones differently, and void the guarantee.
    degree, coef0 : int, float
        For "poly" and "sigmoid".
    fit_intercept : bool
    class_weight : dict, optional
        Multiplies C for the rows of a class.
    within_class : bool
        Compare a row only with rows of the class that it is tried with.  Then the coverage holds
        within each class, not only over all of them; sets are larger, above all for rare classes.
    n_jobs : int, optional
        Threads; -1 is all processors.  The result does not depend on it.
    tol : float
        What the KKT violation and the duality gap of every solution must meet.
    verbose : int
        Above 0: show on standard error how far ``p_values`` is.
    memory_limit : int or str, optional
        Bytes, or for example "2GB"; by default what the system has available.

    Attributes
    ----------
    classes_, support_, support_vectors_, n_support_, dual_coef_, intercept_ :
        Of the model of the training rows, as in ``SVC``; ``predict`` uses it.
    certificate_ : Certificate
        Of that model.
    gamma_ : float or None
    n_features_in_, feature_names_in_ :
        As everywhere in scikit-learn.

    Notes
    -----
    C and gamma must not come from the training rows, else the guarantee is only nearly true: choose
    them beforehand, or on other rows (``docs/only_exact.md``).

    Scores that differ by less than 1e-9 count as equal, and rows that score like the new one count
    for it, which can only make sets larger.

    A p-value takes about the time of one leave-one-out (n models) for each class; bounds save some
    of it.  See ``docs/only_exact.md`` for how it grows.

    Examples
    --------
    >>> import exactcv
    >>> X, y = exactcv.datasets.make_mixture(60, 4, random_state=0)
    >>> model = exactcv.ConformalSVC(C=1.0).fit(X[:50], y[:50])
    >>> model.p_values(X[50:53]).round(2)
    array([[0.2 , 0.82],
           [0.06, 0.92],
           [0.02, 1.  ]])
    >>> model.predict_set(X[50:53], coverage=0.9)
    array([[ True,  True],
           [False,  True],
           [False,  True]])
    """

    classes_: NDArray[Any]
    certificate_: Certificate
    gamma_: float | None
    support_: NDArray[np.int32]
    support_vectors_: Any  # sparse if the rows were
    n_support_: NDArray[np.int32]
    dual_coef_: FloatArray
    intercept_: FloatArray

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: KernelName | KernelFunction = "rbf",
        gamma: float | Literal["auto"] = "auto",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        class_weight: dict[Any, float] | None = None,
        within_class: bool = False,
        n_jobs: int | None = None,
        tol: float = 1e-8,
        verbose: int = 0,
        memory_limit: MemoryLimit | None = None,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.within_class = within_class
        self.n_jobs = n_jobs
        self.tol = tol
        self.verbose = verbose
        self.memory_limit = memory_limit

    # ---- fitting ------------------------------------------------------------------------------

    def fit(self, X: Matrix, y: Vector) -> Self:
        """Fit the model of the training rows, and keep them.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n, p)
            With ``kernel="precomputed"`` the (n, n) kernel matrix.
        y : array-like of shape (n,)
            Labels of two or more classes, of any type that can be sorted.
        """
        kernel = self._check_settings()
        rows, labels = read_training_rows(self, X, y)
        n = rows.shape[0]
        check_memory(n, self.memory_limit, extra_bytes=2 * 8 * n * n)
        _, self.classes_, codes = inputs.encode_labels(labels, n)
        if len(self.classes_) < 2:
            raise InputError(
                f"y has one class only, {self.classes_.tolist()[0]!r}; a classifier needs rows of "
                "two classes or more"
            )
        counts = np.bincount(codes)
        self._class_weights = inputs.class_factors(self.class_weight, counts, self.classes_)
        if not (self._class_weights > 0).all():
            raise InputError("every class needs a positive class_weight")
        self._rows, self._codes = rows, codes
        self.gamma_ = _gamma(kernel, rows.shape[1])
        self.__dict__.pop("_conformal", None)  # of an earlier fit
        self._keep_model(self._ready().models, rows)
        warn_if_short(self.certificate_, np.array([self.C]), 1, stacklevel=user_level() + 1)
        return self

    def _check_settings(self) -> Kernel:
        checks.check_positive("C", self.C)
        checks.check_positive("tol", self.tol)
        checks.check_flag("fit_intercept", self.fit_intercept)
        checks.check_flag("within_class", self.within_class)
        checks.check_n_threads(self.n_jobs)
        if isinstance(self.gamma, str) and self.gamma in ("median", "scale"):
            raise UnsupportedError(
                f"gamma={self.gamma!r} looks at the training rows but not at the new one, which "
                "would void the guarantee: give a number (chosen on other rows), or 'auto'"
            )
        if isinstance(self.class_weight, str):
            raise UnsupportedError(
                f"class_weight={self.class_weight!r} counts the training rows, which would void "
                "the guarantee: give a dict"
            )
        return inputs.check_kernel(self.kernel, self.gamma, self.degree, self.coef0)

    def _ready(self) -> Conformal:
        """The models of the training rows and their kernel matrix; made again after unpickling."""
        found: Conformal | None = getattr(self, "_conformal", None)
        if found is None:
            plan = Plan(fit_intercept=self.fit_intercept, tol=self.tol)
            X = np.ascontiguousarray(dense(self._rows))
            try:
                with Workers(checks.check_n_threads(self.n_jobs)) as workers:
                    found = self._prepare(X, plan, workers)
            except KeyboardInterrupt as stop:
                raise Interrupted("interrupted before the model was fitted") from stop
            self._conformal = found
        return found

    def _prepare(self, X: FloatArray, plan: Plan, workers: Workers) -> Conformal:
        rows = KernelRows.of(X, self._kernel(), plan, workers)
        if not rows.psd:
            raise UnsupportedError(
                "the kernel matrix is not positive semidefinite, so that solutions need not be "
                "unique, nor treat all rows alike: use another kernel"
            )
        weight = self._class_weights[self._codes]
        models = MovingPairs.of(
            rows, self._codes, weight, float(self.C), self.fit_intercept, self.tol, workers
        )
        return Conformal.of(
            rows.K, models, self._codes, self._class_weights, self.within_class, workers
        )

    def _kernel(self) -> Kernel:
        return Kernel(self.kernel, self.gamma_ or 1.0, self.degree, self.coef0)

    def _keep_model(self, models: MovingPairs, X: Any) -> None:
        found = layout(models.fits, 0, self._codes)
        self.support_ = found.support.astype(np.int32)
        self.n_support_, self.dual_coef_ = found.n_support, found.dual_coef
        self.intercept_, self.certificate_ = found.intercept, models.certificate
        precomputed = self.kernel == "precomputed"
        self.support_vectors_ = np.empty((0, 0)) if precomputed else X[self.support_]

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_conformal", None)  # what was fitted makes it again
        return state

    # ---- prediction ---------------------------------------------------------------------------

    def p_values(self, X: Matrix, *, itself: Vector | None = None) -> FloatArray:
        """For each row the p-value of each class, in the order of ``classes_``.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (m, p)
            With ``kernel="precomputed"`` the kernel values with the training rows, (m, n).
        itself : array-like of shape (m,), optional
            With ``kernel="precomputed"``, and then needed: the kernel value of each new row with
            itself.

        Returns
        -------
        ndarray of shape (m, n_classes)

        Raises
        ------
        Interrupted
            On Ctrl-C; its ``partial`` are the p-values so far, NaN for rows that are not done.
        """
        check_is_fitted(self)
        new = self._new_rows(X, itself)
        conformal = self._ready()
        n_threads = checks.check_n_threads(self.n_jobs)
        with following(bool(self.verbose)) as watch, Workers(n_threads, watch) as workers:
            watch.say(f"p-values of {len(new)} rows, {len(self.classes_)} classes")
            found = conformal.p_values(new, workers)
        Cs = np.full(len(new), float(self.C))
        warn_if_short(found.certificate, Cs, len(new), stacklevel=user_level() + 1)
        return found.p

    def predict_set(
        self, X: Matrix, coverage: float = 0.9, *, itself: Vector | None = None
    ) -> BoolArray:
        """For each row the classes that it may be of: those with p-values above 1 - coverage.

        Parameters
        ----------
        X, itself :
            As in ``p_values``.
        coverage : float
            The probability with which a set is to hold the true class, between 0 and 1.  Of n
            training rows, coverage above n / (n + 1) can only be had by sets of all classes.

        Returns
        -------
        ndarray of bool, shape (m, n_classes)
            A column for each of ``classes_``.  An empty set says that the row is unlike the
            training rows with any label.
        """
        wanted = checks.real("coverage", coverage, lambda x: 0 < x < 1, "a number between 0 and 1")
        return np.asarray(self.p_values(X, itself=itself) > 1.0 - wanted + EQUAL)

    def _new_rows(self, X: Any, itself: Any) -> NewRows:
        """Kernel values; a row that is among the training rows has theirs, to the last bit."""
        X = dense(read_new_rows(self, X))
        if self.kernel == "precomputed":
            if itself is None:
                raise InputError(
                    "with kernel='precomputed' the p-values need `itself`, the kernel value of "
                    "each new row with itself"
                )
            own = checks.finite_numbers(itself, "itself")
            if len(own) != len(X):
                raise InputError(f"X has {len(X)} rows, but itself has {len(own)} values")
            return NewRows(np.ascontiguousarray(X), own)
        if itself is not None:
            raise InputError("`itself` goes with kernel='precomputed' only")
        rows, kernel = np.ascontiguousarray(dense(self._rows)), self._kernel()
        K = kernel_between(X, rows, kernel)
        own = np.array([kernel_between(x[None], x[None], kernel)[0, 0] for x in X])
        first, matrix = first_equal(np.vstack([rows, X]))[len(rows) :], self._ready().K
        for t in np.flatnonzero(first < len(rows)):
            K[t], own[t] = matrix[first[t]], matrix[first[t], first[t]]
        return NewRows(K, own)

    def decision_function(self, X: Matrix) -> FloatArray:
        """Decision values of the model of the training rows, as ``SVCCV`` has them ("ovr")."""
        return shaped(self._pair_decisions(X), len(self.classes_), "ovr")

    def predict(self, X: Matrix) -> NDArray[Any]:
        """The class of each row by the model of the training rows; no p-value is worked out."""
        votes = votes_of(self._pair_decisions(X), len(self.classes_))
        return self.classes_[most_votes(votes)]

    def _pair_decisions(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = read_new_rows(self, X)
        if self.kernel == "precomputed":
            K = dense(X[:, self.support_])
        else:
            vectors = self.support_vectors_
            if callable(self.kernel):
                X, vectors = dense(X), dense(vectors)
            K = kernel_between(X, vectors, self._kernel())
        return pair_decisions(K, self.dual_coef_, self.n_support_, self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def _gamma(kernel: Kernel, n_features: int) -> float | None:
    """As a number; "auto" is the only rule."""
    if not kernel.uses_gamma:
        return None
    return 1.0 / n_features if kernel.gamma == "auto" else float(kernel.gamma)
