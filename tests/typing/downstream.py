"""What a user's typed code looks like: every public name, checked by mypy --strict and pyright.

The checkers see the installed package.  ``assert_type`` says what they should make of a value;
``tests/project/test_typing.py`` runs all of it too, so that the types are also true.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any, assert_type

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import SVC, SVR

import exactcv
from exactcv.algorithms import Support
from exactcv.report import Remark, remarks
from exactcv.storage.table_model import TableModel

Floats = NDArray[np.float64]


def data() -> tuple[Floats, Floats]:
    X, y = exactcv.datasets.make_mixture(40, 4, random_state=0)
    assert_type(X, Floats)
    assert exactcv.datasets.load_breast_cancer()[0].shape == (569, 30)
    return X, y


def cross_validation(X: Floats, y: Floats) -> exactcv.CVResult:
    result = exactcv.cross_validate(
        X, y, kernel="rbf", gamma="median", loss="hinge", lambdas=5, cv="loo", output="decision"
    )
    assert_type(result, exactcv.CVResult)
    assert_type(result.error, Floats)
    assert_type(result.interval, Floats)
    assert_type(result.grown, str)
    assert_type(result.n_errors, NDArray[np.intp])
    assert_type(result.wrong, NDArray[np.bool_])
    assert_type(result.decision, Floats | None)
    assert_type(result.coef, Floats | None)
    assert_type(result.best, int)
    assert_type(result.gamma, float | None)
    assert_type(result.certificate.exact, bool)
    assert_type(result.certificate.kkt, Floats)
    assert_type(result.timings["total"], float)
    assert_type(result.summary(), str)
    corrected = result.corrected(50, random_state=0, scoring="roc_auc")
    assert_type(corrected, exactcv.Corrected)
    assert_type(corrected.interval, tuple[float, float])
    assert_type(float(corrected), float)
    assert len(result.to_frame()["error"]) == 5
    return result


def inner_product(A: Floats, B: Floats) -> Floats:
    return A @ B.T


class Halves:
    """A splitter of one's own."""

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        rows = np.arange(len(y))
        yield rows[::2], rows[1::2]
        yield rows[1::2], rows[::2]

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return 2


def all_kinds_of_input(X: Floats, y: Floats, folder: pathlib.Path) -> None:
    """Whatever holds rows may be given, and nothing else."""
    frame = pd.DataFrame(X)
    rows = np.arange(len(y))
    pairs = [(rows[::2], rows[1::2]), (rows[1::2], rows[::2])]
    texts = ["yes" if sign > 0 else "no" for sign in y]
    exactcv.cross_validate(frame, pd.Series(y), Cs=1.0, cv=5, random_state=0)
    exactcv.cross_validate(X.tolist(), y.tolist(), Cs=[0.1, 1], cv=KFold(4))
    exactcv.cross_validate(list(X), texts, Cs=np.array([1.0]), cv=pairs)
    exactcv.cross_validate(sparse.csr_matrix(X), y, Cs=1, cv=Halves(), n_jobs=2)
    exactcv.cross_validate(sparse.csr_array(X), y, lambdas=[1.0], class_weight="balanced", cv=None)
    exactcv.cross_validate(
        X, texts, Cs=1.0, class_weight={"yes": 2, "no": 1.0}, sample_weight=np.ones(len(y)), cv=4
    )
    exactcv.cross_validate(X, y, Cs=1.0, kernel=inner_product, method="refit", cv=3)
    exactcv.cross_validate(
        X, y, Cs=1.0, cv=3, approx="rff", n_components=5, memory_limit="1GB", method_options={}
    )
    table = folder / "rows.parquet"
    frame.assign(label=texts).rename(columns=str).to_parquet(table)
    for path in (table, str(table)):
        exactcv.cross_validate(path, "label", Cs=1.0, cv=3, approx="nystroem", n_components=5)


def methods() -> list[str]:
    assert_type(exactcv.methods(), dict[str, Support])
    return [support.paper for support in exactcv.methods().values()]


