"""What several tests need: ids and times that are counted, and a start held between any two statements."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from startonce.impl.databases.sqlite import SqliteDatabase, connect
from startonce.impl.execution import Done, Execute, Failed, Run
from startonce.impl.operations import Request
from startonce.impl.start import Answer, start
from startonce.model.errors import NotApplied, TableMissing, UnknownOutcome, Unreadable
from startonce.model.operations import Fault

Work = Callable[[Run], Any]


def counted(prefix: str) -> Callable[[], str]:
    """Mint a-1, a-2, and so on."""
    numbers = count(1)
    return lambda: f"{prefix}-{next(numbers)}"


def ticking(first: int = 1000) -> Callable[[], int]:
    """Tell a time that moves by one millisecond at every look."""
    times = count(first)
    return lambda: next(times)


class Held:
    """A start driven by hand: it stands before `name`, which is a statement, `execute` or `over`."""

    def __init__(
        self,
        database: SqliteDatabase,
        key: str = "k",
        mint: Callable[[], str] | None = None,
        work: Work = lambda run: run.run_id,
        clock: Callable[[], int] | None = None,
    ) -> None:
        self.database = database
        self.work = work
        self.late: list[Request] = []
        self.outcome: Answer | Exception | None = None
        self._start = start(
            key, mint or counted("r"), clock or ticking(), create=not database.schema_ensured
        )
        self._on(lambda: next(self._start))

    def _on(self, resume: Callable[[], Request | Execute]) -> None:
        self.request: Request | Execute | None = None
        try:
            self.request = resume()
        except StopIteration as stop:
            value = stop.value
            self.outcome = value.error if isinstance(value, Failed) else value
        except TableMissing as error:  # as `store.drive` does
            self.outcome = NotApplied("reserve", str(error))
        except Exception as error:
            self.outcome = error

    @property
    def name(self) -> str:
        """Say what is next."""
        if self.request is None:
            return "over"
        return "execute" if isinstance(self.request, Execute) else self.request[0].name

    def send(self, reply: Any) -> None:
        """Answer what is next."""
        self._on(lambda: self._start.send(reply))

    def throw(self, error: Exception) -> None:
        """Let what is next fail."""
        self._on(lambda: self._start.throw(error))

    def step(self, fault: Fault = Fault.NONE) -> None:
        """Run what is next on the real database, under a fault."""
        assert self.request is not None, "the start is over"
        if isinstance(self.request, Execute):
            try:
                done: Done | Failed = Done(self.work(self.request.run))
            except Exception as error:
                done = Failed(error)
            return self.send(done)
        statement, parameters = self.request
        if fault is not Fault.NONE and not statement.writes:
            return self.throw(Unreadable(statement.name, "injected"))
        if fault is Fault.NOT_APPLIED:
            return self.throw(NotApplied(statement.name, "injected"))
        if fault is Fault.LATE:
            self.late.append(self.request)
            return self.throw(UnknownOutcome(statement.name, "injected"))
        try:
            rows = self.database.run(statement, parameters)
        except Exception as error:
            return self.throw(error)
        if fault is Fault.LOST:
            return self.throw(UnknownOutcome(statement.name, "injected"))
        return self.send(rows)

    def until(self, name: str) -> "Held":
        """Run until this is next."""
        while self.name != name:
            assert self.name != "over", f"never came to {name}: {self.outcome!r}"
            self.step()
        return self

    def finish(self) -> Answer:
        """Run to the end; give the answer, or raise the error."""
        self.until("over")
        if isinstance(self.outcome, Exception):
            raise self.outcome
        assert self.outcome is not None
        return self.outcome

    def land(self) -> None:
        """Apply what was on its way, for nobody."""
        while self.late:
            self.database.run(*self.late.pop(0))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    """Give a new WAL file."""
    opened = connect(tmp_path / "app.db")
    opened.connection.execute("PRAGMA synchronous = OFF")  # no power is cut here
    yield opened
    opened.close()
