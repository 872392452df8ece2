"""BLAS on one thread while fits run, side by side too, and the user's setting afterwards."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.svm import SVC
from threadpoolctl import ThreadpoolController, threadpool_limits

import exactcv
from exactcv.runtime import threads as module
from exactcv.runtime.threads import SingleThreadedBlas, Workers

SECONDS = 60.0  # for threads that wait for each other: longer means that a test has failed
USERS = 2  # the number of threads that the user has set
Settings = Callable[[], set[int]]


@pytest.fixture
def settings() -> Iterator[Settings]:
    """What the BLAS libraries are set to; the user has set them to ``USERS``."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    assert libraries
    with threadpool_limits(limits=USERS, user_api="blas"):
        yield lambda: {one.get_num_threads() for one in libraries}


def in_threads(*works: Callable[[], Any]) -> list[Any]:
    """All of them at once, each in a thread of its own."""
    with ThreadPoolExecutor(len(works)) as pool:
        return [one.result(SECONDS) for one in [pool.submit(work) for work in works]]


class FakeController:
    """A library as threadpoolctl shows it: one number for the process, or one for each thread."""

    def __init__(self, number: int, of_each_thread: bool = False):
        self.number, self.of_each_thread = number, of_each_thread
        self.own = threading.local()
        self.interrupts = 0

    def get_num_threads(self) -> int:
        return getattr(self.own, "number", self.number) if self.of_each_thread else self.number

    def set_num_threads(self, number: int) -> None:
        if self.of_each_thread:
            self.own.number = number
        else:
            self.number = number
        if self.interrupts:
            self.interrupts -= 1
            raise KeyboardInterrupt


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeController]:
    """Puts a library of our own in the place of those of the process."""

    def put(number: int, **options: Any) -> FakeController:
        controller, blas = FakeController(number, **options), module._Blas()
        monkeypatch.setattr(blas, "_libraries", [module._Library(controller)])
        monkeypatch.setattr(module, "_BLAS", blas)
        return controller

    return put


# ---- contexts ------------------------------------------------------------------------------------


def test_the_last_to_leave_restores(settings: Settings) -> None:
    first, second = SingleThreadedBlas(), SingleThreadedBlas()
    assert settings() == {USERS}
    first.__enter__()
    assert settings() == {1}
    second.__enter__()
    first.__exit__()
    assert settings() == {1}
    second.__exit__()
    assert settings() == {USERS}


def test_one_inside_the_other(settings: Settings) -> None:
    with SingleThreadedBlas(), Workers(2) as workers:
        with SingleThreadedBlas():
            assert workers.map(lambda _: settings(), range(3)) == [{1}] * 3
        assert settings() == {1}
    assert settings() == {USERS}


def test_first_and_last_may_be_different_threads(settings: Settings) -> None:
    """Of which neither is the one that set the user's number: threadpoolctl would do nothing."""
    both_in, first_out, seen = threading.Barrier(2), threading.Event(), []

    def first() -> None:
        with SingleThreadedBlas():
            both_in.wait(SECONDS)
        first_out.set()

    def second() -> None:
        with SingleThreadedBlas():
            both_in.wait(SECONDS)
            assert first_out.wait(SECONDS)
            seen.append(settings())

    in_threads(first, second)
    assert seen == [{1}]
    assert settings() == {USERS}


def test_an_error_in_one_does_not_lift_it_for_the_other(settings: Settings) -> None:
    both_in, failed, seen = threading.Barrier(2), threading.Event(), []

    def fails() -> None:
        with pytest.raises(RuntimeError, match="no luck"), Workers(1) as workers:
            workers.run(fail)
        failed.set()

    def fail() -> None:
        both_in.wait(SECONDS)
        raise RuntimeError("no luck")

    def goes_on() -> None:
        with Workers(1) as workers:
            both_in.wait(SECONDS)
            assert failed.wait(SECONDS)
            seen.append(workers.run(settings))

    in_threads(fails, goes_on)
    assert seen == [{1}]
    assert settings() == {USERS}


@pytest.mark.parametrize("comes_later", [False, True])
def test_what_the_user_sets_meanwhile_stays(settings: Settings, comes_later: bool) -> None:
    with SingleThreadedBlas():
        threadpool_limits(limits=USERS + 1, user_api="blas")
        assert settings() == {USERS + 1}
        if comes_later:
            with SingleThreadedBlas():
                assert settings() == {1}
            assert settings() == {1}
    assert settings() == {USERS + 1}


def test_the_users_own_context_may_end_first(settings: Settings) -> None:
    ours = SingleThreadedBlas()
    with threadpool_limits(limits=USERS + 1, user_api="blas"):
        ours.__enter__()
    ours.__exit__()
    assert settings() == {USERS}


def test_nothing_is_set_where_it_is_one(fake: Callable[..., FakeController]) -> None:
    controller = fake(1)
    controller.interrupts = 1  # the first to set it would be told so
    with SingleThreadedBlas():
        assert controller.number == 1


# ---- libraries with a setting for each thread ----------------------------------------------------


def test_each_thread_has_its_own_back(fake: Callable[..., FakeController]) -> None:
    controller = fake(4, of_each_thread=True)
    limited, left = threading.Barrier(2), threading.Event()

    def short() -> tuple[int, int]:
        controller.set_num_threads(3)
        with SingleThreadedBlas():
            limited.wait(SECONDS)
            inside = controller.get_num_threads()
        left.set()
        return inside, controller.get_num_threads()  # the other is still inside

    def long() -> tuple[int, int]:
        with SingleThreadedBlas(), SingleThreadedBlas():
            limited.wait(SECONDS)
            assert left.wait(SECONDS)
            inside = controller.get_num_threads()
        return inside, controller.get_num_threads()

    assert in_threads(short, long) == [(1, 3), (1, 4)]
    assert controller.get_num_threads() == 4


