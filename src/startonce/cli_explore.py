"""`startonce explore`: every interleaving of starts within a scope. Parses, calls, prints."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from startonce import exploring, memory
from startonce.console import guarded, out, usage
from startonce.model.errors import shown


@guarded
def explore(
    callers: Annotated[int, typer.Option(help="Callers, each a process.")] = 2,
    keys: Annotated[int, typer.Option(help="Keys that they start.")] = 1,
    attempts: Annotated[int, typer.Option(help="Starts that each caller may begin.")] = 1,
    crashes: Annotated[int, typer.Option(help="Crashes of a process between its statements.")] = 0,
    unknowns: Annotated[int, typer.Option(help="Writes applied with their reply lost.")] = 0,
    late: Annotated[int, typer.Option(help="Writes that land after their caller went on.")] = 0,
    refusals: Annotated[int, typer.Option(help="Writes not applied, and reads that fail.")] = 0,
    flips: Annotated[int, typer.Option(help="The fence closes, or opens again.")] = 0,
    purges: Annotated[int, typer.Option(help="Purges of a spent row.")] = 0,
    settles: Annotated[int, typer.Option(help="Settles from outside.")] = 0,
    cancels: Annotated[int, typer.Option(help="Cancels by an operator; durable lock.")] = 0,
    frees: Annotated[int, typer.Option(help="Frees by an operator; durable lock.")] = 0,
    stale: Annotated[int, typer.Option(help="Reads answered by a replica that stays behind.")] = 0,
    lock: Annotated[str, typer.Option(help="transient, durable, or both.")] = "durable",
    without: Annotated[list[str] | None, typer.Option(help="A duty that is no longer kept.")] = None,
    all_pairs: Annotated[
        bool, typer.Option("--pairs", help="Every pair of faults, with these callers and attempts.")
    ] = False,
    hazards: Annotated[bool, typer.Option("--hazards", help="Show H1 to H9, each with its trace.")] = False,
    hazard: Annotated[list[str] | None, typer.Option(help="Show one hazard, as H1.")] = None,
    max_memory: Annotated[int | None, typer.Option(help="MB; by default half of what is free.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the result as JSON.")] = None,
) -> None:
    """Explore starting runs: every interleaving of a scope, every property, every shortest trace."""
    if lock not in ("transient", "durable", "both"):
        usage(f"--lock {shown(lock)}: transient, durable, or both")
    for identifier in hazard or []:
        if identifier not in exploring.HAZARD_IDS:
            usage(f"there is no hazard {shown(identifier)}: {', '.join(exploring.HAZARD_IDS)}")
    if hazards or hazard:
        shown_ones = [found for found in exploring.hazards() if not hazard or found.hazard.id in hazard]
        for found in shown_ones:
            for line in exploring.hazard_report(found):
                out.print(escape(line))
        raise typer.Exit(0 if all(found.as_documented for found in shown_ones) else 1)
    most = max_memory * 2**20 if max_memory else memory.free() // 2
    if all_pairs:
        done = exploring.every_pair(lock, callers, attempts, most)
        for one in done:
            faults = " and ".join(kind for kind, n in one.scope.budget._asdict().items() if n)
            name = "durable" if one.scope.durable else "transient"
            out.print(
                f"{name:<10} {faults:<22} {one.result.states:>9,} states  depth {one.result.depth:>2}  "
                f"{'violated' if one.broken else 'holds' if one.result.complete else 'not whole'}"
            )
        out.print(f"{sum(one.result.states for one in done):,} states in {len(done)} scopes")
    else:
        budget = {
            "crashes": crashes, "unknowns": unknowns, "late": late, "refusals": refusals, "flips": flips,
            "purges": purges, "settles": settles, "cancels": cancels, "frees": frees, "stale": stale,
        }  # fmt: skip
        done = []
        for durable in exploring.durables(lock):
            try:
                scope = exploring.scope_of(callers, keys, attempts, budget, durable, without or [])
            except ValueError as error:
                usage(str(error))
            done.append(exploring.run(scope, most))
            for line in exploring.report(done[-1]):
                out.print(escape(line))
    if json_file is not None:
        exploring.write(json_file, done)
    if any(one.broken for one in done):
        raise typer.Exit(1)
    if not all(one.result.complete for one in done):
        raise typer.Exit(3)
