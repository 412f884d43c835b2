"""The shortest interleaving that leads to a divergence, by breadth-first search over the model.

From the empty database, with no more than the callers, operations, arguments and faults that the
divergence itself shows, every action from every distinct situation is executed on the subject, the
nearest ones first. So nothing shorter exists within that vocabulary.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from startonce.model.interleaving import Action, IllegalAction, World, canonical
from startonce.model.operations import PROGRAMS, READS, Fault, upcoming
from startonce.model.reservation import EMPTY, NOTHING, Database
from startonce.oracle.ledger import Divergence
from startonce.oracle.lockstep import take
from startonce.oracle.subject import DENY, FAULTS, REPLICA, STEPPING, Subject

BUDGET = 60_000
"""Actions executed before the search gives up and the divergence stays as it was found."""

PATHS_TO = ("reserve", "claim", "settle", "purge")
"""Operations that any situation may need before the one that diverges."""


LOCKED = {"cancel", "free", "persist", "inventory", "lock_of"}
"""Operations whose answer depends on a lock that somebody may hold."""


class Vocabulary(NamedTuple):
    """What a search may use."""

    callers: tuple[str, ...]
    operations: tuple[str, ...]
    keys: tuple[str, ...]
    runs: tuple[str, ...]
    rest: dict[str, list[tuple[Any, ...]]]
    faults: tuple[Fault, ...]
    others: frozenset[str]
    clocks: tuple[int, ...] = ()


def vocabulary(found: Divergence, subject: Subject, clause: str = "") -> Vocabulary:
    """Return what a divergence shows of callers, operations, arguments, faults and, of STA-8, clocks."""
    runs_of = [a for a in found.actions if a.do == "run"]
    keys: list[str] = []
    runs: list[str] = []
    rest: dict[str, list[tuple[Any, ...]]] = {}
    for action in runs_of:
        names = PROGRAMS[action.operation].arguments
        for name, value in zip(names, action.args, strict=False):
            (keys if name == "key" else runs if name == "run_id" else []).append(value)
        if not set(names) <= {"key", "run_id"} or action.operation == "for_runs":
            rest.setdefault(action.operation, []).append(action.args)
        if action.operation == "for_runs":
            runs += action.args
    for row in found.start.rows or ():
        keys.append(row.key)
        runs.append(row.run_id)
    used = [a.operation for a in runs_of]
    if LOCKED & set(used) and keys and runs:
        rest.setdefault("take_lock", []).append((keys[0], runs[0], "h1"))
        used.append("take_lock")
    for operation, args in _ways_to(found.start):
        used.append(operation)
        rest.setdefault(operation, []).append(args)
    abilities = subject.capabilities
    callers = sorted({a.caller for a in runs_of} | ({"A", "B"} if STEPPING in abilities else {"A"}))
    return Vocabulary(
        tuple(callers),
        tuple(dict.fromkeys((*PATHS_TO, *used))),
        tuple(dict.fromkeys(keys)) or ("k1",),
        tuple(dict.fromkeys((*runs, "r1", "r2"))),
        rest,
        tuple({a.fault for a in runs_of} - {Fault.NONE}) if FAULTS in abilities else (),
        frozenset(
            a.do
            for a in found.actions
            if a.do != "run"
            and (a.do not in ("pin", "unpin") or REPLICA in abilities)
            and (a.do not in ("deny", "allow") or DENY in abilities)
        ),
        tuple({a.now for a in runs_of}) if clause == "STA-8" else (),
    )


def _ways_to(start: Database) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Give the operations that make the locks and the fence of a database."""
    for lock in start.locks or ():
        if lock.holder == "cancel":
            yield "cancel", (lock.run_id,)
        elif lock.holder == "free":
            yield "free", (lock.key,)
        else:
            yield "take_lock", (lock.key, lock.run_id, lock.holder)
            if lock.ended:
                yield "persist", (lock.run_id, lock.holder, lock.result)
    if start.fence_closed is not None:
        yield ("close_fence" if start.fence_closed else "open_fence"), ()


