"""Callers that are held before each of their statements, and what can befall a statement there."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import psycopg
import statements as sql

Stop = dict[str, Any]
Row = tuple[Any, ...]

LABELS = {
    sql.CREATE_RESERVATIONS: "create reservations", sql.CREATE_LOCKS: "create locks",
    sql.CREATE_INDEX: "create index", sql.CREATE_FENCE: "create fence",
    sql.INSERT: "insert", sql.READ: "read", sql.CLAIM: "claim", sql.RELEASE: "release",
    sql.FOR_RUNS: "for runs", sql.PURGE: "purge", sql.INVENTORY: "inventory", sql.DELETE: "delete",
    sql.SETTLE: "settle",
    sql.INSERT_LOCK: "insert lock", sql.INSERT_CANCEL: "insert cancel", sql.READ_LOCK: "read lock",
    sql.PERSIST: "persist", sql.READ_BOTH: "read both", sql.READ_FENCE: "read fence",
}  # fmt: skip
"""The oracle's names of the statements."""

OTHERWISE = {
    ("reserve", sql.READ): "read back", ("free", sql.READ): "read both",
    ("free", sql.INSERT_LOCK): "insert free", ("free", sql.READ_LOCK): "read holder",
    ("take_lock", sql.READ_LOCK): "read holder", ("cancel", sql.READ_LOCK): "read holder",
    ("close_fence", sql.WRITE_FENCE): "close fence", ("open_fence", sql.WRITE_FENCE): "open fence",
}  # fmt: skip
"""Where a statement has another name in an operation."""


class Statement(NamedTuple):
    """A statement that a store is about to run."""

    label: str
    text: str
    values: dict[str, Any]

    @property
    def writes(self) -> bool:
        """Whether it can change anything."""
        return not self.text.lstrip().startswith("SELECT")


def named(operation: str, text: str, values: dict[str, Any]) -> Statement:
    """Give a statement of an operation its name."""
    return Statement(OTHERWISE.get((operation, text)) or LABELS[text], text, values)


Run = Callable[[Statement], Awaitable[psycopg.AsyncCursor[Row]]]


class Lent:
    """What the store takes for a connection: each statement goes to `run`."""

    def __init__(self, operation: str, run: Run) -> None:
        self._operation = operation
        self._run = run

    async def execute(self, text: str, values: dict[str, Any]) -> psycopg.AsyncCursor[Row]:
        """Run a statement as `AsyncConnection.execute` does."""
        return await self._run(named(self._operation, text, values))

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Any]:
        """Lend this in place of a connection."""
        yield self


class Held:
    """An operation under way, which waits before each of its statements until it is told to go on."""

    def __init__(self) -> None:
        self._stopped: asyncio.Future[Stop] = asyncio.Future()
        self._go: asyncio.Future[str | None] | None = None
        self._task: asyncio.Task[None] | None = None

    async def begin(self, operation: Awaitable[Stop]) -> Stop:
        """Begin an operation, which calls `reach` before each statement; give where it stops."""
        self._task = asyncio.create_task(self._see_through(operation))
        return await self._stopped

    async def _see_through(self, operation: Awaitable[Stop]) -> None:
        stop = await operation
        self._stopped.set_result(stop)

    async def reach(self, statement: Statement) -> str | None:
        """Wait before a statement; give the fault that is to befall it."""
        self._go = asyncio.Future()
        self._stopped.set_result({"at": statement.label, "writes": statement.writes})
        return await self._go

    async def step(self, fault: str | None) -> Stop:
        """Let the operation run its statement and give where it stops next."""
        if self._go is None:
            return {"at": None}
        go, self._go = self._go, None
        self._stopped = asyncio.Future()
        go.set_result(fault)
        return await self._stopped

    async def crash(self) -> None:
        """The caller is gone: nothing more is run."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task


class Caller:
    """A caller with its connection. What it sends late waits in `late`."""

    def __init__(self, connection: psycopg.AsyncConnection[Row], replica: "Replica") -> None:
        self._connection = connection
        self._replica = replica
        self._late: list[Statement] = []
        self.held: Held | None = None

    async def run(self, statement: Statement, fault: str | None = None) -> psycopg.AsyncCursor[Row]:
        """Run a statement under a fault. Raises what the driver raises then."""
        if fault == "not applied":
            raise psycopg.errors.SerializationFailure("could not serialize access due to concurrent update")
        if fault == "stale":
            return await self._replica.run(statement)
        if fault == "late":
            self._late.append(statement)
        else:
            sent = self._connection.execute(statement.text, statement.values)
            if fault is None:
                return await sent
            with suppress(psycopg.Error):  # a refusal is lost like every other reply
                await sent
        raise psycopg.OperationalError("consuming input failed: server closed the connection unexpectedly")

    async def land(self) -> None:
        """Run the oldest statement that is on its way, if there is one."""
        if self._late:
            with suppress(psycopg.Error):
                await self.run(self._late.pop(0))

    async def skip(self) -> psycopg.AsyncCursor[Row]:
        """Do nothing, and give what a statement gives that did nothing."""
        return await self._connection.execute("SELECT")

    def forget(self) -> None:
        """Nothing is on its way any more."""
        self._late.clear()

    async def crash(self) -> None:
        """Let go of the operation under way."""
        if self.held is not None:
            await self.held.crash()
        self.held = None

    async def deny(self, denied: bool) -> None:
        """Have PostgreSQL refuse, or again allow, whatever writes on this connection."""
        await self._connection.execute(f"SET default_transaction_read_only = {'on' if denied else 'off'}")


class Replica:
    """A snapshot that was taken at some moment: what a replica that stays behind would answer from."""

    def __init__(self, connection: psycopg.AsyncConnection[Row]) -> None:
        self._connection = connection

    async def pin(self) -> None:
        """Take the snapshot."""
        await self.unpin()
        await self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        await self._connection.execute("SELECT 1")  # the first query takes it

    async def unpin(self) -> None:
        """Let go of the snapshot."""
        await self._connection.rollback()

    async def run(self, statement: Statement) -> psycopg.AsyncCursor[Row]:
        """Read from the snapshot, and keep no lock on the tables."""
        async with self._connection.transaction(force_rollback=True):
            return await self._connection.execute(statement.text, statement.values)