def estimators(X: Floats, y: Floats, folder: pathlib.Path) -> exactcv.SVCCV:
    model = exactcv.SVCCV(
        Cs=[0.1, 1.0], gamma=[0.1, "median"], scoring="roc_auc", select="1se", probability=True
    ).fit(X, y)
    assert_type(model, exactcv.SVCCV)
    assert_type(model.C_, float)
    assert_type(model.gamma_, float | None)
    assert_type(model.best_score_, float)
    assert_type(model.corrected_score_, exactcv.Corrected)
    assert_type(model.methods_text(), str)
    nested = model.nested_score(X, y, outer=3)
    assert_type(nested, exactcv.NestedResult)
    assert_type(nested.chosen, Floats)
    direct = exactcv.nested_cross_validate(X, y, Cs=[1.0], gammas=[0.1, 1.0], outer=3, cv=3)
    assert_type(direct, exactcv.NestedResult)
    assert_type(direct.error, float)
    numbers = exactcv.nested_cross_validate(
        X, y, loss="epsilon_insensitive", epsilon=[0.1, 0.2], Cs=[1.0, 10.0], gammas=[0.1]
    )
    assert_type(numbers, exactcv.NestedRegressionResult)
    assert_type(exactcv.SVRCV(Cs=[1.0], gamma=0.1).nested_score(X, y, outer=3).rmse, float)
    pairs = exactcv.leave_pair_out(X, y, Cs=[1.0], tournament=False)
    assert_type(pairs, exactcv.PairResult)
    assert_type(pairs.auc, Floats)
    steps = exactcv.error_path(X, y, C_range=(0.1, 1.0), cv=3)
    assert_type(steps, exactcv.ErrorPath)
    assert_type(steps.breakpoints, Floats)
    assert_type(steps.best_C, float)
    exactcv.SVCCV(Cs="all")
    spread: exactcv.CVInterval = exactcv.cv_interval(X, y, C=1.0, folds=3)
    assert_type(spread.interval, tuple[float, float])
    effects = exactcv.influence(X, y, C=1.0, gamma="scale", X_test=X, y_test=y)
    assert_type(effects, exactcv.Influence)
    assert_type(effects.change, Floats)
    assert_type(effects.plot(), exactcv.InfluenceDisplay)
    without = model.forget([0, 1]).forget(2)
    model.forget(effects.helps_most(1))
    assert_type(without, exactcv.SVCCV)
    sets = exactcv.ConformalSVC(C=1.0, gamma=0.1, class_weight={-1.0: 2.0}).fit(X, y)
    assert_type(sets, exactcv.ConformalSVC)
    assert_type(sets.p_values(X[:2]), Floats)
    assert_type(sets.predict_set(X[:2], coverage=0.8), NDArray[np.bool_])
    assert_type(model.certificate_.exact, bool)
    assert_type(model.cv_results_["mean_test_score"], Any)
    assert_type(model.decision_function(X), Floats)
    assert_type(model.predict(X), NDArray[Any])
    assert_type(model.predict_proba(X), Floats)
    assert_type(model.score(X, y), float)
    assert_type(exactcv.SVCCV(Cs=1.0, kernel="linear").fit(X, y).coef_, Floats)
    assert_type(model.get_params(), dict[str, Any])
    assert_type(model.set_params(n_jobs=1), exactcv.SVCCV)
    exactcv.SVCCV(Cs=1.0, gamma=np.logspace(-2, 0, 2), cv=Halves()).fit(pd.DataFrame(X), y)

    smooth = exactcv.SmoothSVC(C=1.0, kernel="rbf", strategy="II").fit(X, y, sample_weight=1.0)
    assert_type(smooth, exactcv.SmoothSVC)
    tube = exactcv.SmoothSVR(C=1.0, epsilon=0.2, kernel="rbf").fit(X, y)
    assert_type(tube, exactcv.SmoothSVR)
    assert_type(tube.left_out_predict(X, y, cv=5), Floats)
    assert_type(smooth.gradient_norm_, float)
    assert_type(smooth.decision_function(X), Floats)

    path = exactcv.save_model(model, folder / "model.exactcv")
    assert_type(path, pathlib.Path)
    again = exactcv.load_model(path)
    assert_type(again, exactcv.SVCCV | exactcv.SVRCV | exactcv.QuantileSVRCV | TableModel)
    assert isinstance(again, exactcv.SVCCV)
    assert again.C_ == model.C_
    assert callable(exactcv.register_onnx)
    return model


