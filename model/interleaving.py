"""Several callers and what befalls them: one action at a time, as a pure function of a `World`.

An action lets one caller run one statement (beginning an operation if it is idle), crashes it, lets a
late statement land, or changes what surrounds the callers: a replica that stays behind, and the
permission to write. A list of actions is an interleaving; a trace file is one. A statement that creates
the schema can be interleaved and its caller can crash; no other fault befalls it here.
"""

from typing import Any, Literal, NamedTuple

from startonce.model.inputs import admissible
from startonce.model.operations import (
    CREATE,
    INVALID,
    PROGRAMS,
    READS,
    Call,
    Ended,
    Fault,
    advance,
    land,
    upcoming,
)
from startonce.model.predicates import GOES_ON, Step
from startonce.model.reservation import NOTHING, Database

Do = Literal["run", "crash", "land", "pin", "unpin", "deny", "allow"]


class Action(NamedTuple):
    """One action. `now` is the clock reading, in milliseconds, UTC, with which an operation begins."""

    do: Do
    caller: str = ""
    operation: str = ""
    args: tuple[Any, ...] = ()
    now: int = 0
    statement: str = ""
    fault: Fault = Fault.NONE


class World(NamedTuple):
    """The database, the callers in the middle of something, and what surrounds them.

    `late` are statements on their way whose callers have gone on. `replica` is an older database that
    reads can be answered from. `denied` says that writes are refused.
    """

    db: Database = NOTHING
    calls: tuple[tuple[str, Call], ...] = ()
    late: tuple[tuple[str, Call], ...] = ()
    replica: Database | None = None
    denied: bool = False

    def call(self, caller: str) -> Call | None:
        """Return the operation that a caller has under way."""
        return next((call for name, call in self.calls if name == caller), None)

    def befalling(self, fault: Fault, statement: str) -> Fault:
        """Return the fault that befalls a statement, given that writes may be refused."""
        return Fault.NOT_APPLIED if self.denied and statement not in READS else fault


class IllegalAction(Exception):
    """An action that cannot happen in this world."""


def act(world: World, action: Action) -> tuple[World, Step | None]:
    """Take one action; give the world after it, and the step where a statement was run.

    Raises `IllegalAction`, and `UnexpectedStatement` for a statement that the operation does not have.
    """
    match action.do:
        case "run":
            return _run(world, action)
        case "crash":
            if world.call(action.caller) is None:
                raise IllegalAction(f"{action.caller} has nothing under way that could crash")
            return world._replace(calls=_without(world.calls, action.caller)), None
        case "land":
            return _land(world, action)
        case "pin":
            return world._replace(replica=world.db), None
        case "unpin":
            return world._replace(replica=None), None
        case "deny" | "allow":
            return world._replace(denied=action.do == "deny"), None
    raise IllegalAction(f"there is no action {action.do!r}")


def _run(world: World, action: Action) -> tuple[World, Step]:
    call = world.call(action.caller)
    if call is None:
        if action.operation not in PROGRAMS:
            raise IllegalAction(f"there is no operation {action.operation!r}")
        call = Call(action.operation, action.args, action.now)
        names = PROGRAMS[action.operation].arguments
        if names != ("run_ids",) and len(names) != len(action.args):
            raise IllegalAction(f"{action.operation} takes {', '.join(names) or 'nothing'}")
        if not admissible(call):
            step = Step(call, None, Fault.NONE, world.db, world.db, INVALID, world.db)
            return world, step
    elif action.operation and (call.operation, call.args) != (action.operation, action.args):
        raise IllegalAction(f"{action.caller} is in the middle of {call.operation}")
    statement = action.statement or upcoming(call)
    creating = statement in PROGRAMS[call.operation].creates
    fault = world.befalling(action.fault, statement)
    if creating and not (world.denied and CREATE[statement](world.db)[0] != world.db):
        fault = Fault.NONE
    reading = statement in READS
    if fault is Fault.STALE and not (reading and world.replica is not None):
        raise IllegalAction(f"{statement} cannot be answered by a replica here")
    if fault is Fault.LATE and reading:
        raise IllegalAction(f"{statement} is a read: it cannot land late")

    seen = world.db
    if fault is Fault.STALE and world.replica is not None:
        seen = world.replica
    after, then = advance(world.db, call, statement, fault, seen if reading else None)
    calls = _without(world.calls, action.caller)
    late = world.late
    if fault is Fault.LATE:
        late = (*late, (action.caller, call))
    if isinstance(then, Ended):
        answer = then.answer
    else:
        answer = GOES_ON
        calls = tuple(sorted((*calls, (action.caller, then)), key=lambda pair: pair[0]))
    step = Step(call, statement, fault, world.db, after, answer, seen)
    return world._replace(db=after, calls=calls, late=late), step


def whole(world: World, action: Action) -> tuple[World, Step]:
    """Run all statements of an operation, with nobody in between; give the world after it and one step.

    Raises `IllegalAction` as `act` does.
    """
    before = world.db
    world, step = _run(world, action)
    if world.call(action.caller) == step.call:  # there is no table: it is created, and the call goes on
        for name in PROGRAMS[action.operation].creates:
            if world.call(action.caller) is not None:
                world, step = _run(world, action._replace(statement=name))
    while world.call(action.caller) is not None:
        world, step = _run(world, action)
    call = Call(action.operation, action.args, action.now)
    return world, Step(call, None, step.fault, before, world.db, step.answer, before)


def _land(world: World, action: Action) -> tuple[World, None]:
    places = [place for place, (caller, _) in enumerate(world.late) if caller == action.caller]
    if not places:
        raise IllegalAction(f"nothing of {action.caller} is on its way")
    place, call = places[0], world.late[places[0]][1]
    after = world.db if world.denied else land(world.db, call, upcoming(call))[0]
    rest = world.late[:place] + world.late[place + 1 :]
    return world._replace(db=after, late=rest), None


def _without(calls: tuple[tuple[str, Call], ...], caller: str) -> tuple[tuple[str, Call], ...]:
    return tuple(pair for pair in calls if pair[0] != caller)


def canonical(world: World) -> World:
    """Forget the clock but for the order of last changes, so that equal situations are equal values."""
    order = sorted({row.updated_at for db in (world.db, world.replica) if db for row in db.rows or ()})
    rank = {time: place for place, time in enumerate(order)}

    def timeless(db: Database) -> Database:
        rows = db.rows and tuple(
            row._replace(created_at=0, updated_at=rank[row.updated_at]) for row in db.rows
        )
        locks = db.locks and tuple(lock._replace(created_at=0) for lock in db.locks)
        return db._replace(rows=rows, locks=locks)

    def still(calls: tuple[tuple[str, Call], ...]) -> tuple[tuple[str, Call], ...]:
        return tuple((caller, call._replace(now=0)) for caller, call in calls)

    return World(
        timeless(world.db),
        still(world.calls),
        still(world.late),
        world.replica and timeless(world.replica),
        world.denied,
    )