@pytest.mark.parametrize("of_each_thread", [False, True])
def test_every_worker_is_limited(fake: Callable[..., FakeController], of_each_thread: bool) -> None:
    controller = fake(4, of_each_thread=of_each_thread)
    with Workers(2) as workers:
        assert controller.get_num_threads() == 1
        assert workers.map(lambda _: controller.get_num_threads(), range(4)) == [1] * 4
    assert controller.get_num_threads() == 4


# ---- Ctrl-C --------------------------------------------------------------------------------------


def test_an_interrupt_while_it_is_set(fake: Callable[..., FakeController]) -> None:
    controller = fake(4)
    controller.interrupts = 1
    with pytest.raises(KeyboardInterrupt), SingleThreadedBlas():
        pytest.fail("the context was not to begin")
    assert controller.number == 4
    with SingleThreadedBlas():
        assert controller.number == 1
    assert controller.number == 4


def test_an_interrupt_while_it_is_restored(fake: Callable[..., FakeController]) -> None:
    controller = fake(4)
    with pytest.raises(KeyboardInterrupt), SingleThreadedBlas():
        controller.interrupts = 1
    assert controller.number == 4
    assert not module._BLAS._by_all.before


def test_an_interrupt_while_workers_work(settings: Settings) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Workers(2) as workers:
        workers.map(interrupt, range(2))
    assert settings() == {USERS}


def test_a_context_that_never_left_is_forgotten(settings: Settings) -> None:
    SingleThreadedBlas().__enter__()
    gc.collect()
    with SingleThreadedBlas():
        assert settings() == {1}
    assert settings() == {USERS}


# ---- fits ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    """Enough of them for BLAS to use several threads if it may."""
    return exactcv.datasets.load_breast_cancer()


def _search(X: np.ndarray, y: np.ndarray) -> list[Any]:
    model = exactcv.SVCCV(Cs=[0.1, 1.0, 10.0], store_cv_results=True, n_jobs=2).fit(X, y)
    results = model.cv_results_
    return [model.dual_coef_, model.intercept_, results["decision"], results["kkt"]]


def _approximate(X: np.ndarray, y: np.ndarray) -> list[Any]:
    options = {"approx": "nystroem", "n_components": 100, "random_state": 0, "cv": 5}
    model = exactcv.SVCCV(Cs=[0.1, 1.0], probability=True, **options).fit(X, y)
    return [model.weights_, model.intercept_, model.cv_results_["kkt"], model.predict_proba(X[:9])]


def _drop_in(X: np.ndarray, y: np.ndarray) -> list[Any]:
    search = exactcv.GridSearchCV(SVC(gamma=0.02), {"C": [0.1, 1.0, 10.0]}, cv=5).fit(X, y)
    return [search.cv_results_["mean_test_score"], search.best_estimator_.dual_coef_]


def _smooth(X: np.ndarray, y: np.ndarray) -> list[Any]:
    model = exactcv.SmoothSVC(kernel="rbf", C=10.0).fit(X, y)
    return [model.dual_coef_, model.intercept_, model.gradient_norm_]


def test_fits_side_by_side_give_the_same_bits(
    rows: tuple[np.ndarray, np.ndarray], settings: Settings
) -> None:
    fits = [_search, _smooth, _drop_in, _approximate, _search, _smooth]
    serial = [fit(*rows) for fit in fits]
    assert settings() == {USERS}
    with ThreadPoolExecutor(4) as pool:
        concurrent = list(pool.map(lambda fit: fit(*rows), fits))
    assert settings() == {USERS}
    for one, other in zip(serial, concurrent, strict=True):
        for mine, yours in zip(one, other, strict=True):
            np.testing.assert_array_equal(mine, yours)


def test_the_end_of_one_fit_does_not_lift_the_limit_of_another(
    small: tuple[np.ndarray, np.ndarray], settings: Settings
) -> None:
    both_in, first_done, seen = threading.Barrier(2), threading.Event(), []

    def linear(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return A @ B.T

    def short_kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        both_in.wait(SECONDS)
        return linear(A, B)

    def long_kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        both_in.wait(SECONDS)
        assert first_done.wait(SECONDS)
        seen.append(settings())
        return linear(A, B)

    def short() -> None:
        exactcv.cross_validate(*small, Cs=[1.0], kernel=short_kernel)
        first_done.set()

    in_threads(short, lambda: exactcv.cross_validate(*small, Cs=[1.0], kernel=long_kernel))
    assert seen == [{1}]
    assert settings() == {USERS}


def test_nothing_else_sets_the_threads_of_blas() -> None:
    package = Path(exactcv.__file__).parent
    users = [path for path in package.rglob("*.py") if "threadpoolctl" in path.read_text("utf-8")]
    assert [path.relative_to(package).as_posix() for path in users] == ["runtime/threads.py"]


def test_a_pool_runs_no_more_at_a_time_than_it_is_told() -> None:
    lock, here, most = threading.Lock(), [0], []

    def work(k: int) -> int:
        with lock:
            here[0] += 1
            most.append(here[0])
        threading.Event().wait(0.01)
        with lock:
            here[0] -= 1
        return k

    with Workers(4) as workers:
        assert workers.map(work, range(12), 2) == list(range(12))
        assert max(most) <= 2
        most.clear()
        workers.map(work, range(12))
    assert max(most) > 2
