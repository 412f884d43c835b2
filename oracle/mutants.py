"""The oracle is not blind: every broken implementation, and how each is killed.

A mutant of the store is killed when a check finds that it breaks the very clause that it names. The checks
are tried in the order in which a user meets them; the first one that sees it is named, and the divergence
is then searched again for the shortest trace there is. What the machine sees it must see alone, too.

A mutant of the callers is killed by exploration: the shortest trace to harm is searched on the model, and
performed by the broken starts over a real database, where the harm must come about.
"""

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from startonce import rehearsal
from startonce.checker.starts import columns
from startonce.model.properties import properties
from startonce.oracle import machine
from startonce.oracle.broken import locks, reads, rows
from startonce.oracle.broken.callers import CALLERS, Undutiful
from startonce.oracle.broken.changes import Mutant
from startonce.oracle.broken.consequences import CONSEQUENCES
from startonce.oracle.edges import walk, walk_statements
from startonce.oracle.faulty import walk_faults
from startonce.oracle.interleave import explore
from startonce.oracle.ledger import Divergence, Ledger
from startonce.oracle.lockstep import follow
from startonce.oracle.probes import probe
from startonce.oracle.report import interleaving
from startonce.oracle.scenarios import scenarios
from startonce.oracle.scopes import STATEMENTS
from startonce.oracle.shortest import shortest
from startonce.oracle.subject import Subject

STORES: Mapping[str, Mutant] = {**rows.MUTANTS, **reads.MUTANTS, **locks.MUTANTS}
STARTS: Mapping[str, Undutiful] = {**CALLERS, **CONSEQUENCES}
MUTANTS: Mapping[str, Mutant | Undutiful] = {**STORES, **STARTS}

NO_STARTS = "the machine drives operations, not starts"

SCHEDULES = 50
"""Schedules of each scenario that are tried on a mutant whose statements are its own."""

EXAMPLES = 500
"""Examples of the machine that one mutant is given, of 50 steps each."""


class Killed(NamedTuple):
    """How a mutant ended: by which check, on which clauses, with how many steps, after how many seconds.

    `check` is empty where it survived. `clauses` are all that the last step of the shortest trace breaks,
    its own one first; `lines` show that trace. `machine` says whether the machine alone saw it, in
    `machine_seconds`, or is None where it cannot, for the reason `blind`.
    """

    name: str
    clauses: tuple[str, ...]
    check: str
    steps: int
    lines: tuple[str, ...]
    seconds: float
    machine: bool | None
    machine_seconds: float
    blind: str

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


def found_by(mutant: Mutant, subject: Subject, held: Subject) -> tuple[str, Divergence] | None:
    """Return the first check that finds a mutant's clause broken, with what it found.

    `held` is the same mutant, with callers that can be held between statements of its own.
    """
    ledger = _Wanted()
    ledger.clause = mutant.clause
    try:
        check = "probes"
        probe(subject, ledger)
        check = "edges"
        walk(subject, ledger)
        walk_faults(subject, ledger)
        check = "statements"
        walk_statements(subject, ledger, STATEMENTS[:1])
        check = "interleavings"
        for scenario in scenarios(held.capabilities) if mutant.own else ():
            explore(held, ledger, [scenario], limit=SCHEDULES)
        check = "machine"
        machine.drive(subject, ledger, examples=EXAMPLES, steering=machine.DEEP)
    except _Found as found:
        return check, found.divergence
    return None


def kill(name: str, *, machine_too: bool = True) -> Killed:
    """Hold a mutant against the checks, on a database of its own."""
    mutant = MUTANTS[name]
    if isinstance(mutant, Undutiful):
        return _harm(name, mutant)
    with tempfile.TemporaryDirectory(prefix="startonce-") as folder:
        begun = time.perf_counter()
        subject = mutant.subject(Path(folder) / "first.db")
        held = mutant.subject(Path(folder) / "held.db", held=True)
        found = found_by(mutant, subject, held)
        nearest = None if found is None else _shortest(subject, *found, mutant.clause)
        subject.close()
        held.close()
        seconds = time.perf_counter() - begun
        begun = time.perf_counter()
        seen = None
        if machine_too and not mutant.blind:
            seen = _seen_by_the_machine(mutant, Path(folder) / "second.db")
        alone = time.perf_counter() - begun
    if found is None or nearest is None:
        return Killed(name, (mutant.clause,), "", 0, (), seconds, seen, alone, mutant.blind)
    lines = tuple(line.rstrip() for line in interleaving(nearest))
    clauses = tuple(dict.fromkeys((mutant.clause, *nearest.clauses)))
    return Killed(name, clauses, found[0], len(nearest.actions), lines, seconds, seen, alone, mutant.blind)


def _harm(name: str, mutant: Undutiful) -> Killed:
    harm = rehearsal.kill(mutant)
    broken = properties(mutant.scope)[mutant.breaks].clauses if mutant.breaks else ()
    clauses = tuple(dict.fromkeys((mutant.clause, *broken)))
    lines = columns(harm.trace)
    if not mutant.breaks:
        lines.append(f"     {harm.rehearsed.parted}")
    return Killed(
        name,
        clauses,
        "exploration" if harm.came_about else "",
        len(harm.trace),
        tuple(line.rstrip() for line in lines),
        harm.seconds,
        None,
        0.0,
        NO_STARTS,
    )


def _shortest(subject: Subject, check: str, found: Divergence, clause: str) -> Divergence:
    if check == "interleavings":
        return found  # the shortest beginning that repeats, of the schedule with the fewest preemptions
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
