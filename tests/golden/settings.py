"""What the golden file holds: small runs of all that the public functions can do.

Each setting is a function that returns a record, a flat dict of arrays.  Results are taken apart by
`of_result`, `of_model` and `of_search`; seconds are left out, for they are never the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel, sigmoid_kernel
from sklearn.model_selection import (
    GroupKFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import exactcv

Record = dict[str, Any]
Data = tuple[np.ndarray, np.ndarray]

# How far floats may be from the golden ones, relative to their scale.  Nearly all solvers end with
# a linear system for the free coefficients, so what is left is rounding, 2e-16, times what the
# condition of these small problems makes of it.
EXACT = 1e-9
# Smooth losses are solved until the slopes are met to tol / 10 = 1e-9, the sigmoids until a step
# gains less than rounding, and with huge C the duality gap is certified to tol = 1e-8 only.
STOPPED = 1e-8
# The features are rounded to 6e-8, and a different last bit before that can be another rounding.
FLOAT32 = 1e-6


@dataclass(frozen=True)
class Setting:
    """A run, and how closely it can be repeated.

    Attributes
    ----------
    run : callable
        Without arguments; returns the record.
    tol : float
        For decision values and what follows from them.
    """

    run: Callable[[], Record]
    tol: float = EXACT


SETTINGS: dict[str, Setting] = {}


def setting(run: Callable[[], Record] | None = None, *, tol: float = EXACT) -> Any:
    """Register a function under its name; warnings are part of its record."""

    def register(run: Callable[[], Record]) -> Callable[[], Record]:
        def recorded() -> Record:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                record = run()
            of_others = (DeprecationWarning, FutureWarning)
            kinds = {one.category for one in said if not issubclass(one.category, of_others)}
            names = sorted(kind.__name__ for kind in kinds)
            return record | {"warnings": np.array(names, dtype=str)}

        assert run.__name__ not in SETTINGS
        SETTINGS[run.__name__] = Setting(recorded, tol)
        return run

    return register if run is None else register(run)


# ---- data ----------------------------------------------------------------------------------------

CS = [0.02, 0.2, 2.0, 20.0]
LAMBDAS = [0.3, 0.03, 3e-3, 3e-4]


@cache
def mixture(n: int = 60, p: int = 4, seed: int = 0) -> Data:
    return exactcv.datasets.make_mixture(n, p, random_state=seed, noise=1.5)


@cache
def cancer(step: int = 8) -> Data:
    X, y = exactcv.datasets.load_breast_cancer()
    return X[::step], y[::step]


@cache
def iris(step: int = 2) -> Data:
    """Three classes with names, standardised."""
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[::step], np.array(["setosa", "versicolor", "virginica"])[y][::step]


@cache
def digits(n: int = 80) -> Data:
    X, y = load_digits(n_class=4, return_X_y=True)
    return X[:n] / 16.0, y[:n]


@cache
def moons(n: int = 60) -> Data:
    return make_moons(n, noise=0.3, random_state=0)


@cache
def noise(n: int = 60) -> Data:
    """Three classes that X knows nothing of."""
    return np.random.default_rng(0).normal(size=(n, 2)), np.arange(n) % 3


@cache
def numbers(n: int = 40) -> Data:
    """A curve with noise, in units far from 1."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, size=(n, 2))
    return X, 300.0 + 50.0 * (np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=n))


@cache
def weights(n: int, zeros: int = 7) -> np.ndarray:
    """Over two orders of magnitude, and every ``zeros``-th of them zero."""
    found = 10.0 ** np.random.default_rng(n).uniform(-1, 1, n)
    found[::zeros] = 0.0
    return found


def groups(n: int) -> np.ndarray:
    return np.arange(n) * 7 % 9


