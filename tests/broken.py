"""Broken implementations: each a few lines over the real one, each somebody's real mistake."""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

from startonce.impl import operations as op
from startonce.impl import statements as sql
from startonce.impl.operations import Operation, Request
from startonce.model.errors import TableMissing, UnknownOutcome, Vanished
from startonce.model.operations import Holding, Reserved, Stopped
from startonce.model.reservation import Reservation, State
from startonce.own import OURS, PARAMETER_LIMIT, Operations

Change = Callable[[Request], Request]


class Broken(NamedTuple):
    """A broken implementation, the clause that it breaks, and the check that is enough to see it."""

    clause: str
    operations: Operations
    check: str = "edges"


def rewriting(operation: Operation[Any], change: Change) -> Operation[Any]:
    """Run an operation with some of its statements changed."""
    try:
        request = next(operation)
        while True:
            try:
                reply = yield change(request)
            except Exception as error:
                request = operation.throw(error)
            else:
                request = operation.send(reply)
    except StopIteration as stop:
        return stop.value


def changed(name: str, old: str, new: str, pick: Sequence[int] | None = None) -> Operations:
    """Our operations with a piece of one statement replaced, and some parameters left out."""

    def change(request: Request) -> Request:
        statement, parameters = request
        if statement.name != name:
            return request
        assert old in statement.sql, f"{name} no longer contains {old!r}"
        if pick is not None:
            parameters = tuple(parameters[place] for place in pick)
        return statement._replace(sql=statement.sql.replace(old, new)), parameters

    def wrap(ours: Callable[..., Operation[Any]]) -> Callable[..., Operation[Any]]:
        return lambda *args, **more: rewriting(ours(*args, **more), change)

    return {operation: wrap(ours) for operation, ours in OURS.items()}


def instead(**operations: Callable[..., Generator[Request, Any, Any]]) -> Operations:
    """Our operations with some of them replaced."""
    return {**OURS, **operations}


def _claim_reads_first(now: int, key: str, run_id: str) -> Operation[bool]:
    row = yield from op.read(key)
    if row is None or row.run_id != run_id or row.state is not State.RESERVED:
        return False
    statement = sql.CLAIM._replace(sql=sql.CLAIM.sql.replace("AND state = 'reserved'", ""))
    yield statement, (now, key, run_id)
    return True


def _claim_trusts_the_count(now: int, key: str, run_id: str) -> Operation[bool]:
    try:
        yield sql.CLAIM, (now, key, run_id)
    except TableMissing:
        return False
    rowcount = -1  # what sqlite3 says of a statement that it does not take for an UPDATE
    return bool(rowcount)


def _claim_takes_silence_for_no(now: int, key: str, run_id: str) -> Operation[bool]:
    try:
        return (yield from op.claim(key, run_id, now))
    except UnknownOutcome:
        return False


def _read_creates(now: int, key: str) -> Operation[Reservation | None]:
    for statement in sql.CREATE_RESERVATIONS:
        yield statement, ()
    return (yield from op.read(key))


def _vanished_is_mine(now: int, key: str, run_id: str, create: bool = False) -> Operation[Reserved]:
    try:
        return (yield from op.reserve(key, run_id, now, create=create))
    except Vanished:
        return Reserved(Reservation(key, run_id, State.RESERVED, now, now), True)


def _insert_is_believed(now: int, key: str, run_id: str, create: bool = False) -> Operation[Reserved]:
    answer = yield from op.reserve(key, run_id, now, create=create)
    return answer._replace(created=True)


def _lock_there_is_lock_mine(now: int, key: str, run_id: str, holder: str) -> Operation[Holding]:
    answer = yield from op.take_lock(key, run_id, holder, now)
    return answer._replace(mine=answer.holder is not None)


def _for_runs_is_cut(now: int, *run_ids: str) -> Operation[tuple[Reservation, ...]]:
    return (yield from op.for_runs(run_ids[:PARAMETER_LIMIT], PARAMETER_LIMIT))


def _folds_case(now: int, key: str, run_id: str, create: bool = False) -> Operation[Reserved]:
    op.check("key", key)
    return (yield from op.reserve(key.lower(), run_id, now, create=create))


