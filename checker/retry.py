"""What may a caller do whose reply was lost? Computed, for each statement that writes.

Each answer is tried in worlds in which one reply is lost: if no property falls it may be done, if one
does it may not, and the shortest trace to the fall says why.
"""

from typing import NamedTuple

from startonce.checker.explore import explore
from startonce.model.faults import RETRIES, first, steps
from startonce.model.properties import properties
from startonce.model.start import PROGRAM
from startonce.model.world import Budget, Event, Scope

WRITES = ("insert", "claim", "release", "take", "persist", "settle")

SCOPES = (
    Scope(callers=2, budget=Budget(unknowns=1, purges=1)),
    Scope(callers=2, budget=Budget(unknowns=1, purges=1), durable=False),
    Scope(callers=3, budget=Budget(unknowns=1, flips=2), durable=False),
    Scope(callers=3, budget=Budget(unknowns=1, flips=2)),
)
"""The worlds in which each answer is tried, the smaller ones first."""


class Answer(NamedTuple):
    """Whether a caller may do something after a lost reply; if not, what falls, and by which trace."""

    statement: str
    retry: str
    falls: str
    durable: bool
    trace: tuple[Event, ...]

    @property
    def allowed(self) -> bool:
        """Whether nothing falls."""
        return not self.falls


def table() -> list[Answer]:
    """Return the answer for every statement that writes and everything a caller could do."""
    assert all(PROGRAM[statement].writes for statement in WRITES)
    return [answer(statement, retry) for statement in WRITES for retry in RETRIES]


def answer(statement: str, retry: str) -> Answer:
    """Try one thing after a lost reply, until a property falls."""
    for scope in SCOPES:
        if not scope.durable and statement in ("take", "persist"):
            continue  # a host's own mutex: no statement
        tried = scope._replace(after_unknown=((statement, retry),))
        checks = {name: one.check for name, one in properties(scope).items()}
        found = explore(first(tried), steps(tried), checks, stop_at=["executes once"])
        fallen = {name: one.trace for name, one in found.findings.items() if one.trace is not None}
        if fallen:
            name = min(fallen, key=lambda name: (len(fallen[name] or ()), name))
            return Answer(statement, retry, name, scope.durable, fallen[name] or ())
    return Answer(statement, retry, "", True, ())
