"""The operations over one database handle: each method drives one generator to its answer."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from startonce.impl import operations as op
from startonce.impl.statements import Statement
from startonce.model.errors import NotApplied, TableMissing
from startonce.model.operations import Holding, Reserved, Stopped
from startonce.model.reservation import Entry, Lock, Reservation

T = TypeVar("T")
Clock = Callable[[], int]
"""The time now in milliseconds, UTC."""


class Database(Protocol):
    """What a store needs of a database: run one statement, and how many parameters it binds."""

    parameter_limit: int
    schema_ensured: bool

    def run(self, statement: Statement, parameters: tuple[Any, ...]) -> list[Any]:
        """Run one statement on its own and return its rows, or raise one of our errors."""
        ...


def drive(run: Callable[..., Any], operation: Generator[tuple[Any, ...], Any, T]) -> T:
    """Have `run` answer every request of an operation, one after another; return its answer."""
    try:
        request = next(operation)
        while True:
            try:
                reply = run(*request)
            except Exception as error:
                request = operation.throw(error)
            else:
                request = operation.send(reply)
    except StopIteration as stop:
        answer: T = stop.value
        return answer
    except TableMissing as error:
        raise NotApplied("reserve", f"{error.table} was dropped meanwhile") from error


class Reservations:
    """The reservations of one database (RSV, CLM, REL, SET, RD, RUN, PRG, INV)."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._run = database.run
        self._clock = clock

    def reserve(self, key: str, run_id: str) -> Reserved:
        """Decide which run `key` means; `run_id` is a fresh proposal. Raises `Vanished`."""
        database = self._database
        create = not database.schema_ensured
        answer = drive(self._run, op.reserve(key, run_id, self._clock(), create=create))
        database.schema_ensured = True
        return answer

    def claim(self, key: str, run_id: str) -> bool:
        """Take the right to start the run; True for one caller only. Raises `UnknownOutcome`."""
        return drive(self._run, op.claim(key, run_id, self._clock()))

    def release(self, key: str, run_id: str) -> bool:
        """Give a claim back, only after the fence refused this very start, and once (REL-3, REL-4)."""
        return drive(self._run, op.release(key, run_id, self._clock()))

    def settle(self, run_id: str) -> int:
        """Spend every key that names a run which is over or can never begin (DUT-3)."""
        return drive(self._run, op.settle(run_id, self._clock()))

    def read(self, key: str) -> Reservation | None:
        """Read the row of a key; writes nothing."""
        return drive(self._run, op.read(key))

    def for_runs(self, run_ids: Sequence[str]) -> tuple[Reservation, ...]:
        """Read every row naming one of the runs, in order of key. Raises `TooManyRuns`."""
        return drive(self._run, op.for_runs(run_ids, self._database.parameter_limit))

    def for_many_runs(self, run_ids: Iterable[str]) -> tuple[Reservation, ...]:
        """Read the rows of any number of runs: repeats removed, in chunks, joined in order of key."""
        distinct = list(dict.fromkeys(run_ids))
        size = self._database.parameter_limit
        chunks = (distinct[i : i + size] for i in range(0, len(distinct), size))
        return tuple(sorted(row for chunk in chunks for row in self.for_runs(chunk)))

    def purge(self, settled_before: int, limit: int = 1000) -> int:
        """Delete at most `limit` terminal rows last changed before a horizon in milliseconds, UTC."""
        return drive(self._run, op.purge(settled_before, limit))

    def inventory(self, after: tuple[str, str] | None = None, limit: int = 1000) -> tuple[Entry, ...]:
        """Read a page of what a drain waits for; `after` is the (key, run id) of the last entry."""
        return drive(self._run, op.inventory(after, limit))

    def whole_inventory(self, page: int = 1000) -> Iterator[Entry]:
        """Read the inventory page by page, in constant memory."""
        after = None
        while entries := self.inventory(after, page):
            yield from entries
            after = entries[-1][:2]


class RunLocks:
    """The durable run locks of one database (LCK)."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._run = database.run
        self._clock = clock

    def take_lock(self, key: str, run_id: str, holder: str) -> Holding:
        """Take the lock of a started run for one delivery; only `mine` may execute (LCK-2, LCK-4)."""
        return drive(self._run, op.take_lock(key, run_id, holder, self._clock()))

    def lock_of(self, run_id: str) -> Lock | None:
        """Read the lock of a run; writes nothing."""
        return drive(self._run, op.lock_of(run_id))

    def persist(self, run_id: str, holder: str, result: str) -> bool:
        """Mark the execution ended and keep its result, a JSON text. Raises `UnknownOutcome`."""
        return drive(self._run, op.persist(run_id, holder, result))

    def cancel(self, run_id: str) -> Stopped:
        """Keep a run from ever beginning, and spend its keys. Raises `UnknownOutcome`: repeat it."""
        return drive(self._run, op.cancel(run_id, self._clock()))

    def free(self, key: str) -> Stopped:
        """Give a stranded key back if its run never executed (FRE). Raises `UnknownOutcome`: repeat it."""
        return drive(self._run, op.free(key, self._clock()))


class Fence:
    """The execution fence of one database, closed and opened by an operator."""

    def __init__(self, database: Database) -> None:
        self._run = database.run

    def closed(self) -> bool:
        """Say whether starts are refused. Raises `Unreadable`, which is no refusal."""
        return drive(self._run, op.fence())

    def close(self) -> None:
        """Refuse starts that have not begun to execute."""
        drive(self._run, op.close_fence())

    def open(self) -> None:
        """Let starts execute again."""
        drive(self._run, op.open_fence())
