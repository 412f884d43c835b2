"""Each operation as a generator of statements, with no I/O.

A generator yields a statement with its parameters and is sent the rows that it returned; the error of a
statement is thrown into it. So the same few lines serve every driver, and whoever drives them can hold,
crash or starve a caller between any two statements.

Arguments are checked before the first statement. Errors: `InvalidValue` before any SQL, and whatever
the database raises: `NotApplied`, `UnknownOutcome`, `Unreadable`.
"""

import re
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from startonce.impl import statements as sql
from startonce.impl.statements import Statement
from startonce.model.errors import (
    InvalidValue,
    MalformedRow,
    TableMissing,
    TooManyRuns,
    UnknownOutcome,
    Vanished,
    name_of,
    shown,
)
from startonce.model.operations import Holding, Reserved, Stopped
from startonce.model.reservation import HOLDER_WORDS, Entry, Lock, Reservation, State

Request = tuple[Statement, tuple[Any, ...]]
Rows = list[Any]
T = TypeVar("T")
Operation = Generator[Request, Rows, T]

_plain = re.compile(r"[A-Za-z0-9._~-]{1,200}", re.ASCII).fullmatch


def check(what: str, value: object) -> None:
    """Refuse a key or run id outside the input rules (IN-1). Raises `InvalidValue`."""
    if type(value) is str and _plain(value):
        return
    if not isinstance(value, str):
        why = f"a {name_of(value)}, not a str"
    elif type(value) is not str:
        why = "a subclass of str: pass a plain one"
    elif not value:
        why = "empty"
    elif len(value) > 200:
        why = f"{len(value)} characters long, at most 200 are allowed"
    else:
        odd = next(c for c in value if not _plain(c))
        why = f"{shown(odd)} is not one of A-Z a-z 0-9 . _ ~ -"
    raise InvalidValue(what, value, why)


# --- reservations -----------------------------------------------------------------------------------


def reserve(key: str, run_id: str, now: int, *, create: bool = False) -> Operation[Reserved]:
    """Decide which run a key means, creating its reservation if it is new (RSV).

    `create` ensures the whole schema first; it is created in any case where the table is missing. A
    lost reply to the insert is resolved by the read-back, with `created` False. Raises `Vanished`.
    """
    check("key", key)
    check("run id", run_id)
    insert = (sql.INSERT, (key, run_id, now, now))
    inserted: bool | None = None
    try:
        if create:
            for statement in sql.CREATE_RESERVATIONS:
                yield statement, ()
        try:
            inserted = _changed_one(sql.INSERT, (yield insert))
        except TableMissing:
            for statement in sql.CREATE_RESERVATIONS:
                yield statement, ()
            inserted = _changed_one(sql.INSERT, (yield insert))
    except UnknownOutcome:
        pass  # of the insert, or of what creates the schema: the read-back tells
    try:
        row = _row(key, (yield sql.READ_BACK, (key,)))
    except TableMissing:
        row = None
    if row is None:
        raise Vanished(key)
    return Reserved(row, inserted is True and row.run_id == run_id)


def claim(key: str, run_id: str, now: int) -> Operation[bool]:
    """Take the right to start a run; True for exactly one caller (CLM)."""
    check("key", key)
    check("run id", run_id)
    try:
        return _changed_one(sql.CLAIM, (yield sql.CLAIM, (now, key, run_id)))
    except TableMissing:
        return False


def release(key: str, run_id: str, now: int) -> Operation[bool]:
    """Give a claim back, only after the execution fence refused this very start (REL)."""
    check("key", key)
    check("run id", run_id)
    try:
        return _changed_one(sql.RELEASE, (yield sql.RELEASE, (now, key, run_id)))
    except TableMissing:
        return False


def settle(run_id: str, now: int) -> Operation[int]:
    """Spend every key of a run that is over; answer how many there were (SET)."""
    check("run id", run_id)
    try:
        return len((yield sql.SETTLE, (now, run_id)))
    except TableMissing:
        return 0


def read(key: str) -> Operation[Reservation | None]:
    """Read the row of a key (RD)."""
    check("key", key)
    try:
        return _row(key, (yield sql.READ, (key,)))
    except TableMissing:
        return None


def for_runs(run_ids: Sequence[str], limit: int) -> Operation[tuple[Reservation, ...]]:
    """Read every row naming one of the runs, each once, in order of key (RUN).

    `limit` is the number of parameters that the database binds in one statement.
    """
    if isinstance(run_ids, str):
        raise InvalidValue("run ids", run_ids, "one str, not a sequence of run ids")
    if len(run_ids) > limit:
        raise TooManyRuns(len(run_ids), limit)
    for run_id in run_ids:
        check("run id", run_id)
    if not run_ids:
        return ()
    try:
        rows = yield sql.for_runs(len(run_ids)), tuple(run_ids)
    except TableMissing:
        return ()
    return tuple(_reservation(sql.READ.name, *row) for row in rows)


