"""Our own implementation on SQLite as a subject of the oracle, with every capability.

Faults are real where they can be: a statement that is not applied is interrupted by SQLite, a stale
read runs in a transaction begun earlier, a refused write is refused by `PRAGMA query_only`. A lost reply
is a reply that this file keeps to itself.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from startonce.impl import operations as op
from startonce.impl import statements as sql
from startonce.impl.databases.sqlite import TABLES, SqliteDatabase, connect
from startonce.impl.operations import Operation
from startonce.impl.statements import Statement
from startonce.model.errors import (
    ForeignTable,
    InvalidValue,
    NotApplied,
    StartOnceError,
    TableMissing,
    TooManyRuns,
    UnknownOutcome,
    Unreadable,
    ValueRefused,
    Vanished,
)
from startonce.model.operations import (
    INVALID,
    NOT_APPLIED,
    PROGRAMS,
    REFUSED,
    TOO_MANY,
    UNKNOWN,
    UNREADABLE,
    VANISHED,
    Call,
    Ended,
    Fault,
    Raised,
    Reserved,
)
from startonce.model.reservation import EMPTY, NOTHING, Database, Lock, Reservation, State
from startonce.oracle.subject import (
    DENY,
    FAULTS,
    OPERATIONS,
    PROBES,
    REPLICA,
    STEPPING,
    Held,
    Subject,
    Together,
)

PARAMETER_LIMIT = 100
"""Ids that one `for_runs` binds here: as few as on D1."""

Operations = dict[str, Callable[..., Operation[Any]]]
Schema = Mapping[str, tuple[Statement, ...]]
"""For each table the statements that create it, in the order in which `put` makes them."""

SCHEMA: Schema = {
    sql.RESERVATIONS: sql.CREATE_RESERVATIONS[2:],
    sql.LOCKS: sql.CREATE_RESERVATIONS[:2],
    sql.FENCE: sql.CREATE_FENCE,
}

OURS: Operations = {
    "reserve": lambda now, key, run_id, create=False: op.reserve(key, run_id, now, create=create),
    "claim": lambda now, key, run_id: op.claim(key, run_id, now),
    "release": lambda now, key, run_id: op.release(key, run_id, now),
    "settle": lambda now, run_id: op.settle(run_id, now),
    "read": lambda now, key: op.read(key),
    "for_runs": lambda now, *run_ids: op.for_runs(run_ids, PARAMETER_LIMIT),
    "purge": lambda now, horizon, limit: op.purge(horizon, limit),
    "inventory": lambda now, after, limit: op.inventory(after, limit),
    "take_lock": lambda now, key, run_id, holder: op.take_lock(key, run_id, holder, now),
    "cancel": lambda now, run_id: op.cancel(run_id, now),
    "free": lambda now, key: op.free(key, now),
    "lock_of": lambda now, run_id: op.lock_of(run_id),
    "persist": lambda now, run_id, holder, result: op.persist(run_id, holder, result),
    "fence": lambda now: op.fence(),
    "close_fence": lambda now: op.close_fence(),
    "open_fence": lambda now: op.open_fence(),
}

_DUMP_ROWS = f"SELECT key, run_id, state, created_at, updated_at FROM {sql.RESERVATIONS} ORDER BY key"
_DUMP_LOCKS = f"SELECT run_id, key, holder, ended, result, created_at FROM {sql.LOCKS} ORDER BY run_id"
_DUMP_FENCE = f"SELECT closed FROM {sql.FENCE}"
_DELETE_ROW = f"DELETE FROM {sql.RESERVATIONS} WHERE key = ?"
_REPLACE_ROW = f"REPLACE INTO {sql.RESERVATIONS} VALUES (?, ?, ?, ?, ?)"
_PUT_ROW = f"INSERT INTO {sql.RESERVATIONS} VALUES (?, ?, ?, ?, ?)"
_PUT_LOCK = f"INSERT INTO {sql.LOCKS} VALUES (?, ?, ?, ?, ?, ?)"
_PUT_FENCE = f"INSERT INTO {sql.FENCE} VALUES (1, ?)"
_COMES_AGAIN = {next(iter(program.statements)) for program in PROGRAMS.values() if program.creates}
"""Statements that are sent again once their table is created: only then is a lost reply one."""
_STATES = {state.value: state for state in State}


def raised(error: StartOnceError) -> Raised:
    """Name an error of the implementation as the model names it."""
    for kind, name in (
        (InvalidValue, INVALID),
        (TooManyRuns, TOO_MANY),
        (Vanished, VANISHED),
        (ForeignTable, UNREADABLE),
        (ValueRefused, REFUSED),
        (UnknownOutcome, UNKNOWN),
        (NotApplied, NOT_APPLIED),
        (Unreadable, UNREADABLE),
    ):
        if isinstance(error, kind):
            return name
    return Raised(type(error).__name__)


class SqlHeld:
    """One of our operations, held before its next statement."""

    def __init__(self, subject: "SqlSubject", database: SqliteDatabase, operation: Operation[Any]) -> None:
        self._subject = subject
        self._database = database
        self._operation = operation
        self.statement: str | None = None
        self._request: tuple[Statement, tuple[Any, ...]]
        self._on_their_way: list[tuple[Statement, tuple[Any, ...]]] = []
        self.refused: Ended | None = None
        try:
            self._request = next(operation)
        except StopIteration as stop:
            self.refused = Ended(stop.value)
        except StartOnceError as error:
            self.refused = Ended(raised(error))
        else:
            self.statement = self._request[0].name

    @property
    def writes(self) -> bool:
        """Whether the next statement writes."""
        return self.refused is None and self._request[0].writes

    def step(self, fault: Fault = Fault.NONE) -> Ended | None:
        """Run the next statement under a fault."""
        if self.refused is not None:
            return self.refused
        try:
            try:
                if fault is Fault.NONE:
                    rows = self._database.run(*self._request)
                else:
                    if fault is Fault.LATE:
                        self._on_their_way.append(self._request)
                    rows = self._subject.run_under(fault, self._database, self._request)
            except StartOnceError as error:
                self._request = self._operation.throw(error)
            else:
                self._request = self._operation.send(rows)
        except StopIteration as stop:
            self._database.schema_ensured |= isinstance(stop.value, Reserved)
            return Ended(stop.value)
        except StartOnceError as error:
            return Ended(raised(error))
        self.statement = self._request[0].name
        return None

    def crash(self) -> None:
        """Forget the operation where it stands."""
        self._operation.close()

    def land(self) -> None:
        """Run the oldest statement that is on its way, for nobody: what it answers is lost."""
        try:
            self._database.run(*self._on_their_way.pop(0))
        except (NotApplied, TableMissing):
            return


class SqlSubject(Subject):
    """Our operations over SQLite: a file with one connection per caller, or one in memory for all."""

    parameter_limit = PARAMETER_LIMIT
    capabilities = OPERATIONS | {STEPPING, FAULTS, DENY, PROBES}

    def __init__(
        self,
        path: str | Path = ":memory:",
        operations: Operations = OURS,
        *,
        timeout: float = 5.0,
        schema: Schema = SCHEMA,
        stepping: bool = True,
    ) -> None:
        self._path = str(path)
        self._timeout = timeout
        self._operations = operations
        self._schema = schema
        self.in_memory = self._path == ":memory:"
        self.observer = self._connect()
        self._callers: list[SqliteDatabase] = []
        self._replica: SqliteDatabase | None = None
        self._denied = False
        self._schema_version = -1
        self._there: set[str] = set()
        self._as_put: tuple[int, set[str]] = (-1, set())
        (mode,) = self._raw("PRAGMA journal_mode").fetchone()
        if mode == "wal":  # elsewhere an open read transaction keeps every writer out
            self.capabilities = self.capabilities | {REPLICA}
        if not stepping:  # its statements are not those of the model: no fault can befall one of them
            self.capabilities = self.capabilities - {STEPPING, FAULTS, REPLICA}
        where = "in memory" if self.in_memory else f"{mode.upper()} file"
        self.name = f"SQLite {sqlite3.sqlite_version}, {where} · sqlite-utils {version('sqlite-utils')}"

    def _connect(self) -> SqliteDatabase:
        database = connect(self._path, timeout=self._timeout)
        database.connection.execute("PRAGMA synchronous = OFF")  # no power is cut here
        return database

    def database(self, caller: int) -> SqliteDatabase:
        """Return a caller's own connection; in memory there is but one."""
        if self.in_memory:
            return self.observer
        while len(self._callers) <= caller:
            self._callers.append(self._connect())
            self._callers[-1].schema_ensured = self.observer.schema_ensured
            if self._denied:
                self.deny(True)
        return self._callers[caller]

    def _raw(self, text: str, parameters: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        return self.observer.connection.execute(text, parameters)

    def put(self, db: Database) -> None:
        """Make the database be exactly this."""
        raw = self.observer.connection
        if self._denied:
            raw.execute("PRAGMA query_only = 0")
        raw.execute("BEGIN IMMEDIATE")
        fence = None if db.fence_closed is None else ((db.fence_closed,),)
        tables = (
            (sql.RESERVATIONS, db.rows, _PUT_ROW),
            (sql.LOCKS, db.locks, _PUT_LOCK),
            (sql.FENCE, fence, _PUT_FENCE),
        )
        wanted = {table for table, rows, _ in tables if rows is not None}
        ((version,),) = raw.execute("PRAGMA schema_version")
        as_put = (version, wanted) == self._as_put  # nobody has touched the schema since
        for table, rows, insert in tables:
            if rows is None:
                if not as_put:
                    raw.execute(f"DROP TABLE IF EXISTS {table}")
                continue
            for create in () if as_put else self._schema[table]:
                raw.execute(create.sql)
            raw.execute(f"DELETE FROM {table}")
            raw.executemany(insert, rows)
        ((version,),) = raw.execute("PRAGMA schema_version")
        raw.execute("COMMIT")
        self._as_put = (version, wanted)
        if self._denied:
            self.deny(True)
        for database in (self.observer, *self._callers):
            database.schema_ensured = db.rows is not None and db.locks is not None

    def put_rows(self, rows: tuple[Reservation, ...], present: Sequence[Any]) -> None:
        """Replace the rows, of which these are present: a few statements, for walks of many steps."""
        execute = self.observer.connection.execute
        wanted = {row[0] for row in rows}
        work: list[tuple[str, tuple[Any, ...]]] = [
            (_DELETE_ROW, (row[0],)) for row in present if row[0] not in wanted
        ]
        work += [(_REPLACE_ROW, row) for row in rows if row not in present]
        together = len(work) > 1 and not self.in_memory
        if together:
            execute("BEGIN IMMEDIATE")
        for text, parameters in work:
            execute(text, parameters)
        if together:
            execute("COMMIT")

    def dump(self) -> Database:
        """Show everything in the database, by statements of its own."""
        if self.in_memory:
            return self._shown()
        self.observer.connection.execute("BEGIN")  # one snapshot, and one lock for all of the reads
        try:
            return self._shown()
        finally:
            self.observer.connection.execute("COMMIT")

    def _shown(self) -> Database:
        execute = self.observer.connection.execute
        ((version,),) = execute("PRAGMA schema_version")
        if version != self._schema_version:
            self._schema_version = version
            self._there = set(TABLES) - set(self.observer.missing(*TABLES))
        there = self._there
        rows = locks = closed = None
        if sql.RESERVATIONS in there:
            rows = tuple([Reservation(k, r, _STATES[s], c, u) for k, r, s, c, u in execute(_DUMP_ROWS)])
        if sql.LOCKS in there:
            locks = tuple([Lock(r, k, h, bool(e), v, c) for r, k, h, e, v, c in execute(_DUMP_LOCKS)])
        if sql.FENCE in there:
            closed = any(c for (c,) in execute(_DUMP_FENCE))
        return Database(rows, locks, closed)

    def dump_rows(self) -> tuple[Any, ...]:
        """Show the rows alone, as they are stored, in order of key."""
        return tuple(self.observer.connection.execute(_DUMP_ROWS).fetchall())

    def begin(self, caller: int, call: Call) -> Held:
        """Begin an operation for a caller."""
        database = self.database(caller)
        more = {} if database.schema_ensured or call.operation != "reserve" else {"create": True}
        operation = self._operations[call.operation](call.now, *call.args, **more)
        held = SqlHeld(self, database, operation)
        return held if STEPPING in self.capabilities else Together(held)

    def run_under(
        self,
        fault: Fault,
        database: SqliteDatabase,
        request: tuple[Statement, tuple[Any, ...]],
    ) -> list[Any]:
        """Run a statement that a fault befalls."""
        statement = request[0]
        if fault is Fault.STALE:
            assert self._replica is not None
            if missing := self._replica.missing(*statement.tables):
                raise TableMissing(missing[0])
            return self._replica.connection.execute(statement.sql, request[1]).fetchall()
        if fault is Fault.NOT_APPLIED:
            if self._denied and statement.writes:
                return database.run(*request)
            if database.missing(*statement.tables):  # else it fails before it could be interrupted
                raise (NotApplied if statement.writes else Unreadable)(statement.name, "interrupted")
            database.connection.set_progress_handler(lambda: 1, 1)
            try:
                database.run(*request)
            finally:
                database.connection.set_progress_handler(None, 0)
            raise AssertionError(f"SQLite could not be interrupted in {statement.name}")
        if not statement.writes:
            raise Unreadable(statement.name, "the reply was lost")
        if fault is Fault.LOST:
            try:
                database.run(*request)
            except TableMissing:
                if statement.name in _COMES_AGAIN:
                    raise
        raise UnknownOutcome(statement.name, "the reply was lost")

    def land(self, held: Held) -> None:
        """Apply the statement of a caller that went on without its reply."""
        assert isinstance(held, SqlHeld)
        held.land()

    def pin(self) -> None:
        """Begin a read transaction: it sees the database as it is now until it ends."""
        if self._replica is None:
            self._replica = self._connect()
        self.unpin()
        self._replica.connection.execute("BEGIN")
        self._replica.connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()

    def unpin(self) -> None:
        """End the read transaction."""
        if self._replica is not None and self._replica.connection.in_transaction:
            self._replica.connection.execute("ROLLBACK")

    def deny(self, denied: bool) -> None:
        """Refuse, or again allow, every write of every caller."""
        self._denied = denied
        for database in self._callers or [self.observer]:
            # With an old schema in its cache, a connection would be refused what exists already.
            database.connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            database.connection.execute(f"PRAGMA query_only = {int(denied)}")

    def spoil(self, how: str, key: str) -> None:
        """Spoil the schema around a key, in one of the ways of `oracle/probes.py`."""
        raw = self.observer.connection
        create = self._schema[sql.RESERVATIONS][0].sql
        self.put(EMPTY)
        raw.execute(f"DROP TABLE {sql.RESERVATIONS}")
        if how == "refused":
            raw.execute(create.replace("PRIMARY KEY", f"PRIMARY KEY CHECK (key <> '{key}')", 1))
        elif how == "wanting":
            raw.execute(create.replace("updated_at INTEGER", "owner TEXT NOT NULL, updated_at INTEGER", 1))
        elif how == "elsewhere":
            raw.execute(f"CREATE VIEW {sql.RESERVATIONS} AS SELECT * FROM {sql.RESERVATIONS}_archive")
        else:
            raw.execute(
                f"CREATE TABLE {sql.RESERVATIONS} (key PRIMARY KEY, run_id, state, created_at, updated_at)"
            )
            bad = {
                "state": ("r1", "begun", 0, 0),
                "run id": (None, "reserved", 0, 0),
                "time": ("r1", "reserved", 0, "yesterday"),
            }[how]
            raw.execute(_PUT_ROW, (key, *bad))

    def unspoil(self) -> None:
        """Take what `spoil` made away."""
        for kind in ("VIEW", "TABLE"):
            there = "SELECT count(*) FROM sqlite_schema WHERE name = ? AND type = ?"
            if self._raw(there, (sql.RESERVATIONS, kind.lower())).fetchone()[0]:
                self._raw(f"DROP {kind} {sql.RESERVATIONS}")
        self.put(NOTHING)

    def close(self) -> None:
        """Close every connection."""
        for database in (*self._callers, self.observer, self._replica):
            if database is not None:
                database.close()
