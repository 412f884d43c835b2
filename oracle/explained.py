"""A divergence that explains itself: what was done, what was expected and observed, how to see it again.

Plain text, of 80 columns where the callers are few. Whatever an implementation said is cut and escaped.
Only commands and the names of files are as long as they are, so that they can be copied.
"""

import shlex
from collections.abc import Iterator
from textwrap import wrap
from typing import Any, NamedTuple

from startonce.model.clauses import CLAUSES
from startonce.model.errors import shown
from startonce.model.interleaving import Action
from startonce.model.reservation import Database, Lock
from startonce.oracle.check import NOT_REPEATED
from startonce.oracle.columns import clipped, columns, keys_of, named, plain_text, rows_text, safe, tables
from startonce.oracle.history import Answered, Began, Crashed, History
from startonce.oracle.interleave import RACES
from startonce.oracle.ledger import Divergence
from startonce.oracle.report import action_text
from startonce.oracle.stage import LETTERS
from startonce.oracle.tracefile import describe

INDENT, LABEL, TEXT = 5, 10, 65
"""Columns of a line: before a label, for the label, and for the text beside it."""
ITEMS, LONG = 8, 240
"""How many things of a table are shown, and how many characters a text can have."""
UNSTEADY = (NOT_REPEATED, ", does not repeat")
"""How the name of a check ends whose divergence did not come again."""


class Saved(NamedTuple):
    """The files that a divergence was saved to, each "" where it was not.

    `adapter` are the words that name the adapter to `replay`, as `("--", "node", "adapter.mjs")`.
    """

    trace: str = ""
    picture: str = ""
    vector: str = ""
    adapter: tuple[str, ...] = ()


NOWHERE = Saved()


def explained(
    clause: str,
    first: Divergence,
    second: Divergence | None = None,
    *,
    history: History = (),
    history_again: History = (),
    saved: Saved = NOWHERE,
) -> list[str]:
    """Return the lines that explain a divergence which breaks a clause.

    One that does not repeat is shown with both histories. `second` is what came of its steps the second
    time: None if every answer and table was the model's; so they were too if it expects what it observed.
    `history` and `history_again` give the answers of all operations, where more than the last one matters.
    """
    lines = [f"{clause} violated   {CLAUSES[clause].sentence}", ""]
    if repeats(first):
        lines += told(first, history)
    else:
        again = first._replace(observed=first.expected, seen=()) if second is None else second
        lines += [
            "It does not repeat: the same steps, from the same table, had two outcomes.",
            *("", "The first time", "", *told(first, history)),
            *("", "The second time", "", *told(again, history_again)),
        ]
    check = first.check
    for suffix in UNSTEADY:
        check = check.removesuffix(suffix)
    lines += ["", *_field("found by", check)]
    if check == RACES:
        lines += _field("", "the callers ran at once: in which order, is not known")
    return [*lines, *_next(saved)]


def repeats(divergence: Divergence) -> bool:
    """Whether a divergence came again when its steps were taken again, as far as that was tried."""
    return not divergence.check.endswith(UNSTEADY)


def told(divergence: Divergence, history: History = ()) -> list[str]:
    """Return one time that steps were taken: in columns, the answers, expected and observed, the table."""
    databases = tables(divergence)
    keys = keys_of(divergence)
    (_, there), (_, here) = divergence.expected, divergence.observed
    lines = [*columns(divergence, databases), ""]
    if history:
        lines += [*_answers(history), ""]
    if divergence.expected == divergence.observed:
        lines += _field("observed", f"{_both(divergence.observed, keys)}, as expected")
    else:
        lines += _field("expected", _both(divergence.expected, keys))
        lines += _field("observed", _both(divergence.observed, keys))
    return [*lines, "", *_table(databases[-2] if len(databases) > 1 else divergence.start, there, here)]


def _both(outcome: tuple[Any, Database], keys: list[str]) -> str:
    answer, db = outcome
    said = "another answer" if answer == "…" else describe(answer)  # the clause speaks of several steps
    return f"{clipped(said, LONG // 2)}; {rows_text(db, keys)}"


def _answers(history: History) -> list[str]:
    """Return what each operation was answered, in the order in which they ended."""
    under_way: dict[int, str] = {}
    lines = []
    for event in history:
        if isinstance(event, Began):
            asked = Action("run", LETTERS[event.caller], event.call.operation, event.call.args)
            under_way[event.caller] = f"{asked.caller} {action_text(asked)}"
        elif isinstance(event, Answered | Crashed):
            said = describe(event.answer) if isinstance(event, Answered) else "no answer, it crashed"
            lines.append(f"{under_way.pop(event.caller)}: {said}")
    lines += [f"{asked}: no answer" for _, asked in sorted(under_way.items())]
    return [
        line
        for number, text in enumerate(lines)
        for line in _field("" if number else "answers", text, inner=2)
    ]


