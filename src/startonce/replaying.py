"""A public bug report is played again: on our own implementation, or on a broken one, which must fail."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from startonce.checker.starts import HAZARDS, Shown, show
from startonce.model.world import Event, Scope
from startonce.oracle.broken import callers
from startonce.oracle.broken.callers import CALLERS, DUTIFUL, Undutiful
from startonce.oracle.broken.changes import Mutant
from startonce.oracle.ledger import Ledger
from startonce.oracle.probes import probe
from startonce.oracle.reported import REPORTED
from startonce.oracle.reports.kinds import Hazard, Probe, Reported, Scene, Scripted, Starts, Trace
from startonce.oracle.reports.notation import events, scope_of, world_text
from startonce.oracle.reports.play import OnSubject, Unable, difference
from startonce.own import SqlSubject
from startonce.rehearsal import Rehearsed, along, rehearse
from startonce.scripted import SCRIPTS


def run(id: str) -> bool:
    """Play every scene of a report on our own implementation; say whether each went as it must."""
    return not problems(id)


def problems(id: str) -> list[str]:
    """Play every scene of a report on our own implementation; say what went wrong.

    Scenes of a foreign driver are none of them: see `is_ours`. Raises `KeyError` for no report.
    """
    one = REPORTED[id]
    with TemporaryDirectory(prefix="startonce-") as folder:
        found = [_problem(one, scene, Path(folder) / str(n)) for n, scene in enumerate(one.scenes)]
    return [problem for problem in found if problem]


def is_ours(scene: Scene) -> bool:
    """Say whether a scene can be played on our own implementation: a foreign driver is for the tests."""
    return not (isinstance(scene, Trace) and scene.driver)


def _problem(report: Reported, scene: Scene, folder: Path) -> str:
    folder.mkdir()
    match scene:
        case Trace() if is_ours(scene):
            return _in_memory(scene) or on(SqlSubject(folder / "app.db"), scene)
        case Trace():
            return ""
        case Starts():
            return performed(scene)
        case Hazard(id):
            return kept_off(id)
        case Probe(clause):
            ledger = probed(SqlSubject(folder / "app.db"))
            if clause in ledger.divergences:
                return f"the probes see {clause} violated"
            return "" if ledger.evaluated[clause] else f"nothing evaluated {clause}"
        case Scripted():
            return SCRIPTS[report.id](folder)


def on(subject: SqlSubject, trace: Trace) -> str:
    """Play a trace on a subject, and close it; say in what it first differs. Raises `Unable`."""
    try:
        return difference(trace.text, OnSubject(subject))
    finally:
        subject.close()


def _in_memory(trace: Trace) -> str:
    try:
        return on(SqlSubject(), trace)
    except Unable:  # in memory nothing stays behind: it is played on the file
        return ""


def probed(subject: SqlSubject) -> Ledger:
    """Send all probes to a subject, and close it; give what they evaluated."""
    ledger = Ledger()
    probe(subject, ledger)
    subject.close()
    return ledger


# --- whole starts -----------------------------------------------------------------------------------------


class Performance(NamedTuple):
    """A trace of starts, and how real starts performed it."""

    trace: tuple[Event, ...]
    scope: Scope
    done: Rehearsed

    @property
    def broken(self) -> dict[str, int]:
        """Say which properties fell, and at which step."""
        judged = self.done.judged(self.scope)
        return {name: one.broken_at for name, one in judged.items() if one.broken_at is not None}


def perform(scene: Starts | Hazard, starts: callers.Starts) -> Performance:
    """Perform a trace of starts, or the shortest one to a hazard under the durable lock."""
    if isinstance(scene, Hazard):
        shown = under(scene.id, durable=True)
        assert shown is not None, f"{scene.id} does not concern the durable lock"
        trace, scope = shown.trace, shown.hazard.scope
    else:
        (trace, _), scope = events(scene.text), scope_of(scene)
    return Performance(trace, scope, rehearse(starts, trace, scope))


def by_the_model(scene: Starts) -> Performance:
    """Give a trace of starts as the model goes along it. Raises `ValueError` where it cannot."""
    (trace, _), scope = events(scene.text), scope_of(scene)
    return Performance(trace, scope, Rehearsed(len(trace), "", trace, along(scope, trace)))


def performed(scene: Starts) -> str:
    """Perform a trace by our own starts; say what went wrong.

    Where a duty is dropped they must part from it, and do no harm; else they go along to the end.
    """
    ours = CALLERS["a transport that delivers twice"].starts if scene.twice else DUTIFUL
    performance = perform(scene, ours)
    if scene.breaks:
        return _harmless(performance)
    there = world_text(performance.done.worlds[-1])
    if performance.done.parted or there != events(scene.text)[1]:
        return performance.done.parted or f"in the end there is {there}"
    also = performance.broken.keys() - by_the_model(scene).broken.keys()
    return f"{', '.join(sorted(also))} fell" if also else ""


def _harmless(performance: Performance) -> str:
    if performance.broken:
        return f"{', '.join(performance.broken)} fell"
    return "" if performance.done.parted else "our own starts went along to the harm"


@cache
def under(id: str, *, durable: bool) -> Shown | None:
    """Search the shortest trace to a hazard under one lock; None where it does not concern that lock."""
    return show(next(one for one in HAZARDS if one.id == id), durable)


def kept_off(id: str) -> str:
    """Perform a hazard by our own starts; say what went wrong.

    They must not come to it, unless it is by design: then they must.
    """
    for durable in (False, True):
        shown = under(id, durable=durable)
        if shown is not None and not shown.as_documented:
            return f"{id} is not as documented"
    performance = perform(Hazard(id), DUTIFUL)
    done, seen = performance.done, next(one for one in HAZARDS if one.id == id).seen
    if seen is None:
        return _harmless(performance)
    came_about = not done.parted and seen(done.worlds[-2], done.events[-1], done.worlds[-1])
    return "" if came_about else done.parted or f"{id} did not come about"


# --- broken implementations -------------------------------------------------------------------------------


def caught(mutant: Mutant | Undutiful, report: Reported) -> str:
    """Play the scenes of a report on a broken implementation; say where one fails, nothing if none does."""
    with TemporaryDirectory(prefix="startonce-") as folder:
        for number, scene in enumerate(report.scenes):
            if found := _caught(mutant, scene, Path(folder) / str(number)):
                return found
    return ""


def _caught(mutant: Mutant | Undutiful, scene: Scene, folder: Path) -> str:
    folder.mkdir()
    if isinstance(mutant, Undutiful):
        return _comes_to_harm(mutant, scene) if isinstance(scene, Starts | Hazard) else ""
    held = mutant._replace(own=False)  # whatever its statements are, its callers are held between them
    match scene:
        case Trace() if is_ours(scene):
            for path in (":memory:", folder / "app.db"):
                try:
                    found = on(held.subject(path), scene)
                except Unable:
                    continue
                if found:
                    return found
        case Probe(clause) if clause in probed(mutant.subject(folder / "app.db")).divergences:
            return f"the probes see {clause} violated"
    return ""


def _comes_to_harm(mutant: Undutiful, scene: Starts | Hazard) -> str:
    if isinstance(scene, Hazard):
        shown = under(scene.id, durable=True)
        breaks = shown.broken if shown is not None else ""
    else:
        breaks = scene.breaks
    performance = perform(scene, mutant.starts)
    broken, parted = performance.broken, performance.done.parted
    if breaks:
        return f"“{breaks}” falls at step {broken[breaks]}" if breaks in broken else ""
    falls = "".join(f"; “{name}” falls" for name in broken if name == mutant.breaks)
    return f"parts from it: {parted}{falls}" if parted else ""
