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

KILLS: dict[str, tuple[str, int]] = {
    "reserve that starts": ("edges", 1),
    "insert or replace": ("edges", 2),
    "reserve resets the state": ("edges", 3),
    "loser writes to the winner's row": ("edges", 2),
    "reserve answers its proposal": ("edges", 3),
    "spent, and not said": ("edges", 3),
    "lost insert believed": ("edges", 3),
    "vanished row believed": ("edges", 2),
    "half a schema": ("edges", 1),
    "insert ignores what it may not": ("probes", 1),
    "claim by read, then update": ("interleavings", 4),
    "claim keeps the time": ("edges", 2),
    "claim on any state": ("edges", 3),
    "claim believes a truthy row count": ("edges", 1),
    "loser leaves its mark": ("edges", 2),
    "claim without the run id": ("edges", 2),
    "claim creates the schema": ("edges", 1),
    "unknown claim reported as lost": ("edges", 1),
    "release spends the key": ("edges", 3),
    "release of a terminal row": ("edges", 3),
    "release without the run id": ("edges", 3),
    "settle of started rows only": ("edges", 2),
    "settle of terminal rows again": ("edges", 3),
    "settle counts triggers": ("edges", 2),
    "settle says whether": ("edges", 4),
    "settle waits for the fence": ("edges", 3),
    "spent key used again": ("edges", 3),
    "purge at the horizon": ("edges", 3),
    "purge of live rows": ("edges", 2),
    "purge without a limit": ("edges", 5),
    "purged key keeps its run": ("machine", 4),
    "timer reopens a started row": ("edges", 3),
    "read creates the schema": ("edges", 1),
    "read opens a transaction": ("edges", 1),
    "any missing table is ours": ("probes", 1),
    "unreadable is absent": ("probes", 1),
    "read locks the row": ("edges", 1),
    "one row of each run": ("edges", 4),
    "repeated runs, repeated rows": ("edges", 2),
    "for_runs cut at the limit": ("probes", 1),
    "for_runs tells another time": ("edges", 3),
    "inventory of rows alone": ("edges", 6),
    "inventory of started rows": ("edges", 2),
    "ended shown as running": ("edges", 6),
    "fence in another database": ("probes", 1),
    "trimmed keys": ("probes", 1),
    "numbers taken for keys": ("probes", 1),
    "empty key, no key": ("probes", 1),
    "bad key leaves a transaction open": ("probes", 2),
    "long keys cut": ("probes", 1),
    "case-folding keys": ("probes", 1),
    "case-folding column": ("probes", 1),
    "keys with numeric affinity": ("probes", 1),
    "persist by whoever comes": ("edges", 5),
    "lock deleted at its end": ("edges", 4),
    "persist over an end": ("edges", 6),
    "a lock there is a lock of mine": ("edges", 6),
    "a lock taken whatever the row says": ("edges", 2),
    "unknown lock is not mine": ("edges", 1),
    "cancel that settles anyway": ("edges", 4),
    "cancel that looks at the lock": ("edges", 1),
    "free that looks at the lock": ("edges", 3),
    "free by key alone": ("edges", 10),
    "free of a reserved row": ("edges", 2),
    "free that believes any lock": ("edges", 4),
    "free that is not completed": ("edges", 5),
    "an unknown claim taken for won": ("exploration", 13),
    "release on any failure": ("exploration", 8),
    "release repeated after a lost reply": ("exploration", 15),
    "a lock sent is a lock held": ("exploration", 10),
    "gives up after an unknown lock": ("exploration", 5),
    "run id derived from the key": ("exploration", 11),
    "a transport that delivers twice": ("exploration", 11),
    "a timeout that settles": ("exploration", 6),
    "created means mine to start": ("exploration", 13),
    "the fence is not read": ("exploration", 8),
    "the fence read before the claim": ("exploration", 8),
    "tells the run that it proposed": ("exploration", 6),
    "the loser asks no more": ("exploration", 6),
    "an unreadable fence is closed": ("exploration", 4),
    "refused, and not released": ("exploration", 5),
    "only who created may claim": ("exploration", 3),
    "takes over what a crash left": ("exploration", 6),
    "delivers twice, and looks at no lock": ("exploration", 12),
    "releases twice, and looks at no lock": ("exploration", 22),
    "an unreadable fence is open": ("exploration", 8),
}
"""By which check, and in how many steps."""


@pytest.mark.long
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
    assert len(blind) <= 7


def test_every_clause_with_a_predicate_is_shown_to_be_able_to_fail() -> None:
    assert registered() <= {one.clause for one in STORES.values()}


def test_a_correct_implementation_follows_the_same_trace() -> None:
    broken = STORES["vanished row believed"].subject()
    ledger = Ledger()
    walk_statements(broken, ledger, STATEMENTS[:1])
    found = shortest(broken, ledger.divergences["RSV-5"], "RSV-5")
    assert len(found.actions) == 4
    again = follow(broken, found.actions, found.start)
    assert again is not None
    assert "RSV-5" in again.clauses
    assert follow(SqlSubject(), found.actions, found.start) is None


@pytest.mark.long
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
