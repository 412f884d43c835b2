"""Correct implementations that are built differently from ours: no check of the oracle may flag one.

Each is a few lines over our own store, as the broken ones are, or another table under it. One whose
statements are those of the model, whatever their SQL, can still be held between them; the others
run whole, and what that leaves unchecked is reported as not checked.
"""

# Only our own table names are put into SQL here; every value is bound.
# ruff: noqa: S608

import sqlite3
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from startonce.impl import operations as op
from startonce.impl import statements as sql
from startonce.impl.databases.sqlite import SqliteDatabase
from startonce.impl.operations import Operation, Request, Rows, T
from startonce.impl.statements import RESERVATIONS, Statement
from startonce.model.errors import NotApplied, TableMissing, ValueRefused
from startonce.model.operations import Reserved
from startonce.model.reservation import Reservation, State
from startonce.oracle.different_tables import (
    ARCHIVE,
    ARCHIVED,
    ASKED,
    AUDITED,
    COLUMNS,
    GENERATED,
    LOG,
    LOGGED,
    LOOSE,
    Logged,
    Remembered,
    Reshaped,
)
from startonce.oracle.subject import Subject
from startonce.own import OURS, SCHEMA, Operations, Schema, SqlSubject

Each = Callable[[Request], Operation[Rows]]
"""How one statement of an operation is sent: as itself, as another, as several, or not at all."""


Text = tuple[str, tuple[int, ...]]
"""The text of a statement, and which of our parameters, by place, it binds."""


class Different(NamedTuple):
    """A correct implementation: what is different about it, and how it is built.

    `build` takes the path of a database file, or `:memory:`, and returns the subject.
    """

    sentence: str
    build: Callable[[str | Path], Subject]


# --- sending other statements ---------------------------------------------------------------------------


def through(operation: Operation[T], each: Each) -> Operation[T]:
    """Run an operation, each of its statements sent by `each`."""
    try:
        request = next(operation)
        while True:
            try:
                rows = yield from each(request)
            except Exception as error:
                request = operation.throw(error)
            else:
                request = operation.send(rows)
    except StopIteration as stop:
        answer: T = stop.value
        return answer


def over(each: Each, operations: Operations = OURS) -> Operations:
    """Return operations with each of their statements sent by `each`."""

    def wrap(operation: Callable[..., Operation[Any]]) -> Callable[..., Operation[Any]]:
        return lambda *args, **more: through(operation(*args, **more), each)

    return {name: wrap(operation) for name, operation in operations.items()}


def sending(texts: Mapping[str, Text], *tables: str) -> Each:
    """Send other texts under the same names; `tables` are what they need besides."""

    def each(request: Request) -> Operation[Rows]:
        statement, parameters = request
        if statement.name in texts:
            text, places = texts[statement.name]
            statement = statement._replace(sql=text, tables=(*statement.tables, *tables))
            parameters = tuple(parameters[place] for place in places)
        return (yield statement, parameters)

    return each


def creating(schema: Schema) -> Each:
    """Create another table of reservations, and what belongs to it, where ours would be created."""
    ours, *indexes = SCHEMA[RESERVATIONS]

    def each(request: Request) -> Operation[Rows]:
        if request[0] in indexes:
            return []
        if request[0] != ours:
            return (yield request)
        for statement in schema[RESERVATIONS]:
            yield statement, ()
        return []

    return each


# --- inserting unless the key exists ----------------------------------------------------------------------

_INSERT = f"INSERT INTO {RESERVATIONS} ({COLUMNS})\n"
_PROPOSED = "VALUES (?, ?, 'reserved', ?, ?)"

UPSERT = f"""{_INSERT}{_PROPOSED}
ON CONFLICT (key) DO UPDATE SET asked = asked + 1
RETURNING {COLUMNS}, asked = 1"""
"""What is found and what is made come back alike; a row that was asked for once was made just now."""


def upserting(text: str) -> Operations:
    """Return operations whose reserve is one statement that gives the row and whether it was created."""
    upsert = Statement("upsert", text, True, (RESERVATIONS,))

    def reserve(now: int, key: str, run_id: str, create: bool = False) -> Operation[Reserved]:
        op.check("key", key)
        op.check("run id", run_id)
        request = upsert, (key, run_id, now, now)
        if create:
            yield from _schema()
        try:
            rows = yield request
        except TableMissing:
            yield from _schema()
            rows = yield request
        ((key, run_id, state, created_at, updated_at, created),) = rows
        return Reserved(Reservation(key, run_id, State(state), created_at, updated_at), created == 1)

    return {**OURS, "reserve": reserve}


