"""What every command shares: the console, exit codes, and how an error of ours is shown."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import NoReturn, ParamSpec

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from startonce.model.errors import StartOnceError
from startonce.oracle import tracefile
from startonce.oracle.baseline import BadBaseline
from startonce.oracle.jsonlines import BadReport

EXITS = (
    "Exit codes: 0 holds · 1 violated or diverged · 2 usage · 3 undetermined: nothing was checked, or "
    "something required was not · 4 could not run · 130 Ctrl-C."
)

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

STYLES = {
    "known": "yellow",
    "holds": "green",
    "violated": "bold red",
    "not applicable": "dim",
    "not checked": "yellow",
}


P = ParamSpec("P")


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Turn every error of ours into one line and the exit code that it has."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (tracefile.BadTrace, BadBaseline, BadReport) as error:
            message, code = str(error), 2
        except (StartOnceError, OSError) as error:
            message, code = str(error), 4
        except KeyboardInterrupt:
            message, code = "interrupted", 130
        else:
            return
        err.print(escape(f"startonce: {message}"))
        raise typer.Exit(code)

    return wrapped


@contextlib.contextmanager
def progress(total: int, what: str = "checking") -> Iterator[Callable[[int], None]]:
    """Show progress on a terminal; gives what adds to it."""
    bar = Progress(
        TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=err, transient=True, disable=not err.is_terminal,
    )  # fmt: skip
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


def usage(message: str) -> NoReturn:
    """Refuse how a command was called."""
    raise typer.BadParameter(message)
