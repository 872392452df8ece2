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

Features are written into the array that keeps them, a block of rows at a time that stays in cache:
arrays of a whole chunk would cost more for their pages, which many systems give back and take anew
each time, than for what is computed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

from .._core._gather import rbf
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
# Bytes of kernel values that are at hand at a time: half of a common second-level cache.
_BLOCK_BYTES = 1 << 19


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

    def write(self, X: Any, out: NDArray[np.floating]) -> None:
        """The same into ``out``, whatever its precision; not finite there if they overflow it."""
        ...


def features_of(
    fmap: FeatureMap, X: Any, dtype: Any, out: NDArray[np.floating] | None = None
) -> NDArray[np.floating]:
    """Features in the given precision, finite there too; in ``out``, if it is given."""
    if out is None and np.dtype(dtype) == np.float64:
        return fmap.transform(X)
    if out is None:
        out = np.empty((X.shape[0], fmap.n_components), dtype=dtype)
    with np.errstate(over="ignore"):
        fmap.write(X, out)
    if out.dtype != np.float64 and not np.isfinite(out).all():
        raise InputError(
            f"features of these data overflow in {out.dtype}: standardise the features of X "
            "or use method_options={'dtype': 'float64'}"
        )
    return out


def _made(fmap: FeatureMap, X: Any) -> FloatArray:
    """Features in an array of their own."""
    X = X if sparse.issparse(X) else np.asarray(X)
    Z = np.empty((X.shape[0], fmap.n_components))
    fmap.write(X, Z)
    return Z


def _blocks(n: int, width: int) -> list[slice]:
    """Rows whose ``width`` numbers stay in cache."""
    step = max(1, _BLOCK_BYTES // (8 * width))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


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
        return _made(self, X)

    def write(self, X: Any, out: NDArray[np.floating]) -> None:
        m = self.n_components
        pairs, scale = m // 2, np.sqrt(2.0 / m)
        for rows in _blocks(X.shape[0], m):
            with np.errstate(over="ignore", invalid="ignore"):
                angles = np.asarray(X[rows] @ self.frequencies)
            if not np.isfinite(angles).all():
                raise overflow_error("the kernel of the random Fourier features")
            parts = [np.cos(angles[:, :pairs]), np.sin(angles[:, :pairs])]
            if self.phase is not None:
                parts.append(np.cos(angles[:, -1:] + self.phase))
            # Rounded once, if ``out`` is of less precision.
            np.multiply(np.hstack(parts), scale, out=out[rows], casting="same_kind")


@dataclass(frozen=True)
class Nystroem:
    """Kernel values with the landmarks, times K_mm^{+1/2}."""

    landmarks: Any  # (m, p), dense or sparse
    root: FloatArray  # (m, m)
    kernel: Kernel

    @classmethod
    def fit(cls, landmarks: Any, kernel: Kernel) -> Nystroem:
        K = np.empty((landmarks.shape[0], landmarks.shape[0]))
        _finite(_kernel_with(landmarks, kernel), landmarks, kernel, K)
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
        return _made(self, X)

    def write(self, X: Any, out: NDArray[np.floating]) -> None:
        kernel_with, m = _kernel_with(self.landmarks, self.kernel), self.n_components
        blocks = _blocks(X.shape[0], m)
        room = np.empty((blocks[0].stop if blocks else 0, m))
        for rows in blocks:
            K = _finite(kernel_with, X[rows], self.kernel, room[: rows.stop - rows.start])
            np.matmul(K, self.root, out=out[rows], casting="same_kind")


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

    def write(self, X: Any, out: NDArray[np.floating]) -> None:
        out[:] = _dense(X)


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


# Writes the kernel values of some rows into an array.
_Kernel = Callable[[Any, FloatArray], None]


def _finite(kernel_with: _Kernel, X: Any, kernel: Kernel, out: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        kernel_with(X, out)
    if np.isfinite(out).all():
        return out
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
    out = np.empty((X.shape[0], Y.shape[0]))
    _kernel_with(Y, kernel)(X, out)
    return out


def _kernel_with(Y: Any, kernel: Kernel) -> _Kernel:
    """The kernel values of any rows with those of Y; what these alone say is worked out once."""
    if callable(kernel.name):
        return _by_function(Y, kernel)
    if kernel.name == "laplacian":
        return _laplacian_with(Y, float(kernel.gamma))
    if kernel.name == "rbf":
        return _rbf_with(Y, float(kernel.gamma))

    def of_products(X: Any, out: FloatArray) -> None:
        out[:] = _dense(X @ Y.T)
        if kernel.name == "linear":
            return
        out *= float(kernel.gamma)
        out += kernel.coef0
        if kernel.name == "sigmoid":
            np.tanh(out, out=out)
        else:
            np.power(out, kernel.degree, out=out)

    return of_products


def _by_function(Y: Any, kernel: Kernel) -> _Kernel:
    others = _dense(Y)

    def by_function(X: Any, out: FloatArray) -> None:
        assert callable(kernel.name)
        K = np.asarray(kernel.name(_dense(X), others), dtype=float)
        if K.shape != out.shape:
            raise InputError(
                f"the kernel function returned shape {K.shape} for {X.shape[0]} and "
                f"{len(others)} rows; it must be k(X, Y) with one row for each row of X"
            )
        out[:] = K

    return by_function


def _laplacian_with(Y: Any, gamma: float) -> _Kernel:
    others = _dense(Y)

    def laplacian(X: Any, out: FloatArray) -> None:
        np.multiply(cdist(_dense(X), others, "cityblock"), -gamma, out=out)
        np.exp(out, out=out)

    return laplacian


def _rbf_with(Y: Any, gamma: float) -> _Kernel:
    apart = _plus_norms(Y)
    distances = apart if sparse.issparse(Y) else _with_norms(Y)

    def rbf_of(X: Any, out: FloatArray) -> None:
        (apart if sparse.issparse(X) else distances)(X, out)
        np.maximum(out, 0.0, out=out)
        if np.isfinite(gamma * out.max(initial=0.0)):
            rbf(out, gamma, out)
        else:  # what is no number stays none
            np.exp(np.multiply(out, -gamma, out=out), out=out)

    return rbf_of


def _plus_norms(Y: Any) -> _Kernel:
    """Squared distances where rows are sparse, and so are not centred."""
    squares = _squares(Y)

    def distances(X: Any, out: FloatArray) -> None:
        np.multiply(_dense(X @ Y.T), -2.0, out=out)
        out += _squares(X)[:, None]
        out += squares

    return distances


def _with_norms(Y: FloatArray) -> _Kernel:
    """Squared distances of dense rows: the norms ride along, [x, ||x||^2, 1] [-2y, 1, ||y||^2]'.

    They lose digits when all rows are far from the origin, so that rows are centred.
    """
    centre = Y.mean(axis=0)
    centred = Y - centre
    right = np.vstack([-2.0 * centred.T, np.ones(len(Y)), _squares(centred)])

    def distances(X: Any, out: FloatArray) -> None:
        left = np.ones((len(X), X.shape[1] + 2))
        left[:, -2] = _squares(np.subtract(X, centre, out=left[:, :-2]))
        np.matmul(left, right, out=out)

    return distances


def _dense(X: Any) -> NDArray[np.float64]:
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=float)


def _squares(X: Any) -> FloatArray:
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))
