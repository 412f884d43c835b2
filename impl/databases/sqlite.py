"""SQLite through sqlite-utils: one connection per caller, in autocommit."""

import os
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlite_utils

from startonce.impl.statements import FENCE, LOCKS, RESERVATIONS, Statement
from startonce.model.errors import (
    DatabaseUnusable,
    ForeignTable,
    NotApplied,
    StartOnceError,
    TableMissing,
    UnknownOutcome,
    Unreadable,
    ValueRefused,
)

OLDEST = (3, 37, 0)
"""STRICT tables need this version; RETURNING and upserts are older."""

CERTAINLY_NOT_APPLIED: Mapping[str, str] = {
    "SQLITE_BUSY": "another connection held the database locked for longer than the timeout",
    "SQLITE_LOCKED": "another statement of this process holds the table locked",
    "SQLITE_READONLY": "the database cannot be written by this connection",
    "SQLITE_CONSTRAINT": "the schema refuses a value",
    "SQLITE_TOOBIG": "a value is longer than the database stores",
    "SQLITE_MISMATCH": "a value has a type that the schema refuses",
    "SQLITE_RANGE": "a parameter is out of range",
    "SQLITE_AUTH": "the statement is forbidden to this connection",
    "SQLITE_PERM": "the file's permissions forbid it",
    "SQLITE_CANTOPEN": "the file or its journal cannot be opened",
    "SQLITE_NOTADB": "the file is not a SQLite database",
    "SQLITE_PROTOCOL": "the lock on the write-ahead log could not be had",
    "SQLITE_INTERRUPT": "the statement was interrupted and rolled back",
    "SQLITE_ABORT": "the statement was aborted and rolled back",
    "SQLITE_SCHEMA": "the schema kept changing",
    "SQLITE_MISUSE": "the connection cannot be used",
    "SQLITE_ERROR": "the statement does not fit the schema",
}
"""The primary codes after which a statement in autocommit certainly changed nothing.

Every other code is an unknown outcome: SQLITE_IOERR and SQLITE_FULL can strike after the commit
record is in the log, SQLITE_CORRUPT and SQLITE_NOMEM promise nothing. So is SQLITE_CONSTRAINT_TRIGGER:
a trigger that raises FAIL leaves behind what was changed before it.
"""

RUNS = 5
"""How often a statement is run while the schema changes underneath it, before that is an error."""

_CODES = {getattr(sqlite3, name): name for name in CERTAINLY_NOT_APPLIED}
_REFUSALS = ("SQLITE_CONSTRAINT", "SQLITE_TOOBIG", "SQLITE_MISMATCH")


class SqliteDatabase:
    """A database as one caller sees it. Made by `connect`."""

    dialect = "SQLite"

    def __init__(self, connection: sqlite3.Connection) -> None:
        if sqlite3.sqlite_version_info < OLDEST:
            raise DatabaseUnusable(
                f"SQLite {sqlite3.sqlite_version} is too old: "
                f"{'.'.join(map(str, OLDEST))} or newer is needed"
            )
        if connection.isolation_level is not None:
            raise DatabaseUnusable("the connection is not in autocommit: pass isolation_level=None")
        self.connection = connection
        self.utils = sqlite_utils.Database(connection, recursive_triggers=False, execute_plugins=False)
        self._execute = self.utils.execute
        self.parameter_limit = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
        self.schema_ensured = False

    def run(self, statement: Statement, parameters: tuple[Any, ...]) -> list[Any]:
        """Run one statement and return its rows.

        A transaction that somebody left open on the connection is refused: what is read in it may be
        old, and what is written in it can be taken back.

        Raises `TableMissing`, and as the table above says `NotApplied`, `ValueRefused`, `ForeignTable`,
        `UnknownOutcome`, or for a read `Unreadable`.
        """
        runs = 0
        while runs < RUNS:
            try:
                if self.connection.in_transaction:
                    break
                return self._execute(statement.sql, parameters).fetchall()
            except (sqlite3.Error, OverflowError, UnicodeError) as error:
                named = self._named(statement, error)
                if named is not None:
                    raise named from error
                runs += 1
        else:
            raise _kind(statement)(statement.name, "the schema keeps changing (SQLITE_SCHEMA)")
        raise _kind(statement)(statement.name, "a transaction is open on this connection: end it first")

    def missing(self, *tables: str) -> tuple[str, ...]:
        """Name those of some tables that do not exist, in their order."""
        there = {
            name
            for (name,) in self.utils.execute(
                "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')"
            )
        }
        return tuple(table for table in tables if table not in there)

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def _named(self, statement: Statement, error: Exception) -> StartOnceError | None:
        """Name an error; None where the schema changed underneath, and the statement may be run again."""
        name = _name(error)
        said = "".join(char if char.isprintable() else " " for char in str(error)[:200])
        text = f"{said} ({getattr(error, 'sqlite_errorname', type(error).__name__)})"
        if name == "SQLITE_SCHEMA":
            return None
        if name == "SQLITE_ERROR":
            table = str(error).removeprefix("no such table: ").removeprefix("main.")
            if table not in statement.tables:
                return ForeignTable(statement.name, text)
            try:
                missing = self.missing(*statement.tables)
            except sqlite3.Error:
                return ForeignTable(statement.name, text)
            return TableMissing(missing[0]) if missing else None
        if not statement.writes:
            return Unreadable(
                statement.name, f"{CERTAINLY_NOT_APPLIED.get(name or '', 'an error')}: {text}"
            )
        if name is None:
            return UnknownOutcome(statement.name, text)
        kind = ValueRefused if name in _REFUSALS else NotApplied
        return kind(statement.name, f"{CERTAINLY_NOT_APPLIED[name]}: {text}")


