"""The machine: the same seed takes the same steps, faults are frequent, failures are shrunk."""

from pathlib import Path

from startonce.oracle import machine
from startonce.oracle.check import NOT_REPEATED, QUICK, everything
from startonce.oracle.ledger import Ledger
from startonce.oracle.machine import Tally, drive, effective_edges
from startonce.oracle.mutants import STORES
from startonce.own import SqlSubject


def run(seed: int, examples: int = 60, path: str | Path = ":memory:") -> tuple[Tally, Ledger]:
    subject, ledger = SqlSubject(path), Ledger()
    tally, found = drive(subject, ledger, examples=examples, seed_=seed)
    assert found is None
    subject.close()
    return tally, ledger


def test_the_same_seed_takes_the_same_steps() -> None:
    one, _ = run(seed=7)
    two, _ = run(seed=7)
    other, _ = run(seed=8)
    assert (one.steps, one.faults, one.reached) == (two.steps, two.faults, two.reached)
    assert one.reached != other.reached


def test_at_least_a_fifth_of_the_steps_are_faults(tmp_path: Path) -> None:
    tally, ledger = run(seed=1, examples=150, path=tmp_path / "a.db")
    assert tally.faults / tally.steps >= 0.2
    assert ledger.evaluated["CLM-6"] > 0


def test_the_share_is_of_the_399_effective_edges() -> None:
    assert len(effective_edges()) == 399
    tally, _ = run(seed=1, examples=100)
    assert 0.4 < tally.share() < 1.0


def test_it_goes_beyond_the_walked_scopes() -> None:
    assert len(machine.CALLERS) > 3
    assert len(machine.KEYS) > 2
    assert len(machine.RUNS) > 3


def test_a_failure_becomes_the_shortest_trace_to_it() -> None:
    subject = STORES["vanished row believed"].subject()
    report = everything(subject, QUICK)
    (verdict,) = (v for v in report.verdicts if v.clause == "RSV-5")
    assert verdict.divergence is not None
    assert len(verdict.divergence.actions) == 4
    assert NOT_REPEATED not in verdict.divergence.check


def test_a_correct_implementation_has_nothing_violated() -> None:
    report = everything(SqlSubject(), QUICK)
    assert report.of("violated") == []
    assert len(report.of("holds")) == 44
