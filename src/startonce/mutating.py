"""`startonce mutants`: every broken implementation is killed, two at a time, and the table of it."""

import multiprocessing
import signal
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from startonce.oracle.mutants import MUTANTS, Killed, kill

NAMES = tuple(MUTANTS)

HEAD = f"{'mutant':<38} {'clause':<6} {'killed by':<11} {'steps':>5} {'s':>5}  machine alone"


def kills(names: Sequence[str]) -> Iterator[Killed]:
    """Kill some mutants, in processes of their own; they come in the order of their names here."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(2, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        yield from pool.imap(kill, names)


def line(found: Killed) -> str:
    """Return the row of one mutant."""
    alone = {True: f"{found.machine_seconds:5.2f} s", False: "SURVIVED", None: "cannot see it"}
    return (
        f"{found.name:<38} {found.clauses[0]:<6} {found.check or 'SURVIVED':<11} {found.steps:>5} "
        f"{found.seconds:5.2f}  {alone[found.machine]}"
    )


def summary(found: Sequence[Killed]) -> list[str]:
    """Return the closing lines: how many were killed, how fast, and by what."""
    killed = [one for one in found if not one.survived]
    alone = sum(one.machine is True for one in found)
    blind = [one for one in found if one.machine is None]
    median = statistics.median([one.seconds for one in found] or [0.0])
    lines = [
        "",
        f"{len(found)} mutants: {len(killed)} killed, {len(found) - len(killed)} survived; "
        f"median {median:.2f} s to the shortest trace",
        f"the machine alone kills {alone}, and cannot see {len(blind)}:",
    ]
    reasons: dict[str, list[str]] = {}
    for one in blind:
        reasons.setdefault(one.blind, []).append(one.name)
    return lines + [f"  {reason}: {', '.join(names)}" for reason, names in reasons.items()]


def to_json(found: Sequence[Killed]) -> dict[str, Any]:
    """Return the table as plain JSON values."""
    return {
        "startonce": "mutants",
        "version": 1,
        "mutants": [
            {
                "name": one.name,
                "clauses": list(one.clauses),
                "mistake": MUTANTS[one.name].mistake,
                "seen": list(MUTANTS[one.name].seen),
                "killed_by": one.check or None,
                "steps": one.steps,
                "trace": list(one.lines),
                "seconds": round(one.seconds, 2),
                "machine_alone": one.machine,
                "machine_seconds": round(one.machine_seconds, 2),
                "blind": one.blind or None,
            }
            for one in found
        ],
    }