def pairs(n: int) -> list[tuple[Any, Any]]:
    """Test sets that overlap and do not cover all rows; training sets that leave rows unused."""
    rows = np.arange(n)
    found: list[tuple[Any, Any]] = [
        (np.r_[rows[:first], rows[last:]], rows[first:last])
        for first, last in ((0, 9), (5, 14), (30, 31))
    ]
    found.append((rows[: n - n // 4], rows[-3:]))
    found.append((rows % 5 != 2, rows[rows % 5 == 2][:4]))
    return found


# ---- results, taken apart ------------------------------------------------------------------------


def of_certificate(certificate: Any) -> Record:
    return {
        "kkt": certificate.kkt,
        "gap": certificate.gap,
        "tol": certificate.tol,
        "exact": certificate.exact,
        "convex": certificate.convex,
        "unresolved": len(certificate.unresolved),
        "not_converged": certificate.not_converged,
    }


def of_result(result: exactcv.CVResult, K: np.ndarray | None = None) -> Record:
    """Record a ``CVResult``.

    Parameters
    ----------
    result : CVResult
    K : ndarray of shape (n, n), optional
        The kernel matrix where it is singular: the coefficients are not unique then, and K coef
        takes their place.
    """
    names = ["Cs", "lambdas", "error", "se", "n_errors", "wrong", "best", "one_se", "fold_error"]
    names += ["objective", "intercept", "at_bound", "decision", "gamma", "leave_one_out"]
    record = {name: getattr(result, name) for name in names}
    record |= {name: np.array([getattr(result, name)]) for name in ("method", "loss", "kernel")}
    record["classes"] = result.classes
    if result.leave_one_out:
        del record["fold_error"]  # it is ``wrong``
    else:
        record |= {"test_row": result.test_row, "test_fold": result.test_fold}
        record["pair_wrong"] = result.pair_wrong
    if (np.bincount(result.test_row) > 1).any():  # else ``decision`` has them all
        record["pair_decision"] = result.pair_decision
    if result.coef is not None and K is None:
        record["coef"] = result.coef
    elif result.coef is not None:
        record["fitted"] = result.coef @ K
    stats = {name: np.asarray(value) for name, value in result.stats.items()}
    counts = {f"stats.{name}": value for name, value in stats.items() if value.dtype.kind in "bi"}
    record |= of_certificate(result.certificate) | counts
    return {name: value for name, value in record.items() if value is not None}


def of_numbers(result: exactcv.CVResult) -> Record:
    """Record the result of a loss of numbers."""
    names = ["Cs", "error", "se", "best", "one_se", "mae", "rmse", "r2", "intercept", "decision"]
    record = {name: getattr(result, name) for name in names}
    record |= {name: np.array([getattr(result, name)]) for name in ("method", "loss")}
    return record | {"coef": result.coef} | of_certificate(result.certificate)


def of_features(result: exactcv.CVResult, X: Any) -> Record:
    """Record a ``CVResult`` with ``approx``, and what its model says of the rows.

    The features are unique up to a rotation, the decision values are unique.
    """
    fitted = result.weights @ result.feature_map.transform(X).T + result.intercept[:, None]
    store = np.array([result.stats["features"]])
    return of_result(result) | {"fitted": fitted, "stats.features": store}


def of_model(model: exactcv.SVCCV, X: Any) -> Record:
    """Record a fitted ``SVCCV`` and what it says of the rows of X."""
    table = {
        name: np.asarray(value) for name, value in model.cv_results_.items() if name != "params"
    }
    record = {f"cv.{name}": value for name, value in table.items() if name not in ("kkt", "gap")}
    record |= of_certificate(model.certificate_)
    for name in ("C_", "lambda_", "gamma_", "best_score_", "best_index_", "classes_"):
        record[name] = getattr(model, name)
    record["intercept"] = model.intercept_
    if model.approx is None:
        record |= {"support": model.support_, "n_support": model.n_support_}
        record["coef"] = model.dual_coef_
    record |= {"labels": model.predict(X), "fitted": model.decision_function(X)}
    if model.probability:
        record["probability"] = model.predict_proba(X)
    return {name: value for name, value in record.items() if value is not None}


def of_search(search: exactcv.GridSearchCV, X: Any) -> Record:
    """Record a fitted ``GridSearchCV``; its table without times and parameters."""
    record = {
        f"cv.{name}": np.asarray(value)
        for name, value in search.cv_results_.items()
        if "_time" not in name and not name.startswith("param")
    }
    record["grid"] = np.array([str(params) for params in search.cv_results_["params"]])
    record |= {"best_index": search.best_index_, "best_score": search.best_score_}
    return record | {"labels": search.predict(X)}


# ---- every method, with every loss it has --------------------------------------------------------


@setting
def methods() -> Record:
    """The table of methods itself."""
    table = exactcv.methods()
    flags = ("intercept", "no_intercept", "decision", "any_kernel")
    record: Record = {"names": np.array(sorted(table))}
    for name in sorted(table):
        support = table[name]
        record[f"{name}.losses"] = np.array(support.losses)
        record[f"{name}.folds"] = np.array(support.folds)
        record[f"{name}.flags"] = np.array([getattr(support, flag) for flag in flags])
    return record


@setting
def exact_loo_error() -> Record:
    return of_result(exactcv.cross_validate(*mixture(80), Cs=CS))


@setting
def exact_loo_decision() -> Record:
    return of_result(exactcv.cross_validate(*cancer(), lambdas=LAMBDAS, output="decision"))


@setting
def exact_loo_no_intercept() -> Record:
    options = {"fit_intercept": False, "output": "decision"}
    return of_result(exactcv.cross_validate(*mixture(), Cs=CS, **options))


@setting
def exact_loo_papers_grid() -> Record:
    return of_result(exactcv.cross_validate(*mixture(40), lambdas=50))


@setting
def exact_loo_default_grid() -> Record:
    return of_result(exactcv.cross_validate(*mixture(40)))


@setting
def svccv_default_grid() -> Record:
    """Gamma is tuned too, and the grid grows if it should."""
    return tuned(mixture(40), cv=4, Cs=None, gamma=None, store_cv_results=False)


@setting
def exact_loo_unsorted_grid() -> Record:
    """A grid in no order with a value twice, and two threads."""
    return of_result(exactcv.cross_validate(*mixture(seed=1), Cs=[3.0, 0.1, 40.0, 3.0], n_jobs=2))


@setting
def exact_kfold_decision() -> Record:
    return of_result(exactcv.cross_validate(*cancer(), Cs=CS, cv=5, output="decision"))


@setting
def exact_kfold_lambdas() -> Record:
    options = {"cv": 4, "random_state": 0, "n_jobs": 2}
    return of_result(exactcv.cross_validate(*mixture(81), lambdas=8, **options))


@setting
def exact_kfold_no_intercept() -> Record:
    options = {"cv": 3, "fit_intercept": False, "output": "decision"}
    return of_result(exactcv.cross_validate(*mixture(), lambdas=LAMBDAS, **options))


def by_method(method: str, n: int = 36, **options: Any) -> Record:
    """Left-out decision values of the mixture by some method."""
    options = {"Cs": CS[:3], "output": "decision"} | options
    return of_result(exactcv.cross_validate(*mixture(n), method=method, **options))


@setting
def refit_hinge_loo() -> Record:
    return by_method("refit")


@setting
def refit_hinge_kfold_no_intercept() -> Record:
    return by_method("refit", cv=4, fit_intercept=False)


@setting(tol=STOPPED)
def refit_squared_hinge_loo() -> Record:
    return by_method("refit", loss="squared_hinge")


@setting(tol=STOPPED)
def refit_logistic_kfold() -> Record:
    return by_method("refit", loss="logistic", cv=4, Cs=None, lambdas=LAMBDAS)


@setting
def magic_hinge_loo() -> Record:
    return by_method("magic")


@setting
def magic_hinge_kfold() -> Record:
    return by_method("magic", cv=4, Cs=None, lambdas=LAMBDAS)


@setting
def magic_hinge_pairs_no_intercept() -> Record:
    return by_method("magic", cv=pairs(36), fit_intercept=False)


@setting(tol=STOPPED)
def magic_squared_hinge_loo() -> Record:
    return by_method("magic", loss="squared_hinge")


@setting(tol=STOPPED)
def magic_squared_hinge_weights() -> Record:
    return by_method("magic", loss="squared_hinge", cv=3, sample_weight=weights(36))


@setting(tol=STOPPED)
def magic_logistic_kfold() -> Record:
    return by_method("magic", loss="logistic", cv=4, output="error")


@setting(tol=STOPPED)
def magic_logistic_loo_no_intercept() -> Record:
    return by_method("magic", loss="logistic", fit_intercept=False)


@setting
def consolidated_loo() -> Record:
    return by_method("consolidated", Cs=None, lambdas=np.geomspace(1.0, 0.005, 6))


@setting
def consolidated_loo_no_intercept() -> Record:
    options = {"fit_intercept": False, "output": "error", "Cs": None}
    return by_method("consolidated", 48, lambdas=np.geomspace(1.0, 0.005, 6), **options)


@setting
def loo_stopping() -> Record:
    return by_method("loo_stopping", 60, output="error")


@setting
def loo_stopping_no_intercept() -> Record:
    weight = weights(48)
    return by_method("loo_stopping", 48, output="error", fit_intercept=False, sample_weight=weight)


@setting
def ato_loo() -> Record:
    return by_method("ato")


@setting
def ato_kfold() -> Record:
    return by_method("ato", 48, cv=5)


@setting
def mir_loo() -> Record:
    return by_method("mir")


@setting
def mir_kfold_no_intercept() -> Record:
    return by_method("mir", 48, cv=5, fit_intercept=False)


@setting
def sir_loo() -> Record:
    return by_method("sir")


@setting
def sir_kfold_warm() -> Record:
    options = {"warm_C": True, "max_iter": 100_000}
    return by_method("sir", 48, cv=5, Cs=None, lambdas=LAMBDAS, method_options=options)


@setting
def sir_kfold_not_converged() -> Record:
    """Ten iterations are too few: what comes out is not exact, and says so."""
    return by_method("sir", 48, cv=5, output="error", method_options={"max_iter": 10})


@setting
def avg_loo() -> Record:
    return by_method("avg")


@setting
def top_loo() -> Record:
    return by_method("top", output="error")


@setting
def least_squares_loo() -> Record:
    return by_method("least_squares", 60, loss="squared")


@setting
def least_squares_kfold_weights() -> Record:
    options = {"cv": 4, "Cs": None, "lambdas": LAMBDAS, "sample_weight": weights(60)}
    return by_method("least_squares", 60, loss="squared", **options)


@setting
def least_squares_loo_no_intercept() -> Record:
    return by_method("least_squares", 48, loss="squared", fit_intercept=False, kernel="linear")


# The paper's c is twice the C of every method with a squared hinge.
HALF_CS = [C / 2 for C in CS]


@setting
def rank_update_linear_loo() -> Record:
    X, y = cancer()
    options = {"method": "rank_update", "loss": "squared_hinge", "kernel": "linear"}
    return of_result(
        exactcv.cross_validate(X, y, Cs=HALF_CS, output="decision", **options), X @ X.T
    )


@setting
def rank_update_linear_loo_one() -> Record:
    X, y = mixture(50)
    options = {"method": "rank_update", "loss": "squared_hinge", "kernel": "linear"}
    options |= {"method_options": {"strategy": "I"}, "fit_intercept": False}
    return of_result(
        exactcv.cross_validate(X, y, Cs=HALF_CS, output="decision", **options), X @ X.T
    )


@setting
def rank_update_rbf_loo() -> Record:
    return by_method("rank_update", 48, loss="squared_hinge", Cs=HALF_CS[:3])


@setting
def rank_update_rbf_kfold_two() -> Record:
    options = {
        "cv": 4,
        "Cs": None,
        "lambdas": [2 * x for x in LAMBDAS],
        "method_options": {"strategy": "II"},
    }
    return by_method("rank_update", 48, loss="squared_hinge", **options)


@setting
def rank_update_rbf_pairs_none() -> Record:
    options = {"cv": pairs(48), "method_options": {"strategy": "none"}, "output": "error"}
    options |= {"sample_weight": weights(48), "Cs": HALF_CS[:3]}
    return by_method("rank_update", 48, loss="squared_hinge", **options)


# ---- folds ---------------------------------------------------------------------------------------


@setting
def folds_group() -> Record:
    options = {"cv": GroupKFold(4), "groups": groups(60), "output": "decision"}
    return of_result(exactcv.cross_validate(*mixture(), lambdas=LAMBDAS, **options))


@setting
def folds_repeated() -> Record:
    cv = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    return of_result(exactcv.cross_validate(*mixture(48), Cs=CS, cv=cv, output="decision"))


@setting
def folds_shuffle_split() -> Record:
    cv = ShuffleSplit(5, test_size=0.2, train_size=0.6, random_state=0)
    return of_result(exactcv.cross_validate(*mixture(), lambdas=LAMBDAS, cv=cv))


@setting
def folds_pairs() -> Record:
    options = {"cv": iter(pairs(60)), "output": "decision", "fit_intercept": False}
    return of_result(exactcv.cross_validate(*mixture(), Cs=CS, **options))


@setting
def folds_leave_one_out_splitter() -> Record:
    """Labels that are text, X sparse, a looser tolerance."""
    X, y = mixture(48)
    X, y = sparse.csr_matrix(np.round(X)), np.where(y > 0, "yes", "no")
    options = {"cv": LeaveOneOut(), "tol": 1e-6}
    return of_result(exactcv.cross_validate(X, y, Cs=CS, **options))


# ---- weights -------------------------------------------------------------------------------------


@setting
def weights_loo_decision() -> Record:
    options = {"sample_weight": weights(60), "output": "decision"}
    return of_result(exactcv.cross_validate(*mixture(), Cs=CS, **options))


@setting
def weights_loo_error() -> Record:
    options = {"sample_weight": weights(80), "class_weight": "balanced"}
    return of_result(exactcv.cross_validate(*mixture(80, seed=2), lambdas=LAMBDAS, **options))


@setting
def weights_kfold() -> Record:
    options = {"sample_weight": weights(60), "cv": 4, "output": "decision"}
    return of_result(exactcv.cross_validate(*mixture(), lambdas=LAMBDAS, **options))


@setting
def class_weight_kfold() -> Record:
    options = {"class_weight": {-1: 0.4, 1: 3.0}, "cv": 5}
    return of_result(exactcv.cross_validate(*cancer(), Cs=CS, **options))


# ---- kernels -------------------------------------------------------------------------------------


def by_kernel(data: Data, K: np.ndarray | None = None, **options: Any) -> Record:
    options = {"Cs": CS[:3], "output": "decision"} | options
    return of_result(exactcv.cross_validate(*data, **options), K)


@setting
def kernel_rbf_scale() -> Record:
    return by_kernel(cancer(10), gamma="scale")


@setting
def kernel_rbf_auto() -> Record:
    return by_kernel(cancer(10), gamma="auto", cv=4)


@setting
def kernel_linear() -> Record:
    X, y = mixture(48)
    return by_kernel((X, y), X @ X.T, kernel="linear")


@setting
def kernel_poly() -> Record:
    X, y = mixture(48, 3)
    K = polynomial_kernel(X, degree=2, gamma=0.2, coef0=1.0)
    options = {"kernel": "poly", "degree": 2, "gamma": 0.2, "coef0": 1.0}
    return by_kernel((X, y), K, **options, cv=5)


@setting
def kernel_laplacian() -> Record:
    return by_kernel(mixture(48), kernel="laplacian", gamma=0.3)


@setting
def kernel_sigmoid() -> Record:
    """Not positive semidefinite: every fold is solved from scratch."""
    X, y = mixture(36)
    K = sigmoid_kernel(X, gamma=0.05, coef0=-0.2)
    return by_kernel((X, y), K, kernel="sigmoid", gamma=0.05, coef0=-0.2, cv=4)


@setting
def kernel_precomputed() -> Record:
    X, y = mixture(48)
    return by_kernel((rbf_kernel(X, gamma=0.1), y), kernel="precomputed")


@setting
def kernel_callable() -> Record:
    return by_kernel(mixture(48), kernel=rational_quadratic, cv=5)


def rational_quadratic(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    square = ((X[:, None] - Z) ** 2).sum(axis=2)
    return 1.0 / (1.0 + 0.1 * square)


# ---- awkward data --------------------------------------------------------------------------------


@setting
def rows_three_times() -> Record:
    X, y = mixture(20)
    X, y = np.repeat(X, 3, axis=0), np.repeat(y, 3)
    return by_kernel((X, y), rbf_kernel(X, gamma=0.1), gamma=0.1)


@setting
def rows_contradict() -> Record:
    X, y = contradictions()
    return by_kernel((X, y), rbf_kernel(X, gamma=0.5), gamma=0.5)


@setting
def rows_contradict_kfold() -> Record:
    X, y = contradictions()
    return by_kernel((X, y), rbf_kernel(X, gamma=0.5), gamma=0.5, cv=4, output="error")


def contradictions() -> Data:
    """Twenty rows with both labels, and a few rows besides."""
    rng = np.random.default_rng(0)
    X = np.vstack([np.repeat(rng.normal(size=(20, 2)), 2, axis=0), rng.normal(size=(6, 2))])
    return X, np.where(np.arange(len(X)) % 2 == 0, 1.0, -1.0)


@setting
def rows_all_alike() -> Record:
    X, y = np.ones((24, 2)), np.where(np.arange(24) % 3 == 0, 1, 0)
    return by_kernel((X, y), np.ones((24, 24)), gamma=1.0)


@setting
def rows_all_alike_ties() -> Record:
    """Classes of the same size: every left-out value is zero, which is an error."""
    X, y = np.ones((24, 2)), np.arange(24) % 2
    return by_kernel((X, y), np.ones((24, 24)), gamma=1.0, cv=4)


@setting
def rows_unbalanced() -> Record:
    X, y = mixture(62)
    y = np.where(np.arange(62) % 31 == 0, 1.0, -1.0)
    return by_kernel((X + 0.5 * y[:, None], y), Cs=[0.01, 1.0, 100.0])


@setting
def tiny_C() -> Record:
    return by_kernel(mixture(), Cs=[1e-8, 1e-5, 1e-3])


@setting(tol=STOPPED)
def huge_C_loo() -> Record:
    return by_kernel(cancer(10), Cs=[1e3, 1e5, 1e7])


@setting(tol=STOPPED)
def huge_C_kfold() -> Record:
    return by_kernel(mixture(40), gamma=0.5, Cs=[1e3, 1e5], cv=5, output="error")


# ---- features in place of the kernel -------------------------------------------------------------


def by_features(approx: str, data: Data, **options: Any) -> Record:
    options = {"n_components": 12, "lambdas": LAMBDAS[:3], "random_state": 0} | options
    return of_features(exactcv.cross_validate(*data, approx=approx, **options), data[0])


@setting
def rff_loo() -> Record:
    return by_features("rff", mixture(120))


@setting
def rff_kfold() -> Record:
    return by_features("rff", mixture(90), cv=4, output="decision", gamma=0.1)


@setting
def rff_laplacian_no_intercept() -> Record:
    options = {"kernel": "laplacian", "gamma": 0.2, "fit_intercept": False, "output": "decision"}
    return by_features("rff", mixture(60), **options)


@setting
def rff_weights_chunks() -> Record:
    options = {"sample_weight": weights(100), "method_options": {"chunk_rows": 17}}
    return by_features("rff", mixture(100), **options)


@setting
def nystroem_loo() -> Record:
    return by_features("nystroem", cancer(6), output="decision")


@setting
def nystroem_kfold_weights() -> Record:
    options = {"sample_weight": weights(100), "class_weight": "balanced", "cv": 4}
    return by_features("nystroem", mixture(100), **options, lambdas=None, Cs=CS[:3])


@setting
def nystroem_poly_spill() -> Record:
    options = {"kernel": "poly", "degree": 2, "gamma": 0.2, "coef0": 1.0}
    options |= {"method_options": {"features": "spill", "chunk_rows": 25, "target_rows": 30}}
    return by_features("nystroem", mixture(80, 3), **options)


@setting
def nystroem_memory_limit() -> Record:
    """Too little for the features of all rows: they are computed in every pass."""
    X, y = mixture(900)
    options = {"memory_limit": "60kB", "n_components": 4, "gamma": "scale", "random_state": 0}
    options |= {"method_options": {"chunk_rows": 16}, "lambdas": LAMBDAS[:3]}
    return of_features(exactcv.cross_validate(X, y, approx="nystroem", **options), X[:60])


def heavy_rows(approx: str, n: int, **options: Any) -> Record:
    """Small problems among many rows, and a few rows without which the others move far."""
    X, y = mixture(n)
    weight = np.ones(n)
    weight[::300] = 100.0
    options |= {"sample_weight": weight, "random_state": 0, "gamma": 0.1}
    options |= {"n_components": 8, "lambdas": [1e-2, 1e-3]}
    options |= {"method_options": {"target_rows": 20, "chunk_rows": 400}}
    return of_features(exactcv.cross_validate(X, y, approx=approx, **options), X[:60])


@setting
def nystroem_heavy_rows() -> Record:
    return heavy_rows("nystroem", 1500)


@setting
def rff_heavy_rows() -> Record:
    return heavy_rows("rff", 900, output="decision")


@setting
def nystroem_heavy_rows_kfold() -> Record:
    return heavy_rows("nystroem", 900, cv=3, fit_intercept=False)


@setting(tol=FLOAT32)
def nystroem_groups_float32() -> Record:
    options = {"cv": LeaveOneGroupOut(), "groups": groups(90), "output": "decision"}
    options |= {"method_options": {"dtype": "float32", "features": "memory"}}
    return by_features("nystroem", mixture(90), **options)


# ---- numbers -------------------------------------------------------------------------------------


def of_loss(loss: str, method: str = "exact", **options: Any) -> Record:
    options = {"Cs": [0.1, 1.0, 10.0], "gamma": 0.5, "output": "decision"} | options
    return of_numbers(exactcv.cross_validate(*numbers(), loss=loss, method=method, **options))


@setting
def exact_epsilon_insensitive_loo() -> Record:
    return of_loss("epsilon_insensitive", epsilon=10.0)


@setting
def exact_pinball_kfold_weights() -> Record:
    return of_loss("pinball", quantile=0.8, cv=4, sample_weight=weights(40) + 0.1)


@setting
def exact_least_squares_kfold() -> Record:
    return of_loss("least_squares", cv=4)


@setting
def exact_squared_loo() -> Record:
    return by_method("exact", loss="squared")


@setting
def refit_squared_loo() -> Record:
    return by_method("refit", loss="squared")


@setting(tol=STOPPED)
def refit_epsilon_insensitive_kfold() -> Record:
    return of_loss("epsilon_insensitive", "refit", epsilon=10.0, cv=4, fit_intercept=False)


@setting(tol=STOPPED)
def refit_pinball_loo() -> Record:
    return of_loss("pinball", "refit", quantile=0.3)


@setting
def refit_least_squares_loo() -> Record:
    return of_loss("least_squares", "refit")


@setting
def least_squares_numbers_loo() -> Record:
    return of_loss("least_squares", "least_squares")


# ---- SVCCV ---------------------------------------------------------------------------------------


def tuned(data: Data, fit: Record | None = None, **options: Any) -> Record:
    options = {"Cs": CS, "gamma": 0.1, "store_cv_results": True} | options
    return of_model(exactcv.SVCCV(**options).fit(*data, **(fit or {})), data[0])


@setting
def svccv_binary() -> Record:
    return tuned(mixture(), gamma=[0.02, "median", 0.5], Cs=None, lambdas=LAMBDAS)


@setting
def svccv_three_classes() -> Record:
    return tuned(iris(3), gamma=[0.05, 0.5], Cs=CS[1:], decision_function_shape="ovo")


@setting
def svccv_digits_kfold() -> Record:
    options = {"cv": 4, "gamma": "scale", "lambdas": LAMBDAS[1:], "Cs": None}
    return tuned(digits(), **options, store_cv_results=False, random_state=0)


@setting
def svccv_roc_auc_one_se() -> Record:
    options = {"scoring": "roc_auc", "select": "1se", "gamma": ["median", 0.3]}
    return tuned(moons(), **options, store_cv_results=False)


@setting
def svccv_balanced_accuracy() -> Record:
    options = {"scoring": "balanced_accuracy", "class_weight": "balanced", "cv": 5}
    return tuned(cancer(7), **options, store_cv_results=False)


@setting(tol=STOPPED)
def svccv_log_loss_probability() -> Record:
    options = {"scoring": "neg_log_loss", "probability": True, "Cs": CS[1:]}
    return tuned(iris(3), **options, store_cv_results=False)


@setting(tol=STOPPED)
def svccv_groups_probability() -> Record:
    options = {"cv": GroupKFold(4), "probability": True, "select": "1se"}
    return tuned(mixture(), {"groups": groups(60)}, **options)


@setting
def svccv_weights() -> Record:
    """Rows of weight 0 are as good as absent, also in folds that the caller gives."""
    gammas = ["median", "scale"]
    return tuned(mixture(), {"sample_weight": weights(60)}, cv=pairs(60), gamma=gammas)


@setting
def svccv_three_classes_weights() -> Record:
    options = {"class_weight": {"versicolor": 2.5}, "cv": 3, "lambdas": LAMBDAS, "Cs": None}
    return tuned(iris(3), {"sample_weight": weights(50)}, **options, store_cv_results=False)


@setting
def svccv_draws() -> Record:
    """Labels at random: votes that draw, and values of zero."""
    record = tuned(noise(), cv=3, gamma=3.0, Cs=CS[1:])
    ties = tuned((np.ones((24, 1)), np.arange(24) % 3), cv=4, Cs=[1.0])
    return record | {f"ties.{name}": value for name, value in ties.items() if "cv." in name}


@setting
def svccv_precomputed_no_intercept() -> Record:
    X, y = moons()
    return tuned((rbf_kernel(X, gamma=1.0), y), kernel="precomputed", fit_intercept=False)


@setting(tol=STOPPED)
def svccv_magic_logistic() -> Record:
    options = {"method": "magic", "loss": "logistic", "cv": 4, "Cs": CS[:3]}
    return tuned(iris(5), **options)


@setting(tol=STOPPED)
def svccv_nystroem() -> Record:
    options = {"approx": "nystroem", "n_components": 10, "gamma": [0.05, 0.3], "cv": 4}
    options |= {"probability": True, "random_state": 0, "lambdas": LAMBDAS[:3], "Cs": None}
    return tuned(mixture(90), **options)


@setting
def svccv_rff_loo_one_se() -> Record:
    options = {"approx": "rff", "n_components": 10, "select": "1se", "random_state": 1}
    weight = {"sample_weight": weights(90)}
    return tuned(mixture(90), weight, **options, Cs=CS[:3], store_cv_results=False)


# ---- in place of scikit-learn's ------------------------------------------------------------------


def searched(data: Data, grid: Any, estimator: Any = None, **options: Any) -> Record:
    search = exactcv.GridSearchCV(estimator or SVC(), grid, **options)
    return of_search(search.fit(*data), data[0])


@setting
def grid_search_binary() -> Record:
    grid = {"C": CS, "gamma": [0.1, 1.0, 5.0]}
    return searched(moons(), grid, cv=5, return_train_score=True)


@setting
def grid_search_three_classes() -> Record:
    grid = [{"C": CS, "gamma": [0.05, 0.5]}, {"C": [0.1, 1.0], "kernel": ["linear"]}]
    return searched(iris(), grid, cv=StratifiedKFold(4, shuffle=True, random_state=0))


@setting
def grid_search_pipeline() -> Record:
    """The scaler sees the training rows only, and gamma is worked out after it."""
    grid = {"svc__C": [0.1, 1.0, 10.0], "svc__gamma": ["scale", 0.5]}
    return searched(iris(), grid, make_pipeline(StandardScaler(), SVC()), cv=3)


@setting
def grid_search_scorers() -> Record:
    grid = {"C": CS, "gamma": [0.3, 3.0], "class_weight": [None, "balanced"]}
    options = {"scoring": ["roc_auc", "f1"], "refit": "roc_auc"}
    return searched(moons(), grid, cv=4, **options)


@setting
def grid_search_loo() -> Record:
    return searched(iris(3), {"C": CS, "gamma": [0.2]}, cv=LeaveOneOut())


@setting
def cross_val_score_loo() -> Record:
    X, y = iris()
    return {"score": exactcv.cross_val_score(SVC(C=5.0, gamma=0.2), X, y, cv=LeaveOneOut())}


@setting
def cross_val_score_auc() -> Record:
    X, y = moons()
    options = {"cv": GroupKFold(4), "groups": groups(60), "scoring": "roc_auc"}
    options |= {"params": {"sample_weight": weights(60)}}
    return {"score": exactcv.cross_val_score(SVC(C=2.0, gamma=1.0), X, y, **options)}


@setting
def cross_val_score_repeated() -> Record:
    X, y = digits()
    cv = RepeatedKFold(n_splits=4, n_repeats=2, random_state=0)
    return {"score": exactcv.cross_val_score(SVC(gamma=0.05), X, y, cv=cv, n_jobs=2)}


@setting
def cross_val_predict_labels() -> Record:
    X, y = digits()
    K = rbf_kernel(X, gamma=0.05)
    found = exactcv.cross_val_predict(SVC(C=3.0, gamma=0.05), X, y, cv=4)
    precomputed = exactcv.cross_val_predict(SVC(C=3.0, kernel="precomputed"), K, y, cv=4)
    return {"labels": found, "labels.precomputed": precomputed}


@setting
def cross_val_predict_draws() -> Record:
    X, y = noise()
    svc = SVC(C=50.0, gamma=10.0)
    return {
        "labels": exactcv.cross_val_predict(svc, X, y, cv=3),
        "labels.break_ties": exactcv.cross_val_predict(svc.set_params(break_ties=True), X, y, cv=3),
    }


@setting
def cross_val_predict_values() -> Record:
    record = {}
    for name, (X, y) in {"two": moons(), "three": iris()}.items():
        for shape in ("ovr", "ovo"):
            svc = SVC(C=3.0, gamma=0.3, decision_function_shape=shape)
            options = {"cv": 5, "method": "decision_function"}
            record[f"decision.{name}.{shape}"] = exactcv.cross_val_predict(svc, X, y, **options)
    return record


@setting
def cross_val_predict_pipeline() -> Record:
    X, y = mixture()
    svc = make_pipeline(StandardScaler(), SVC(C=3.0, class_weight="balanced"))
    options = {"cv": 4, "method": "decision_function"}
    return {"decision": exactcv.cross_val_predict(svc, X, y, **options)}


# ---- SmoothSVC -----------------------------------------------------------------------------------


def smooth(data: Data, weight: np.ndarray | None = None, **options: Any) -> Record:
    X, y = data
    model = exactcv.SmoothSVC(**options).fit(X, y, sample_weight=weight)
    record = {"fitted": model.decision_function(X), "labels": model.predict(X)}
    record |= {"intercept": model.intercept_, "support": model.support_}
    record["coef"] = model.coef_ if options.get("kernel") == "linear" else model.dual_coef_
    return record | {"stats.newton_steps": model.n_iter_}


@setting
def smooth_svc_linear() -> Record:
    return smooth(cancer(), C=2.0, kernel="linear")


@setting
def smooth_svc_rbf_weights() -> Record:
    return smooth(mixture(), weights(60), C=5.0, kernel="rbf", class_weight="balanced")


@setting
def smooth_svc_poly_two() -> Record:
    options = {"kernel": "poly", "degree": 2, "gamma": 0.1, "coef0": 1.0, "strategy": "II"}
    return smooth(mixture(), C=0.5, fit_intercept=False, **options)
