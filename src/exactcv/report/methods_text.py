"""A cross-validation as a paragraph for the methods section of a paper."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np

from ..algorithms import REGISTRY, methods
from .after_tuning import NADEAU
from .overview import Overview, Source, overview
from .words import every_c_text

__all__ = ["methods_text"]

TSAMARDINOS = (
    "I. Tsamardinos, E. Greasidou and G. Borboudakis (2018). Bootstrapping the out-of-sample "
    "predictions for efficient and accurate cross-validation. Machine Learning 107, 1895-1922."
)
WILSON = (
    "E. B. Wilson (1927). Probable inference, the law of succession, and statistical inference. "
    "Journal of the American Statistical Association 22, 209-212."
)
KERNELS = {
    "rbf": "the RBF kernel exp(-gamma ||x - z||^2)",
    "laplacian": "the Laplacian kernel exp(-gamma ||x - z||_1)",
    "linear": "a linear kernel",
    "poly": "a polynomial kernel",
    "sigmoid": "a sigmoid kernel",
    "precomputed": "a precomputed kernel matrix",
}


MACHINES = {
    "hinge": "support vector machine",
    "squared_hinge": "support vector machine",
    "epsilon_insensitive": "support vector regression",
    "pinball": "kernel quantile regression",
    "least_squares": "kernel ridge regression",
}


def methods_text(source: Source) -> str:
    """Data, model, folds, grid, software, numbers and references, ready to be pasted.

    Examples
    --------
    >>> import exactcv
    >>> X, y = exactcv.datasets.make_mixture(40, 4, random_state=0)
    >>> text = methods_text(exactcv.cross_validate(X, y, lambdas=5))
    >>> text.startswith("The data have 40 rows in 2 classes"), "exactcv" in text
    (True, True)
    """
    it = overview(source)
    sentences = [_data(it), _model(it), _choice(it), _software(it), _numbers(it)]
    if it.corrected is not None:
        sentences.append(_corrected(it))
    if it.nested is not None:
        sentences.append(it.nested.sentence())
    references = "\n".join(f"- {one}" for one in _references(it))
    return " ".join(sentences) + "\n\nReferences\n" + references


def _data(it: Overview) -> str:
    found = it.n_different
    tested = "" if found == it.n_rows else f"; {found} of them were tested"
    if it.numbers is not None:
        return f"The data have {it.n_rows} rows with a number each{tested}."
    truth = it.left_out.truth
    if found < len(truth):  # each row once
        truth = truth[np.unique(it.left_out.row, return_index=True)[1]]
    counts = np.bincount(truth, minlength=len(it.classes))
    each = ", ".join(f"{n} of class {c!s}" for n, c in zip(counts, it.classes, strict=True))
    return f"The data have {it.n_rows} rows in {len(it.classes)} classes ({each}){tested}."


def _model(it: Overview) -> str:
    kernel = KERNELS.get(it.kernel, f"the kernel {it.kernel}" if it.kernel else "a kernel")
    several = ", one against one for each pair of classes" if len(it.classes) > 2 else ""
    approx = "" if it.approx is None else f", approximated by features ({it.approx})"
    loss = it.loss.replace("epsilon_", "epsilon-").replace("_", " ") + " loss"
    what = MACHINES.get(it.loss, "kernel machine")
    if it.parameter is not None:
        name, values = it.parameter
        loss += f", {name} {values[it.chosen[0]]:.4g}"
    bias = "" if it.fit_intercept else ", without intercept"
    return f"We used a {what} ({loss}{bias}) with {kernel}{approx}{several}."


def _choice(it: Overview) -> str:
    name, values = ("lambda", it.lambdas) if it.scale_with_fold else ("C", it.Cs)
    grid = f"{name} = {values[0]:.4g}"
    if len(values) > 1:
        grid = f"{len(values)} values of {name} from {values.min():.4g} to {values.max():.4g}"
    gammas = np.unique(it.gammas[~np.isnan(it.gammas)])
    if len(gammas) > 1:
        grid += (
            f" times {len(gammas)} values of gamma from {gammas.min():.4g} to {gammas.max():.4g}"
        )
    elif len(gammas) == 1:
        grid += f" with gamma = {gammas[0]:.4g}"
    if it.parameter is not None and len(np.unique(it.parameter[1])) > 1:
        grid += f" times {len(np.unique(it.parameter[1]))} values of {it.parameter[0]}"
    folds = "leave-one-out" if it.leave_one_out else f"{it.n_folds}-fold"
    if it.every_c is not None:
        return (
            f"Of {every_c_text(it.every_c)} we took the middle (of log C) of the widest interval "
            f"with the least error in {folds} cross-validation."
        )
    if it.error.size == 1:
        return f"It was judged by {folds} cross-validation at {grid}."
    least = "least error" if it.numbers is None else "least loss"
    aim = least if it.score is None else f"best {it.scoring_name}"
    rule = f"the point of the {aim}"
    if it.chosen != it.best and it.chosen == it.one_se:
        rule = f"the smallest C within one standard error of the {aim}"
    return f"Among {grid} we took {rule} in {folds} cross-validation."


def _software(it: Overview) -> str:
    proof = "" if it.exact else " (some solutions missed the tolerance)"
    kkt, gap = (float(np.fmax.reduce(x, axis=None)) for x in (it.kkt, it.gap))
    return (
        f"All models of all folds were computed with exactcv {version('exactcv')} (method "
        f"{it.method!r}), each with a certificate of optimality: KKT violation at most {kkt:.1e}, "
        f"duality gap at most {gap:.1e}{proof}."
    )


def _numbers(it: Overview) -> str:
    g, l = it.chosen
    low, high = (end[g, l] for end in it.interval)
    gamma = "" if np.isnan(it.gammas[g]) else f", gamma = {it.gammas[g]:.4g}"
    score = "" if it.score is None else f"{it.scoring_name} {it.score[g, l]:.4f} and "
    if it.numbers is not None:
        own = it.numbers
        return (
            f"The chosen point (C = {it.Cs[l]:.4g}{gamma}) has {score}a cross-validated loss of "
            f"{it.error[g, l]:.4g} (95% interval {low:.4g} to {high:.4g}): mean absolute error "
            f"{own.mae:.4g}, root mean squared error {own.rmse:.4g}, R2 {own.r2:.4f}."
        )
    return (
        f"The chosen point (C = {it.Cs[l]:.4g}{gamma}) has {score}a cross-validated error of "
        f"{it.error[g, l]:.4f} ({it.n_errors[g, l]} of {it.n_tested} tests wrong; 95% Wilson "
        f"interval {low:.4f} to {high:.4f})."
    )


def _corrected(it: Overview) -> str:
    assert it.corrected is not None
    value, low, high = it.corrected
    what = ("error" if it.numbers is None else "loss") if it.score is None else it.scoring_name
    digits = ".4f" if it.numbers is None else ".4g"
    return (
        "Since the point was chosen by these very figures, they are optimistic; the bootstrap "
        f"bias-corrected estimate (Tsamardinos et al. 2018) of the {what} after tuning is "
        f"{value:{digits}} (95% interval {low:{digits}} to {high:{digits}})."
    )


def _references(it: Overview) -> list[str]:
    found = [f"exactcv {version('exactcv')}: exact cross-validation of kernel machines (software)."]
    if it.method in REGISTRY and (paper := methods()[it.method].paper) != "this project":
        found.append(paper)
    of_classes = [] if it.numbers is not None else [WILSON]
    found += [] if it.corrected is None else [TSAMARDINOS]
    found += [] if it.nested is None else [NADEAU]
    return found + of_classes
