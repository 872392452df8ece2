"""The options of ``exactcv tune``, and what the text of some of them means."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from ..exceptions import InputError
from ..problem.gamma import DEFAULT_GAMMAS, GAMMA_RULES, around
from ..problem.grid import DEFAULT_POINTS
from ..types import Approx, KernelName, LossName, Select, TaskName

__all__ = [
    "TuneSettings",
    "gammas_around",
    "parse_class_weight",
    "parse_grid",
    "splitter",
]

MOST_POINTS = 10_000


@dataclass(frozen=True, kw_only=True)
class TuneSettings:
    """What the user asked for, as it was written; see ``main.py`` for the meaning of each."""

    target: str
    task: TaskName | None = None
    epsilon: str | None = None
    quantiles: str | None = None
    format: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str | None = None
    weight: str | None = None
    groups: str | None = None
    id: str | None = None
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    max_levels: int = 100
    impute: str | None = None
    # None: unless there are many sparse features (storage/preparation.py).
    standardize: bool | None = None
    # None: leave-one-out, unless features take the place of the kernel (approximation.py).
    cv: str | None = None
    nested: str | None = None
    every_c: bool = False
    seed: int | None = None
    kernel: KernelName = "rbf"
    gammas: int | None = None
    gamma: str | None = None
    degree: int = 3
    coef0: float = 0.0
    cs: str | None = None
    lambdas: str | None = None
    loss: LossName = "hinge"
    scoring: str | None = None
    select: Select = "min"
    class_weight: str | None = None
    probability: bool = False
    method: str = "exact"
    tol: float = 1e-8
    escape: bool = True
    # None once the exact kernel has been settled on.
    approx: Approx | Literal["auto", "none"] | None = "auto"
    components: int | None = None

    def record(self) -> dict[str, Any]:
        """Plain values, for ``run.json``."""
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        found = {name: list(v) if isinstance(v, tuple) else v for name, v in pairs}
        for name in ("components", "nested", "task", "epsilon", "quantiles"):
            if found[name] is None:
                del found[name]  # runs are the same with and without the option
        found["cv"] = self.cv or "loo"
        if not self.every_c:
            del found["every_c"]
        return found

    def command(self, file: str) -> str:
        """A command that asks for the same."""
        words = ["exactcv", "tune", file]
        for field in fields(self):
            value, name = getattr(self, field.name), field.name.replace("_", "-")
            option = "--Cs" if name == "cs" else f"--{name}"
            if value == field.default:
                continue
            if isinstance(value, bool):
                words.append(option if value else f"--no-{name}")
            elif isinstance(value, tuple):
                words += [word for item in value for word in (option, item)]
            else:
                words += [option, str(value)]
        return shlex.join(words)

    @property
    def read_options(self) -> dict[str, Any]:
        names = ("format", "delimiter", "header", "encoding", "decimal", "thousands")
        return {name: getattr(self, name) for name in names}

    def check(self) -> None:
        """Refuse what makes no sense whatever the data are."""
        from ..crossval.scoring import read_scoring
        from ..storage.notation import Notation

        Notation(self.decimal, self.thousands)
        self.folds()
        self.outer_folds()
        self.grid()
        gammas = self.gamma_grid()
        if isinstance(gammas, int):
            gammas_around(1.0, gammas)
        read_scoring(self.scoring)
        self.epsilons(1.0)
        self.levels()
        if self.task == "regression":
            self.check_regression()
        elif self.task == "classification" and self.epsilon is not None:
            raise InputError("--epsilon is for --task regression")
        elif self.task == "classification" and self.quantiles is not None:
            raise InputError("--quantiles is for --task regression")
        if self.every_c and self.approx in ("rff", "nystroem"):
            raise InputError(f"--every-c needs the kernel matrix: leave out --approx {self.approx}")
        if self.nested is not None and self.every_c:
            raise InputError("--nested tunes on a grid: leave out --every-c")
        if self.approx in ("rff", "nystroem"):
            conflict = self.approx_conflict(self.approx)
            if conflict is not None:
                raise InputError(f"--approx {self.approx} does not go with {conflict}")
        elif self.approx == "none" and self.components is not None:
            raise InputError("--components is for --approx rff and nystroem, not for none")

    def approx_conflict(self, approx: str) -> str | None:
        """What an approximate kernel does not go with, whatever the data are."""
        from ..crossval.scoring import PAIRS
        from ..lowrank.features import RANDOM_FEATURE_KERNELS
        from ..problem.inputs import APPROX_LOSSES

        if approx == "rff" and self.kernel not in RANDOM_FEATURE_KERNELS:
            return (
                f"--kernel {self.kernel} (only {' and '.join(RANDOM_FEATURE_KERNELS)} have random "
                "features; --approx nystroem takes any kernel)"
            )
        if self.scoring == PAIRS:
            return f"--scoring {self.scoring} (it leaves out every pair of rows)"
        if self.method != "exact":
            return f"--method {self.method} (it has a method of its own)"
        if self.loss not in APPROX_LOSSES:
            return f"--loss {self.loss} (it has the hinge loss and the squared one)"
        return None

    def folds(self) -> Any:
        """``cv`` for ``SVCCV``; groups are kept together by scikit-learn's splitters."""
        return self._splits("--cv", self.cv or "loo")

    def number_folds(self) -> Any:
        """``cv`` for ``SVRCV``: the same without classes to keep in proportion."""
        return self._number_splits("--cv", self.cv or "loo")

    def outer_number_folds(self) -> Any:
        """``outer`` for ``SVRCV.nested_score``; None if that is not asked for."""
        return None if self.nested is None else self._number_splits("--nested", self.nested)

    def _number_splits(self, option: str, given: str) -> Any:
        folds = self._splits(option, given)
        if self.groups is None or given == "loo":
            return folds
        from sklearn.model_selection import GroupKFold

        return GroupKFold(int(given), shuffle=self.seed is not None, random_state=self.seed)

    def number_grid(self) -> dict[str, Any]:
        """``Cs`` or ``lambdas`` for ``SVRCV``, whose own default is in the units of the target."""
        return {} if self.cs is None and self.lambdas is None else self.grid()

    def epsilons(self, spread: float) -> list[float]:
        """Epsilons that were named, or three around a tenth of the spread of the target."""
        if self.epsilon is None:
            return [float(f"{share * spread:.1g}") for share in (0.02, 0.1, 0.3)]
        if self.epsilon.strip() == "0":
            return [0.0]
        return [float(value) for value in parse_grid("--epsilon", self.epsilon)]

    def levels(self) -> list[float] | None:
        """Quantiles that were named, in rising order; None: no quantiles but means."""
        if self.quantiles is None:
            return None
        if self.epsilon is not None:
            raise InputError("give --epsilon or --quantiles: the loss of a quantile has no epsilon")
        found = sorted({float(value) for value in parse_grid("--quantiles", self.quantiles)})
        if found[-1] >= 1.0:
            raise InputError(f"--quantiles {self.quantiles}: all must lie between 0 and 1")
        return found

    def check_regression(self) -> None:
        """Refuse what goes with classes only."""
        unusual = {
            "--loss": self.loss != "hinge",
            "--class-weight": self.class_weight is not None,
            "--probability": self.probability,
            "--every-c": self.every_c,
        }
        for option, given in unusual.items():
            if given:
                raise InputError(f"{option} goes with classes, and the target holds numbers")

    def outer_folds(self) -> Any:
        """``outer`` for ``SVCCV.nested_score``; None if that is not asked for."""
        return None if self.nested is None else self._splits("--nested", self.nested)

    def rows_outside(self, n: int) -> int:
        """How many of n rows are outside an outer fold, at least; all of them without ``nested``.

        About as many: classes and groups are not cut.
        """
        if self.nested is None:
            return n
        number = n if self.nested == "loo" else _whole(self.nested) or n
        if number > n:
            raise InputError(
                f"--nested {number} is more than the {n} rows: use fewer folds, or --nested loo"
            )
        return n - -(-n // max(number, 2))

    def _splits(self, option: str, given: str) -> Any:
        number = None if given == "loo" else _whole(given)
        if given != "loo" and (number is None or number < 2):
            raise InputError(f"{option} {given}: use loo or a number of folds, at least 2")
        if self.groups is None:
            return "loo" if number is None else number
        from sklearn.model_selection import LeaveOneGroupOut, StratifiedGroupKFold

        if number is None:
            return LeaveOneGroupOut()
        shuffle = self.seed is not None
        return StratifiedGroupKFold(number, shuffle=shuffle, random_state=self.seed)

    def grid(self) -> dict[str, Any]:
        """``Cs`` or ``lambdas`` for ``SVCCV``."""
        if self.cs is not None and self.lambdas is not None:
            raise InputError("give --Cs or --lambdas, not both")
        if self.every_c:
            if self.cs is not None or self.lambdas is not None:
                raise InputError("--every-c takes every C: leave out --Cs and --lambdas")
            return {"Cs": "all"}
        if self.lambdas is not None:
            count = _whole(self.lambdas)
            return {"lambdas": parse_grid("--lambdas", self.lambdas) if count is None else count}
        if self.cs is None:
            return {}  # SVCCV's own default
        return {"Cs": parse_grid("--Cs", self.cs)}

    @property
    def n_points(self) -> int:
        """How many points the grid of the exact kernel has, before it grows."""
        given = next(iter(self.grid().values()), None)
        if isinstance(given, str) or given is None:
            n_Cs = DEFAULT_POINTS
        else:
            n_Cs = given if isinstance(given, int) else len(given)
        gammas = self.gamma_grid()
        return n_Cs * (gammas if isinstance(gammas, int) else len(gammas))

    @property
    def default_grid(self) -> bool:
        """Is everything left to SVCCV, C and gamma?"""
        return all(one is None for one in (self.cs, self.lambdas, self.gamma, self.gammas))

    def gamma_grid(self) -> list[float | str] | int:
        """Gammas that were named, or how many there shall be around the median rule."""
        if self.gamma is not None and self.gammas is not None:
            raise InputError("give --gamma or --gammas, not both")
        if self.kernel == "linear":
            if self.gamma is not None or self.gammas is not None:
                raise InputError("the linear kernel has no gamma: leave --gamma and --gammas out")
            return 1
        if self.gamma is None:
            return DEFAULT_GAMMAS if self.gammas is None else self.gammas
        words = [word.strip() for word in self.gamma.split(",")]
        if len(words) == 1 and ":" in words[0]:
            return [float(value) for value in parse_grid("--gamma", words[0])]
        return [w if w in GAMMA_RULES else float(parse_grid("--gamma", w)[0]) for w in words]


def splitter(folds: Any, kind: Any, seed: int | None) -> Any:
    """A number of folds as a splitter, which shuffles only by a seed that the user has named.

    Where there are features, the estimator has a seed in any case.
    """
    return kind(folds, shuffle=seed is not None, random_state=seed) if type(folds) is int else folds


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def parse_grid(option: str, text: str) -> np.ndarray:
    """Numbers separated by commas, or FROM:TO:COUNT, evenly on a log scale.

    Examples
    --------
    >>> parse_grid("--Cs", "0.1,1,10").tolist(), parse_grid("--Cs", "0.01:1:3").tolist()
    ([0.1, 1.0, 10.0], [0.01, 0.1, 1.0])
    """
    try:
        if ":" in text:
            first, last, count = text.split(":")
            ends, number = (float(first), float(last)), int(count)
            if not 1 <= number <= MOST_POINTS or not all(0 < v < np.inf for v in ends):
                raise ValueError(text)
            # Rounded, so that the decades are what they look like.
            values = np.array([float(f"{v:.12g}") for v in np.geomspace(*ends, number)])
        else:
            values = np.array([float(word) for word in text.split(",")])
    except ValueError:
        raise InputError(
            f"{option} {text}: write positive numbers as 0.1,1,10 or as FROM:TO:COUNT"
        ) from None
    if not ((values > 0) & np.isfinite(values)).all():
        raise InputError(f"{option} {text}: all numbers must be positive")
    return values


def gammas_around(gamma: float, count: int) -> list[float]:
    """``count`` values around gamma, if that is a sensible number."""
    if not 1 <= count <= 100:
        raise InputError(f"--gammas {count}: use a number from 1 to 100")
    return around(gamma, count)


def parse_class_weight(text: str | None, labels: list[Any]) -> Any:
    """ "balanced", or weights as LABEL=WEIGHT,LABEL=WEIGHT; labels as they are in the file.

    Examples
    --------
    >>> parse_class_weight("0=1,1=2.5", [0, 1])
    {0: 1.0, 1: 2.5}
    """
    if text is None or text == "balanced":
        return text
    by_text = {str(label): label for label in labels}
    weights = {}
    for part in text.split(","):
        label, _, number = part.rpartition("=")
        try:
            weights[by_text[label.strip()]] = float(number)
        except (KeyError, ValueError):
            known = ", ".join(list(by_text)[:8])
            raise InputError(
                f"--class-weight {part!r} is not understood: write balanced or LABEL=WEIGHT,..., "
                f"with labels among {known}"
            ) from None
    return weights
