"""Asks an adapter, and holds it to the protocol: ids, order, the shape of every response.

Requests that go together travel in one message; messages can be sent ahead of the responses to earlier
ones. Whatever an adapter does wrong is raised as one of the errors of `misbehaviour.py`, and raised
again to whoever asks after that: a conversation that broke does not go on.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from startonce.oracle.wire import misbehaviour as wrong
from startonce.oracle.wire import requests, responses, shape
from startonce.oracle.wire.responses import Failed, Unfit
from startonce.oracle.wire.transport import LONGEST, End, Flood, Lines, Silence


class Part(NamedTuple):
    """One request: its text without an id, what it does, how its response is read.

    `then` is called with what was read, before anything that was asked later is read.
    """

    text: str
    do: str
    read: Callable[[dict[str, Any]], Any]
    operation: str = ""
    then: Callable[[Any], None] | None = None


def done(do: str, **members: Any) -> Part:
    """Return a request that answers nothing."""
    return Part(requests.request(do, **members), do, responses.read_done)


class Client:
    """A conversation with one adapter. `timeout` is in seconds, for the response to each message.

    `sent` is the number of messages so far.
    """

    def __init__(self, lines: Lines, timeout: float) -> None:
        self.lines = lines
        self.timeout = timeout
        self.sent = 0
        self._due: deque[Sequence[Part]] = deque()
        self._broken: wrong.WireError | None = None
        self._closed = False

    def ask(self, parts: Sequence[Part]) -> list[Any]:
        """Send requests in one message and return what was read of each response."""
        self.send(parts)
        return self.receive()

    def send(self, parts: Sequence[Part]) -> None:
        """Send requests in one message; `receive` gives what came of them, the earliest message first."""
        if self._broken is not None:
            raise self._broken
        self.sent += 1
        if len(parts) == 1:
            text = f'{{"id":{self.sent},{parts[0].text[1:]}\n'
        else:
            text = f'{{"id":{self.sent},"do":"many","of":[{",".join([part.text for part in parts])}]}}\n'
        self._due.append(parts)
        self.lines.send(text.encode("ascii"))

    def receive(self, timeout: float | None = None) -> list[Any]:
        """Return what was read of the responses to the earliest message that is not answered yet."""
        try:
            return self._received(self.timeout if timeout is None else timeout)
        except wrong.WireError as error:
            if self._due or not isinstance(error, wrong.AdapterFailed):
                self._broken = error
            raise

    def close(self) -> None:
        """End the conversation and the adapter. Raises `SaidMore` where that had more to say than asked."""
        if self._closed:
            return
        self._closed = True
        hung = isinstance(self._broken, wrong.Hung | wrong.TooLong)
        said = self.lines.close(0) if hung else self.lines.close()
        if said and self._broken is None and not self._due:
            raise wrong.SaidMore(said)

    def _received(self, timeout: float) -> list[Any]:
        parts = self._due[0]
        number = self.sent - len(self._due) + 1
        whole = parts[0] if len(parts) == 1 else None
        where = _where(whole, number)
        line = self._line(where, timeout)
        response = self._response(line, number, where)
        self._due.popleft()
        if whole is not None:
            return [_read(whole, response, number)]
        of = response.get("of")
        if type(of) is not list or len(of) != len(parts) or any(map(_is_more, response)):
            if type(response.get("failed")) is str:
                raise wrong.AdapterFailed(where, response["failed"])
            raise wrong.BadResponse(where, _miscounted(of, response, len(parts)))
        return [
            _read(part, one, number, place)
            for place, (part, one) in enumerate(zip(parts, of, strict=True), 1)
        ]

    def _line(self, where: str, timeout: float) -> bytes:
        try:
            return self.lines.receive(timeout)
        except Silence:
            raise wrong.Hung(where, timeout, self.lines.errors()) from None
        except Flood as flood:
            raise wrong.TooLong(where, LONGEST, flood.begins) from None
        except End as end:
            raise wrong.Died(where, self.lines.fate(), end.half, self.lines.errors()) from None

    def _response(self, line: bytes, number: int, where: str) -> dict[str, Any]:
        """Return the response on a line, which is for the request of this number, without its id."""
        try:
            response = shape.decoded(line)
        except (ValueError, RecursionError) as error:
            if not line.lstrip().startswith(b"{"):
                raise wrong.Stray(where, line) from error
            deep = isinstance(error, RecursionError)
            raise wrong.NotJson(where, "nested too deep" if deep else str(error), line) from error
        if type(response) is not dict or "id" not in response:
            raise wrong.Stray(where, line)
        found = response.pop("id")
        if type(found) is int and found == number:
            return response
        if type(found) is int and 0 < found < number:
            raise wrong.AnsweredTwice(found)
        if type(found) is int and number < found <= self.sent:
            raise wrong.OutOfOrder(found, number)
        raise wrong.WrongId(found, number)


def _read(part: Part, response: Any, number: int, place: int = 0) -> Any:
    try:
        if type(response) is not dict:
            raise Unfit
        found = part.read(response)
    except Unfit as error:
        name = shape.definition(part.do, part.operation, response)
        why = str(error) or shape.complaint(name, response)
        raise wrong.BadResponse(_where(part, number, place), why) from error
    if type(found) is Failed:
        raise wrong.AdapterFailed(_where(part, number, place), found.text)
    if part.then is not None:
        part.then(found)
    return found


def _where(part: Part | None, number: int, place: int = 0) -> str:
    name = f"{part.do} {part.operation}".strip() if part else "many"
    return f"request {number:,}{f'.{place}' if place else ''} ({name})"


def _is_more(name: str) -> bool:
    return name != "of" and not name.startswith("x-")


def _miscounted(of: Any, response: dict[str, Any], wanted: int) -> str:
    if type(of) is list and len(of) != wanted:
        return f"{wanted} requests in it, {len(of)} responses"
    return shape.complaint("many_response", response)
