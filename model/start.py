"""Starting a run, statement by statement: what one caller does, as a table.

A caller is a value that says which statement it runs next (`at`) and what it knows. `PROGRAM` says of each
statement what it does, and where its caller goes on with the reply, with none, and after a refusal. The
faults are the same for every statement: see `faults.py`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from startonce.model.world import (
    CANCEL,
    FREE,
    RESERVED,
    STARTED,
    Caller,
    Lock,
    Row,
    Sent,
    World,
    claim,
    free_mutex,
    insert,
    insert_lock,
    persist,
    put_at,
    read_both,
    read_ended,
    read_fence,
    read_holder,
    read_row,
    release,
    settle,
    take_lock_as,
    take_mutex,
)


class Told(NamedTuple):
    """The answer that ends a start or an operation, and the run that it names."""

    answer: str
    run: int


Next = Caller | Told
"""Where a caller goes on, or how it ends."""


class Statement(NamedTuple):
    """One statement of a caller: its effect, and where the caller goes on.

    `effect` gives the world after it and the reply. `then` gives what follows the reply, `unknown` what
    follows a lost one, `refused` what follows one that certainly changed nothing, or could not be read.
    """

    effect: Callable[[World, int, Caller], tuple[World, Any]]
    then: Callable[[Caller, Any], Next]
    unknown: Callable[[Caller], Next]
    refused: Callable[[Caller], Next]
    writes: bool = True


# --- a start, statement by statement ----------------------------------------------------------------


def _told(answer: str) -> Callable[..., Told]:
    return lambda c, _=None: Told(answer, c.run)


def _went(c: Caller, at: str, **more: Any) -> Caller:
    return c._replace(at=at, **more)


def _afresh(c: Caller) -> Caller:
    return Caller("insert", key=c.key, left=c.left)


def go_by_row(c: Caller, row: Row | None) -> Next:
    """Go by the row that a reserve read back: `reserved` is claimed with the STORED run id."""
    if row is None:
        return _afresh(c)
    if row.state is RESERVED:
        return _went(c, "claim", run=row.run, again=False)
    return _went(c, "look", run=row.run, after="row")


def go_by_both(c: Caller, seen: tuple[Row | None, Lock | None]) -> Next:
    """Go by a fresh read of row and lock. Never a guess about who is alive."""
    row, lock = seen
    if row is None:
        return _afresh(c)
    if row.state is RESERVED:
        if c.after == "lock":
            return Told("retry", row.run)
        lost_before = c.after == "claim" and c.run == row.run
        if lost_before and c.again:
            return Told("retry", row.run)
        return _went(c, "claim", run=row.run, again=lost_before, after="")
    c = c._replace(run=row.run)
    if lock is not None and lock.holder == FREE:
        return Told("retry" if row.state is STARTED else "settled", c.run)
    if lock is not None and lock.holder == CANCEL:
        return _went(c, "settle", after="settled") if row.state is STARTED else Told("settled", c.run)
    if lock is not None and lock.ended:
        return _went(c, "settle", after="replayed") if row.state is STARTED else Told("replayed", c.run)
    if row.state is STARTED or lock is not None:
        return Told("pending", c.run)
    return Told("settled", c.run)


def _stay(c: Caller) -> Next:
    return c


def _give_up_the_second_time(c: Caller) -> Next:
    return Told("stranded", c.run) if c.again else c._replace(again=True)


PROGRAM: dict[str, Statement] = {
    "insert": Statement(
        insert,
        then=lambda c, _: _went(c, "read back"),
        unknown=lambda c: _went(c, "read back"),
        refused=_told("not applied"),
    ),
    "read back": Statement(
        read_row,
        then=go_by_row,
        unknown=_told("unreadable"),
        refused=_told("unreadable"),
        writes=False,
    ),
    "claim": Statement(
        claim,
        then=lambda c, won: _went(c, "fence") if won else _went(c, "look", after="claim"),
        unknown=_told("unknown"),
        refused=_told("not applied"),
    ),
    "look": Statement(
        read_both,
        then=go_by_both,
        unknown=_told("unreadable"),
        refused=_told("unreadable"),
        writes=False,
    ),
    "fence": Statement(
        read_fence,
        then=lambda c, closed: _went(c, "release", again=False) if closed else _went(c, "take"),
        unknown=_told("unreadable"),
        refused=_told("unreadable"),
        writes=False,
    ),
    "release": Statement(
        release,
        then=lambda c, released: Told("fenced", c.run) if released else _went(c, "look", after="release"),
        unknown=_told("stranded"),
        refused=_give_up_the_second_time,
    ),
    "take": Statement(
        insert_lock,
        then=lambda c, _: _went(c, "holder"),
        unknown=lambda c: _went(c, "holder"),
        refused=_stay,
    ),
    "holder": Statement(
        read_holder,
        then=lambda c, mine: _went(c, "work") if mine else _went(c, "look", after="lock"),
        unknown=_stay,
        refused=_stay,
        writes=False,
    ),
    "persist": Statement(
        persist,
        then=lambda c, kept: _went(c, "settle", after="started") if kept else _went(c, "read ended"),
        unknown=lambda c: _went(c, "read ended"),
        refused=_stay,
    ),
    "read ended": Statement(
        read_ended,
        then=lambda c, ended: _went(c, "settle", after="started") if ended else _went(c, "persist"),
        unknown=_stay,
        refused=_stay,
        writes=False,
    ),
    "settle": Statement(
        settle,
        then=lambda c, _: Told(c.after, c.run),
        unknown=lambda c: Told(c.after, c.run),
        refused=lambda c: Told(c.after, c.run),
    ),
    # a cancel
    "cancel: take": Statement(
        lambda w, who, c: (take_lock_as(w, c, CANCEL, needs_started=False), None),
        then=lambda c, _: _went(c, "cancel: holder"),
        unknown=lambda c: _went(c, "cancel: holder"),
        refused=_told("not applied"),
    ),
    "cancel: holder": Statement(
        lambda w, who, c: (w, w.locks[c.run]),
        then=lambda c, lock: (
            _went(c, "cancel: settle") if lock and lock.holder == CANCEL else Told("refused", c.run)
        ),
        unknown=_told("unreadable"),
        refused=_told("unreadable"),
        writes=False,
    ),
    "cancel: settle": Statement(
        settle,
        then=_told("cancelled"),
        unknown=_told("unknown"),
        refused=_told("not applied"),
    ),
    # a free
    "free: look": Statement(
        read_both,
        then=lambda c, seen: _free(c, *seen),
        unknown=_told("unreadable"),
        refused=_told("unreadable"),
        writes=False,
    ),
    "free: take": Statement(
        lambda w, who, c: (take_lock_as(w, c, FREE, needs_started=True), None),
        then=lambda c, _: _went(c, "free: holder"),
        unknown=lambda c: _went(c, "free: holder"),
        refused=_told("not applied"),
    ),
    "free: holder": Statement(
        lambda w, who, c: (w, w.locks[c.run]),
        then=lambda c, lock: (
            _went(c, "free: delete") if lock and lock.holder == FREE else Told("refused", c.run)
        ),
        unknown=_told("unreadable"),
        refused=_told("unreadable"),
        writes=False,
    ),
    "free: delete": Statement(
        lambda w, who, c: (_delete(w, c), None),
        then=_told("freed"),
        unknown=_told("unknown"),
        refused=_told("not applied"),
    ),
}

TRANSIENT: dict[str, Statement] = {
    **PROGRAM,
    "take": Statement(
        take_mutex,
        then=lambda c, taken: _went(c, "work") if taken else _went(c, "look", after="lock"),
        unknown=_stay,
        refused=_stay,
    ),
    "look": PROGRAM["look"]._replace(
        effect=lambda w, who, c: (w, (w.rows[c.key], None)),  # a host's mutex cannot be read
    ),
    "let go": Statement(
        free_mutex, then=lambda c, _: _went(c, "settle", after="started"), unknown=_stay, refused=_stay
    ),
}
"""The same with a host's own mutex for a lock: nothing of it is in the database."""


def _free(c: Caller, row: Row | None, lock: Lock | None) -> Next:
    if row is None:
        return Told("refused", c.run)
    c = c._replace(run=row.run)
    mine = lock is not None and lock.holder == FREE
    if mine or (lock is None and row.state is STARTED):
        return _went(c, "free: take")
    return Told("refused", c.run)


def _delete(w: World, c: Caller) -> World:
    row = w.rows[c.key]
    return w if row is None or row.run != c.run else w._replace(rows=put_at(w.rows, c.key, None))


MAY_BE_STALE = ("read back", "look")
"""Reads that a replica may answer. The fence, the holder and the reads of a free come from the primary."""


def land(w: World, statement: Sent) -> World:
    """Apply a statement that was on its way."""
    who, left = divmod(statement.holder, 100)
    c = Caller(statement.what, statement.key, statement.run, left=left)
    after, _ = PROGRAM[statement.what].effect(w, who, c)
    return after
