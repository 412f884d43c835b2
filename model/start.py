"""Starting runs: what can happen when callers start keys, an operator drains, and things go wrong.

One transition system, at statement granularity. A caller is a value that says which statement it runs
next (`at`) and what it knows; `PROGRAM` says of each statement what it does to the database, and where
its caller goes on with the reply, with none, and after a refusal. Faults are the same for every
statement, and each has a budget in the scope, so that a scope is finite and says what it covers.

Keys, runs and callers are numbers. Run ids are minted in order, fresh for every insert that is sent.
"""

from collections.abc import Callable
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


class Told(NamedTuple):
    """The answer that ends a start or an operation, and the run that it names."""

    answer: str
    run: int


Next = Caller | Told
"""Where a caller goes on, or how it ends."""


class Statement(NamedTuple):
    """One statement of a caller: its effect, and where the caller goes on.

    `effect` gives the world after it and the reply. `then` gives what follows the reply, `unknown` what
    follows a lost one, `refused` what follows one that certainly changed nothing, or could not be read.
    """

    effect: Callable[[World, int, Caller], tuple[World, Any]]
    then: Callable[[Caller, Any], Next]
    unknown: Callable[[Caller], Next]
    refused: Callable[[Caller], Next]
    writes: bool = True


# --- the database -----------------------------------------------------------------------------------


