"""Starting a run: what a caller does with the operations. The order is the meaning.

`start` is a generator like the operations, and yields one thing more: `Execute`, which its driver
answers with what the work did. One answer type for each outcome; `docs/answers.md` says what to tell
the client.
"""

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from startonce.impl import operations as op
from startonce.impl.execution import (
    TRIES,
    Execute,
    Failed,
    Run,
    keep,
    patiently,
    settle_if_possible,
    value_of,
)
from startonce.impl.operations import Operation, Request
from startonce.model.errors import NotApplied, UnknownOutcome, Unreadable, Vanished
from startonce.model.reservation import HOLDER_WORDS, Lock, Reservation, State

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


Start = Generator[Request | Execute, Any, Answer | Failed]
Seen = tuple[Reservation, Lock | None] | None


def start(key: str, mint: Callable[[], str], clock: Callable[[], int], create: bool = False) -> Start:
    """Start the run that `key` means, once. `mint` gives fresh ids, `clock` milliseconds, UTC.

    An error of the work is given back as `Failed`; its driver raises it. Raises `WorkFailed` on a replay
    of one, `ResultNotPersisted`, and the errors of the database; after each the key may be sent again.
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

        holder = mint()
        op.check_token(holder)
        if not (yield from op.claim(key, run_id, clock())):
            seen = yield from op.read_both(key)
            if seen and seen[0].run_id == run_id and seen[0].state is State.RESERVED:
                if run_id in claimed:
                    return Retry(run_id)
                claimed.add(run_id)
            continue

        if (yield from patiently(op.fence)):
            answer = yield from _give_back(key, run_id, clock)
            if answer is not None:
                return answer
            seen = yield from op.read_both(key)
            continue

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
            yield from settle_if_possible(row.run_id, clock)
    return _answer(row, lock)


def _answer(row: Reservation, lock: Lock | None) -> Answer:
    if lock is not None and lock.ended and lock.result is not None:
        return Replayed(row.run_id, value_of(row.run_id, lock.result))
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
        except Unreadable:  # the insert was sent: only the holder is read again (LCK-5)
            lock = yield from patiently(lambda: op.lock_of(run_id))
            return lock is not None and lock.holder == holder
        except NotApplied:
            if again == TRIES - 1:
                raise
    raise AssertionError("unreachable")


def _execute(key: str, run_id: str, holder: str, clock: Callable[[], int]) -> Start:
    """Have the work done, keep what came of it, and settle; an error is given back, not raised."""
    done = yield Execute(Run(key, run_id))
    kept = yield from keep(run_id, holder, done)
    settled = yield from settle_if_possible(run_id, clock)
    return kept if isinstance(kept, Failed) else Started(run_id, kept.value, settled)
