"""The oracle is not blind: every broken implementation, and how each is killed.

A mutant is killed when a check finds that it breaks the very clause that it names. The checks are tried in
the order in which a user meets them; the first one that sees it is named, and the divergence is then
searched again for the shortest trace there is. What the machine sees it must see alone, too.
"""

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from startonce.oracle import machine
from startonce.oracle.broken import locks, reads, rows
from startonce.oracle.broken.changes import Mutant
from startonce.oracle.edges import walk, walk_statements
from startonce.oracle.ledger import Divergence, Ledger
from startonce.oracle.lockstep import follow
from startonce.oracle.probes import probe
from startonce.oracle.scopes import STATEMENTS
from startonce.oracle.shortest import shortest
from startonce.oracle.subject import Subject

MUTANTS: Mapping[str, Mutant] = {**rows.MUTANTS, **reads.MUTANTS, **locks.MUTANTS}

EXAMPLES = 500
"""Examples of the machine that one mutant is given, of 50 steps each."""


class Killed(NamedTuple):
    """How a mutant ended: by which check, the divergence with the shortest trace, and after how long.

    `check` is empty, and `divergence` None, where it survived. `machine` says whether the machine alone
    saw it, None where it cannot. `seconds` is the time to the divergence that is shown, and
    `machine_seconds` that of the machine alone.
    """

    name: str
    clause: str
    check: str
    divergence: Divergence | None
    seconds: float
    machine: bool | None
    machine_seconds: float

    @property
    def survived(self) -> bool:
        """Whether a check that can see it did not."""
        return not self.check or self.machine is False


class _Found(Exception):
    def __init__(self, divergence: Divergence) -> None:
        super().__init__(divergence)
        self.divergence = divergence


class _Wanted(Ledger):
    """Stops a check at the first divergence that breaks one clause."""

    clause = ""

    def violated(self, divergence: Divergence) -> None:
        """Note a divergence; raise it if it breaks the clause that is wanted."""
        super().violated(divergence)
        if self.clause in divergence.clauses:
            raise _Found(divergence)


def found_by(subject: Subject, clause: str) -> tuple[str, Divergence] | None:
    """Return the first check that finds a clause broken, with what it found."""
    ledger = _Wanted()
    ledger.clause = clause
    try:
        check = "probes"
        probe(subject, ledger)
        check = "edges"
        walk(subject, ledger)
        check = "statements"
        walk_statements(subject, ledger, STATEMENTS[:1])
        check = "machine"
        machine.drive(subject, ledger, examples=EXAMPLES, steering=machine.DEEP)
    except _Found as found:
        return check, found.divergence
    return None


def kill(name: str, path: Path | None = None) -> Killed:
    """Hold a mutant against the checks, in a folder of its own unless a path is given."""
    mutant = MUTANTS[name]
    if path is None:
        with tempfile.TemporaryDirectory(prefix="startonce-") as folder:
            return kill(name, Path(folder))
    begun = time.perf_counter()
    subject = mutant.subject(path / "first.db")
    found = found_by(subject, mutant.clause)
    nearest = None if found is None else _shortest(subject, *found, mutant.clause)
    seconds = time.perf_counter() - begun
    subject.close()
    begun = time.perf_counter()
    seen = None if mutant.blind else _seen_by_the_machine(mutant, path / "second.db")
    return Killed(
        name,
        mutant.clause,
        found[0] if found else "",
        nearest,
        seconds,
        seen,
        time.perf_counter() - begun,
    )


def _shortest(subject: Subject, check: str, found: Divergence, clause: str) -> Divergence:
    if check == "probes":
        subject.unspoil()
        again = follow(subject, found.actions, found.start)
        if again is None or clause not in again.clauses:
            return found  # one operation on a schema that was spoiled, or beyond what the model limits
    return shortest(subject, found, clause)


def _seen_by_the_machine(mutant: Mutant, path: Path) -> bool:
    subject = mutant.subject(path)
    _, divergence = machine.drive(subject, Ledger(), examples=EXAMPLES, shrink=False, steering=machine.DEEP)
    subject.close()
    return divergence is not None