def purge(settled_before: int, limit: int) -> Operation[int]:
    """Delete the oldest terminal rows last changed before a horizon; answer how many (PRG).

    `settled_before` is in milliseconds, UTC; `limit` bounds the statement.
    """
    check_time("horizon", settled_before)
    check_count("limit", limit)
    try:
        return len((yield sql.PURGE, (settled_before, settled_before, limit)))
    except TableMissing:
        return 0


# --- the run lock -----------------------------------------------------------------------------------


def take_lock(key: str, run_id: str, holder: str, now: int) -> Operation[Holding]:
    """Take the lock of a run whose row is `started`, then read who holds it (LCK).

    A lost reply to the insert is resolved by reading the holder back, and by nothing else (LCK-5).
    """
    check("key", key)
    check("run id", run_id)
    check_token(holder)
    with suppress(UnknownOutcome, TableMissing):
        yield sql.INSERT_LOCK, (holder, now, key, run_id)
    try:
        rows = yield sql.READ_HOLDER, (run_id,)
    except TableMissing:
        rows = []
    lock = _lock(run_id, *rows[0]) if rows else None
    return Holding(lock is not None and lock.holder == holder, lock.holder if lock else None)


def lock_of(run_id: str) -> Operation[Lock | None]:
    """Read the lock of a run."""
    check("run id", run_id)
    try:
        rows = yield sql.READ_LOCK, (run_id,)
    except TableMissing:
        return None
    return _lock(run_id, *rows[0]) if rows else None


def persist(run_id: str, holder: str, result: str) -> Operation[bool]:
    """Mark an execution ended and keep its result, a JSON text (LCK-1)."""
    check("run id", run_id)
    check_token(holder)
    if type(result) is not str:
        raise InvalidValue("result", result, "not a JSON text")
    try:
        return _changed_one(sql.PERSIST, (yield sql.PERSIST, (result, run_id, holder)))
    except TableMissing:
        return False


def read_both(key: str) -> Operation[tuple[Reservation, Lock | None] | None]:
    """Read a row and its run's lock at one moment."""
    check("key", key)
    try:
        rows = yield sql.READ_BOTH, (key,)
    except TableMissing as missing:
        if missing.table != sql.LOCKS:
            return None
        row = yield from read(key)  # half a schema: the next reserve completes it
        return None if row is None else (row, None)
    if not rows:
        return None
    found, run_id, state, created_at, updated_at, holder, ended, result, locked_at = rows[0]
    row = _reservation(sql.READ.name, found, run_id, state, created_at, updated_at)
    if len(rows) > 1 or found != key:
        raise _another(key, found)
    if holder is None and ended is None:
        return row, None
    return row, _lock(run_id, run_id, key, holder, ended, result, locked_at)


def cancel(run_id: str, now: int) -> Operation[Stopped]:
    """Keep a run from ever beginning, and spend its keys; repeatable. A running one is not stopped."""
    check("run id", run_id)
    try:
        with suppress(UnknownOutcome, TableMissing):
            yield sql.INSERT_CANCEL, (run_id, now)
        rows = yield sql.READ_HOLDER, (run_id,)
        lock = _lock(run_id, *rows[0]) if rows else None
        refused = _not_held_by(lock, "cancel")
        if refused is not None:
            return refused
    except TableMissing:
        return Stopped(False, "nobody holds its lock")
    yield from settle(run_id, now)
    return Stopped(True, "cancelled")


def free(key: str, now: int) -> Operation[Stopped]:
    """Give a stranded key back, where its run provably never executed and never can (FRE)."""
    found = yield from read_both(key)
    if found is None:
        return Stopped(False, "no row")
    row, lock = found
    if lock is None or lock.holder != "free":
        if row.state is not State.STARTED:
            return Stopped(False, f"it is {row.state}")
        refused = None if lock is None else _not_held_by(lock, "free")
        if refused is not None:
            return refused
    try:
        with suppress(UnknownOutcome, TableMissing):
            yield sql.INSERT_FREE, ("free", now, key, row.run_id)
        rows = yield sql.READ_HOLDER, (row.run_id,)
        refused = _not_held_by(_lock(row.run_id, *rows[0]) if rows else None, "free")
        if refused is not None:
            return refused
        yield sql.DELETE, (key, row.run_id)
    except TableMissing:
        return Stopped(False, "nobody holds its lock")
    return Stopped(True, "freed")


def _not_held_by(lock: Lock | None, word: str) -> Stopped | None:
    """Say why a lock that is not held by a word keeps an operator from going on."""
    if lock is None:
        return Stopped(False, "nobody holds its lock")
    if lock.holder == word:
        return None
    if lock.holder in HOLDER_WORDS:
        return Stopped(False, f"a {lock.holder} holds its lock")
    if lock.ended:
        return Stopped(False, "it has ended", lock.result)
    return Stopped(False, "an execution holds its lock")


# --- what an operator does --------------------------------------------------------------------------


