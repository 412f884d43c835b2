"""A trace of the model's starts, performed by real starts over a real SQLite database.

An exploration says what can happen. Here the same thing is done: whoever moves in the trace moves in
reality (`real_starts.py`), and what befalls him in the trace befalls him there. After every step the
database is read and held against the model's world. What was observed is a `World` again, so that the
properties of the model judge the real run.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from startonce.checker.starts import event_text, explored
from startonce.model.faults import first, steps
from startonce.model.properties import properties
from startonce.model.world import Event, Scope, World
from startonce.oracle.broken.callers import Starts, Undutiful
from startonce.real_starts import Stage

COMPARED = ("rows", "locks", "executed", "won", "closed", "drained", "late")
"""What of a world is held against the model's. Where callers stand shows in what they do next."""


class Judged(NamedTuple):
    """On how many steps a property spoke, and the first step that broke it, counted from 1."""

    evaluated: int
    broken_at: int | None


class Rehearsed(NamedTuple):
    """How a trace went in reality.

    For the first `agreed` steps what happened and what was there is what the model says; `parted` says
    what differed then, and is empty if nothing did. `events` are what was really done, also after that,
    and `worlds` what was observed: before anything, and after each event.
    """

    agreed: int
    parted: str
    events: tuple[Event, ...]
    worlds: tuple[World, ...]

    def judged(self, scope: Scope) -> dict[str, Judged]:
        """Judge what was observed by every property that the scope must keep."""
        found = {}
        for name, one in properties(scope).items():
            observed = zip(self.worlds, self.events, self.worlds[1:], strict=False)
            verdicts = [one.check(w, e, v) for w, e, v in observed]
            evaluated = sum(verdict is not None for verdict in verdicts)
            found[name] = Judged(evaluated, verdicts.index(False) + 1 if False in verdicts else None)
        return found


class Harm(NamedTuple):
    """The shortest trace to the harm that a broken start does, and how it was performed.

    `came_about` says that the start followed the trace to its end and that the property fell there, in
    reality. `seconds` is how long searching and performing took.
    """

    trace: tuple[Event, ...]
    rehearsed: Rehearsed
    came_about: bool
    seconds: float


def kill(one: Undutiful) -> Harm:
    """Search the shortest trace to the harm that broken starts do, and perform it."""
    begun = time.perf_counter()
    if one.scope.without:
        trace = explored(one.scope, stop_at=[one.breaks]).findings[one.breaks].trace or ()
        done = rehearse(one.starts, trace, one.scope)
        came_about = not done.parted and done.judged(one.scope)[one.breaks].broken_at == len(trace)
        return Harm(trace, done, came_about, time.perf_counter() - begun)
    for trace in shortest_first(one.scope):
        done = rehearse(one.starts, trace, one.scope)
        broken_at = done.judged(one.scope)[one.breaks].broken_at if one.breaks else done.agreed + 1
        if done.parted and broken_at is not None:
            return Harm(done.events[:broken_at], done, True, time.perf_counter() - begun)
    return Harm((), done, False, time.perf_counter() - begun)


def shortest_first(scope: Scope) -> Iterator[tuple[Event, ...]]:
    """Give a shortest trace to every step out of every reachable world of a scope, in order of length."""
    out_of, start = steps(scope), first(scope)
    frontier: list[tuple[World, tuple[Event, ...]]] = [(start, ())]
    seen = {start}
    while frontier:
        reached = []
        for world, path in frontier:
            for event, after in out_of(world):
                yield (*path, event)
                if after not in seen:
                    seen.add(after)
                    reached.append((after, (*path, event)))
        frontier = reached


def along(scope: Scope, trace: Sequence[Event]) -> tuple[World, ...]:
    """Return the worlds of the model along a trace. Raises `ValueError` for a step it has not."""
    paths, out_of = [[first(scope)]], steps(scope)
    for number, event in enumerate(trace, 1):
        # Two writes on their way can differ in nothing that their events say: more than one path.
        paths = [[*path, after] for path in paths for label, after in out_of(path[-1]) if label == event]
        if not paths:
            raise ValueError(f"step {number}, {event_text(event)}, is not possible in this scope")
    return tuple(paths[0])


def rehearse(starts: Starts, trace: Sequence[Event], scope: Scope) -> Rehearsed:
    """Perform a trace of a scope by real starts, under the durable lock that they have.

    Where they part from it the schedule goes on all the same: who moves, and what befalls him. After it
    whoever has begun is let go on to his end, so that what must eventually hold is judged too. Raises
    `ValueError` for a trace that the scope has not, or a scope with a transient lock.
    """
    if not scope.durable:
        raise ValueError("real starts have a durable lock")
    model = along(scope, trace)
    events: list[Event] = []
    agreed = 0
    with TemporaryDirectory() as folder, ExitStack() as stack:
        stage = Stage(Path(folder) / "app.db", scope, starts, stack)
        stage.prepare(trace, model)
        worlds = [stage.observed(model[0])]
        parted = _difference(model[0], worlds[0])
        for event, w, v in zip(trace, model, model[1:], strict=False):
            events.append(stage.perform(event, w, v))
            worlds.append(stage.observed(v, worlds[-1]))
            if not parted and events[-1] != event:
                parted = f"expected {event_text(event)}, observed {event_text(events[-1])}"
            parted = parted or _difference(v, worlds[-1])
            agreed += not parted
        for event in stage.finish() if parted else ():
            events.append(event)
            worlds.append(stage.observed(model[-1], worlds[-1]))
    return Rehearsed(agreed, parted, tuple(events), tuple(worlds))


def _difference(model: World, real: World) -> str:
    for field in COMPARED:
        expected, observed = getattr(model, field), getattr(real, field)
        if expected != observed:
            return f"{field}: expected {expected}, observed {observed}"
    return ""
