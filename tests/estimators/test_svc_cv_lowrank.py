"""``SVCCV(approx=...)`` keeps what the runs of ``cross_validate`` find, and can be saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _damage import DIGEST, sealed, with_header
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import LeaveOneGroupOut, ShuffleSplit

import exactcv
from exactcv.estimators import lowrank_curve as tuning
from exactcv.estimators import lowrank_pilot, lowrank_search
from exactcv.report.words import remarks

GAMMAS = [0.05, 0.2]
LAMBDAS = np.geomspace(0.1, 1e-3, 4)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    X, y = exactcv.datasets.make_mixture(150, 4, random_state=3)
    return X, np.where(y > 0, "yes", "no")


def model_of(approx: str = "nystroem", **changes: Any) -> exactcv.SVCCV:
    options = {"gamma": GAMMAS, "lambdas": LAMBDAS, "cv": 4, "n_components": 11, "random_state": 0}
    return exactcv.SVCCV(approx=approx, **(options | changes))


# ---- what is fitted ------------------------------------------------------------------------------


@pytest.mark.parametrize("approx", ["rff", "nystroem"])
@pytest.mark.parametrize("cv", [4, "loo"])
def test_every_gamma_is_a_run_of_cross_validate(data: Any, approx: str, cv: Any) -> None:
    X, y = data
    model = model_of(approx, cv=cv, store_cv_results=True).fit(X, y)
    runs = [
        exactcv.cross_validate(
            X, y, gamma=gamma, lambdas=LAMBDAS, cv=cv, approx=approx, n_components=11,
            random_state=0, output="decision",
        )
        for gamma in GAMMAS
    ]  # fmt: skip
    found = model.cv_results_
    for name in ("error", "se", "n_errors", "at_bound"):
        np.testing.assert_array_equal(found[name], np.concatenate([getattr(r, name) for r in runs]))
    np.testing.assert_allclose(found["decision"], np.concatenate([r.decision for r in runs]))
    assert found["param_gamma"].tolist() == np.repeat(GAMMAS, 4).tolist()
    best = min(runs, key=lambda r: (r.n_errors[r.best], r.Cs[r.best]))
    assert model.best_score_ == 1 - best.error[best.best] == 1 - found["error"].min()
    assert (model.C_, model.gamma_) == (best.Cs[best.best], best.gamma)
    assert model.best_index_ == runs.index(best) * 4 + best.best
    np.testing.assert_array_equal(model.weights_, best.weights[best.best])

    values = model.decision_function(X)
    by_hand = model.feature_map_.transform(X) @ model.weights_ + model.intercept_
    np.testing.assert_allclose(values, by_hand, atol=1e-12)
    assert model.predict(X).tolist() == np.where(values > 0, "yes", "no").tolist()
    assert model.classes_.tolist() == ["no", "yes"]
    assert f"approximate kernel ({approx}, 11 components)" in model.summary()


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A default grid that has to grow."""
    monkeypatch.setattr("exactcv.problem.grid.FEATURE_LAMBDAS", np.geomspace(0.1, 0.01, 3))


def grown_model(**changes: Any) -> exactcv.SVCCV:
    return model_of(lambdas=None, gamma=None, n_components=40, **changes)


def checkers(n: int = 160) -> tuple[np.ndarray, np.ndarray]:
    """A board of four by four fields: a small gamma or a small C sees nothing of it."""
    X = np.random.default_rng(0).uniform(0.0, 4.0, (n, 2))
    return X, X.astype(int).sum(axis=1) % 2


