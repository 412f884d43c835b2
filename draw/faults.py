"""Where each fault can strike a start, what its caller does then, and what a crash leaves.

Read off the steps of the model, which are passed in: a start explored with each fault that there is.
"""

from collections.abc import Iterable, Mapping, Sequence

from startonce.draw import look
from startonce.draw.grid import Cell, Grid, column_limits, grid_source, heading
from startonce.draw.look import Look
from startonce.draw.text import Line
from startonce.model import reservation as r
from startonce.model.start import PROGRAM
from startonce.model.world import HOST, Event, World

Steps = Iterable[tuple[World, Event, World]]

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "crashes before it: leaves": ("crashes before it",),
    "not applied, cannot be read": ("not applied", "cannot be read"),
    "applied, the reply lost": ("reply lost",),
    "the reply lost, lands late": ("reply lost, on its way",),
    "a replica answers, stale": ("stale",),
}
"""The columns, each with the faults of the model that it shows."""

NONE, OVER = "no row", "over"
"""What is left that the inventory does not list."""
UNTOUCHED = "cannot strike"
MANY = 4
"""Outcomes of a crash that are listed; where there are more, the caller had done nothing yet."""


def strikes(walks: Sequence[Steps]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return what follows each fault at each statement, from the first of the walks in which it strikes."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for steps in walks:
        here: dict[tuple[str, str], dict[str, None]] = {}
        for w, e, v in steps:
            if e.fault and e.who != HOST and e.who < len(w.callers) and (e.what, e.fault) not in found:
                here.setdefault((e.what, e.fault), {})[_follows(e, v)] = None
        found |= here
    return {place: _few(place[1], tuple(words)) for place, words in found.items()}


def _few(fault: str, words: tuple[str, ...]) -> tuple[str, ...]:
    crash = fault == "crashes before it" and len(words) > MANY
    return (f"any of {len(words)}: as others left it",) if crash else words


def _follows(e: Event, v: World) -> str:
    if e.fault == "crashes before it":
        return left_behind(v, e.key)
    if e.answer:
        return f"answer: {e.answer}"
    at = v.callers[e.who].at
    return "again" if at == e.what else at


def left_behind(w: World, key: int) -> str:
    """Say what the row of a key means, as the model's inventory says it."""
    row = w.rows[key]
    if row is None:
        return NONE
    lock = w.locks[row.run]
    held = () if lock is None else (r.Lock("r", "k", _holder(lock.holder), lock.ended, None, 0),)
    db = r.Database((r.Reservation("k", "r", row.state, 0, 0),), held)
    _, entries = r.inventory(db, None, 1)
    return entries[0].kind if entries else OVER


def _holder(number: int) -> str:
    return {-1: "cancel", -2: "free"}.get(number, "h")


PEOPLE = ("never reached the lock", "reached the lock, not ended")
"""What is left for people: no caller ends it."""


def faults_source(walks: Sequence[Steps]) -> str:
    """Return the DOT source of where each fault can strike a start."""
    found = strikes(walks)
    order = sorted({at for at, _ in found}, key=_place)
    rows: list[tuple[Cell | None, ...]] = [(heading("statement"), *map(heading, COLUMNS))]
    for name in order:
        its = look.WORK if name == "work" else look.statement(PROGRAM[name].writes)
        cells = [_cell(_of(found, name, faults)) for faults in COLUMNS.values()]
        rows.append((Cell((Line(name, 14, True),), its), *cells))
    grid = Grid(
        "faults",
        "Where each fault can strike a start, and what its caller does then",
        (
            "A thick frame on the left: the statement writes. Dashed: the caller goes on, or tries again.",
            "Bold: the start is answered. Framed twice: a person has to end what is left. "
            "A start begins with its insert.",
        ),
        tuple(rows),
        column_limits(72, 126, 110, 100, 100, 126),
        down=13,
    )
    return grid_source(grid)


def _place(name: str) -> int:
    """Order statements as a start comes to them: the work after the lock is read back."""
    names = list(PROGRAM)
    return 2 * names.index("holder") + 1 if name == "work" else 2 * names.index(name)


def _of(
    found: Mapping[tuple[str, str], tuple[str, ...]], name: str, faults: Sequence[str]
) -> tuple[str, ...]:
    return tuple(words for fault in faults for words in found.get((name, fault), ()))


def _cell(words: tuple[str, ...]) -> Cell:
    if not words:
        return Cell((Line(UNTOUCHED, 12),), {"shape": "plaintext", "style": "", "fontcolor": look.PALE})
    its: Look = {"shape": "box", "style": "filled,dashed", "fillcolor": look.ORANGE}
    if any(word in PEOPLE for word in words):
        its = {**look.PERSON, "fillcolor": look.ORANGE}
    elif all(word.startswith("answer") for word in words):
        its = {"shape": "box", "style": "filled"}
    return Cell(tuple(Line(word, 13, word.startswith("answer")) for word in words), its)
