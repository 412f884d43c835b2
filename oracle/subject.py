"""The one small interface by which the oracle knows what it tests.

A subject is an implementation with its database, empty and its own to write to. The least it offers:
put the database into a given state, show all of it, and run an operation. What else it can do, it says in
`capabilities`; what that leaves unchecked is reported as not checked.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from startonce.model.errors import name_of, shown
from startonce.model.operations import PROGRAMS, Call, Ended, Fault, Raised
from startonce.model.reservation import Database, Reservation

STEPPING = "stepping"
"""Callers can be held between statements: `Held.statement` names the next one, as the model does."""
FAULTS = "faults"
"""A statement can fail, lose its reply, or land late."""
REPLICA = "replica"
"""Reads can be answered by a replica that stays behind: `pin`, `unpin`."""
DENY = "deny"
"""The permission to write can be taken away: `deny`."""
PROBES = "probes"
"""The schema can be spoiled: `spoil`, `unspoil`."""
OPERATIONS = frozenset(PROGRAMS)
"""Each operation is a capability too."""


class Held(Protocol):
    """One operation under way, held before its next statement.

    `statement` is that statement's name in the model, or None where the operation runs as a whole.
    """

    statement: str | None

    def step(self, fault: Fault = Fault.NONE) -> Ended | None:
        """Run the next statement under a fault; the answer if the operation ended, else None.

        Errors of the implementation come as `Ended(Raised(kind))`.
        """
        ...

    def crash(self) -> None:
        """The caller is gone; nothing more of it is run."""
        ...


class Subject(ABC):
    """An implementation under test."""

    name: str = "an implementation"
    capabilities: frozenset[str] = OPERATIONS
    not_applicable: Mapping[str, str] = MappingProxyType({})
    """Clauses that say nothing about this implementation, and why."""
    absent: bool = True
    """Whether `put` can leave a database without tables."""
    parameter_limit: int | None = None
    """How many run ids `for_runs` binds in one statement, where there is such a limit."""

    @abstractmethod
    def put(self, db: Database) -> None:
        """Make the database be exactly this: a table that is None must not exist afterwards."""

    @abstractmethod
    def dump(self) -> Database:
        """Show everything in the database, read by other means than the operations.

        Rows are `Reservation`s in order of key; without the table they are None.

        A subject without run locks shows no locks, `()`, where it has reservations.
        """

    def put_rows(self, rows: tuple[Reservation, ...], present: Sequence[Any]) -> None:
        """Replace the reservations, of which these are present; override it where `put` is slow."""
        self.put(Database(rows, ()))

    def dump_rows(self) -> tuple[Any, ...]:
        """Show the reservations alone, in order of key; override it where `dump` is slow."""
        return self.dump().rows or ()

    @abstractmethod
    def begin(self, caller: int, call: Call) -> Held:
        """Begin an operation for a caller, counted from 0, without running anything of it."""

    def carries(self, call: Call) -> bool:
        """Say whether the arguments of a call can be told to this implementation at all."""
        return True

    def land(self, held: Held) -> None:
        """Apply the statement of a caller that went on without its reply."""
        raise NotImplementedError

    def pin(self) -> None:
        """From now on stale reads are answered from the database as it is at this moment."""
        raise NotImplementedError

    def unpin(self) -> None:
        """Let the replica catch up."""
        raise NotImplementedError

    def deny(self, denied: bool) -> None:
        """Refuse, or again allow, every write of every caller."""
        raise NotImplementedError

    def spoil(self, how: str, key: str) -> None:
        """Empty the database and spoil its schema around a key.

        `refused`: the schema refuses this key. `wanting`: it demands a value that no insert gives. `state`,
        `run id`, `time`: the row of the key has one that cannot be. `elsewhere`: reading the reservations
        runs into another table, which is missing.
        """
        raise NotImplementedError

    def unspoil(self) -> None:
        """Leave a database without our tables."""
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027 (not every subject has something to give back)
        """Give everything back."""


class Whole:
    """An operation of a subject that cannot be held: it runs in one step."""

    statement: str | None = None

    def __init__(self, subject: "Plain", call: Call) -> None:
        self._subject = subject
        self._call = call

    def step(self, fault: Fault = Fault.NONE) -> Ended | None:
        """Run the whole operation; an exception that escapes from it is its answer."""
        call = self._call
        try:
            return Ended(self._subject.call(call.operation, *call.args, now=call.now))
        except Exception as error:
            return Ended(Raised(f"{name_of(error)}: {shown(str(error))}"))

    def crash(self) -> None:
        """Nothing has run."""


class Together:
    """A held operation whose statements all run in one step."""

    statement: str | None = None

    def __init__(self, held: Held) -> None:
        self._held = held

    def step(self, fault: Fault = Fault.NONE) -> Ended | None:
        """Run every statement that is left."""
        outcome = self._held.step()
        while outcome is None:
            outcome = self._held.step()
        return outcome

    def crash(self) -> None:
        """Nothing more is run."""
        self._held.crash()


class Plain(Subject):
    """A subject whose operations run as a whole: write `put`, `dump` and `call`."""

    @abstractmethod
    def call(self, operation: str, *args: Any, now: int) -> Any:
        """Run an operation at a clock reading and return its answer, as the model's values.

        `reserve` answers `Reserved(row, created)`, `claim` and `release` a bool, `settle` and `purge` a
        number, `read` a `Reservation` or None, `for_runs` a tuple of them. An error is answered as one of
        the model's `Raised`: `INVALID` for what is no key or run id (1 to 200 of A-Z a-z 0-9 . _ ~ -),
        `VANISHED`, `UNKNOWN`, `NOT_APPLIED`, `UNREADABLE`.
        """

    def begin(self, caller: int, call: Call) -> Held:
        """Begin an operation."""
        return Whole(self, call)