@pytest.mark.usefixtures("narrow")
def test_the_default_grid_grows_in_C_and_gamma() -> None:
    """As it would be with the grown grid from the start, point by point."""
    X, y = checkers()
    model = grown_model().fit(X, y)
    shown = model._overview()
    lambdas, gammas = shown.lambdas, shown.gammas
    assert "has grown by" in shown.grown and shown.grown in " ".join(model.summary().split())
    assert len(lambdas) > 3 and len(gammas) > 3
    np.testing.assert_allclose(gammas[1:] / gammas[:-1], 4.0)
    np.testing.assert_allclose(lambdas[:-1] / lambdas[1:], 10**0.5)
    same = model_of(lambdas=lambdas, gamma=list(gammas), n_components=40).fit(X, y)
    for name in ("param_C", "param_gamma", "error", "se", "n_errors"):
        np.testing.assert_allclose(model.cv_results_[name], same.cv_results_[name], rtol=1e-12)
    assert model.best_index_ == same.best_index_
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(X), atol=1e-6)
    assert not model.certificate_.unresolved
    end = model.best_index_ % len(lambdas)
    assert 0 < end < len(lambdas) - 1 or "as far as it goes" in shown.grown


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("weighted", [False, True])
def test_a_grown_grid_keeps_the_one_se_rule_and_values(weighted: bool) -> None:
    X, y = checkers()
    weight = np.random.default_rng(1).choice([0.0, 1.0, 2.0], len(y)) if weighted else None
    model = grown_model(select="1se", probability=True, store_cv_results=True)
    model.fit(X, y, sample_weight=weight)
    shown = model._overview()
    assert "has grown by" in shown.grown
    wrong = shown.left_out.truth != shown.left_out.predicted
    assert wrong.sum() == model.cv_results_["n_errors"][model.best_index_]
    # The model is that of the chosen point, and so are the left-out values.
    alone = model_of(
        lambdas=[model.lambda_], gamma=model.gamma_, n_components=40, store_cv_results=True
    ).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-6)
    mine = model.cv_results_["decision"][model.best_index_]
    np.testing.assert_allclose(mine, alone.cv_results_["decision"][0], atol=1e-6)


@pytest.mark.usefixtures("narrow")
def test_gammas_that_are_given_stay() -> None:
    X, y = checkers()
    model = model_of(lambdas=None, gamma=[0.01, 0.02], n_components=30).fit(X, y)
    assert model._overview().gammas.tolist() == [0.01, 0.02]
    linear = model_of(lambdas=None, gamma=None, kernel="linear", n_components=2).fit(X, y)
    assert len(linear._overview().gammas) == 1


def test_the_one_se_rule_takes_a_smaller_C(data: Any) -> None:
    X, y = data
    best, careful = model_of().fit(X, y), model_of(select="1se").fit(X, y)
    assert careful.gamma_ == best.gamma_
    assert careful.C_ < best.C_
    shown = careful._overview()
    assert shown.chosen == shown.one_se != shown.best
    wrong = shown.left_out.truth != shown.left_out.predicted
    assert wrong.sum() == careful.cv_results_["n_errors"][careful.best_index_]
    values = careful.feature_map_.transform(X) @ careful.weights_ + careful.intercept_
    np.testing.assert_allclose(careful.decision_function(X), values, atol=1e-12)


@pytest.mark.filterwarnings("ignore:the left-out decision values carry no information")
@pytest.mark.parametrize("cv", ["loo", 5])
@pytest.mark.parametrize("grid", [{"Cs": [0.1, 1.0], "lambdas": None}, {"lambdas": 3}])
def test_weights_count_as_in_the_exact_model(data: Any, cv: Any, grid: dict[str, Any]) -> None:
    """The exact engine on the kernel of the features; a row of weight 0 is as good as absent."""
    X, y = data
    weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], 150)
    common = {"cv": cv, "class_weight": "balanced", "gamma": 0.1, "random_state": None} | grid
    model = model_of("rff", **common, probability=True)
    # Without a random_state the folds are not shuffled, and the features are anyone's guess.
    model.fit(X, y, sample_weight=weight)
    Z = model.feature_map_.transform(X)
    exact = exactcv.SVCCV(kernel="linear", **(common | {"gamma": "median"}), probability=True)
    exact.fit(Z, y, sample_weight=weight)
    for name in ("param_C", "lambda", "error", "se", "n_errors"):
        np.testing.assert_allclose(model.cv_results_[name], exact.cv_results_[name], rtol=1e-9)
    assert model.best_index_ == exact.best_index_
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(Z), atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(Z), atol=1e-5)
    assert (model._overview().left_out.row == np.flatnonzero(weight)).all() or cv == 5


