"""`startonce conform`: holds an adapter in any language against the model. Parses, calls, prints."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from startonce import conforming
from startonce.console import STYLES, guarded, out, progress, usage
from startonce.model.clauses import CLAUSES
from startonce.model.errors import shown
from startonce.oracle import baseline as baselines
from startonce.oracle import jsonlines, junit
from startonce.oracle import report as reports


@guarded
def conform(
    command: Annotated[
        list[str] | None, typer.Argument(help="After --: the command that starts the adapter; no shell.")
    ] = None,
    attach: Annotated[
        str | None, typer.Option(help="HOST:PORT of an adapter that you started yourself, on this machine.")
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that the adapter may take for a message.")] = 10.0,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer examples and interleavings.")] = False,
    seed: Annotated[int, typer.Option(help="The seed of the machine.")] = 1,
    require: Annotated[
        list[str] | None,
        typer.Option(help="A clause that must hold, or `all`; exit 3 if it was not checked."),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="A JSON file of known failures, each with a reason.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the report, JSON lines.")] = None,
    junit_file: Annotated[Path | None, typer.Option("--junit", help="Write the report, JUnit XML.")] = None,
    folder: Annotated[Path, typer.Option("--out", help="Where traces, pictures and vectors go.")] = Path(),
) -> None:
    """Hold another implementation, in any language, against the model: docs/oracle-protocol.md."""
    if bool(command) == bool(attach):
        usage("name one: a command after --, as in `startonce conform -- node adapter.mjs`, or --attach")
    for clause in require or []:
        if clause != "all" and clause not in CLAUSES:
            usage(f"there is no clause {shown(clause)}: `startonce clauses` prints them")
    required = set(CLAUSES) if "all" in (require or []) else set(require or [])
    known = None if baseline is None else baselines.load(baseline)
    asked = conforming.Asked(tuple(command or ()), attach, timeout, quick, seed)
    with progress(conforming.work_of(asked)) as done:
        found = conforming.run(asked, done)
    report = found.report
    judged = baselines.apply(report, known)
    out.print(escape(f"{report.subject}\n{report.tools} · seed {report.seed}\n"))
    for line in reports.counts(report):
        out.print(escape(line))
    out.print()
    for one in judged.clauses:
        out.print(escape(reports.verdict_line(one.verdict, one.outcome)), style=STYLES[one.outcome])
    explanations = conforming.explanations(found, asked, folder)
    for lines in explanations.values():
        out.print(escape("\n".join(["", *lines])))
    out.print()
    for line in (*reports.summary(report, judged.counts["known"]), *judged.lines):
        out.print(escape(line))
    code = baselines.exit_code(report, known, required)
    if json_file is not None:
        json_file.write_text(jsonlines.to_text(report, found.facts, asked.command, judged, code), "utf-8")
    if junit_file is not None:
        junit_file.write_text(junit.to_xml(report, judged, asked.command, explanations), "utf-8")
    if code:
        raise typer.Exit(code)
