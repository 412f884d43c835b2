"""Broken reads, inventory and inputs, and broken schemas."""

import sqlite3
from collections.abc import Mapping
from typing import Any

from startonce.impl import operations as op
from startonce.impl import statements as sql
from startonce.impl.databases.sqlite import SqliteDatabase
from startonce.impl.operations import Operation
from startonce.impl.statements import Statement
from startonce.model.errors import ForeignTable, MalformedRow, NotApplied, Unreadable
from startonce.model.operations import Reserved
from startonce.model.reservation import Database, Entry, Reservation
from startonce.oracle.broken.changes import Mutant, changed, instead, table
from startonce.own import PARAMETER_LIMIT, SqlSubject

Rows = tuple[Reservation, ...]

NO_BAD_INPUT = "the machine sends no bad input"
NO_SUCH_KEYS = "its keys are not alike"


def _read_creates(now: int, key: str) -> Operation[Reservation | None]:
    op.check("key", key)
    for statement in sql.CREATE_RESERVATIONS:
        yield statement, ()
    return (yield from op.read(key))


def _any_missing_table_is_ours(now: int, key: str) -> Operation[Reservation | None]:
    try:
        return (yield from op.read(key))
    except ForeignTable:
        return None


def _unreadable_is_absent(now: int, key: str) -> Operation[Reservation | None]:
    try:
        return (yield from op.read(key))
    except (MalformedRow, Unreadable):
        return None


def _each_run_apart(now: int, *run_ids: str) -> Operation[Rows]:
    for run_id in run_ids:
        op.check("run id", run_id)
    found: Rows = ()
    for run_id in run_ids:
        found += yield from op.for_runs([run_id], PARAMETER_LIMIT)
    return found


def _for_runs_is_cut(now: int, *run_ids: str) -> Operation[Rows]:
    return (yield from op.for_runs(run_ids[:PARAMETER_LIMIT], PARAMETER_LIMIT))


def _first_row_of_each_run(now: int, *run_ids: str) -> Operation[Rows]:
    rows = yield from op.for_runs(run_ids, PARAMETER_LIMIT)
    return tuple({row.run_id: row for row in reversed(rows)}.values())


def _ended_is_running(now: int, after: Any, limit: int) -> Operation[tuple[Entry, ...]]:
    entries = yield from op.inventory(after, limit)
    wrong, right = "reached the lock, not ended", "ended, not settled"
    return tuple(e._replace(kind=wrong) if e.kind == right else e for e in entries)


# --- inputs ------------------------------------------------------------------------------------------


def _trims(now: int, key: Any, run_id: str, create: bool = False) -> Operation[Reserved]:
    key = key.strip() if isinstance(key, str) else key
    return (yield from op.reserve(key, run_id, now, create=create))


def _takes_numbers(now: int, key: Any, run_id: str, create: bool = False) -> Operation[Reserved]:
    return (yield from op.reserve(str(key) if isinstance(key, int) else key, run_id, now, create=create))


def _empty_is_no_key(now: int, key: Any, run_id: str, create: bool = False) -> Operation[Reserved]:
    return (yield from op.reserve(key or run_id, run_id, now, create=create))


def _cuts(now: int, key: Any, run_id: str, create: bool = False) -> Operation[Reserved]:
    return (yield from op.reserve(key[:200] if isinstance(key, str) else key, run_id, now, create=create))


def _folds_case(now: int, key: str, run_id: str, create: bool = False) -> Operation[Reserved]:
    op.check("key", key)
    return (yield from op.reserve(key.lower(), run_id, now, create=create))


# --- transactions that stay open ---------------------------------------------------------------------


