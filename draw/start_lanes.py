"""A trace of starts as lanes: the model's events, with what was stored at each of them.

An event does not say what the world was; so the trace is walked again through the model's own steps, and a
trace that the model does not have is refused.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from startonce.draw.lanes import Actor, Acts, Lanes, Mark, Step
from startonce.draw.look import ABSENT
from startonce.draw.replies import letter, lock_text, reply_text, row_text, run_name
from startonce.model.errors import StartOnceError
from startonce.model.faults import first, steps
from startonce.model.reservation import State
from startonce.model.start import PROGRAM, TRANSIENT
from startonce.model.world import HOST, Event, Lock, Scope, World

Walk = list[tuple[World, Event, World]]


class NoSuchTrace(StartOnceError):
    """A trace that the model does not have within its scope."""


def walk(scope: Scope, trace: Sequence[Event]) -> Walk:
    """Return each event with the world before and after it. Raises `NoSuchTrace`."""
    out_of = steps(scope)
    # Events that read alike may lead to several worlds: all are kept, each with the way to it.
    ways: dict[World, Walk] = {first(scope): []}
    for number, event in enumerate(trace, 1):
        reached: dict[World, Walk] = {}
        for world, way in ways.items():
            for label, after in out_of(world):
                if label == event:
                    reached.setdefault(after, [*way, (world, event, after)])
        if not reached:
            raise NoSuchTrace(f"step {number} cannot happen here: {event.what} {event.fault}".strip())
        ways = reached
    return next(iter(ways.values()))


Thing = tuple[str, Callable[[World], Mark]]
"""Something stored: its name, and what it is in a world."""


def start_lanes(
    scope: Scope,
    trace: Sequence[Event],
    name: str,
    title: str,
    captions: Sequence[str] = (),
    ends: Sequence[str] = (),
    harm: bool = False,
) -> Lanes:
    """Return a trace of starts as lanes; with `harm` its last step is drawn as harm.

    Raises `NoSuchTrace`.
    """
    walked = walk(scope, trace)
    things = list(_things(scope, walked))
    names = sorted({e.who for e in trace if e.who >= 0})
    actors = [_actor(who, scope) for who in names]
    if any(e.who == HOST for e in trace):
        actors.append(Actor("host", "host"))
        names.append(HOST)
    made = []
    for number, (w, e, v) in enumerate(walked, 1):
        changes = tuple((place, now(v)) for place, (_, now) in enumerate(things) if now(w) != now(v))
        said = _step(scope, w, e)
        if v.drained and not w.drained:
            said = said._replace(told=f"{said.told}; drained" if said.told else "drained")
        made.append(
            said._replace(who=names.index(e.who), changes=changes, harm=harm and number == len(walked))
        )
    return Lanes(
        name,
        title,
        tuple(captions),
        tuple(actors),
        tuple(thing for thing, _ in things),
        tuple(now(walked[0][0]) for _, now in things) if walked else (),
        tuple(made),
        tuple(ends),
        harm,
    )


def _actor(who: int, scope: Scope) -> Actor:
    """Name a process: a caller by its letter; one that came later cancels or frees for an operator."""
    return Actor(letter(who)) if who < scope.callers else Actor(f"{letter(who)}, operator", "host")


def _things(scope: Scope, walked: Walk) -> Iterator[Thing]:
    """Give what is stored and concerns a trace: the rows, and the locks and the fence that change."""
    if not walked:
        return
    end = walked[-1][2]
    keys = sorted({e.key for _, e, _ in walked if e.who >= 0}) or [0]
    for key in keys:
        yield f"row k{key + 1}", _row_of(key)
    for run in range(len(end.locks)):
        if any(_lock(v, run) is not None for _, _, v in walked):
            yield f"{'lock' if scope.durable else 'mutex'} {run_name(run)}", _lock_of(run)
    if any(w.closed != v.closed for w, _, v in walked):
        yield "fence", _fence


def _row_of(key: int) -> Callable[[World], Mark]:
    def now(w: World) -> Mark:
        row = w.rows[key]
        return Mark(row_text(row), ABSENT if row is None else row.state)

    return now


def _lock_of(run: int) -> Callable[[World], Mark]:
    def now(w: World) -> Mark:
        lock = _lock(w, run)
        if lock is None:
            return Mark("not held", ABSENT)
        return Mark(lock_text(lock), State.TERMINAL if lock.ended else State.STARTED)

    return now


def _lock(w: World, run: int) -> Lock | None:
    return w.locks[run] if run < len(w.locks) else None


def _fence(w: World) -> Mark:
    return Mark("closed", State.STARTED) if w.closed else Mark("open", ABSENT)


# --- one step in words ----------------------------------------------------------------------------------


def _step(scope: Scope, w: World, e: Event) -> Step:
    text = e.what if e.run < 0 else f"{e.what} {run_name(e.run)}"
    acts: Acts = "event"
    told = ""
    if e.fault == "crashes before it":
        return Step(0, "crashes", "crash", fault=f"before {text}")
    if e.what == "work":
        acts = "work"
    elif e.who >= 0 and (statement := (PROGRAM if scope.durable else TRANSIENT).get(e.what)):
        acts = "writes" if statement.writes else "reads"
        if not e.fault or e.fault == "stale":
            told = reply_text(e.what, _reply(scope, w, e))
    elif e.fault == "lands late":
        acts = "writes"
    return Step(0, text, acts, told, e.fault, e.answer, heard=not e.fault.startswith("reply lost"))


def _reply(scope: Scope, w: World, e: Event) -> Any:
    """Return what a statement is told: by the primary, or by the replica that stayed behind."""
    c = w.callers[e.who]
    if c.at == "idle":
        return None  # an insert is told nothing
    if e.fault == "stale" and w.replica is not None:
        w = w._replace(rows=w.replica[0], locks=w.replica[1])
    _, reply = (PROGRAM if scope.durable else TRANSIENT)[e.what].effect(w, e.who, c)
    return reply
