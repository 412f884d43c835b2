"""Conformance vectors: traces with the model's answers, for whoever has no runner.

Rows, locks, answers and errors have the forms of the wire (`docs/oracle-protocol.md`), and a step is a
call of the wire with what must follow. `vector_traces.py` says which vectors there are, `python -m
startonce.vectors vectors` writes them to files, and `docs/vectors.md` says how they are run. A divergence
becomes a vector too, to be pasted into somebody's own tests.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from startonce.model.clauses import CLAUSES
from startonce.model.inputs import admissible
from startonce.model.interleaving import Action, IllegalAction, World, act, whole
from startonce.model.operations import PROGRAMS, Call, Fault, UnexpectedStatement
from startonce.model.predicates import GOES_ON, Step, judge, judge_trace
from startonce.model.reservation import Database
from startonce.oracle.covering import stepped
from startonce.oracle.history import undated
from startonce.oracle.interleave import RACES
from startonce.oracle.ledger import Divergence
from startonce.oracle.situations import situation
from startonce.oracle.wire import requests
from startonce.oracle.wire.serve import ended
from startonce.oracle.wire.words import CORE, FENCE, LOCKS

VERSION = 1
ABSENT = "absent"
"""Needed by a vector that begins without tables."""

Operation = tuple[Any, ...]
"""The name of an operation, and its arguments."""


class Vector(NamedTuple):
    """A trace of whole operations from a database.

    `needs` are the operations, and `absent`, without which it says nothing; every other operation in it
    can be left out by putting the database that follows it. `also` are clauses that the trace as a whole
    shows, and no step alone.
    """

    id: str
    title: str
    start: Database
    steps: tuple[Step, ...]
    needs: frozenset[str] = CORE
    also: tuple[str, ...] = ()


def script(start: Database, operations: Iterable[Operation], clock: Iterable[int] = ()) -> tuple[Step, ...]:
    """Return the steps of operations one after another; the clock counts from 1 or reads as it is told."""
    steps: list[Step] = []
    times = iter(clock)
    for operation, *args in operations:
        before = steps[-1].after if steps else start
        steps.append(stepped(before, operation, tuple(args), next(times, len(steps) + 1)))
    return tuple(steps)


# --- as JSON -----------------------------------------------------------------------------------------


def to_json(vector: Vector) -> dict[str, Any]:
    """Return a vector as JSON values."""
    steps = _steps(vector.start, vector.steps, vector.also)
    return _vector(vector.id, vector.title, _named(vector.needs), vector.start, steps)


def text(vectors: Iterable[dict[str, Any]]) -> str:
    """Return vectors as the text of a file, a step a line."""
    lines = [
        "{",
        '"$schema": "schema.json",',
        f'"startonce": "vectors", "version": {VERSION},',
        '"vectors": [',
    ]
    every = list(vectors)
    for vector in every:
        rest = ",\n".join(
            f"{json.dumps(name)}: {json.dumps(vector[name])}" for name in vector if name != "steps"
        )
        steps = ",\n".join(f" {json.dumps(step)}" for step in vector["steps"])
        end = "" if vector is every[-1] else ","
        lines += [f'{{{rest},\n"steps": [', steps, f"]}}{end}"]
    return "\n".join([*lines, "]}"]) + "\n"


def _vector(
    id: str, title: str, needs: list[str], start: Database, steps: list[dict[str, Any]]
) -> dict[str, Any]:
    clauses = _in_order(clause for step in steps for clause in step.get("clauses", ()))
    found = {"id": id, "title": title, "clauses": clauses, "needs": needs}
    return {**found, "start": _database(start, LOCKS | FENCE), "steps": steps}


def _steps(start: Database, steps: Sequence[Step], also: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Return the steps of whole operations, with what else shows in each of them."""
    used = _used(start, (step.call.operation for step in steps))
    return [
        {
            **_called(step),
            **_follows(step, used),
            "case": situation(step.before, step.call),
            "clauses": _in_order((*clauses, *also)),
        }
        for step, clauses in zip(steps, _clauses(steps), strict=True)
    ]


def _called(step: Step) -> dict[str, Any]:
    asked = json.loads(requests.call("call", step.call, None))
    return {name: asked[name] for name in ("operation", "args", "now")}


def _follows(step: Step, used: frozenset[str]) -> dict[str, Any]:
    """Return what must follow a step: the answer, if its operation has ended, and the database."""
    answer = {"goes_on": True} if step.answer == GOES_ON else ended(step.answer)
    return {**answer, **_database(step.after, used)}


def _database(db: Database, used: frozenset[str]) -> dict[str, Any]:
    """Return a database as the wire dumps it for who has these operations."""
    found: dict[str, Any] = {"rows": db.rows}
    if used & LOCKS:
        found["locks"] = db.locks
    if used & FENCE:
        found["fence"] = db.fence_closed
    return found


def _used(start: Database, operations: Iterable[str]) -> frozenset[str]:
    """Return operations, and those on locks and the fence where the database has something of these."""
    beside = (LOCKS if start.locks else set()) | (FENCE if start.fence_closed is not None else set())
    return frozenset(operations) | beside


def _clauses(steps: Sequence[Step]) -> list[tuple[str, ...]]:
    """Return for each step the clauses that say something about it, or about the trace that it ends."""
    over_all = [(clause, number) for clause, _, number in judge_trace(steps)]
    return [
        (*_alone(step), *(clause for clause, at in over_all if at == number))
        for number, step in enumerate(steps)
    ]


