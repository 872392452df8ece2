"""Mistakes that a type checker should find.

Each line with one says so to both checkers, and both complain of a remark that is not needed: a
mistake that is no longer found is an error.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

import exactcv


def choices(X: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    exactcv.cross_validate(X, y, cv="lo")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    exactcv.cross_validate(X, y, output="errors")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    exactcv.cross_validate(X, y, kernel="rfb")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    exactcv.cross_validate(X, y, gamma="mean")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    exactcv.cross_validate(X, y, loss="hing")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    exactcv.cross_validate(X, y, approx="nystrom")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    exactcv.cross_validate(X, y, class_weight="equal")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    exactcv.SVCCV(cv="lo")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    exactcv.SVCCV(gamma=["mean"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    exactcv.SVCCV(select="2se")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    exactcv.ConformalSVC(gamma="median")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    exactcv.influence(X, y)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    exactcv.SmoothSVC(strategy="III")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    exactcv.GridSearchCV(SVC(), {}, cv="loo")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    exactcv.cross_val_predict(SVC(), X, y, method="proba")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def data(y: NDArray[np.float64]) -> None:
    exactcv.cross_validate(3.0, y)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    exactcv.cross_validate(None, y)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    exactcv.SmoothSVC().fit("rows.csv", y)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    exactcv.SVCCV().fit(y)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def attributes(result: exactcv.CVResult) -> None:
    print(result.errors)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    print(result.certificate.kkt_gap)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    result.plot("curve")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    print(result.decision[0])  # type: ignore[index]  # pyright: ignore[reportOptionalSubscript]
    print(exactcv.SVRCCV)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    print(exactcv.methods()["exact"].loss)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    # Not mypy: the base classes are scikit-learn's, of which it knows nothing.
    print(exactcv.SVCCV().best)  # pyright: ignore[reportAttributeAccessIssue]
