"""Every picture by name: those that the model alone is enough for, and those of explorations and the schema.

`startonce.draw` knows the model and nothing else; what a picture needs of the checker, the statements or a
trace file is put together here.
"""

import re
import sqlite3
from collections.abc import Iterator

from startonce.draw.schema import Column, Table
from startonce.impl import statements as sql
from startonce.model.operations import PROGRAMS


def tables() -> tuple[Table, ...]:
    """Return the tables as a database makes them of the statements that create them."""
    connection = sqlite3.connect(":memory:")
    try:
        for statement in (*sql.CREATE_RESERVATIONS, *sql.CREATE_FENCE):
            connection.execute(statement.sql)
        return tuple(_table(connection, name) for name in (sql.RESERVATIONS, sql.LOCKS, sql.FENCE))
    finally:
        connection.close()


def _table(connection: sqlite3.Connection, name: str) -> Table:
    ((text,),) = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (name,))
    checks = dict(re.findall(r"(\w+) [A-Z ]*CHECK \((.*)\)", text))
    columns = tuple(
        Column(column, kind, bool(key), _refuses(column, notnull, checks))
        for column, kind, notnull, key in connection.execute(
            'SELECT name, type, "notnull", pk FROM pragma_table_info(?) ORDER BY cid', (name,)
        )
    )
    writes = [one.name for one in sql.ALL if one.writes and one.tables[:1] == (name,)]
    reads = [one.name for one in sql.ALL if name in one.tables and one.name not in writes]
    return Table(
        name,
        columns,
        tuple(_indexes(connection, name)),
        tuple(operation for operation, program in PROGRAMS.items() if _creates(program.creates, name)),
        tuple(dict.fromkeys(writes)),
        tuple(dict.fromkeys(reads)),
    )


def _creates(creates: tuple[str, ...], table: str) -> bool:
    made = {one.name: one.sql for one in (*sql.CREATE_RESERVATIONS, *sql.CREATE_FENCE) if f"EXISTS {table} " in one.sql}
    return bool(made.keys() & set(creates))


def _refuses(column: str, notnull: int, checks: dict[str, str]) -> str:
    words = ["no NULL"] if notnull else []
    if column in checks:
        words.append(checks[column].removeprefix(f"{column} ").replace("IN ", "only "))
    return ", ".join(words)


def _indexes(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    found = connection.execute(
        "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL ORDER BY name",
        (table,),
    )
    for (text,) in found.fetchall():
        yield text.partition(f"ON {table} ")[2]
