"""An interleaving as text: a column for each caller and one for the rows, the step that diverges marked.

Of 80 columns; callers who have no room beside each other share one. Whatever an implementation said is
escaped, and names are cut: nothing in a line is longer than its column.
"""

from collections.abc import Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from startonce.model.errors import shown
from startonce.model.interleaving import Action, IllegalAction, World, act, whole
from startonce.model.operations import PROGRAMS, UnexpectedStatement
from startonce.model.reservation import Database
from startonce.oracle.interleave import CHECK, RACES
from startonce.oracle.ledger import Divergence
from startonce.oracle.report import action_text

WIDTH = 80
NARROWEST = 16
"""Columns that a caller needs to have one of its own."""
ROWS = 26
"""Columns that the rows have at most."""
KEYS, PARTS, NAME, TEXT, LONG = 4, 8, 16, 60, 160
"""How many keys have their rows shown, how many rows and locks of them, and how long a name is, there and
in a text, and what a caller does."""


def tables(divergence: Divergence) -> tuple[Database | None, ...]:
    """Return the database in the beginning and after each step; None where it is not known.

    They are what was seen. Where that was not kept they are the model's, from which nothing had diverged
    before the last step, unless the statements or their order were none of the model's.
    """
    actions, last = divergence.actions, divergence.observed[1]
    if len(divergence.seen) == len(actions):
        return (divergence.start, *divergence.seen[:-1], last)
    if divergence.check.startswith((CHECK, RACES)):
        return (divergence.start, *[None] * (len(actions) - 1), last)
    found: list[Database | None] = [divergence.start]
    world = World(divergence.start)
    for action in actions[:-1]:
        try:
            world = _after(world, action)
        except (IllegalAction, UnexpectedStatement):
            break
        found.append(world.db)
    found += [None] * (len(actions) - len(found))
    return (*found, last)


def _after(world: World, action: Action) -> World:
    if action.do == "run" and not action.statement:  # it was not held between its statements
        return whole(world, action)[0]
    return act(world, action)[0]


def columns(divergence: Divergence, databases: Sequence[Database | None]) -> list[str]:
    """Return the steps of a divergence as lines; `databases` are the first one and that after each step."""
    actions, start = divergence.actions, divergence.start
    keys = keys_of(divergence)
    title = f"row {name_text(keys[0])}" if len(keys) == 1 else "rows"
    rows = [rows_text(db, keys) for db in databases[1:]]
    texts = [clipped(action_text(action), LONG) for action in actions]
    callers = sorted({action.caller for action in actions if action.caller}) or ["A"]
    digits = max(2, len(str(len(actions))))
    margin = " " * (digits + 3)
    narrow = min(max(map(len, (title, *rows))), ROWS)
    room = WIDTH - len(margin) - narrow
    widest = 2 + max(map(len, texts), default=8)
    if room // len(callers) < min(NARROWEST, widest):
        texts = [f"{action.caller or '-'}  {text}" for action, text in zip(actions, texts, strict=True)]
        callers, widest = [""], widest + 3
    width = min(max(10, widest), room // len(callers))
    lines = []
    if start.rows or start.locks or start.fence_closed:
        begins = f"begins with {rows_text(start, keys)}"
        lines += wrap(begins, WIDTH, initial_indent=margin, subsequent_indent=f"{margin}  ")
    lines.append(f"{margin}{''.join(f'{caller:<{width}}' for caller in callers)}{title}")
    for number, (action, text, row) in enumerate(zip(actions, texts, rows, strict=True), 1):
        diverges = number == len(actions) and divergence.expected != divergence.observed
        head = f"{number:>{digits}} {'✗' if diverges else ' '} "
        left = " " * (callers.index(action.caller) * width if action.caller in callers else 0)
        for done, held in zip_longest(wrap(text, width - 2), wrap(row, narrow), fillvalue=""):
            lines.append(f"{head}{left + done:<{len(callers) * width}}{held}".rstrip())
            head = margin
    return lines


def keys_of(divergence: Divergence) -> list[str]:
    """Return the keys that a divergence is about, the first few of them."""
    databases = (divergence.start, divergence.expected[1], divergence.observed[1])
    keys = {named(row.key) for db in databases for row in db.rows or ()}
    for action in divergence.actions:
        names = PROGRAMS[action.operation].arguments if action.operation in PROGRAMS else ()
        keys |= {named(arg) for name, arg in zip(names, action.args, strict=False) if name == "key"}
    return sorted(keys)[:KEYS] or ["k1"]


def rows_text(db: Database | None, keys: Sequence[str]) -> str:
    """Say in a few words what a database has of some keys, and its locks; None: it was not shown."""
    if db is None:
        return "not shown"
    parts = ["no table"] if db.rows is None else []
    for key in keys if db.rows is not None else ():
        name = f"{name_text(key)} " if len(keys) > 1 else ""
        rows = [row for row in db.rows or () if named(row.key) == key]
        parts += [f"{name}{name_text(row.run_id)} {name_text(row.state)}" for row in rows] or [f"{name}-"]
    for lock in db.locks or ():
        ended = " ended" if lock.ended else ""
        parts.append(f"lock {name_text(lock.run_id)}: {name_text(lock.holder)}{ended}")
    parts += ["fence closed"] if db.fence_closed else []
    more = [f"and {len(parts) - PARTS:,} more"] if len(parts) > PARTS else []
    return ", ".join([*parts[:PARTS], *more])


# --- words ---------------------------------------------------------------------------------------------


def safe(text: str) -> str:
    """Return a text with all that is not printable ASCII escaped, but for our own marks."""
    return "".join(char if " " <= char <= "~" or char in "✗…" else ascii(char)[1:-1] for char in text)


def named(value: Any) -> str:
    """Return what is a name as such, and in words what should have been one."""
    return value if isinstance(value, str) else shown(value)


def plain_text(value: Any) -> str:
    """Show a value in a text: a string without quotes, on one line, escaped and cut."""
    return clipped(value, TEXT) if isinstance(value, str) else shown(value, TEXT)


def name_text(value: Any) -> str:
    """Show a value where there is little room."""
    return clipped(named(value), NAME)


def clipped(text: str, most: int) -> str:
    """Return a text that is safe to show, of at most so many characters; once more changes nothing."""
    text = safe(text[: most + 1])
    return text if len(text) <= most else text[: most - 1] + "…"
