"""Every picture by name, what shows each clause, and the pictures of a trace file.

`startonce.draw` knows the model and nothing else; what a picture needs of the checker, of the statements or
of a trace is put together here.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from startonce import drawing_facts
from startonce.checker.explore import explore
from startonce.checker.starts import HAZARDS, Hazard, Shown, explored, show
from startonce.draw import pictures
from startonce.draw.faults import Steps, faults_source
from startonce.draw.graph import graph_source
from startonce.draw.inputs import inputs_source
from startonce.draw.lanes import Lanes
from startonce.draw.pictures import PICTURES, Picture, lanes_picture
from startonce.draw.schema import schema_source
from startonce.draw.shows import SHOWS
from startonce.draw.start_lanes import start_lanes
from startonce.draw.started import meanings, started_source
from startonce.model.faults import first, steps
from startonce.model.properties import properties
from startonce.model.world import STARTED, Budget, Event, Scope, World

__all__ = ["SHOWS", "every", "hazard_lanes", "write"]


def every() -> Mapping[str, Picture]:
    """Return every picture by name. Nothing is computed before one is drawn."""
    return _EVERY


def write(name: str, folder: Path, formats: Sequence[str] = ("svg", "dot")) -> list[Path]:
    """Draw a picture into a folder, one file for each format; return the files.

    The formats are svg, dot, png and, where a picture has it, mermaid. All are drawn before a file is
    written. Raises `UnknownPicture`, `UnknownFormat`, `NoMermaid`, `EngineMissing`, `DrawingFailed`.
    """
    return pictures.write(name, folder, formats, _EVERY)


# --- read off the steps of the model ----------------------------------------------------------------------


def _steps(scope: Scope) -> Steps:
    """Give every step of a scope, in the order in which it is found."""
    out_of = steps(scope)
    for w in explored(scope).parents:
        for e, v in out_of(w):
            yield w, e, v


def _faults() -> str:
    """Strike a start with one fault at a time, as few callers around it as can be."""
    kinds = ({"crashes": 1}, {"unknowns": 1}, {"late": 1}, {"refusals": 2}, {"stale": 1})
    alone = [{"flips": 1, **kind} for kind in kinds]
    scopes = [Scope(callers=1, budget=Budget(**kinds)) for kinds in alone]
    scopes += [Scope(callers=1, budget=Budget(flips=1, crashes=1, unknowns=1, refusals=1))]
    scopes += [Scope(callers=2, budget=Budget(**kinds)) for kinds in alone]
    return faults_source([_steps(scope) for scope in scopes])


def _started() -> str:
    """Let everybody end one caller's start who may; and the next caller, where it crashed."""
    by_anybody = Budget(cancels=1, frees=1, settles=1, flips=1)
    ends = [
        meanings(n, _steps(Scope(n, budget=budget)))
        for n, budget in ((1, by_anybody), (2, Budget(crashes=1)))
    ]
    return started_source(ends)


def _two_callers() -> str:
    scope = Scope()
    return graph_source(tuple(explored(scope).parents), steps(scope))


# --- interleavings ----------------------------------------------------------------------------------------


@cache
def _shown(hazard: Hazard, durable: bool) -> Shown:
    found = show(hazard, durable)
    assert found is not None, f"{hazard.id} does not concern this lock"
    return found


def _is_worse_transient(hazard: Hazard) -> bool:
    """Whether a transient lock lets more harm come about than a durable one."""
    return bool(hazard.transient and hazard.durable) and hazard.transient != hazard.durable


def hazard_lanes(shown: Shown) -> Lanes:
    """Return a hazard as lanes: its shortest trace, what it breaks or leaves, and what prevents it."""
    hazard, scope = shown.hazard, shown.hazard.scope._replace(durable=shown.durable)
    lock = "durable" if shown.durable else "transient"
    ends = [f"It leaves {hazard.leaves}."] if hazard.leaves else []
    if shown.broken:
        broken = properties(scope)[shown.broken]
        ends.append(f'Broken: "{broken.sentence}" ({", ".join(broken.clauses)}).')
        if shown.durable and hazard.durable_keeps:
            kept = properties(scope)[hazard.durable_keeps]
            ends.append(f'It holds all the same: "{kept.sentence}" ({", ".join(kept.clauses)}).')
    if not shown.as_documented:
        ends.append("NOT AS DOCUMENTED.")
    return start_lanes(
        scope,
        shown.trace,
        hazard.id,
        f"{hazard.id}: {hazard.sentence}",
        [f"With a {lock} lock; the shortest way. Prevented by {hazard.prevented_by}."],
        ends,
        harm=bool(shown.broken),
    )


