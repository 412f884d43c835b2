"""The flow of a start as DOT source: a table for each statement, a line for each reply and each fault.

The way that a start takes when all goes well runs down on the left; what else there is stands beside it.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import graphviz

from startonce.draw import look
from startonce.draw.curves import Curve, arrow, straight
from startonce.draw.flow import Flow
from startonce.draw.text import marked, width, wrapped

HEAD, TEXT = 16, 13
TOP, ROW, PAD, GAP, GUTTER = 26, 15, 8, 20.0, 104.0
"""Points: a head, a line of text, the space around the lines of a row, between tables, between columns."""
LIMIT = 246
"""Points that the words of a reply are wide at most."""


class Row(NamedTuple):
    """A line of a table: what is told, what it is answered if that ends the start, where it leads else."""

    words: tuple[str, ...]
    answer: str
    fault: bool
    leads: str


def flow_source(graph: Flow) -> str:
    """Return the DOT source of a start as a flow."""
    dot = look.digraph(
        "start",
        "A start, statement by statement, with every outcome",
        "Thick frame: it writes. Thin frame: it reads. Black: the effect happens. Bold: the answer.",
        "Each line is a reply, or a fault (shaded). Of several that fit, the one with most words.",
        layout="nop2",
    )
    main = _main(graph)
    tables = {name: _rows(graph, name, main) for name in graph.statements}
    beside = [name for name in graph.statements if name not in main]
    left, right = (max(_wide(tables[name], name) for name in some) for some in (main, beside))
    boxes = _stacked(main, tables, 0.0, left, 0.0, 0.0)
    top = _high(tables[main[0]]) / 2
    spare = (_stack(main, tables) - _stack(beside, tables) - top) / len(beside)
    boxes |= _stacked(beside, tables, left + GUTTER, right, top, max(0.0, spare))
    for name, box in boxes.items():
        _table(dot, graph, name, tables[name], box)
    for name, rows in tables.items():
        for number, row in enumerate(rows):
            following = _follows(main, name, row)
            if row.leads and row.leads != name and not (following and row.fault):
                curve = _line(boxes, tables, name, number, following, main)
                arrow(dot, name, row.leads, curve, {"style": "dashed"} if row.fault else {})
    return str(dot.source)


class Box(NamedTuple):
    """Where a table stands: its left edge, its width, and its top, in points, downwards."""

    x: float
    wide: float
    top: float


def _stacked(
    names: Sequence[str], tables: Mapping[str, list[Row]], x: float, wide: float, top: float, spare: float
) -> dict[str, Box]:
    boxes = {}
    for name in names:
        boxes[name] = Box(x, wide, top)
        top += _high(tables[name]) + GAP + spare
    return boxes


def _rows(graph: Flow, name: str, main: Sequence[str]) -> list[Row]:
    """Return the replies of a statement, the one that goes on downwards first, and then its faults."""
    replies, faults = [], []
    for one in graph.leads(name):
        answer, leads = (one.after, "") if one.answers else ("", one.after)
        if one.replies or graph.always(one):
            replies.append(Row(one.replies, answer, False, leads))
        if one.faults:
            faults.append(Row((" or ".join(one.faults),), answer, True, leads))
    replies.sort(key=lambda row: not _follows(main, name, row))
    return replies + faults


def _follows(main: Sequence[str], name: str, row: Row) -> bool:
    """Whether a row leads to the next table below."""
    return (name, row.leads) in pairwise(main)


def _main(graph: Flow) -> list[str]:
    """Return the shortest way to `started` that takes no fault: the left column."""
    ways = [[next(iter(graph.statements))]]
    for way in ways:  # grows while it is walked
        for one in graph.leads(way[-1]):
            if one.replies or graph.always(one):
                if one.answers and one.after == "started":
                    return way
                if not one.answers and one.after not in way:
                    ways.append([*way, one.after])
    raise AssertionError("no start is ever answered started")


# --- one table --------------------------------------------------------------------------------------------


def _texts(row: Row) -> list[str]:
    return [line for some in row.words for line in wrapped(some, TEXT, LIMIT)] or ["then"]


def _says(row: Row, name: str) -> str:
    if row.answer:
        return f"answer: {row.answer}"
    return "again" if row.leads == name else row.leads


def _tall(row: Row) -> float:
    return len(_texts(row)) * ROW + PAD


def _high(rows: Sequence[Row]) -> float:
    return TOP + sum(map(_tall, rows))


def _parts(rows: Sequence[Row], name: str) -> tuple[float, float]:
    """Return the widths of the two columns of a table."""
    first = max((width(text, TEXT) for row in rows for text in _texts(row)), default=0)
    return first + 14, max(
        (width(_says(row, name), TEXT, bool(row.answer)) for row in rows), default=0
    ) + 14


def _wide(rows: Sequence[Row], name: str) -> float:
    return max(sum(_parts(rows, name)), width(name, HEAD, True) + 30)


def _stack(names: Sequence[str], tables: Mapping[str, list[Row]]) -> float:
    return sum(_high(tables[name]) + GAP for name in names) - GAP


def _table(dot: "graphviz.Digraph", graph: Flow, name: str, rows: Sequence[Row], box: Box) -> None:
    border = "3" if graph.statements[name] and name != "work" else "1"
    ink, paper = ("white", "black") if name == "work" else ("black", "white")
    body = [
        f'<tr><td colspan="2" height="{TOP}" width="{box.wide:.0f}" bgcolor="{paper}">'
        f'<font color="{ink}" point-size="{HEAD}"><b>{marked(name)}</b></font></td></tr>'
    ]
    second = _parts(rows, name)[1]
    for row in rows:
        texts = "".join(f'{marked(text)}<br align="left"/>' for text in _texts(row))
        fill = f'bgcolor="{look.ORANGE if row.fault else look.WHITE}" height="{_tall(row):.0f}"'
        says = marked(_says(row, name))
        says = f"<b>{says}</b>" if row.answer else says
        body.append(
            f'<tr><td align="left" balign="left" {fill} width="{box.wide - second:.0f}">{texts}</td>'
            f'<td align="right" {fill} width="{second:.0f}">{says}</td></tr>'
        )
    label = (
        f'<<table border="{border}" cellborder="0" cellspacing="0" cellpadding="3">{"".join(body)}</table>>'
    )
    x, y = box.x + box.wide / 2, box.top + _high(rows) / 2
    dot.node(name, label, shape="plain", style="", fontsize=f"{TEXT}", pos=f"{x:.1f},{-y:.1f}")


# --- one arrow --------------------------------------------------------------------------------------------


def _line(
    boxes: Mapping[str, Box],
    tables: Mapping[str, list[Row]],
    name: str,
    number: int,
    following: bool,
    main: Sequence[str],
) -> Curve:
    """Return the curve of an arrow: straight down to the next table, else out at the side of its line."""
    here, there = boxes[name], boxes[tables[name][number].leads]
    if following:
        x = here.x + here.wide / 2
        begin, end = (x, here.top + _high(tables[name])), (x, there.top)
        return straight(begin, end)
    y = here.top + TOP + sum(map(_tall, tables[name][:number])) + _tall(tables[name][number]) / 2
    head = there.top + TOP / 2
    if here.x == there.x:  # in one column: around the outer side
        side = -1 if name in main else 1
        x = here.x if name in main else here.x + here.wide
        reach = side * min(70.0, 26 + abs(head - y) / 8)
        return (x, y), (x + reach, y), (x + reach, head), (x, head)
    if here.x < there.x:
        begin, end, pull = (here.x + here.wide, y), (there.x, head), GUTTER * 0.6
    else:
        begin, end, pull = (here.x, y), (there.x + there.wide, head), -GUTTER * 0.6
    return begin, (begin[0] + pull, begin[1]), (end[0] - pull, end[1]), end
