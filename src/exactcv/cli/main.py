"""The command line: ``exactcv tune``, ``predict``, ``report``, ``demo`` and ``methods``.

Options are declared here; what the commands do is in the modules beside this one, imported when a
command runs so that ``--help`` answers at once.  Exit status: 0 done, 1 an error (one line, no
traceback), 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO, get_args

import click

from ..algorithms import methods
from ..exceptions import ExactCVError
from ..types import Output, Select, TaskName, Unseen
from .early_interrupt import ready

__all__ = ["main"]

FILE = click.Path(path_type=Path)
# What libraries say, by other names than MemoryError, under a tight limit such as ulimit -v.
NO_ROOM = (
    "failed to map segment", "cannot allocate memory", "can't start new thread",
    "error return without exception set",
)  # fmt: skip
EPILOG = "Options and files are explained in the README, section 'Command line'."


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", DeprecationWarning)  # what packages tell each other
        warnings.showwarning = _show_warning
        try:
            status = cli.main(argv, prog_name="exactcv", standalone_mode=False)
            return status if isinstance(status, int) else 0
        except click.ClickException as error:
            error.show()
            return error.exit_code
        except ExactCVError as error:
            return _fail(f"error: {error}", 1)
        except MemoryError as error:
            return _fail(f"error: {_too_large(error)}", 1)
        except (KeyboardInterrupt, click.Abort) as stop:
            # click turns one into the other, and keeps ours as the cause; a RuntimeError, too.
            return _fail(str(stop.__cause__ or stop) or "interrupted", 130)
        except (ImportError, OSError, RuntimeError, SystemError) as error:
            if not any(words in str(error).lower() for words in NO_ROOM):
                raise
            return _fail(f"error: {_too_large(MemoryError(str(error)))}", 1)


def _too_large(error: MemoryError) -> str:
    """How large it was, if NumPy said so, and what to do."""
    what = f": {str(error)[:1].lower()}{str(error)[1:]}" if str(error) else ""
    return (
        f"there is not enough memory{what}; use fewer rows or columns, --memory-limit so that "
        "features stand in for the kernel in time, or fewer --n-jobs"
    )


def _fail(text: str, status: int) -> int:
    click.echo(f"exactcv: {text}", err=True)
    return status


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    click.echo(f"exactcv: warning: {message}", err=True)


def _tell(text: str) -> None:
    click.echo(text, err=True)


def _say(text: str) -> None:
    """Results, with warnings in colour; click leaves colours out where they cannot be shown."""
    lines, warns = [], False
    for line in text.split("\n"):
        warns = line.startswith("warning:") or (warns and line.startswith(" "))
        lines.append(click.style(line, fg="red") if warns else line)
    click.echo("\n".join(lines))


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="exactcv", message="exactcv %(version)s")
@click.pass_context
def cli(context: click.Context) -> int:
    """Exact cross-validation of kernel SVMs, with certificates."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(2)
    return 0


# ---- options that commands share -----------------------------------------------------------------


def _read_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """How files are read."""
    for option in reversed(
        [
            click.option(
                "--format",
                type=click.Choice(["csv", "parquet", "svmlight"]),
                help="Of FILE. Default: from its name, else from its contents.",
            ),
            click.option("--delimiter", help="Of CSV. Default: , ; tab or |, seen from line 1."),
            click.option(
                "--header/--no-header",
                default=None,
                help="Does line 1 of a CSV file name the columns? Without names they are 1, 2, ...",
            ),
            click.option("--encoding", default="utf-8", show_default=True, help="Of CSV."),
            click.option(
                "--decimal",
                type=click.Choice([".", ","]),
                default=".",
                show_default=True,
                help="What stands before the decimals: 1.5 or 1,5.",
            ),
            click.option(
                "--thousands",
                type=click.Choice([",", ".", "'", " "]),
                help="What stands between thousands: 1,000,000. Default: nothing.",
            ),
        ]
    ):
        command = option(command)
    return command


def _progress(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--progress/--no-progress",
        default=True,
        help="Show how far it is: a bar in a terminal, else a line now and then. Default: yes.",
    )(command)


def _open(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--open", "open_it", is_flag=True, help="Show the report in the browser when it is done."
    )(command)


def _escape(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--escape/--no-escape",
        default=True,
        help="Put ' before text in CSV files that a spreadsheet would run as a formula. "
        "Default: yes.",
    )(command)


# ---- commands ------------------------------------------------------------------------------------