def test_the_kernel_is_complained_of_once(data: Any) -> None:
    X, y = data
    with pytest.warns(exactcv.NotPSDWarning) as said:
        model_of(kernel="sigmoid", gamma=0.5, n_components=60, probability=True).fit(X, y)
    assert len(said) == 1


def test_folds_and_features_are_drawn_once(data: Any) -> None:
    """With no random_state, or a generator of folds, every gamma still sees the same."""
    X, y = data
    model = model_of(gamma=[0.1, 0.1], cv=ShuffleSplit(3), random_state=None).fit(X, y)
    first, second = model.cv_results_["error"].reshape(2, -1)
    assert (first == second).all()
    rows = np.arange(150)
    pairs = ((np.setdiff1d(rows, rows[k::3]), rows[k::3]) for k in range(3))
    again = model_of(cv=pairs).fit(X, y)
    assert again._overview().n_folds == 3


def test_models_change_kind_when_they_are_fitted_again(data: Any) -> None:
    X, y = data
    model = model_of(probability=True).fit(X, y)
    model.set_params(approx=None, probability=False).fit(X, y)
    plain = model_of(approx=None).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    model.set_params(approx="nystroem").fit(X, y)
    assert not hasattr(model, "support_vectors_") and not hasattr(model, "_sigmoids")


