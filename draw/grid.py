"""A picture in rows and columns: every cell a node, its place computed here, so that nothing is crooked."""

from collections.abc import Sequence
from typing import NamedTuple

from startonce.draw import look
from startonce.draw.look import Look
from startonce.draw.text import Line, markup, width, wrapped


class Cell(NamedTuple):
    """One cell: its lines and its look; `fills` says that it is as large as its column and row."""

    lines: tuple[Line, ...]
    look: Look
    fills: bool = True


class Arrow(NamedTuple):
    """An arrow from one cell to another, each by its row and column."""

    tail: tuple[int, int]
    head: tuple[int, int]
    look: Look


class Grid(NamedTuple):
    """Cells in rows, of which None is empty; the widest a column's text may be; arrows between cells."""

    name: str
    title: str
    captions: tuple[str, ...]
    rows: tuple[tuple[Cell | None, ...], ...]
    limits: tuple[float, ...]
    """The widest that the text of a column may be, in points."""
    arrows: tuple[Arrow, ...] = ()
    across: float = 10.0
    down: float = 8.0
    """Points between columns and between rows."""


HEADING: Look = {"shape": "plaintext", "style": ""}
"""The look of the head of a column or a row."""
SIDE, TOP = 18.0, 10.0
"""Points that a cell adds to its text."""


def heading(text: str) -> Cell:
    """Return the head of a column or a row."""
    return Cell((Line(text, 14, True),), HEADING)


def grid_source(grid: Grid) -> str:
    """Return the DOT source of a picture in rows and columns."""
    dot = look.digraph(grid.name, grid.title, *grid.captions, layout="nop", splines="line")
    rows = [
        [
            cell and cell._replace(lines=_broken(cell, limit))
            for cell, limit in zip(row, grid.limits, strict=True)
        ]
        for row in grid.rows
    ]
    columns = list(zip(*rows, strict=True))
    wide = [max((_wide(cell) for cell in column if cell), default=0.0) for column in columns]
    high = [max(_high(cell) for cell in row if cell) for row in rows]
    for row_number, row in enumerate(rows):
        y = sum(high[:row_number]) + grid.down * row_number + high[row_number] / 2
        for number, cell in enumerate(row):
            if cell is None:
                continue
            x = sum(wide[:number]) + grid.across * number + wide[number] / 2
            size = (wide[number], high[row_number]) if cell.fills else (_wide(cell), _high(cell))
            dot.node(
                f"{row_number} {number}",
                markup(cell.lines),
                **{
                    "margin": "0",
                    "fixedsize": "true",
                    "width": f"{size[0] / 72:.4f}",
                    "height": f"{size[1] / 72:.4f}",
                    "pos": f"{x:.1f},{-y:.1f}",
                    **cell.look,
                },
            )
    for arrow in grid.arrows:
        dot.edge(_name(arrow.tail), _name(arrow.head), **arrow.look)
    return str(dot.source)


def _name(place: tuple[int, int]) -> str:
    return f"{place[0]} {place[1]}"


def _broken(cell: Cell, limit: float) -> tuple[Line, ...]:
    return tuple(
        Line(text, line.points, line.bold)
        for line in cell.lines
        for text in wrapped(line.text, line.points, limit, line.bold)
    )


def _wide(cell: Cell) -> float:
    return max((width(*line) for line in cell.lines), default=0.0) + SIDE


def _high(cell: Cell) -> float:
    return sum(line.points * 1.15 for line in cell.lines) + TOP


def lines(*texts: str, points: int = 13) -> tuple[Line, ...]:
    """Return texts as lines of one size."""
    return tuple(Line(text, points) for text in texts)


def column_limits(*limits: float) -> tuple[float, ...]:
    """Return the limits of columns; they must leave the picture within its width. Raises `ValueError`."""
    if sum(limits) + (SIDE + 10) * len(limits) > look.WIDEST + 10:
        raise ValueError(f"columns of {sum(limits):.0f} points are too wide")
    return limits


def padded(rows: Sequence[Sequence[Cell | None]]) -> tuple[tuple[Cell | None, ...], ...]:
    """Return rows of one length, filled up with empty cells."""
    longest = max(map(len, rows))
    return tuple((*row, *[None] * (longest - len(row))) for row in rows)
