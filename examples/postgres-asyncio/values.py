"""What the store gives and raises, and what it takes for a key."""

import re
from typing import Any, NamedTuple


class Reservation(NamedTuple):
    """Which run a key means: `state` is reserved, started or terminal; times are milliseconds, UTC."""

    key: str
    run_id: str
    state: str
    created_at: int
    updated_at: int


class Lock(NamedTuple):
    """Who may execute a run: an execution's token, or the words `cancel` and `free`. It stays for good."""

    run_id: str
    key: str | None
    holder: str
    ended: bool
    result: str | None
    created_at: int


class Entry(NamedTuple):
    """What a drain must wait for or explain."""

    key: str
    run_id: str
    state: str | None
    holder: str | None
    ended: bool
    kind: str


class Stopped(NamedTuple):
    """What `cancel` and `free` did, or why they refuse; the result of a run that has ended."""

    done: bool
    reason: str
    result: str | None = None


class StoreError(Exception):
    """What the store raises."""


class InvalidInput(StoreError, ValueError):
    """An argument is not what it must be; nothing was sent."""


class Vanished(StoreError):
    """The row was purged or freed before it could be read back: try again, with a fresh run id."""


class NotApplied(StoreError):
    """A write certainly changed nothing."""


class OutcomeUnknown(StoreError):
    """Nobody knows whether a write was applied, or will be: it is neither won nor lost."""


class Unreadable(StoreError):
    """The database cannot tell. Never take this for "there is no such key"."""


class ValueRefused(StoreError):
    """The schema refuses a value."""


# --- arguments ------------------------------------------------------------------------------------------

_id = re.compile(r"[A-Za-z0-9._~-]{1,200}").fullmatch


def check_ids(*values: object) -> None:
    """Refuse what is no key and no run id. Raises `InvalidInput`."""
    for value in values:
        if not isinstance(value, str) or _id(value) is None:
            raise InvalidInput(f"no key or run id: {value!r:.80}")


def check_holder(value: object) -> None:
    """Refuse what is no token of an execution: the operators' words are none. Raises `InvalidInput`."""
    check_ids(value)
    if value in ("cancel", "free"):
        raise InvalidInput(f"no execution is called {value}")


def check_text(value: object) -> None:
    """Refuse what PostgreSQL cannot keep as a text. Raises `InvalidInput`."""
    if not isinstance(value, str) or "\0" in value or not _encodes(value):
        raise InvalidInput("no JSON text")


def check_number(value: object, least: int = -(2**63)) -> None:
    """Refuse what is no integer of 64 bits. Raises `InvalidInput`."""
    if type(value) is not int or not least <= value < 2**63:
        raise InvalidInput(f"no number that fits: {value!r:.80}")


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


# --- rows -----------------------------------------------------------------------------------------------


def reservation(values: tuple[Any, ...]) -> Reservation:
    """Read a row as it came. Raises `Unreadable` for one that cannot be."""
    row = Reservation(*values)
    texts, times = (row.key, row.run_id), (row.created_at, row.updated_at)
    known = row.state in ("reserved", "started", "terminal")
    if not (known and all(type(v) is str for v in texts) and all(type(v) is int for v in times)):
        raise Unreadable(f"a reservation that cannot be: {values!r:.200}")
    return row


def entry(key: str, run_id: str, state: str | None, holder: str | None, ended: bool) -> Entry:
    """Say of which kind an entry of the inventory is."""
    if state in (None, "terminal"):
        kind = "settled or purged, still held"
    elif holder is None:
        kind = "reserved" if state == "reserved" else "never reached the lock"
    elif holder in ("cancel", "free"):
        kind = f"held by a {holder}"
    else:
        kind = "ended, not settled" if ended else "reached the lock, not ended"
    return Entry(key, run_id, state, holder, ended, kind)


def refused(lock: Lock | None) -> Stopped:
    """Say why nothing was cancelled or freed, by who holds the lock."""
    if lock is None:
        return Stopped(False, "nobody holds its lock")
    if lock.holder in ("cancel", "free"):
        return Stopped(False, f"a {lock.holder} holds its lock")
    if lock.ended:
        return Stopped(False, "it has ended", lock.result)
    return Stopped(False, "an execution holds its lock")