def test_an_interrupt_leaves_the_finished_gammas(
    data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data
    once = model_of(gamma=GAMMAS[0]).fit(X, y)
    run, calls = tuning._run, []

    def cut(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return run(*arguments)

    monkeypatch.setattr(tuning, "_run", cut)
    model = model_of()
    with pytest.raises(exactcv.Interrupted, match="1 of 2 gammas done") as stop:
        model.fit(X, y)
    assert stop.value.partial is model
    np.testing.assert_array_equal(model.predict(X), once.predict(X))
    with pytest.raises(exactcv.Interrupted, match="before the first gamma"):
        model_of().fit(X, y)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scoring": "leave_pair_out_auc"}, "leaves out every pair|approx=None"),
        ({"scoring": "no such"}, "is not known"),
        ({"method": "refit"}, "does not go with method"),
        ({"approx": "rff", "kernel": "poly"}, "no random Fourier features"),
        ({"n_components": 151}, "more than the 150 rows"),
        ({"n_components": 0}, "at least 1"),
        ({"gamma": []}, "empty list"),
        ({"kernel": "linear"}, "has no gamma"),
        ({"random_state": "x"}, "random_state"),
        ({"cv": 1}, "number of folds"),
    ],
)
def test_bad_settings(data: Any, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(exactcv.ExactCVError, match=said):
        model_of(**changes).fit(*data)


def test_precomputed_kernels_and_one_class_are_refused(data: Any) -> None:
    X, y = data
    with pytest.raises(exactcv.ExactCVError, match="precomputed"):
        model_of(kernel="precomputed", gamma="median").fit(X @ X.T, y)
    with pytest.raises(exactcv.ExactCVError, match=r"one class only, .*0\.0\)?; a classifier"):
        model_of().fit(X, np.zeros(150))
    some = np.arange(150) % 3
    with pytest.raises(exactcv.ExactCVError, match=r"one class only, .* with positive weight"):
        model_of().fit(X, some, sample_weight=some == 1)
    two = model_of().fit(X, some, sample_weight=(some != 1).astype(float))
    assert two.classes_.tolist() == [0, 2]


def test_dask_collections(data: Any) -> None:
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    X, y = data
    weight = np.tile([1.0, 2.0, 0.5], 50)
    common = {"class_weight": "balanced", "probability": True}
    local = model_of(**common).fit(X, y, sample_weight=weight)
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(y=y, w=weight)
    for source in (
        [da.from_array(values, chunks=(60, *values.shape[1:])) for values in (X, y, weight)],
        [dd.from_pandas(frame, npartitions=3), "y", "w"],
    ):
        model = model_of(**common).fit(source[0], source[1], sample_weight=source[2])
        np.testing.assert_array_equal(model.cv_results_["error"], local.cv_results_["error"])
        np.testing.assert_allclose(model.predict_proba(X), local.predict_proba(X), atol=1e-8)


def test_files_and_memory_limits(data: Any, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    import pandas as pd
    from pyarrow import parquet

    X, y = data
    weight = np.tile([1.0, 2.0, 0.5], 50)
    columns = {name: X[:, k] for k, name in enumerate("abcd")} | {"y": y, "w": weight}
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    common = {"class_weight": "balanced", "memory_limit": "200MB"}
    from_file = model_of(**common).fit(tmp_path / "t.parquet", "y", sample_weight="w")
    in_memory = model_of(**common).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(from_file.cv_results_["error"], in_memory.cv_results_["error"])
    # Columns are found by name, wherever they stand.
    parquet.write_table(
        pyarrow.table(columns).select(["w", "d", "c", "b", "a"]), tmp_path / "new.parquet"
    )
    expected = in_memory.decision_function(X)
    for rows in (tmp_path / "t.parquet", str(tmp_path / "new.parquet"), pd.DataFrame(columns)):
        rows = rows if isinstance(rows, (str, Path)) else rows[list("abcd")]
        np.testing.assert_allclose(from_file.decision_function(rows), expected, atol=1e-8)
    saved = exactcv.load_model(exactcv.save_model(from_file, tmp_path / "m"))
    assert (saved.predict(tmp_path / "new.parquet") == in_memory.predict(X)).all()
    parquet.write_table(pyarrow.table({"b": X[:, 1]}), tmp_path / "b.parquet")
    with pytest.raises(exactcv.InputError, match="has no column 'a'"):
        from_file.predict(tmp_path / "b.parquet")
    with pytest.raises(exactcv.InputError, match="has 1 columns, but the model was fitted to 4"):
        in_memory.predict(tmp_path / "b.parquet")
    with pytest.raises(exactcv.InputTypeError, match=r"X is a path.*approx='rff'"):
        exactcv.SVCCV(Cs=[1.0]).fit(X, y).predict(tmp_path / "t.parquet")
    with pytest.raises(exactcv.InputTypeError, match=r"X is a path.*approx='rff'"):
        exactcv.SVCCV(Cs=[1.0]).fit(tmp_path / "t.parquet", "y")
    with pytest.raises(exactcv.MemoryLimitError, match=r"the memory limit is 100\.0 kB"):
        exactcv.SVCCV(memory_limit="100kB").fit(X, y)


def test_groups_and_weights_by_name(data: Any, tmp_path: Path) -> None:
    import pandas as pd

    X, y = data
    weight, groups = np.tile([1.0, 2.0, 0.5], 50), np.array(list("pqrst"))[np.arange(150) % 5]
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, w=weight, g=groups)
    frame.to_parquet(tmp_path / "t.parquet")
    options = {"cv": LeaveOneGroupOut(), "class_weight": "balanced"}
    model = model_of(**options).fit(tmp_path / "t.parquet", "y", sample_weight="w", groups="g")
    local = model_of(**options).fit(X, y, sample_weight=weight, groups=groups)
    np.testing.assert_allclose(model.cv_results_["error"], local.cv_results_["error"])
    assert model.feature_names_in_.tolist() == list("abcd")


@pytest.mark.filterwarnings("ignore:the left-out decision values carry no information")
@pytest.mark.parametrize("cv", [3, "loo", ShuffleSplit(2, random_state=0), "pairs"])
def test_rows_of_weight_zero_are_absent_wherever_rows_come_from(
    data: Any, cv: Any, tmp_path: Path
) -> None:
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    X, y = data
    weight = np.ones(150)
    weight[:70:2] = weight[90:] = 0.0  # some of each part, and all of the last
    used = np.flatnonzero(weight)
    if cv == "pairs":
        cv = [(np.arange(40, 150), np.arange(40)), (np.arange(40), np.arange(40, 150))]
    model = model_of(gamma="median", cv=cv, probability=True, store_cv_results=True)
    local = clone(model).fit(X, y, sample_weight=weight)
    if isinstance(cv, (int, str)):
        absent = clone(model).fit(X[used], y[used])
        np.testing.assert_array_equal(local.cv_results_["error"], absent.cv_results_["error"])
        np.testing.assert_allclose(local.decision_function(X), absent.decision_function(X))
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(y=y, w=weight)
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=30)
    for source in (
        [da.from_array(values, chunks=(30, *values.shape[1:])) for values in (X, y, weight)],
        [dd.from_pandas(frame, npartitions=5), "y", "w"],
        [tmp_path / "t.parquet", "y", "w"],
        [da.from_array(X, chunks=(30, 4)).map_blocks(sparse.coo_array), y, weight],
        [sparse.csr_array(X), y, weight],
    ):
        found = clone(model).fit(source[0], source[1], sample_weight=source[2])
        for name in ("error", "n_errors", "se", "lambda", "at_bound"):
            np.testing.assert_allclose(found.cv_results_[name], local.cv_results_[name])
        np.testing.assert_allclose(
            found.cv_results_["decision"], local.cv_results_["decision"], atol=1e-8
        )
        rows = frame[list("abcd")] if hasattr(found, "feature_names_in_") else X
        np.testing.assert_allclose(found.predict_proba(rows), local.predict_proba(X), atol=1e-7)
        assert (found._overview().left_out.row == local._overview().left_out.row).all()


