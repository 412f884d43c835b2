"""One key and its run's lock as DOT source: a column for each state of the row, a row for each lock."""

from collections.abc import Mapping

from startonce.draw import look
from startonce.draw.automaton import STATES
from startonce.draw.curves import Curve, Point, arrow, height_at, pos, straight
from startonce.draw.keys import Change, Keys, Place
from startonce.draw.text import Line, markup, plain, width

ROWS = ("free", "cancel", "no lock", "held", "ended")
"""The rows: a lock is taken upwards by an operator, downwards by an execution."""
SAID: Mapping[str, str] = {
    "free": "held by a free",
    "cancel": "held by a cancel",
    "no lock": "not held",
    "held": "held by an execution",
    "ended": "the execution ended",
}
ACROSS, DOWN, WIDE, HIGH = 196.0, 158.0, 104.0, 50.0
"""Points between columns and rows, and the size of a state."""


def keys_source(found: Keys) -> str:
    """Return the DOT source of the automaton of one key, with its counts."""
    refused = sum(found.refused.values())
    dot = look.digraph(
        "automaton",
        "One key and the lock of its run, whatever callers do",
        f"{len(found.places)} states, {len(found.changes)} changes; "
        f"{refused} times a statement that writes changes nothing.",
        "Dashed: backwards. Dotted: the row is deleted. "
        "In a box: how many statements change nothing there.",
        layout="nop2",
    )
    for place in found.places:
        x, y = _at(place)
        lines = [Line(place.row, 16, True), Line(f"{found.refused[place]} without change", 12)]
        size = {
            "width": f"{WIDE / 72:.4f}",
            "height": f"{HIGH / 72:.4f}",
            "fixedsize": "true",
            "margin": "0",
        }
        dot.node(_name(place), markup(lines), pos=pos((x, y)), **size, **look.state(place.row))
    for number, lock in enumerate(ROWS):
        lines = [Line("lock", 12), *(Line(text, 13, True) for text in _two(SAID[lock]))]
        dot.node(
            f"lock {lock}",
            markup(lines),
            pos=pos((-WIDE - 18, number * DOWN)),
            shape="plaintext",
            style="",
            margin="0",
        )
    merged: dict[tuple[Place, Place], list[str]] = {}
    for change in found.changes:
        merged.setdefault((change.before, change.after), []).append(change.statement)
    for (before, after), statements in merged.items():
        words = ", ".join(sorted(statements))
        curve, at, side = _way(before, after)
        its = {**_look(Change(before, statements[0], after)), "fontsize": "13"}
        label = (at[0] + side * width(words, 13) / 2, at[1])
        arrow(dot, _name(before), _name(after), curve, its, plain(words), label)
    return str(dot.source)


def _name(place: Place) -> str:
    return f"{place.row}, {place.lock}"


def _two(text: str) -> list[str]:
    head, _, rest = text.rpartition(" ")
    return [head, rest] if head and len(text) > 10 else [text]


def _at(place: Place) -> Point:
    return STATES.index(place.row) * ACROSS, ROWS.index(place.lock) * DOWN


def _look(change: Change) -> look.Look:
    if change.before.row == change.after.row:
        return {"penwidth": "2"}
    here, there = STATES.index(change.before.row), STATES.index(change.after.row)
    if there == 0:
        return look.DELETED
    return look.BACKWARDS if there < here else {"penwidth": "2"}


Way = tuple[Curve, Point, int]
"""A curve, a point beside it, and on which side of the point the label stands: left, around, or right."""


def _way(before: Place, after: Place) -> Way:
    """Return the curve of a change, and where its label stands."""
    (x, y), (u, v) = _at(before), _at(after)
    if before.row == after.row:
        return _upright(x, y, v)
    step = STATES.index(after.row) - STATES.index(before.row)
    side = WIDE / 2
    if step == 1:
        high = 10 if before.row == "reserved" else 0
        line = straight((x + side, y - high), (u - side, v - high))
        return line, ((x + u) / 2, y - high - 10), 0
    if step == -1 and after.row != STATES[0]:
        line = straight((x - side, y + 10), (u + side, v + 10))
        return line, ((x + u) / 2, y + 22), 0
    if step > 0:
        begin, end = (x + 12, y - HIGH / 2), (u - 12, v - HIGH / 2)
        curve = (begin, (x + 36, begin[1] - 28), (u - 48, end[1] - 28), end)
        return curve, (x + ACROSS / 2, height_at(curve, x + ACROSS / 2) - 9), 0
    deep = HIGH / 2 + 12 - 10 * step
    begin, end = (x - 30, y + HIGH / 2), (u + 40 + 8 * step, v + HIGH / 2)
    return (begin, (x - 46, y + deep), (end[0] + 16, v + deep), end), (x + 2, y + HIGH / 2 + 12), 0


def _upright(x: float, y: float, v: float) -> Way:
    """Return the line between two rows: straight to the next one, around what lies between them."""
    half = HIGH / 2 if v > y else -HIGH / 2
    if abs(v - y) <= DOWN:
        line = straight((x + 30, y + half), (x + 30, v - half))
        return (line, (x + 36, (y + v) / 2), 1) if v > y else (line, (x + 24, (y + v) / 2), -1)
    out = x + WIDE / 2 + 20
    curve = ((x + 44, y + half), (out, y + 3 * half), (out, v - 3 * half), (x + 44, v - half))
    return curve, (x + 70, v + DOWN / 2), 1
