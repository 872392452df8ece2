"""What the bounds claim, on thousands of random small problems, against what is then solved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from _oracle import Run, make_task, random_small, run

from exactcv import tolerances
from exactcv.engine.bounds import Span, reach
from exactcv.engine.leave_one_out import FullSolution, LeaveOneOut
from exactcv.engine.path import Tracker, full_path
from exactcv.ledger import PROVED, Ledger
from exactcv.problem import Task
from exactcv.smo import solve

N_PROBLEMS = 3000
# Chunks run side by side under pytest-xdist.
CHUNKS = 10


def random_task(seed: int) -> Task:
    rng = np.random.default_rng(seed)
    small = random_small(rng)
    C = 10.0 ** rng.uniform(-6, 4)
    if rng.random() < 0.3:  # balanced and a small C: every coefficient at its bound
        n = len(small.y)
        small = small._replace(y=np.where(np.arange(n) % 2, 1.0, -1.0), weight=np.ones(n))
        C = 10.0 ** rng.uniform(-6, -1)
    return make_task(small, C, fit_intercept=bool(rng.random() < 0.7))


def start(task: Task) -> tuple[LeaveOneOut, FullSolution]:
    """The engine, and the full-data solution from which it starts."""
    tracker, ledger = Tracker(task.problem, np.zeros(1, dtype=np.int32)), Ledger(task)
    point = next(full_path(task.problem, task.grid.Cs, tracker))
    if not ledger.full(0, point.coef, within=tolerances.POLISH * task.tol)[0]:
        point = tracker.polish(point)
        ledger.full(0, point.coef)
    engine = LeaveOneOut(task, ledger, tracker, Span.of(task.problem))
    return engine, engine._solution(0, point)


def beyond_reach(task: Task, full: FullSolution, values: np.ndarray) -> Iterator[str]:
    """Left-out values that are not within their bounds."""
    who = np.flatnonzero(full.coef)
    if not len(who):
        return
    span = Span.of(task.problem)
    bounds = reach(task.problem, span, full.state, full.levels, full.coef, full.u, who)
    slack = 1e-8 * np.maximum(1.0, np.abs(full.u).max())
    outside = (values[who] < bounds.low - slack) | (values[who] > bounds.high + slack)
    for j, low, high in zip(who[outside], bounds.low[outside], bounds.high[outside], strict=True):
        yield f"row {j}: {values[j]} is not in [{low}, {high}]"


def moved_out_of_play(
    task: Task, engine: LeaveOneOut, full: FullSolution, rng: np.random.Generator, counts: Counter
) -> Iterator[str]:
    """Rows out of play that change their coefficient, as the ordinary solver sees it."""
    problem, box = task.problem, task.grid.Cs[0] * task.problem.weight
    folds = np.flatnonzero(full.coef)
    for group, base in engine._groups(full, folds) if len(folds) else []:
        j = int(rng.choice(group))
        others = np.setdiff1d(np.arange(problem.n), [j])
        resting = np.setdiff1d(others, engine._in_play(base, group))
        counts["out of play"] += len(resting)
        solution = solve(
            problem.K, problem.loss, box, others, fit_intercept=problem.fit_intercept, tol=1e-10
        )
        moved = np.abs(solution.coef - base.coef)[resting] > 1e-6 * box[resting]
        for i in resting[moved]:
            yield f"row {i} is out of play but moves when row {j} is left out"


def false_labels(labels: Run, values: Run) -> Iterator[str]:
    decision = values.ledger.decision[0]
    clear = np.abs(np.abs(decision) - tolerances.TIE) > 5e-10
    differ = labels.ledger.wrong[0] != values.ledger.wrong[0]
    for j in np.flatnonzero(clear & differ):
        how = "proved" if labels.ledger.how[0, j] == PROVED else "solved"
        yield f"row {j}: the {how} label is false, the value is {decision[j]}"


def complaints(seed: int, counts: Counter) -> Iterator[str]:
    """All that is wrong with one problem; ``counts`` tells how often claims were put to the test."""
    task, rng = random_task(seed), np.random.default_rng(seed)
    values = run(task)
    decision = values.ledger.decision[0]
    if not values.exact:
        yield f"no certificate: {values.ledger.certificate()}"
    if seed % 10 == 0:
        apart = np.abs(decision - run(task, "refit").ledger.decision[0])
        if (apart > 1e-5 * np.maximum(1.0, np.abs(decision))).any():
            yield f"refit differs by {apart.max()}"
    engine, full = start(task)
    yield from beyond_reach(task, full, decision)
    if seed % 3 == 0:
        yield from moved_out_of_play(task, engine, full, rng, counts)
    labels = run(Task(task.problem, task.folds, task.grid, False, task.tol))
    yield from false_labels(labels, values)
    proved = int((labels.ledger.how[0] == PROVED).sum())
    none_at_a_knot = task.problem.fit_intercept and not len(full.members)
    counts["none at a knot" if none_at_a_knot else "some at a knot"] += 1
    counts["proved, none at a knot" if none_at_a_knot else "proved"] += proved
    counts["with a coefficient"] += int(np.count_nonzero(full.coef))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_nothing_claimed_is_false(chunk: int) -> None:
    """And the claims are not empty: labels are proved, and rows are kept out of play."""
    counts: Counter[str] = Counter()
    wrong = []
    for seed in range(chunk, N_PROBLEMS, CHUNKS):
        try:
            wrong += [f"problem {seed}: {text}" for text in complaints(seed, counts)]
        except Exception as error:
            wrong.append(f"problem {seed}: {error!r}")
    assert not wrong, "\n".join(wrong)
    assert counts["none at a knot"] >= 20 and counts["some at a knot"] >= 100
    assert counts["proved, none at a knot"] >= 100
    assert counts["proved"] >= 0.1 * counts["with a coefficient"]
    assert counts["out of play"] >= 100