# ---- model files ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> tuple[np.ndarray, np.ndarray]:
    return exactcv.datasets.make_mixture(40, 3, random_state=0)


@pytest.mark.parametrize("approx", ["rff", "nystroem"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", ["laplacian", "rbf", "poly"])
def test_round_trip_bit_for_bit(
    small: Any, tmp_path: Path, approx: str, form: Callable[[np.ndarray], Any], kernel: str
) -> None:
    if (approx, kernel) == ("rff", "poly"):
        pytest.skip("it has no random features")
    X, y = form(small[0]), small[1]
    model = model_of(approx, kernel=kernel, n_components=7, probability=True).fit(X, y)
    again = exactcv.load_model(exactcv.save_model(model, tmp_path / "m"))
    for name in ("predict", "decision_function", "predict_proba"):
        np.testing.assert_array_equal(getattr(again, name)(X), getattr(model, name)(X))
    assert sparse.issparse(X) or again.predict(sparse.csr_matrix(X)).shape == (40,)
    assert again.cv_results_["params"] == model.cv_results_["params"]
    lines = [line for line in model.summary().splitlines() if not line.startswith("time:")]
    assert again.summary().splitlines() == lines
    same = exactcv.save_model(again, tmp_path / "n")
    assert same.read_bytes() == (tmp_path / "m").read_bytes()


@pytest.fixture(scope="module", params=["rff", "nystroem"])
def content(request: Any, small: Any, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "model.exactcv"
    return exactcv.save_model(
        model_of(request.param, n_components=5).fit(*small), path
    ).read_bytes()


def load(path: Path, data: bytes) -> Any:
    path.write_bytes(data)
    return exactcv.load_model(path)


def test_cut_files_are_refused(content: bytes, tmp_path: Path) -> None:
    for size in [*range(0, len(content), 499), len(content) - 1]:
        with pytest.raises(exactcv.FileError):
            load(tmp_path / "m", content[:size])


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_forged_files_load_or_are_refused(
    content: bytes, tmp_path: Path, draw: st.DataObject
) -> None:
    body = bytearray(content[:-DIGEST])
    for _ in range(draw.draw(st.integers(1, 4))):
        body[draw.draw(st.integers(0, len(body) - 1))] = draw.draw(st.integers(0, 255))
    try:
        model = load(tmp_path / "m", sealed(bytes(body)))
    except exactcv.FileError:
        return
    assert model.predict(np.zeros((2, 3))).shape == (2,)


def part(tree: dict[str, Any], *names: str) -> list[Any]:
    """The [key, value] that the header keeps under these names."""
    for name in names:
        found = next(pair for pair in tree["dict"] if pair[0] == name)
        tree = found[1]
    return found


@pytest.mark.parametrize(
    ("names", "value"),
    [
        (("feature_map", "kind"), "magic"),
        (("feature_map", "kind"), None),
        (("weights",), [1.0, 2.0]),
        (("intercept",), None),
        (("scalars", "gamma_"), 7.0),
        (("scalars", "n_features_in_"), 4),
        (("params", "kernel"), "linear"),
        (("classes", "values"), [1.0]),
        (("version",), 1),
        (("version",), 3),
    ],
)
def test_parts_that_do_not_fit_are_refused(
    content: bytes, tmp_path: Path, names: tuple[str, ...], value: Any
) -> None:
    def change(header: dict[str, Any]) -> None:
        part(header["tree"], *names)[1] = value

    with pytest.raises(exactcv.FileError):
        load(tmp_path / "m", with_header(change, content))


# ---- where the default grid of very many rows begins ---------------------------------------------


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples of 80 rows, from 160 on, and few tests are many."""
    monkeypatch.setattr(lowrank_search, "MANY_TESTS", 200)
    monkeypatch.setattr(lowrank_pilot, "PILOT_ROWS", 80)
    monkeypatch.setattr(lowrank_pilot, "WORTH", 2)


@pytest.mark.usefixtures("eager")
def test_a_sample_says_where_the_default_grid_begins() -> None:
    X, y = checkers(240)
    model = grown_model(cv=5).fit(X, y)
    shown = model._overview()
    assert "the choice of a sample of 80 rows" in shown.grown
    assert "the choice of a sample" in " ".join(model.summary().split())
    same = model_of(lambdas=shown.lambdas, gamma=list(shown.gammas), n_components=40, cv=5)
    same.fit(X, y)
    np.testing.assert_array_equal(model.cv_results_["n_errors"], same.cv_results_["n_errors"])
    assert len(shown.gammas) >= 3 and len(shown.lambdas) >= 5
    # Grids that are given, folds of groups and few rows need no sample.
    for rows, settled in ((240, {"gamma": 0.5}), (100, {})):
        other = grown_model(cv=5).set_params(**settled).fit(X[:rows], y[:rows])
        assert "sample" not in other._overview().grown


@pytest.mark.usefixtures("eager")
def test_a_level_edge_is_said_in_place_of_a_warning() -> None:
    """Labels by lot: every point is as good as any other, but for chance."""
    level = 0
    for seed in range(1, 4):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
        model = grown_model(cv=5).set_params(n_components=20).fit(X, y)
        shown = model._overview()
        (g, l), (n_gammas, n_Cs) = shown.best, shown.error.shape
        kinds = {remark.kind for remark in remarks(shown)} & {"edge_C", "edge_gamma"}
        assert shown.level_edge == ("by no more than chance" in shown.grown)
        if shown.level_edge:
            assert not kinds and (l in (0, n_Cs - 1) or g in (0, n_gammas - 1))
            level += 1
    assert level
