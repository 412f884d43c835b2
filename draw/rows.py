"""One table, and what each operation finds or changes in it: found by running the operations."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

from startonce.draw import look
from startonce.draw.grid import Arrow, Cell, Grid, column_limits, grid_source, heading, padded
from startonce.draw.text import Line
from startonce.model.operations import PROGRAMS, READS, run
from startonce.model.reservation import Database, Entry, Lock, Reservation, State

TABLE = Database(
    rows=(
        Reservation("K1", "r6", State.TERMINAL, 0, 8),
        Reservation("k1", "r1", State.RESERVED, 0, 0),
        Reservation("k2", "r2", State.STARTED, 0, 2),
        Reservation("k3", "r2", State.RESERVED, 0, 3),
        Reservation("k4", "r3", State.TERMINAL, 0, 1),
        Reservation("k5", "r4", State.TERMINAL, 0, 2),
        Reservation("k6", "r5", State.TERMINAL, 0, 9),
    ),
    locks=(Lock("r5", "k6", "h1", False, None, 0),),
)
"""A table with all that makes a difference: two keys of one run, keys that differ in case alone, rows spent
before and after the horizon, and one that is spent while an execution still holds its lock."""
NOW, HORIZON = 9, 5

ASKED: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("read", ("k1",)),
    ("for_runs", ("r1", "r2", "r2")),
    ("inventory", (None, 10)),
    ("claim", ("k1", "r1")),
    ("claim", ("k2", "r2")),
    ("release", ("k2", "r2")),
    ("release", ("k4", "r3")),
    ("settle", ("r2",)),
    ("settle", ("r3",)),
    ("purge", (HORIZON, 1)),
)


class Found(NamedTuple):
    """What an operation gives or changes: the keys of rows, and its answer where it is no row."""

    operation: str
    args: tuple[Any, ...]
    keys: tuple[str, ...]
    answer: str


def found(table: Database = TABLE) -> Iterator[Found]:
    """Run every operation on the table."""
    for operation, args in ASKED:
        after, answer = run(table, operation, *args, now=NOW)
        given = answer if isinstance(answer, tuple) and not isinstance(answer, Reservation) else (answer,)
        keys = [one.key for one in given if isinstance(one, Reservation | Entry)]
        keys += [row.key for row in table.rows or () if after.row(row.key) != row]
        said = "" if any(isinstance(one, Reservation | Entry) for one in given) else str(answer)
        yield Found(operation, args, tuple(keys), said)


def rows_source() -> str:
    """Return the DOT source of the table and what each operation finds in it."""
    operations = list(found())
    rows = list(TABLE.rows or ())
    lines: list[list[Cell | None]] = [[heading("operation"), heading("the rows that it gives or changes")]]
    keys = [row.key for row in rows]
    arrows = []
    for number in range(max(len(operations), len(rows))):
        left = _operation(operations[number]) if number < len(operations) else None
        lines.append([left, _row(rows[number]) if number < len(rows) else None])
    for number, one in enumerate(operations, 1):
        reads = all(name in READS for name in PROGRAMS[one.operation].statements)
        for key in one.keys:
            pen = look.UNCHANGED if reads else look.CHANGED
            its = {"tailport": "e", "headport": "w", "penwidth": pen, "arrowsize": "0.7"}
            if one.operation == "purge":
                its |= look.DELETED
            elif one.operation == "release":
                its |= look.BACKWARDS
            arrows.append(Arrow((number, 0), (1 + keys.index(key), 1), its))
    grid = Grid(
        "rows",
        "One table, and what each operation finds in it",
        (
            "Thin arrow: the row is given. Thick: it is changed. Dotted: it is deleted. Dashed: backwards.",
            f"The purge takes what was last changed before {HORIZON}, the oldest first, one row at most.",
        ),
        padded(lines),
        column_limits(230, 260),
        tuple(arrows),
        across=150,
        down=14,
    )
    return grid_source(grid)


def _operation(one: Found) -> Cell:
    reads = all(name in READS for name in PROGRAMS[one.operation].statements)
    names = PROGRAMS[one.operation].arguments
    asked = ", ".join(
        f"{name}={arg}" if name in ("horizon", "limit") else str(arg)
        for name, arg in zip_longest(names, one.args, fillvalue="")
        if arg is not None
    )
    lines = [Line(f"{one.operation} {asked}", 15, True)]
    lines += [Line(f"answer: {one.answer}", 13)] if one.answer else []
    return Cell(tuple(lines), look.statement(not reads))


def _row(row: Reservation) -> Cell:
    lock = TABLE.lock(row.run_id)
    held = ", its lock held" if lock is not None else ""
    head = Line(f"{row.key}: {row.run_id} {row.state}", 15, True)
    return Cell((head, Line(f"last changed at {row.updated_at}{held}", 13)), look.state(row.state))
