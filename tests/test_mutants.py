"""The oracle is not blind: every broken implementation is killed by its clause, with the shortest trace."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from startonce import cli, mutating
from startonce.model.clauses import CLAUSES
from startonce.model.predicates import registered
from startonce.oracle import mutants
from startonce.oracle.edges import walk_statements
from startonce.oracle.ledger import Ledger
from startonce.oracle.lockstep import follow
from startonce.oracle.mutants import MUTANTS, STARTS, STORES, Killed, kill
from startonce.oracle.scopes import STATEMENTS
from startonce.oracle.shortest import shortest
from startonce.own import SqlSubject

KILLS: dict[str, tuple[str, int]] = {}
"""By which check, and in how many steps."""


@pytest.mark.parametrize("name", MUTANTS)
def test_is_killed_by_its_clause_in_as_few_steps_as_there_are(name: str) -> None:
    killed = kill(name, machine_too=False)
    assert killed.clauses[0] == MUTANTS[name].clause
    assert (killed.check, killed.steps) == KILLS[name]
    assert killed.lines


def test_every_clause_has_a_mutant() -> None:
    assert {one.clause for one in MUTANTS.values()} == set(CLAUSES)


def test_the_reasons_why_the_machine_alone_cannot_see_one_are_few() -> None:
    """Each is a thing that it does not do; `startonce mutants` runs it on all others."""
    blind = {one.blind for one in STORES.values() if one.blind}
    assert len(blind) <= 6


def test_every_clause_with_a_predicate_is_shown_to_be_able_to_fail() -> None:
    assert registered() <= {one.clause for one in STORES.values()}


def test_a_correct_implementation_follows_the_same_trace() -> None:
    broken = MUTANTS["vanished row believed"].subject()
    ledger = Ledger()
    walk_statements(broken, ledger, STATEMENTS[:1])
    found = shortest(broken, ledger.divergences["RSV-5"], "RSV-5")
    assert len(found.actions) == 4
    again = follow(broken, found.actions, found.start)
    assert again is not None
    assert "RSV-5" in again.clauses
    assert follow(SqlSubject(), found.actions, found.start) is None


def test_a_correct_implementation_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the table would say killed of anything."""
    name = "claim on any state"
    monkeypatch.setitem(mutants.MUTANTS, name, STORES[name]._replace(operations=SqlSubject()._operations))
    survived = kill(name, machine_too=False)
    assert survived.survived
    assert mutating.line(survived).count("SURVIVED") == 1


def test_a_dutiful_start_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "the fence is not read"
    dutiful = STARTS[name]._replace(starts=STARTS["a timeout that settles"].starts._replace())
    monkeypatch.setitem(mutants.MUTANTS, name, dutiful)
    assert kill(name).survived


def test_what_only_the_machine_misses_is_a_survivor_too() -> None:
    killed = Killed("a", ("RSV-1",), "edges", 1, (), 0.1, False, 2.0, "")
    assert killed.survived
    assert not killed._replace(machine=None).survived


def test_the_command_says_who_was_killed_and_writes_json(tmp_path: Path) -> None:
    out = CliRunner().invoke(
        cli.app, ["mutants", "claim on any state", "trimmed keys", "--json", str(tmp_path / "kills.json")]
    )
    assert out.exit_code == 0, out.output
    assert "2 mutants: 2 killed, 0 survived" in out.output
    kills = json.loads((tmp_path / "kills.json").read_text("utf-8"))["mutants"]
    assert [one["name"] for one in kills] == ["claim on any state", "trimmed keys"]
    assert kills[0]["clauses"][0] == "CLM-2"
    assert kills[0]["machine_alone"] is True
    assert kills[1]["blind"]


def test_a_mutant_that_is_not_there_is_a_usage_error() -> None:
    out = CliRunner().invoke(cli.app, ["mutants", "nobody"])
    assert out.exit_code == 2
    assert "there is no mutant" in out.output
