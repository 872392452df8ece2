"""scikit-learn's face: estimators that tune themselves, and drop-ins for its own functions."""