@cli.command(epilog=EPILOG, short_help="Tune an SVM on a table.")
@click.argument("file", type=FILE)
@click.option(
    "--target",
    required=True,
    metavar="COLUMN",
    help="What to predict, classes or numbers: a name, or 1 for the first column, -1 the last.",
)
@click.option(
    "--out",
    type=FILE,
    metavar="DIR",
    help="Folder for model, tables and report. Started again, an interrupted run goes on there.",
)
@click.option(
    "--cv",
    metavar="loo|K",
    help="Leave-one-out, or K folds, of classes stratified. Default: loo; with features in place "
    "of the kernel, from 5000 rows on, 5.",
)
@click.option(
    "--nested",
    metavar="loo|K",
    help="Also the error after tuning: tune afresh without each row, or each of K folds, and "
    "predict it.",
)
@click.option(
    "--every-c",
    is_flag=True,
    help="No grid: the error at every C of the default range, and the middle of the best interval.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    help="Shuffle the rows before they are cut into K folds; also draws the features of --approx.",
)
@click.option(
    "--task",
    type=click.Choice(get_args(TaskName)),
    help="Is the target classes or numbers? Default: numbers if it has decimals, or whole numbers "
    "of too many kinds to be classes.",
)
@click.option(
    "--epsilon",
    metavar="LIST",
    help="Of numbers: errors that cost nothing, in units of the target: 0.1,1 or FROM:TO:COUNT. "
    "Default: three around a tenth of its standard deviation.",
)
@click.option(
    "--quantiles",
    metavar="LIST",
    help="Of numbers: fit these quantiles, say 0.05,0.5,0.95, in place of one curve.",
)
@click.option("--groups", metavar="COLUMN", help="Rows of one group are left out together.")
@click.option("--weight", metavar="COLUMN", help="How many rows each row counts for.")
@click.option("--id", metavar="COLUMN", help="Names of the rows; not a feature.")
@click.option("--drop", multiple=True, metavar="COLUMN", help="Not a feature; may be repeated.")
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN",
    help="A feature although it looks like an identifier or a group; may be repeated.",
)
@click.option(
    "--categorical",
    multiple=True,
    metavar="COLUMN",
    help="One-hot although it has numbers; may be repeated.",
)
@click.option(
    "--max-levels",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Most levels of a text column.",
)
@click.option(
    "--impute",
    type=click.Choice(["median"]),
    help="Fill gaps with the median of all rows; text: most frequent level. Default: refuse.",
)
@click.option(
    "--standardize/--no-standardize",
    default=None,
    help="Mean 0 and standard deviation 1 for each feature, from all rows at once. Default: yes, "
    "but for svmlight files with more than 4000 features.",
)
@click.option(
    "--kernel",
    type=click.Choice(["rbf", "laplacian", "poly", "sigmoid", "linear"]),
    default="rbf",
    show_default=True,
)
@click.option(
    "--gammas",
    type=click.IntRange(1, 100),
    metavar="N",
    help="N gammas, each 4 times the one before, around 1 / median squared distance. Default: 5, "
    "with features in place of the kernel 3, and more while the best point is at the edge.",
)
@click.option("--gamma", metavar="LIST", help="Instead: 0.1,1,median or FROM:TO:COUNT.")
@click.option(
    "--Cs",
    "cs",
    metavar="LIST",
    help="0.1,1,10 or FROM:TO:COUNT (log scale). Default: 1e-3 to 1e3 over the scale of the "
    "kernel, and further while the best point is at the edge.",
)
@click.option(
    "--lambdas",
    metavar="LIST",
    help="Instead of --Cs; a single number N is the papers' grid of N values. Default with "
    "features in place of the kernel: 1e-2:1e-5:7, and further while the best point is at the "
    "edge.",
)
@click.option("--degree", type=int, default=3, show_default=True, help="Of the poly kernel.")
@click.option("--coef0", type=float, default=0.0, show_default=True, help="Of poly and sigmoid.")
@click.option(
    "--loss", default="hinge", show_default=True, help="Of classes; see 'exactcv methods'."
)
@click.option(
    "--scoring",
    help="What to maximise: any scorer of scikit-learn. Default: accuracy; of numbers R2, of "
    "quantiles their loss.",
)
@click.option(
    "--select",
    type=click.Choice(get_args(Select)),
    default="min",
    show_default=True,
    help="The best point, or the smallest C within one standard error of it.",
)
@click.option("--class-weight", metavar="WEIGHTS", help="balanced, or LABEL=WEIGHT,LABEL=WEIGHT.")
@click.option("--probability", is_flag=True, help="Also predict probabilities.")
@click.option("--method", default="exact", show_default=True, help="See 'exactcv methods'.")
@click.option(
    "--tol", type=float, default=1e-8, show_default=True, help="What every solution must meet."
)
@click.option(
    "--approx",
    type=click.Choice(["auto", "none", "rff", "nystroem"]),
    default="auto",
    show_default=True,
    help="Features in place of the kernel; auto: nystroem if it would not fit or take hours.",
)
@click.option(
    "--components",
    type=click.IntRange(1),
    metavar="M",
    help="How many features --approx takes. Default: 200.",
)
@click.option(
    "--memory-limit",
    metavar="SIZE",
    help="For the table and for the kernel matrix, each, as 2GB. Default: what the system has.",
)
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Read the table (CSV or Parquet) in pieces. Default: if it does not fit into memory.",
)
@click.option(
    "--n-jobs",
    type=int,
    default=-1,
    show_default=True,
    help="Threads; -1 is all processors. The result does not depend on it.",
)
@_open
@_escape
@_progress
@_read_options
def tune(
    file: Path,
    out: Path | None,
    n_jobs: int,
    memory_limit: str | None,
    stream: bool | None,
    progress: bool,
    open_it: bool,
    **options: Any,
) -> None:
    """Tune an SVM on the table FILE (CSV, Parquet or svmlight; .gz .bz2 .xz too).

    Cross-validates every C and gamma exactly and keeps the best model: a classifier, or support
    vector regression if the target holds numbers. Features are standardised;
    text columns become one column of 0 and 1 for each level. With --out the folder gets
    model.exactcv, cv.csv, predictions.csv (left-out values), curve.png, report.html and run.json.
    """
    from ..runtime.memory import parse_bytes
    from .settings import TuneSettings
    from .tune import tune as run

    ready()

    settings = TuneSettings(**options)
    if open_it and out is None:
        raise click.UsageError("--open needs --out: the page is written there")
    try:
        settings.check()
    except ExactCVError as error:
        raise click.UsageError(str(error)) from error
    try:
        if memory_limit is not None:
            parse_bytes(memory_limit)
    except ExactCVError as error:
        what = f"--memory-limit must be positive, such as 500MB, 2GB or 1.5GiB; got {memory_limit}"
        raise click.UsageError(what) from error
    run(
        file,
        settings,
        out=out,
        n_jobs=n_jobs,
        memory_limit=memory_limit,
        stream=stream,
        progress=progress,
        say=_say,
    )
    if open_it and out is not None:
        from .report import open_page

        open_page(out / "report.html", _tell)


