"""A deployment: reservations, fence and run locks over one database handle (DB-1)."""

import secrets
import time
from collections.abc import Callable
from typing import Any

from startonce.impl.execution import Done, Failed, Run
from startonce.impl.start import Answer, start
from startonce.impl.statements import Statement
from startonce.impl.store import Clock, Database, Fence, Reservations, RunLocks, drive


def system_clock() -> int:
    """Return the time in milliseconds, UTC."""
    return time.time_ns() // 1_000_000


def fresh_id() -> str:
    """Mint an id of 128 random bits, for a run or for one delivery (DUT-1, LCK-1)."""
    return secrets.token_hex(16)


class Deployment:
    """Starts runs once. Everything it uses is reached through the one handle it is given.

    `clock` gives milliseconds, UTC; `mint` gives a fresh id at every call. An instance belongs to one
    caller at a time, as its connection does.
    """

    def __init__(
        self, database: Database, *, clock: Clock = system_clock, mint: Callable[[], str] = fresh_id
    ) -> None:
        self.database = database
        self.reservations = Reservations(database, clock)
        self.locks = RunLocks(database, clock)
        self.fence = Fence(database)
        self._clock = clock
        self._mint = mint

    def start(self, key: str, work: Callable[[Run], Any]) -> Answer:
        """Start the run that `key` means, once, and say what became of it.

        `work` is called at most once, with the key and the run id, and returns a JSON value; it should
        hand the run id on to whatever it pays. An error it raises is kept, raised, and repeated to every
        later caller as `WorkFailed`. Errors: see `startonce.impl.start.start`.
        """
        database = self.database
        create = not database.schema_ensured

        def perform(request: Statement | Run, parameters: tuple[Any, ...] = ()) -> Any:
            if isinstance(request, Statement):
                return database.run(request, parameters)
            database.schema_ensured = True
            try:
                return Done(work(request))
            except Exception as error:
                return Failed(error)

        answer = drive(perform, start(key, self._mint, self._clock, create))
        if isinstance(answer, Failed):
            raise answer.error
        return answer