def _trims(now: int, key: Any, run_id: str, create: bool = False) -> Operation[Reserved]:
    key = key.strip() if isinstance(key, str) else key
    return (yield from op.reserve(key, run_id, now, create=create))


def _cancel_settles_anyway(now: int, run_id: str) -> Operation[Stopped]:
    answer = yield from op.cancel(run_id, now)
    yield from op.settle(run_id, now)
    return answer


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
        return Stopped(False, "it has a lock")
    return (yield from op.free(key, now))


CONFLICT = "ON CONFLICT (key) DO NOTHING"

BROKEN: dict[str, Broken] = {
    "insert or replace": Broken(
        "RSV-2",
        changed("insert", f"{CONFLICT}\n", "ON CONFLICT (key) DO UPDATE SET run_id = excluded.run_id\n"),
    ),
    "reserve resets the state": Broken(
        "RSV-2", changed("insert", CONFLICT, "ON CONFLICT (key) DO UPDATE SET state = 'reserved'")
    ),
    "lost insert believed": Broken("RSV-4", instead(reserve=_insert_is_believed)),
    "vanished row believed": Broken("RSV-5", instead(reserve=_vanished_is_mine), "statements"),
    "insert ignores what it may not": Broken(
        "RSV-7",
        changed("insert", "INSERT INTO", "INSERT OR IGNORE INTO"),
        "probes",
    ),
    "claim by read, then update": Broken("CLM-1", instead(claim=_claim_reads_first), "statements"),
    "claim on any state": Broken("CLM-2", changed("claim", "AND state = 'reserved'", "")),
    "claim believes a truthy row count": Broken("CLM-2", instead(claim=_claim_trusts_the_count)),
    "claim without the run id": Broken("CLM-4", changed("claim", "AND run_id = ?", "", (0, 1))),
    "unknown claim reported as lost": Broken(
        "CLM-6", instead(claim=_claim_takes_silence_for_no), "machine"
    ),
    "release of any state": Broken("REL-2", changed("release", "AND state = 'started'", "")),
    "release without the run id": Broken("REL-5", changed("release", "AND run_id = ?", "", (0, 1))),
    "settle of started rows only": Broken(
        "SET-1", changed("settle", "state <> 'terminal'", "state = 'started'")
    ),
    "settle of terminal rows again": Broken("SET-2", changed("settle", "AND state <> 'terminal'", "")),
    "read that creates the schema": Broken("RD-1", instead(read=_read_creates)),
    "for_runs cut at the limit": Broken("RUN-2", instead(for_runs=_for_runs_is_cut), "probes"),
    "purge at the horizon": Broken("PRG-1", changed("purge", "updated_at < ?", "updated_at <= ?")),
    "purge of live rows": Broken("PRG-1", changed("purge", "state = 'terminal' AND", "")),
    "inventory of rows alone": Broken(
        "INV-1", changed("inventory", "l.ended = 0 AND l.key IS NOT NULL", "l.ended = 0 AND 0")
    ),
    "persist by whoever comes": Broken("LCK-1", changed("persist", "AND holder = ?", "", (0, 1))),
    "a lock there is a lock of mine": Broken("LCK-2", instead(take_lock=_lock_there_is_lock_mine)),
    "a lock taken whatever the row says": Broken(
        "LCK-3", changed("insert lock", "AND state = 'started'", "")
    ),
    "cancel that settles anyway": Broken("DUT-3", instead(cancel=_cancel_settles_anyway)),
    "free that looks at the lock": Broken("FRE-1", instead(free=_free_looks_at_the_lock)),
    "free of a reserved row": Broken("FRE-2", instead(free=_free_takes_reserved)),
    "free that believes any lock": Broken("FRE-3", instead(free=_free_believes_any_lock)),
    "free that is not completed": Broken("FRE-4", instead(free=_free_gives_up_its_own)),
    "case-folding keys": Broken("IN-2", instead(reserve=_folds_case), "probes"),
    "trimmed keys": Broken("IN-1", instead(reserve=_trims), "probes"),
}
