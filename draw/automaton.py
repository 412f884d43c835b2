"""The life of one key as an automaton, found by applying the model's statements.

Nothing here says that a claim starts or that a purge deletes: each statement of each operation is
applied to each table of one key, and where the rows change there is a transition. So a changed
model is a changed picture.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from startonce.model.operations import CREATE, PROGRAMS, Call, Program
from startonce.model.reservation import Database, Reservation, State

ABSENT = "absent"
"""The state of a key that has no row."""

STATES = (ABSENT, *State)
"""The states of a key, in the order in which it goes through them."""

KEY, RUN, OTHER_RUN = "k1", "r1", "r2"
WRITTEN, NOW = 0, 1
"""When the row was written, and when the statement runs. A purge takes everything before now."""

Arguments = tuple[tuple[Any, ...], ...]
_BY_KEY: Arguments = ((KEY, RUN), (KEY, OTHER_RUN))
_BY_RUN: Arguments = ((RUN,), (OTHER_RUN,))
_NONE: Arguments = ((),)

ARGUMENTS: Mapping[str, Arguments] = {
    "reserve": _BY_KEY,
    "claim": _BY_KEY,
    "release": _BY_KEY,
    "settle": _BY_RUN,
    "read": ((KEY,),),
    "for_runs": _BY_RUN,
    "purge": ((NOW, 1),),
    "inventory": ((None, 1),),
    "cancel": _BY_RUN,
    "free": ((KEY,),),
    "take_lock": ((KEY, RUN, "h1"), (KEY, OTHER_RUN, "h1")),
    "lock_of": _BY_RUN,
    "persist": ((RUN, "h1", "{}"), (OTHER_RUN, "h1", "{}")),
    "fence": _NONE,
    "close_fence": _NONE,
    "open_fence": _NONE,
}
"""What each operation is called with: the row's own run and another one."""


class Transition(NamedTuple):
    """One arrow: a statement that changes the row of a key in this state."""

    before: str
    statement: str
    after: str

    @property
    def deletes(self) -> bool:
        """Whether the row's lifetime ends."""
        return self.before != ABSENT and self.after == ABSENT

    @property
    def backwards(self) -> bool:
        """Whether a row that lives on falls back to an earlier state (REL-2)."""
        return not self.deletes and STATES.index(self.after) < STATES.index(self.before)


class Lifecycle(NamedTuple):
    """Every state of one key and every transition between them."""

    states: tuple[str, ...]
    transitions: tuple[Transition, ...]


def lifecycle(programs: Mapping[str, Program] = PROGRAMS) -> Lifecycle:
    """Run every operation on every table of one key; collect the statements at which the row changes.

    Raises `KeyError` for an operation that `ARGUMENTS` does not know.
    """
    found: dict[Transition, None] = {}
    for state in STATES:
        for operation, program in programs.items():
            for name, before, after in _changes(_table(state), operation, program):
                found[Transition(_state(before), name, _state(after))] = None
    return Lifecycle(STATES, tuple(found))


def _changes(start: Database, operation: str, program: Program) -> Iterator[tuple[str, Database, Database]]:
    """Give each statement at which an operation changes the rows, with the database before and after."""
    for name in program.creates:
        after = CREATE[name](start)[0]
        if after.rows != start.rows:
            yield name, start, after
    for args in ARGUMENTS[operation]:
        db, call = start, Call(operation, args, NOW)
        for name, apply in program.statements.items():
            after, reply = apply(db, call)
            if after.rows != db.rows:
                yield name, db, after
            db, call = after, call._replace(heard=(*call.heard, reply))
            if program.early(call) is not None:
                break


def _table(state: str) -> Database:
    """Return the table in which the key is in a state, with the schema whole."""
    row = () if state == ABSENT else (Reservation(KEY, RUN, State(state), WRITTEN, WRITTEN),)
    return Database(rows=row, locks=())


def _state(db: Database) -> str:
    row = db.row(KEY)
    return ABSENT if row is None else row.state.value
