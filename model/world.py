"""The world in which runs are started: what there is, and what each statement does to it.

Keys, runs and callers are numbers. Run ids are minted in order, fresh for every insert that is sent. What
callers do with these statements is in `start.py`, what can go wrong in `faults.py`.
"""

from typing import Any, NamedTuple

from startonce.model.reservation import State

RESERVED, STARTED, TERMINAL = State.RESERVED, State.STARTED, State.TERMINAL

CANCEL, FREE = -1, -2
"""Holders of a run lock that are no caller."""


class Row(NamedTuple):
    """The reservation of a key."""

    run: int
    state: State


class Lock(NamedTuple):
    """The lock of a run: who holds it (a caller's number, or a word), and whether the execution ended."""

    holder: int
    ended: bool = False


class Caller(NamedTuple):
    """One process: the statement it runs next, and what it knows.

    `run` is the run that it goes by; `again` says that it has claimed it once and lost, or was refused a
    release once; `after` says why it looks at the row, or what it answers once it has settled. `left` is
    the number of starts that it may still begin.
    """

    at: str = "idle"
    key: int = 0
    run: int = -1
    again: bool = False
    after: str = ""
    left: int = 0


class Budget(NamedTuple):
    """How often each fault may still happen."""

    crashes: int = 0
    unknowns: int = 0  # a statement is applied, and its reply lost
    late: int = 0  # a write is applied after its caller went on
    refusals: int = 0  # a statement is certainly not applied, or a read fails
    flips: int = 0  # the fence closes or opens
    purges: int = 0
    settles: int = 0  # a host settles from outside
    cancels: int = 0
    frees: int = 0
    stale: int = 0  # a replica stays behind, and a read-back or a fresh read is answered by it


class Scope(NamedTuple):
    """What is explored. `without` are duties that callers and hosts no longer keep."""

    callers: int = 2
    keys: int = 1
    attempts: int = 1
    budget: Budget = Budget()
    durable: bool = True
    without: frozenset[str] = frozenset()
    after_unknown: tuple[tuple[str, str], ...] = ()
    """For some statements, what a caller may do besides when the reply is lost: see `faults.RETRIES`."""
    symmetry: bool = True
    """Of idle callers that are alike only the first one moves: nothing is lost, and much is saved."""


class World(NamedTuple):
    """Everything: what the database holds, what was executed, the callers, and what is on its way.

    `executed` counts the executions begun of each run, and `won` the claims of it that were answered True
    and not given back. `drained` says that since the fence closed there was a moment without a started
    row and without a lock held by an execution.
    """

    rows: tuple[Row | None, ...]
    locks: tuple[Lock | None, ...]
    executed: tuple[int, ...]
    won: tuple[int, ...]
    closed: bool
    drained: bool
    callers: tuple[Caller, ...]
    late: tuple["Sent", ...]
    replica: tuple[tuple[Row | None, ...], tuple[Lock | None, ...]] | None
    left: Budget


class Sent(NamedTuple):
    """A statement on its way for nobody: what it says, and not who sent it."""

    what: str
    key: int
    run: int
    holder: int


class Event(NamedTuple):
    """One thing that happened: who did what, under which fault, and what a start was answered.

    `run` is the run it was about; `told` the run that an answer named.
    """

    who: int
    what: str
    key: int = 0
    run: int = -1
    fault: str = ""
    answer: str = ""
    told: int = -1


HOST = -1
"""Who, of what a host, an operator or the environment does at once."""


# --- the database -----------------------------------------------------------------------------------


def put_at(some: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    """Return the tuple with another value at one place."""
    return (*some[:place], value, *some[place + 1 :])


def _move(w: World, c: Caller, here: State, there: State) -> tuple[World, bool]:
    if w.rows[c.key] != (c.run, here):
        return w, False
    return w._replace(rows=put_at(w.rows, c.key, Row(c.run, there))), True


def token(who: int, c: Caller) -> int:
    """Return the holder that a caller takes a lock as: minted for this one delivery (LCK-1)."""
    return who * 100 + c.left


def sent(who: int, c: Caller) -> Sent:
    """Return the statement that a caller has sent, apart from its caller."""
    holder = token(who, c) if c.at in ("take", "persist") else 0
    return Sent(c.at, -1 if c.at in ("settle", "persist") else c.key, c.run, holder)


def insert(w: World, who: int, c: Caller) -> tuple[World, None]:
    """Insert the proposal unless the key exists."""
    if w.rows[c.key] is not None:
        return w, None
    return w._replace(rows=put_at(w.rows, c.key, Row(c.run, RESERVED))), None


def read_row(w: World, who: int, c: Caller) -> tuple[World, Row | None]:
    """Read the row back."""
    return w, w.rows[c.key]


def claim(w: World, who: int, c: Caller) -> tuple[World, bool]:
    """Move `reserved` to `started`, for exactly this key and run."""
    return _move(w, c, RESERVED, STARTED)


def release(w: World, who: int, c: Caller) -> tuple[World, bool]:
    """Move `started` to `reserved`, for exactly this key and run."""
    return _move(w, c, STARTED, RESERVED)


def settle(w: World, who: int, c: Caller) -> tuple[World, None]:
    """Move every row naming the run to `terminal`."""
    rows = tuple(Row(row.run, TERMINAL) if row and row.run == c.run else row for row in w.rows)
    return w._replace(rows=rows), None


def read_both(w: World, who: int, c: Caller) -> tuple[World, tuple[Row | None, Lock | None]]:
    """Read a row and its run's lock at one moment."""
    row = w.rows[c.key]
    return w, (row, w.locks[row.run] if row else None)


def read_fence(w: World, who: int, c: Caller) -> tuple[World, bool]:
    """Read whether the fence is closed."""
    return w, w.closed


def take_lock_as(w: World, c: Caller, holder: int, needs_started: bool) -> World:
    """Take the lock of a caller's run for a holder, where it is free."""
    if w.locks[c.run] is not None or (needs_started and w.rows[c.key] != (c.run, STARTED)):
        return w
    return w._replace(locks=put_at(w.locks, c.run, Lock(holder)))


def insert_lock(w: World, who: int, c: Caller) -> tuple[World, None]:
    """Take the durable lock, only while the row is `started` (LCK-3)."""
    return take_lock_as(w, c, token(who, c), needs_started=True), None


def read_holder(w: World, who: int, c: Caller) -> tuple[World, bool]:
    """Read whether the holder is mine."""
    lock = w.locks[c.run]
    return w, lock is not None and lock.holder == token(who, c)


def take_mutex(w: World, who: int, c: Caller) -> tuple[World, bool]:
    """Take a host's own mutex, whatever the row says: the transient lock."""
    after = take_lock_as(w, c, token(who, c), needs_started=False)
    return after, after is not w


def free_mutex(w: World, who: int, c: Caller) -> tuple[World, None]:
    """Let the transient lock go."""
    return w._replace(locks=put_at(w.locks, c.run, None)), None


def execute(w: World, who: int, c: Caller) -> tuple[World, None]:
    """The effect happens."""
    return w._replace(executed=put_at(w.executed, c.run, w.executed[c.run] + 1)), None


def persist(w: World, who: int, c: Caller) -> tuple[World, bool]:
    """Mark the execution ended and keep its result."""
    lock = w.locks[c.run]
    if lock is None or lock != (token(who, c), False):
        return w, False
    return w._replace(locks=put_at(w.locks, c.run, lock._replace(ended=True))), True


def read_ended(w: World, who: int, c: Caller) -> tuple[World, bool]:
    """Read whether my execution is marked as ended."""
    lock = w.locks[c.run]
    return w, lock == (token(who, c), True)
