"""Serves a subject of this process as an adapter: the other side of the wire.

For tests of the wire, and for running broken implementations as if they were foreign ones. It is no
example of an adapter; the page has one.
"""

import json
import socket
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO

from startonce.model.errors import name_of
from startonce.model.operations import READS, Call, Ended, Fault, Raised
from startonce.oracle.subject import STEPPING, Held, Subject
from startonce.oracle.tracefile import database_from_json
from startonce.oracle.wire.misbehaviour import PROTOCOL
from startonce.oracle.wire.words import CALLERS, CAPABILITIES, ERRORS, FENCE, LOCKS, OTHER

Open = Callable[[str], Subject]
"""Opens a subject on the database that another process named."""

ABOUT = {
    "implementation": "startonce",
    "language": "Python",
    "version": "0",
    "homepage": "",
    "database": "unknown",
}

_encode = json.JSONEncoder(separators=(",", ":")).encode


class Server:
    """One conversation about one subject. `about` is told in the handshake, with the capabilities.

    `shared` names the database to further processes, which open it by `open_shared`. `named` says that the
    subject's statements are those of the model, and so are their names.
    """

    def __init__(
        self,
        subject: Subject,
        about: Mapping[str, str] = ABOUT,
        shared: str | None = None,
        open_shared: Open | None = None,
        *,
        named: bool = True,
    ) -> None:
        self.subject = subject
        self._about = about
        self._shared = shared
        self._open = open_shared
        self._named = named
        self._held: dict[str, Held] = {}
        self._late: dict[str, list[Held]] = {}

    def respond(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the response to one request, without its id. What fails here is said, and not raised."""
        do = request.get("do")
        if do == "many":
            return {"of": [self.respond(one) for one in request["of"]]}
        answer = getattr(self, f"_{do}", None)
        if answer is None or do not in DOES:
            return {"failed": f"there is no request {do!r}"}
        try:
            found: dict[str, Any] | None = answer(request)
        except Exception as error:
            traceback.print_exc()
            return {"failed": f"{name_of(error)}: {error}"}
        return {"done": True} if found is None else found

    def _hello(self, request: dict[str, Any]) -> dict[str, Any]:
        able = self.subject.capabilities
        names = {name for name in CAPABILITIES if name in able} | {"clock", "surrogates"}
        if self.subject.absent:
            names.add("absent")
        if STEPPING in able:
            names |= {"callers", "statements"} if self._named else {"callers"}
        found: dict[str, Any] = {"protocol": PROTOCOL, **self._about}
        if self._shared is not None:
            names.add("processes")
            found["join"] = self._shared
        if self.subject.parameter_limit is not None:
            found["parameter_limit"] = self.subject.parameter_limit
        if self.subject.not_applicable:
            found["not_applicable"] = dict(self.subject.not_applicable)
        return {**found, "capabilities": sorted(names)}

    def _join(self, request: dict[str, Any]) -> None:
        if self._open is None:
            raise LookupError("this subject has no database that processes share")
        self.subject.close()
        self.subject = self._open(request["with"])

    # --- the database -----------------------------------------------------------------------------------

    def _put(self, request: dict[str, Any]) -> None:
        rows = request["rows"]
        locks = request.get("locks", None if rows is None else [])
        self._become({"rows": rows, "locks": locks, "fence_closed": request.get("fence")})

    def _reset(self, request: dict[str, Any]) -> None:
        self._become({"rows": None, "locks": None, "fence_closed": None})

    def _become(self, value: dict[str, Any]) -> None:
        self._late.clear()
        self.subject.put(database_from_json(value))

    def _dump(self, request: dict[str, Any]) -> dict[str, Any]:
        db = self.subject.dump()
        found: dict[str, Any] = {"rows": db.rows}
        if self.subject.capabilities & LOCKS:
            found["locks"] = db.locks
        if self.subject.capabilities & FENCE:
            found["fence"] = db.fence_closed
        return found

    # --- operations -------------------------------------------------------------------------------------

    def _begun(self, request: dict[str, Any]) -> Held:
        """Begin an operation; an exception that escapes from it then is what it ends with."""
        operation = request["operation"]
        if operation not in self.subject.capabilities:
            raise LookupError(f"there is no operation {operation}")
        args = tuple(tuple(arg) if isinstance(arg, list) else arg for arg in request["args"])
        call = Call(operation, args, request["now"])
        try:
            return self.subject.begin(CALLERS.index(request.get("caller", "A")), call)
        except Exception as error:
            return Over(_escaped(error))

    def _call(self, request: dict[str, Any]) -> dict[str, Any]:
        held = self._begun(request)
        outcome = _step(held)
        while outcome is None:
            outcome = _step(held)
        return ended(outcome.answer)

    def _begin(self, request: dict[str, Any]) -> dict[str, Any]:
        self._crash(request)
        held = self._begun(request)
        if held.statement is None:  # it is refused before any statement
            outcome = _step(held)
            assert outcome is not None
            return ended(outcome.answer)
        self._held[request["caller"]] = held
        return _at(held)

    def _step(self, request: dict[str, Any]) -> dict[str, Any]:
        caller, fault = request["caller"], Fault(request.get("fault", "none"))
        held = self._held.get(caller)
        if held is None:
            return {"at": None}
        outcome = _step(held, fault)
        if fault is Fault.LATE:
            self._late.setdefault(caller, []).append(held)
        if outcome is None:
            return _at(held)
        del self._held[caller]
        return ended(outcome.answer)

    def _crash(self, request: dict[str, Any]) -> None:
        held = self._held.pop(request["caller"], None)
        if held is not None:
            held.crash()

    def _land(self, request: dict[str, Any]) -> None:
        self.subject.land(self._late[request["caller"]].pop(0))

    # --- what surrounds the callers ---------------------------------------------------------------------

    def _pin(self, request: dict[str, Any]) -> None:
        self.subject.pin()

    def _unpin(self, request: dict[str, Any]) -> None:
        self.subject.unpin()

    def _deny(self, request: dict[str, Any]) -> None:
        self.subject.deny(request["denied"])

    def _spoil(self, request: dict[str, Any]) -> None:
        self.subject.spoil(request["how"], request["key"])

    def _unspoil(self, request: dict[str, Any]) -> None:
        self.subject.unspoil()


DOES = frozenset(
    {
        "hello", "join", "put", "reset", "dump", "call", "begin", "step", "crash", "land", "pin", "unpin",
        "deny", "spoil", "unspoil",
    }
)  # fmt: skip
"""The requests that are served; there is no `race`, since a subject here has one thread."""


def _at(held: Held) -> dict[str, Any]:
    return {"at": held.statement, "writes": held.statement not in READS}


class Over:
    """An operation that ended before its first statement."""

    statement: str | None = None

    def __init__(self, outcome: Ended) -> None:
        self._outcome = outcome

    def step(self, fault: Fault = Fault.NONE) -> Ended | None:
        """Give what it ended with."""
        return self._outcome

    def crash(self) -> None:
        """Nothing is under way."""


def _step(held: Held, fault: Fault = Fault.NONE) -> Ended | None:
    try:
        return held.step(fault)
    except Exception as error:
        return _escaped(error)


def _escaped(error: Exception) -> Ended:
    """Return what an operation ends with from which an exception escapes."""
    traceback.print_exception(error)
    return Ended(Raised(f"{name_of(error)}: {error}"))


def ended(answer: Any) -> dict[str, Any]:
    """Return an answer of the model as what an operation ended with."""
    if isinstance(answer, Raised):
        return {"error": answer.error if answer.error in ERRORS else OTHER + answer.error}
    return {"answer": _named(answer)}


def _named(answer: Any) -> Any:
    """Return an answer as JSON: a row and an entry are lists, what else has members is an object."""
    match type(answer).__name__:
        case "Reserved" | "Holding" | "Stopped":
            return {name: value for name, value in answer._asdict().items() if name != "result" or value}
        case _:
            return answer


def serve(server: Server, lines: Iterable[str], write: Callable[[str], object]) -> None:
    """Answer requests, a line each, until there are no more. `write` is given each response as a line."""
    for line in lines:
        request = json.loads(line)
        write(_encode({"id": request["id"], **server.respond(request)}) + "\n")


def serve_streams(server: Server) -> None:
    """Answer requests on the standard streams."""
    serve(server, sys.stdin, _flushing(sys.stdout))


def serve_port(server: Server, port: int, listening: Callable[[int], object]) -> None:
    """Answer the requests of one connection to a port of this machine; 0 is any that is free.

    `listening` is told which.
    """
    with socket.create_server(("127.0.0.1", port)) as listener:
        listening(listener.getsockname()[1])
        connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # One file for both directions would lose what it has read ahead whenever it writes.
    with (
        connection,
        connection.makefile("r", encoding="utf-8", newline="\n") as reads,
        connection.makefile("w", encoding="utf-8", newline="\n") as writes,
    ):
        serve(server, reads, _flushing(writes))


def _flushing(stream: TextIO) -> Callable[[str], object]:
    def write(text: str) -> None:
        stream.write(text)
        stream.flush()

    return write
