"""What a report asks of our implementation and no trace can say: one small script for each such report.

A script gets a folder of its own and says what is wrong; nothing where all is right.
"""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from startonce.impl.databases.sqlite import SqliteDatabase, connect
from startonce.impl.statements import CREATE_RESERVATIONS, INSERT
from startonce.impl.store import Reservations
from startonce.model.errors import NotApplied

BOUND = 100
"""Parameters that one statement binds: as few as on D1."""


def chunks(folder: Path) -> str:
    """B54: a lookup in chunks finds every row once, in order of key, however many ids there are."""
    runs = [f"r{number:03}" for number in range(250)]
    with closing(connect(":memory:")) as database:
        rows = Reservations(database, lambda: 0)
        for run_id in runs[::2]:
            rows.reserve(f"k-{run_id}", run_id)
        database.connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, BOUND)
        capped = Reservations(SqliteDatabase(database.connection), lambda: 0)
        for count in (0, 1, BOUND - 1, BOUND, BOUND + 1, len(runs)):
            asked = [*runs[:count], *runs[: count // 2]]
            found = [row.key for row in capped.for_many_runs(asked)]
            if found != [f"k-{run_id}" for run_id in runs[:count:2]]:
                return f"{count} ids, half of them twice: {len(found)} rows found"
    return ""


def busy(folder: Path) -> str:
    """B58: a claim while the file is locked is certainly not applied, and wins when it is sent again."""
    path = folder / "app.db"
    with closing(connect(path, timeout=0.01)) as ours, closing(connect(path)) as other:
        rows = Reservations(ours, lambda: 0)
        rows.reserve("k1", "r1")
        other.connection.execute("BEGIN IMMEDIATE")
        try:
            return f"the file is locked, and a claim is answered {rows.claim('k1', 'r1')}"
        except NotApplied:
            other.connection.execute("ROLLBACK")
        return "" if rows.claim("k1", "r1") else "the claim that was sent again was lost"


def pure(folder: Path) -> str:
    """B75: a read leaves the bytes of the file, its schema and its data version as they were."""
    path = folder / "app.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("CREATE TABLE other (x)")  # a file that is new would become a WAL file
        for statements in ((), CREATE_RESERVATIONS):
            for statement in statements:
                raw.execute(statement.sql)
            before = path.read_bytes(), *_versions(raw)
            with closing(connect(path)) as ours:
                Reservations(ours, lambda: 0).read("k1")
            if before != (path.read_bytes(), *_versions(raw)):
                return f"a read changed the file, {'with' if statements else 'without'} our tables in it"
    return ""


def _versions(raw: sqlite3.Connection) -> list[int]:
    names = ("data_version", "schema_version")
    return [version for name in names for (version,) in raw.execute(f"PRAGMA {name}")]


def no_null(folder: Path) -> str:
    """X09: the table that a reserve makes takes no row without a key, nor with one that is no text."""
    text = INSERT.sql.replace("VALUES (?, ?, 'reserved', ?, ?)", "VALUES (?, 'r2', 'reserved', 0, 0)")
    with closing(connect(":memory:")) as database:
        Reservations(database, lambda: 0).reserve("k1", "r1")
        for key in (None, b"k2"):
            try:
                database.connection.execute(text, (key,)).fetchall()
            except sqlite3.IntegrityError:
                continue
            return f"a row with the key {key!r} was taken"
    return ""


SCRIPTS: Mapping[str, Callable[[Path], str]] = {"B54": chunks, "B58": busy, "B75": pure, "X09": no_null}
"""By the report that asks for it."""
