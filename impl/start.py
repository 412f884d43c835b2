"""Starting a run: what a caller does with the operations. The order is the meaning.

`start` is a generator like the operations, and yields one thing more: `Execute`, which its driver
answers with what the work did. One answer type for each outcome; `docs/answers.md` says what to tell
the client.
"""

import json
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, NoReturn

from startonce.impl import operations as op
from startonce.impl.operations import Operation, Request, T
from startonce.model.errors import (
    NotApplied,
    ResultNotPersisted,
    ResultNotStorable,
    StartOnceError,
    UnknownOutcome,
    Unreadable,
    ValueRefused,
    Vanished,
    WorkFailed,
)
from startonce.model.reservation import HOLDER_WORDS, Lock, Reservation, State

TRIES = 3
"""How often a read is read again, or a write that was certainly not applied is sent again."""

ROUNDS = 8
"""How often a start begins afresh or goes by another row before it answers `Retry`."""


class Started(NamedTuple):
    """This call executed the run. `settled` is False where the next caller has to settle it."""

    run_id: str
    result: Any
    settled: bool


class Replayed(NamedTuple):
    """The run was executed before; this is what it returned."""

    run_id: str
    result: Any


class Pending(NamedTuple):
    """Another caller started the run, at `since` (milliseconds, UTC), and it has not ended.

    `reached_lock` says whether its execution began. Nobody guesses who is alive.
    """

    run_id: str
    since: int
    reached_lock: bool


class Settled(NamedTuple):
    """The key is spent, and no result is kept: the run was cancelled, or its value was pruned."""

    run_id: str


class Retry(NamedTuple):
    """Nothing was executed by this call; the same key may be sent again at once."""

    run_id: str | None


class Fenced(NamedTuple):
    """The deployment is draining. Nothing was executed; the key starts this run after it reopens."""

    run_id: str


class FencedStranded(NamedTuple):
    """The deployment is draining, and the claim could not be given back: an operator frees the key."""

    run_id: str


Answer = Started | Replayed | Pending | Settled | Retry | Fenced | FencedStranded


class Run(NamedTuple):
    """What the work is given: the key that was sent and the run that it means."""

    key: str
    run_id: str


class Execute(NamedTuple):
    """Asks the driver of a start to do the work, once, now."""

    run: Run


class Done(NamedTuple):
    """The work returned a value."""

    value: Any


class Failed(NamedTuple):
    """The work raised an error."""

    error: Exception


Start = Generator[Request | Execute, Any, Answer]
Seen = tuple[Reservation, Lock | None] | None


def start(key: str, mint: Callable[[], str], clock: Callable[[], int], create: bool = False) -> Start:
    """Start the run that `key` means, once. `mint` gives fresh ids, `clock` milliseconds, UTC.

    Raises what the work raised (now, or as `WorkFailed` on a replay), `ResultNotPersisted`, and the
    errors of the database; after each of them the key is safe to send again.
    """
    seen: Seen = yield from op.read_both(key)
    if seen is not None and seen[0].state is State.TERMINAL:
        return _answer(*seen)  # the common case: one read, and nothing to do
    claimed: set[str] = set()
    for _ in range(ROUNDS):
        if seen is None:
            seen = yield from _reserve(key, mint(), clock(), create)
            if seen is None:
                continue
        row, lock = seen
        run_id = row.run_id
        if row.state is not State.RESERVED:
            return (yield from _go_by(row, lock, clock))

        if not (yield from op.claim(key, run_id, clock())):
            seen = yield from op.read_both(key)
            if seen and seen[0].run_id == run_id and seen[0].state is State.RESERVED:
                if run_id in claimed:
                    return Retry(run_id)
                claimed.add(run_id)
            continue

        if (yield from _patiently(op.fence)):
            answer = yield from _give_back(key, run_id, clock)
            if answer is not None:
                return answer
            seen = yield from op.read_both(key)
            continue

        holder = mint()
        if (yield from _take_lock(key, run_id, holder, clock)):
            return (yield from _execute(key, run_id, holder, clock))
        seen = yield from op.read_both(key)
        if seen and seen[0].state is State.RESERVED:
            return Retry(seen[0].run_id)
    return Retry(seen[0].run_id if seen else None)


def _reserve(key: str, run_id: str, now: int, create: bool) -> Operation[Seen]:
    try:
        row = (yield from op.reserve(key, run_id, now, create=create)).row
    except Vanished:
        return None
    if row.state is State.RESERVED:
        return row, None
    return (yield from op.read_both(key))


def _go_by(row: Reservation, lock: Lock | None, clock: Callable[[], int]) -> Operation[Answer]:
    """Answer for a row that is not `reserved`, by its lock; settle a run that is over."""
    if lock is not None and row.state is State.STARTED:
        if lock.holder == "free":
            return Retry(row.run_id)
        if lock.holder == "cancel" or lock.ended:
            yield from _settle(row.run_id, clock)
    return _answer(row, lock)