def _schema() -> Operation[None]:
    for statement in sql.CREATE_RESERVATIONS:
        yield statement, ()


_ABSENT = f"?, ?, 'reserved', ?, ?\nWHERE NOT EXISTS (SELECT 1 FROM {RESERVATIONS} WHERE key = ?)"

WHERE_ABSENT = sending({"insert": (f"{_INSERT}SELECT {_ABSENT}\nRETURNING run_id", (0, 1, 2, 3, 0))})
"""In SQLite a statement that writes looks and inserts under one write lock."""

_TAKEN = ("SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_UNIQUE")


def or_error(request: Request) -> Operation[Rows]:
    """Send a plain INSERT: the error that the key is there says that nothing was inserted."""
    if request[0] is not sql.INSERT:
        return (yield request)
    plain = sql.INSERT._replace(sql=f"{_INSERT}{_PROPOSED}\nRETURNING run_id")
    try:
        return (yield plain, request[1])
    except ValueRefused as refused:
        if getattr(refused.__cause__, "sqlite_errorname", "") not in _TAKEN:
            raise
        return []


# --- transactions -----------------------------------------------------------------------------------------

BEGIN, COMMIT, ROLLBACK = (
    Statement(text.lower(), text, True, ()) for text in ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK")
)


class TransactingDatabase(SqliteDatabase):
    """A connection on which an operation may have a transaction of its own."""

    def run(self, statement: Statement, parameters: tuple[Any, ...]) -> list[Any]:
        """Run one statement, in a transaction if there is one."""
        inside = self.connection.in_transaction
        if statement is ROLLBACK and not inside:
            return []  # SQLite has rolled back by itself
        if statement is not BEGIN and not inside:
            return super().run(statement, parameters)
        try:
            return self.connection.execute(statement.sql, parameters).fetchall()
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            named = self._named(statement, error)
            raise named or NotApplied(statement.name, "the schema changed") from error


class Transacting(SqlSubject):
    """A subject whose operations may have transactions."""

    def _connect(self) -> SqliteDatabase:
        return TransactingDatabase(super()._connect().connection)


def atomically(operation: Operation[T]) -> Operation[T]:
    """Run an operation in one transaction: all of it or nothing."""
    yield BEGIN, ()
    try:
        answer = yield from operation
        yield COMMIT, ()
    except Exception:
        yield ROLLBACK, ()
        raise
    return answer


def _reserve_in_a_transaction(now: int, key: str, run_id: str, create: bool = False) -> Operation[Reserved]:
    op.check("key", key)
    op.check("run id", run_id)
    return (yield from atomically(op.reserve(key, run_id, now, create=create)))


COPY = f"""
INSERT INTO {ARCHIVE} (key, run_id, created_at, updated_at)
SELECT key, run_id, created_at, updated_at FROM {RESERVATIONS}
WHERE state = 'terminal' AND updated_at < ?
ORDER BY updated_at, key LIMIT ?
RETURNING key, run_id"""


def archiving(text: str) -> Operations:
    """Return operations whose purge copies rows to the archive, then deletes exactly those."""
    copy = Statement("copy", text.strip(), True, (RESERVATIONS, ARCHIVE))

    def copy_then_delete(horizon: int, limit: int) -> Operation[int]:
        copied = yield copy, (horizon, limit)
        for key, run_id in copied:
            yield sql.DELETE, (key, run_id)
        return len(copied)

    def purge(now: int, horizon: int, limit: int) -> Operation[int]:
        op.check_time("horizon", horizon)
        op.check_count("limit", limit)
        try:
            return (yield from atomically(copy_then_delete(horizon, limit)))
        except TableMissing:
            return 0

    return over(creating(ARCHIVED), {**OURS, "purge": purge})


# --- other ways to say what was changed -------------------------------------------------------------------


class CountingDatabase(SqliteDatabase):
    """A connection that tells what a write did by its change counter alone."""

    def run(self, statement: Statement, parameters: tuple[Any, ...]) -> list[Any]:
        """Run one statement; a write gives an empty row for each row that it changed."""
        before = self.connection.total_changes
        rows = super().run(statement, parameters)
        return [()] * (self.connection.total_changes - before) if statement.writes else rows


