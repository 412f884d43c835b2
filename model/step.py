"""One observed step, and what can be read off it: the ground that the predicates stand on.

A step is one statement, or one whole operation, of one caller: the database before and after it, and the
answer if it ended its operation.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from startonce.model.operations import Call, Fault
from startonce.model.reservation import Database, Reservation, State

GOES_ON = "goes on"
"""In place of an answer: the operation has more statements."""

RESERVED, STARTED, TERMINAL = State.RESERVED, State.STARTED, State.TERMINAL
Verdict = bool | None


class Step(NamedTuple):
    """One observed step. `statement` None is a whole operation with nobody in between.

    `before` and `after` are all there is in the database; `seen` is what a read was answered from, which
    a lagging replica makes older than `before`.
    """

    call: Call
    statement: str | None
    fault: Fault
    before: Database
    after: Database
    answer: Any
    seen: Database

    @property
    def applied(self) -> bool:
        """Whether the statement took effect at this step."""
        return self.fault in (Fault.NONE, Fault.LOST)

    @property
    def heard(self) -> bool:
        """Whether its caller has the reply."""
        return self.fault in (Fault.NONE, Fault.STALE)


Predicate = Callable[[Step], Verdict]
BY_OPERATION: dict[str, list[tuple[str, Predicate]]] = {}
ALWAYS: list[tuple[str, Predicate]] = []


def says(clause: str, *operations: str) -> Callable[[Predicate], Predicate]:
    """Register a predicate of a clause, for steps of some operations or, with none named, of all."""

    def register(predicate: Predicate) -> Predicate:
        for operation in operations:
            BY_OPERATION.setdefault(operation, []).append((clause, predicate))
        if not operations:
            ALWAYS.append((clause, predicate))
        return predicate

    return register


# --- what a step did ---------------------------------------------------------------------------------


def rows_of(db: Database) -> dict[str, Reservation]:
    """Return the rows by key."""
    return {row.key: row for row in db.rows or ()}


def changed(step: Step) -> set[str]:
    """Return the keys whose rows differ before and after."""
    before, after = rows_of(step.before), rows_of(step.after)
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def alone(step: Step, key: str) -> bool:
    """Whether nothing but the row of this key differs."""
    same = step.before.locks == step.after.locks or step.before.locks is None
    return changed(step) <= {key} and same and step.before.fence_closed == step.after.fence_closed


def inserts(step: Step) -> bool:
    """Whether the insert of a reserve took effect at this step."""
    return step.statement in (None, "insert") and step.applied


def reads_back(step: Step) -> bool:
    """Whether the read-back of a reserve was answered at this step."""
    return step.statement in (None, "read back") and step.heard


def key_and_run(step: Step) -> tuple[str, str]:
    """Return the first two arguments of an operation on a key and its run."""
    key, run_id = step.call.args[:2]
    return key, run_id


def became(row: Reservation | None, old: Reservation, state: State, now: int) -> bool:
    """Whether a row is the old one in another state, with its time moved."""
    return row == old._replace(state=state, updated_at=now)


def answered(step: Step) -> bool:
    """Whether the statement took effect and its caller has the reply."""
    return step.fault is Fault.NONE
