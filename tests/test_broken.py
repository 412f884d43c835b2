"""The oracle is not blind: every broken implementation turns the clause that it names red."""

from pathlib import Path

import pytest
from broken import BROKEN

from startonce.oracle import machine
from startonce.oracle.edges import walk, walk_statements
from startonce.oracle.ledger import Divergence, Ledger
from startonce.oracle.lockstep import follow
from startonce.oracle.probes import probe
from startonce.oracle.scopes import STATEMENTS
from startonce.oracle.shortest import shortest
from startonce.own import SqlSubject


def found_in(name: str, subject: SqlSubject) -> Divergence:
    broken = BROKEN[name]
    ledger = Ledger()
    match broken.check:
        case "edges":
            walk(subject, ledger)
        case "statements":
            walk_statements(subject, ledger, STATEMENTS[:1])
        case "probes":
            probe(subject, ledger)
        case _:
            machine.drive(subject, ledger, examples=60)
    assert broken.clause in ledger.divergences, f"{name} survived; found {list(ledger.divergences)}"
    return ledger.divergences[broken.clause]


@pytest.mark.parametrize("name", BROKEN)
def test_turns_its_clause_red(name: str) -> None:
    subject = SqlSubject(operations=BROKEN[name].operations)
    found = found_in(name, subject)
    assert found.expected != found.observed
    subject.close()


STEPS = {
    "insert or replace": 2,
    "vanished row believed": 4,
    "claim on any state": 3,
    "claim without the run id": 2,
    "release without the run id": 3,
    "settle of started rows only": 2,
    "purge at the horizon": 3,
    "a lock taken whatever the row says": 2,
}
"""The length of the shortest trace there is to each divergence, from an empty table."""


@pytest.mark.parametrize("name", STEPS)
def test_is_shown_by_the_shortest_trace(name: str) -> None:
    subject = SqlSubject(operations=BROKEN[name].operations)
    clause = BROKEN[name].clause
    found = shortest(subject, found_in(name, subject), clause)
    assert len(found.actions) == STEPS[name]
    again = follow(subject, found.actions, found.start)
    assert again is not None
    assert clause in again.clauses
    subject.close()


def test_a_correct_implementation_follows_the_same_traces() -> None:
    broken = SqlSubject(operations=BROKEN["vanished row believed"].operations)
    found = shortest(broken, found_in("vanished row believed", broken))
    ours = SqlSubject()
    assert follow(ours, found.actions, found.start) is None


@pytest.mark.parametrize(
    "name", ["claim without the run id", "vanished row believed", "purge of live rows"]
)
def test_the_machine_alone_sees_it_too(name: str, tmp_path: Path) -> None:
    subject = SqlSubject(tmp_path / "a.db", BROKEN[name].operations)
    ledger = Ledger()
    _, found = machine.drive(subject, ledger, examples=100)
    assert found is not None
    assert ledger.divergences
    subject.close()
