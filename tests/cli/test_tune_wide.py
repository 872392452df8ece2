"""``exactcv tune`` and ``predict`` on svmlight files with the words of texts as features."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _command_line import read, run
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import exactcv
from exactcv.cli.approximation import choose_kernel
from exactcv.cli.settings import TuneSettings

WORDS = 4300  # more than have room for matrices of them


def texts(n: int, n_classes: int = 2, seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Every word is in one row at least, and the first thirty tell the classes apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    entries = {(k % n, k): 1.0 for k in range(WORDS)}
    for i in range(n):
        own = 10 * y[i] + rng.integers(0, 10, 4)
        for word in (*own, *rng.integers(0, 30, 6), *rng.integers(0, WORDS, 20)):
            entries[i, int(word)] = 1.0 + rng.random()
    rows, columns = np.array(list(entries)).T
    X = sparse.csr_matrix((list(entries.values()), (rows, columns)), shape=(n, WORDS))
    length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sparse.csr_matrix(sparse.diags(1.0 / length) @ X), y


def write(path: Path, X: Any, y: Any) -> Path:
    dump_svmlight_file(X, y, str(path), zero_based=True)
    return path


def tune(file: Path, *more: object) -> int:
    return run("tune", file, "--target", "target", "--kernel", "linear", *more)


@pytest.fixture
def no_dense_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """No sparse matrix is made dense that has so many columns and more than a row or two."""
    for kind in (sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix):

        def toarray(self: Any, *args: Any, plain: Any = kind.toarray, **more: Any) -> Any:
            assert self.shape[0] <= 2 or self.shape[1] < WORDS, "dense rows"
            return plain(self, *args, **more)

        monkeypatch.setattr(kind, "toarray", toarray)


@pytest.mark.usefixtures("no_dense_rows")
@pytest.mark.parametrize(("n_classes", "cv"), [(2, "5"), (2, None), (3, "4"), (3, None)])
def test_it_is_the_kernel_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], n_classes: int, cv: str | None
) -> None:
    X, y = texts(72, n_classes)
    plain = write(tmp_path / "text.svm", X, y)
    file = tmp_path / "text.svm.gz"
    file.write_bytes(gzip.compress(plain.read_bytes()))
    out, Cs = tmp_path / "out", [0.3, 3.0, 100.0]
    folds = () if cv is None else ("--cv", cv)
    assert tune(file, "--Cs", "0.3,3,100", *folds, "--out", out) == 0
    printed = capsys.readouterr().out
    assert f"the {WORDS} columns take the place of the linear kernel's matrix" in printed
    assert "scaling:     none, as is usual for text" in printed
    K = (X @ X.T).todense()  # what the features are the features of
    exact = exactcv.SVCCV(kernel="precomputed", Cs=Cs, cv="loo" if cv is None else int(cv))
    exact.fit(np.asarray(K), y)
    found = read(out / "cv.csv")
    assert [int(row["n_errors"]) for row in found] == exact.cv_results_["n_errors"].tolist()
    assert float(next(row["C"] for row in found if row["chosen"] == "1")) == exact.C_
    assert json.loads((out / "run.json").read_text())["result"]["exact"]
    model: Any = exactcv.load_model(out)
    pairs = n_classes * (n_classes - 1) // 2
    assert np.atleast_2d(model.estimator.weights_).shape == (pairs, WORDS)
    values = exact.decision_function(np.asarray(K))
    # Both objectives are least to 1e-8 of C n, what w = 0 has, and rows have length 1.
    off = 2.0 * np.sqrt(2.0 * 1e-8 * exact.C_ * len(y))
    np.testing.assert_allclose(model.decision_function(file), values, rtol=0, atol=off)
    assert run("predict", out, file, "--out", tmp_path / "p.csv") == 0
    told = [int(row["predicted"]) for row in read(tmp_path / "p.csv")]
    assert told == exact.predict(np.asarray(K)).tolist()
    assert tune(file, "--Cs", "0.3,3,100", *folds, "--out", out) == 0
    assert "nothing to do" in capsys.readouterr().out


def test_new_files_with_fewer_and_with_more_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = texts(60)
    out = tmp_path / "out"
    file = write(tmp_path / "text.svm", X, y)
    assert tune(file, "--Cs", "1", "--cv", "3", "--probability", "--out", out) == 0
    fewer = write(tmp_path / "fewer.svm", X[:5, :40], y[:5])
    assert run("predict", out, fewer, "--out", tmp_path / "p.csv") == 0
    model: Any = exactcv.load_model(out)
    w, b = model.estimator.weights_, model.estimator.intercept_[0]
    rows = read(tmp_path / "p.csv")
    values = [float(row["decision for 1"]) for row in rows]
    np.testing.assert_allclose(values, X[:5, :40] @ w[:40] + b, rtol=1e-12, atol=1e-12)
    assert all(0 < float(row["probability of 1"]) < 1 for row in rows)
    more = sparse.csr_matrix(([1.0], ([0], [WORDS])), shape=(1, WORDS + 1))
    capsys.readouterr()
    assert run("predict", out, write(tmp_path / "more.svm", more, [1])) == 1
    assert f"up to {WORDS}, the model only up to {WORDS - 1}" in capsys.readouterr().err


def test_scaling_is_there_for_who_asks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = texts(60)
    file = write(tmp_path / "text.svm", X, y)
    assert tune(file, "--Cs", "1", "--cv", "3", "--standardize", "--out", tmp_path / "out") == 0
    assert "scaling:     standard deviation 1, from all rows" in capsys.readouterr().out
    model: Any = exactcv.load_model(tmp_path / "out")
    made = model.prepare(file)
    square = np.asarray(made.multiply(made).mean(axis=0)).ravel()
    mean = np.asarray(made.mean(axis=0)).ravel()
    np.testing.assert_allclose(square - mean**2, 1.0, rtol=1e-9)
    # Of few features they are scaled without being asked.
    few = write(tmp_path / "few.svm", X[:, :40], y)
    assert tune(few, "--Cs", "1", "--cv", "3") == 0
    assert "scaling:     standard deviation 1, from all rows" in capsys.readouterr().out
    assert tune(few, "--Cs", "1", "--cv", "3", "--no-standardize") == 0
    assert "scaling:     none\n" in capsys.readouterr().out


def test_where_single_rows_do_not_go(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = texts(300)
    file, limits = write(tmp_path / "text.svm", X, y), ("--memory-limit", "2MB", "--n-jobs", "1")
    # With large C nearly all rows are on the margin, and there is room for 80 of them.
    assert tune(file, *limits, "--Cs", "0.001,100", "--cv", "loo") == 1
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("exactcv: error: --cv loo: ")
    assert "room for 80; use folds (--cv 5) or smaller --Cs (C up to 0.001 can be done)" in said
    assert tune(file, *limits, "--Cs", "0.001", "--cv", "loo") == 0
    assert "300 folds" in capsys.readouterr().out
    assert tune(file, *limits, "--Cs", "0.001,100") == 0
    said = capsys.readouterr().out
    assert "folds:       5, for memory may be too small for leave-one-out of more than 80" in said


def test_what_is_chosen() -> None:
    asked = TuneSettings(target="target", kernel="linear")

    def choice(n: int, limit: str = "90TB", asked: TuneSettings = asked, p: int = WORDS) -> Any:
        return choose_kernel(asked, n=n, n_columns=p, stay_sparse=True, memory_limit=limit)

    few, many = choice(4999), choice(5000)
    assert few.columns and few.settings.cv is None and few.settings.approx is None
    assert many.columns and many.settings.cv == "5"
    assert choice(4999, "1GB").settings.cv == "5"
    loo = TuneSettings(target="target", kernel="linear", cv="loo")
    assert choice(20_000, "1GB", loo).columns and choice(20_000, "1GB", loo).settings.cv == "loo"
    # Who asks for the matrix gets it, and so does who needs it.
    for more in ({"approx": "none"}, {"every_c": True}, {"method": "refit"}):
        other = TuneSettings(target="target", kernel="linear", **more)  # type: ignore[arg-type]
        assert not choice(1000, asked=other).columns
    assert not choice(1000, p=100).columns
