"""Which callers are run against each other, from which databases: the scope of `interleave.py`.

One key and few runs. Every pair of operations from every database; triples and short sequences that were
chosen because something can slip in between. Run ids and tokens are minted fresh, as callers must (DUT-1).
"""

from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

from startonce.model.operations import Call
from startonce.model.reservation import EMPTY, NOTHING, Database, Lock, Reservation, State
from startonce.oracle.interleave import Scenario

NOW, HORIZON = 5, 500
"""The clock reading of the first call, and the horizon of the purges: all that is spent is deleted."""

Words = tuple[str, ...]


def _table(*rows: tuple[str, str, State], locks: tuple[Lock, ...] = ()) -> Database:
    return Database(tuple(Reservation(*row, 1, 1) for row in rows), locks)


RESERVED, STARTED = ("k1", "r1", State.RESERVED), ("k1", "r1", State.STARTED)
TABLES = {
    "empty": EMPTY,
    "reserved": _table(RESERVED),
    "started": _table(STARTED),
    "terminal": _table(("k1", "r1", State.TERMINAL)),
    "another run": _table(("k1", "r2", State.RESERVED)),
    "two keys": _table(RESERVED, ("k2", "r1", State.STARTED)),
}
HELD = {
    "executing": _table(STARTED, locks=(Lock("r1", "k1", "h9", False, None, 1),)),
    "half freed": _table(STARTED, locks=(Lock("r1", "k1", "free", False, None, 1),)),
}
"""With run locks, for subjects that have them."""

OPERATIONS: dict[str, tuple[Any, ...]] = {
    "claim": ("k1", "r1"),
    "release": ("k1", "r1"),
    "settle": ("r1",),
    "purge": (HORIZON, 10),
    "read": ("k1",),
    "cancel": ("r1",),
    "free": ("k1",),
}

TRIPLES: tuple[tuple[str, str], ...] = (
    ("empty", "reserve a; reserve b; claim"),
    ("empty", "reserve a; reserve b; read"),
    ("reserved", "claim; claim; claim"),
    ("reserved", "claim; claim; release"),
    ("reserved", "claim; settle; purge"),
    ("started", "release; claim; claim"),
    ("started", "settle; purge; reserve a"),
    ("terminal", "purge; reserve a; reserve b"),
    ("started", "take_lock 1; take_lock 2; free"),
    ("started", "take_lock 1; cancel; free"),
    ("started", "free; free; reserve a"),
    ("half freed", "free; free; reserve a"),
    ("executing", "free; settle; purge"),
)
REWRITTEN = "settle, purge, reserve a"
"""Another run gets the key, in the middle of whatever a caller does."""
BACK_AND_FORTH = "release, claim"
"""The row is as it was before."""


def scenarios(able: frozenset[str], *, bare: bool = True) -> tuple[Scenario, ...]:
    """Return the scenarios of a subject by its capabilities: pairs, then sequences and triples.

    `bare`: its database can be without tables.
    """
    return tuple(_all(able, bare))


def _all(able: frozenset[str], bare: bool) -> Iterator[Scenario]:
    tables = {**TABLES, **(HELD if "take_lock" in able else {}), **({"none": NOTHING} if bare else {})}
    for name, table in tables.items():
        for pair in combinations_with_replacement(_operations(able), 2):
            minted = pair[0] == pair[1] and pair[0].startswith(("reserve", "take_lock"))
            if not minted and (name != "two keys" or "settle" in pair):
                yield _scenario(table, pair, disturbed=name != "none")
    for name in ("reserved", "started"):
        for operation in _operations(able):
            for sequence in (REWRITTEN, BACK_AND_FORTH):
                some: Words = (operation, sequence)
                if _can(able, some) and operation != "reserve a":
                    yield _scenario(tables[name], some)
    for name, text in TRIPLES:
        some = tuple(text.split("; "))
        if name in tables and _can(able, some):
            yield _scenario(tables[name], some)


def _operations(able: frozenset[str]) -> Words:
    words = ("reserve a", "reserve b", *OPERATIONS, "take_lock 1", "take_lock 2")
    return tuple(word for word in words if word.split()[0] in able)


def _can(able: frozenset[str], some: Words) -> bool:
    return all(word.split()[0] in able for words in some for word in words.split(", "))


def _scenario(start: Database, some: Words, disturbed: bool = False) -> Scenario:
    """Return a scenario in words, a text for each caller. Each call has a clock reading of its own."""
    known = {row.run_id for row in start.rows or ()} | {lock.run_id for lock in start.locks or ()}
    fresh = [run_id for run_id in ("r1", "r2", "r3") if run_id not in known]
    calls = []
    for caller, words in enumerate(some):
        now = NOW + 10 * caller
        calls.append(tuple(_call(word, fresh, now + place) for place, word in enumerate(words.split(", "))))
    return Scenario(start, tuple(calls), disturbed)


def _call(word: str, fresh: list[str], now: int) -> Call:
    operation, _, which = word.partition(" ")
    if operation == "reserve":
        return Call(operation, ("k1", fresh["ab".index(which)]), now)
    if operation == "take_lock":
        return Call(operation, ("k1", "r1", f"h{which}"), now)
    return Call(operation, OPERATIONS[operation], now)
