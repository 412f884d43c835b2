"""The whole check of a foreign implementation: everything that its capabilities allow.

The walks and the machine of `check.py`; where its callers can be held between statements, every
interleaving of *its* statements, of two and three callers; where they cannot, real races. What its
capabilities leave out is not checked, and the report says which capability is missing.
"""

import time
from collections.abc import Callable

from startonce.oracle import interleave
from startonce.oracle.check import Part, Size, conclude, first_part
from startonce.oracle.edges import Walked
from startonce.oracle.ledger import Ledger
from startonce.oracle.report import Report
from startonce.oracle.reports.held import walk_reported
from startonce.oracle.scenarios import scenarios
from startonce.oracle.subject import STEPPING
from startonce.oracle.wire import OWN_STEPS, WireSubject

Progress = Callable[[int], None]

FEW = 10
"""Schedules of each scenario, those with the fewest preemptions first, where it has to be quick."""

MISSING = {
    "stepping": ("RSV-5", "CLM-6", "LCK-5"),
    "faults": ("CLM-6", "LCK-5"),
    "probes": ("RSV-7",),
    "starts": ("STA-2", "STA-4", "STA-5", "STA-6", "STA-7", "STA-9", "STA-10", "STA-11"),
}
"""Clauses that nothing can evaluate without a capability."""


def conform(
    subject: WireSubject,
    size: Size,
    seed: int,
    schedules: int = interleave.LIMIT,
    progress: Progress = lambda done: None,
) -> Report:
    """Hold an adapter against the model. Raises `WireError` where it misbehaves, `SubjectBroken`."""
    begun = time.perf_counter()
    parts = [
        first_part(subject, size, seed, progress),
        reported(subject),
        between(subject, schedules, progress),
    ]
    able = subject.about.capabilities - {"starts"}  # whole starts are not asked for yet, by whomever
    for capability, clauses in MISSING.items():
        if capability not in able:
            parts[-1].ledger.not_checked(clauses, _why(capability))
    return conclude(subject, parts, seed, begun)


def _why(capability: str) -> str:
    if capability == "starts":
        return "whole starts are not driven over the wire yet: see `startonce explore`"
    return f"the adapter has no capability {capability!r}"


def reported(subject: WireSubject) -> Part:
    """Play the public bug reports again, as far as the adapter can."""
    ledger = Ledger()
    return Part(tuple(walk_reported(subject, ledger)), None, ledger)


def between(subject: WireSubject, schedules: int, progress: Progress) -> Part:
    """Run callers against each other: in every order of their statements, or really at once."""
    ledger = Ledger()
    chosen = scenarios(subject.capabilities, bare=subject.absent)
    timeless = "clock" not in subject.about.capabilities
    if subject.capabilities & {STEPPING, OWN_STEPS}:
        subject.own_steps = True
        done = interleave.explore(
            subject, ledger, chosen, limit=schedules, timeless=timeless, progress=progress
        )
        subject.own_steps = False
        how = "interleavings"
    else:
        raced = interleave.race(subject, ledger, chosen, timeless=timeless)
        if raced is None:
            reason = "neither stepping nor race: no two callers were run against each other"
            ledger.not_checked(("CLM-2",), reason)
            return Part((), None, ledger)
        done, how = raced, "races"
    cut = f"run, {done.cut} scenarios cut short" if done.cut else "run"
    walked = Walked(
        how, "2 and 3 callers", done.scenarios, done.executed, done.preempted, done.executed, cut
    )
    return Part((walked,), None, ledger)
