"""The visual language, explained once: every shape, frame, line and arrow, as it is drawn elsewhere."""

from startonce.draw import look
from startonce.draw.grid import Arrow, Cell, Grid, column_limits, grid_source, heading, padded
from startonce.draw.look import ABSENT, LINES, Look
from startonce.draw.text import Line
from startonce.model.reservation import State

NODES: tuple[tuple[str, Look, str], ...] = (
    ("absent", look.state(ABSENT), "the key has no row"),
    ("reserved", look.state(State.RESERVED), "the key means a run that nobody started"),
    ("started", look.state(State.STARTED), "one caller won the claim; so too a lock held, a fence closed"),
    ("terminal", look.state(State.TERMINAL), "the run is over; so too a lock whose execution ended"),
    ("claim", look.statement(writes=True), "a statement that writes: thick frame"),
    ("read back", look.statement(writes=False), "a statement that reads: thin frame"),
    ("work", look.WORK, "the execution: the effect happens"),
    ("A", look.CALLER, "a caller of start"),
    ("host", look.HOST, "a host, an operator, the environment"),
    ("row k1", look.STORED, "something stored in the database"),
    (
        "claim, reply lost",
        {**look.statement(writes=True), **look.FAULTY},
        "a fault strikes: dashed, shaded",
    ),
    ("work", {**look.WORK, **look.HARM}, "harm has come about: an octagon, framed twice"),
    ("never reached", look.PERSON, "a person has to end it: sharp corners, framed twice"),
)
"""A sample of each node, and what it means."""

ARROWS: tuple[tuple[Look, str], ...] = (
    ({"penwidth": look.CHANGED}, "the statement changed what is stored"),
    ({"penwidth": look.UNCHANGED}, "it changed nothing, or it leads there"),
    (
        {"penwidth": look.CHANGED, "style": "dashed", "dir": "both", "arrowtail": "tee"},
        "applied, and its caller never hears of it: a bar",
    ),
    (look.BACKWARDS, "backwards, from started to reserved"),
    (look.DELETED, "the row is deleted"),
)
"""A sample of each arrow, and what it means."""


def legend_source() -> str:
    """Return the DOT source of the legend."""
    small: Look = {
        "shape": "point",
        "width": "0.05",
        "height": "0.05",
        "style": "filled",
        "fillcolor": look.INK,
    }
    rows: list[list[Cell | None]] = [
        [heading("box"), heading("meaning"), heading("arrow, line"), None, heading("meaning")]
    ]
    arrows = []
    lines: list[tuple[Look, str]] = [
        *ARROWS,
        *(({**its, "dir": "none"}, f"a lane, while the row is {name}") for name, its in LINES.items()),
    ]
    for number, (name, its, meaning) in enumerate(NODES):
        row: list[Cell | None] = [Cell((Line(name, 14),), its), _words(meaning)]
        if number < len(lines):
            arrow, says = lines[number]
            row += [Cell((), small, fills=False), Cell((), small, fills=False), _words(says)]
            place = len(rows)
            arrows.append(Arrow((place, 2), (place, 3), arrow))
        rows.append(row)
    grid = Grid(
        "legend",
        "How to read the pictures",
        (
            "No meaning rests on colour alone: what is coloured is also named, framed or dashed.",
            "In an interleaving time runs down, a lane for each caller and each thing stored.",
        ),
        padded(rows),
        column_limits(110, 260, 90, 20, 220),
        tuple(arrows),
        down=12,
    )
    return grid_source(grid)


def _words(text: str) -> Cell:
    return Cell((Line(text, 14),), {"shape": "plaintext", "style": ""})
