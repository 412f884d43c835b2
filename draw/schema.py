"""The schema and what lives in one database (DB-1). The facts are passed in: draw knows no SQL."""

from collections.abc import Sequence
from typing import NamedTuple

from startonce.draw import look
from startonce.draw.text import marked, wrapped


class Column(NamedTuple):
    """A column: its type, whether it is the key of its table, and what it refuses."""

    name: str
    type: str
    key: bool
    refuses: str


class Table(NamedTuple):
    """A table: its columns, its indexes in words, who creates it, and the statements that use it."""

    name: str
    columns: tuple[Column, ...]
    indexes: tuple[str, ...]
    created_by: tuple[str, ...]
    written_by: tuple[str, ...]
    read_by: tuple[str, ...]


LIMIT = 236
"""Points that a line of a table is wide at most."""


def schema_source(tables: Sequence[Table]) -> str:
    """Return the DOT source of the schema: one handle, and the tables that are reached through it."""
    dot = look.digraph(
        "schema",
        "What lives in one database, reached through one handle",
        "Bold: the key of a table. Small: what the schema refuses, by a named error.",
        "A lock has no foreign key: it outlives its row, for good.",
        rankdir="TB",
        nodesep="0.25",
        ranksep="0.5",
    )
    dot.node("handle", look.named("one database handle", "one connection"), **look.HOST)
    for table in tables:
        dot.node(table.name, _table(table), shape="plain", style="", fontsize="13")
        dot.edge("handle", table.name, dir="none")
    return str(dot.source)


def _table(table: Table) -> str:
    rows = [_row(f"<b>{marked(table.name)}</b>", look.GREY, 16)]
    for column in table.columns:
        name = f"<b>{marked(column.name)}</b>" if column.key else marked(column.name)
        small = f' <font point-size="12">{marked(column.refuses)}</font>' if column.refuses else ""
        rows.append(_row(f"{name} {marked(column.type)}{small}", look.WHITE))
    for head, words in (
        ("index", [f"{words}" for words in table.indexes]),
        ("created by", [", ".join(table.created_by)]),
        ("written by", [", ".join(table.written_by)]),
        ("read by", [", ".join(table.read_by)]),
    ):
        for text in words:
            lines = [marked(line) for line in wrapped(f"{head} {text}", 13, LIMIT)]
            first = lines[0].replace(marked(head), f"<b>{marked(head)}</b>", 1)
            rows.append(
                _row("".join(f'{line}<br align="left"/>' for line in (first, *lines[1:])), look.WHITE)
            )
    look_of_table = 'border="2" cellborder="0" cellspacing="0" cellpadding="4"'
    return f"<<table {look_of_table}>{''.join(rows)}</table>>"


def _row(body: str, fill: str, points: int = 13) -> str:
    font = f'<font point-size="{points}">{body}</font>'
    return f'<tr><td align="left" balign="left" bgcolor="{fill}">{font}</td></tr>'