class _Unguarded(SqliteDatabase):
    """A driver that does not mind a transaction which is open."""

    def run(self, statement: Statement, parameters: tuple[Any, ...]) -> list[Any]:
        """Run one statement, in whatever transaction there is."""
        if not self.connection.in_transaction:
            return super().run(statement, parameters)
        if statement.sql.startswith("BEGIN"):
            return []
        try:
            return self.connection.execute(statement.sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise NotApplied(statement.name, str(error)) from error


class Unguarded(SqlSubject):
    """A subject on such a driver. To be put into a state ends what its callers have left open."""

    def put(self, db: Database) -> None:
        """Make the database be exactly this."""
        self._end()
        super().put(db)

    def put_rows(self, rows: Rows, present: Any) -> None:
        """Replace the rows."""
        self._end()
        super().put_rows(rows, present)

    def unspoil(self) -> None:
        """Leave a database without our tables."""
        self._end()
        super().unspoil()

    def _end(self) -> None:
        for database in self._callers:
            database.connection.rollback()

    def _connect(self) -> SqliteDatabase:
        return _Unguarded(super()._connect().connection)


class FenceApart(SqlSubject):
    """A subject whose connections may have a fence of their own."""

    def put(self, db: Database) -> None:
        """Make the database be exactly this, in every connection."""
        for database in self._callers:
            database.connection.execute(f"DROP TABLE IF EXISTS temp.{sql.FENCE}")
        super().put(db)


def _begin(how: str) -> tuple[Statement, tuple[()]]:
    return Statement("begin", how, True, ()), ()


def _checks_inside(now: int, key: str, run_id: str, create: bool = False) -> Operation[Reserved]:
    yield _begin("BEGIN IMMEDIATE")
    answer = yield from op.reserve(key, run_id, now, create=create)
    yield _begin("COMMIT")
    return answer


def _reads_inside(now: int, key: str) -> Operation[Reservation | None]:
    op.check("key", key)
    yield _begin("BEGIN")
    return (yield from op.read(key))


def _read_locks(now: int, key: str) -> Operation[Reservation | None]:
    op.check("key", key)
    text = f"UPDATE {sql.RESERVATIONS} SET key = key WHERE key = ?"
    try:
        yield Statement("read", text, True, (sql.RESERVATIONS,)), (key,)
    except NotApplied as error:
        raise Unreadable("read", "locked") from error
    return (yield from op.read(key))


MUTANTS: Mapping[str, Mutant] = {
    "read creates the schema": Mutant(
        "RD-1", "looking a key up makes the table", instead(read=_read_creates), seen=("B75",), own=True
    ),
    "read opens a transaction": Mutant(
        "RD-3",
        "a read in a transaction that nobody ends",
        instead(read=_reads_inside),
        seen=("B58",),
        kind=Unguarded,
        own=True,
    ),
    "any missing table is ours": Mutant(
        "RD-2",
        "the words “no such table” are enough",
        instead(read=_any_missing_table_is_ours),
        seen=("B61", "X10"),
        blind="the machine never spoils the schema",
    ),
    "unreadable is absent": Mutant(
        "RD-3", "an error of a read is taken for no row", instead(read=_unreadable_is_absent), seen=("B21",)
    ),
    "read locks the row": Mutant(
        "RD-3", "a select for update", instead(read=_read_locks), seen=("B75",), own=True
    ),
    "one row of each run": Mutant(
        "RUN-1",
        "one run, one key: so it was thought",
        instead(for_runs=_first_row_of_each_run),
        seen=("B17",),
    ),
    "repeated runs, repeated rows": Mutant(
        "RUN-1", "a query for each id that is asked for", instead(for_runs=_each_run_apart), own=True
    ),
    "for_runs cut at the limit": Mutant(
        "RUN-2",
        "what one statement does not bind is left out",
        instead(for_runs=_for_runs_is_cut),
        seen=("B54",),
        blind="the machine asks for fewer runs than the limit",
    ),
    "for_runs tells another time": Mutant(
        "RUN-3",
        "a list with columns of its own",
        changed("for runs", "created_at, updated_at", "created_at, created_at"),
    ),
    "inventory of rows alone": Mutant(
        "INV-1",
        "a drain that waits for rows only",
        changed("inventory", "l.ended = 0 AND l.key IS NOT NULL", "l.ended = 0 AND 0"),
    ),
    "inventory of started rows": Mutant(
        "INV-1",
        "what is reserved is nobody's",
        changed("inventory", "r.state <> 'terminal'", "r.state = 'started'"),
    ),
    "ended shown as running": Mutant(
        "INV-2", "the mark that a run has ended is not looked at", instead(inventory=_ended_is_running)
    ),
    "fence in another database": Mutant(
        "DB-1",
        "the fence is closed where only this connection sees it",
        changed("create fence", "CREATE TABLE", "CREATE TEMP TABLE"),
        seen=("B61",),
        kind=FenceApart,
    ),
    # inputs
    "trimmed keys": Mutant(
        "IN-1", "white space around a key is cut off", instead(reserve=_trims), blind=NO_BAD_INPUT
    ),
    "numbers taken for keys": Mutant(
        "IN-1", "a key of another type is converted", instead(reserve=_takes_numbers), blind=NO_BAD_INPUT
    ),
    "empty key, no key": Mutant(
        "IN-1",
        "an empty key is treated as none",
        instead(reserve=_empty_is_no_key),
        seen=("B10",),
        blind=NO_BAD_INPUT,
    ),
    "bad key leaves a transaction open": Mutant(
        "IN-1",
        "begin first, then look at the arguments",
        instead(reserve=_checks_inside),
        seen=("B65", "B68"),
        blind=NO_BAD_INPUT,
        kind=Unguarded,
        own=True,
    ),
    "long keys cut": Mutant(
        "IN-1", "what is too long is cut to fit", instead(reserve=_cuts), seen=("B66",), blind=NO_BAD_INPUT
    ),
    "case-folding keys": Mutant(
        "IN-2",
        "keys are stored in lower case",
        instead(reserve=_folds_case),
        seen=("B63",),
        blind=NO_SUCH_KEYS,
    ),
    "case-folding column": Mutant(
        "IN-2",
        "a collation that ignores case",
        **table(sql.RESERVATIONS, ("key        TEXT NOT NULL", "key        TEXT COLLATE NOCASE NOT NULL")),
        seen=("B63",),
        blind=NO_SUCH_KEYS,
    ),
    "keys with numeric affinity": Mutant(
        "IN-2",
        "a column that turns 007 into 7",
        **table(
            sql.RESERVATIONS, ("key        TEXT", "key        NUMERIC"), (" STRICT, WITHOUT", " WITHOUT")
        ),
        blind=NO_SUCH_KEYS,
    ),
}
