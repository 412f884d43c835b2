"""Start reservations on PostgreSQL, for asyncio: a key means one run, and one caller may start it.

Every statement borrows a connection of its own: after a lost one the next statement gets another.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import driver_errors
import psycopg
import statements as sql
from driver_errors import NoTable
from values import (
    Entry,
    Lock,
    OutcomeUnknown,
    Reservation,
    Stopped,
    Unreadable,
    Vanished,
    check_holder,
    check_ids,
    check_number,
    check_text,
    entry,
    refused,
    reservation,
)

Row = tuple[Any, ...]
KEYS, RUNS, FENCE = "reservation", "run_lock", "start_fence"


class Store:
    """The operations. They raise `StoreError`s.

    `connect` lends a connection with autocommit, as a pool's `connection` does; `clock` gives
    milliseconds, UTC.
    """

    def __init__(
        self,
        connect: Callable[[], AbstractAsyncContextManager[psycopg.AsyncConnection[Row]]],
        clock: Callable[[], int],
    ) -> None:
        self._connect = connect
        self._clock = clock

    # --- the life of a key ------------------------------------------------------------------------------

    async def reserve(self, key: str, run_id: str) -> tuple[Reservation, bool]:
        """Let a key mean a run unless it means one; give the row, and whether this call made it.

        That it did is not permission to start: claim it. Raises `Vanished`.
        """
        check_ids(key, run_id)
        inserted = 0
        with suppress(OutcomeUnknown):  # the read-back tells what became of it
            inserted = await self._creating(
                lambda: self._write(sql.INSERT, KEYS, RUNS, key=key, run_id=run_id, now=self._clock()),
                (sql.CREATE_LOCKS, sql.CREATE_RESERVATIONS, sql.CREATE_INDEX),
            )
        row = await self._row(key)
        if row is None:
            raise Vanished(f"{key} was purged or freed meanwhile")
        return row, inserted == 1 and row.run_id == run_id

    async def claim(self, key: str, run_id: str) -> bool:
        """Move a key from reserved to started; True for the one caller who did."""
        check_ids(key, run_id)
        return bool(await self._change(sql.CLAIM, KEYS, key=key, run_id=run_id, now=self._clock()))

    async def release(self, key: str, run_id: str) -> bool:
        """Give a claim back that this caller won, after the fence refused its start."""
        check_ids(key, run_id)
        return bool(await self._change(sql.RELEASE, KEYS, key=key, run_id=run_id, now=self._clock()))

    async def settle(self, run_id: str) -> int:
        """End every key of a run that is over or can never begin; give how many that were."""
        check_ids(run_id)
        return await self._change(sql.SETTLE, KEYS, run_id=run_id, now=self._clock())

    async def read(self, key: str) -> Reservation | None:
        """Read the row of a key."""
        check_ids(key)
        return await self._row(key)

    async def for_runs(self, *run_ids: str) -> list[Reservation]:
        """Read every row that names one of some runs."""
        check_ids(*run_ids)
        if not run_ids:
            return []
        return [reservation(row) for row in await self._read(sql.FOR_RUNS, KEYS, run_ids=list(run_ids))]

    async def purge(self, before: int, limit: int) -> int:
        """Delete terminal rows last changed before a time, the oldest first; give how many."""
        check_number(before)
        check_number(limit, 1)
        return await self._change(sql.PURGE, KEYS, before=before, limit=limit)

    async def inventory(self, after: Sequence[str] | None, limit: int) -> list[Entry]:
        """List what a drain must wait for or explain, after a key and run."""
        check_ids(*(after or ()))
        check_number(limit, 1)
        key, run_id = after or ("", "")
        try:
            rows = await self._fetch(sql.INVENTORY, (KEYS, RUNS), key=key, run_id=run_id, limit=limit)
        except NoTable as error:
            if error.args == (KEYS,):
                return []
            raise Unreadable("there is no table of locks") from error  # empty would end a drain too early
        return [entry(*row) for row in rows]

    # --- the lock of a run ------------------------------------------------------------------------------

    async def take_lock(self, key: str, run_id: str, holder: str) -> tuple[bool, str | None]:
        """Take the lock of a started run; give whether it is mine, and whose it is. Execute if mine."""
        check_ids(key, run_id)
        check_holder(holder)
        await self._insert_lock(key, run_id, holder)
        lock = await self._lock(run_id)
        found = lock.holder if lock else None
        return found == holder, found

    async def lock_of(self, run_id: str) -> Lock | None:
        """Read the lock of a run."""
        check_ids(run_id)
        return await self._lock(run_id)

    async def persist(self, run_id: str, holder: str, result: str) -> bool:
        """Mark the execution of a run ended, and keep its result."""
        check_ids(run_id)
        check_holder(holder)
        check_text(result)
        return bool(await self._change(sql.PERSIST, RUNS, run_id=run_id, holder=holder, result=result))

    async def cancel(self, run_id: str) -> Stopped:
        """See to it that a run never begins, and end its keys, unless an execution has it."""
        check_ids(run_id)
        with suppress(OutcomeUnknown):
            await self._change(sql.INSERT_CANCEL, RUNS, run_id=run_id, now=self._clock())
        lock = await self._lock(run_id)
        if lock is None or lock.holder != "cancel":
            return refused(lock)
        await self.settle(run_id)
        return Stopped(True, "cancelled")

    async def free(self, key: str) -> Stopped:
        """Give a key back whose run was started and provably never executed."""
        check_ids(key)
        row, lock = await self._both(key)
        if row is None:
            return Stopped(False, "no row")
        if lock is None or lock.holder != "free":
            if row.state != "started":
                return Stopped(False, f"it is {row.state}")
            if lock is not None:
                return refused(lock)
        await self._insert_lock(key, row.run_id, "free")
        lock = await self._lock(row.run_id)
        if lock is None or lock.holder != "free":
            return refused(lock)
        await self._change(sql.DELETE, KEYS, key=key, run_id=row.run_id)
        return Stopped(True, "freed")

    # --- the fence --------------------------------------------------------------------------------------

    async def fence(self) -> bool:
        """Say whether starts are refused."""
        return (True,) in await self._read(sql.READ_FENCE, FENCE)

    async def close_fence(self) -> None:
        """Refuse starts from now on."""
        await self._creating(lambda: self._write(sql.WRITE_FENCE, FENCE, closed=True), (sql.CREATE_FENCE,))

    async def open_fence(self) -> None:
        """Let starts through again."""
        await self._creating(lambda: self._write(sql.WRITE_FENCE, FENCE, closed=False), (sql.CREATE_FENCE,))

    # --- what the operations share ----------------------------------------------------------------------

    async def _row(self, key: str) -> Reservation | None:
        rows = await self._read(sql.READ, KEYS, key=key)
        return reservation(rows[0]) if rows else None

    async def _lock(self, run_id: str) -> Lock | None:
        rows = await self._read(sql.READ_LOCK, RUNS, run_id=run_id)
        return Lock(*rows[0]) if rows else None

    async def _both(self, key: str) -> tuple[Reservation | None, Lock | None]:
        """Read a row and the lock of its run, at one moment."""
        try:
            rows = await self._fetch(sql.READ_BOTH, (KEYS, RUNS), key=key)
        except NoTable as error:
            # Nobody holds a lock where there is no table of them; the row is still there to tell.
            return (None if error.args == (KEYS,) else await self._row(key)), None
        if not rows:
            return None, None
        lock = rows[0][5:]
        return reservation(rows[0][:5]), None if lock[0] is None else Lock(*lock)

    async def _insert_lock(self, key: str, run_id: str, holder: str) -> None:
        """Try to take a lock. What became of it, only the holder that is read back says."""
        with suppress(OutcomeUnknown):
            await self._change(
                sql.INSERT_LOCK, KEYS, RUNS, key=key, run_id=run_id, holder=holder, now=self._clock()
            )

    async def _creating(self, write: Callable[[], Awaitable[int]], creates: Sequence[str]) -> int:
        """Write; where a table is missing create what is needed and write again."""
        try:
            return await write()
        except NoTable:
            for create in creates:
                await self._create(create)
            return await write()

    async def _create(self, statement: str) -> None:
        try:
            await self._execute(statement)
        except psycopg.Error as error:
            if error.sqlstate not in driver_errors.ALREADY_THERE:
                raise driver_errors.of_write(error, ()) from error

    async def _change(self, statement: str, *tables: str, **values: object) -> int:
        """Write, where no table means that there is nothing to change; give the number of rows."""
        try:
            return await self._write(statement, *tables, **values)
        except NoTable:
            return 0

    async def _write(self, statement: str, *tables: str, **values: object) -> int:
        try:
            return len(await self._execute(statement, **values))
        except psycopg.Error as error:
            raise driver_errors.of_write(error, tables) from error

    async def _read(self, statement: str, *tables: str, **values: object) -> list[Row]:
        """Read, where no table means that there are no rows."""
        try:
            return await self._fetch(statement, tables, **values)
        except NoTable:
            return []

    async def _fetch(self, statement: str, tables: Sequence[str], **values: object) -> list[Row]:
        try:
            return await self._execute(statement, **values)
        except psycopg.Error as error:
            raise driver_errors.of_read(error, tables) from error

    async def _execute(self, statement: str, **values: object) -> list[Row]:
        async with self._connect() as connection:
            cursor = await connection.execute(statement, values)
            return await cursor.fetchall() if cursor.description else []
