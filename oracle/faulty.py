"""Every fault at every statement of every operation, from a few databases: what one caller can meet.

The walks of `edges.py` have many tables and callers and no faults; the machine has everything, by chance.
Here a single caller runs an operation to its end, with one fault at one of its statements. A statement
that lands late lands at once, or when its caller is done.
"""

from collections.abc import Iterator

from startonce.model.interleaving import Action, IllegalAction, World, act
from startonce.model.operations import PROGRAMS, READS, Call, Fault, upcoming
from startonce.model.reservation import EMPTY, NOTHING, Database, Lock, Reservation, State
from startonce.oracle.edges import Walked
from startonce.oracle.ledger import Ledger
from startonce.oracle.lockstep import take
from startonce.oracle.subject import FAULTS, STEPPING, Subject

OPERATIONS: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("reserve", ("k1", "r1")),
    ("reserve", ("k1", "r2")),
    ("claim", ("k1", "r1")),
    ("release", ("k1", "r1")),
    ("settle", ("r1",)),
    ("purge", (9, 10)),
    ("read", ("k1",)),
    ("for_runs", ("r1", "r2")),
    ("inventory", (None, 10)),
    ("take_lock", ("k1", "r1", "h1")),
    ("persist", ("r1", "h1", "{}")),
    ("lock_of", ("r1",)),
    ("cancel", ("r1",)),
    ("free", ("k1",)),
    ("fence", ()),
    ("close_fence", ()),
    ("open_fence", ()),
)


def databases() -> Iterator[Database]:
    """Give the databases that an operation begins on: each state of a row, and each kind of lock."""
    yield from (NOTHING, EMPTY)
    for state in State:
        yield EMPTY._replace(rows=(Reservation("k1", "r1", state, 1, 1),))
    started = EMPTY._replace(rows=(Reservation("k1", "r1", State.STARTED, 1, 1),), fence_closed=True)
    for holder, ended in (("h1", False), ("h1", True), ("h2", False), ("cancel", False), ("free", False)):
        key = None if holder == "cancel" else "k1"
        yield started._replace(locks=(Lock("r1", key, holder, ended, "[]" if ended else None, 1),))


def paths(start: Database, operation: str, args: tuple[object, ...]) -> Iterator[tuple[Action, ...]]:
    """Give an operation with each fault at each of its statements, and a crash before each of them."""
    plain = _to_its_end(start, (), operation, args)
    for place in range(len(plain)):
        before = plain[:place]
        if place:
            yield (*before, Action("crash", "A", now=place + 1))
        for fault in (Fault.NOT_APPLIED, Fault.LOST, Fault.LATE):
            if fault is Fault.LATE and plain[place].statement in READS:
                continue
            here = (*before, plain[place]._replace(fault=fault))
            if fault is not Fault.LATE:
                yield _to_its_end(start, here, operation, args)
                continue
            landed = (*here, Action("land", "A", now=place + 2))
            yield _to_its_end(start, landed, operation, args)
            ended = _to_its_end(start, here, operation, args)
            yield (*ended, Action("land", "A", now=len(ended) + 1))


def _to_its_end(
    start: Database, done: tuple[Action, ...], operation: str, args: tuple[object, ...]
) -> tuple[Action, ...]:
    """Return some actions, and after them the rest of an operation that they have begun."""
    world, actions = World(start), list(done)
    for action in done:
        world, _ = act(world, action)
    while not actions or world.call("A") is not None:
        now = len(actions) + 1
        statement = upcoming(world.call("A") or Call(operation, args, now))
        actions.append(Action("run", "A", operation, args, now, statement))
        world, _ = act(world, actions[-1])
    return tuple(actions)


def _creates(start: Database, operation: str) -> bool:
    """Whether an operation has to create a table first: those statements are walked in `edges.bare`."""
    missing = {"reservations": start.rows, "locks": start.locks, "fence": start.fence_closed}
    creates = [name.removeprefix("create ") for name in PROGRAMS[operation].creates]
    return any(missing.get(table, ()) is None for table in creates)


def walk_faults(subject: Subject, ledger: Ledger) -> list[Walked]:
    """Take every path on a subject; give what was walked."""
    if not {STEPPING, FAULTS} <= subject.capabilities:
        return []
    states = edges = effective = executed = 0
    for start in databases():
        if start == NOTHING and not subject.absent:
            continue
        states += 1
        for operation, args in OPERATIONS:
            if operation not in subject.capabilities or _creates(start, operation):
                continue
            for path in paths(start, operation, args):
                edges += 1
                effective += _writes(start, path)
                executed += taken(subject, ledger, start, path)
    return [Walked("faults", "1 key, each fault", states, edges, effective, executed)]


def _writes(start: Database, path: tuple[Action, ...]) -> bool:
    world = World(start)
    for action in path:
        world, _ = act(world, action)
    return world.db != start


def taken(
    subject: Subject, ledger: Ledger, start: Database, path: tuple[Action, ...], check: str = "edges"
) -> bool:
    """Take a path; False where the subject has statements of its own in between, which no fault befalls."""
    try:
        lockstep, found = take(subject, path, start, check)
    except IllegalAction:
        return False
    if found is not None:
        ledger.violated(found)
    ledger.count(lockstep.judged, check)
    return True
