"""Generates `docs/track-record.md`: every public bug report, played again here, and who has that bug.

`python -m startonce.record docs/track-record.md` writes the page. `show` and `run` serve `startonce replay
--reported`.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from startonce.checker.starts import HAZARDS, Shown, columns
from startonce.exploring import hazards
from startonce.oracle.mutants import MUTANTS
from startonce.oracle.reported import REPORTED
from startonce.oracle.reports.kinds import Hazard, Probe, Reported, Scene, Scripted, Starts, Trace
from startonce.oracle.reports.notation import Line, events, parsed, table_text
from startonce.oracle.reports.play import OnModel, Unable, play
from startonce.replaying import caught, is_ours, run, under

__all__ = ["page", "run", "show"]

WIDEST = 128
"""Columns up to which callers stand beside each other."""

TESTS = "tests/test_reported.py"

# --- a report as text -------------------------------------------------------------------------------------


def show(id: str) -> list[str]:
    """Return a report as lines: what went wrong, what is right, and its scenes in columns."""
    one = REPORTED[id]
    draft = "the protocol as it was first described"
    lines = [
        f"{one.id}  {one.symptom}",
        f"     right    {one.right}",
        f"     seen in  {', '.join(one.seen_in) or (draft if id.startswith('X') else 'a small project')}",
        f"     clauses  {', '.join(one.clauses)}",
    ]
    for scene in one.scenes:
        title = heading(scene)
        lines += ["", *([f"     {title}"] if title else []), *picture(scene)]
        if isinstance(scene, Hazard):
            for durable in (False, True):
                if (found := under(scene.id, durable=durable)) is not None:
                    lines += [f"     {'durable' if durable else 'transient'} lock", *hazard_picture(found)]
    return lines


def heading(scene: Scene) -> str:
    """Say in words what a scene is, where its lines do not say it."""
    match scene:
        case Trace(title=title) | Starts(title=title):
            return title if is_ours(scene) else f"{title} (in {TESTS} alone)"
        case Hazard(id):
            (hazard,) = (one for one in HAZARDS if one.id == id)
            return f"hazard {id}: {hazard.sentence}"
        case Probe(clause, sentence):
            return f"the probes of {clause}: {sentence}"
        case Scripted(sentence):
            return f"a script: {sentence}"


def picture(scene: Scene) -> list[str]:
    """Return the lines of a scene in columns; none where it has no trace of its own."""
    if isinstance(scene, Starts):
        trace, there = events(scene.text)
        return [*_trimmed(columns(trace)), f"     = {there}"]
    return _columns(scene) if isinstance(scene, Trace) else []


def hazard_picture(found: Shown) -> list[str]:
    """Return the shortest trace to a hazard in columns."""
    return _trimmed(columns(found.trace))


def _trimmed(lines: Iterable[str]) -> list[str]:
    return [line.rstrip() for line in lines]


def _columns(trace: Trace) -> list[str]:
    """Return a trace with a column for each caller, and one for what is there after each step."""
    steps = _with_tables(trace)
    names = sorted({line.caller for line, _ in steps if line.caller})
    # A text begins with the name of its caller: its two characters are the space between the columns.
    widths = {name: max(len(line.text) for line, _ in steps if line.caller == name) for name in names}
    beside = 5 + sum(widths.values()) + max(len(there) for _, there in steps) <= WIDEST
    lines = ["     " + "".join(f"{name:<{widths[name]}}" for name in names)] if beside else []
    number, known = 0, ""
    for line, there in steps:
        number += line.do != "table"
        if line.do == "table":
            lines += [f"     {line.text}"] * (line.expected != known)  # else it stands there already
        elif not line.caller:
            lines.append(f"{number:>3}  -- {line.text[2:]} --")
        elif beside:
            cells = [f"{line.text[2:] if name == line.caller else '':<{widths[name]}}" for name in names]
            lines.append(f"{number:>3}  {''.join(cells)}{there}")
        else:
            lines.append(f"{number:>3}  {line.text:<{max(widths.values()) + 2}}{there}")
        known = there
    return _trimmed(lines)


def _with_tables(trace: Trace) -> list[tuple[Line, str]]:
    """Give each line of a trace with what is there after it, as far as the model can tell."""
    model = OnModel()
    try:
        if trace.driver:
            raise Unable("the model has no driver")
        return [(one.line, table_text(model.dump())) for one in play(trace.text, model)]
    except Unable:
        return [(line, "") for line in parsed(trace.text)]


# --- the page ---------------------------------------------------------------------------------------------

INTRODUCTION = """\
# Track record

Systems that start something once have gone wrong in public before. Here are {reports} reports: {issues}
issues and pull requests of {projects} projects, others of small projects without a link (B), and {holes}
holes that this protocol had itself when it was first described (X). Each of them is data
([`oracle/reported.py`](../oracle/reported.py)): an interleaving with the answers and tables that are right,
written down and not computed. The model is held against it, and so are our store in memory and on a WAL
file, our own starts, and {mutants} broken implementations that make the very mistake: each of those fails
in the scene of the report, and the page says where. All of it is generated by
`python -m startonce.record docs/track-record.md`, and a test fails where it is stale.

