"""Labels that cannot change between two values of C."""

import numpy as np
import pytest

import exactcv
from exactcv._core._between import between as compiled
from exactcv._core.reference.between import between as twin
from exactcv.engine.path import Tracker, full_path
from exactcv.judge.certificate import judge_for
from exactcv.problem.losses import hinge
from exactcv.problem.problem import Problem


def _problem(intercept, seed=0, n=60):
    X, y = exactcv.datasets.make_mixture(n, 4, random_state=seed)
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    y = np.where(y > 0, 1.0, -1.0)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, n)
    weight[:20] = 0.0  # these are tested
    return Problem(K, y, weight, hinge(y), intercept)


def _solutions(problem, Cs):
    points = full_path(problem, Cs, Tracker(problem, np.zeros(1, dtype=np.int32)))
    coef = np.array([point.coef for point in points])
    h = coef @ problem.K
    b = judge_for(problem).intercepts(h, coef, Cs)
    return coef, h + b[:, None]


def _compiled(problem, Cs, coef, u, k, tests):
    n = len(tests)
    proved, line = np.empty(n, np.uint8), np.empty(n, np.uint8)
    kernel, square = problem.K[tests], problem.diagonal[tests]
    widest = square + 1.0 - 2.0 * kernel.min(axis=1)
    each, all_there = np.arange(n), np.full(n, -1)
    which = np.column_stack([np.full(n, k), np.full(n, k + 1), each, all_there])
    compiled(
        problem.K, problem.y, problem.weight, Cs, coef, u, Cs, coef, u, which, np.zeros(n), kernel,
        square, widest, u[k][tests].copy(), u[k + 1][tests].copy(), 1e-9, problem.fit_intercept,
        proved, line,
    )  # fmt: skip
    return proved, line, widest


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("count", "n"), [(13, 60), (40, 60), (13, 160)])
def test_compiled_as_its_twin(intercept, count, n):
    """With 160 rows more of them are free than one projection takes."""
    problem, tests = _problem(intercept, n=n), np.arange(20)
    Cs = np.geomspace(1e-2, 1e2, count)
    coef, u = _solutions(problem, Cs)
    total = 0
    for k in range(count - 1):
        proved, line, widest = _compiled(problem, Cs, coef, u, k, tests)
        for t in tests:
            ends = tuple((Cs[j], coef[j], u[j], u[j, t]) for j in (k, k + 1))
            expected = twin(
                problem.K, problem.y, problem.weight, ends, problem.K[t], 1.0, widest[t], 1e-9,
                intercept,
            )  # fmt: skip
            assert (bool(proved[t]), bool(line[t])) == expected
        total += int(proved.sum())
    assert 0 < total < 20 * (count - 1)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_proved_is_true(intercept, seed):
    """Labels at many values of C between two ends where they are proved to stay."""
    problem, tests = _problem(intercept, seed), np.arange(20)
    Cs = np.geomspace(1e-2, 1e2, 9)
    coef, u = _solutions(problem, Cs)
    proved_any = 0
    for k in range(8):
        proved, line, _ = _compiled(problem, Cs, coef, u, k, tests)
        _, inner = _solutions(problem, np.geomspace(Cs[k], Cs[k + 1], 30))
        stays = (inner[:, tests] > 0) == (u[k, tests] > 0)
        assert stays[:, proved.astype(bool)].all()
        if line[0]:
            part = np.geomspace(Cs[k], Cs[k + 1], 30) - Cs[k]
            on_it = u[k] + np.outer(part / (Cs[k + 1] - Cs[k]), u[k + 1] - u[k])
            assert np.abs(on_it - inner).max() < 1e-9 * max(1.0, np.abs(inner).max())
        proved_any += int(proved.sum())
    assert proved_any
