"""The whole check of a subject: walks, probes, the machine, and the shortest traces of what was found."""

import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import NamedTuple

from startonce.model.clauses import CLAUSES
from startonce.model.errors import StartOnceError, shown
from startonce.model.reservation import EMPTY, NOTHING, Reservation, State
from startonce.oracle import machine
from startonce.oracle.edges import Walked, walk, walk_statements
from startonce.oracle.faulty import walk_faults
from startonce.oracle.interleave import CHECK, RACES
from startonce.oracle.ledger import Divergence, Ledger
from startonce.oracle.lockstep import follow
from startonce.oracle.probes import probe
from startonce.oracle.report import MachineRun, Report
from startonce.oracle.scopes import STATEMENTS
from startonce.oracle.shortest import shortest
from startonce.oracle.subject import STEPPING, Subject

Progress = Callable[[int], None]


class Size(NamedTuple):
    """How much a check does: which statement scopes are walked, and how long the machine runs."""

    scopes: int
    examples: int
    steps: int


FULL = Size(scopes=2, examples=500, steps=50)
QUICK = Size(scopes=1, examples=60, steps=50)

NOT_REPEATED = ", not repeated by its steps alone"
"""Said of a divergence that its own steps do not lead to from where they begin."""

WORK = {"whole operations": 25_888, "statements": 46_594, "more statements": 320_280}
"""Edges of each part, to measure progress by."""


class Part(NamedTuple):
    """What one part of a check found; parts can run in processes of their own."""

    walked: tuple[Walked, ...]
    machine: MachineRun | None
    ledger: Ledger


class SubjectBroken(StartOnceError):
    """A subject that does not show what was put into it: nothing can be said of its operations."""


def try_out(subject: Subject) -> None:
    """Put databases into a subject and see that it shows them. Raises `SubjectBroken`."""
    row = Reservation("k1", "r1", State.STARTED, 1, 2)
    nothing = NOTHING if subject.absent else EMPTY
    for db in (nothing, EMPTY, EMPTY._replace(rows=(row,)), nothing):
        subject.put(db)
        shown_db = subject.dump()
        rows = shown_db.rows
        odd = rows is not None and not all(isinstance(one, Reservation) for one in rows)
        if rows != db.rows or odd:
            raise SubjectBroken(f"after put(rows={db.rows}) dump() shows rows={shown(rows, 200)}")


def first_part(subject: Subject, size: Size, seed: int, progress: Progress) -> Part:
    """Walk whole operations and the smaller statement scope, probe, and run the machine."""
    try_out(subject)
    ledger = Ledger()
    walked = walk(subject, ledger, progress)
    walked += walk_faults(subject, ledger)
    walked += walk_statements(subject, ledger, STATEMENTS[:1], progress)
    probe(subject, ledger)
    begun = time.perf_counter()
    tally, _ = machine.drive(
        subject, ledger, examples=size.examples, steps=size.steps, seed_=seed, progress=progress
    )
    took = time.perf_counter() - begun
    faults = tally.faults / max(1, tally.steps)
    run = MachineRun(tally.examples, tally.steps, faults, tally.share(), tally.steps / took)
    return Part(tuple(walked), run, ledger)


def second_part(subject: Subject, size: Size, progress: Progress) -> Part:
    """Walk the larger statement scope."""
    ledger = Ledger()
    walked = walk_statements(subject, ledger, STATEMENTS[1 : size.scopes], progress)
    return Part(tuple(walked), None, ledger)


def everything(
    subject: Subject,
    size: Size = FULL,
    seed: int = 1,
    progress: Progress = lambda done: None,
    more: Sequence[Part] = (),
) -> Report:
    """Run a whole check on one subject, in this process; `more` are parts that ran elsewhere."""
    begun = time.perf_counter()
    parts = [first_part(subject, size, seed, progress), second_part(subject, size, progress), *more]
    return conclude(subject, parts, seed, begun)


def conclude(subject: Subject, parts: Sequence[Part], seed: int, begun: float) -> Report:
    """Join the parts of a check, with every divergence as the shortest trace to it."""
    ledger = Ledger()
    for part in parts:
        ledger.merge(part.ledger)
    _shorten(subject, ledger)
    _explain_unchecked(ledger, subject)
    return Report(
        subject.name,
        f"Hypothesis {version('hypothesis')} · Python {platform.python_version()}",
        seed,
        tuple(walked for part in parts for walked in part.walked),
        parts[0].machine,
        tuple(ledger.verdicts()),
        time.perf_counter() - begun,
    )


def _shorten(subject: Subject, ledger: Ledger) -> None:
    """Re-derive every divergence as the shortest trace that breaks the same clause."""
    for clause, found in list(ledger.divergences.items()):
        if found.check.startswith((CHECK, RACES)):
            continue  # its statements are its own, and it is as short as the schedules tried
        if found.check == "probes" and not _follows(subject, found, clause):
            continue  # no trace leads there: its schema was spoiled, or it is beyond what the model limits
        nearest = shortest(subject, found, clause)._replace(clauses=(clause,))
        if follow(subject, nearest.actions, nearest.start) is None:
            nearest = nearest._replace(check=f"{found.check}{NOT_REPEATED}")
        ledger.divergences[clause] = nearest


def _follows(subject: Subject, found: Divergence, clause: str) -> bool:
    again = follow(subject, found.actions, found.start)
    return again is not None and clause in again.clauses


def _explain_unchecked(ledger: Ledger, subject: Subject) -> None:
    """Say of every clause that nothing evaluated why that is so."""
    ledger.not_applicable.update(subject.not_applicable)
    duties = [c.id for c in CLAUSES.values() if c.kind == "duty"]
    rest = [c.id for c in CLAUSES.values() if c.kind == "consequence"]
    ledger.not_checked(duties, "a duty of callers: `startonce explore --without` shows what it prevents")
    ledger.not_checked(rest, "of whole starts: nothing of it is evaluated here, see `startonce explore`")
    if STEPPING not in subject.capabilities:
        ledger.not_checked(CLAUSES, "no stepping: callers cannot be held between statements")
