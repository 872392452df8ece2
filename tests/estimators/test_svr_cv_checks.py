"""`SVRCV` and `QuantileSVRCV` meet scikit-learn's conventions, without exception."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from exactcv import SVRCV, QuantileSVRCV


@parametrize_with_checks(
    [
        SVRCV(cv=3, gamma="scale"),
        SVRCV(Cs=[0.1, 1.0], gamma=["scale", 0.1], epsilon=[0.0, 0.1], select="1se"),
        QuantileSVRCV(quantiles=[0.2, 0.8], Cs=[0.1, 1.0], cv=3),
        QuantileSVRCV(quantiles=0.5, Cs=[1.0], kernel="linear"),
    ]
)
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)
