"""What a broken implementation is, and the few ways of making one out of ours."""

from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from startonce.impl.operations import Operation, Request
from startonce.impl.statements import Statement
from startonce.own import OURS, SCHEMA, Operations, Schema, SqlSubject

Change = Callable[[Request], Request]

TIMEOUT = 0.02
"""Seconds that a broken implementation waits for a lock which another one of its callers left behind."""


class Mutant(NamedTuple):
    """A broken implementation: ours with one thing changed.

    `clause` is what it breaks and `mistake` what somebody did there. `seen` names public reports of the
    very mistake, as `docs/track-record.md` names them. `blind` says why the machine alone cannot see it,
    where it cannot. `own` says that its statements are not those of the model: it is held as a foreign
    implementation is, by what it does.
    """

    clause: str
    mistake: str
    operations: Operations = OURS
    schema: Schema = SCHEMA
    seen: tuple[str, ...] = ()
    blind: str = ""
    own: bool = False
    kind: type[SqlSubject] = SqlSubject

    def subject(self, path: str | Path = ":memory:", *, held: bool = False) -> SqlSubject:
        """Return it as a subject, with a database in memory or in a file.

        `held`: its callers can be held between its statements, whatever those are.
        """
        stepping = held or not self.own
        return self.kind(path, self.operations, timeout=TIMEOUT, schema=self.schema, stepping=stepping)


def rewriting(operation: Operation[Any], change: Change) -> Operation[Any]:
    """Run an operation with some of its statements changed."""
    try:
        request = next(operation)
        while True:
            try:
                reply = yield change(request)
            except Exception as error:
                request = operation.throw(error)
            else:
                request = operation.send(reply)
    except StopIteration as stop:
        return stop.value


def changed(name: str, old: str, new: str, pick: Sequence[int] | None = None) -> Operations:
    """Our operations with a piece of one statement replaced, and some parameters left out."""

    def change(request: Request) -> Request:
        statement, parameters = request
        if statement.name != name:
            return request
        if pick is not None:
            parameters = tuple(parameters[place] for place in pick)
        return statement._replace(sql=_replaced(statement.sql, old, new)), parameters

    def wrap(ours: Callable[..., Operation[Any]]) -> Callable[..., Operation[Any]]:
        return lambda *args, **more: rewriting(ours(*args, **more), change)

    return {operation: wrap(ours) for operation, ours in OURS.items()}


def instead(**operations: Callable[..., Generator[Request, Any, Any]]) -> Operations:
    """Our operations with some of them replaced."""
    return {**OURS, **operations}


def table(name: str, *changes: tuple[str, str], more: Sequence[str] = ()) -> Mapping[str, Any]:
    """Our schema with pieces of one table's definition replaced, and more statements after it.

    Returns what a `Mutant` needs: its schema, and operations that create the table in the same way.
    """
    create, *indexes = SCHEMA[name]
    text = create.sql
    for old, new in changes:
        text = _replaced(text, old, new)
    besides = [Statement("create index", one, True, ()) for one in more]
    schema = {**SCHEMA, name: (create._replace(sql=text), *indexes, *besides)}
    operations = changed(create.name, create.sql, text)
    return MappingProxyType({"schema": schema, "operations": operations})


def _replaced(text: str, old: str, new: str) -> str:
    if old not in text:
        raise ValueError(f"the statement no longer contains {old!r}")
    return text.replace(old, new)
