"""Tables 2 and 3 as printed: seconds of SSVM, I, II and LIBSVM, accuracy of SSVM and of LIBSVM."""

from __future__ import annotations

_Line = tuple[float, float, float, float, float, float]

# Folds, kernel, data set.
PRINTED: dict[tuple[str, str, str], _Line] = {
    ("loo", "linear", "face"): (22.41, 14.32, 25.48, 1041.11, 97.73, 98.08),
    ("loo", "linear", "ionosphere"): (0.16, 0.09, 0.23, 0.53, 88.89, 87.18),
    ("loo", "linear", "pima"): (0.37, 0.23, 8.86, 5.53, 76.56, 76.56),
    ("loo", "linear", "colon"): (38.81, 2.97, 0.59, 0.64, 83.87, 80.65),
    ("loo", "linear", "leuk"): (89.37, 62.72, 2.61, 2.42, 98.61, 97.22),
    ("loo", "rbf", "face"): (4508.58, 1652.27, 1002.83, 35786.39, 99.76, 99.83),
    ("loo", "rbf", "ionosphere"): (1.57, 0.87, 0.41, 0.94, 95.73, 93.73),
    ("loo", "rbf", "pima"): (95.22, 69.77, 63.72, 19.89, 77.21, 75.52),
    ("k-fold", "linear", "face"): (4.57, 3.94, 5.00, 43.41, 97.76, 98.01),
    ("k-fold", "linear", "ionosphere"): (0.07, 0.04, 0.09, 0.11, 87.68, 87.46),
    ("k-fold", "linear", "pima"): (0.04, 0.03, 0.66, 0.19, 76.41, 76.56),
    ("k-fold", "linear", "colon"): (21.73, 4.77, 0.37, 0.33, 83.75, 82.26),
    ("k-fold", "linear", "leuk"): (196.98, 40.30, 1.03, 0.97, 97.80, 97.22),
    ("k-fold", "rbf", "face"): (314.51, 75.11, 36.37, 186.53, 99.72, 99.81),
    ("k-fold", "rbf", "ionosphere"): (0.38, 0.23, 0.15, 0.12, 95.54, 93.73),
    ("k-fold", "rbf", "pima"): (3.48, 3.15, 3.83, 0.42, 77.11, 75.39),
}


def times(cv: str, kernel: str, name: str) -> str:
    """SSVM, I, II and LIBSVM."""
    return " / ".join(f"{value:g}" for value in _line(cv, kernel, name)[:4])


def accuracies(cv: str, kernel: str, name: str) -> list[str]:
    """SSVM's, which is that of both strategies, and LIBSVM's."""
    return [f"{value:.2f}" for value in _line(cv, kernel, name)[4:]]


def _line(cv: str, kernel: str, name: str) -> _Line:
    return PRINTED[cv, kernel, name.split()[0].rstrip(",")]
