"""Feature maps: m features z(x) whose inner products stand in for a kernel.

*Random Fourier features* (Rahimi & Recht 2007) for kernels k(x - y): with frequencies drawn from
the Fourier transform of k,

    k(x - y) = E cos(w'(x - y)),    z(x) = sqrt(2 / m) [cos(w_1'x), sin(w_1'x), cos(w_2'x), ...].

Pairs of cosine and sine vary less than cosines with a random phase, and have ||z|| = 1.  For
exp(-gamma ||x - y||^2) the frequencies are N(0, 2 gamma I), for exp(-gamma ||x - y||_1) they are
independent Cauchy variables of scale gamma.

*Nystroem* (Williams & Seeger 2001), for any positive semidefinite kernel: with m landmark rows,

    z(x) = K_mm^{+1/2} k_m(x),

so that z(x)'z(y) is the kernel of the projections on the span of the landmarks.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

from ..exceptions import InputError, NotPSDWarning, UnsupportedError
from ..problem.kernels import Kernel, overflow_error
from ..runtime.user_line import user_level
from ..types import FloatArray

__all__ = [
    "FeatureMap",
    "Nystroem",
    "OwnColumns",
    "RandomFourier",
    "cross_kernel",
    "features_of",
    "make_feature_map",
]

RANDOM_FEATURE_KERNELS = ("rbf", "laplacian")
# Eigenvalues of K_mm below this share of the largest are rounding, and dropped.
_LEAST_EIGENVALUE = 1e-12
# Kernel values below this have lost digits to underflow; they pass for zero.
_UNDERFLOW = float(np.finfo(float).tiny / np.finfo(float).eps)


class FeatureMap(Protocol):
    """What is fitted once and then applied to any rows."""

    @property
    def n_components(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def gamma(self) -> float | None: ...

    def transform(self, X: Any) -> FloatArray:
        """Features, (rows, m) in float64 and finite; each row depends on that row of X alone."""
        ...


def features_of(fmap: FeatureMap, X: Any, dtype: Any) -> NDArray[np.floating]:
    """Features in the given precision, finite there too."""
    Z = fmap.transform(X)
    if Z.dtype == dtype:
        return Z
    with np.errstate(over="ignore"):
        short = Z.astype(dtype)
    if not np.isfinite(short).all():
        raise InputError(
            f"features of these data overflow in {np.dtype(dtype)}: standardise the features of X "
            "or use method_options={'dtype': 'float64'}"
        )
    return short


@dataclass(frozen=True)
class RandomFourier:
    """Pairs cos(w'x), sin(w'x); with an odd m also one cos(w'x + phase).

    Examples
    --------
    >>> import numpy as np
    >>> fmap = RandomFourier.draw("rbf", 0.5, n_features=3, n_components=8, seed=0)
    >>> Z = fmap.transform(np.ones((2, 3)))
    >>> Z.shape, (Z**2).sum(axis=1)
    ((2, 8), array([1., 1.]))
    """

    frequencies: FloatArray  # (p, pairs + single)
    phase: float | None
    gamma: float | None

    @classmethod
    def draw(
        cls, kernel: str, gamma: float, n_features: int, n_components: int, seed: int
    ) -> RandomFourier:
        rng = np.random.default_rng(seed)
        count = (n_components + 1) // 2
        if kernel == "rbf":
            frequencies = np.sqrt(2.0 * gamma) * rng.normal(size=(count, n_features)).T
        else:
            frequencies = gamma * rng.standard_cauchy(size=(count, n_features)).T
        phase = float(rng.uniform(0.0, 2.0 * np.pi)) if n_components % 2 else None
        return cls(np.ascontiguousarray(frequencies), phase, gamma)

    @property
    def n_components(self) -> int:
        return 2 * self.frequencies.shape[1] - (self.phase is not None)

    @property
    def n_features(self) -> int:
        return self.frequencies.shape[0]

    def transform(self, X: Any) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            angles = np.asarray(X @ self.frequencies)
        if not np.isfinite(angles).all():
            raise overflow_error("the kernel of the random Fourier features")
        m = self.n_components
        scale = np.sqrt(2.0 / m)
        pairs = m // 2
        Z = np.empty((angles.shape[0], m))
        np.cos(angles[:, :pairs], out=Z[:, :pairs])
        np.sin(angles[:, :pairs], out=Z[:, pairs : 2 * pairs])
        if self.phase is not None:
            np.cos(angles[:, -1] + self.phase, out=Z[:, -1])
        Z *= scale
        return Z


@dataclass(frozen=True)
class Nystroem:
    """Kernel values with the landmarks, times K_mm^{+1/2}."""

    landmarks: Any  # (m, p), dense or sparse
    root: FloatArray  # (m, m)
    kernel: Kernel

    @classmethod
    def fit(cls, landmarks: Any, kernel: Kernel) -> Nystroem:
        K = _finite_kernel(landmarks, landmarks, kernel)
        values, vectors = np.linalg.eigh(0.5 * (K + K.T))
        largest = float(np.abs(values).max(initial=0.0))
        if values.min(initial=0.0) < min(-1e-8 * largest, -_UNDERFLOW):
            warnings.warn(
                "the kernel is not positive semidefinite; the Nystroem features leave out the "
                f"{int((values < 0).sum())} directions of the landmarks with negative eigenvalues",
                NotPSDWarning,
                stacklevel=user_level(),
            )
        kept = values > max(_LEAST_EIGENVALUE * largest, _UNDERFLOW)
        inverse = np.zeros_like(values)
        inverse[kept] = 1.0 / np.sqrt(values[kept])
        return cls(landmarks, (vectors * inverse) @ vectors.T, kernel)

    @property
    def n_components(self) -> int:
        return len(self.root)

    @property
    def n_features(self) -> int:
        return int(self.landmarks.shape[1])

    @property
    def gamma(self) -> float | None:
        return float(self.kernel.gamma) if self.kernel.uses_gamma else None

    def transform(self, X: Any) -> FloatArray:
        return np.asarray(_finite_kernel(X, self.landmarks, self.kernel) @ self.root)


@dataclass(frozen=True)
class OwnColumns:
    """The columns of X as they are: the features of the linear kernel itself.

    Examples
    --------
    >>> import numpy as np
    >>> OwnColumns(2).transform(np.array([[1, 2]]))
    array([[1., 2.]])
    """

    n_features: int
    gamma: float | None = None

    @property
    def n_components(self) -> int:
        return self.n_features

    def transform(self, X: Any) -> FloatArray:
        return _dense(X)


def make_feature_map(
    approx: str | None,
    kernel: Kernel,
    n_components: int,
    landmarks: Any,
    n_features: int,
    seed: int,
) -> FeatureMap:
    """The map that ``approx`` names, for a kernel whose gamma is a number.

    Without a name the kernel is linear, and no map is needed.
    """
    if approx is None:
        return OwnColumns(n_features)
    if kernel.name == "precomputed":
        raise UnsupportedError(
            f"approx={approx!r} needs the rows themselves, but kernel='precomputed' gives only "
            "their inner products; pass the features and name the kernel"
        )
    if approx == "nystroem":
        return Nystroem.fit(landmarks, kernel)
    if kernel.name not in RANDOM_FEATURE_KERNELS:
        shown = kernel.name if isinstance(kernel.name, str) else "a callable"
        raise UnsupportedError(
            f"kernel={shown!r} has no random Fourier features: they exist for kernels of x - y, "
            f"here {' and '.join(map(repr, RANDOM_FEATURE_KERNELS))}; use approx='nystroem', "
            "which takes any positive semidefinite kernel"
        )
    assert isinstance(kernel.name, str)
    gamma = float(kernel.gamma)
    return RandomFourier.draw(kernel.name, gamma, n_features, n_components, seed)


def _finite_kernel(X: Any, Y: Any, kernel: Kernel) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        K = cross_kernel(X, Y, kernel)
    if np.isfinite(K).all():
        return K
    if callable(kernel.name):
        raise InputError("the kernel function returned values that are not finite")
    raise overflow_error(f"the {kernel.name} kernel")


def cross_kernel(X: Any, Y: Any, kernel: Kernel) -> FloatArray:
    """Kernel values between the rows of X and those of Y, dense or sparse.

    Examples
    --------
    >>> import numpy as np
    >>> cross_kernel(np.zeros((1, 2)), np.ones((3, 2)), Kernel("rbf", gamma=0.5)).round(3)
    array([[0.368, 0.368, 0.368]])
    """
    if callable(kernel.name):
        K = np.asarray(kernel.name(_dense(X), _dense(Y)), dtype=float)
        if K.shape != (X.shape[0], Y.shape[0]):
            raise InputError(
                f"the kernel function returned shape {K.shape} for {X.shape[0]} and {Y.shape[0]} "
                "rows; it must be k(X, Y) with one row for each row of X"
            )
        return K
    if kernel.name == "laplacian":
        return np.asarray(np.exp(-float(kernel.gamma) * cdist(_dense(X), _dense(Y), "cityblock")))
    if kernel.name == "rbf" and not (sparse.issparse(X) or sparse.issparse(Y)):
        # Distances lose digits when all rows are far from the origin.
        centre = Y.mean(axis=0)
        X, Y = X - centre, Y - centre
    products = _dense(X @ Y.T)
    if kernel.name == "linear":
        return products
    gamma = float(kernel.gamma)
    if kernel.name == "rbf":
        products *= -2.0
        products += _squares(X)[:, None]
        products += _squares(Y)
        np.maximum(products, 0.0, out=products)
        products *= -gamma
        return np.asarray(np.exp(products, out=products))
    products *= gamma
    products += kernel.coef0
    if kernel.name == "sigmoid":
        return np.asarray(np.tanh(products, out=products))
    return np.asarray(products**kernel.degree)


def _dense(X: Any) -> NDArray[np.float64]:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=float)


def _squares(X: Any) -> FloatArray:
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))
