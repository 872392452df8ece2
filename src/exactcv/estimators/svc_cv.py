"""``SVCCV``: a kernel SVM that tunes itself, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
)
from sklearn.utils.validation import check_is_fitted

from ..algorithms import get_method
from ..crossval.corrected import Corrected, Correction, correction_of, now_or_later
from ..crossval.nested_result import NestedResult
from ..crossval.overviews import QUICK, SORTING, of_tuned
from ..crossval.requests import columns_of
from ..crossval.run import Plan
from ..crossval.scoring import (
    Scorer,
    check_defined,
    fit_sigmoids,
    probabilities,
    read_scoring,
    shaped,
    warn_if_flat,
)
from ..crossval.tuning import Searched, Store, Tuned, Tuning, count_by_weight
from ..crossval.weighted_scores import is_quick
from ..exceptions import InputError, InputTypeError, Interrupted, UnsupportedError
from ..judge.certificate import Certificate, warn_if_short
from ..problem import checks, inputs
from ..problem.folds import Folds, folds_among
from ..problem.kernels import Kernel
from ..report.overview import LeftOutRows, Overview
from ..runtime.memory import check_memory
from ..runtime.threads import Workers
from ..runtime.user_line import user_level
from ..types import (
    Approx,
    ClassWeight,
    DecisionShape,
    FilePath,
    FloatArray,
    GammaRule,
    GridValues,
    HasShape,
    KernelFunction,
    KernelName,
    LossName,
    Matrix,
    MemoryLimit,
    ScorerLike,
    Seed,
    Select,
    Splits,
    Vector,
)
from .cv_table import cv_table, values_by_row
from .every_c_fit import check_every_c, fit_every_c, wants_every_c
from .forget import TrainedOn, forget
from .kernel_classifier import KernelClassifier
from .nested_fit import nested_of
from .rows import read_training_rows
from .settings import dense, grid_of, kernels_of, routed, rows_of
from .sv_layout import layout

__all__ = ["SVCCV", "Keep", "fit_svc"]


@dataclass(frozen=True)
class Keep:
    """What a caller of `fit_svc` keeps besides the model.

    store : Store or None
        Where finished curves go, so that a fit that was cut short can go on.
    values : bool
        The left-out decision values at the chosen point, if the method has any.
    """

    store: Store | None = None
    values: bool = False


class SVCCV(KernelClassifier):
    """Kernel support vector classifier tuned by exact cross-validation.

    Every point of the grid (C, and gamma if it is a list) is cross-validated exactly, over all
    folds, at about the price of fitting the path; the best becomes the model.  Several classes are
    split into pairs, as in scikit-learn's ``SVC``, and the left-out votes are exact too.

    Parameters
    ----------
    Cs, lambdas : array-like or float, optional
        The grid, one or the other, as in ``exactcv.cross_validate``: C = 1 / (2 n lambda), where n
        counts the rows of all classes, each by its sample weight.  One C serves all pairs of
        classes.  The default is that of ``cross_validate``, C from 1e-3 to 1e3 over the scale of
        the kernel; while its best point is at an edge it grows there, in C and in gamma, three
        times at most at each end, as ``summary()`` says.  With ``approx`` it is lambda from 1e-2 to
        1e-5, which grows in the same way.  The papers' grid is ``lambdas=50``.
        ``Cs="all"`` takes no grid but every C of the default range (`error_path`): C is then the
        middle of the widest interval with the least error; it goes with the hinge loss, method
        "exact", accuracy and ``select="min"``.
    kernel : {"rbf", "laplacian", "poly", "sigmoid", "linear", "precomputed"} or callable
    gamma : float, "median", "scale", "auto", or a list of these, optional
        A list is a grid.  The rules are worked out once, from all rows.  The default is "median"
        if ``Cs`` or ``lambdas`` are given; else it is tuned too, over five values (with ``approx``
        three) around the median rule, each four times the one before.
    degree, coef0 : int, float
        For "poly" and "sigmoid".
    loss : {"hinge", "squared_hinge", "logistic", "squared"}
        Which losses a method has: ``exactcv.methods()``.
    cv : "loo", int, splitter or iterable
        As in ``exactcv.cross_validate``.  Of several classes leave-one-out counts the only row of
        one as wrong, as scikit-learn does.
    scoring : str, callable or None
        What to maximise: any scikit-learn scorer; None is accuracy.  It is worked out once, on the
        left-out values of all folds put together, so that leave-one-out works with AUC, MCC or
        log-loss.  Scorers of probabilities see those of sigmoids fitted to these same values.
        "leave_pair_out_auc" is the AUC of ``exactcv.leave_pair_out``, of which the AUC of
        leave-one-out values put together falls short; two classes and ``cv="loo"``.
    select : {"min", "1se"}
        "min": the best score; among equals the smallest C, then the smallest gamma.  "1se": with
        the gamma of the best, the smallest C whose score is within one standard error of it (for
        scorers other than accuracy by a jackknife over up to 20 groups of folds).
    class_weight : dict or "balanced", optional
        Multiplies the sample weights in training.  "balanced" is n / (k n_class), weighted.
    fit_intercept : bool
    probability : bool
        Offer ``predict_proba``: sigmoids fitted to the exact left-out decision values at the chosen
        point, coupled if there are several classes.  Of two classes it may disagree with
        ``predict`` near 1/2; of several, a class that wins all its pairs is the most probable one.
        Values that tell nothing give every row the same probability, with a warning.
    decision_function_shape : {"ovr", "ovo"}
        As in ``SVC``; with two classes there is one value a row.
    method : str
        See ``exactcv.methods()``.
    store_cv_results : bool
        Keep all left-out decision values in ``cv_results_["decision"]``.
    n_jobs : int, optional
        Threads; -1 is all processors.  The result does not depend on it.
    tol : float
        What the KKT violation and the duality gap of every solution must meet.  With 1e-5 or more
        folds that leave out several rows are solved no further than that, which saves work;
        ``certificate.unproved`` then counts the labels that the gaps do not prove.
    random_state : int, RandomState or None
        For an int ``cv``, and for the features of ``approx``.
    verbose : int
        Above 0: show on standard error how far the search is, as ``progress`` of
        ``exactcv.cross_validate`` does.
    approx, n_components, memory_limit :
        As in ``exactcv.cross_validate``: features that stand in for the kernel, for data whose
        kernel matrix would not fit; all pairs of classes share them.  ``loss`` is "hinge" or
        "squared".  X, y, weights and groups may then be all that ``cross_validate`` takes, and
        ``predict`` and the like take Parquet files.  ``random_state`` draws the features, the same
        for every gamma; ``n_components="auto"`` is settled for every gamma by itself.  Scorers that
        are functions of the rows themselves need them in memory.

    Attributes
    ----------
    C_, lambda_, gamma_ : float
        The chosen point; ``gamma_`` is None for kernels without gamma.
    best_score_, best_index_ : float, int
        Its score, and its place in ``cv_results_``.
    corrected_score_ : Corrected
        The score after tuning: ``best_score_`` without what the choice among the grid points has
        gained, by the bootstrap of ``CVResult.corrected`` (1000 samples, always the same; rows of a
        group, if ``fit`` was given groups, are drawn together), with ``interval`` and ``optimism``;
        ``float()`` gives the number alone.  Where it takes more than about a second (many rows, or
        a scorer that is not among scikit-learn's common ones) it is worked out when it is first
        asked for.
    cv_results_ : dict of arrays
        One entry a grid point, C after C for each gamma: ``param_C``, ``param_gamma``, ``params``,
        ``lambda``, ``mean_test_score``, ``se_test_score`` (NaN where it was not worked out),
        ``rank_test_score``, ``error`` and ``se`` (left-out error, weighted), ``n_errors`` (number
        of wrong tests), ``at_bound`` (share of coefficients at their bound), ``kkt``, ``gap``; with
        ``store_cv_results`` also ``decision``, (grid, n) or for several classes (grid, n, pairs)
        with the signs of "ovo": the mean if several folds test a row, NaN if none does.
    certificate_ : Certificate
        ``kkt`` and ``gap`` follow ``cv_results_``: the worst over folds and pairs.  After
        ``forget`` that of the model alone.
    forgotten_ : ndarray of int
        Only after ``forget``: the rows that are gone.
    classes_, support_, support_vectors_, n_support_, dual_coef_, intercept_ :
        As in ``SVC``.
    coef_ : ndarray of shape (pairs, p)
        As in ``SVC``; only with ``kernel="linear"``.
    weights_, feature_map_ :
        With ``approx``, instead of support vectors:
        ``f(x) = feature_map_.transform(x) @ weights_.T + intercept_``; with several classes
        ``weights_`` has a row for each pair, and these are the columns of "ovo".
    n_features_in_, feature_names_in_ :
        As everywhere in scikit-learn.

    Notes
    -----
    A row of weight 0 is as good as absent: it takes no part in gamma, folds, training or counting.
    A row of integer weight w counts as w copies, which a fold leaves out together.

    A left-out value of zero (up to 1e-9) votes against the row's own class, so that with two
    classes it counts as an error, as in ``cross_validate``.

    Ctrl-C during ``fit`` raises ``exactcv.Interrupted`` (a KeyboardInterrupt) as soon as the folds
    at work have stopped.  If some gammas are done by then, the estimator has been fitted to the
    best of them; it is also the ``partial`` of the exception.

    Examples
    --------
    >>> import exactcv
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = exactcv.SVCCV(Cs=[0.1, 1.0, 10.0], gamma=[0.1, 1.0]).fit(X, y)
    >>> model.C_, float(model.gamma_), round(model.best_score_, 3), model.certificate_.exact
    (1.0, 0.1, 0.973, True)
    >>> model.predict(X[:3])
    array([0, 0, 0])
    """

    C_: float
    lambda_: float
    best_score_: float
    best_index_: int
    cv_results_: dict[str, Any]
    certificate_: Certificate
    _shown: Overview
    forgotten_: NDArray[np.intp]

    def __init__(
        self,
        *,
        Cs: GridValues | Literal["all"] | None = None,
        lambdas: GridValues | None = None,
        kernel: KernelName | KernelFunction = "rbf",
        gamma: float | GammaRule | Sequence[float | GammaRule] | HasShape | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        loss: LossName = "hinge",
        cv: Literal["loo"] | Splits | None = "loo",
        scoring: ScorerLike | None = None,
        select: Select = "min",
        class_weight: ClassWeight | None = None,
        fit_intercept: bool = True,
        probability: bool = False,
        decision_function_shape: DecisionShape = "ovr",
        method: str = "exact",
        store_cv_results: bool = False,
        n_jobs: int | None = None,
        tol: float = 1e-8,
        random_state: Seed | None = None,
        verbose: int = 0,
        approx: Approx | None = None,
        n_components: int | Literal["auto"] = 200,
        memory_limit: MemoryLimit | None = None,
    ):
        self.Cs = Cs
        self.lambdas = lambdas
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.cv = cv
        self.scoring = scoring
        self.select = select
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.probability = probability
        self.decision_function_shape = decision_function_shape
        self.method = method
        self.store_cv_results = store_cv_results
        self.n_jobs = n_jobs
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.approx = approx
        self.n_components = n_components
        self.memory_limit = memory_limit

    # ---- fitting ------------------------------------------------------------------------------

    def fit(
        self,
        X: Matrix | FilePath,
        y: Vector,
        sample_weight: Vector | None = None,
        groups: Vector | None = None,
        **params: Any,
    ) -> Self:
        """Cross-validate the grid and fit the chosen point.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n, p)
            With ``kernel="precomputed"`` the (n, n) kernel matrix.
        y : array-like of shape (n,)
            Labels of two or more classes, of any type that can be sorted.
        sample_weight, groups : array-like of shape (n,), optional
            Groups go to the splitter.  With metadata routing on, the scorer gets the weights only
            if it asks for them; with routing off it always does, if it can use them.
        **params :
            More for the splitter or the scorer; needs scikit-learn's metadata routing.
        """
        fit_svc(self, X, y, sample_weight, groups, **params)
        return self

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, params: dict[str, Any], keep: Keep
    ) -> FloatArray | None:
        """What `fit_svc` does."""
        start = perf_counter()
        scorer, plan = self._check_settings()
        for name in ("error_path_", "error_paths_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if self.approx is not None or self._takes_columns(X, plan):
            return self._fit_features(X, y, sample_weight, groups, params, keep)
        X, y = self._read_rows(X, y)
        n = X.shape[0]
        weight = inputs.read_sample_weight(sample_weight, n)
        used = np.flatnonzero(weight > 0)
        groups = inputs.read_groups(groups, n)
        split_with, score_with = self._route(sample_weight, groups, params, scorer)
        tuning = self._prepare(X, y, weight, used, scorer, plan, split_with, score_with, keep.store)
        n_threads = checks.check_n_threads(self.n_jobs)
        among = None if groups is None else groups[used]
        finish = partial(self._finish, X, used, keep.values, among)
        try:
            if wants_every_c(self.Cs):
                tuned, values = fit_every_c(self, tuning, used, n_threads, finish, start)
            else:
                with Workers(n_threads) as workers:
                    searched = tuning.search(workers)
                    tuned, values = searched.tuning, finish(searched, workers, start)
        except Interrupted as stop:
            if stop.partial is self:
                raise
            if stop.partial is None:
                raise Interrupted("interrupted before the first gamma was done") from stop
            with Workers(n_threads) as workers:  # the others were told to stop
                finish(stop.partial, workers, start)
            n_done, n_all = len(stop.partial.curves), len(stop.partial.tuning.kernels)
            more = ", while the default grid grew" if n_done == n_all else ""
            raise Interrupted(
                f"interrupted with {n_done} of {n_all} gammas done{more}; the estimator is fitted "
                "to the best of them, and is the `partial` of this exception",
                self,
            ) from stop
        warn_if_short(
            self.certificate_,
            self.cv_results_["param_C"],
            tuned.n_solutions,
            stacklevel=user_level() + 1,
        )
        return values

    def _takes_columns(self, X: Any, plan: Plan) -> bool:
        """Do the columns of X take the place of the linear kernel's matrix?"""
        scorer = read_scoring(self.scoring)
        if wants_every_c(self.Cs) or scorer.pairs:
            return False
        return columns_of(X, self.kernel, plan, self.memory_limit) is not None

    def _fit_features(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, params: dict[str, Any], keep: Keep
    ) -> FloatArray | None:
        """Features instead of a kernel matrix; X may be a file or a Dask collection."""
        from .lowrank_fit import fit_approximately

        if params:
            raise InputTypeError(f"without a kernel matrix, fit() does not take {sorted(params)}")
        scorer = read_scoring(self.scoring)
        fitted = fit_approximately(self, X, y, sample_weight, groups, scorer, keep)
        for name in (*_OF_A_KERNEL, "_sigmoids", "_correction"):  # of an earlier fit
            self.__dict__.pop(name, None)
        for name, value in fitted.attributes.items():
            setattr(self, name, value)
        if fitted.stopped is not None:
            raise Interrupted(
                f"interrupted with {fitted.stopped}; the estimator is fitted to the best of them, "
                "and is the `partial` of this exception",
                self,
            )
        return fitted.values

    def _finish(
        self,
        X: Any,
        keep: NDArray[np.intp],
        want_values: bool,
        groups: NDArray[Any] | None,
        searched: Searched,
        workers: Workers,
        start: float,
    ) -> FloatArray | None:
        """Choose among the curves and keep what belongs to the choice."""
        tuning = searched.tuning
        tuned = tuning.choose(searched.curves, workers)
        check_defined(tuned.score, self.scoring)
        self._keep_results(tuning, tuned, keep, X.shape[0])
        self._keep_model(tuning, tuned, X, keep)
        precomputed = self.kernel == "precomputed"
        self._trained_on = TrainedOn.of(X, keep, tuning.codes, tuning.weight, precomputed)
        later = correction_of(tuning, tuned, groups)
        if tuning.scorer.pairs:
            later = partial(_refuse_pairs, tuning.scorer)
        size = tuned.score.size * len(tuning.folds.pair_rows)
        size *= 1 if tuning.scorer.labels_only else SORTING
        quick = is_quick(tuning.scorer, len(self.classes_)) and size <= QUICK
        self._correction: Correction = now_or_later(later, quick)
        decision = tuned.chosen.decision
        values = None if decision is None else decision[tuned.point]
        stated = None
        self.__dict__.pop("_sigmoids", None)  # of an earlier fit
        has_values = get_method(self.method).support.decision
        if self.probability or (want_values and has_values):
            left_out = tuning.left_out_at(tuned.chosen, tuned.point, workers)
            values = left_out.decision
            if self.probability:
                self._sigmoids = fit_sigmoids(
                    values, left_out.codes, len(self.classes_), left_out.weight
                )
                warn_if_flat(self._sigmoids, self.classes_)
                stated = probabilities(values, self._sigmoids, len(self.classes_))
        rows, k = tuning.folds.pair_rows, len(self.classes_)
        truth = tuning.codes[rows]
        self._shown = of_tuned(
            tuning,
            tuned,
            left_out=LeftOutRows(
                row=keep[rows],
                truth=truth,
                predicted=tuned.chosen.labels[tuned.point].astype(np.intp),
                decision=None if values is None else shaped(values, k, "ovr"),
                wrong_at=(tuned.stacked("labels") != truth).sum(axis=0),
                probability=stated,
            ),
            corrected=self._correction if isinstance(self._correction, Corrected) else None,
            n_rows=X.shape[0],
            seconds=perf_counter() - start,
        )
        return values

    @property
    def corrected_score_(self) -> Corrected:
        """The score after tuning, corrected for the choice of the grid point."""
        check_is_fitted(self)
        if not hasattr(self, "_correction"):
            raise AttributeError(
                "this SVCCV has no corrected_score_: it was read from a file (then summary() has "
                "it), has forgotten rows before it was worked out, or has too many rows, for which "
                "the choice of the point gains next to nothing"
            )
        if not isinstance(self._correction, Corrected):
            self._correction = self._correction()
        return self._correction

    def _overview(self) -> Overview:
        check_is_fitted(self, "_shown")
        return self._shown

    def _check_settings(self) -> tuple[Scorer, Plan]:
        """What does not depend on the data."""
        scorer = read_scoring(self.scoring)
        checks.check_flag("probability", self.probability)
        checks.check_flag("store_cv_results", self.store_cv_results)
        in_the_end = self.probability  # at the chosen point alone
        on_the_way = self.store_cv_results or not scorer.labels_only
        plan = Plan.of(
            method=self.method,
            loss=self.loss,
            fit_intercept=self.fit_intercept,
            want_decision=on_the_way or in_the_end,
            tol=self.tol,
        )
        checks.check_choice("select", self.select, ("min", "1se"))
        if wants_every_c(self.Cs):
            check_every_c(self, scorer)
        if scorer.pairs:
            self._check_pairs()
        shapes = ("ovr", "ovo")
        checks.check_choice("decision_function_shape", self.decision_function_shape, shapes)
        checks.check_seed(self.random_state)
        return scorer, replace(plan, want_decision=on_the_way)

    def _check_pairs(self) -> None:
        """The leave-pair-out AUC leaves out pairs, whatever the folds."""
        if not (isinstance(self.cv, str) and self.cv == "loo"):
            raise UnsupportedError(
                f"scoring={self.scoring!r} leaves out every pair of rows, so cv must be 'loo'; "
                "with other folds use scoring='roc_auc'"
            )
        if self.select != "min" or self.approx is not None:
            raise UnsupportedError(
                f"scoring={self.scoring!r} goes with select='min' and approx=None; "
                "exactcv.leave_pair_out gives standard errors"
            )

    def _read_rows(self, X: Any, y: Any) -> tuple[Any, Any]:
        """X (sparse stays sparse) and the labels."""
        return read_training_rows(self, X, y)

    def _route(
        self, sample_weight: Any, groups: Any, params: dict[str, Any], scorer: Scorer
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the splitter and the scorer get besides X and y, one entry a row."""
        return routed(self, sample_weight, groups, params, scorer)

    def _prepare(
        self,
        X: Any,
        y: Any,
        weight: FloatArray,
        keep: NDArray[np.intp],
        scorer: Scorer,
        plan: Plan,
        split_with: dict[str, Any],
        score_with: dict[str, Any],
        store: Store | None,
    ) -> Tuning:
        """Everything checked, and the rows that count."""
        n = X.shape[0]
        extra = 8 * n * X.shape[1] if sparse.issparse(X) else 0
        check_memory(len(keep), self.memory_limit, extra_bytes=extra)
        labels, self.classes_, codes = inputs.encode_labels(y[keep], len(keep))
        if scorer.pairs and (len(self.classes_) != 2 or np.bincount(codes).min() < 2):
            raise InputError(
                f"scoring={self.scoring!r} compares rows of two classes, with at least 2 rows of "
                f"each; y has {len(self.classes_)} classes with {np.bincount(codes).tolist()} rows"
            )
        if len(self.classes_) < 2:
            raise InputError(
                f"y has one class only, {self.classes_.tolist()[0]!r}"
                + (", among the rows with positive weight" if len(keep) < n else "")
                + "; a classifier needs rows of two classes or more"
            )
        used = weight[keep]
        counts = np.bincount(codes, weights=used)
        factors = inputs.class_factors(self.class_weight, counts, self.classes_)
        in_training = inputs.times_class_weight(used, factors, codes, self.classes_)
        rows = X[keep][:, keep] if self.kernel == "precomputed" else X[keep]
        features = np.ascontiguousarray(dense(rows))
        every_c = wants_every_c(self.Cs)
        grid, kernels, new_gammas = grid_of(self, features, used, every_c=every_c)
        split_with = {name: rows_of(value, keep, n) for name, value in split_with.items()}
        folds = self._folds(rows, labels, keep, n, split_with)
        folds = inputs.check_training_parts(folds, codes, self.classes_, in_training, keep)
        plan.check_folds(folds)
        return Tuning(
            X=features,
            shown=rows,
            codes=codes,
            classes=self.classes_,
            sample_weight=used,
            weight=in_training,
            folds=count_by_weight(folds, grid, used),
            grid=grid,
            kernels=kernels,
            scorer=scorer,
            score_arguments={k: rows_of(v, keep, n) for k, v in score_with.items()},
            select=self.select,
            plan=plan,
            shape=self.decision_function_shape,
            keep_decision=self.store_cv_results,
            show_progress=bool(self.verbose),
            store=store,
            new_gammas=new_gammas,
        )

    def _kernels(self) -> list[Kernel]:
        """One kernel for each gamma."""
        return kernels_of(self)

    def _folds(
        self,
        X: Any,
        labels: NDArray[Any],
        keep: NDArray[np.intp],
        n: int,
        split_with: dict[str, Any],
    ) -> Folds:
        """Folds of the rows that count; row numbers that the user gave are renumbered."""
        groups = split_with.pop("groups", None)
        among = keep, n, self.cv, X, labels
        return folds_among(*among, groups, self.random_state, **split_with)

    def nested_score(
        self,
        X: Matrix | FilePath,
        y: Vector,
        outer: Literal["loo"] | Splits = "loo",
        sample_weight: Vector | None = None,
        groups: Vector | None = None,
    ) -> NestedResult:
        """The score after tuning: this estimator tuned afresh without every outer fold.

        The estimator itself stays as it is, fitted or not.  See ``exactcv.nested_cross_validate``.

        Parameters
        ----------
        X, y, sample_weight, groups :
            As in ``fit``.
        outer : "loo", int, splitter or iterable
            The folds that judge; ``cv`` chooses among the rows outside each.
        """
        return nested_of(clone(self), X, y, outer, sample_weight, groups)

    def forget(self, rows: int | Sequence[int] | NDArray[np.integer[Any]]) -> Self:
        """The exact model without some of its rows, with its certificate, in a few steps.

        A new estimator, at the same C, gamma and weights of the other rows: what ``fit`` on the
        other rows would give there, up to rounding.  Its ``certificate_`` is the proof: the
        conditions of the problem without the rows, checked from the coefficients alone.  This one
        stays as it is.

        Parameters
        ----------
        rows : int or sequence of int
            Row numbers as they were given to ``fit``, also if rows were forgotten before.

        Returns
        -------
        SVCCV
            Fitted; ``forgotten_`` lists all rows that it was fitted to and has forgotten.

        Notes
        -----
        How C and gamma were chosen stays as it was, with the rows: ``cv_results_``,
        ``best_score_``, ``summary()`` and the sigmoids of ``predict_proba`` tell of that choice
        (without the values of the rows that are gone).  To choose anew, fit again.

        The first call computes the kernel matrix of the rows and keeps it; models that come from
        one another share it.  So the rows are in memory for as long as one of these models is;
        what is pickled, deep-copied or saved holds nothing of rows that were forgotten.

        Only with ``loss="hinge"`` and without ``approx``.

        Examples
        --------
        >>> import exactcv
        >>> X, y = exactcv.datasets.make_mixture(60, 4, random_state=0)
        >>> model = exactcv.SVCCV(Cs=[1.0]).fit(X, y)
        >>> without = model.forget([3, 17])
        >>> without.forgotten_, without.certificate_.exact
        (array([ 3, 17]), True)
        >>> without.forget(5).forgotten_
        array([ 3,  5, 17])
        """
        check_is_fitted(self)
        return forget(self, rows)

    # ---- what is kept -------------------------------------------------------------------------

    def _keep_results(self, tuning: Tuning, tuned: Tuned, keep: NDArray[np.intp], n: int) -> None:
        grid, score = tuning.grid, tuned.score
        self.certificate_ = tuned.certificate
        results = cv_table(
            grid.Cs,
            grid.lambdas,
            tuned.gammas,
            score,
            tuned.se,
            **{name: tuned.stacked(name) for name in ("error", "se", "n_errors", "at_bound")},
            kkt=self.certificate_.kkt,
            gap=self.certificate_.gap,
        )
        if self.store_cv_results:
            tested = keep[tuning.folds.pair_rows]
            results["decision"] = values_by_row(tuned.stacked("decision"), tested, n)
        self.cv_results_ = results
        self.best_index_ = tuned.kernel * len(grid) + tuned.point
        self.best_score_ = float(score[tuned.kernel, tuned.point])
        self.C_ = float(grid.Cs[tuned.point])
        self.lambda_ = float(results["lambda"][self.best_index_])
        self.gamma_ = tuned.chosen.gamma

    def _keep_model(self, tuning: Tuning, tuned: Tuned, X: Any, keep: NDArray[np.intp]) -> None:
        for name in ("weights_", "feature_map_", "forgotten_"):  # of what this was before
            self.__dict__.pop(name, None)
        found = layout(tuned.chosen.fits, tuned.point, tuning.codes)
        self.support_ = keep[found.support].astype(np.int32)
        self.n_support_ = found.n_support
        self.dual_coef_ = found.dual_coef
        self.intercept_ = found.intercept
        precomputed = self.kernel == "precomputed"
        self.support_vectors_ = np.empty((0, 0)) if precomputed else X[self.support_]

    # ---- scikit-learn's conventions -----------------------------------------------------------

    def get_metadata_routing(self) -> MetadataRouter:
        """Groups and the like go to the splitter, sample weights to the scorer, if asked for."""
        router = MetadataRouter(owner=self).add_self_request(self)
        splits = MethodMapping().add(caller="fit", callee="split")
        splitter = self.cv if hasattr(self.cv, "get_metadata_routing") else _NO_REQUESTS
        router = router.add(splitter=splitter, method_mapping=splits)
        scorer = read_scoring(self.scoring).call or get_scorer("accuracy")
        scores = MethodMapping().add(caller="fit", callee="score")
        scorer = scorer if hasattr(scorer, "get_metadata_routing") else _NO_REQUESTS
        return router.add(scorer=scorer, method_mapping=scores)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def fit_svc(
    model: SVCCV,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    groups: Any = None,
    *,
    keep: Keep = Keep(),
    **params: Any,
) -> FloatArray | None:
    """``SVCCV.fit`` for callers that keep more than the model.

    Returns
    -------
    ndarray of shape (T, pairs) or None
        The left-out decision values at the chosen point, if ``keep`` asks for them.
    """
    return model._fit(X, y, sample_weight, groups, params, keep)


_OF_A_KERNEL = (
    "support_", "support_vectors_", "n_support_", "dual_coef_", "forgotten_", "_trained_on",
)  # fmt: skip
_NO_REQUESTS = get_routing_for_object(None)


def _refuse_pairs(scorer: Scorer) -> Corrected:
    """Pairs are counted as they come, and bootstrap samples of them would have to be compared."""
    raise UnsupportedError(
        f"there is no corrected score for scoring={scorer.name!r}; use scoring='roc_auc'"
    )
