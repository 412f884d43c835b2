"""Generates the tables and traces of `docs/specification.md` from the model.

`python -m startonce.specification docs/specification.md` rewrites what stands between the marks.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from startonce import traceability
from startonce.checker import retry
from startonce.checker.starts import columns
from startonce.exploring import hazards
from startonce.model.clauses import CLAUSES
from startonce.model.operations import PROGRAMS, READS
from startonce.model.properties import ALWAYS, DURABLE_ONLY, EVENTUALLY
from startonce.model.world import Event


def operations() -> str:
    """Return the operations with their statements, as a table."""
    lines = ["| operation | statements | may create |", "|---|---|---|"]
    for name, program in PROGRAMS.items():
        steps = [f"{step}{'' if step in READS else ' (writes)'}" for step in program.statements]
        creates = ", ".join(step.removeprefix("create ") for step in program.creates) or "nothing"
        arguments = ", ".join(program.arguments)
        lines.append(f"| `{name}({arguments})` | {', '.join(steps)} | {creates} |")
    return "\n".join(lines)


def clauses() -> str:
    """Return the clauses as a table."""
    rows = [f"| {one.id} | {one.kind} | {one.sentence} |" for one in CLAUSES.values()]
    return "\n".join(["| clause | kind | |", "|---|---|---|", *rows])


def traced() -> str:
    """Return for every clause where the model says it, what holds it, what dies by it, what shows it."""
    lines = [
        "| clause | the model says it in | held by | mutants that die by it | seen in |",
        "|---|---|---|---|---|",
    ]
    for one in traceability.table():
        said = "<br>".join(
            f"[`{place.partition(': ')[2]}`](../{place.partition(': ')[0]})" for place in one.model
        )
        held = "<br>".join(f"`{check}`" if " " in check else check for check in one.checks)
        seen = "<br>".join(f"[{name}](diagrams/{name}.svg)" for name in one.pictures)
        lines.append(f"| {one.clause} | {said} | {held} | {'<br>'.join(one.mutants)} | {seen} |")
    return "\n".join(lines)


def properties() -> str:
    """Return the properties of starts as a table."""
    lines = ["| property | clauses | lock |", "|---|---|---|"]
    for name, one in {**ALWAYS, **EVENTUALLY}.items():
        durable = name in DURABLE_ONLY or name == "a lock is executed under"
        lines.append(f"| {one.sentence} | {', '.join(one.clauses)} | {'durable' if durable else 'both'} |")
    return "\n".join(lines)


def retries() -> str:
    """Return what a caller may do after a lost reply, with the trace that makes each no a no."""
    answers = retry.table()
    options = list(dict.fromkeys(answer.retry for answer in answers))
    lines = [f"| statement | {' | '.join(options)} |", f"|---|{'---|' * len(options)}"]
    for statement in retry.WRITES:
        cells = [
            "yes" if answer.allowed else f"**no**: “{answer.falls}” falls"
            for answer in answers
            if answer.statement == statement
        ]
        lines.append(f"| {statement} | {' | '.join(cells)} |")
    for answer in answers:
        if not answer.allowed:
            lock = "durable" if answer.durable else "transient"
            lines += [
                "",
                f"*{answer.statement}*, {answer.retry} ({lock} lock, {len(answer.trace)} steps):",
                "",
                _block(answer.trace),
            ]
    return "\n".join(lines)


def hazard_traces() -> str:
    """Return every hazard with its shortest trace."""
    lines = []
    for found in hazards():
        hazard = found.hazard
        lock = "durable" if found.durable else "transient"
        breaks = f"breaks “{found.broken}”" if found.broken else "comes about"
        kept = f"; “{hazard.durable_keeps}” holds" if found.durable and hazard.durable_keeps else ""
        lines += [
            f"**{hazard.id}** ({lock} lock, {len(found.trace)} steps): {hazard.sentence}; {breaks}{kept}. "
            f"Prevented by {hazard.prevented_by}."
            + (f" It leaves {hazard.leaves}." if hazard.leaves else ""),
            "",
            _block(found.trace),
            "",
        ]
    return "\n".join(lines).rstrip()


def _block(trace: tuple[Event, ...]) -> str:
    return "\n".join(["```", *(line.rstrip() for line in columns(trace)), "```"])


SECTIONS: Mapping[str, Callable[[], str]] = {
    "operations": operations,
    "clauses": clauses,
    "traceability": traced,
    "properties": properties,
    "retries": retries,
    "hazards": hazard_traces,
}


def generated(text: str) -> str:
    """Return a text with everything between its marks generated anew."""
    for name, section in SECTIONS.items():
        start, end = f"<!-- generated: {name} -->\n", "<!-- end -->"
        if text.count(start) != 1:
            raise ValueError(f"the mark of {name} must stand once, and stands {text.count(start)} times")
        before, rest = text.split(start)
        text = f"{before}{start}{section()}\n{end}{rest.split(end, 1)[1]}"
    return text


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(generated(page.read_text("utf-8")), "utf-8")