# --- the table -----------------------------------------------------------------------------------------

ABSENT = {"table": "there", "locks": "there", "fence": "no table"}
"""What it means that a database has nothing of this name; of all others, that there is no such row."""


def _table(before: Database | None, expected: Database, observed: Database) -> list[str]:
    """Return the table before and after the last step: what changed or should have, then the rest."""
    was, wanted, found = (dict(_things(db)) for db in (before, expected, observed))
    changed: list[tuple[str, list[str]]] = []
    same: list[tuple[str, list[str]]] = []
    for kind, name in sorted({*was, *wanted, *found}, key=lambda one: (one[0] != "row", one)):
        absent = ABSENT.get(kind, "-")
        old, due, new = (some.get((kind, name), absent) for some in (was, wanted, found))
        old = "not shown" if before is None else old
        label = f"{kind} {plain_text(name)}".strip()
        if old == due == new:
            same.append((label, [f"unchanged {old}"]))
        elif due == new:
            changed.append((label, [f"before    {old}", f"after     {new}"]))
        else:
            changed.append((label, [f"before    {old}", f"expected  {due}", f"observed  {new}"]))
    lines: list[str] = []
    for label, texts in [*changed, *same][:ITEMS]:
        if len(label) >= LABEL:
            lines, label = [*lines, f"{' ' * INDENT}{label}"], ""
        for text in texts:
            lines += _field(label, text, inner=LABEL)
            label = ""
    more = len(changed) + len(same) - ITEMS
    lines += [f"{' ' * INDENT}and {more:,} more"] if more > 0 else []
    return lines or [f"{' ' * INDENT}the table is empty, before and after"]


def _things(db: Database | None) -> Iterator[tuple[tuple[str, str], str]]:
    """Give everything in a database: its kind and name, and what it is in words."""
    if db is None:
        return
    if db.rows is None:
        yield ("table", ""), "missing"
    elif db.locks is None:
        yield ("locks", ""), "missing"
    rows: dict[str, list[str]] = {}
    for row in db.rows or ():
        run, state, created, updated = map(plain_text, row[1:])
        text = f"{run} {state}, created {created}, updated {updated}"
        rows.setdefault(named(row.key), []).append(text)
    yield from ((("row", key), " and ".join(texts)) for key, texts in rows.items())
    yield from ((("lock", named(lock.run_id)), _lock(lock)) for lock in db.locks or ())
    if db.fence_closed is not None:
        yield ("fence", ""), "closed" if db.fence_closed else "open"


def _lock(lock: Lock) -> str:
    key = "no key" if lock.key is None else f"key {plain_text(lock.key)}"
    ended = ", ended" if lock.ended else ""
    result = "" if lock.result is None else f", result {shown(lock.result)}"
    return f"{plain_text(lock.holder)} of {key}{ended}{result}, created {plain_text(lock.created_at)}"


# --- what to do next -----------------------------------------------------------------------------------


def _next(saved: Saved) -> Iterator[str]:
    pictures = [f"startonce draw {shlex.quote(saved.trace)}"] if saved.trace else []
    pictures += [saved.picture] if saved.picture else []
    if saved.trace:
        words = shlex.join(("startonce", "replay", saved.trace, *saved.adapter))
        yield f"{'':<{INDENT}}{'trace':<{LABEL}}{safe(words)}"
    for number, text in enumerate(pictures):
        yield f"{'':<{INDENT}}{'' if number else 'picture':<{LABEL}}{safe(text)}"
    if saved.vector:
        yield f"{'':<{INDENT}}{'vector':<{LABEL}}{safe(saved.vector)}"


def _field(label: str, text: str, inner: int = 0) -> list[str]:
    """Return a text beside a label, wrapped, its further lines indented by `inner` more."""
    lines = wrap(clipped(text, LONG), TEXT, subsequent_indent=" " * inner, break_on_hyphens=False)
    head = f"{'':<{INDENT}}{label:<{LABEL}}"
    return [
        f"{' ' * (INDENT + LABEL) if number else head}{line}".rstrip()
        for number, line in enumerate(lines or [""])
    ]