To read a trace: a column for each caller, and on the right what is there after the step, by the model.
`insert` behind a bar says that the caller is held behind that statement; it *goes on* later. What befalls a
statement stands in parentheses, `@7` is a reading of the clock, and the right answer follows an arrow. A
last line with `=` is all there is in the end, where it matters with the times at which a row was made and
changed. A trace of whole starts names one statement a line, and the run that it is about; `ran r1` says
that the run was executed once.
"""


def page() -> str:
    """Return the whole page."""
    found = {one.id: _mutants(one) for one in REPORTED.values()}
    issues = {issue for one in REPORTED.values() for issue in one.seen_in}
    introduction = INTRODUCTION.format(
        reports=len(REPORTED),
        issues=len(issues),
        projects=len({issue.partition("#")[0] for issue in issues}),
        holes=sum(one.id.startswith("X") for one in REPORTED.values()),
        mutants=len({name for names in found.values() for name in names}),
    )
    lines = [introduction, *_table(found), "", "## Each of them, played again", ""]
    for one in REPORTED.values():
        lines += _section(one, found[one.id])
    return "\n".join([*lines, *_hazards()]).rstrip() + "\n"


def _mutants(one: Reported) -> dict[str, str]:
    """Return the broken implementations that have this bug, each with where it fails."""
    claimed = {name: caught(mutant, one) for name, mutant in MUTANTS.items() if one.id in mutant.seen}
    return {name: where for name, where in claimed.items() if where}


def _table(found: dict[str, dict[str, str]]) -> Iterator[str]:
    yield "| | seen in | what went wrong | clause | what is right here | who has that bug |"
    yield "|---|---|---|---|---|---|"
    for one in REPORTED.values():
        cells = (
            f"[{one.id}](#{one.id.lower()})",
            _links(one),
            one.symptom,
            ", ".join(one.clauses),
            one.right,
            ", ".join(found[one.id]) or "nobody",
        )
        yield f"| {' | '.join(cells)} |"


def _links(one: Reported) -> str:
    links = []
    for issue in one.seen_in:
        repository, _, number = issue.partition("#")
        links.append(f"[{issue}](https://github.com/{repository}/issues/{number})")
    return ", ".join(links) or ("our own draft" if one.id.startswith("X") else "a small project")


def _section(one: Reported, mutants: dict[str, str]) -> Iterator[str]:
    yield from (f"### {one.id}", "", f"{one.symptom[0].upper()}{one.symptom[1:]}. Right: {one.right}.", "")
    if one.documented:
        yield from (f"By design; [{one.documented}](../{one.documented}) says so.", "")
    for scene in one.scenes:
        title, lines = heading(scene), picture(scene)
        if isinstance(scene, Hazard):
            title = f"[{title[0].upper()}{title[1:]}](#{scene.id.lower()})"
        if title:
            yield from (f"{title[0].upper()}{title[1:]}{':' if lines else '.'}", "")
        if lines:
            yield from ("```", *lines, "```", "")
    for name, where in mutants.items():
        yield f"- *{name}*: {_code(where)}"
    yield from (*([""] if mutants else []), "```sh", f"startonce replay --reported {one.id}")
    yield from (f'startonce mutants "{name}"' for name in mutants)
    yield from (f"startonce explore --hazard {s.id}" for s in one.scenes if isinstance(s, Hazard))
    if not all(map(is_ours, one.scenes)):
        yield f"pytest {TESTS} -k {one.id}"
    yield from ("```", "")


def _code(where: str) -> str:
    """Put what a line says into a code span, and what was observed behind it."""
    line, colon, observed = where.rpartition(": observed ")
    if not colon or where.startswith("parts"):
        return where
    return f"`{line}`, and {'there is' if line.startswith('= ') else 'it answers'} `{observed}`"


def _hazards() -> Iterator[str]:
    yield from ("## The hazards", "")
    yield from ("What the protocol really has, with the shortest trace under each lock.", "")
    shown = hazards()
    for hazard in HAZARDS:
        yield from (f"### {hazard.id}", "", f"{hazard.sentence[0].upper()}{hazard.sentence[1:]}.", "")
        yield from (f"Prevented by {hazard.prevented_by}.", "")
        under_each = [one for one in shown if one.hazard == hazard]
        for found in under_each:
            lock = "durable" if found.durable else "transient"
            breaks = f"breaks “{found.broken}”" if found.broken else f"leaves {hazard.leaves}"
            keeps = f"; “{hazard.durable_keeps}” holds" if found.durable and hazard.durable_keeps else ""
            yield from (f"{lock.capitalize()} lock, {len(found.trace)} steps, {breaks}{keeps}:", "")
            yield from ("```", *hazard_picture(found), "```", "")
        if len(under_each) == 1:
            yield from ("Under the other lock nothing of this kind can happen.", "")
        yield from ("```sh", f"startonce explore --hazard {hazard.id}", "```", "")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), "utf-8")
