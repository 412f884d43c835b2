"""Broken run locks, cancels and frees."""

from collections.abc import Mapping

from startonce.impl import operations as op
from startonce.impl import statements as sql
from startonce.impl.operations import Operation
from startonce.impl.statements import Statement
from startonce.model.errors import UnknownOutcome
from startonce.model.operations import Holding, Stopped
from startonce.model.reservation import State
from startonce.oracle.broken.changes import Mutant, changed, instead


def _there_is_mine(now: int, key: str, run_id: str, holder: str) -> Operation[Holding]:
    answer = yield from op.take_lock(key, run_id, holder, now)
    return answer._replace(mine=answer.holder is not None)


def _unknown_is_not_mine(now: int, key: str, run_id: str, holder: str) -> Operation[Holding]:
    op.check("key", key)
    op.check("run id", run_id)
    op.check_token(holder)
    taking = op.take_lock(key, run_id, holder, now)
    request = next(taking)
    try:
        rows = yield request
    except UnknownOutcome:
        return Holding(False, None)
    request = taking.send(rows)
    try:
        taking.send((yield request))
    except StopIteration as stop:
        answer: Holding = stop.value
    return answer


def _ended_is_deleted(now: int, run_id: str, holder: str, result: str) -> Operation[bool]:
    kept = yield from op.persist(run_id, holder, result)
    if kept:
        text = f"DELETE FROM {sql.LOCKS} WHERE run_id = ?"
        yield Statement("persist", text, True, (sql.LOCKS,)), (run_id,)
    return kept


def _cancel_settles_anyway(now: int, run_id: str) -> Operation[Stopped]:
    answer = yield from op.cancel(run_id, now)
    yield from op.settle(run_id, now)
    return answer


def _cancel_without_lock(now: int, run_id: str) -> Operation[Stopped]:
    lock = yield from op.lock_of(run_id)
    if lock is not None:
        return (yield from op.cancel(run_id, now))
    yield from op.settle(run_id, now)
    return Stopped(True, "cancelled")


def _free_looks_at_the_lock(now: int, key: str) -> Operation[Stopped]:
    found = yield from op.read_both(key)
    if found is None or found[0].state is not State.STARTED or found[1] is not None:
        return (yield from op.free(key, now))
    yield sql.DELETE, (key, found[0].run_id)
    return Stopped(True, "freed")


def _free_takes_reserved(now: int, key: str) -> Operation[Stopped]:
    found = yield from op.read_both(key)
    if found is None or found[0].state is not State.RESERVED:
        return (yield from op.free(key, now))
    yield sql.DELETE, (key, found[0].run_id)
    return Stopped(True, "freed")


def _free_believes_any_lock(now: int, key: str) -> Operation[Stopped]:
    answer = yield from op.free(key, now)
    found = yield from op.read_both(key)
    if answer.done or found is None or found[0].state is not State.STARTED:
        return answer
    yield sql.DELETE, (key, found[0].run_id)
    return Stopped(True, "freed")


def _free_gives_up_its_own(now: int, key: str) -> Operation[Stopped]:
    found = yield from op.read_both(key)
    if found is not None and found[1] is not None:
        return Stopped(False, "a free holds its lock")
    return (yield from op.free(key, now))


MUTANTS: Mapping[str, Mutant] = {
    "persist by whoever comes": Mutant(
        "LCK-1",
        "a result is written by run id alone",
        changed("persist", "AND holder = ?", "", (0, 1)),
        seen=("B34",),
    ),
    "lock deleted at its end": Mutant(
        "LCK-1", "what is over needs no lock", instead(persist=_ended_is_deleted), seen=("B11",), own=True
    ),
    "persist over an end": Mutant(
        "LCK-1",
        "a result that is there is overwritten",
        changed("persist", "AND ended = 0", ""),
        seen=("B29", "B40"),
    ),
    "a lock there is a lock of mine": Mutant(
        "LCK-2",
        "an insert that was ignored is taken for done",
        instead(take_lock=_there_is_mine),
        seen=("B16",),
    ),
    "a lock taken whatever the row says": Mutant(
        "LCK-3",
        "the row is not looked at when the lock is taken",
        changed("insert lock", "AND state = 'started'", ""),
    ),
    "unknown lock is not mine": Mutant(
        "LCK-5", "no answer is taken for no", instead(take_lock=_unknown_is_not_mine), seen=("B36",)
    ),
    "cancel that settles anyway": Mutant(
        "DUT-3",
        "a cancel spends the key of a run that executes",
        instead(cancel=_cancel_settles_anyway),
        seen=("B40",),
        own=True,
    ),
    "cancel that looks at the lock": Mutant(
        "DUT-3", "no lock is there yet, so none is taken", instead(cancel=_cancel_without_lock), own=True
    ),
    "free that looks at the lock": Mutant(
        "FRE-1",
        "no lock is there yet, so none is taken",
        instead(free=_free_looks_at_the_lock),
        seen=("B59",),
        own=True,
    ),
    "free by key alone": Mutant(
        "FRE-1",
        "the row is deleted whatever run it names now",
        changed("delete", "AND run_id = ?", "", (0,)),
        blind="a settle, a purge and a reserve must fall between two statements of one free",
        seen=("B29",),
    ),
    "free of a reserved row": Mutant(
        "FRE-2", "whatever is not over is freed", instead(free=_free_takes_reserved), own=True
    ),
    "free that believes any lock": Mutant(
        "FRE-3",
        "an execution that holds the lock is taken for dead",
        instead(free=_free_believes_any_lock),
        seen=("B39",),
        own=True,
    ),
    "free that is not completed": Mutant(
        "FRE-4",
        "its own lock stops the second one",
        instead(free=_free_gives_up_its_own),
        seen=("B30",),
        own=True,
    ),
}
