"""Seeds are feasible, never change the answer, and save iterations; the methods built on them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from _oracle import compare, make_task, run
from _problems import BUILDERS, FloatArray, mixture, weighted
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.model_selection import KFold

import exactcv
from exactcv._core import _seeding
from exactcv._core.reference import seeding as reference_seeding
from exactcv.algorithms.alpha_seeding import Change, repair, shift
from exactcv.algorithms.alpha_seeding.chain import FROM_FULL, SEEDS, Chain
from exactcv.algorithms.alpha_seeding.free_rows import FreeRows
from exactcv.engine.kernel_rows import CachedRows, MatrixRows
from exactcv.engine.smo import Solution
from exactcv.exceptions import (
    InputError,
    MemoryLimitError,
    NotExactWarning,
    UnsupportedError,
)
from exactcv.problem.folds import make_folds
from exactcv.problem.kernels import Kernel
from exactcv.problem.losses import hinge

CHAINED = ("ato", "mir", "sir")


def feasible(c: FloatArray, lower: FloatArray, upper: FloatArray, sums: bool = True) -> bool:
    inside = (c >= lower).all() and (c <= upper).all()
    return bool(inside and (not sums or abs(c.sum()) <= 1e-13 * max(np.abs(c).sum(), 1e-300)))


boxes = st.integers(1, 25).flatmap(
    lambda n: st.tuples(
        arrays(float, n, elements=st.floats(-20, 20)),
        arrays(float, n, elements=st.floats(0, 10)),
        arrays(bool, n),
    )
)


@given(boxes, st.integers(0, 5))
def test_repair_is_feasible_whatever_it_is_given(box: Any, size: int) -> None:
    c, width, positive = box
    lower, upper = np.where(positive, 0.0, -width), np.where(positive, width, 0.0)
    group = np.arange(min(size, len(c)))
    seed = repair(c, lower, upper, lambda: group, lambda: np.arange(len(c)))
    assert (seed >= lower).all() and (seed <= upper).all()
    assert abs(seed.sum()) <= 1e-12 * max(np.abs(seed).sum(), width.max(), 1e-300)
    assert (repair(c, lower, upper, fit_intercept=False) == np.clip(c, lower, upper)).all()


def test_repair_leaves_a_feasible_point_alone() -> None:
    c = np.array([0.5, 0.25, -0.75])
    assert (repair(c, np.array([0, 0, -1.0]), np.array([1.0, 1, 0])) == c).all()


def test_repair_asks_the_preferred_rows_first() -> None:
    lower, upper = np.zeros(4), np.ones(4)
    lower[3], upper[3] = -1.0, 0.0
    given = np.array([0.2, 0.2, 0.2, -0.9])
    seed = repair(given, lower, upper, lambda: np.array([1]), lambda: np.arange(4))
    assert seed == pytest.approx([0.2, 0.5, 0.2, -0.9])


@given(boxes, st.floats(-30, 30))
def test_shift_equals_its_twin(box: Any, total: float) -> None:
    c, width, positive = box
    lower, upper = np.where(positive, 0.0, -width), np.where(positive, width, 0.0)
    c = np.clip(c, lower, upper)
    ours, twin = shift(c, lower, upper, total), reference_seeding.shift(c, lower, upper, total)
    assert ours == pytest.approx(twin, abs=1e-9)
    reached = min(max(total, lower.sum()), upper.sum())
    assert ours.sum() == pytest.approx(reached, abs=1e-9)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 1000))
def test_the_twin_matches_each_row_with_one_of_its_class(givers: int, takers: int, s: int) -> None:
    rng = np.random.default_rng(s)
    similarity = rng.normal(size=(givers, takers))
    give, take = rng.choice([-1.0, 1.0], givers), rng.choice([-1.0, 1.0], takers)
    partner = reference_seeding.match(similarity, give, take)
    used = partner[partner >= 0]
    assert len(set(used)) == len(used)
    assert (take[used] == give[partner >= 0]).all()
    for sign in (-1.0, 1.0):
        pairs = min(np.count_nonzero(give == sign), np.count_nonzero(take == sign))
        assert np.count_nonzero(take[used] == sign) == pairs


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(0, 8), st.integers(0, 8), st.booleans(), st.booleans())
def test_sir_equals_its_twin(s: int, out: int, into: int, sums: bool, cached: bool) -> None:
    """On any coefficients in their boxes, with rows of no weight, from a matrix and from rows."""
    rng = np.random.default_rng(s)
    n, X = 24, rng.normal(size=(24, 3))
    y = rng.choice([-1.0, 1.0], n)
    width = 2.0 * rng.choice([0.0, 1.0, 1.0, 1.5], n)
    lower, upper = np.where(y > 0, 0.0, -width), np.where(y > 0, width, 0.0)
    order = rng.permutation(n)
    removed, added = np.sort(order[:out]), np.sort(order[out : out + into])
    coef = np.clip(y * rng.choice([0.0, 0.7, 5.0], n), lower, upper)
    coef[added] = 0.0
    train = np.sort(order[out:])
    features = CachedRows(X, Kernel("rbf", gamma=0.3), "1MB")
    K = np.ascontiguousarray(features.block(np.arange(n), np.arange(n)))
    source = features if cached else MatrixRows(K)
    kernel = source.open(np.empty(0, dtype=np.intp))
    change = Change(
        source, kernel, coef, coef, 0.0, y, lower, upper, train, removed, added, fit_intercept=sums
    )
    seed = SEEDS["sir"](change)
    twin = reference_seeding.sir(K, coef, lower, upper, train, removed, added, sums)
    assert seed == pytest.approx(twin, abs=1e-12)
    assert feasible(seed, lower, upper, sums)
    assert change.evaluations <= out * into


@given(st.sets(st.integers(0, 20)), st.sets(st.integers(0, 20)))
def test_what_changes_between_two_training_sets(old: set[int], new: set[int]) -> None:
    sides = (np.array(sorted(rows), dtype=np.intp) for rows in (old, new))
    removed, added = _seeding.changed(*sides)
    assert list(removed) == sorted(old - new) and list(added) == sorted(new - old)


def change_of(problem: Any, out: Any, then: Any, C: float = 2.0, sums: bool = True) -> Change:
    """The step from leaving ``out`` out to leaving ``then`` out."""
    n = len(problem.y)
    loss, everyone = hinge(problem.y), np.arange(n)
    chain = Chain(MatrixRows(problem.K), loss, problem.weight, None, 1e-9, fit_intercept=sums)
    solved: Solution = chain.cold(np.setdiff1d(everyone, out), C).solution
    levels = loss.coefficient_levels(C * problem.weight)
    return Change(
        source=chain.source,
        kernel=chain.kernel,
        coef=solved.coef,
        errors=solved.errors,
        intercept=solved.intercept,
        target=problem.y,
        lower=levels[:, 1].copy(),
        upper=levels[:, 0].copy(),
        train=np.setdiff1d(everyone, then),
        removed=np.setdiff1d(then, out),
        added=np.setdiff1d(out, then),
        fit_intercept=sums,
    )


@pytest.mark.parametrize("sums", [True, False])
@pytest.mark.parametrize("scheme", SEEDS)
@pytest.mark.parametrize("name", BUILDERS)
def test_every_seed_is_feasible(name: str, scheme: str, sums: bool) -> None:
    problem = BUILDERS[name](48)
    steps = [(range(6), range(6, 12)), ([0], [1]), ([], [3]), (range(20), range(20, 24))]
    for out, then in steps:
        for C in (0.01, 2.0, 1e3):
            change = change_of(problem, np.array(out, int), np.array(then, int), C, sums)
            seed = SEEDS[scheme](change)
            assert feasible(seed, change.lower, change.upper, sums)
            assert not seed[then].any()


def test_sir_hands_over_to_the_most_similar_row_of_the_class() -> None:
    problem = mixture(60)
    change = change_of(problem, np.arange(12), np.arange(12, 24))
    seed = SEEDS["sir"](change)
    giver = next(r for r in change.leaving)
    same = change.added[problem.y[change.added] == problem.y[giver]]
    taker = same[np.argmax(problem.K[giver, same])]
    assert seed[taker] == change.coef[giver]
    assert (seed[change.shared] == change.coef[change.shared]).all()


@pytest.mark.parametrize("C", [0.5, 20.0])
def test_sir_as_printed(C: float) -> None:
    """Algorithm 3 in plain loops, on a kernel that is 0 for most pairs of rows."""
    problem = mixture(60)
    group = np.arange(60) % 5
    K = problem.K * (group[:, None] == group)
    problem = type(problem)(K, problem.y, np.ones(60))
    change = change_of(problem, np.arange(12), np.arange(12, 24), C)
    expected, left = change.coef.copy(), list(change.added)
    for r in change.removed:
        largest, taker = 0.0, -1
        for t in left:
            if problem.y[r] == problem.y[t] and K[r, t] > largest:
                largest, taker = K[r, t], t
        if taker != -1:
            left.remove(taker)
            expected[taker] = change.coef[r]
        expected[r] = 0.0
    lower, upper, T = change.lower, change.upper, change.added
    total = -float(np.delete(expected, T).sum())
    expected[T] = shift(expected[T], lower[T], upper[T], total)
    seed = SEEDS["sir"](change, match="printed")
    assert len(left) and seed == pytest.approx(expected, abs=1e-12 * C)


def test_sir_as_printed_where_no_rows_are_alike() -> None:
    """K is the identity: nobody takes an alpha, and every fold has as many steps to make up."""
    X, y = 1e3 * np.arange(80.0)[:, None], np.tile([1.0, -1.0], 40)
    found = {
        match: exactcv.cross_validate(
            X, y, Cs=[1.0], gamma=1.0, cv=4, method="sir", tol=1e-3, random_state=0,
            method_options={"match": match},
        )
        for match in ("nearest", "printed")
    }  # fmt: skip
    # 30 pairs of the first fold, 10 of each of the three that follow.
    assert found["nearest"].stats["iterations"][0] == 30
    assert found["printed"].stats["iterations"][0] == 60


def test_mir_is_the_least_squares_solution_where_that_is_feasible() -> None:
    """Two rows replaced by exact copies of themselves get exactly their coefficients."""
    problem = mixture(40, 20)
    twice = np.r_[np.arange(40), 3, 8]
    double = type(problem)(
        np.ascontiguousarray(problem.K[np.ix_(twice, twice)]), problem.y[twice], np.ones(42)
    )
    change = change_of(double, np.array([40, 41]), np.array([3, 8]))
    assert np.abs(change.coef[[3, 8]]).max() > 0
    assert SEEDS["mir"](change)[[40, 41]] == pytest.approx(change.coef[[3, 8]], abs=1e-5)


@pytest.mark.parametrize("sums", [True, False])
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_ato_ramps_to_the_optimum(C: float, sums: bool) -> None:
    """Its steps follow the solution path: when R is empty nothing is left for SMO to do."""
    problem = mixture(120)
    change = change_of(problem, np.arange(12), np.arange(12, 24), C, sums)
    chain = Chain(change.source, hinge(problem.y), np.ones(120), None, 1e-10, fit_intercept=sums)
    solved = chain.cold(change.train, C).solution
    assert np.abs(change.coef[change.removed]).sum() > C
    assert SEEDS["ato"](change) == pytest.approx(solved.coef, abs=1e-5 * max(C, 1.0))


def test_ato_leaves_the_rest_to_smo_when_its_steps_are_limited() -> None:
    X, y = exactcv.datasets.make_mixture(150, 5, random_state=1)
    grid = {"Cs": [20.0], "cv": 10, "method": "ato", "tol": 1e-3}
    counts, errors = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotExactWarning)
        for steps in (0, 5, None):
            found = exactcv.cross_validate(X, y, method_options={"max_steps": steps}, **grid)
            counts.append(int(found.stats["iterations"][0]))
            errors.append(int(found.n_errors[0]))
    assert counts[2] < 0.5 * min(counts[:2])
    assert len(set(errors)) == 1


def test_the_inverse_of_the_free_rows_is_kept_up_to_date() -> None:
    """Rows that come and go, some of them alike, leave the solution of the bordered system."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    X[20:] = X[:10]
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    for intercept in (True, False):
        here = list(range(5))
        free = FreeRows(np.array(here), K[:, here], 1.0, intercept)
        for _ in range(200):
            row = int(rng.integers(30))
            if row in here:
                free.remove(row)
                here.remove(row)
            elif free.add(row, K[:, row]):
                here.append(row)
            else:
                assert {(row + 20) % 40, row - 20} & set(here)  # a copy of one that is there
            if not here:
                continue
            q, total = K @ rng.normal(size=30), float(rng.normal())
            x, beta = free.follow(q, total)
            assert sorted(free.rows) == sorted(here)
            np.testing.assert_allclose(free.times(x), K[:, free.rows] @ x, atol=1e-12)
            np.testing.assert_allclose(
                (free.times(x) + beta + q)[here], 0.0, atol=1e-9 * np.abs(x).sum()
            )
            if intercept:
                assert x.sum() == pytest.approx(-total, abs=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
def test_rows_that_wait_are_made_of_the_free_ones(intercept: bool) -> None:
    """On a kernel of rank 3 most rows wait; when a free one goes, another takes its place."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 3))
    X[15:] = X[:5]
    K = X @ X.T
    top = float(K.diagonal().max())
    G = K + top * intercept
    free = FreeRows(np.arange(20), K, top, intercept)
    rank = free.size
    assert rank == 3 + intercept and len(free.waiting) == 20 - rank
    for _ in range(60):
        gone = int(rng.choice(free.rows))
        free.remove(gone)
        heirs = free.heirs(gone)
        parts = free.waiting[heirs[0]]
        assert all(abs(parts[gone]) >= abs(free.waiting[heir][gone]) for heir in heirs)
        assert free.add(heirs[0], K[:, heirs[0]])
        free.inherit(gone, heirs[0], parts)
        assert not free.add(gone, K[:, gone])  # waits from now on
        assert free.size == rank and len(free.waiting) == 20 - rank
        for row, made_of in free.waiting.items():
            assert set(made_of) <= set(free.rows.tolist())
            again = sum(x * G[:, k] for k, x in made_of.items())
            np.testing.assert_allclose(again, G[:, row], atol=1e-6 * top)


def test_mir_takes_the_printed_right_hand_side() -> None:
    """Delta f = b - f on rows at a bound is another problem, with the same answer after SMO."""
    X, y = exactcv.datasets.make_mixture(100, 4, random_state=3)
    found = [
        exactcv.cross_validate(
            X, y, Cs=[5.0], cv=5, method="mir", method_options={"delta_f": delta}
        )
        for delta in ("zero", "printed")
    ]
    assert found[0].stats["iterations"][0] != found[1].stats["iterations"][0]
    assert (found[0].wrong == found[1].wrong).all()
    assert all(one.certificate.exact for one in found)
    change = change_of(mixture(60), np.arange(6), np.arange(6, 12))
    old = np.concatenate([change.shared, change.removed])
    bound = np.setdiff1d(old, change.inside(change.coef, old))
    wanted = np.zeros(60)
    wanted[bound] = change.errors[bound] - change.intercept
    A = np.vstack([change.block(old, change.entering), np.ones(len(change.entering))])
    gone = change.coef[change.leaving]
    right = np.r_[wanted[old] + change.block(old, change.leaving) @ gone, gone.sum()]
    expected = np.clip(
        np.linalg.lstsq(A, right, rcond=None)[0],
        change.lower[change.entering],
        change.upper[change.entering],
    )
    lack = change.kept()[change.shared].sum() + expected.sum()
    expected = shift(
        expected, change.lower[change.entering], change.upper[change.entering],
        float(expected.sum() - lack),
    )  # fmt: skip
    seed = SEEDS["mir"](change, delta_f="printed")
    assert seed[change.entering] == pytest.approx(expected, abs=1e-4)


def test_avg_and_top_put_back_what_has_left() -> None:
    problem = mixture(60)
    change = change_of(problem, np.array([], int), np.array([5]), C=5.0)
    inside = change.inside(change.coef, change.shared)
    moved = SEEDS["avg"](change) - change.kept()
    assert moved.sum() == pytest.approx(change.coef[5])
    assert set(np.flatnonzero(moved)) <= set(inside)
    shares = moved[inside]
    assert np.ptp(shares[shares != 0]) < 1e-9 or len(inside) < len(change.shared)
    nearest = change.shared[np.argmax(problem.K[5, change.shared])]
    moved = SEEDS["top"](change) - change.kept()
    assert moved.sum() == pytest.approx(change.coef[5])
    assert moved[nearest] != 0


@pytest.mark.parametrize("scheme", SEEDS)
@pytest.mark.parametrize("name", ["mixture", "weighted", "duplicates", "unbalanced", "low_rank"])
def test_every_fold_equals_the_cold_start(name: str, scheme: str) -> None:
    small = BUILDERS[name](48)
    kinds: list[Any] = ["loo"]
    if scheme not in FROM_FULL:
        kinds.append(KFold(5, shuffle=True, random_state=0))
    for cv in kinds:
        for fit_intercept in (True, False):
            folds = make_folds(cv, np.zeros((len(small.y), 1)), small.y)
            task = make_task(small, [0.1, 5.0], folds, fit_intercept=fit_intercept)
            compare(run(task, scheme), run(task, "refit"), strictly=name != "low_rank")


@pytest.mark.parametrize("scheme", CHAINED)
def test_folds_of_any_kind_and_lambdas(scheme: str) -> None:
    """Overlapping and unequal folds, and a C that changes with the fold."""
    small = weighted(40)
    rows = np.arange(40)
    pairs = [(rows[9:], rows[:9]), (rows[3:], rows[:3]), (np.r_[0:20, 30:40], rows[20:30])]
    folds = make_folds(pairs, np.zeros((40, 1)), small.y)
    task = make_task(small, [0.3, 3.0], folds, lambdas=True)
    compare(run(task, scheme), run(task, "refit"), strictly=True)


@pytest.mark.parametrize("scheme", SEEDS)
def test_seeds_save_iterations_and_threads_change_nothing(scheme: str) -> None:
    small = mixture(120)
    folds = make_folds("loo" if scheme in FROM_FULL else 10, np.zeros((120, 1)), small.y)
    task = make_task(small, [1.0, 20.0], folds, tol=1e-3)
    one, two = run(task, scheme), run(task, scheme, n_threads=2)
    assert (one.ledger.decision == two.ledger.decision).all()
    assert (one.stats["iterations"] == two.stats["iterations"]).all()
    for l, C in enumerate(task.grid.Cs):
        chain = Chain(MatrixRows(small.K), hinge(small.y), small.weight, None, 1e-3, polish=False)
        for _ in chain.run(folds, np.full(len(folds), C)):
            pass
        assert 0 < one.stats["iterations"][l] < chain.counts.iterations
    assert one.stats["seeding_seconds"] > 0 and one.stats["not_converged"] == 0
    assert (one.stats["kernel_evaluations"] > 0).all()


@pytest.mark.parametrize("scheme", ["sir", "avg"])
def test_warm_C(scheme: str) -> None:
    X, y = exactcv.datasets.make_mixture(80, 5, random_state=1)
    cv = "loo" if scheme in FROM_FULL else 5
    given_grid = {"Cs": [8.0, 0.5, 2.0], "cv": cv, "output": "decision"}
    warm = exactcv.cross_validate(
        X, y, method=scheme, method_options={"warm_C": True}, **given_grid
    )
    exact = exactcv.cross_validate(X, y, **given_grid)
    assert warm.certificate.exact
    assert warm.decision == pytest.approx(exact.decision, abs=1e-6)
    assert (warm.wrong == exact.wrong).all()


def test_iteration_limit_is_told() -> None:
    X, y = exactcv.datasets.make_mixture(60, 5, random_state=1)
    with pytest.warns(NotExactWarning, match="6 solves have not converged .*max_iter"):
        result = exactcv.cross_validate(
            X, y, Cs=[50.0], cv=5, method="sir", method_options={"max_iter": 3}
        )
    assert not result.certificate.exact and result.stats["not_converged"] == 6
    assert result.certificate.not_converged == 6 and len(result.certificate.unresolved) == 6
    assert "6 not converged" in str(result.certificate)


def test_too_many_folds_and_folds_without_a_class_are_refused() -> None:
    X, y = exactcv.datasets.make_mixture(20, 2, random_state=0)
    one_class = [(np.flatnonzero(y > 0), np.flatnonzero(y < 0))]
    for method in CHAINED:
        with pytest.raises(InputError, match="between 2 and the number of rows, 20"):
            exactcv.cross_validate(X, y, Cs=[1.0], cv=21, method=method)
        with pytest.raises(InputError, match="fold 0 of cv has no row of class"):
            exactcv.cross_validate(X, y, Cs=[1.0], cv=one_class, method=method)


def test_warm_C_saves_iterations_on_a_fine_grid() -> None:
    X, y = exactcv.datasets.make_mixture(80, 5, random_state=1)
    counts = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotExactWarning)
        for warm in (False, True):
            result = exactcv.cross_validate(
                X, y, Cs=np.geomspace(0.5, 10, 30), cv=5, method="sir", tol=1e-3,
                method_options={"warm_C": warm},
            )  # fmt: skip
            counts.append(result.stats["iterations"].sum())
    assert counts[1] < 0.9 * counts[0]


def test_loose_tolerance_is_plain_smo() -> None:
    """At the papers' tolerance the violation is met; the certificate says whether the gap is."""
    X, y = exactcv.datasets.make_mixture(60, 5, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotExactWarning)
        result = exactcv.cross_validate(X, y, Cs=[5.0], cv=5, method="sir", tol=1e-3)
    assert 1e-8 < result.certificate.kkt[0] <= 1e-3


@pytest.mark.parametrize(
    ("method", "options", "what"),
    [
        ("sir", {"warm": True}, "no option 'warm'"),
        ("sir", {"warm_C": 1}, "warm_C"),
        ("mir", {"max_iter": 0}, "max_iter"),
        ("mir", {"max_steps": 3}, "no option 'max_steps'"),
        ("ato", {"max_steps": -1}, "max_steps"),
        ("mir", {"delta_f": "paper"}, "delta_f"),
        ("sir", {"match": "paper"}, "match"),
        ("exact", {"warm_C": True}, "no options"),
    ],
)
def test_bad_options(method: str, options: dict[str, Any], what: str) -> None:
    X, y = exactcv.datasets.make_mixture(20, 2, random_state=0)
    with pytest.raises((InputError, UnsupportedError), match=what):
        exactcv.cross_validate(X, y, Cs=[1.0], method=method, method_options=options)


def test_avg_and_top_are_for_leave_one_out() -> None:
    X, y = exactcv.datasets.make_mixture(20, 2, random_state=0)
    for method in FROM_FULL:
        with pytest.raises(UnsupportedError, match="folds"):
            exactcv.cross_validate(X, y, Cs=[1.0], cv=4, method=method)


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.sampled_from(CHAINED))
def test_without_a_kernel_matrix(seed: int, scheme: str) -> None:
    """The chain on a small cache of rows ends where it ends on the matrix."""
    X, y = exactcv.datasets.make_mixture(50, 3, random_state=seed)
    signs = np.where(y > 0, 1.0, -1.0)
    kernel = Kernel("rbf", gamma=0.2)
    cached = CachedRows(X, kernel, 5 * 8 * 50)
    K = np.ascontiguousarray(cached.block(np.arange(50), np.arange(50)))
    folds = make_folds(5, X, signs)
    found = []
    for source in (cached, MatrixRows(K)):
        chain = Chain(source, hinge(signs), np.ones(50), scheme, 1e-9)
        found.append([p.solution.coef for _, p in chain.run(folds, np.full(5, 3.0))])
    assert np.array(found[0]) == pytest.approx(np.array(found[1]), abs=1e-6)


@pytest.mark.parametrize("method", ["sir", "mir", "avg", "ato"])
def test_through_the_front_door_without_a_kernel_matrix(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the matrix does not fit into memory_limit, a cache of its rows does the work."""
    X, y = exactcv.datasets.make_mixture(200, 5, random_state=1)
    cv = "loo" if method in FROM_FULL else 5
    grid = {"Cs": [0.5, 5.0], "cv": cv, "gamma": 0.1, "output": "decision", "method": method}
    whole = exactcv.cross_validate(X, y, **grid)

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a kernel matrix was made")

    monkeypatch.setattr("exactcv.crossval.run.kernel_matrix", refuse)
    if method == "ato":
        with pytest.raises(MemoryLimitError, match=r"takes 320\.0 kB"):
            exactcv.cross_validate(X, y, memory_limit="100kB", **grid)
        return
    held = exactcv.cross_validate(X, y, memory_limit="100kB", **grid)
    assert held.certificate.exact
    np.testing.assert_allclose(held.decision, whole.decision, atol=1e-6)
    with pytest.raises(MemoryLimitError, match="gamma='median' needs all distances"):
        exactcv.cross_validate(X, y, memory_limit="100kB", **(grid | {"gamma": "median"}))