def _put(some: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    return (*some[:place], value, *some[place + 1 :])


def _move(w: World, c: Caller, here: State, there: State) -> tuple[World, bool]:
    if w.rows[c.key] != (c.run, here):
        return w, False
    return w._replace(rows=_put(w.rows, c.key, Row(c.run, there))), True


def token(who: int, c: Caller) -> int:
    """Return the holder that a caller takes a lock as: minted for this one delivery (LCK-1)."""
    return who * 100 + c.left


def sent(who: int, c: Caller) -> Sent:
    """Return the statement that a caller has sent, apart from its caller."""
    holder = token(who, c) if c.at in ("take", "persist") else 0
    run = -1 if c.at in ("read back", "look") else c.run
    return Sent(c.at, -1 if c.at in ("settle", "persist") else c.key, run, holder)


def land(w: World, statement: Sent) -> World:
    """Apply a statement that was on its way."""
    who, left = divmod(statement.holder, 100)
    c = Caller(statement.what, statement.key, statement.run, left=left)
    after, _ = PROGRAM[statement.what].effect(w, who, c)
    return after


def insert(w: World, who: int, c: Caller) -> tuple[World, None]:
    """Insert the proposal unless the key exists."""
    if w.rows[c.key] is not None:
        return w, None
    return w._replace(rows=_put(w.rows, c.key, Row(c.run, RESERVED))), None


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


def _take(w: World, c: Caller, holder: int, needs_started: bool) -> World:
    if w.locks[c.run] is not None or (needs_started and w.rows[c.key] != (c.run, STARTED)):
        return w
    return w._replace(locks=_put(w.locks, c.run, Lock(holder)))


def insert_lock(w: World, who: int, c: Caller) -> tuple[World, None]:
    """Take the durable lock, only while the row is `started` (LCK-3)."""
    return _take(w, c, token(who, c), needs_started=True), None


def read_holder(w: World, who: int, c: Caller) -> tuple[World, bool]:
    """Read whether the holder is mine."""
    lock = w.locks[c.run]
    return w, lock is not None and lock.holder == token(who, c)


def take_mutex(w: World, who: int, c: Caller) -> tuple[World, bool]:
    """Take a host's own mutex, whatever the row says: the transient lock."""
    after = _take(w, c, token(who, c), needs_started=False)
    return after, after is not w


def free_mutex(w: World, who: int, c: Caller) -> tuple[World, None]:
    """Let the transient lock go."""
    return w._replace(locks=_put(w.locks, c.run, None)), None


def execute(w: World, who: int, c: Caller) -> tuple[World, None]:
    """The effect happens."""
    return w._replace(executed=_put(w.executed, c.run, w.executed[c.run] + 1)), None


def persist(w: World, who: int, c: Caller) -> tuple[World, bool]:
    """Mark the execution ended and keep its result."""
    lock = w.locks[c.run]
    if lock is None or lock != (token(who, c), False):
        return w, False
    return w._replace(locks=_put(w.locks, c.run, lock._replace(ended=True))), True


def read_ended(w: World, who: int, c: Caller) -> tuple[World, bool]:
    """Read whether my execution is marked as ended."""
    lock = w.locks[c.run]
    return w, lock == (token(who, c), True)


# --- a start, statement by statement ----------------------------------------------------------------


def _told(answer: str) -> Callable[..., Told]:
    return lambda c, _=None: Told(answer, c.run)


def _went(c: Caller, at: str, **more: Any) -> Caller:
    return c._replace(at=at, **more)


def _afresh(c: Caller) -> Caller:
    return Caller("insert", key=c.key, left=c.left)


def go_by_row(c: Caller, row: Row | None) -> Next:
    """Go by the row that a reserve read back: `reserved` is claimed with the STORED run id."""
    if row is None:
        return _afresh(c)
    if row.state is RESERVED:
        return _went(c, "claim", run=row.run, again=False)
    return _went(c, "look", run=row.run, after="row")


def go_by_both(c: Caller, seen: tuple[Row | None, Lock | None]) -> Next:
    """Go by a fresh read of row and lock. Never a guess about who is alive."""
    row, lock = seen
    if row is None:
        return _afresh(c)
    if row.state is RESERVED:
        if c.after == "lock":
            return Told("retry", row.run)
        lost_before = c.after == "claim" and c.run == row.run
        if lost_before and c.again:
            return Told("retry", row.run)
        return _went(c, "claim", run=row.run, again=lost_before, after="")
    c = c._replace(run=row.run)
    if lock is not None and lock.holder == FREE:
        return Told("retry" if row.state is STARTED else "settled", c.run)
    if lock is not None and lock.holder == CANCEL:
        return _went(c, "settle", after="settled") if row.state is STARTED else Told("settled", c.run)
    if lock is not None and lock.ended:
        return _went(c, "settle", after="replayed") if row.state is STARTED else Told("replayed", c.run)
    if row.state is STARTED or lock is not None:
        return Told("pending", c.run)
    return Told("settled", c.run)


def _stay(c: Caller) -> Next:
    return c


def _give_up_the_second_time(c: Caller) -> Next:
    return Told("stranded", c.run) if c.again else c._replace(again=True)


PROGRAM: dict[str, Statement] = {
    "insert": Statement(
        insert,
        then=lambda c, _: _went(c, "read back"),
        unknown=lambda c: _went(c, "read back"),
        refused=_told("not applied"),
    ),
    "read back": Statement(
        read_row,
        then=go_by_row,
        unknown=_told("unreadable"),
        refused=_told("unreadable"),
        writes=False,
    ),
    "claim": Statement(
        claim,
        then=lambda c, won: _went(c, "fence") if won else _went(c, "look", after="claim"),
        unknown=_told("unknown"),
        refused=_told("not applied"),
    ),
    "look": Statement(
        read_both,
        then=go_by_both,
        unknown=_told("unreadable"),
        refused=_told("unreadable"),
        writes=False,
    ),
    "fence": Statement(
        read_fence,
        then=lambda c, closed: _went(c, "release", again=False) if closed else _went(c, "take"),
        unknown=_told("unreadable"),
        refused=_told("unreadable"),
        writes=False,
    ),
    "release": Statement(
        release,
        then=lambda c, released: Told("fenced", c.run) if released else _went(c, "look", after="release"),
        unknown=_told("stranded"),
        refused=_give_up_the_second_time,
    ),
    "take": Statement(
        insert_lock,
        then=lambda c, _: _went(c, "holder"),
        unknown=lambda c: _went(c, "holder"),
        refused=_stay,
    ),
    "holder": Statement(
        read_holder,
        then=lambda c, mine: _went(c, "work") if mine else _went(c, "look", after="lock"),
        unknown=_stay,
        refused=_stay,
        writes=False,
    ),
    "persist": Statement(
        persist,
        then=lambda c, kept: _went(c, "settle", after="started") if kept else Told("not persisted", c.run),
        unknown=lambda c: _went(c, "read ended"),
        refused=_stay,
    ),
    "read ended": Statement(
        read_ended,
        then=lambda c, ended: _went(c, "settle", after="started") if ended else _went(c, "persist"),
        unknown=_stay,
        refused=_stay,
        writes=False,
    ),
    "settle": Statement(
        settle,
        then=lambda c, _: Told(c.after, c.run),
        unknown=lambda c: Told(c.after, c.run),
        refused=lambda c: Told(c.after, c.run),
    ),
    # a cancel
    "cancel: take": Statement(
        lambda w, who, c: (_take(w, c, CANCEL, needs_started=False), None),
        then=lambda c, _: _went(c, "cancel: holder"),
        unknown=lambda c: _went(c, "cancel: holder"),
        refused=_told("not applied"),
    ),
    "cancel: holder": Statement(
        lambda w, who, c: (w, w.locks[c.run]),
        then=lambda c, lock: (
            _went(c, "cancel: settle") if lock and lock.holder == CANCEL else Told("refused", c.run)
        ),
        unknown=_told("unreadable"),
        refused=_told("unreadable"),
        writes=False,
    ),
    "cancel: settle": Statement(
        settle,
        then=_told("cancelled"),
        unknown=_told("unknown"),
        refused=_told("not applied"),
    ),
    # a free
    "free: look": Statement(
        read_both,
        then=lambda c, seen: _free(c, *seen),
        unknown=_told("unreadable"),
        refused=_told("unreadable"),
        writes=False,
    ),
    "free: take": Statement(
        lambda w, who, c: (_take(w, c, FREE, needs_started=True), None),
        then=lambda c, _: _went(c, "free: holder"),
        unknown=lambda c: _went(c, "free: holder"),
        refused=_told("not applied"),
    ),
    "free: holder": Statement(
        lambda w, who, c: (w, w.locks[c.run]),
        then=lambda c, lock: (
            _went(c, "free: delete") if lock and lock.holder == FREE else Told("refused", c.run)
        ),
        unknown=_told("unreadable"),
        refused=_told("unreadable"),
        writes=False,
    ),
    "free: delete": Statement(
        lambda w, who, c: (_delete(w, c), None),
        then=_told("freed"),
        unknown=_told("unknown"),
        refused=_told("not applied"),
    ),
}

TRANSIENT: dict[str, Statement] = {
    **PROGRAM,
    "take": Statement(
        take_mutex,
        then=lambda c, taken: _went(c, "work") if taken else _went(c, "look", after="lock"),
        unknown=_stay,
        refused=_stay,
    ),
    "look": PROGRAM["look"]._replace(
        effect=lambda w, who, c: (w, (w.rows[c.key], None)),  # a host's mutex cannot be read
    ),
    "let go": Statement(
        free_mutex, then=lambda c, _: _went(c, "settle", after="started"), unknown=_stay, refused=_stay
    ),
}
"""The same with a host's own mutex for a lock: nothing of it is in the database."""


def _free(c: Caller, row: Row | None, lock: Lock | None) -> Next:
    if row is None:
        return Told("refused", c.run)
    c = c._replace(run=row.run)
    if (lock is not None and lock.holder == FREE) or row.state is STARTED:
        return _went(c, "free: take")
    return Told("refused", c.run)


def _delete(w: World, c: Caller) -> World:
    row = w.rows[c.key]
    return w if row is None or row.run != c.run else w._replace(rows=_put(w.rows, c.key, None))


MAY_BE_STALE = ("read back", "look")
"""Reads that a replica may answer. The fence, the holder and the reads of a free come from the primary."""
