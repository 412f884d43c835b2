"""The rows, and every atomic statement over them, as pure functions.

Start here. A reservation says which run an idempotency key means and how far that run is:

    reserved   the key means this run, and nobody has started it
    started    one caller won the claim
    terminal   the run is over, the key is spent

A `Database` is everything that one database holds. A statement is one SQL statement, run on its own:
it takes a database and gives the database after it and the reply. There is no transaction anywhere,
so a caller can be held, crash or lose a reply between any two statements. `operations.py`
composes them.

Times are integer milliseconds, UTC, from a clock that is passed in; no verdict compares them but the
purge, whose horizon its caller chooses.
"""

from enum import StrEnum
from typing import NamedTuple


class State(StrEnum):
    """How far a reservation is."""

    RESERVED = "reserved"
    STARTED = "started"
    TERMINAL = "terminal"


class Reservation(NamedTuple):
    """The row of a key. `updated_at` moves with every change of state."""

    key: str
    run_id: str
    state: State
    created_at: int
    updated_at: int


class Lock(NamedTuple):
    """The durable lock of a run: one row per run, for good (LCK-1).

    `holder` is a token minted for one delivery, or one of the words `cancel` and `free`. `ended` says
    that the execution is over and its result, a JSON text, was persisted; the value may be pruned later.
    """

    run_id: str
    key: str | None
    holder: str
    ended: bool
    result: str | None
    created_at: int


HOLDER_WORDS = ("cancel", "free")
"""Holders that are no execution."""


class Database(NamedTuple):
    """What one database holds. None is a table that does not exist.

    `rows` are in order of key, `locks` in order of run id. The fence is a row that says closed or open;
    without its table it is open.
    """

    rows: tuple[Reservation, ...] | None = None
    locks: tuple[Lock, ...] | None = None
    fence_closed: bool | None = None

    def row(self, key: str) -> Reservation | None:
        """Return the row of a key."""
        return next((row for row in self.rows or () if row.key == key), None)

    def lock(self, run_id: str) -> Lock | None:
        """Return the lock of a run."""
        return next((lock for lock in self.locks or () if lock.run_id == run_id), None)


NOTHING = Database()
"""A database in which no key was ever used."""

EMPTY = Database(rows=(), locks=())
"""A database with the schema of `reserve` and no row."""


class Entry(NamedTuple):
    """What a drain must wait for or explain: a row that is not terminal, or a lock still held (INV-1).

    `state` is None where the lock outlived the row. `kind` says what it means and who ends it (INV-2).
    """

    key: str
    run_id: str
    state: State | None
    holder: str | None
    ended: bool
    kind: str


# --- the schema -------------------------------------------------------------------------------------


def create_reservations(db: Database) -> tuple[Database, None]:
    """CREATE TABLE IF NOT EXISTS of the reservations (RSV-6)."""
    return db._replace(rows=() if db.rows is None else db.rows), None


def create_locks(db: Database) -> tuple[Database, None]:
    """CREATE TABLE IF NOT EXISTS of the run locks (RSV-6)."""
    return db._replace(locks=() if db.locks is None else db.locks), None


def create_fence(db: Database) -> tuple[Database, None]:
    """CREATE TABLE IF NOT EXISTS of the fence; only closing or opening it does this."""
    return db._replace(fence_closed=bool(db.fence_closed)), None


def create_index(db: Database) -> tuple[Database, None]:
    """CREATE INDEX IF NOT EXISTS: an index changes no answer."""
    return db, None


# --- reservations -----------------------------------------------------------------------------------


def insert(db: Database, key: str, run_id: str, now: int) -> tuple[Database, bool | None]:
    """Insert the proposal unless the key exists; say whether a row was inserted (RSV-1, RSV-2).

    None: the schema is not whole yet, which is for the caller to see to (RSV-6).
    """
    if db.rows is None or db.locks is None:
        return db, None
    if db.row(key) is not None:
        return db, False
    row = Reservation(key, run_id, State.RESERVED, now, now)
    return db._replace(rows=tuple(sorted((*db.rows, row)))), True


def read(db: Database, key: str) -> tuple[Database, Reservation | None]:
    """Read the row of a key (RD-1)."""
    return db, db.row(key)


def claim(db: Database, key: str, run_id: str, now: int) -> tuple[Database, bool]:
    """Move `reserved` to `started`, for exactly this key and run (CLM-1)."""
    return _move(db, key, run_id, State.RESERVED, State.STARTED, now)


def release(db: Database, key: str, run_id: str, now: int) -> tuple[Database, bool]:
    """Move `started` back to `reserved`, for exactly this key and run (REL-1)."""
    return _move(db, key, run_id, State.STARTED, State.RESERVED, now)


def settle(db: Database, run_id: str, now: int) -> tuple[Database, int]:
    """Move every row naming the run to `terminal`; say how many moved (SET-1)."""
    live = {r for r in db.rows or () if r.run_id == run_id and r.state is not State.TERMINAL}
    return _rewrite(db, live, State.TERMINAL, now), len(live)


def for_runs(db: Database, *run_ids: str) -> tuple[Database, tuple[Reservation, ...]]:
    """Read every row naming one of the runs, each once (RUN-1)."""
    return db, tuple(row for row in db.rows or () if row.run_id in run_ids)


