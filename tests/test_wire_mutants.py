"""Every broken implementation, served as a foreign adapter, is killed through the wire."""

import sys
from pathlib import Path

import pytest
from adapters import looped

from startonce.oracle.mutants import STARTS, STORES, found_by
from startonce.oracle.wire import OWN_STEPS, WireSubject
from startonce.oracle.wire.misbehaviour import BadResponse
from startonce.oracle.wire.serve import Server

NEEDS = dict.fromkeys(STARTS, "starts")
"""Mutants that take a capability which is not asked for here: broken callers take whole starts."""


SHOWN_AS_IMPOSSIBLE = "keys with numeric affinity"
"""It shows a key that is a number: the wire itself refuses such a dump, with a sentence of its own."""


@pytest.mark.long
@pytest.mark.parametrize("name", STORES)
def test_is_killed_through_the_wire(name: str, tmp_path: Path) -> None:
    mutant = STORES[name]
    subject, _ = looped(Server(mutant.subject(tmp_path / "a.db", held=True), named=not mutant.own), False)
    held, _ = looped(Server(mutant.subject(tmp_path / "b.db", held=True), named=not mutant.own), False)
    held.own_steps = True
    assert (OWN_STEPS in subject.capabilities) == mutant.own
    if name == SHOWN_AS_IMPOSSIBLE:
        with pytest.raises(BadResponse, match="cannot be: rows/0/0: 7 is not of type 'string'"):
            found_by(mutant, subject, held)
    else:
        assert found_by(mutant, subject, held) is not None, f"{name} survived"
    subject.close()
    held.close()


@pytest.mark.long
@pytest.mark.parametrize("name", ["claim on any state", "claim by read, then update", "long keys cut"])
def test_is_killed_in_a_process_of_its_own(name: str) -> None:
    command = [sys.executable, "-m", "startonce.adapter", "--mutant", name]
    subject, held = WireSubject.start(command), WireSubject.start(command)
    held.own_steps = True
    assert found_by(STORES[name], subject, held) is not None
    subject.close()
    held.close()


def test_the_mutants_that_take_another_capability_are_those_of_callers() -> None:
    assert set(NEEDS.values()) == {"starts"}
    assert not NEEDS.keys() & STORES.keys()