def shortest(subject: Subject, found: Divergence, clause: str = "", budget: int = BUDGET) -> Divergence:
    """Return the shortest divergence that breaks a clause, by default the first one of those found.

    Where the search ends without one, or its budget is used up, the divergence stays as it was found.
    """
    clause = clause or found.clauses[0]
    found = found._replace(clauses=(clause, *(c for c in found.clauses if c != clause)))
    wanted = set(found.clauses[1:] if clause == "STA-8" else (clause,))  # a step alone shows no clock
    words = vocabulary(found, subject, clause)
    start = NOTHING if found.start.rows is None else EMPTY
    frontier: list[tuple[World, tuple[Action, ...]]] = [(World(start), ())]
    seen: set[Any] = set()
    while frontier:
        reached = []
        for world, path in frontier:
            if found.check == "machine" and len(path) + 1 >= len(found.actions):
                return found
            for action in _actions(world, words, len(path) + 1):
                budget -= len(path) + 1
                if budget < 0:
                    return found
                outcome = _try(subject, start, (*path, action), found.check)
                if isinstance(outcome, Divergence):
                    if wanted & set(outcome.clauses):
                        return outcome._replace(clauses=found.clauses)
                    continue
                if outcome is None:
                    continue
                situation = (canonical(outcome), _under_way((*path, action)))
                if situation not in seen:
                    seen.add(situation)
                    reached.append((outcome, (*path, action)))
        frontier = reached
    return found


def _under_way(path: tuple[Action, ...]) -> tuple[tuple[str, str], ...]:
    """Tell where callers are inside what creates the schema, which the model's state does not show."""
    return tuple(sorted((a.caller, a.statement) for a in path if a.statement.startswith("create")))


def _try(
    subject: Subject, start: Database, path: tuple[Action, ...], check: str
) -> Divergence | World | None:
    try:
        lockstep, found = take(subject, path, start, check)
    except IllegalAction:
        return None
    return found or lockstep.world


def _actions(world: World, words: Vocabulary, now: int) -> Iterator[Action]:
    idle_offered = False
    for caller in words.callers:
        call = world.call(caller)
        if call is not None:
            yield from _with_faults(
                Action("run", caller, call.operation, call.args, now), upcoming(call), world, words
            )
            if "crash" in words.others:
                yield Action("crash", caller, now=now)
            continue
        if idle_offered:
            continue  # idle callers are alike
        idle_offered = True
        for operation in words.operations:
            for args in _arguments(operation, world, words):
                first = next(iter(PROGRAMS[operation].statements))
                for clock in (now, *words.clocks):
                    action = Action("run", caller, operation, args, clock)
                    yield from _with_faults(action, first, world, words)
    for do in sorted(words.others & {"pin", "unpin", "deny", "allow"}):
        if do != "unpin" or world.replica is not None:
            yield Action(do, now=now)  # type: ignore[arg-type]
    if "land" in words.others:
        for caller in dict.fromkeys(caller for caller, _ in world.late):
            yield Action("land", caller, now=now)


def _with_faults(action: Action, statement: str, world: World, words: Vocabulary) -> Iterator[Action]:
    yield action
    for fault in sorted(words.faults):
        reads = statement in READS
        if fault is Fault.STALE and not (reads and world.replica is not None):
            continue
        if fault is Fault.LATE and reads:
            continue
        yield action._replace(fault=fault)


def _arguments(operation: str, world: World, words: Vocabulary) -> Iterator[tuple[Any, ...]]:
    names = PROGRAMS[operation].arguments
    if operation == "purge":
        times = {row.updated_at for row in world.db.rows or ()}
        for horizon in sorted(times | {time + 1 for time in times}):
            for limit in sorted({args[1] for args in words.rest.get("purge", [])} or {10}):
                yield horizon, limit
    elif names == ("key", "run_id"):
        yield from ((key, run_id) for key in words.keys for run_id in words.runs)
    elif names == ("run_id",):
        yield from ((run_id,) for run_id in words.runs)
    elif names == ("key",):
        yield from ((key,) for key in words.keys)
    elif operation in words.rest:
        yield from dict.fromkeys(words.rest[operation])
    elif not names and operation != "for_runs":
        yield ()
