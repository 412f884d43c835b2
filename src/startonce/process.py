"""A real caller or operator, held before its next statement, in the words of the model."""

from collections.abc import Callable
from typing import Any, NamedTuple

from startonce.impl import start as answers
from startonce.impl.databases.sqlite import SqliteDatabase
from startonce.impl.execution import Execute
from startonce.model.errors import NotApplied, ResultNotPersisted, UnknownOutcome, Unreadable
from startonce.model.operations import Stopped


class Named(NamedTuple):
    """A statement in the model's words, and which of its parameters are the key and the run id."""

    name: str
    key: int | None = None
    run: int | None = None


STATEMENTS = {
    "insert": Named("insert", 0, 1),
    "read back": Named("read back", 0),
    "claim": Named("claim", 1, 2),
    "read both": Named("look", 0),
    "read fence": Named("fence"),
    "release": Named("release", 1, 2),
    "insert lock": Named("take", 2, 3),
    "read holder": Named("holder", run=0),
    "persist": Named("persist", run=1),
    "read lock": Named("read ended", run=0),
    "settle": Named("settle", run=1),
    "insert cancel": Named("take", run=0),
    "insert free": Named("take", 2, 3),
    "delete": Named("delete", 0, 1),
}
"""The statements of starts, cancels and frees."""

ANSWERS: dict[type, str] = {
    answers.Started: "started",
    answers.Replayed: "replayed",
    answers.Pending: "pending",
    answers.Settled: "settled",
    answers.Retry: "retry",
    answers.Fenced: "fenced",
    answers.FencedStranded: "stranded",
    UnknownOutcome: "unknown",
    NotApplied: "not applied",
    Unreadable: "unreadable",
    ResultNotPersisted: "not persisted",
}
"""What a start is answered, or raises."""


class Process:
    """It stands before a request, or is over with an outcome, or has crashed.

    `kind` is put before the names of an operator's statements; `token` is the number by which the model
    knows this delivery where it holds a lock.
    """

    def __init__(self, operation: Any, database: SqliteDatabase, kind: str = "", token: int = 0) -> None:
        self.operation, self.database, self.kind, self.token = operation, database, kind, token
        self.request: Any = None
        self.outcome: Any = None
        self.crashed = self.executed = False
        self._on(lambda: next(operation))

    def _on(self, resume: Callable[[], Any]) -> None:
        self.request = None
        try:
            self.request = resume()
        except StopIteration as stop:
            self.outcome = stop.value
        except Exception as error:
            self.outcome = error

    def send(self, reply: Any) -> None:
        """Answer its request."""
        self.executed |= self.at == "work"
        self._on(lambda: self.operation.send(reply))

    def throw(self, error: Exception) -> None:
        """Let its request fail."""
        self._on(lambda: self.operation.throw(error))

    def run(self) -> Any:
        """Run its statement, and return the rows that it was sent."""
        try:
            rows = self.database.run(*self.request)
        except Exception as error:
            return self.throw(error)
        self.send(rows)
        return rows

    def crash(self) -> None:
        """Be gone, with whatever it knew."""
        self.operation.close()
        self.request, self.crashed = None, True

    @property
    def at(self) -> str:
        """Say where it stands: the name of its statement, `work`, `over` or `crashed`."""
        if self.request is None:
            return "crashed" if self.crashed else "over"
        if isinstance(self.request, Execute):
            return "work"
        name = STATEMENTS[self.request[0].name].name
        if name == "read ended" and not self.executed:
            name = "holder"  # a holder that could not be read is read again by another statement
        return self.kind + name

    @property
    def subject(self) -> tuple[str | None, str | None]:
        """Give the key and the run id that its request names."""
        if isinstance(self.request, Execute):
            return self.request.run.key, self.request.run.run_id
        statement, parameters = self.request
        _, key, run = STATEMENTS[statement.name]
        return None if key is None else parameters[key], None if run is None else parameters[run]

    @property
    def answer(self) -> str:
        """Say what it was answered; nothing before its end."""
        if self.at != "over":
            return ""
        if isinstance(self.outcome, Stopped):
            return self.outcome.reason if self.outcome.done else "refused"
        return ANSWERS.get(type(self.outcome), type(self.outcome).__name__)