def _answer(row: Reservation, lock: Lock | None) -> Answer:
    if lock is not None and lock.ended and lock.result is not None:
        return Replayed(row.run_id, _value(row.run_id, lock.result))
    if lock is not None and not lock.ended and lock.holder not in HOLDER_WORDS:
        return Pending(row.run_id, lock.created_at, reached_lock=True)
    if row.state is State.STARTED and lock is None:
        return Pending(row.run_id, row.updated_at, reached_lock=False)
    return Settled(row.run_id)


def _give_back(key: str, run_id: str, clock: Callable[[], int]) -> Operation[Answer | None]:
    """Release a claim that the fence refused; None where the row has changed underneath (REL-4)."""
    for _ in range(TRIES):
        try:
            return Fenced(run_id) if (yield from op.release(key, run_id, clock())) else None
        except NotApplied:
            continue
        except UnknownOutcome:
            break
    return FencedStranded(run_id)


def _take_lock(key: str, run_id: str, holder: str, clock: Callable[[], int]) -> Operation[bool]:
    for again in range(TRIES):
        try:
            return (yield from op.take_lock(key, run_id, holder, clock())).mine
        except NotApplied:
            if again == TRIES - 1:
                raise
        except Unreadable:
            lock = yield from _patiently(lambda: op.lock_of(run_id))
            return lock is not None and lock.holder == holder
    raise AssertionError("unreachable")


def _execute(key: str, run_id: str, holder: str, clock: Callable[[], int]) -> Start:
    outcome = yield Execute(Run(key, run_id))
    failure = outcome.error if isinstance(outcome, Failed) else None
    if isinstance(outcome, Done):
        try:
            result = json.dumps({"value": outcome.value}, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            failure = ResultNotStorable(f"the work of run {run_id} returned no JSON value: {error}")
    if failure is not None:
        result = _failure(failure)
    try:
        yield from _persist(run_id, holder, result)
    except ValueRefused as error:
        failure = ResultNotStorable(f"the work of run {run_id} returned too much: {error}")
        try:
            yield from _persist(run_id, holder, _failure(failure))
        except StartOnceError as second:
            _not_persisted(run_id, result, second, outcome)
    except StartOnceError as error:
        _not_persisted(run_id, result, error, outcome)
    settled = yield from _settle(run_id, clock)
    if failure is not None:
        raise failure
    return Started(run_id, json.loads(result)["value"], settled)


def _not_persisted(run_id: str, result: str, error: StartOnceError, outcome: Any) -> NoReturn:
    cause = outcome.error if isinstance(outcome, Failed) else error
    raise ResultNotPersisted(run_id, result, str(error)) from cause


def _persist(run_id: str, holder: str, result: str) -> Operation[None]:
    """Keep a result; after an unknown outcome the lock is read, and the write repeated."""
    trouble: StartOnceError | None = None
    for _ in range(TRIES):
        try:
            if (yield from op.persist(run_id, holder, result)):
                return
        except ValueRefused:
            raise
        except (NotApplied, UnknownOutcome) as error:
            trouble = error
        lock = yield from _patiently(lambda: op.lock_of(run_id))
        if lock is not None and lock.ended and lock.holder == holder and lock.result == result:
            return
        if lock is None or lock.ended or lock.holder != holder:
            raise NotApplied("persist", "the lock was ended or taken by another hand")
    assert trouble is not None
    raise trouble


def _settle(run_id: str, clock: Callable[[], int]) -> Operation[bool]:
    """Settle a run that is over; where it fails, the next caller does it."""
    try:
        yield from op.settle(run_id, clock())
    except (NotApplied, UnknownOutcome):
        return False
    return True


def _patiently(read: Callable[[], Operation[T]]) -> Operation[T]:
    """Read again what could not be read, a bounded number of times, then raise."""
    for _ in range(TRIES - 1):
        try:
            return (yield from read())
        except Unreadable:
            continue
    return (yield from read())


_decode = json.JSONDecoder().raw_decode


def _failure(error: Exception) -> str:
    return json.dumps({"error": {"kind": type(error).__name__, "message": str(error)}})


def _value(run_id: str, result: str) -> Any:
    """Give back what was persisted: a value, or the failure, raised again."""
    try:
        text = result.strip(" \t\n\r")
        kept, end = _decode(text)  # `json.loads` takes three times as long
        if end < len(text):
            raise ValueError("more than one JSON value")
        if "value" in kept:
            return kept["value"]
        kind, message = kept["error"]["kind"], kept["error"]["message"]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Unreadable("read both", f"the result kept for run {run_id} is not one of ours") from error
    raise WorkFailed(run_id, str(kind), str(message))