def _name(error: Exception) -> str | None:
    """Return the name of the code that an error has in the table, or stands for."""
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_CONSTRAINT_TRIGGER:
        return None  # RAISE(FAIL) leaves what was changed before it
    if code is not None:
        return _CODES.get(code & 0xFF)
    if isinstance(error, OverflowError | UnicodeError) or "binding parameter" in str(error):
        return "SQLITE_MISMATCH"
    return "SQLITE_MISUSE" if isinstance(error, sqlite3.ProgrammingError) else None


def _kind(statement: Statement) -> type[NotApplied] | type[Unreadable]:
    return NotApplied if statement.writes else Unreadable


def connect(
    path: str | os.PathLike[str],
    *,
    timeout: float = 5.0,
    readonly: bool = False,
    create: bool = True,
    check_same_thread: bool = True,
) -> SqliteDatabase:
    """Open a database file, or `:memory:`; a file that is new becomes a WAL file.

    `timeout` is in seconds: how long a statement waits for another connection's lock. `synchronous` stays
    at SQLite's default FULL: a claim that a power cut could take back would let a run start twice.
    Raises `DatabaseUnusable` for a file that is missing (`create=False`, `readonly`), unreadable, or
    not a database; nothing is written to it.
    """
    path = os.fspath(path)
    file = None if path == ":memory:" else Path(path)
    mode = "ro" if readonly else "rwc" if create else "rw"
    if file is not None:
        _look_at(file, must_exist=mode != "rwc")
    target = path if file is None else f"file:{quote(os.fsencode(file.absolute()))}?mode={mode}"
    try:
        connection = sqlite3.connect(
            target,
            timeout=timeout,
            isolation_level=None,
            uri=file is not None,
            check_same_thread=check_same_thread,
        )
    except sqlite3.Error as error:
        raise DatabaseUnusable(f"{ascii(path)[1:-1]} cannot be opened: {error}") from error
    try:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        if pages == 0 and file is not None and not readonly:
            _make_wal(connection, timeout)
        return SqliteDatabase(connection)
    except sqlite3.Error as error:
        connection.close()
        raise DatabaseUnusable(f"{ascii(path)[1:-1]} cannot be used: {error}") from error
    except DatabaseUnusable:
        connection.close()
        raise


def _look_at(file: Path, *, must_exist: bool) -> None:
    name = ascii(str(file))[1:-1]
    if "\0" in str(file):
        raise DatabaseUnusable(f"{name} is no file name: it holds a NUL")
    try:
        if not file.exists():
            if must_exist:
                raise DatabaseUnusable(f"{name} does not exist")
            if not file.absolute().parent.is_dir():
                raise DatabaseUnusable(f"{name} cannot be created: there is no such folder")
            return
        if not file.is_file():
            what = "a folder" if file.is_dir() else "no regular file"
            raise DatabaseUnusable(f"{name} is {what}, not a database file")
        with file.open("rb") as opened:
            head = opened.read(16)
    except OSError as error:
        raise DatabaseUnusable(f"{name[:200]} cannot be read: {error.strerror}") from error
    if head and head != b"SQLite format 3\0":
        first = ascii(head[:4])[2:-1]
        raise DatabaseUnusable(f'{name} is not a SQLite database (its first bytes are "{first}")')


def _make_wal(connection: sqlite3.Connection, timeout: float) -> None:
    # SQLite does not wait for its busy timeout here: several processes may open the new file at once.
    give_up = time.monotonic() + timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except sqlite3.OperationalError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.01)


TABLES = (RESERVATIONS, LOCKS, FENCE)