@cli.command(epilog=EPILOG, short_help="Predict the rows of a table with a tuned model.")
@click.argument("model", type=FILE)
@click.argument("file", type=FILE)
@click.option(
    "--out",
    type=FILE,
    metavar="FILE",
    help="CSV file for the predictions. Default: standard output.",
)
@click.option(
    "--drop",
    multiple=True,
    metavar="COLUMN",
    help="A column of FILE that the model does not know; may be repeated.",
)
@click.option(
    "--unseen",
    type=click.Choice(get_args(Unseen)),
    default="error",
    show_default=True,
    help="Text that was not in the tuning data: refuse it, or let it be no level at all.",
)
@click.option(
    "--interval",
    type=float,
    metavar="SHARE",
    help="Of numbers: also the ends of intervals that hold this share of new values, say 0.9.",
)
@_escape
@_read_options
def predict(
    model: Path,
    file: Path,
    out: Path | None,
    drop: tuple[str, ...],
    unseen: Unseen,
    interval: float | None,
    escape: bool,
    **read_options: Any,
) -> None:
    """Predict the rows of FILE with MODEL, a model file or the folder that 'tune --out' wrote.

    Columns are found by name, in any order; missing and unexpected ones are refused. If FILE has
    the target too, the error is printed.
    """
    from .predict import predict as run

    ready()
    run(
        model,
        file,
        out=out,
        unseen=unseen,
        drop=drop,
        escape=escape,
        read_options=read_options,
        interval=interval,
        show=lambda text: click.echo(text, nl=False),
        say=_tell,
    )


@cli.command(short_help="Make the report of a finished run again.")
@click.argument("folder", type=FILE)
@click.option("--out", type=FILE, metavar="FILE", help="Default: report.html in FOLDER.")
@_open
def report(folder: Path, out: Path | None, open_it: bool) -> None:
    """Make the page of FOLDER, which 'tune --out' wrote, once more; nothing is computed anew."""
    from .report import open_page
    from .report import report as run

    ready()
    path = run(folder, out)
    click.echo(f"written: {path}")
    if open_it:
        open_page(path, _tell)


@cli.command(short_help="Leave-one-out on a bundled data set.")
@click.option(
    "--output",
    type=click.Choice(get_args(Output)),
    default="decision",
    show_default=True,
    help="Labels only, or every left-out decision value.",
)
@click.option("--method", default="exact", show_default=True, help="See 'exactcv methods'.")
@click.option("--out", type=FILE, metavar="DIR", help="Also write report.html and curve.png there.")
@click.option("--n-jobs", "--jobs", type=int, default=1, show_default=True, help="Threads.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def demo(output: Output, method: str, out: Path | None, n_jobs: int, quiet: bool) -> None:
    """Leave-one-out over the default grid on a bundled data set, and what refits would cost."""
    from .demo import demo as run

    ready()
    run(method=method, output=output, n_jobs=n_jobs, progress=not quiet, out=out, say=_say)


@cli.command("methods", short_help="List the methods and what they support.")
def list_methods() -> None:
    """List the methods, what they support, and the papers they come from."""
    for name, support in methods().items():
        click.echo(f"{name}: {support.summary}")
        click.echo(f"    losses: {', '.join(support.losses)}; folds: {', '.join(support.folds)}")
        for option in support.options:
            click.echo(f"    option {option.name}={option.default!r}: {option.meaning}")
        click.echo(f"    from: {support.paper}")


if __name__ == "__main__":
    sys.exit(main())