def fence() -> Operation[bool]:
    """Say whether the fence is closed; no table or row means open, unreadable is an error."""
    try:
        rows = yield sql.READ_FENCE, ()
    except TableMissing:
        return False
    if not rows:
        return False
    if len(rows) == 1 and rows[0][0] in (0, 1):
        return bool(rows[0][0])
    raise MalformedRow(sql.READ_FENCE.name, f"the fence is {shown(rows)}, not one row of 0 or 1")


def close_fence() -> Operation[None]:
    """Close the fence, creating it if need be."""
    yield from _write_fence(sql.CLOSE_FENCE)


def open_fence() -> Operation[None]:
    """Open the fence, creating it if need be."""
    yield from _write_fence(sql.OPEN_FENCE)


def inventory(after: Any, limit: int) -> Operation[tuple[Entry, ...]]:
    """Read a page of what a drain must wait for or explain, in order of (key, run id) (INV)."""
    check_count("limit", limit)
    if after is not None:
        if not isinstance(after, tuple | list) or len(after) != 2:
            raise InvalidValue("after", after, "not the key and the run id of an entry")
        check("key", after[0])
        check("run id", after[1])
    start = after or ("", "")
    try:
        rows = yield sql.INVENTORY, (*start, *start, limit)
    except TableMissing as missing:
        if missing.table == sql.RESERVATIONS:
            return ()
        raise MalformedRow(sql.INVENTORY.name, f"{sql.LOCKS} is missing: half a schema") from missing
    return tuple(_entry(row) for row in rows)


def _write_fence(statement: Statement) -> Operation[None]:
    try:
        yield statement, ()
    except TableMissing:
        for create in sql.CREATE_FENCE:
            yield create, ()
        yield statement, ()


# --- rows to values ---------------------------------------------------------------------------------


def check_token(holder: str) -> None:
    """Refuse a lock holder that is no token: a delivery never takes a lock as `free` or `cancel`."""
    check("holder", holder)
    if holder in HOLDER_WORDS:
        raise InvalidValue("holder", holder, "reserved for operators")


def check_count(what: str, value: int) -> None:
    """Refuse a bound that is not a whole number from 1 to 2**63 - 1."""
    if type(value) is not int or not 1 <= value < 2**63:
        raise InvalidValue(what, value, "not a whole number from 1 to 2**63 - 1")


def check_time(what: str, value: int) -> None:
    """Refuse what is not a time in whole milliseconds: SQLite would order any text after all times."""
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise InvalidValue(what, value, "not a time in whole milliseconds")


_STATES = {state.value: state for state in State}


def _changed_one(statement: Statement, rows: Rows) -> bool:
    """Say whether a conditional write changed its one row; anything else is an unknown outcome."""
    if not rows:
        return False
    if len(rows) == 1:
        return True
    raise UnknownOutcome(statement.name, f"{len(rows)} rows changed where at most one can be")


def _row(key: str, rows: Rows) -> Reservation | None:
    if not rows:
        return None
    row = _reservation(sql.READ.name, *rows[0])
    if len(rows) > 1 or row.key != key:
        raise _another(key, row.key)
    return row


def _another(key: str, found: str) -> MalformedRow:
    return MalformedRow(sql.READ.name, f"the row of key {shown(key)} has key {shown(found)}")


def _reservation(
    statement: str, key: Any, run_id: Any, name: Any, created_at: Any, updated_at: Any
) -> Reservation:
    state = _STATES.get(name)
    if (
        state is not None
        and type(key) is type(run_id) is str
        and type(created_at) is type(updated_at) is int
    ):
        return Reservation(key, run_id, state, created_at, updated_at)
    row = (key, run_id, name, created_at, updated_at)
    raise MalformedRow(statement, f"{shown(row, 200)} is not a reservation")


def _lock(run_id: str, found: Any, key: Any, holder: Any, ended: Any, result: Any, created_at: Any) -> Lock:
    if (
        found == run_id
        and type(holder) is str
        and (key is None or type(key) is str)
        and (result is None or type(result) is str)
        and ended in (0, 1)
        and type(created_at) is int
    ):
        return Lock(found, key, holder, ended == 1, result, created_at)
    row = (found, key, holder, ended, result, created_at)
    raise MalformedRow(sql.READ_LOCK.name, f"{shown(row, 200)} is not a run lock")


def _entry(row: Sequence[Any]) -> Entry:
    key, run_id, state, holder, ended = row
    texts = type(key) is type(run_id) is str and (
        type(holder) is str and ended in (0, 1) if holder is not None or ended is not None else True
    )
    if not texts or not (state is None or state in _STATES):
        raise MalformedRow(sql.INVENTORY.name, f"{shown(tuple(row), 200)} is not an entry")
    if state is None or state == State.TERMINAL:
        kind = "settled or purged, still held"
    elif holder is None:
        kind = "reserved" if state == State.RESERVED else "never reached the lock"
    elif holder in HOLDER_WORDS:
        kind = f"held by a {holder}"
    else:
        kind = "ended, not settled" if ended else "reached the lock, not ended"
    return Entry(key, run_id, _STATES.get(state), holder, bool(ended), kind)
