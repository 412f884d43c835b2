"""What pictures show of our implementation: the schema as a database has it, and what it refuses."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from startonce.draw.inputs import Asked
from startonce.draw.schema import Column, Table
from startonce.impl import statements as sql
from startonce.impl.databases.sqlite import SqliteDatabase, connect
from startonce.impl.statements import Statement
from startonce.impl.store import Reservations
from startonce.model.errors import StartOnceError, shown
from startonce.model.operations import PROGRAMS, Reserved
from startonce.model.reservation import Reservation

CREATING = (*sql.CREATE_RESERVATIONS, *sql.CREATE_FENCE)


# --- the schema -------------------------------------------------------------------------------------------


def tables() -> tuple[Table, ...]:
    """Return the tables as a database has them after the statements that create them."""
    connection = sqlite3.connect(":memory:")
    try:
        for statement in CREATING:
            connection.execute(statement.sql)
        return tuple(_table(connection, name) for name in (sql.RESERVATIONS, sql.LOCKS, sql.FENCE))
    finally:
        connection.close()


def _table(connection: sqlite3.Connection, name: str) -> Table:
    one = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (name,))
    checks = dict(re.findall(r"(\w+) [A-Z ]*CHECK \((.*)\)", one.fetchone()[0]))
    columns = connection.execute(
        'SELECT name, type, "notnull", pk FROM pragma_table_info(?) ORDER BY cid', (name,)
    )
    writes = dict.fromkeys(one.name for one in sql.ALL if one.writes and one.tables[:1] == (name,))
    reads = dict.fromkeys(one.name for one in sql.ALL if name in one.tables and one.name not in writes)
    made = {one.name for one in CREATING if f"EXISTS {name} " in one.sql}
    return Table(
        name,
        tuple(
            Column(column, kind, bool(key), _refuses(column, notnull, checks))
            for column, kind, notnull, key in columns
        ),
        tuple(_indexes(connection, name)),
        tuple(operation for operation, program in PROGRAMS.items() if made & set(program.creates)),
        tuple(writes),
        tuple(reads),
    )


def _refuses(column: str, notnull: int, checks: dict[str, str]) -> str:
    words = ["no NULL"] if notnull else []
    if column in checks:
        words.append(checks[column].removeprefix(f"{column} ").replace("IN ", "only "))
    return ", ".join(words)


def _indexes(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    wanted = (
        "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql <> '' ORDER BY name"
    )
    for (text,) in connection.execute(wanted, (table,)).fetchall():
        yield text.partition(f"ON {table} ")[2]


# --- what is refused --------------------------------------------------------------------------------------

LIMIT = 100
"""Parameters that a statement binds here: as few as on D1."""

ACCEPTED = ("order-4711", "7", "007", "1e3", "k", "K")
REFUSED = ("", "a b", "k\0", "k" * 201, 7, b"7")


class _Watched:
    """A database that notes every statement that it is sent."""

    def __init__(self, database: SqliteDatabase) -> None:
        self.database = database
        self.parameter_limit = LIMIT
        self.schema_ensured = False
        self.sent: list[str] = []

    def run(self, statement: Statement, parameters: tuple[Any, ...]) -> list[Any]:
        self.sent.append(statement.name)
        return self.database.run(statement, parameters)


def inputs() -> list[Asked]:
    """Ask our store on a real database for what it accepts and refuses, and note what comes of it."""
    database = connect(":memory:")
    watched = _Watched(database)
    clock = [0]
    store = Reservations(watched, lambda: clock[0])
    found = []

    def ask(words: str, call: Callable[[], Any]) -> None:
        watched.sent.clear()
        try:
            came, failed = _came(call()), False
        except StartOnceError as error:
            came, failed = type(error).__name__, True
        found.append(Asked(words, tuple(watched.sent), came, failed))

    try:
        store.reserve("a", "ra")
        for number, key in enumerate(ACCEPTED):
            ask(f"reserve {shown(key)}", partial(store.reserve, key, f"r{number}"))
        for value in REFUSED:
            refused: Any = value
            ask(f"reserve {_short(value)}", partial(store.reserve, refused, "r"))
        runs = [f"r{number}" for number in range(LIMIT + 1)]
        ask(f"for_runs of {LIMIT} runs", lambda: store.for_runs(runs[:LIMIT]))
        ask(f"for_runs of {LIMIT + 1} runs", lambda: store.for_runs(runs))
        clock[0] = 2**70
        ask("reserve, the clock far too large", lambda: store.reserve("b", "rb"))
        database.connection.execute("PRAGMA ignore_check_constraints = 1")
        database.utils.table(sql.RESERVATIONS).update("a", {"state": "begun"})
        ask("read a row that says 'begun'", lambda: store.read("a"))
    finally:
        database.close()
    return found


def _short(value: object) -> str:
    return f"{len(value)} letters" if isinstance(value, str) and len(value) > 20 else shown(value)


def _came(answer: Any) -> str:
    if isinstance(answer, Reserved):
        return f"{answer.row.run_id}, {'created' if answer.created else 'not created'}"
    if isinstance(answer, tuple) and all(isinstance(row, Reservation) for row in answer):
        return f"{len(answer)} rows"
    return shown(answer)
