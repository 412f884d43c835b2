"""What the store costs over bare `sqlite3`: reserve, claim and settle on fresh keys.

The bare side runs the same statements, the insert's read-back included, with the same parameters on
the same schema, and fetches the same rows.
"""

import itertools
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import pairs
from pairs import Figure, Mode, Pair, Work

from startonce.impl import statements as sql
from startonce.impl.databases.sqlite import SqliteDatabase, connect
from startonce.impl.deployment import Deployment, fresh_id, system_clock

CYCLES = 2000
BLOCK = 20

Cycle = tuple[str, str]
"""A fresh key and a fresh run id."""

_numbers = itertools.count()


def fresh() -> list[Cycle]:
    """Return keys and run ids that no database has seen."""
    return [(f"order-{number:08d}", fresh_id()) for number in itertools.islice(_numbers, CYCLES)]


def bare(connection: sqlite3.Connection) -> Work[Cycle]:
    """Run the statements of a cycle by hand."""
    execute = connection.execute
    insert, read_back, claim, settle = (
        statement.sql for statement in (sql.INSERT, sql.READ_BACK, sql.CLAIM, sql.SETTLE)
    )

    now = system_clock()  # the store reads the clock three times a cycle; here it is for nothing

    def cycles(some: Sequence[Cycle]) -> None:
        for key, run_id in some:
            execute(insert, (key, run_id, now, now)).fetchall()
            execute(read_back, (key,)).fetchall()
            execute(claim, (now, key, run_id)).fetchall()
            execute(settle, (now, run_id)).fetchall()

    return cycles


def ours(database: SqliteDatabase) -> Work[Cycle]:
    """Run the same cycle through the store."""
    store = Deployment(database).reservations

    def cycles(some: Sequence[Cycle]) -> None:
        for key, run_id in some:
            store.reserve(key, run_id)
            store.claim(key, run_id)
            store.settle(run_id)

    return cycles


def measured(folder: Path | None) -> tuple[list[Pair], Mode]:
    """Measure every pair, each on two new databases, in memory or in a folder."""
    found = []
    for number in range(pairs.PAIRS):
        with ExitStack() as stack:
            paths = [":memory:" if folder is None else folder / f"{n}-{number}.db" for n in "ab"]
            one, other = (stack.enter_context(closing(_opened(path))) for path in paths)
            found.append(pairs.in_turn(bare(one.connection), ours(other), fresh(), fresh(), BLOCK))
            mode = pairs.mode_of(other.connection)
    return found, mode


def _opened(path: Path | str) -> SqliteDatabase:
    database = connect(path)
    if path != ":memory:":
        database.connection.execute("PRAGMA synchronous = NORMAL")
    for statement in sql.CREATE_RESERVATIONS:
        database.connection.execute(statement.sql)
    return database


def figures() -> Iterator[Figure]:
    """Measure in memory and on a file."""
    names = ("bare sqlite3, a cycle", "store, a cycle")
    in_memory, mode = measured(None)
    yield from pairs.compared(in_memory, names, mode)
    more = pairs.difference(in_memory)
    yield Figure("more than bare, a cycle", more, "µs", mode, at_most=12)
    with tempfile.TemporaryDirectory(dir=pairs.MEMORY_FILES) as folder:
        on_file, mode = measured(Path(folder))
    yield from pairs.compared(on_file, names, mode)
    yield Figure("store / bare", pairs.ratio(on_file), "times", mode, at_most=1.3)


if __name__ == "__main__":
    title = f"Reserve, claim, settle on a fresh key: median of {pairs.PAIRS} pairs of {CYCLES:,} cycles"
    sys.exit(pairs.conclude(title, list(figures())))