def _hazards() -> Iterator[tuple[str, Picture]]:
    """Give a picture of each hazard; a second one where a durable lock lets less harm come about."""
    for hazard in HAZARDS:
        if _is_worse_transient(hazard):
            yield hazard.id, _hazard(hazard, durable=False)
            yield f"{hazard.id}-durable", _hazard(hazard, durable=True)
        else:
            yield hazard.id, _hazard(hazard, durable=True)


def _hazard(hazard: Hazard, durable: bool) -> Picture:
    lock = "durable" if durable else "transient"
    return lanes_picture(
        f"{hazard.id} with a {lock} lock, the shortest way: {hazard.sentence}",
        lambda: hazard_lanes(_shown(hazard, durable)),
    )


DRAIN = Scope(callers=3, keys=2, budget=Budget(flips=2))
"""A deployment that is drained: three callers, two keys, the fence there and back."""


def _begins_to_execute(w: World, e: Event, v: World) -> bool:
    return e.what == "holder" and v.callers[e.who].at == "work"


def _is_held_at_the_fence(w: World, e: Event, v: World) -> bool:
    return e.what == "claim" and v.rows[1] is not None and v.rows[1].state is STARTED


WAY = (
    ("an execution holds its lock", _begins_to_execute),
    ("another caller has won a claim", _is_held_at_the_fence),
    ("the fence closes", lambda w, e, v: e.what == "closes the fence"),
    ("a start is refused", lambda w, e, v: e.answer == "fenced"),
    ("nothing executes any more", lambda w, e, v: v.drained),
    ("the fence opens", lambda w, e, v: e.what == "opens the fence"),
    ("the refused key is started", lambda w, e, v: e.answer == "started" and e.key == 1),
)
"""A drain, by what must come about one after another; between two of them the shortest way is taken."""


def drain_lanes() -> Lanes:
    """Return a drain as lanes: close, wait, migrate, open, and the refused key starts its run."""
    world, trace = first(DRAIN), []
    out_of = steps(DRAIN)
    closed = drained = 0
    for words, reached in WAY:
        never = {words: lambda w, e, v, reached=reached: not reached(w, e, v)}
        way = explore(world, out_of, never, stop_at=[words]).findings[words].trace
        assert way is not None, f"no way to it: {words}"
        for event in way:
            world = next(after for label, after in out_of(world) if label == event)
            trace.append(event)
            closed = closed or (len(trace) if world.closed else 0)
            drained = drained or (len(trace) if world.drained else 0)
    return start_lanes(
        DRAIN,
        trace,
        "drain",
        "Drain, migrate, reopen",
        [
            "Whoever executes when the fence closes goes on to the end; whoever has not begun is refused.",
            f"From step {drained} to the opening nothing executes: this is when to migrate.",
        ],
        [
            f"Closed at step {closed}, drained at step {drained}; "
            "the refused key starts the same run (STA-5, STA-11)."
        ],
    )


_EVERY: Mapping[str, Picture] = {
    **PICTURES,
    "inputs": Picture(
        "what is refused, before any statement or by the database; what is another key",
        lambda: inputs_source(drawing_facts.inputs()),
    ),
    "schema": Picture(
        "the schema, and what lives in one database", lambda: schema_source(drawing_facts.tables())
    ),
    "started": Picture("what a started row can mean, and who may end it", _started),
    "faults": Picture("where each fault can strike a start, and what follows", _faults),
    "two-callers": Picture("two callers of one key: every state, every step", _two_callers),
    "drain": lanes_picture(
        "a drain: close, wait, migrate, reopen, and the refused key starts", drain_lanes
    ),
    **dict(_hazards()),
}
