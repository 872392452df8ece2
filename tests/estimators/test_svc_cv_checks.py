"""`SVCCV` meets scikit-learn's conventions, without exception.

With ``probability=True`` one check would ask too much: that the most probable class is the one
predicted, on every row, also where the vote is closest.
"""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from exactcv import SVCCV


@parametrize_with_checks(
    [
        SVCCV(),
        SVCCV(cv=3, Cs=[0.1, 1.0], gamma=["scale", 0.1], select="1se", class_weight="balanced"),
        # With random features, since weights cannot choose Nystroem's landmarks.
        SVCCV(approx="rff", n_components=8, gamma=0.1, cv=3, Cs=[0.1, 1.0], random_state=0),
    ]
)
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)
