"""`startonce conform`: runs the check on an adapter, and saves what explains its divergences."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from startonce.draw.engine import render
from startonce.draw.lanes import lanes_source
from startonce.drawing_traces import divergence_lanes
from startonce.model.errors import StartOnceError, shown
from startonce.model.interleaving import Action, IllegalAction
from startonce.model.reservation import Database
from startonce.oracle import conform, interleave, tracefile
from startonce.oracle.check import WORK, Size
from startonce.oracle.explained import Saved, explained
from startonce.oracle.interleave import CHECK, divergence_of
from startonce.oracle.jsonlines import facts_of
from startonce.oracle.ledger import Divergence
from startonce.oracle.lockstep import follow
from startonce.oracle.report import Report
from startonce.oracle.stage import Impossible, repeat
from startonce.oracle.subject import Subject
from startonce.oracle.vectors import vector_of
from startonce.oracle.wire import WireSubject

FULL = Size(scopes=1, examples=300, steps=50)
QUICK = Size(scopes=1, examples=60, steps=50)

Progress = Callable[[int], None]


class Asked(NamedTuple):
    """What a user asks for: the adapter, by its command or its address, and how much is done with it."""

    command: tuple[str, ...]
    attach: str | None = None
    timeout: float = 10.0
    quick: bool = False
    seed: int = 1

    @property
    def size(self) -> Size:
        """How much is walked, and how long the machine runs."""
        return QUICK if self.quick else FULL

    @property
    def schedules(self) -> int:
        """How many schedules of each scenario are run."""
        return conform.FEW if self.quick else interleave.LIMIT


class Conformed(NamedTuple):
    """The report on an adapter, and what the adapter said of itself."""

    report: Report
    facts: Mapping[str, Any]


def opened(asked: Asked) -> WireSubject:
    """Start the adapter, or connect to it. Raises `WireError`."""
    if asked.attach is not None:
        return WireSubject.attach(asked.attach, asked.timeout)
    return WireSubject.start(asked.command, asked.timeout)


def run(asked: Asked, progress: Progress) -> Conformed:
    """Hold the adapter against the model. Raises `WireError` where it misbehaves, `SubjectBroken`."""
    subject = opened(asked)
    try:
        report = conform.conform(subject, asked.size, asked.seed, asked.schedules, progress)
    finally:
        subject.close()
    return Conformed(report, facts_of(subject.about))


def work_of(asked: Asked) -> int:
    """Return about how many steps a run takes, to measure progress by."""
    return WORK["whole operations"] + WORK["statements"] + asked.size.examples * asked.size.steps


def explanations(found: Conformed, asked: Asked, folder: Path) -> dict[str, list[str]]:
    """Save each divergence as a trace, a picture and a vector; give the lines that explain it, by clause.

    One divergence can break several clauses: it is explained under the first.
    """
    told: dict[tuple[Any, ...], str] = {}
    lines: dict[str, list[str]] = {}
    for verdict in found.report.of("violated"):
        divergence = verdict.divergence
        assert divergence is not None
        first = told.setdefault((divergence.actions, divergence.start), verdict.clause)
        if first != verdict.clause:
            lines[verdict.clause] = [f"{verdict.clause} violated   by the same steps as {first}"]
            continue
        saved = save(verdict.clause, divergence, found.report.subject, asked, folder)
        lines[verdict.clause] = explained(verdict.clause, divergence, saved=saved)
    return lines


def save(clause: str, divergence: Divergence, subject: str, asked: Asked, folder: Path) -> Saved:
    """Write what explains a divergence into a folder: a trace, and a picture and a vector."""
    folder.mkdir(parents=True, exist_ok=True)
    trace = folder / f"{clause}.trace.json"
    trace.write_text(tracefile.to_text(divergence, subject), "utf-8")
    picture, vector = folder / f"{clause}.svg", folder / f"{clause}.vector.json"
    with suppress(ValueError):  # a spoiled schema, or more than the model limits
        vector.write_text(json.dumps(vector_of(divergence), indent=1, default=shown) + "\n", "utf-8")
    with suppress(StartOnceError):
        picture.write_bytes(render(lanes_source(divergence_lanes(divergence)), "svg"))
    adapter = ("--attach", asked.attach) if asked.attach else ("--", *asked.command)
    drawn, pasted = (str(path) if path.exists() else "" for path in (picture, vector))
    return Saved(str(trace), drawn, pasted, adapter)


def again(subject: Subject, start: Database, actions: tuple[Action, ...], check: str) -> Divergence | None:
    """Take the actions of a trace again, as the check did that found it. Raises `IllegalAction`."""
    if not check.startswith(CHECK):
        return follow(subject, actions, start, "replay")
    timeless = isinstance(subject, WireSubject) and "clock" not in subject.about.capabilities
    if isinstance(subject, WireSubject):
        subject.own_steps = True
    try:
        seen = repeat(subject, start, actions, timeless=timeless)
    except Impossible as error:
        raise IllegalAction(str(error)) from error
    return None if seen.finding.legal else divergence_of(CHECK, start, actions, seen)
