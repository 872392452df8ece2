"""How classifiers read rows, to be fitted to or new: scikit-learn's way, with our errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ..exceptions import InputError, InputTypeError
from ..problem import inputs

__all__ = ["read_new_rows", "read_training_rows"]


def read_training_rows(model: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """X (sparse stays sparse) and the labels; the model learns names and number of features."""
    inputs.refuse_path(X)
    inputs.refuse_missing_labels(y)
    try:
        with inputs.naming_text(X):
            X, y = validate_data(
                model,
                X,
                y,
                accept_sparse="csr",
                dtype=np.float64,
                order="C",
                ensure_min_samples=2,
            )
        check_classification_targets(y)
    except TypeError as error:
        raise InputTypeError(str(error)) from error
    except ValueError as error:
        raise InputError(str(error)) from error
    if model.kernel == "precomputed" and X.shape[0] != X.shape[1]:
        raise InputError(
            f"with kernel='precomputed' X is the kernel matrix and must be square, got {X.shape}"
        )
    return X, y


def read_new_rows(model: Any, X: Any) -> Any:
    """Rows with the features that the model was fitted to."""
    inputs.refuse_path(X)
    try:
        with inputs.naming_text(X):
            return validate_data(model, X, accept_sparse="csr", dtype=np.float64, reset=False)
    except TypeError as error:
        raise InputTypeError(str(error)) from error
    except ValueError as error:
        raise InputError(str(error)) from error
