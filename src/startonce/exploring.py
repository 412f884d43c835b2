"""`startonce explore`: starting runs, every interleaving within a scope."""

import json
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from startonce import memory
from startonce.checker.starts import (
    DUTIES,
    HAZARDS,
    SHOWN_BY,
    Result,
    Shown,
    columns,
    explored,
    pairs,
    show,
    witnesses,
)
from startonce.model.properties import properties
from startonce.model.world import Budget, Scope

HAZARD_IDS = tuple(hazard.id for hazard in HAZARDS)

SMALL = 100_000
"""States up to which what sometimes comes about is searched too."""


class Exploration(NamedTuple):
    """One explored scope and how long it took, in seconds."""

    scope: Scope
    result: Result
    seconds: float

    @property
    def broken(self) -> list[str]:
        """Name the properties that a trace breaks."""
        return [name for name, found in self.result.findings.items() if found.trace is not None]

    @property
    def empty(self) -> list[str]:
        """Name the properties that were never evaluated: they hold emptily, which is no holding."""
        return [
            name
            for name, found in self.result.findings.items()
            if found.trace is None and not found.evaluated
        ]


def run(scope: Scope, most: int) -> Exploration:
    """Explore a scope within an amount of memory in bytes."""
    begun = time.perf_counter()
    result = explored(scope, enough=lambda states: memory.peak() > most)
    return Exploration(scope, result, time.perf_counter() - begun)


def every_pair(lock: str, callers: int, attempts: int, most: int) -> list[Exploration]:
    """Explore every pair of faults under the locks that are asked for."""
    scopes = [scope for durable in durables(lock) for scope in pairs(durable, callers, attempts)]
    return [run(scope, most) for scope in scopes]


def durables(lock: str) -> tuple[bool, ...]:
    """Return whether the locks that a word names are durable."""
    return {"durable": (True,), "transient": (False,), "both": (True, False)}[lock]


def hazards() -> list[Shown]:
    """Show every hazard under every lock that it concerns."""
    return [
        found
        for hazard in HAZARDS
        for durable in (False, True)
        if (found := show(hazard, durable)) is not None
    ]


def report(one: Exploration) -> list[str]:
    """Return an exploration as lines."""
    scope, result = one.scope, one.result
    faults = [f"{n} {kind}" for kind, n in scope.budget._asdict().items() if n]
    lines = [
        f"{'durable' if scope.durable else 'transient'} lock, {scope.callers} callers, {scope.keys} keys, "
        f"{scope.attempts} attempts",
        f"faults     {', '.join(faults) or 'none'}",
    ]
    if scope.without:
        lines.append(f"without    {', '.join(sorted(scope.without))}")
    lines += [
        f"explored   {result.states:,} states, {result.transitions:,} transitions, depth {result.depth}, "
        f"{'whole' if result.complete else 'NOT WHOLE: the memory given is used up'}",
        f"took       {one.seconds:.1f} s, {memory.peak() / 2**20:,.0f} MB",
        "",
    ]
    for name, found in result.findings.items():
        status = "violated" if found.trace is not None else _unbroken(found.evaluated, result.complete)
        clauses = ", ".join(properties(scope)[name].clauses)
        lines.append(f"{status:<11} on {found.evaluated:>9,} steps  {name}  ({clauses})")
    for name in one.broken:
        trace = result.findings[name].trace or ()
        lines += ["", f"{name}: violated, the shortest trace has {len(trace)} steps"]
        lines += columns(trace)
    if scope.without and not one.broken:
        lines += ["", "nothing in this scope can break what was dropped; these show it:"]
        lines += [
            f"  startonce explore --without {duty} {SHOWN_BY[duty]}" for duty in sorted(scope.without)
        ]
    if result.states <= SMALL:
        seen = witnesses(scope)
        reached = [f"{name} ({len(trace)})" for name, trace in seen.items() if trace is not None]
        lines += ["", "sometimes, with the steps of a shortest way:", *_wrapped(", ".join(reached))]
        never = [name for name, trace in seen.items() if trace is None]
        if never:
            lines += ["not in this scope:", *_wrapped(", ".join(never))]
    unspent = [kind for kind, n in scope.budget._asdict().items() if not n]
    lines += ["", f"not covered: more of each, and {', '.join(unspent) or 'further faults'}", ""]
    return lines


def _wrapped(text: str) -> list[str]:
    return [f"  {line}" for line in textwrap.wrap(text, 76)]


def _unbroken(evaluated: int, complete: bool) -> str:
    if not evaluated:
        return "empty"
    return "holds" if complete else "not broken"


def hazard_report(found: Shown) -> list[str]:
    """Return a hazard under one lock as lines."""
    hazard = found.hazard
    lock = "durable" if found.durable else "transient"
    broken = f"breaks “{found.broken}”" if found.broken else "comes about"
    lines = [
        f"{hazard.id}  {hazard.sentence}",
        f"    {lock} lock: {broken} after {len(found.trace)} steps",
        f"    prevented by {hazard.prevented_by}",
    ]
    if found.durable and hazard.durable_keeps:
        lines.append(f"    “{hazard.durable_keeps}” holds all the same")
    if hazard.leaves:
        lines.append(f"    leaves {hazard.leaves}")
    if not found.as_documented:
        lines.append("    NOT AS DOCUMENTED")
    return [*lines, *columns(found.trace), ""]


def to_json(explorations: Sequence[Exploration]) -> str:
    """Return explorations as a JSON text."""
    return json.dumps(
        {"startonce": "explore", "version": 1, "scopes": [_json(one) for one in explorations]}, indent=1
    )


def _json(one: Exploration) -> dict[str, Any]:
    scope, result = one.scope, one.result
    return {
        "scope": {
            "callers": scope.callers,
            "keys": scope.keys,
            "attempts": scope.attempts,
            "lock": "durable" if scope.durable else "transient",
            "budget": scope.budget._asdict(),
            "without": sorted(scope.without),
        },
        "states": result.states,
        "transitions": result.transitions,
        "depth": result.depth,
        "complete": result.complete,
        "properties": {
            name: {
                "evaluated": found.evaluated,
                "trace": found.trace and [event._asdict() for event in found.trace],
            }
            for name, found in result.findings.items()
        },
    }


def scope_of(
    callers: int,
    keys: int,
    attempts: int,
    budget: dict[str, int],
    durable: bool,
    without: Sequence[str],
) -> Scope:
    """Return a scope. Raises `ValueError` with what would be valid."""
    for name, number, least in (
        ("callers", callers, 1),
        ("keys", keys, 1),
        ("attempts", attempts, 1),
        *((kind, number, 0) for kind, number in budget.items()),
    ):
        if not least <= number <= 9:
            raise ValueError(f"--{name} {number}: from {least} to 9")
    for duty in without:
        if duty not in DUTIES:
            raise ValueError(f"{duty} is no duty that can be dropped: {', '.join(DUTIES)}")
    if not durable and (budget.get("cancels") or budget.get("frees")):
        raise ValueError("cancel and free need a durable lock: --lock durable")
    return Scope(callers, keys, attempts, Budget(**budget), durable, frozenset(without))


def write(path: Path, explorations: Sequence[Exploration]) -> None:
    """Write explorations as a JSON file."""
    path.write_text(to_json(explorations) + "\n", "utf-8")
