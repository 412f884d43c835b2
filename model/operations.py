"""The operations: what a caller asks for, as the statements it takes, one after another.

`PROGRAMS` is the whole protocol of a single caller: for each operation its statements in order and how
their replies become the answer. A `Call` is an operation under way, a value like every other; so any
number of callers can be held between any two statements. `advance` runs one statement of one call.

    reserve    insert, read back      the insert is the race, the read-back is the result
    claim      one conditional UPDATE: exactly one caller changes the row
    release    the way back, for a start that the execution fence refused
    settle     the end of a run, by run id: the runtime does not know which key named it
    take_lock  insert, read holder    only a holder that reads back as mine is mine
    cancel     take the lock as cancel, read holder, settle
    free       look, take the lock as free, read holder, delete
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from startonce.model import reservation as r
from startonce.model.reservation import Database, Reservation


class Fault(StrEnum):
    """What can befall one statement."""

    NONE = "none"
    NOT_APPLIED = "not applied"  # certainly: busy, read-only, refused
    LOST = "reply lost"  # applied, and its caller never hears of it
    LATE = "late"  # its caller never hears of it, and it is applied later: see `land`
    STALE = "stale"  # a read, answered by a replica that lags


class Raised(NamedTuple):
    """The answer of an operation that ended with an error of this kind."""

    error: str


UNKNOWN = Raised("unknown outcome")
NOT_APPLIED = Raised("not applied")
UNREADABLE = Raised("unreadable")
VANISHED = Raised("vanished")
REFUSED = Raised("value refused")
INVALID = Raised("invalid")
TOO_MANY = Raised("too many runs")


class Reserved(NamedTuple):
    """The answer of `reserve`: the row read back. `created` never means "mine to start" (RSV-4)."""

    row: Reservation
    created: bool


class Holding(NamedTuple):
    """The answer of `take_lock`: mine, or another's with its holder, or nobody's (LCK-2)."""

    mine: bool
    holder: str | None


class Stopped(NamedTuple):
    """The answer of `cancel` and `free`: done, or refused and why; `result` of a run that has ended."""

    done: bool
    reason: str
    result: str | None = None


class Call(NamedTuple):
    """An operation under way: its arguments, its clock reading, and the replies heard so far.

    A reply that was lost is heard as None.
    """

    operation: str
    args: tuple[Any, ...]
    now: int
    heard: tuple[Any, ...] = ()


class Ended(NamedTuple):
    """A call that is over, and what it answered."""

    answer: Any


Apply = Callable[[Database, Call], tuple[Database, Any]]


class Program(NamedTuple):
    """An operation: its arguments, its statements in order, the answer, and what it may create first.

    `resolved` are statements whose lost reply is resolved by the read that follows; every other unknown
    outcome is raised as such (CLM-6). `early` gives the answer where an operation ends before its last
    statement, else None.
    """

    arguments: tuple[str, ...]
    statements: Mapping[str, Apply]
    answer: Callable[[Call], Any] = lambda call: call.heard[0]
    creates: tuple[str, ...] = ()
    resolved: tuple[str, ...] = ()
    early: Callable[[Call], Any] = lambda call: None


def _reserved(call: Call) -> Reserved | Raised:
    inserted, row = call.heard
    if row is None:
        return VANISHED
    return Reserved(row, created=inserted is True and row.run_id == call.args[1])


def _holding(call: Call) -> Holding:
    lock = call.heard[1]
    return Holding(lock is not None and lock.holder == call.args[2], lock and lock.holder)


def held_by(lock: r.Lock | None, wanted: str) -> Stopped | None:
    """Refuse what finds a lock that is not held as wanted; None where it is."""
    if lock is None:
        return Stopped(False, "nobody holds its lock")
    if lock.holder == wanted:
        return None
    if lock.holder in r.HOLDER_WORDS:
        return Stopped(False, f"a {lock.holder} holds its lock")
    if lock.ended:
        return Stopped(False, "it has ended", lock.result)
    return Stopped(False, "an execution holds its lock")


def _cancel(call: Call) -> Stopped | None:
    return held_by(call.heard[1], "cancel") if len(call.heard) == 2 else None


def _free(call: Call) -> Stopped | None:
    if call.heard[0] is None:
        return Stopped(False, "no row")
    row, lock = call.heard[0]
    if len(call.heard) == 3:
        return held_by(call.heard[2], "free")
    if len(call.heard) > 1 or (lock is not None and lock.holder == "free"):
        return None
    if row.state is not r.State.STARTED:
        return Stopped(False, f"it is {row.state}")
    return None if lock is None else held_by(lock, "free")


def _run_of(call: Call) -> str:
    run_id: str = call.heard[0][0].run_id
    return run_id


PROGRAMS: Mapping[str, Program] = {
    "reserve": Program(
        ("key", "run_id"),
        {
            "insert": lambda db, call: r.insert(db, call.args[0], call.args[1], call.now),
            "read back": lambda db, call: r.read(db, call.args[0]),
        },
        _reserved,
        creates=("create reservations", "create locks", "create index"),
        resolved=("insert",),
    ),
    "claim": Program(
        ("key", "run_id"), {"claim": lambda db, call: r.claim(db, call.args[0], call.args[1], call.now)}
    ),
    "release": Program(
        ("key", "run_id"), {"release": lambda db, call: r.release(db, call.args[0], call.args[1], call.now)}
    ),
    "settle": Program(("run_id",), {"settle": lambda db, call: r.settle(db, call.args[0], call.now)}),
    "read": Program(("key",), {"read": lambda db, call: r.read(db, *call.args)}),
    "for_runs": Program(("run_ids",), {"for runs": lambda db, call: r.for_runs(db, *call.args)}),
    "purge": Program(("horizon", "limit"), {"purge": lambda db, call: r.purge(db, *call.args)}),
    "inventory": Program(("after", "limit"), {"inventory": lambda db, call: r.inventory(db, *call.args)}),
    "take_lock": Program(
        ("key", "run_id", "holder"),
        {
            "insert lock": lambda db, call: r.insert_lock(
                db, call.args[0], call.args[1], call.args[2], call.now
            ),
            "read holder": lambda db, call: r.read_lock(db, call.args[1]),
        },
        _holding,
        resolved=("insert lock",),
    ),
    "cancel": Program(
        ("run_id",),
        {
            "insert cancel": lambda db, call: r.insert_cancel(db, call.args[0], call.now),
            "read holder": lambda db, call: r.read_lock(db, call.args[0]),
            "settle": lambda db, call: r.settle(db, call.args[0], call.now),
        },
        lambda call: Stopped(True, "cancelled"),
        resolved=("insert cancel",),
        early=_cancel,
    ),
    "free": Program(
        ("key",),
        {
            "read both": lambda db, call: r.read_both(db, call.args[0]),
            "insert free": lambda db, call: r.insert_lock(
                db, call.args[0], _run_of(call), "free", call.now
            ),
            "read holder": lambda db, call: r.read_lock(db, _run_of(call)),
            "delete": lambda db, call: r.delete(db, call.args[0], _run_of(call)),
        },
        lambda call: Stopped(True, "freed"),
        resolved=("insert free",),
        early=_free,
    ),
    "lock_of": Program(("run_id",), {"read lock": lambda db, call: r.read_lock(db, *call.args)}),
    "persist": Program(
        ("run_id", "holder", "result"), {"persist": lambda db, call: r.persist(db, *call.args)}
    ),
    "fence": Program((), {"read fence": lambda db, call: r.read_fence(db)}),
    "close_fence": Program(
        (),
        {"close fence": lambda db, call: r.write_fence(db, True)},
        lambda call: None,
        creates=("create fence",),
    ),
    "open_fence": Program(
        (),
        {"open fence": lambda db, call: r.write_fence(db, False)},
        lambda call: None,
        creates=("create fence",),
    ),
}

CREATE: Mapping[str, Callable[[Database], tuple[Database, None]]] = {
    "create reservations": r.create_reservations,
    "create locks": r.create_locks,
    "create index": r.create_index,
    "create fence": r.create_fence,
}

READS = {
    "read both",
    "read back",
    "read",
    "for runs",
    "inventory",
    "read holder",
    "read lock",
    "read fence",
}
"""Statements that write nothing; every other one writes."""


class UnexpectedStatement(Exception):
    """A call ran a statement that its operation does not have at that place."""


def upcoming(call: Call) -> str:
    """Name the statement that a call runs next."""
    return tuple(PROGRAMS[call.operation].statements)[len(call.heard)]


def advance(
    db: Database,
    call: Call,
    statement: str | None = None,
    fault: Fault = Fault.NONE,
    replica: Database | None = None,
) -> tuple[Database, Call | Ended]:
    """Run the next statement of a call; give the database and the call after it.

    `statement` may name one that creates what the operation needs: it leaves the call where it is.
    `replica` is the older database that a stale read is answered from. Raises `UnexpectedStatement`.
    """
    program = PROGRAMS[call.operation]
    if statement in program.creates and not call.heard:
        return (db, Ended(NOT_APPLIED)) if fault is Fault.NOT_APPLIED else (CREATE[statement](db)[0], call)
    if statement is None:
        statement = upcoming(call)
    elif statement != upcoming(call):
        raise UnexpectedStatement(f"{call.operation} ran {statement}, not {upcoming(call)}")

    after, reply = land(replica if replica is not None else db, call, statement)
    reads = statement in READS
    if not reads and reply is None and fault is not Fault.LATE:
        return db, call  # there is no table: the call creates it and comes again
    if fault is Fault.NOT_APPLIED:
        return db, Ended(UNREADABLE if reads else NOT_APPLIED)
    if reads or fault is Fault.LATE:
        after = db
    if fault in (Fault.LOST, Fault.LATE):
        if reads:
            return db, Ended(UNREADABLE)
        if statement not in program.resolved:
            return after, Ended(UNKNOWN)
        reply = None
    call = call._replace(heard=(*call.heard, reply))
    if (answer := program.early(call)) is not None:
        return after, Ended(answer)
    if len(call.heard) < len(program.statements):
        return after, call
    return after, Ended(program.answer(call))


def land(db: Database, call: Call, statement: str) -> tuple[Database, Any]:
    """Apply a statement of a call, whatever became of its caller."""
    return PROGRAMS[call.operation].statements[statement](db, call)


def run(db: Database, operation: str, *args: Any, now: int = 0) -> tuple[Database, Any]:
    """Run a whole operation with nobody in between; give the database after it and the answer."""
    program = PROGRAMS[operation]
    call: Call | Ended = Call(operation, args, now)
    while isinstance(call, Call):
        if not call.heard and land(db, call, upcoming(call))[1] is None:
            for name in program.creates:
                db, call = advance(db, call, name)
                assert isinstance(call, Call)
        db, call = advance(db, call)
    return db, call.answer
