"""A trace of store operations as lanes: the model's actions, with what was stored at each of them.

The model takes the actions one after another. What was observed at the end, where it differs, is passed in.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from startonce.draw.lanes import Actor, Acts, Lanes, Mark, Step
from startonce.draw.look import ABSENT
from startonce.draw.text import cut
from startonce.model.errors import shown
from startonce.model.interleaving import Action, IllegalAction, World, act, whole
from startonce.model.operations import PROGRAMS, READS, Fault, UnexpectedStatement
from startonce.model.predicates import GOES_ON
from startonce.model.predicates import Step as Seen
from startonce.model.reservation import Database, State

DOES: Mapping[str, str] = {
    "crash": "crashes",
    "land": "its late statement lands",
    "pin": "a replica stays behind",
    "unpin": "the replica catches up",
    "deny": "writes are refused",
    "allow": "writes are allowed",
}
MOST = 4
"""Rows, and locks, that are drawn: those that the trace is about come first."""

Say = Callable[[Any], str]
"""How an answer is said in a few words."""
Thing = tuple[str, Callable[[Database], Mark]]


class Observed(NamedTuple):
    """What an implementation did at the last action: its answer, said, and its database."""

    answer: str
    database: Database


def store_lanes(
    start: Database,
    actions: Sequence[Action],
    say: Say,
    name: str,
    title: str,
    captions: Sequence[str] = (),
    ends: Sequence[str] = (),
    observed: Observed | None = None,
) -> Lanes:
    """Return a trace of actions as lanes; with `observed` its last step is drawn as it was, as harm.

    An action that the model does not have is drawn as that, and changes nothing.
    """
    taken, databases = _taken(start, actions)
    if observed is not None and taken:
        databases[-1] = observed.database
    things = list(_things(actions, [start, *databases]))
    names = sorted({action.caller for action in actions if action.caller})
    actors = [Actor(caller) for caller in names]
    if any(not action.caller for action in actions):
        actors.append(Actor("host", "host"))
        names.append("")
    made = []
    before = start
    for number, ((action, seen), db) in enumerate(zip(taken, databases, strict=True), 1):
        last = observed is not None and number == len(taken)
        step = _step(action, seen, say)
        if last and observed is not None:
            step = step._replace(answer=observed.answer, harm=True)
        changes = tuple((p, now(db)) for p, (_, now) in enumerate(things) if now(before) != now(db))
        made.append(step._replace(who=names.index(action.caller), changes=changes))
        before = db
    return Lanes(
        name,
        title,
        tuple(captions),
        tuple(actors),
        tuple(thing for thing, _ in things),
        tuple(now(start) for _, now in things),
        tuple(made),
        tuple(ends),
        observed is not None,
    )


Taken = list[tuple[Action, Seen | str | None]]
"""Each action with what came of it: a step, nothing, or why the model does not have it."""


def _taken(start: Database, actions: Sequence[Action]) -> tuple[Taken, list[Database]]:
    world = World(start)
    taken: Taken = []
    databases = []
    for action in actions:
        came: Seen | str | None
        try:
            world, came = _take(world, action)
        except (IllegalAction, UnexpectedStatement) as error:
            came = str(error)
        taken.append((action, came))
        databases.append(world.db)
    return taken, databases


def _take(world: World, action: Action) -> tuple[World, Seen | None]:
    """Take an action; one that names no statement is a whole operation."""
    if action.do == "run" and not action.statement and world.call(action.caller) is None:
        return whole(world, action)
    return act(world, action)


# --- what is stored -------------------------------------------------------------------------------------


def _things(actions: Sequence[Action], databases: Sequence[Database]) -> Iterator[Thing]:
    keys = dict.fromkeys(key for action in actions for key in _keys_of(action))
    keys |= dict.fromkeys(row.key for db in databases for row in db.rows or ())
    for key in list(keys)[:MOST] or ["k1"]:
        yield f"row {_id(key)}", _row_of(key)
    locks = dict.fromkeys(lock.run_id for db in databases for lock in db.locks or ())
    for run_id in list(locks)[:MOST]:
        yield f"lock {_id(run_id)}", _lock_of(run_id)
    if len({bool(db.fence_closed) for db in databases}) > 1 or databases[0].fence_closed:
        yield "fence", _fence


def _keys_of(action: Action) -> Iterator[str]:
    program = PROGRAMS.get(action.operation)
    for name, value in zip(program.arguments if program else (), action.args, strict=False):
        if name == "key" and isinstance(value, str):
            yield value


def _row_of(key: str) -> Callable[[Database], Mark]:
    def now(db: Database) -> Mark:
        if db.rows is None:
            return Mark("no table", ABSENT)
        row = db.row(key)
        return Mark("no row", ABSENT) if row is None else Mark(f"{_id(row.run_id)} {row.state}", row.state)

    return now


def _lock_of(run_id: str) -> Callable[[Database], Mark]:
    def now(db: Database) -> Mark:
        lock = db.lock(run_id)
        if lock is None:
            return Mark("not held", ABSENT)
        if lock.ended:
            return Mark(f"{_id(lock.holder)}, ended", State.TERMINAL)
        return Mark(f"held by {_id(lock.holder)}", State.STARTED)

    return now


def _fence(db: Database) -> Mark:
    return Mark("closed", State.STARTED) if db.fence_closed else Mark("open", ABSENT)


def _id(value: object) -> str:
    """Show a key, a run id or a holder: as it is where it is one, else so that it does no harm."""
    plain = isinstance(value, str) and value.isascii() and value.isprintable()
    return cut(value if plain and isinstance(value, str) else shown(value, 24), 16)


# --- one step in words ----------------------------------------------------------------------------------


def _step(action: Action, seen: Seen | str | None, say: Say) -> Step:
    if action.do != "run":
        return Step(0, DOES[action.do], "crash" if action.do == "crash" else "event")
    text = _call_text(action, seen)
    if isinstance(seen, str) or seen is None:
        return Step(0, text, "event", fault=f"not in the model: {cut(seen or '', 80)}")
    acts: Acts = "reads" if _reads(seen) else "writes"
    fault = "" if seen.fault is Fault.NONE else seen.fault.value
    answer = "" if seen.answer is GOES_ON else say(seen.answer)
    return Step(0, text, acts, "", fault, answer, heard=seen.fault not in (Fault.LOST, Fault.LATE))


def _call_text(action: Action, seen: Seen | str | None) -> str:
    operation, args = action.operation, action.args
    if isinstance(seen, Seen):
        operation, args = seen.call.operation, seen.call.args
    said = " ".join(_id(arg) for arg in args)
    text = cut(f"{operation} {said}".strip(), 48)
    if action.statement not in ("", operation, operation.replace("_", " ")):
        text += f": {action.statement}"
    return text


def _reads(seen: Seen) -> bool:
    if seen.statement:
        return seen.statement in READS
    return all(name in READS for name in PROGRAMS[seen.call.operation].statements)
