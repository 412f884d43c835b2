"""Where correct implementations that are built differently keep their rows: other tables, a log, a dict."""

# Only our own table names and the probes' own keys are put into SQL here.
# ruff: noqa: S608

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from startonce.impl.statements import FENCE, LOCKS, RESERVATIONS, Statement
from startonce.model.inputs import admissible
from startonce.model.operations import INVALID, Call, Holding, Reserved, Stopped
from startonce.model.reservation import EMPTY, HOLDER_WORDS, Database, Entry, Lock, Reservation, State
from startonce.oracle.subject import PROBES, Plain
from startonce.own import SCHEMA, Schema, SqlSubject

COLUMNS = "key, run_id, state, created_at, updated_at"
AUDIT = "startonce_audit"
ARCHIVE = "startonce_archive"
LOG = "startonce_log"

_OURS, *_INDEXES = SCHEMA[RESERVATIONS]


def _table(columns: str, *more: str, options: str = "STRICT") -> Schema:
    """Our schema with a table of reservations of these columns, and statements after it."""
    create = f"CREATE TABLE IF NOT EXISTS {RESERVATIONS} ({columns}) {options}".rstrip()
    return _schema(_OURS._replace(sql=create), *more)


def _schema(create: Statement, *more: str) -> Schema:
    return {**SCHEMA, RESERVATIONS: (create, *(_besides(text) for text in more))}


def _besides(text: str) -> Statement:
    """Create what no answer depends on: to the model it is one index more."""
    return Statement("create index", text.strip(), True, ())


_STATE = "state TEXT NOT NULL CHECK (state IN ('reserved', 'started', 'terminal'))"
_TIMES = "created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL"

ASKED = _table(
    f"key TEXT NOT NULL PRIMARY KEY, run_id TEXT NOT NULL, {_STATE}, {_TIMES}, "
    "asked INTEGER NOT NULL DEFAULT 1",
    options="STRICT, WITHOUT ROWID",
)
"""A row counts how often its key was asked for; the first one to ask has made it."""

GENERATED = _table(
    "id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, "
    f"run_id TEXT NOT NULL, {_STATE}, {_TIMES}"
)
"""A row has an id of its own, and the key is but unique."""

LOOSE = _table(
    "updated_at BIGINT NOT NULL, created_at BIGINT NOT NULL, "
    "state VARCHAR(8) NOT NULL DEFAULT 'reserved' CHECK (state IN ('terminal', 'started', 'reserved')), "
    "run_id VARCHAR(200) NOT NULL CHECK (run_id <> ''), key VARCHAR(200) NOT NULL PRIMARY KEY",
    f"CREATE INDEX IF NOT EXISTS {RESERVATIONS}_by_state ON {RESERVATIONS} (state, updated_at DESC)",
    f"CREATE UNIQUE INDEX IF NOT EXISTS {RESERVATIONS}_wide ON {RESERVATIONS} (run_id DESC, key)",
    options="",
)
"""Every column in another place and of another type, a table with row ids, and other indexes."""

AUDITED = _schema(
    _OURS,
    f"CREATE TABLE IF NOT EXISTS {AUDIT} (what TEXT, key TEXT, run_id TEXT, state TEXT)",
    *(
        f"""
CREATE TRIGGER IF NOT EXISTS {AUDIT}_{what} AFTER {what} ON {RESERVATIONS} BEGIN
  INSERT INTO {AUDIT} VALUES ('{what}', {row}.key, {row}.run_id, {row}.state);
  UPDATE {AUDIT} SET key = key WHERE rowid = last_insert_rowid();
END"""
        for what, row in (("insert", "NEW"), ("update", "NEW"), ("delete", "OLD"))
    ),
    *(index.sql for index in _INDEXES),
)
"""Every change of a row writes twice to another table."""

ARCHIVED = _schema(
    _OURS,
    f"CREATE TABLE IF NOT EXISTS {ARCHIVE} (key TEXT NOT NULL, run_id TEXT NOT NULL, {_TIMES})",
    *(index.sql for index in _INDEXES),
)
"""Beside the reservations there is a table for those that were purged."""

LOGGED: Schema = {
    **SCHEMA,
    RESERVATIONS: (
        _besides(
            f"""
CREATE TABLE IF NOT EXISTS {LOG} (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, run_id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('reserved', 'started', 'terminal', 'gone')), {_TIMES}
) STRICT"""
        ),
        _besides(f"CREATE INDEX IF NOT EXISTS {LOG}_by_key ON {LOG} (key, seq)"),
        _OURS._replace(
            sql=f"""
CREATE VIEW IF NOT EXISTS {RESERVATIONS} AS
SELECT {COLUMNS} FROM {LOG}
WHERE seq IN (SELECT max(seq) FROM {LOG} GROUP BY key) AND state <> 'gone'"""
        ),
    ),
}
"""No row ever changes: each change is appended, and a view shows what came last for each key."""


