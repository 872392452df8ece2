"""Kernel matrices against scikit-learn's, and what is refused."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from scipy.spatial.distance import pdist
from sklearn.metrics import pairwise

from exactcv.exceptions import InputError, MemoryLimitError, NotPSDWarning
from exactcv.problem import gamma as bandwidth
from exactcv.problem import kernels
from exactcv.problem.gamma import median_gamma
from exactcv.problem.kernels import Kernel, check_psd, gamma_value, kernel_between, kernel_matrix
from exactcv.problem.tiles import nearly_empty
from exactcv.runtime.memory import available_memory, check_memory, parse_bytes
from exactcv.runtime.threads import Workers


@pytest.fixture
def X() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(300, 7)) + 5.0


REFERENCES = {
    "rbf": lambda X: pairwise.rbf_kernel(X, gamma=0.3),
    "laplacian": lambda X: pairwise.laplacian_kernel(X, gamma=0.3),
    "poly": lambda X: pairwise.polynomial_kernel(X, degree=4, gamma=0.3, coef0=0.5),
    "sigmoid": lambda X: pairwise.sigmoid_kernel(X, gamma=0.3, coef0=0.5),
    "linear": pairwise.linear_kernel,
}


@pytest.mark.parametrize("name", REFERENCES)
def test_sparse_rows_with_long_indices(X: np.ndarray, name: str) -> None:
    X = np.where(X > 5.0, X, 0.0)
    rows = csr_array(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    K = kernel_between(rows, rows, Kernel(name, gamma=0.3, degree=4, coef0=0.5))
    np.testing.assert_allclose(K, REFERENCES[name](X), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", REFERENCES)
def test_matches_scikit_learn_and_is_symmetric_to_the_bit(X: np.ndarray, name: str) -> None:
    K, gamma = kernel_matrix(X, Kernel(name, gamma=0.3, degree=4, coef0=0.5))
    np.testing.assert_allclose(K, REFERENCES[name](X), rtol=1e-12, atol=1e-12)
    assert (K == K.T).all()
    assert K.flags.c_contiguous
    assert K.dtype == np.float64
    assert gamma == (None if name == "linear" else 0.3)


@pytest.mark.parametrize("name", REFERENCES)
def test_threads_give_the_same_bits(X: np.ndarray, name: str) -> None:
    kernel = Kernel(name, gamma="median")
    with Workers(1) as one, Workers(2) as two:
        first, second = kernel_matrix(X, kernel, one)[0], kernel_matrix(X, kernel, two)[0]
    assert (first == second).all()


@pytest.fixture
def words() -> np.ndarray:
    """Rows of text: 3 of 4,000 columns are not zero, and one column has no zero."""
    rng = np.random.default_rng(2)
    X = np.zeros((300, 4000))
    X[np.arange(300)[:, None], rng.integers(0, 4000, size=(300, 3))] = rng.exponential(
        size=(300, 3)
    )
    X[:, 7] = rng.normal(size=300)
    return X


@pytest.mark.parametrize("name", REFERENCES)
def test_products_of_nearly_empty_rows(words: np.ndarray, name: str) -> None:
    kernel = Kernel(name, gamma=0.3, degree=4, coef0=0.5)
    assert nearly_empty(words)
    with Workers(1) as one, Workers(2) as two:
        first, second = kernel_matrix(words, kernel, one)[0], kernel_matrix(words, kernel, two)[0]
    assert (first == second).all()
    assert (first == first.T).all()
    assert first == pytest.approx(REFERENCES[name](words), rel=1e-12, abs=1e-13)


def test_a_full_column_far_from_the_origin_keeps_digits_of_nearly_empty_rows(
    words: np.ndarray,
) -> None:
    shifted = words.copy()
    shifted[:, 7] += 1e6  # what is rounded away by this addition is all that may differ
    words[:, 7] = shifted[:, 7] - 1e6
    kernel = Kernel("rbf", gamma=0.3)
    near, far = kernel_matrix(words, kernel)[0], kernel_matrix(shifted, kernel)[0]
    assert far == pytest.approx(near, abs=1e-9)


@pytest.mark.parametrize(
    ("share", "p", "sparse_pays"),
    [
        (0.0, 1, True),
        (1.0, 10_000, False),
        (0.1, 300, False),
        (0.2, 50_000, False),
        (0.002, 50_000, True),
    ],
)
def test_products_of_entries_only_where_they_pay(share: float, p: int, sparse_pays: bool) -> None:
    X = (np.random.default_rng(0).random((50, p)) < share).astype(float)
    assert nearly_empty(X) is sparse_pays


@pytest.mark.parametrize(("n", "p"), [(2, 1), (3, 2), (40, 3), (255, 2), (257, 2), (700, 5)])
def test_median_gamma_is_exact(n: int, p: int) -> None:
    X = np.random.default_rng(n).normal(size=(n, p))
    expected = 1.0 / np.median(pdist(X, "sqeuclidean"))
    assert median_gamma(X) == pytest.approx(expected, rel=1e-12)
    assert kernel_matrix(X, Kernel("poly"))[1] == median_gamma(X)


def test_median_survives_a_bracket_that_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(400, 3))
    expected = median_gamma(X)
    monkeypatch.setattr(bandwidth, "_bracket", lambda D: (0.0, 1e-6))
    assert median_gamma(X) == expected
    monkeypatch.setattr(bandwidth, "_bracket", lambda D: (1e6, 1e7))
    assert median_gamma(X) == expected


def test_median_of_heavily_tied_distances() -> None:
    X = np.random.default_rng(0).integers(0, 2, size=(500, 3)).astype(float)
    distances = pdist(X, "sqeuclidean")
    assert median_gamma(X) == pytest.approx(1.0 / np.median(distances[distances > 0]))


def test_equal_rows_do_not_count() -> None:
    X = np.zeros((10, 1))
    X[9] = 3.0
    assert median_gamma(X) == pytest.approx(1 / 9.0)
    assert kernel_matrix(X, Kernel("rbf"))[1] == median_gamma(X)
    assert median_gamma(np.ones((5, 2))) == 1.0
    assert kernel_matrix(np.array([[0.0], [-0.0], [1.0]]), Kernel("rbf"))[1] == 1.0
    tiny = np.array([[1.0], [1.0 + 1e-15], [1.0 + 2e-15], [2.0]])  # differ, but not their squares
    assert median_gamma(tiny) == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("n", [5, 60, 400])
def test_a_weight_is_that_many_copies(n: int) -> None:
    rng = np.random.default_rng(n)
    X, weight = rng.normal(size=(n, 3)), rng.integers(0, 4, n).astype(float)
    weight[:2] = 1.0
    copies = np.repeat(X, weight.astype(int), axis=0)
    assert median_gamma(X, weight) == pytest.approx(median_gamma(copies), rel=1e-12)
    assert kernel_matrix(copies, Kernel())[1] == median_gamma(copies)
    distances = pdist(copies, "sqeuclidean")
    assert 1 / median_gamma(copies) == pytest.approx(np.median(distances[distances > 0]))
    assert median_gamma(X, 0.1 * weight) == pytest.approx(median_gamma(X, weight), rel=1e-12)
    for rule in ("scale", "auto", "median"):
        kernel = Kernel(gamma=rule)
        weighted = gamma_value(X, kernel, weight)
        assert weighted == pytest.approx(gamma_value(copies, kernel), rel=1e-12)
        assert weighted == pytest.approx(kernel_matrix(copies, kernel)[1], rel=1e-12)
    assert gamma_value(X, Kernel("linear"), weight) is None


def test_weighted_median_survives_a_bracket_that_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(400, 2)), rng.uniform(0.1, 2.0, 400)
    expected = median_gamma(X, weight)
    monkeypatch.setattr("exactcv.problem.gamma._bracket", lambda D, weight=None: (0.0, 1e-9))
    assert median_gamma(X, weight) == expected


@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly", "sigmoid", "linear"])
def test_kernel_between_continues_the_matrix(name: str) -> None:
    X = np.random.default_rng(0).normal(size=(9, 4))
    kernel = Kernel(name, gamma=0.3, degree=2, coef0=0.5)
    K, _ = kernel_matrix(X, kernel)
    assert kernel_between(X[:4], X, kernel) == pytest.approx(K[:4], abs=1e-12)
    assert kernel_between(csr_matrix(X[:4]), X, kernel) == pytest.approx(K[:4], abs=1e-12)
    assert kernel_between(csr_matrix(X), csr_matrix(X), kernel) == pytest.approx(K, abs=1e-12)


def test_scale_and_auto_follow_scikit_learn(X: np.ndarray) -> None:
    assert kernel_matrix(X, Kernel("rbf", gamma="scale"))[1] == pytest.approx(1 / (7 * X.var()))
    assert kernel_matrix(X, Kernel("rbf", gamma="auto"))[1] == pytest.approx(1 / 7)
    assert kernel_matrix(np.ones((3, 2)), Kernel("rbf", gamma="scale"))[1] == 1.0


def test_far_from_the_origin_distances_keep_their_digits() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    near, far = (kernel_matrix(X + shift, Kernel("rbf", gamma=1.0))[0] for shift in (0.0, 1e5))
    np.testing.assert_allclose(near, far, atol=1e-9)


def test_only_one_matrix_is_allocated() -> None:
    X = np.random.default_rng(0).normal(size=(1500, 5))
    tracemalloc.start()
    K, _ = kernel_matrix(X, Kernel())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.3 * K.nbytes


def test_exact_precomputed_matrix_is_used_as_it_is(X: np.ndarray) -> None:
    K = kernel_matrix(X, Kernel())[0]
    assert kernel_matrix(K, Kernel("precomputed"))[0] is K


def test_rounding_in_a_precomputed_matrix_is_symmetrised(X: np.ndarray) -> None:
    K = kernel_matrix(X, Kernel())[0]
    K[3, 280] += 1e-13
    used = kernel_matrix(K, Kernel("precomputed"))[0]
    assert used is not K
    assert (used == used.T).all()


def test_callable_kernel(X: np.ndarray) -> None:
    K, gamma = kernel_matrix(X, Kernel(pairwise.linear_kernel))
    np.testing.assert_allclose(K, X @ X.T)
    assert gamma is None
    with pytest.raises(InputError, match=r"kernel function's result has shape \(300,\)"):
        kernel_matrix(X, Kernel(lambda A, B: A[:, 0]))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_not_finite_precomputed_matrix_is_refused(X: np.ndarray, value: float) -> None:
    K = kernel_matrix(X, Kernel())[0]
    K[2, 290] = K[290, 2] = value
    with pytest.raises(InputError, match="NaN or infinity"):
        kernel_matrix(K, Kernel("precomputed"))


def test_asymmetric_matrix_is_refused_and_the_place_named(X: np.ndarray) -> None:
    K = kernel_matrix(X, Kernel())[0]
    K[2, 290] = 3.0
    with pytest.raises(InputError, match=r"not symmetric: entry \(2, 290\) is 3"):
        kernel_matrix(K, Kernel("precomputed"))


def test_indefinite_kernels_warn_and_singular_ones_do_not() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 3))

    def psd(X: np.ndarray, kernel: Kernel) -> bool:
        return check_psd(kernel_matrix(X, kernel)[0], kernel)

    assert psd(A @ A.T, Kernel("precomputed"))
    assert psd(np.zeros((4, 4)), Kernel("precomputed"))
    assert psd(A, Kernel("poly", gamma=1.0, coef0=1.0))
    with pytest.warns(NotPSDWarning, match="not positive semidefinite"):
        assert not psd(A @ A.T - 0.1 * np.eye(60), Kernel("precomputed"))
    with pytest.warns(NotPSDWarning):
        assert not psd(A, Kernel("poly", gamma=1.0, degree=2, coef0=-1.0))
    with pytest.warns(NotPSDWarning):
        assert not psd(A, Kernel("sigmoid", gamma=1.0, coef0=-1.0))


def test_large_indefinite_matrix_is_tested_on_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_PSD_ROWS", 20)
    with pytest.warns(NotPSDWarning):
        assert not check_psd(-np.eye(50), Kernel("precomputed"))


@pytest.mark.parametrize("name", ["rbf", "poly", "linear"])
def test_overflow_is_an_input_error(name: str) -> None:
    X = np.array([[1e200, 0.0], [-1e200, 1.0], [0.0, 2.0]])
    with pytest.raises(InputError, match="overflow"):
        kernel_matrix(X, Kernel(name, gamma=1.0))


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2 * 10**9), ("1.5 GiB", 3 * 2**29), ("10", 10), (7.0, 7)]
)
def test_memory_sizes(text: str | float, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("bad", ["two", "-1GB", 0, -5, True, None, "1XB", float("nan"), "1.2.3MB"])
def test_bad_memory_sizes(bad: object) -> None:
    with pytest.raises(InputError, match="memory_limit"):
        parse_bytes(bad)  # type: ignore[arg-type]


def test_memory_limit_names_size_limit_and_alternative() -> None:
    with pytest.raises(MemoryLimitError, match=r"takes 80\.0 MB .* 32\.0 MB; .* 1000 rows") as info:
        check_memory(3162, "32MB") or check_memory(3163, "32MB")
    assert "nystroem" in str(info.value)


def test_available_memory_is_the_default_limit() -> None:
    assert (available_memory() or 1) > 0
    with pytest.raises(MemoryLimitError, match="memory available"):
        check_memory(10**7)
