"""From a clause to where the model says it, what holds it, which mutants die by it, where it is seen.

Nothing here is written down twice: the cells come from what is registered, from the checks as they run,
from the mutants and from the pictures. An empty cell fails a test.
"""

import inspect
from collections.abc import Mapping
from functools import cache
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from startonce import checking, drawing
from startonce.checker.starts import DUTIES, SHOWN_BY
from startonce.model.clauses import CLAUSES
from startonce.model.properties import ALWAYS as ALWAYS_IN_STARTS
from startonce.model.properties import EVENTUALLY, properties
from startonce.model.step import ALWAYS, BY_OPERATION
from startonce.oracle.broken.callers import Undutiful
from startonce.oracle.edges import walk, walk_statements
from startonce.oracle.faulty import walk_faults
from startonce.oracle.ledger import Ledger
from startonce.oracle.mutants import MUTANTS
from startonce.oracle.probes import probe
from startonce.oracle.scopes import STATEMENTS
from startonce.own import SqlSubject

ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "RSV-7": ("model/operations.py: REFUSED",),
    "RUN-2": ("model/operations.py: TOO_MANY",),
    "DB-1": ("model/reservation.py: Database",),
    "STA-8": ("model/reservation.py: claim",),
    "STA-10": ("checker/starts.py: HAZARDS",),
    "PRG-2": ("model/predicates.py: judge_trace",),
}
"""Where the model says what no predicate of a single step does: a value, or a table that has no clock."""

UNBREAKABLE: Mapping[str, str] = {}
"""Clauses that no implementation can be seen to break, each with the reason."""


class Traced(NamedTuple):
    """One clause, and everything that stands for it."""

    clause: str
    kind: str
    sentence: str
    model: tuple[str, ...]
    checks: tuple[str, ...]
    mutants: tuple[str, ...]
    pictures: tuple[str, ...]


def table() -> list[Traced]:
    """Return every clause in the order of the specification."""
    said, held, killed = _said(), _held(), _killed()
    return [
        Traced(
            one.id,
            one.kind,
            one.sentence,
            said.get(one.id, ()),
            held.get(one.id, ()),
            killed.get(one.id, ()),
            drawing.SHOWS.get(one.id, ()),
        )
        for one in CLAUSES.values()
    ]


def to_json(traced: list[Traced]) -> dict[str, Any]:
    """Return the table as plain JSON values."""
    return {"startonce": "traceability", "version": 1, "clauses": [one._asdict() for one in traced]}


def _place(function: Any) -> str:
    path = PurePosixPath(inspect.getsourcefile(function) or "")
    return f"model/{path.name}: {function.__name__}"


def _said() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for some in (*BY_OPERATION.values(), ALWAYS):
        for clause, predicate in some:
            found.setdefault(clause, []).append(_place(predicate))
    for one in (*ALWAYS_IN_STARTS.values(), *EVENTUALLY.values()):
        for clause in one.clauses:
            found.setdefault(clause, []).append(_place(one.check))
    for duty in DUTIES:
        found.setdefault(duty, []).append("model/faults.py: without")
    for clause, places in ELSEWHERE.items():
        found.setdefault(clause, []).extend(places)
    return {clause: tuple(dict.fromkeys(places)) for clause, places in found.items()}


@cache
def _held() -> Mapping[str, tuple[str, ...]]:
    """Run what is exhaustive; the machine evaluates every predicate too, and is left to chance."""
    subject, ledger = SqlSubject(), Ledger()
    walk(subject, ledger)
    walk_faults(subject, ledger)
    walk_statements(subject, ledger, STATEMENTS[:1])
    probe(subject, ledger)
    ledger.merge(checking.starts(quick=True).ledger)
    subject.close()
    found = {clause: sorted(checks) for clause, checks in ledger.checks.items()}
    for duty in DUTIES:
        found.setdefault(duty, []).append(f"explore --without {duty} {SHOWN_BY[duty]}".rstrip())
    found.setdefault("PRG-2", []).append("machine")  # it speaks of several steps
    return {clause: tuple(checks) for clause, checks in found.items()}


def _killed() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for name, mutant in MUTANTS.items():
        clauses = [mutant.clause]
        if isinstance(mutant, Undutiful) and mutant.breaks:
            clauses += properties(mutant.scope)[mutant.breaks].clauses
        for clause in dict.fromkeys(clauses):
            found.setdefault(clause, []).append(name)
    return {clause: tuple(names) for clause, names in found.items()}