class Counting(SqlSubject):
    """A subject whose writes answer by a change counter: right where no trigger inflates it."""

    def _connect(self) -> SqliteDatabase:
        return CountingDatabase(super()._connect().connection)


def returning_nothing(request: Request) -> Operation[Rows]:
    """Send every write without its RETURNING."""
    statement, parameters = request
    if statement.writes:
        statement = statement._replace(sql=statement.sql.partition("\nRETURNING")[0])
    return (yield statement, parameters)


def _by_id(there: str, here: str) -> Text:
    text = (
        f"UPDATE {RESERVATIONS} SET state = '{there}', updated_at = ?\n"
        f"WHERE id = (SELECT id FROM {RESERVATIONS} WHERE key = ? AND run_id = ?) AND state = '{here}'\n"
        "RETURNING run_id"
    )
    return text, (0, 1, 2)


BY_ID = sending({"claim": _by_id("started", "reserved"), "release": _by_id("reserved", "started")})
"""Claim and release find the id of the row, and go by it."""


def _append(chosen: str, places: tuple[int, ...], returning: str = "run_id") -> Text:
    return f"INSERT INTO {LOG} ({COLUMNS})\nSELECT {chosen}\nRETURNING {returning}", places


def _move(state: str, which: str, places: tuple[int, ...], returning: str = "run_id") -> Text:
    chosen = f"key, run_id, '{state}', created_at, ? FROM {RESERVATIONS} WHERE {which}"
    return _append(chosen, places, returning)


def _drop(which: str, places: tuple[int, ...]) -> Text:
    chosen = f"key, run_id, 'gone', created_at, updated_at FROM {RESERVATIONS} WHERE {which}"
    return _append(chosen, places, returning="key")


_MINE = "key = ? AND run_id = ? AND state = "

APPENDING = sending(
    {
        "insert": _append(_ABSENT, (0, 1, 2, 3, 0)),
        "claim": _move("started", f"{_MINE}'reserved'", (0, 1, 2)),
        "release": _move("reserved", f"{_MINE}'started'", (0, 1, 2)),
        "settle": _move("terminal", "run_id = ? AND state <> 'terminal'", (0, 1), returning="key"),
        "purge": _drop("state = 'terminal' AND updated_at < ? ORDER BY updated_at, key LIMIT ?", (0, 2)),
        "delete": _drop("key = ? AND run_id = ?", (0, 1)),
    },
    LOG,
)
"""Every write appends to the log what the row is from now on."""


DIFFERENT: Mapping[str, Different] = {
    "one upsert": Different(
        "reserve is one statement, which gives the row and whether it made it",
        partial(
            Reshaped, operations=over(creating(ASKED), upserting(UPSERT)), schema=ASKED, stepping=False
        ),
    ),
    "a transaction around reserve": Different(
        "insert and read-back stand in one transaction",
        partial(Transacting, operations={**OURS, "reserve": _reserve_in_a_transaction}, stepping=False),
    ),
    "insert where absent": Different(
        "the insert itself looks whether the key is there",
        partial(SqlSubject, operations=over(WHERE_ABSENT)),
    ),
    "insert or error": Different(
        "a plain insert, and the error says that the key is there",
        partial(SqlSubject, operations=over(or_error)),
    ),
    "generated ids": Different(
        "a row is known by an id that the database gives it",
        partial(Reshaped, operations=over(creating(GENERATED), over(BY_ID)), schema=GENERATED),
    ),
    "audited": Different(
        "every change of a row writes to another table, which inflates change counters",
        partial(SqlSubject, operations=over(creating(AUDITED)), schema=AUDITED),
    ),
    "another table": Different(
        "other order and types of columns, row ids, other indexes",
        partial(Reshaped, operations=over(creating(LOOSE)), schema=LOOSE),
    ),
    "archived before the purge": Different(
        "a purge copies rows away and then deletes them, in one transaction",
        partial(Transacting, operations=archiving(COPY), schema=ARCHIVED, stepping=False),
    ),
    "change counter": Different(
        "no statement returns rows: the change counter says what it did",
        partial(Counting, operations=over(returning_nothing)),
    ),
    "a log": Different(
        "no row is ever changed or deleted: what comes last counts",
        partial(Logged, operations=over(creating(LOGGED), over(APPENDING)), schema=LOGGED),
    ),
    "no database": Different("dicts in memory under a mutex; the path is not used", Remembered),
}
"""By name: implementations that differ from ours and keep every clause."""