def drop_ins(X: Floats, y: Floats) -> None:
    scores = exactcv.cross_val_score(SVC(gamma="auto"), X, y, cv=5, scoring="accuracy")
    assert_type(scores, Floats)
    values = exactcv.cross_val_predict(SVC(gamma="auto"), X, y, cv=5, method="decision_function")
    assert_type(values, NDArray[Any])
    search = exactcv.GridSearchCV(
        make_pipeline(Normalizer(), SVC(gamma="auto")),
        {"svc__C": np.logspace(-1, 1, 3)},
        cv=KFold(3),
    ).fit(X, y)
    assert_type(search, exactcv.GridSearchCV)
    assert_type(search.best_score_, float)
    assert_type(search.best_params_, dict[str, Any])
    assert_type(search.predict(X), NDArray[Any])
    assert_type(search.score(X, y), float)


def shown(result: exactcv.CVResult, model: exactcv.SVCCV, folder: pathlib.Path) -> None:
    assert_type(result.plot(), exactcv.ErrorCurveDisplay)
    assert_type(model.plot("heatmap"), exactcv.HeatMapDisplay)
    assert_type(result.plot("decision"), exactcv.LeftOutDisplay)
    assert_type(result.plot("roc"), exactcv.RocDisplay)
    curve = exactcv.ErrorCurveDisplay.from_result(result, against="C")
    assert_type(curve, exactcv.ErrorCurveDisplay)
    curve.ax_.set_title("left-out error")
    exactcv.HeatMapDisplay.from_estimator(model).plot(colorbar=False)
    exactcv.LeftOutDisplay.from_result([result])
    exactcv.RocDisplay.from_result(result)
    assert_type(exactcv.write_html(result, folder / "report.html"), pathlib.Path)
    assert_type(remarks(result), list[Remark])
    assert_type(exactcv.__version__, str)


def numbers(X: Floats, folder: pathlib.Path) -> None:
    y = X[:, 0] ** 2
    result = exactcv.cross_validate(X, y, loss="pinball", quantile=0.3, Cs=[1.0])
    assert isinstance(result, exactcv.RegressionResult)
    assert_type(result.r2, Floats)
    assert_type(result.score("r2"), Floats)
    model = exactcv.SVRCV(Cs=[1.0, 2.0], epsilon=[0.1, 0.2], gamma=0.5).fit(X, y)
    assert_type(model, exactcv.SVRCV)
    assert_type(model.predict(X), Floats)
    assert_type(model.predict_interval(X, coverage=0.8, method="cv+"), Floats)
    assert_type(model.coverage_text(), str)
    assert_type(model.plot("residuals"), exactcv.ResidualDisplay)
    assert isinstance(exactcv.PredictedDisplay.from_result(result), exactcv.PredictedDisplay)
    assert isinstance(
        exactcv.load_model(exactcv.save_model(model, folder / "svr.exactcv")), exactcv.SVRCV
    )
    exactcv.cross_val_predict(SVR(kernel="linear"), X, y, cv=3)
    quantiles = exactcv.QuantileSVRCV(quantiles=[0.2, 0.8], Cs=[1.0], crossing="allow")
    assert_type(quantiles.fit(X[:, :1], y).predict(X[:, :1]), Floats)
    fan = exactcv.FanChartDisplay.from_quantile_model(quantiles, X[:, 0])
    assert_type(fan, exactcv.FanChartDisplay)


def errors(X: Floats) -> list[type[exactcv.ExactCVError | Warning]]:
    try:
        exactcv.cross_validate(X, np.ones(len(X)))
    except exactcv.InputError as error:
        assert_type(error.args, tuple[Any, ...])
    except exactcv.Interrupted as stop:
        assert_type(stop.partial, Any)
    return [
        exactcv.ClusterError,
        exactcv.FileError,
        exactcv.InputIndexError,
        exactcv.InputTypeError,
        exactcv.MemoryLimitError,
        exactcv.MissingExtraError,
        exactcv.NotExactWarning,
        exactcv.NotPSDWarning,
        exactcv.SlowFoldsWarning,
        exactcv.UnsupportedError,
    ]


def main(folder: pathlib.Path) -> None:
    X, y = data()
    result = cross_validation(X, y)
    all_kinds_of_input(X, y, folder)
    assert methods()
    model = estimators(X, y, folder)
    drop_ins(X, y)
    numbers(X, folder)
    shown(result, model, folder)
    assert errors(X)