class Reshaped(SqlSubject):
    """A subject whose table of reservations has other columns than ours, or ours in another order."""

    table = RESERVATIONS

    def put(self, db: Database) -> None:
        """Make the database be exactly this."""
        fence = None if db.fence_closed is None else ((1, db.fence_closed),)
        self._raw("BEGIN IMMEDIATE")
        self._put(RESERVATIONS, self.table, Reservation._fields, db.rows)
        self._put(LOCKS, LOCKS, Lock._fields, db.locks)
        self._put(FENCE, FENCE, ("id", "closed"), fence)
        self._raw("COMMIT")
        for database in (self.observer, *self._callers):
            database.schema_ensured = db.rows is not None and db.locks is not None

    def _put(
        self, name: str, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]] | None
    ) -> None:
        for create in () if rows is None else self._schema[name]:
            self._raw(create.sql)
        self._raw(f"DROP TABLE IF EXISTS {table}" if rows is None else f"DELETE FROM {table}")
        marks = ", ".join("?" * len(columns))
        for row in rows or ():
            self._raw(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", row)

    def put_rows(self, rows: tuple[Reservation, ...], present: Sequence[Any]) -> None:
        """Replace the rows, of which these are present, naming every column."""
        for row in present:
            if row not in rows:
                self._raw(f"DELETE FROM {self.table} WHERE key = ?", (row[0],))
        for row in rows:
            if row not in present:
                self._raw(f"INSERT INTO {self.table} ({COLUMNS}) VALUES (?, ?, ?, ?, ?)", row)

    def spoil(self, how: str, key: str) -> None:
        """Spoil the schema around a key."""
        spoilt = {"refused": f"guard TEXT CHECK (key <> '{key}')", "wanting": "owner TEXT NOT NULL"}
        if how in spoilt:
            self.put(EMPTY)
            self._raw(f"ALTER TABLE {RESERVATIONS} ADD COLUMN {spoilt[how]}")
        else:
            super().spoil(how, key)


class Logged(Reshaped):
    """A subject whose reservations are a view of a log."""

    capabilities = SqlSubject.capabilities - {PROBES}
    table = LOG

    def put(self, db: Database) -> None:
        """Make the database be exactly this."""
        if db.rows is None:
            self._raw(f"DROP VIEW IF EXISTS {RESERVATIONS}")
        super().put(db)


class Remembered(Plain):
    """Reservations, run locks and fence in dicts, with one mutex around each operation: no SQL at all."""

    name = "dicts under a mutex"

    def __init__(self, path: str | Path = ":memory:") -> None:
        """Take a path as every other one does; nothing is written there."""
        self._mutex = threading.Lock()
        self._rows: dict[str, Reservation] | None = None
        self._locks: dict[str, Lock] | None = None
        self._closed: bool | None = None

    def put(self, db: Database) -> None:
        """Make the dicts be exactly this."""
        self._rows = None if db.rows is None else {row.key: row for row in db.rows}
        self._locks = None if db.locks is None else {lock.run_id: lock for lock in db.locks}
        self._closed = db.fence_closed

    def dump(self) -> Database:
        """Show everything."""
        rows, locks = self._rows, self._locks
        return Database(
            None if rows is None else tuple(rows[key] for key in sorted(rows)),
            None if locks is None else tuple(locks[run_id] for run_id in sorted(locks)),
            self._closed,
        )

    def call(self, operation: str, *args: Any, now: int) -> Any:
        """Run an operation while nobody else does."""
        if not admissible(Call(operation, args, now)):
            return INVALID
        with self._mutex:
            return getattr(self, f"_{operation}")(now, *args)

    def _row(self, key: str) -> Reservation | None:
        return (self._rows or {}).get(key)

    def _lock(self, run_id: str) -> Lock | None:
        return (self._locks or {}).get(run_id)

    def _reserve(self, now: int, key: str, run_id: str) -> Reserved:
        self._rows = {} if self._rows is None else self._rows
        self._locks = {} if self._locks is None else self._locks
        proposed = Reservation(key, run_id, State.RESERVED, now, now)
        row = self._rows.setdefault(key, proposed)
        return Reserved(row, row is proposed)

    def _move(self, now: int, row: Reservation | None, run_id: str, here: State, there: State) -> bool:
        if self._rows is None or row is None or (row.run_id, row.state) != (run_id, here):
            return False
        self._rows[row.key] = row._replace(state=there, updated_at=now)
        return True

    def _claim(self, now: int, key: str, run_id: str) -> bool:
        return self._move(now, self._row(key), run_id, State.RESERVED, State.STARTED)

    def _release(self, now: int, key: str, run_id: str) -> bool:
        return self._move(now, self._row(key), run_id, State.STARTED, State.RESERVED)

    def _settle(self, now: int, run_id: str) -> int:
        live = (State.RESERVED, State.STARTED)
        rows = tuple((self._rows or {}).values())
        return sum(self._move(now, row, run_id, state, State.TERMINAL) for row in rows for state in live)

    def _read(self, now: int, key: str) -> Reservation | None:
        return self._row(key)

    def _for_runs(self, now: int, *run_ids: str) -> tuple[Reservation, ...]:
        return tuple(row for row in self.dump().rows or () if row.run_id in run_ids)

    def _purge(self, now: int, horizon: int, limit: int) -> int:
        rows = self._rows or {}
        spent = [r for r in rows.values() if r.state is State.TERMINAL and r.updated_at < horizon]
        spent = sorted(spent, key=lambda row: (row.updated_at, row.key))[:limit]
        for row in spent:
            del rows[row.key]
        return len(spent)

    def _inventory(self, now: int, after: tuple[str, str] | None, limit: int) -> tuple[Entry, ...]:
        live = [row for row in (self._rows or {}).values() if row.state is not State.TERMINAL]
        found = {(row.key, row.run_id): _live(row, self._lock(row.run_id)) for row in live}
        for lock in (self._locks or {}).values():
            if lock.key is None or lock.ended or lock.holder in HOLDER_WORDS:
                continue
            row = self._row(lock.key)
            state = row.state if row is not None and row.run_id == lock.run_id else None
            left = Entry(lock.key, lock.run_id, state, lock.holder, False, "settled or purged, still held")
            found.setdefault((lock.key, lock.run_id), left)
        return tuple(found[place] for place in sorted(found) if after is None or place > after)[:limit]

    def _take_lock(self, now: int, key: str, run_id: str, holder: str) -> Holding:
        row = self._row(key)
        if row is not None and row[1:3] == (run_id, State.STARTED) and self._locks is not None:
            self._locks.setdefault(run_id, Lock(run_id, key, holder, False, None, now))
        lock = self._lock(run_id)
        return Holding(False, None) if lock is None else Holding(lock.holder == holder, lock.holder)

    def _lock_of(self, now: int, run_id: str) -> Lock | None:
        return self._lock(run_id)

    def _persist(self, now: int, run_id: str, holder: str, result: str) -> bool:
        lock = self._lock(run_id)
        if self._locks is None or lock is None or lock.ended or lock.holder != holder:
            return False
        self._locks[run_id] = lock._replace(ended=True, result=result)
        return True

    def _cancel(self, now: int, run_id: str) -> Stopped:
        refused = self._stop(run_id, Lock(run_id, None, "cancel", False, None, now))
        if refused is None:
            self._settle(now, run_id)
        return refused or Stopped(True, "cancelled")

    def _free(self, now: int, key: str) -> Stopped:
        row = self._row(key)
        if self._rows is None or row is None:
            return Stopped(False, "no row")
        lock = self._lock(row.run_id)
        if row.state is not State.STARTED and (lock is None or lock.holder != "free"):
            return Stopped(False, f"it is {row.state}")
        refused = self._stop(row.run_id, Lock(row.run_id, key, "free", False, None, now))
        if refused is None:
            del self._rows[key]
        return refused or Stopped(True, "freed")

    def _stop(self, run_id: str, wanted: Lock) -> Stopped | None:
        """Take the lock of a run for an operator; None where it is held as wanted."""
        if self._locks is None:
            return Stopped(False, "nobody holds its lock")
        lock = self._locks.setdefault(run_id, wanted)
        if lock.holder == wanted.holder:
            return None
        if lock.holder in HOLDER_WORDS:
            return Stopped(False, f"a {lock.holder} holds its lock")
        return Stopped(False, "it has ended" if lock.ended else "an execution holds its lock", lock.result)

    def _fence(self, now: int) -> bool:
        return bool(self._closed)

    def _close_fence(self, now: int) -> None:
        self._closed = True

    def _open_fence(self, now: int) -> None:
        self._closed = False


def _live(row: Reservation, lock: Lock | None) -> Entry:
    """What an inventory says of a row that is not terminal."""
    if lock is None:
        kind = "reserved" if row.state is State.RESERVED else "never reached the lock"
        return Entry(row.key, row.run_id, row.state, None, False, kind)
    kind = "ended, not settled" if lock.ended else "reached the lock, not ended"
    kind = f"held by a {lock.holder}" if lock.holder in HOLDER_WORDS else kind
    return Entry(row.key, row.run_id, row.state, lock.holder, lock.ended, kind)
