"""Covers a scope by as few and as short traces of whole operations as a greedy search finds.

A trace goes on to the nearest step that covers something new, found by breadth-first search over the
model, and ends where nothing new can be reached any more; the next one begins anew. What is possible
without changing anything is taken first. The clock moves by one with every step.
"""

from collections.abc import Callable, Hashable, Iterable
from functools import cache
from typing import Any

from startonce.model.interleaving import Action, World, canonical, whole
from startonce.model.predicates import Step
from startonce.model.reservation import Database

Choices = Callable[[Database], Iterable[tuple[Any, ...]]]
"""The operations that may come next, each with its arguments after it.

On databases that differ only in their clock readings, not in the order of these, they are as many, and
each one does the same.
"""
Covers = Callable[[Step], frozenset[Hashable]]
"""What a step covers. The clock readings themselves are no matter."""
Trace = tuple[Step, ...]
_Moves = Callable[[Database], tuple[tuple[frozenset[Hashable], Database | None], ...]]

_LATER = 10**6
"""A clock reading after all those of `canonical`."""


def stepped(db: Database, operation: str, args: tuple[Any, ...], now: int) -> Step:
    """Return the step of a whole operation of a caller who is alone; bad arguments are refused."""
    return whole(World(db), Action("run", "A", operation, args, now))[1]


def timeless(db: Database) -> Database:
    """Forget the clock but for the order of last changes, on which a purge depends."""
    return canonical(World(db)).db


def traces(start: Database, choices: Choices, covers: Covers) -> list[Trace]:
    """Return traces from a database that together cover all that can be covered from there."""

    @cache
    def moves(place: Database) -> tuple[tuple[frozenset[Hashable], Database | None], ...]:
        """Give for each choice what it covers, and where it leads if it changes anything."""
        steps = [stepped(place, name, tuple(args), _LATER) for name, *args in choices(place)]
        return tuple(
            (covers(step), None if step.before == step.after else timeless(step.after)) for step in steps
        )

    found: list[Trace] = []
    covered: set[Hashable] = set()
    while trace := _trace(start, choices, covers, moves, covered):
        found.append(trace)
    return found


def _trace(db: Database, choices: Choices, covers: Covers, moves: _Moves, covered: set[Hashable]) -> Trace:
    trace: list[Step] = []
    while path := _nearest(timeless(db), moves, covered):
        for number in path:
            operation, *args = list(choices(db))[number]
            trace.append(stepped(db, operation, tuple(args), len(trace) + 1))
            covered |= covers(trace[-1])
            db = trace[-1].after
    return tuple(trace)


def _nearest(place: Database, moves: _Moves, covered: set[Hashable]) -> tuple[int, ...]:
    """Return the shortest way to a step that covers something new, as numbers of choices; or nothing."""
    seen = {place}
    frontier: list[tuple[Database, tuple[int, ...]]] = [(place, ())]
    while frontier:
        reached: list[tuple[Database, tuple[int, ...]]] = []
        changing: tuple[int, ...] = ()
        for here, path in frontier:
            for number, (what, there) in enumerate(moves(here)):
                if not what <= covered:
                    if there is None:
                        return (*path, number)
                    changing = changing or (*path, number)
                if there is not None and there not in seen:
                    seen.add(there)
                    reached.append((there, (*path, number)))
        if changing:
            return changing
        frontier = reached
    return ()
