"""The traces of the reports, held against any subject: as far as its capabilities let them be played."""

from collections.abc import Iterator

from startonce.model.interleaving import Action
from startonce.model.operations import CREATE, Call, Fault
from startonce.model.reservation import EMPTY, NOTHING, Database
from startonce.oracle.edges import Walked
from startonce.oracle.faulty import taken
from startonce.oracle.ledger import Ledger
from startonce.oracle.reported import REPORTED
from startonce.oracle.reports.kinds import Reported, Trace
from startonce.oracle.reports.notation import parsed
from startonce.oracle.reports.play import OnModel, Unable, play
from startonce.oracle.subject import DENY, FAULTS, REPLICA, STEPPING, Subject

CHECK = "reported"


def traces() -> Iterator[tuple[Reported, Database, tuple[Action, ...]]]:
    """Give the traces that the model can follow: those of no foreign driver and no spoiled schema."""
    for one in REPORTED.values():
        for scene in one.scenes:
            if not isinstance(scene, Trace) or scene.driver:
                continue
            model = OnModel()
            try:
                for _ in play(scene.text, model):
                    pass
            except Unable:
                continue
            bare = parsed(scene.text)[0].do != "table"
            actions = tuple(action for action in model.actions if action.statement not in CREATE)
            # How a schema is created is an adapter's own: the trace begins with it where it comes to that.
            start = NOTHING if bare and len(actions) == len(model.actions) else EMPTY
            yield one, start, actions


def whole(actions: tuple[Action, ...]) -> tuple[Action, ...] | None:
    """Return the operations of a trace; None where one is interrupted, or something befalls it."""
    found: list[Action] = []
    for place, action in enumerate(actions):
        before = actions[place - 1] if place else None
        goes_on = bool(found) and before is not None and before[:4] == action[:4]
        if action.do not in ("run", "deny", "allow") or action.fault is not Fault.NONE:
            return None
        first = not goes_on or action.now != found[-1].now
        if first:
            found.append(action._replace(statement=""))
    begun = [(action.caller, action.now) for action in found if action.do == "run"]
    return tuple(found) if len(begun) == len(set(begun)) else None


def walk_reported(subject: Subject, ledger: Ledger) -> list[Walked]:
    """Play every trace that the subject can take; what it cannot is counted as not executed."""
    able = subject.capabilities
    needs = {"pin": REPLICA, "unpin": REPLICA, "deny": DENY, "allow": DENY}
    every = executed = 0
    for _, start, actions in traces():
        every += 1
        chosen = actions if STEPPING in able else whole(actions)
        if chosen is None or (start == NOTHING and not subject.absent):
            continue
        used = {action.operation for action in chosen if action.do == "run"}
        used |= {needs[action.do] for action in chosen if action.do in needs}
        used |= {FAULTS for action in chosen if action.fault is not Fault.NONE or action.do == "land"}
        calls = (Call(a.operation, a.args, a.now) for a in chosen if a.do == "run")
        if used <= able and all(map(subject.carries, calls)):
            executed += taken(subject, ledger, start, chosen, CHECK)
    return [Walked(CHECK, "public bug reports", every, every, every, executed)]