def purge(db: Database, settled_before: int, limit: int) -> tuple[Database, int]:
    """Delete the oldest terminal rows last changed before the horizon, at most `limit` (PRG-1)."""
    spent = [r for r in db.rows or () if r.state is State.TERMINAL and r.updated_at < settled_before]
    gone = set(sorted(spent, key=lambda row: (row.updated_at, row.key))[:limit])
    return _without(db, gone), len(gone)


def _move(
    db: Database, key: str, run_id: str, here: State, there: State, now: int
) -> tuple[Database, bool]:
    row = db.row(key)
    if row is None or row.run_id != run_id or row.state is not here:
        return db, False
    return _rewrite(db, {row}, there, now), True


def _rewrite(db: Database, some: set[Reservation], state: State, now: int) -> Database:
    if not some:
        return db
    return db._replace(
        rows=tuple(
            row._replace(state=state, updated_at=now) if row in some else row for row in db.rows or ()
        )
    )


def _without(db: Database, gone: set[Reservation]) -> Database:
    return db._replace(rows=tuple(r for r in db.rows or () if r not in gone)) if gone else db


# --- the run lock -----------------------------------------------------------------------------------


def insert_lock(db: Database, key: str, run_id: str, holder: str, now: int) -> tuple[Database, bool]:
    """Take the lock of a run, only while its row is `started` and the lock is free (LCK-3)."""
    row = db.row(key)
    started = row is not None and row.run_id == run_id and row.state is State.STARTED
    if not started or db.locks is None or db.lock(run_id) is not None:
        return db, False
    lock = Lock(run_id, key, holder, False, None, now)
    return db._replace(locks=tuple(sorted((*db.locks, lock)))), True


def read_lock(db: Database, run_id: str) -> tuple[Database, Lock | None]:
    """Read the lock of a run."""
    return db, db.lock(run_id)


def persist(db: Database, run_id: str, holder: str, result: str) -> tuple[Database, bool]:
    """Mark the execution ended and keep its result, where the holder is this one and it has not ended."""
    lock = db.lock(run_id)
    if lock is None or lock.holder != holder or lock.ended:
        return db, False
    ended = lock._replace(ended=True, result=result)
    return db._replace(locks=tuple(ended if x == lock else x for x in db.locks or ())), True


def insert_cancel(db: Database, run_id: str, now: int) -> tuple[Database, bool]:
    """Take the lock of a run as `cancel` if nobody has it, whatever its reservation says."""
    if db.locks is None or db.lock(run_id) is not None:
        return db, False
    lock = Lock(run_id, None, "cancel", False, None, now)
    return db._replace(locks=tuple(sorted((*db.locks, lock)))), True


def read_both(db: Database, key: str) -> tuple[Database, tuple[Reservation, Lock | None] | None]:
    """Read a row and its run's lock at one moment."""
    row = db.row(key)
    return db, None if row is None else (row, db.lock(row.run_id))


def delete(db: Database, key: str, run_id: str) -> tuple[Database, bool]:
    """Delete the row of a key that names this run (FRE-4)."""
    row = db.row(key)
    if row is None or row.run_id != run_id:
        return db, False
    return _without(db, {row}), True


# --- what an operator does --------------------------------------------------------------------------


def read_fence(db: Database) -> tuple[Database, bool]:
    """Say whether the execution fence is closed; without its table it is open."""
    return db, bool(db.fence_closed)


def write_fence(db: Database, closed: bool) -> tuple[Database, bool | None]:
    """Close or open the fence. None: there is no table yet, which is for the caller to create."""
    if db.fence_closed is None:
        return db, None
    return db._replace(fence_closed=closed), True


def inventory(
    db: Database, after: tuple[str, str] | None, limit: int
) -> tuple[Database, tuple[Entry, ...]]:
    """Read a page of what a drain must wait for or explain, in order of (key, run id) (INV-1)."""
    found = []
    for row in db.rows or ():
        if row.state is not State.TERMINAL:
            found.append(_entry(row.key, row.run_id, row.state, db.lock(row.run_id)))
    for lock in db.locks or ():
        row_of_lock = db.row(lock.key) if lock.key is not None else None
        mine = row_of_lock is not None and row_of_lock.run_id == lock.run_id
        listed = mine and row_of_lock is not None and row_of_lock.state is not State.TERMINAL
        if lock.key is not None and lock.holder not in HOLDER_WORDS and not lock.ended and not listed:
            state = row_of_lock.state if mine and row_of_lock is not None else None
            found.append(_entry(lock.key, lock.run_id, state, lock))
    pages = sorted(entry for entry in found if after is None or entry[:2] > after)
    return db, tuple(pages[:limit])


def _entry(key: str, run_id: str, state: State | None, lock: Lock | None) -> Entry:
    if state in (None, State.TERMINAL):
        kind = "settled or purged, still held"
    elif lock is not None and lock.holder in HOLDER_WORDS:
        kind = f"held by a {lock.holder}"
    elif lock is not None and lock.ended:
        kind = "ended, not settled"
    elif lock is not None:
        kind = "reached the lock, not ended"
    elif state is State.RESERVED:
        kind = "reserved"
    else:
        kind = "never reached the lock"
    return Entry(key, run_id, state, lock.holder if lock else None, bool(lock and lock.ended), kind)
