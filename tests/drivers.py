"""Foreign drivers: databases that say of a write something else than what it did, as reports tell of them."""

import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any

from startonce.impl.databases.sqlite import SqliteDatabase
from startonce.impl.statements import RESERVATIONS, Statement
from startonce.model.errors import UnknownOutcome
from startonce.oracle.different import CountingDatabase
from startonce.own import SCHEMA, Schema, SqlSubject


class Silent(SqliteDatabase):
    """A driver that gives no rows of a write, and whose count of changes says nothing (B49)."""

    def run(self, statement: Statement, parameters: tuple[Any, ...]) -> list[Any]:
        rows = super().run(statement, parameters)
        if "RETURNING" in statement.sql:
            raise UnknownOutcome(statement.name, "the driver says nothing of what it did")
        return rows


class RowsWritten(SqliteDatabase):
    """A driver of which the wrong field is read: every write wrote three rows, with those of indexes (B53)."""

    def run(self, statement: Statement, parameters: tuple[Any, ...]) -> list[Any]:
        rows = super().run(statement, parameters)
        return [()] * 3 if statement.writes else rows


class Matched(SqliteDatabase):
    """A driver that counts the rows which a write matched (B62)."""

    def run(self, statement: Statement, parameters: tuple[Any, ...]) -> list[Any]:
        rows = super().run(statement, parameters)
        return [()] * len(rows) if statement.writes else rows


class Changed(SqliteDatabase):
    """A driver that counts the rows which are not what they were before (B62)."""

    def run(self, statement: Statement, parameters: tuple[Any, ...]) -> list[Any]:
        before = self.content()
        rows = super().run(statement, parameters)
        return [()] * len(self.content() - before) if statement.writes else rows

    def content(self) -> set[Any]:
        tables = [] if self.missing(RESERVATIONS) else [RESERVATIONS]
        return {row for table in tables for row in self.connection.execute(f"SELECT * FROM {table}")}


LOGGED: Schema = {
    **SCHEMA,
    RESERVATIONS: (
        *SCHEMA[RESERVATIONS],
        Statement("create index", "CREATE TABLE IF NOT EXISTS log (x)", True, ()),
        *(
            Statement(
                "create index",
                f"CREATE TRIGGER IF NOT EXISTS on_{event} AFTER {event} ON {RESERVATIONS} "
                "BEGIN INSERT INTO log VALUES (1), (2); END",
                True,
                (),
            )
            for event in ("INSERT", "UPDATE")
        ),
    ),
}
"""Every change of a row writes two more (B51)."""


def over(kind: Callable[[sqlite3.Connection], SqliteDatabase], schema: Schema = SCHEMA) -> SqlSubject:
    """Return our store on a driver, in memory."""

    class Driven(SqlSubject):
        def _connect(self) -> SqliteDatabase:
            return kind(super()._connect().connection)

    return Driven(schema=schema)


DRIVERS: dict[str, Callable[[], SqlSubject]] = {
    "silent": partial(over, Silent),
    "triggers": partial(over, SqliteDatabase, LOGGED),
    "triggers, counted": partial(over, CountingDatabase, LOGGED),
    "rows written": partial(over, RowsWritten),
    "matched": partial(over, Matched),
    "changed": partial(over, Changed),
}
