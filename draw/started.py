"""What a started row can mean, and who may end it: read off the steps of the model, which are passed in."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from startonce.draw import look
from startonce.draw.faults import NONE, OVER, Steps, left_behind
from startonce.draw.grid import Arrow, Cell, Grid, column_limits, grid_source, heading
from startonce.draw.look import ABSENT
from startonce.draw.text import Line
from startonce.model import operations
from startonce.model import reservation as r
from startonce.model.reservation import State
from startonce.model.world import HOST, STARTED, Event, World

MEANINGS: Mapping[str, str] = {
    "never reached the lock": "nothing has executed",
    "reached the lock, not ended": "executing, or crashed:\nrows cannot tell,\na person decides",
    "ended, not settled": "executed, its result kept",
    "held by a cancel": "it never executes",
    "held by a free": "it never executes",
}
"""What each kind of entry in the inventory says (INV-2)."""


class End(NamedTuple):
    """A step from one meaning of a row to another: by whom, by which statement."""

    before: str
    who: str
    statement: str
    after: str


class Meanings(NamedTuple):
    """The kinds that a started row was seen to be of, and every step between meanings."""

    started: tuple[str, ...]
    ends: tuple[End, ...]


def meanings(callers: int, walk: Steps) -> Meanings:
    """Collect what the first row means, and by what that changes, over steps of so many callers."""
    started: dict[str, None] = {}
    ends: dict[End, None] = {}
    for w, e, v in walk:
        if w.rows[0] == v.rows[0] and w.locks == v.locks:
            continue
        before, after = left_behind(w, 0), left_behind(v, 0)
        for world, meaning in ((w, before), (v, after)):
            row = world.rows[0]
            if row is not None and row.state is STARTED:
                started[meaning] = None
        if before != after:
            ends[End(before, _who(callers, w, e), e.what, after)] = None
    return Meanings(tuple(started), tuple(ends))


def joined(some: Sequence[Meanings]) -> Meanings:
    """Put what was collected into one, in the order in which it is drawn; and what a person may do."""
    started = {name for one in some for name in one.started}
    ends = {end for one in some for end in one.ends} | {_by_a_person()}
    return Meanings(tuple(sorted(started, key=list(MEANINGS).index)), tuple(sorted(ends)))


def _who(callers: int, w: World, e: Event) -> str:
    if e.who == HOST:
        return "host"
    if e.who >= callers:
        return "operator"
    if e.what in ("insert", "claim"):
        return "any caller"
    return "next caller" if w.callers[e.who].after in ("replayed", "settled") else "its caller"


def _by_a_person() -> End:
    """Let a person end an execution that crashed: persist, under the holder that the lock names (INV-2)."""
    row, lock = r.Reservation("k", "r", State.STARTED, 0, 0), r.Lock("r", "k", "h", False, None, 0)
    before = r.Database((row,), (lock,))
    _, found = operations.run(before, "lock_of", "r")
    after, kept = operations.run(before, "persist", "r", found.holder, "{}")
    assert kept
    kinds = [r.inventory(db, None, 1)[1][0].kind for db in (before, after)]
    return End(kinds[0], "a person", "persist", kinds[1])


def started_source(some: Sequence[Meanings]) -> str:
    """Return the DOT source of what a started row can mean and who may end it."""
    found = joined(some)
    rows: list[tuple[Cell | None, ...]] = [
        tuple(map(heading, ("a started row means", "who may do what", "and what it is then")))
    ]
    arrows = []
    for name in found.started:
        first = len(rows)
        for end in (end for end in found.ends if end.before == name):
            arrows += [
                Arrow((first, 0), (len(rows), 1), {"dir": "none", "penwidth": "1.5", **SIDES}),
                Arrow((len(rows), 1), (len(rows), 2), {**_look(end), **SIDES}),
            ]
            kind = _state(name, MEANINGS[name]) if len(rows) == first else None
            does = Cell((Line(f"{end.who}: {_short(end.statement)}", 14),), WHO[end.who])
            rows.append((kind, does, _state(end.after)))
    grid = Grid(
        "started",
        "What a started row can mean, and who may end it",
        (
            "The inventory says which it is. Tab: a caller of start. Component: a person, or the host.",
            "No timer does anything. Red, dashed: back to reserved. Dotted: the row is deleted.",
        ),
        tuple(rows),
        column_limits(250, 190, 210),
        tuple(arrows),
        across=64,
        down=15,
    )
    return grid_source(grid)


SIDES = {"tailport": "e", "headport": "w"}

WHO: Mapping[str, look.Look] = {
    "its caller": look.CALLER,
    "next caller": look.CALLER,
    "host": look.HOST,
    "operator": look.HOST,
    "a person": look.HOST,
}
"""The look of whoever may do something."""


def _short(statement: str) -> str:
    """Name a statement of an operator with its operation."""
    return statement.replace(": ", ", ")


def _state(name: str, note: str = "") -> Cell:
    as_state = {NONE: ABSENT, OVER: State.TERMINAL}.get(name, name)
    if as_state not in look.FILLS:
        as_state = State.STARTED
    text = [Line(name, 15, True), *(Line(line, 13) for line in note.split("\n") if line)]
    return Cell(tuple(text), look.state(as_state), fills=False)


def _look(end: End) -> look.Look:
    if end.after == State.RESERVED.value:
        return look.BACKWARDS
    return look.DELETED if end.after == NONE else {"penwidth": "2"}
