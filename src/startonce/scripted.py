"""What a report asks of our implementation and no trace can say: one small script for each such report.

A script gets a folder of its own and says what is wrong; nothing where all is right.
"""

import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

from startonce.impl.databases.sqlite import SqliteDatabase, connect
from startonce.impl.statements import CREATE_RESERVATIONS, INSERT
from startonce.impl.store import Reservations
from startonce.model.errors import NotApplied

BOUND = 100
"""Parameters that one statement binds: as few as on D1."""


def chunks(folder: Path) -> str:
    """B54: a lookup in chunks finds what a lookup at once finds, each row once and in order."""
    database = connect(":memory:")
    whole = Reservations(database, lambda: 0)
    runs = [f"r{number:03}" for number in range(250)]
    for run_id in runs[::2]:
        whole.reserve(f"k-{run_id}", run_id)
    capped = SqliteDatabase(database.connection)
    capped.connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, BOUND)
    capped.parameter_limit = BOUND
    in_chunks = Reservations(capped, lambda: 0)
    for count in (0, 1, BOUND - 1, BOUND, BOUND + 1, len(runs)):
        asked = [*runs[:count], *runs[: count // 2]]
        there = tuple(f"k-{run_id}" for run_id in runs[:count:2])
        found = tuple(row.key for row in in_chunks.for_many_runs(asked))
        if found != there:
            return f"{count} ids: {len(found)} rows found, {len(there)} are there"
    database.close()
    return ""


def busy(folder: Path) -> str:
    """B58: a claim while the file is locked is certainly not applied, and wins when it is sent again."""
    ours, other = connect(folder / "app.db", timeout=0.01), connect(folder / "app.db")
    rows = Reservations(ours, lambda: 0)
    rows.reserve("k1", "r1")
    other.connection.execute("BEGIN IMMEDIATE")
    try:
        rows.claim("k1", "r1")
    except NotApplied:
        said = ""
    else:
        said = "a claim was answered although the file was locked"
    other.connection.execute("ROLLBACK")
    said = said or ("" if rows.claim("k1", "r1") else "the claim that was sent again was lost")
    ours.close()
    other.close()
    return said


def pure(folder: Path) -> str:
    """B75: a read leaves the bytes of the file, its schema and its data version as they were."""
    path = folder / "app.db"
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("CREATE TABLE other (x)")  # a file that is new would become a WAL file
    for tables in (False, True):
        for statement in CREATE_RESERVATIONS if tables else ():
            raw.execute(statement.sql)
        ours = connect(path)
        before = path.read_bytes(), _versions(raw)
        Reservations(ours, lambda: 0).read("k1")
        after = path.read_bytes(), _versions(raw)
        ours.close()
        if before != after:
            return f"a read {'with' if tables else 'without'} tables changed the file"
    raw.close()
    return ""


def _versions(raw: sqlite3.Connection) -> tuple[int, ...]:
    return tuple(raw.execute(f"PRAGMA {name}").fetchone()[0] for name in ("data_version", "schema_version"))


def no_null(folder: Path) -> str:
    """X09: the table that a reserve makes takes no row without a key."""
    database = connect(":memory:")
    Reservations(database, lambda: 0).reserve("k1", "r1")
    text = INSERT.sql.replace("VALUES (?, ?, 'reserved', ?, ?)", "VALUES (?, 'r2', 'reserved', 0, 0)")
    for key in (None, b"k2"):
        try:
            database.connection.execute(text, (key,))
        except sqlite3.IntegrityError:
            continue
        return f"a row with the key {key!r} was taken"
    database.close()
    return ""


SCRIPTS: Mapping[str, Callable[[Path], str]] = {"B54": chunks, "B58": busy, "B75": pure, "X09": no_null}
"""By the report that asks for it."""
