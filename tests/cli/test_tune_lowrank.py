"""``exactcv tune --approx``, asked for or chosen because the kernel matrix would not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _command_line import QUICK, RESULTS, Cut, columns_of, read, results, rows, run, write_csv
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.model_selection import LeaveOneGroupOut, StratifiedGroupKFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

import exactcv
from exactcv.cli.approximation import choose_kernel
from exactcv.cli.settings import TuneSettings
from exactcv.storage.run_folder import CurveFiles

SMALL = "20kB"  # the kernel matrix of 36 rows takes 10 kB, and the whole run three times that


@pytest.fixture
def table(tmp_path: Path) -> Path:
    more = {"g": np.arange(36) % 5, "w": np.tile([0, 1, 2], 12)}
    return write_csv(tmp_path / "data.csv", columns_of() | more)


def tune(table: Path, *more: object) -> int:
    columns = [word for name in "gw" if name not in more for word in ("--drop", name)]
    return run("tune", table, "--target", "y", *columns, *QUICK, *more)


# ---- asked for -----------------------------------------------------------------------------------


def test_the_squared_loss(table: Path, tmp_path: Path) -> None:
    out, more = tmp_path / "out", ("--loss", "squared", "--approx", "nystroem")
    assert tune(table, *more, "--components", "9", "--probability", "--out", out) == 0
    saved = exactcv.load_model(out)
    X, y = rows()
    X = StandardScaler().fit_transform(X)
    model = clone(saved.estimator).set_params(Cs=[saved.estimator.C_], gamma=saved.estimator.gamma_)
    model.fit(X, y)
    values = model.decision_function(X)
    np.testing.assert_allclose(saved.decision_function(table), values, rtol=0, atol=1e-7)
    assert json.loads((out / "run.json").read_text())["result"]["exact"]
    conflict = TuneSettings(target="y", loss="logistic").approx_conflict("nystroem")
    assert conflict == "--loss logistic (it has the hinge loss and the squared one)"


@pytest.mark.parametrize("approx", ["rff", "nystroem"])
def test_tune_writes_what_svccv_finds(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], approx: str
) -> None:
    out = tmp_path / "out"
    options = ("--approx", approx, "--components", "9", "--probability", "--out", out)
    assert tune(table, *options) == 0
    printed = capsys.readouterr().out
    assert f"approximate kernel ({approx}, 9 components), as asked for" in printed
    assert "--approx none takes the exact one" in printed
    assert {path.name for path in out.iterdir()} == RESULTS

    X, y = rows()
    X = StandardScaler().fit_transform(X)
    middle = exactcv.SVCCV(Cs=[1.0]).fit(X, y).gamma_
    model = exactcv.SVCCV(
        Cs=[0.1, 1.0, 10.0], gamma=[0.25 * middle, middle], store_cv_results=True, random_state=0,
        approx=approx, n_components=9, probability=True,
    ).fit(X, y)  # fmt: skip
    saved = exactcv.load_model(out)
    assert (saved.estimator.C_, saved.estimator.n_components) == (model.C_, 9)
    np.testing.assert_allclose(
        saved.decision_function(table), model.decision_function(X), atol=1e-8
    )
    found = read(out / "cv.csv")
    assert [int(row["n_errors"]) for row in found] == model.cv_results_["n_errors"].tolist()
    left_out = read(out / "predictions.csv")
    values = [float(row["decision for class 1"]) for row in left_out]
    expected = model.cv_results_["decision"][model.best_index_]
    np.testing.assert_allclose(values, expected, atol=1e-7)
    assert sum(row["wrong"] == "1" for row in left_out) == round(36 * (1 - model.best_score_))

    result = json.loads((out / "run.json").read_text())["result"]
    assert result["approximate_kernel"] == f"{approx}, 9 components" and result["exact"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count(f"approximate kernel ({approx}, 9 components)") >= 3
    assert f"--approx {approx} --components 9" in page

    assert (
        run("predict", out, table, "--out", tmp_path / "p.csv", "--drop", "g", "--drop", "w") == 0
    )
    predicted = read(tmp_path / "p.csv")
    assert [row["predicted"] for row in predicted] == [f"class {k}" for k in model.predict(X)]
    shares = [float(row["probability of class 1"]) for row in predicted]
    np.testing.assert_allclose(shares, saved.predict_proba(table)[:, 1])


@pytest.mark.parametrize(
    ("options", "cv", "seed"),
    [
        (["--cv", "4"], StratifiedKFold(4), 0),
        (["--cv", "4", "--seed", "3"], StratifiedKFold(4, shuffle=True, random_state=3), 3),
        (["--groups", "g"], LeaveOneGroupOut(), 0),
        (
            ["--groups", "g", "--cv", "2", "--seed", "5"],
            StratifiedGroupKFold(2, shuffle=True, random_state=5),
            5,
        ),
    ],
)
def test_folds_weights_and_classes(
    table: Path, tmp_path: Path, options: list[str], cv: Any, seed: int
) -> None:
    out = tmp_path / "out"
    weighted = ("--weight", "w", "--class-weight", "balanced", "--gamma", "0.1")
    quick = ("--target", "y", "--Cs", "0.1,1,10", "--n-jobs", "1", "--out", out)
    options = options if "g" in options else [*options, "--drop", "g"]
    approx = ("--approx", "nystroem", "--components", "7")
    assert run("tune", table, *quick, *options, *weighted, *approx) == 0
    _, y = rows()
    weight, groups = np.tile([0.0, 1.0, 2.0], 12), np.arange(36) % 5
    saved = exactcv.load_model(out)
    model = exactcv.SVCCV(
        Cs=[0.1, 1.0, 10.0], gamma=0.1, cv=cv, random_state=seed, class_weight="balanced",
        approx="nystroem", n_components=7,
    )  # fmt: skip
    given = {"groups": groups} if "g" in options and "--groups" in options else {}
    model.fit(saved.prepare(table), y, sample_weight=weight, **given)
    found = read(out / "cv.csv")
    np.testing.assert_allclose([float(r["error"]) for r in found], model.cv_results_["error"])
    assert {int(r["row"]) % 3 for r in read(out / "predictions.csv")} == {0, 2}  # weight 0: 1


def test_svmlight_files_stay_sparse(tmp_path: Path) -> None:
    X, y = rows(60)
    out, file = tmp_path / "out", tmp_path / "d.svm"
    dump_svmlight_file(np.where(np.abs(X) > 0.3, X, 0), y, str(file), zero_based=False)
    options = ("--target", "target", "--approx", "nystroem", "--components", "8", *QUICK)
    assert run("tune", file, *options, "--out", out) == 0
    model = exactcv.load_model(out)
    assert model.estimator.feature_map_.landmarks.format == "csr"
    assert run("predict", out, file, "--out", tmp_path / "p.csv") == 0
    predicted = [int(row["predicted"]) for row in read(tmp_path / "p.csv")]
    assert predicted == model.predict(file).tolist()


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--approx", "rff", "--kernel", "poly"], 2, "only rbf and laplacian have random features"),
        (["--approx", "rff", "--scoring", "leave_pair_out_auc"], 2, "leaves out every pair"),
        (["--approx", "rff", "--method", "refit"], 2, "does not go with --method refit"),
        (["--approx", "rff", "--components", "0"], 2, "--components"),
        (["--approx", "none", "--components", "5"], 2, "not for none"),
        (["--memory-limit", "much"], 2, "--memory-limit must be positive, such as"),
        (["--memory-limit", "0"], 2, "1.5GiB; got 0"),
        (["--approx", "rff", "--seed", "-1"], 2, "--seed"),
        (["--approx", "nystroem", "--components", "37"], 1, "more than the 36 rows"),
        (["--approx", "none", "--memory-limit", SMALL], 1, "rows or raise --memory-limit, or let"),
        (["--memory-limit", SMALL, "--method", "refit"], 1, "but does not go with --method"),
        (["--memory-limit", SMALL, "--components", "40"], 1, "more than the 36 rows"),
    ],
)
def test_what_is_refused(
    table: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    status: int,
    said: str,
) -> None:
    assert tune(table, *options, "--out", tmp_path / "out") == status
    error = capsys.readouterr().err
    assert said in error and "Traceback" not in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("how", [("--approx", "rff"), ("--memory-limit", SMALL)])
def test_three_classes_and_a_scorer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: tuple[str, ...]
) -> None:
    """Asked for, or since the matrix does not fit; whole, or cut short after the first gamma."""
    table, out = write_csv(tmp_path / "three.csv", columns_of(36, 3)), tmp_path / "out"
    again, new = tmp_path / "again", tmp_path / "p.csv"
    more = ("--components", "9", "--probability", "--scoring", "f1_macro", "--cv", "3")
    command = ("tune", table, "--target", "y", *QUICK, *how, *more)
    assert run(*command, "--out", out) == 0
    saved = exactcv.load_model(out)
    model = saved.estimator
    assert (
        model.weights_.shape == (3, 9) and model.predict_proba(saved.prepare(table)).shape[1] == 3
    )
    result = json.loads((out / "run.json").read_text())["result"]
    assert result["exact"] and result["classes"] == ["class 0", "class 1", "class 2"]
    assert f"{model.approx}, 9 components" == result["approximate_kernel"]
    left_out = read(out / "predictions.csv")
    wrong = sum(row["wrong"] == "1" for row in left_out)
    assert len(left_out) == 36 and wrong == result["n_errors"]
    assert "decision for class 2" in left_out[0]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "9 components" in page and "f1_macro" in page
    assert run("predict", out, table, "--out", new) == 0
    expected = model.predict(saved.prepare(table)).tolist()
    assert [row["predicted"] for row in read(new)] == expected

    save = CurveFiles.save

    def cut(self: CurveFiles, number: int, curve: Any) -> None:
        save(self, number, curve)
        raise Cut

    monkeypatch.setattr(CurveFiles, "save", cut)
    with pytest.raises(Cut):
        run(*command, "--out", again)
    monkeypatch.setattr(CurveFiles, "save", save)
    assert run(*command, "--out", again) == 0
    assert results(again) == results(out)


# ---- chosen --------------------------------------------------------------------------------------


def test_it_is_chosen_when_the_matrix_does_not_fit(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, asked = tmp_path / "out", tmp_path / "asked"
    assert tune(table, "--memory-limit", SMALL, "--components", "9", "--out", out) == 0
    printed = capsys.readouterr().out
    said = "the kernel matrix of 36 rows (10.4 kB) would not fit into memory"
    assert f"approximate kernel (nystroem, 9 components), since {said}" in printed
    assert "--approx none forces the exact one" in printed
    assert said in (out / "report.html").read_text(encoding="utf-8")
    same = ("--approx", "nystroem", "--components", "9", "--memory-limit", SMALL)
    assert tune(table, *same, "--out", asked) == 0
    for name in ("model.exactcv", "cv.csv", "predictions.csv", "curve.png"):
        assert (out / name).read_bytes() == (asked / name).read_bytes()
    saved, again = (json.loads((f / "run.json").read_text()) for f in (out, asked))
    assert saved["fingerprint"] == again["fingerprint"]


def test_the_exact_kernel_is_taken_when_it_fits(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for options in ([], ["--approx", "none"], ["--memory-limit", "1GB"], ["--components", "9"]):
        out = tmp_path / "-".join(["out", *options])
        assert tune(table, *options, "--out", out) == 0
        printed = capsys.readouterr().out
        assert "approximate" not in printed
        assert ("--components is not used" in printed) == ("9" in options)
        recorded = json.loads((out / "run.json").read_text())
        assert recorded["settings"]["approx"] is None
        assert recorded["result"]["approximate_kernel"] is None
        assert recorded["result"]["n_support"] > 0
        assert "--approx auto" not in (out / "report.html").read_text(encoding="utf-8")


def test_a_run_cut_short_goes_on_with_its_kernel(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    options = ("--probability", "--gammas", "3", "--components", "9")
    assert tune(table, *options, "--memory-limit", SMALL, "--out", whole) == 0
    save = CurveFiles.save

    def cut(self: CurveFiles, number: int, curve: Any) -> None:
        if number == 2:
            raise Cut
        save(self, number, curve)

    monkeypatch.setattr(CurveFiles, "save", cut)
    with pytest.raises(Cut):
        tune(table, *options, "--memory-limit", SMALL, "--out", out)
    monkeypatch.setattr(CurveFiles, "save", save)
    capsys.readouterr()
    assert tune(table, *options, "--memory-limit", SMALL, "--n-jobs", "2", "--out", out) == 0
    assert "going on with 2 finished gamma(s)" in capsys.readouterr().out
    assert results(out) == results(whole)
    # There is enough memory now, but what there is is not to be lost.
    assert tune(table, *options, "--out", out) == 0
    printed = capsys.readouterr().out
    assert "approximate kernel (nystroem, 9 components)" in printed and "nothing to do" in printed

    for other, said in (
        (("--approx", "none"), 'approx was "nystroem", now null'),
        (("--approx", "rff"), 'approx was "nystroem", now "rff"'),
        (("--approx", "nystroem", "--components", "8"), "components was 9, now 8"),
        (("--seed", "1", "--approx", "nystroem"), "seed was null, now 1"),
    ):
        given = options[:3] if "none" in other else options
        assert tune(table, *given, *other, "--out", out) == 1
        assert said in capsys.readouterr().err


def test_a_finished_exact_run_stays_what_it_is(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert tune(table, "--out", out) == 0
    assert tune(table, "--out", out, "--memory-limit", SMALL) == 0
    assert "nothing to do" in capsys.readouterr().out
    (out / "curve.png").unlink()  # so that something is to be done
    recorded = json.loads((out / "run.json").read_text()) | {"status": "running"}
    (out / "run.json").write_text(json.dumps(recorded))
    assert tune(table, "--out", out, "--memory-limit", SMALL) == 1
    assert "the run in --out has the exact one" in capsys.readouterr().err


def test_damaged_curves_are_computed_again(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    options = ("--approx", "rff", "--components", "9")
    assert tune(table, *options, "--out", whole) == 0
    save = CurveFiles.save

    def cut(self: CurveFiles, number: int, curve: Any) -> None:
        save(self, number, curve)
        raise Cut

    monkeypatch.setattr(CurveFiles, "save", cut)
    with pytest.raises(Cut):
        tune(table, *options, "--out", out)
    monkeypatch.setattr(CurveFiles, "save", save)
    kept = out / "unfinished" / "gamma-001"
    kept.write_bytes(kept.read_bytes()[:-50])
    assert tune(table, *options, "--out", out) == 0
    assert "gamma-001 is computed again" in capsys.readouterr().err
    assert results(out) == results(whole)


def test_the_defaults_of_many_rows() -> None:
    asked = TuneSettings(target="y")
    chosen = choose_kernel(asked, n=10**6, memory_limit="1GB")
    assert (chosen.settings.approx, chosen.settings.components) == ("nystroem", 200)
    assert chosen.settings.grid() == {} and chosen.settings.default_grid  # SVCCV's own
    assert chosen.settings.folds() == 5 and "--cv 5" in chosen.settings.command("t.csv")
    # Such a run goes on with its folds and its kernel.
    before = chosen.settings.record()
    again = choose_kernel(asked, n=10**6, memory_limit="90TB", before=before)
    assert again.settings == chosen.settings
    for more in ({"cv": "loo"}, {"groups": "g"}):
        other = choose_kernel(TuneSettings(target="y", **more), n=10**6, memory_limit="1GB")
        assert other.settings.cv == more.get("cv")
    assert "would take 8000.0 GB" in (chosen.said or "")
    fits = choose_kernel(asked, n=1000, memory_limit="1GB")
    assert fits.settings.approx is None and fits.said is None
    assert fits.settings.grid() == {} and fits.settings.default_grid
    assert fits.settings.folds() == "loo" == fits.settings.record()["cv"]
    dense = choose_kernel(asked, n=1000, memory_limit="1GB", extra_bytes=10**9)
    assert dense.settings.approx == "nystroem"


def test_the_exact_kernel_gives_way_to_features_when_it_would_take_hours() -> None:
    asked = TuneSettings(target="y")
    chosen = choose_kernel(asked, n=32561, memory_limit="90TB")
    assert chosen.settings.approx == "nystroem"
    assert "hours of one processor" in (chosen.said or "")
    # Few points, or what needs the matrix, or the user's word for it: the exact kernel.
    for more in (
        {"gamma": "0.1", "cs": "1"}, {"every_c": True}, {"loss": "squared_hinge"},
        {"approx": "none"},
    ):  # fmt: skip
        other = choose_kernel(TuneSettings(target="y", **more), n=32561, memory_limit="90TB")
        assert other.settings.approx is None
    # A run that has the exact kernel keeps it.
    before = choose_kernel(asked, n=5000, memory_limit="90TB").settings.record()
    again = choose_kernel(asked, n=32561, memory_limit="90TB", before=before)
    assert again.settings.approx is None


@pytest.mark.parametrize("streamed", [False, True])
def test_a_linear_kernel_goes_by_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], streamed: bool
) -> None:
    table = write_csv(tmp_path / "data.csv", columns_of(200))
    out, whole = tmp_path / "out", tmp_path / "whole"
    options = ("tune", table, "--target", "y", "--kernel", "linear", "--Cs", "0.1,1,10")
    limits = ("--memory-limit", "400kB", *(["--stream"] if streamed else []))
    assert run(*options, *limits, "--out", out) == 0
    printed = capsys.readouterr().out
    assert "the 3 columns take the place of the linear kernel's matrix" in printed
    assert "approximate" not in printed
    assert run(*options, "--out", whole) == 0
    for name in ("cv.csv", "predictions.csv"):
        mine, theirs = read(out / name), read(whole / name)
        assert len(mine) == len(theirs)
        for one, other in zip(mine, theirs, strict=True):
            assert one.keys() == other.keys()
            for key in one:
                if key in ("n_errors", "predicted", "C"):
                    assert one[key] == other[key]
    capsys.readouterr()
    assert run(*options, *limits, "--out", out) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert run("predict", out, table, "--out", tmp_path / "predicted.csv") == 0
