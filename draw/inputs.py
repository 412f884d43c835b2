"""What is refused before any statement, what by the database, and what is another key.

What came of it is passed in: it is seen on a real database.
"""

from collections.abc import Sequence
from typing import NamedTuple

from startonce.draw import look
from startonce.draw.grid import Cell, Grid, column_limits, grid_source, heading
from startonce.draw.text import Line


class Asked(NamedTuple):
    """What was asked, in words; the statements that were sent for it; the answer or the error."""

    words: str
    sent: tuple[str, ...]
    came: str
    failed: bool


def inputs_source(asked: Sequence[Asked]) -> str:
    """Return the DOT source of what is accepted, and what is refused and where."""
    rows: list[tuple[Cell | None, ...]] = [
        tuple(map(heading, ("what is asked", "statements that are sent", "what comes of it")))
    ]
    for one in asked:
        sent = ", ".join(one.sent) or "none"
        rows.append(
            (
                Cell(
                    (Line(one.words, 14),),
                    {"shape": "box", "style": "filled", "fillcolor": look.GREY, "penwidth": "0"},
                ),
                Cell(
                    (Line(sent, 14),),
                    look.statement(writes=False)
                    if one.sent
                    else {**look.HARM, "shape": "box", "style": "filled"},
                ),
                Cell(
                    (Line(one.came, 14, True),),
                    look.FAULTY | {"shape": "box"} if one.failed else {"shape": "box", "style": "filled"},
                ),
            )
        )
    grid = Grid(
        "inputs",
        "What is refused, and where; and what is another key",
        (
            "Framed twice: refused before any statement. Dashed: an error, each of its own kind.",
            "Keys are compared byte for byte: every accepted one has a row of its own.",
        ),
        tuple(rows),
        column_limits(270, 190, 290),
        down=13,
    )
    return grid_source(grid)
