"""One key and the lock of its run as an automaton, with its counts: every operation from every state.

Found by running the operations of the model, breadth first from an empty database; times and results are
left out, and so are other keys and runs.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from startonce.draw.automaton import ABSENT, KEY, NOW, RUN
from startonce.model.operations import PROGRAMS, READS, Call, Ended, Program, advance
from startonce.model.reservation import EMPTY, Database

HOLDER = "h1"
ASKED: Mapping[str, tuple[Any, ...]] = {
    "reserve": (KEY, RUN),
    "claim": (KEY, RUN),
    "release": (KEY, RUN),
    "settle": (RUN,),
    "purge": (NOW, 1),
    "take_lock": (KEY, RUN, HOLDER),
    "persist": (RUN, HOLDER, "{}"),
    "cancel": (RUN,),
    "free": (KEY,),
}
"""The operations that write rows or locks, each with the arguments that concern this key and run."""


class Place(NamedTuple):
    """One state: the row and the lock, in words."""

    row: str
    lock: str


class Change(NamedTuple):
    """One arrow: a statement that changes the row or the lock."""

    before: Place
    statement: str
    after: Place


class Keys(NamedTuple):
    """Every state, every arrow, and how many statements were refused, or changed nothing, in each state."""

    places: tuple[Place, ...]
    changes: tuple[Change, ...]
    refused: Mapping[Place, int]


def keys(programs: Mapping[str, Program] = PROGRAMS) -> Keys:
    """Run every operation, statement by statement, from every state that is reached."""
    places: dict[Place, Database] = {_place(EMPTY): EMPTY}
    changes: dict[Change, None] = {}
    refused: Counter[Place] = Counter()
    frontier = [EMPTY]
    for start in frontier:  # grows while it is walked
        for operation, args in ASKED.items():
            db, call = start, Call(operation, args, NOW)
            while True:
                statement = tuple(programs[operation].statements)[len(call.heard)]
                after, then = advance(db, call)
                after = _plain(after)
                if statement not in READS:
                    if after == db:
                        refused[_place(db)] += 1
                    else:
                        changes[Change(_place(db), statement, _place(after))] = None
                if _place(after) not in places:
                    places[_place(after)] = after
                    frontier.append(after)
                if isinstance(then, Ended):
                    break
                db, call = after, then
    return Keys(tuple(places), tuple(changes), refused)


def _plain(db: Database) -> Database:
    """Forget times and results, so that a purge always takes what is terminal."""
    rows = tuple(row._replace(created_at=0, updated_at=0) for row in db.rows or ())
    locks = tuple(lock._replace(created_at=0) for lock in db.locks or ())
    return Database(rows, locks)


def _place(db: Database) -> Place:
    row, lock = db.row(KEY), db.lock(RUN)
    held = (
        "no lock"
        if lock is None
        else "ended"
        if lock.ended
        else "held"
        if lock.holder == HOLDER
        else lock.holder
    )
    return Place(ABSENT if row is None else row.state.value, held)
