"""What the benchmarks share: two things measured in turn, and a table of figures with their bars.

Other programs slow a measurement down, and never speed one up. So nothing here is compared across runs:
each figure is the median over pairs that were measured in one run, block by block in turn.
"""

import platform
import sqlite3
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import NamedTuple, TypeVar

PAIRS = 7
MEMORY_FILES = "/dev/shm"
"""A folder on a memory file system: what is measured is the program, not a disk."""

T = TypeVar("T")
Work = Callable[[Sequence[T]], object]
"""Does something with each of some things."""


class Pair(NamedTuple):
    """How long two things took, each in microseconds for one time."""

    one: float
    other: float


def in_turn(one: Work[T], other: Work[T], ones: Sequence[T], others: Sequence[T], block: int) -> Pair:
    """Do two things with as many things each, a block at a time, in turn; which is first changes."""
    took = [0, 0]
    for start in range(0, len(ones), block):
        turn = [(0, one, ones[start : start + block]), (1, other, others[start : start + block])]
        for side, work, some in turn if start // block % 2 else reversed(turn):
            begun = perf_counter_ns()
            work(some)
            took[side] += perf_counter_ns() - begun
    return Pair(took[0] / len(ones) / 1000, took[1] / len(ones) / 1000)


class Mode(NamedTuple):
    """Where and how a database keeps what is written."""

    journal: str
    synchronous: str
    file_system: str


def mode_of(connection: sqlite3.Connection) -> Mode:
    """Return the mode of a connection, as SQLite itself tells it."""
    (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
    (level,) = connection.execute("PRAGMA synchronous").fetchone()
    (_, _, file) = connection.execute("PRAGMA database_list").fetchone()
    return Mode(journal, ("off", "normal", "full", "extra")[level], file_system(file))


def file_system(file: str) -> str:
    """Name the file system of a file, where the system tells it (Linux)."""
    mounts = Path("/proc/self/mounts")
    if not file:
        return "-"
    if not mounts.exists():
        return "unknown"
    parents = {str(folder) for folder in Path(file).resolve().parents}
    kinds = [line.split()[1:3] for line in mounts.read_text("utf-8").splitlines()]
    return max((len(point), kind) for point, kind in kinds if point in parents)[1]


class Figure(NamedTuple):
    """One figure: what it is, its unit, the bar it has to reach, and where it was measured.

    Without a bar it is there as information.
    """

    what: str
    value: float
    unit: str = ""
    mode: Mode | None = None
    at_most: float | None = None
    at_least: float | None = None

    @property
    def missed(self) -> bool:
        """Whether the bar is not reached."""
        over = self.at_most is not None and self.value > self.at_most
        return over or (self.at_least is not None and self.value < self.at_least)

    @property
    def bar(self) -> str:
        """The bar in words."""
        if self.at_most is not None:
            return f"at most {self.at_most:g}"
        return f"at least {self.at_least:g}" if self.at_least is not None else ""


def compared(pairs: Sequence[Pair], names: tuple[str, str], mode: Mode) -> Iterator[Figure]:
    """Give the two medians of some pairs."""
    yield Figure(names[0], statistics.median(pair.one for pair in pairs), "µs", mode)
    yield Figure(names[1], statistics.median(pair.other for pair in pairs), "µs", mode)


def ratio(pairs: Sequence[Pair]) -> float:
    """Return the median of how many times as long the other took."""
    return statistics.median(pair.other / pair.one for pair in pairs)


def difference(pairs: Sequence[Pair]) -> float:
    """Return the median of how much longer the other took, in microseconds."""
    return statistics.median(pair.other - pair.one for pair in pairs)


def conclude(title: str, figures: Sequence[Figure]) -> int:
    """Print the figures as a table; say which bar was missed; give the exit code."""
    print(f"{title}\nSQLite {sqlite3.sqlite_version}, Python {platform.python_version()}\n")
    rows = [("", "", "", "bar", "", "journal", "synchronous", "file system")]
    for figure in figures:
        state = "" if not figure.bar else "MISSED" if figure.missed else "ok"
        mode = figure.mode or Mode("", "", "")
        rows.append((figure.what, _number(figure.value), figure.unit, figure.bar, state, *mode))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        cells[1] = row[1].rjust(widths[1])
        print("  ".join(cells).rstrip())
    missed = [figure for figure in figures if figure.missed]
    print()
    for figure in missed:
        print(f"missed: {figure.what} is {_number(figure.value)} {figure.unit}, the bar is {figure.bar}")
    if not missed:
        print("every bar is reached")
    return 1 if missed else 0


def _number(value: float) -> str:
    digits = 0 if value >= 1000 else 1 if value >= 10 else 3 if value < 2 else 2
    return f"{value:,.{digits}f}"