def _alone(step: Step) -> tuple[str, ...]:
    if not admissible(step.call):
        return ("IN-1",)  # the others speak of calls that reach the database
    clauses = tuple(clause for clause, _ in judge(step))
    if not isinstance(step.answer, bool):
        return clauses
    # There is one wrong answer: what that would break is said of this step too.
    contrary = judge(step._replace(answer=not step.answer))
    return (*clauses, *(clause for clause, kept in contrary if not kept))


def _in_order(clauses: Iterable[str]) -> list[str]:
    """Return clauses in the order of the specification, each once."""
    some = set(clauses)
    return [clause for clause in CLAUSES if clause in some]


def _named(needs: Iterable[str]) -> list[str]:
    """Return operations in the order of the model, and behind them what else is needed."""
    some = set(needs)
    return [name for name in (*PROGRAMS, ABSENT) if name in some]


# --- a divergence ------------------------------------------------------------------------------------

TOLD_OVER_ALL = "…"
"""In place of what is expected where a clause over several steps was broken, and no answer was wrong."""


def vector_of(divergence: Divergence) -> dict[str, Any]:
    """Return a divergence as a vector of what the model answers.

    Whole operations, one after another, wherever these lead there. Else it is `interleaved`: each step is
    one statement of a caller, or what befalls him. Where the statements are not those of the model, or the
    calls were made at once, only the last step says what must follow, which is then one right answer of
    perhaps several. Raises `ValueError` where the model does not answer as was expected, because more than
    the database made the difference: a spoiled schema, a parameter limit.
    """
    operations = _operations(divergence)
    if operations is None:
        return _interleaved(divergence)
    steps: list[Step] = []
    for action in operations:
        before = steps[-1].after if steps else divergence.start
        steps.append(stepped(before, action.operation, action.args, action.now))
    if divergence.expected[0] != GOES_ON and not _as_expected(divergence, steps[-1]):
        raise ValueError("no vector can show this: the model alone answers otherwise")
    return _vector_of(divergence, _steps(divergence.start, steps))


def _vector_of(divergence: Divergence, steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the vector of these steps; the clauses that were broken stand first in the last one."""
    clauses = dict.fromkeys((*divergence.clauses, *steps[-1].get("clauses", ())))
    steps = [*steps[:-1], {**steps[-1], "clauses": list(clauses)}]
    absent = {ABSENT} if divergence.start.rows is None else set()
    needs = _named(absent | {action.operation for action in divergence.actions})
    what = [divergence.start, [_action(action) for action in divergence.actions]]
    digest = hashlib.sha256(json.dumps(what).encode()).hexdigest()
    id, title = f"{divergence.clauses[0]}-{digest[:8]}", CLAUSES[divergence.clauses[0]].sentence
    return _vector(id, title, needs, divergence.start, steps)


def _operations(divergence: Divergence) -> tuple[Action, ...] | None:
    """Return the whole operations that some actions are; None where a caller is held or a fault befalls."""
    actions = divergence.actions
    calm = all(action.do == "run" and action.fault is Fault.NONE for action in actions)
    if not calm or divergence.check.startswith(RACES):
        return None
    if not any(action.statement for action in actions):
        return actions
    world, found = World(divergence.start), []
    for action in actions:
        if world.call(action.caller) is None:
            if world.calls:
                return None
            found.append(action)
        try:
            world, _ = act(world, action)
        except (IllegalAction, UnexpectedStatement):
            return None
    return tuple(found)


def _interleaved(divergence: Divergence) -> dict[str, Any]:
    used = _used(divergence.start, (action.operation for action in divergence.actions))
    steps = _followed(divergence, used)
    if steps is None:
        steps = [_action(action) for action in divergence.actions]
        answer, database = divergence.expected
        if answer == GOES_ON:
            steps[-1]["goes_on"] = True
        elif divergence.actions[-1].do == "run" and answer != TOLD_OVER_ALL:
            steps[-1].update(ended(answer))
        steps[-1].update(_database(database, used))
    return {**_vector_of(divergence, steps), "interleaved": True}


def _followed(divergence: Divergence, used: frozenset[str]) -> list[dict[str, Any]] | None:
    """Return the actions with what the model says of each one; None where it cannot follow them."""
    if divergence.check.startswith(RACES):
        return None
    by_statements = any(action.statement for action in divergence.actions)
    world, taken, steps = World(divergence.start), list[int](), list[Step]()
    found: list[dict[str, Any]] = []
    for action in divergence.actions:
        try:
            run = action.do != "run" or by_statements
            world, step = act(world, action) if run else whole(world, action)
        except (IllegalAction, UnexpectedStatement):
            return None
        follows = _database(world.db, used) if step is None else _follows(step, used)
        if step is not None:
            taken.append(len(found))
            steps.append(step)
        found.append({**_action(action), **follows})
    if not steps or (divergence.actions[-1].do == "run" and not _as_expected(divergence, steps[-1])):
        return None
    for place, clauses in zip(taken, _clauses(steps), strict=True):
        found[place]["clauses"] = _in_order(clauses)
    return found


def _action(action: Action) -> dict[str, Any]:
    found: dict[str, Any] = {"do": action.do, **({"caller": action.caller} if action.caller else {})}
    if action.do != "run":
        return found
    asked = json.loads(
        requests.call("call", Call(action.operation, action.args, action.now), action.caller)
    )
    found |= {name: asked[name] for name in ("operation", "args", "now")}
    found |= {"statement": action.statement} if action.statement else {}
    return found | ({"fault": action.fault} if action.fault is not Fault.NONE else {})


def _as_expected(divergence: Divergence, last: Step) -> bool:
    """Whether a step is what was expected where it ended, by any clock."""
    answer, database = divergence.expected
    told = undated((answer, database)) == undated((last.answer, last.after))
    return bool(answer == TOLD_OVER_ALL or told)
