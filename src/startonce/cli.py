"""The `startonce` command: parses, calls, prints. Exit codes are in `--help`."""

import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from startonce import (
    __version__,
    conforming,
    drawing,
    drawing_traces,
    mutating,
    record,
    traceability,
)
from startonce.checking import check as run_check
from startonce.checking import work_of
from startonce.cli_conform import conform
from startonce.cli_explore import explore
from startonce.console import EXITS, STYLES, guarded, out, progress, usage
from startonce.draw import pictures
from startonce.draw.engine import FORMATS
from startonce.impl.statements import ALL
from startonce.model.clauses import CLAUSES
from startonce.model.errors import shown
from startonce.model.interleaving import IllegalAction
from startonce.oracle import report as reports
from startonce.oracle import tracefile
from startonce.oracle.check import FULL, NOT_REPEATED, QUICK
from startonce.oracle.ledger import Divergence, Verdict
from startonce.oracle.reported import REPORTED
from startonce.own import SqlSubject

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Start reservations: starting a run once means once.\n\n" + EXITS,
)


def _version(asked: bool) -> None:
    if asked:
        out.print(f"startonce {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: startonce check --require CLM-4 --json verdicts.json")
@guarded
def check(
    database: Annotated[
        Path | None,
        typer.Argument(help="A SQLite file without reservations; by default a temporary WAL file."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The smaller scopes, a few seconds.")] = False,
    seed: Annotated[int, typer.Option(help="The seed of the machine.")] = 1,
    require: Annotated[
        list[str] | None,
        typer.Option(help="A clause that must hold, or `all`; exit 3 if it was not checked."),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the report as JSON.")] = None,
) -> None:
    """Hold the SQL implementation against the model and say, clause by clause, what holds."""
    required = _clauses(require or [])
    size = QUICK if quick else FULL
    with progress(work_of(size)) as done:
        report = run_check(database, quick=quick, seed=seed, progress=done)
    out.print(escape(f"{report.subject}\n{report.tools} · seed {report.seed}\n"))
    for line in reports.counts(report):
        out.print(escape(line))
    out.print()
    for verdict in report.verdicts:
        out.print(escape(reports.verdict_line(verdict)), style=STYLES[verdict.status])
    for verdict in report.of("violated"):
        _print_divergence(verdict, report.subject)
    out.print()
    for line in reports.summary(report):
        out.print(escape(line))
    if json_file is not None:
        text = json.dumps(reports.to_json(report), indent=1, default=shown) + "\n"
        json_file.write_text(text, "utf-8")
    missing = [v.clause for v in report.verdicts if v.clause in required and v.status == "not checked"]
    if missing:
        out.print(escape(f"required, and not checked: {', '.join(missing)}"))
    if report.of("violated"):
        raise typer.Exit(1)
    if missing or not report.of("holds"):
        raise typer.Exit(3)


app.command(epilog="Example: startonce conform --junit conform.xml -- node adapter.mjs")(conform)


@app.command(epilog="Example: startonce replay CLM-4.trace.json -- node adapter.mjs")
@guarded
def replay(
    trace: Annotated[Path | None, typer.Argument(help="A trace file, as `check` saves them.")] = None,
    command: Annotated[
        list[str] | None, typer.Argument(help="After --: the adapter to replay on; by default ours.")
    ] = None,
    attach: Annotated[str | None, typer.Option(help="HOST:PORT of an adapter that you started.")] = None,
    database: Annotated[
        str, typer.Option(help="The SQLite file to replay on; by default one in memory.")
    ] = ":memory:",
    reported: Annotated[
        str | None, typer.Option(help="Play a public bug report instead, as B13: see docs/track-record.md.")
    ] = None,
) -> None:
    """Repeat a trace on our implementation or on an adapter, and say whether it still diverges."""
    if reported is not None:
        if reported not in REPORTED:
            usage(f"there is no report {shown(reported)}: {', '.join(REPORTED)}")
        for line in record.show(reported):
            out.print(escape(line))
        held = record.run(reported)
        out.print(f"\n{reported}: {'answered as it must be' if held else 'NOT answered as it must be'}")
        raise typer.Exit(0 if held else 1)
    if trace is None:
        usage("name a trace file, or a report by --reported")
    start, actions, last = tracefile.load(trace)
    asked = conforming.Asked(tuple(command or ()), attach)
    subject = conforming.opened(asked) if command or attach else SqlSubject(database)
    try:
        found = conforming.again(subject, start, actions, last["check"])
    except IllegalAction as error:
        raise tracefile.BadTrace(trace.name, 2, f"no such interleaving: {error}") from error
    finally:
        subject.close()
    recorded = ", ".join(last["violates"])
    if found is None:
        out.print(f"agrees with the model in all {len(actions)} steps (recorded as violating {recorded})")
        return
    out.print(escape(f"{', '.join(found.clauses)} violated (recorded as violating {recorded})\n"))
    for line in reports.interleaving(found):
        out.print(escape(line))
    raise typer.Exit(1)


app.command(epilog="Example: startonce explore --unknowns 1 --flips 2 --callers 3 --without REL-4")(explore)


@app.command(epilog="Example: startonce mutants --json kills.json")
@guarded
def mutants(
    names: Annotated[list[str] | None, typer.Argument(help="Mutants, by name; by default all.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the table as JSON.")] = None,
) -> None:
    """Hold every broken implementation against the checks: each must be killed, or the oracle is blind."""
    for name in names or []:
        if name not in mutating.NAMES:
            usage(f"there is no mutant {shown(name)}; `startonce mutants` shows them all")
    chosen = tuple(names or mutating.NAMES)
    out.print(mutating.HEAD)
    kills = []
    with progress(len(chosen), "killing") as done:
        for kill in mutating.kills(chosen):
            kills.append(kill)
            out.print(escape(mutating.line(kill)), style="bold red" if kill.survived else None)
            done(1)
    for text in mutating.summary(kills):
        out.print(escape(text))
    if json_file is not None:
        json_file.write_text(json.dumps(mutating.to_json(kills), indent=1, default=shown) + "\n", "utf-8")
    if any(kill.survived for kill in kills):
        raise typer.Exit(1)


@app.command()
@guarded
def sql() -> None:
    """Print the schema and every statement, to be copied."""
    for statement in ALL:
        out.print(escape(f"-- {statement.name}\n{statement.sql};\n"))


@app.command()
@guarded
def clauses(
    json_file: Annotated[
        Path | None,
        typer.Option("--json", help="Write where each is said, held, broken and seen, as JSON."),
    ] = None,
) -> None:
    """Print every clause: id, kind, sentence."""
    for clause in CLAUSES.values():
        out.print(escape(f"{clause.id:<7} {clause.kind:<12} {clause.sentence}"))
    if json_file is not None:
        text = json.dumps(traceability.to_json(traceability.table()), indent=1) + "\n"
        json_file.write_text(text, "utf-8")


@app.command(epilog="Example: startonce draw lifecycle --format svg --out pictures")
@guarded
def draw(
    what: Annotated[
        str | None, typer.Argument(help="A picture, or a trace file; by default every picture.")
    ] = None,
    format_: Annotated[
        list[str] | None, typer.Option("--format", help="svg, dot, png, or mermaid where there is one.")
    ] = None,
    folder: Annotated[Path, typer.Option("--out", help="The folder to write to.")] = Path(),
) -> None:
    """Draw the pictures from the model, or a trace of yours."""
    every = drawing.every()
    if what is not None and what not in every and Path(what).exists():
        every = drawing_traces.of_file(Path(what))
    elif what is not None:
        if what not in every:
            usage(f"there is no picture and no file {shown(what)}: {', '.join(every)}")
        every = {what: every[what]}
    formats = tuple(format_ or ("svg", "dot"))
    for one in formats:
        if one not in (*FORMATS, pictures.MERMAID):
            usage(f"there is no format {shown(one)}: {', '.join((*FORMATS, pictures.MERMAID))}")
    for name, picture in every.items():
        wanted = tuple(one for one in formats if what is not None or one in picture.formats)
        for path in pictures.write(name, folder, wanted, every):
            out.print(escape(str(path)))


def _print_divergence(verdict: Verdict, subject: str) -> None:
    divergence = verdict.divergence
    assert divergence is not None
    out.print(escape(f"\n{verdict.clause} violated   {CLAUSES[verdict.clause].sentence}\n"), style="bold")
    for line in reports.interleaving(divergence):
        out.print(escape(line))
    out.print(escape(f"\n     found by {divergence.check}"))
    if divergence.check.endswith(NOT_REPEATED) or divergence.check == "probes":
        return
    path = _save(divergence, verdict.clause, subject)
    out.print(escape(f"     trace    startonce replay {path}"))


def _save(divergence: Divergence, clause: str, subject: str) -> Path:
    path = Path(f"{clause}.trace.json")
    path.write_text(tracefile.to_text(divergence, subject), "utf-8")
    return path


def _clauses(asked: list[str]) -> set[str]:
    if "all" in asked:
        return set(CLAUSES)
    for clause in asked:
        if clause not in CLAUSES:
            usage(f"there is no clause {shown(clause)}: `startonce clauses` prints them")
    return set(asked)


def main() -> None:
    """Run the command; the exit code says how it ended."""
    # Hypothesis keeps what it learns of Unicode in a folder: not in the one that a user stands in.
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", f"{tempfile.gettempdir()}/startonce-hypothesis")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    app()
