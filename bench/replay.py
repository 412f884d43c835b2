"""What a replay costs: `Deployment.start` of a key whose run is over, its result kept.

It is one read, measured against the same SELECT on bare `sqlite3`. The keys are asked for one by one in
random order, from as many as a deployment would hold; a table of few keys, asked for in blocks, is
measured too, as information: SQLite has all of it in its cache there. A replay never waits for a writer.
"""

import random
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from time import perf_counter_ns

import pairs
from pairs import Figure, Mode, Pair, Work

from startonce.impl import statements as sql
from startonce.impl.databases.sqlite import connect
from startonce.impl.deployment import Deployment, fresh_id
from startonce.impl.execution import Run
from startonce.impl.start import Replayed
from startonce.impl.statements import Statement

MANY, FEW = 100_000, 200
CALLS = 5_000
RESULT = {"paid": 1}


def refused(run: Run) -> None:
    """Work that must not be done: its run is over."""
    raise AssertionError(f"{run.key} was executed again")


def filled(file: Path, keys: Sequence[str]) -> None:
    """Execute and settle the first key, and write what that left behind for all the other keys too."""
    first, others = keys[0], keys[1:]
    with closing(connect(file)) as database:
        deployment = Deployment(database)
        deployment.start(first, lambda run: RESULT)
        row = deployment.reservations.read(first)
        lock = row and deployment.locks.lock_of(row.run_id)
    assert row is not None
    assert lock is not None
    runs = [(key, fresh_id()) for key in others]
    rows = [row._replace(key=key, run_id=run_id) for key, run_id in runs]
    locks = [lock._replace(key=key, run_id=run_id, holder=fresh_id()) for key, run_id in runs]
    with closing(_bare(file)) as connection:
        connection.execute("BEGIN")
        connection.executemany(f"INSERT INTO {sql.RESERVATIONS} VALUES (?, ?, ?, ?, ?)", rows)  # noqa: S608
        connection.executemany(f"INSERT INTO {sql.LOCKS} VALUES (?, ?, ?, ?, ?, ?)", locks)  # noqa: S608
        connection.execute("COMMIT")


def selecting(connection: sqlite3.Connection, statement: Statement) -> Work[str]:
    """Run one SELECT for each key, by hand."""
    execute, text = connection.execute, statement.sql

    def select(keys: Sequence[str]) -> None:
        for key in keys:
            execute(text, (key,)).fetchall()

    return select


def replaying(deployment: Deployment) -> Work[str]:
    """Start each key again."""
    start = deployment.start

    def replay(keys: Sequence[str]) -> None:
        for key in keys:
            start(key, refused)

    return replay


def measured(file: Path, keys: Sequence[str], statement: Statement, block: int) -> tuple[list[Pair], Mode]:
    """Measure replays against a SELECT, each on a connection of its own."""
    order = random.Random(1)
    with closing(connect(file)) as database, closing(_bare(file)) as connection:
        deployment = Deployment(database)
        assert isinstance(deployment.start(keys[0], refused), Replayed)
        found = [
            pairs.in_turn(
                selecting(connection, statement),
                replaying(deployment),
                order.choices(keys, k=CALLS),
                order.choices(keys, k=CALLS),
                block,
            )
            for _ in range(pairs.PAIRS + 1)
        ]
        return found[1:], pairs.mode_of(database.connection)  # the first one filled the caches


def beside_a_writer(file: Path, key: str) -> Figure:
    """Replay while another connection is in the middle of a write, which nobody else could do now."""
    with closing(_bare(file)) as writer, closing(connect(file)) as database:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute(f"UPDATE {sql.RESERVATIONS} SET updated_at = updated_at + 1")  # noqa: S608
        with closing(connect(file, timeout=0)) as third:
            try:
                third.connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                pass
            else:
                raise AssertionError("the writer does not hold the database")
        deployment = Deployment(database)
        begun = perf_counter_ns()
        answer = deployment.start(key, refused)
        took = perf_counter_ns() - begun
        writer.execute("ROLLBACK")
        assert isinstance(answer, Replayed)
        assert answer.result == RESULT
        mode = pairs.mode_of(database.connection)
    return Figure("beside a writer, its first read", took / 1e6, "ms", mode, at_most=50)


def _bare(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(file, isolation_level=None)


def figures(folder: Path) -> Iterator[Figure]:
    """Measure a table of many keys and one of few."""
    file = folder / "many.db"
    keys = [f"order-{number:08d}" for number in range(MANY)]
    filled(file, keys)
    both, mode = measured(file, keys, sql.READ_BOTH, 1)
    yield from pairs.compared(both, ("the same SELECT, bare", f"replay, {MANY:,} keys"), mode)
    yield Figure("replay / the same SELECT", pairs.ratio(both), "times", mode, at_most=1.5)
    yield beside_a_writer(file, keys[0])
    row, _ = measured(file, keys, sql.READ, 1)
    yield Figure("replay / SELECT of the row alone", pairs.ratio(row), "times", mode)
    file = folder / "few.db"
    filled(file, keys[:FEW])
    hot, _ = measured(file, keys[:FEW], sql.READ_BOTH, CALLS // 50)
    yield Figure(f"of {FEW} keys, in blocks", pairs.ratio(hot), "times", mode)


if __name__ == "__main__":
    title = f"A key that was executed, started again: median of {pairs.PAIRS} pairs of {CALLS:,} calls"
    with tempfile.TemporaryDirectory(dir=pairs.MEMORY_FILES) as folder:
        sys.exit(pairs.conclude(title, list(figures(Path(folder)))))
