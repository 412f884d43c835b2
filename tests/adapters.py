"""What the tests of the wire share: adapters as small scripts, and one in this very process."""

import json
import sys
from collections import deque
from pathlib import Path
from typing import Any

from startonce.oracle.wire import WireSubject
from startonce.oracle.wire.client import Client
from startonce.oracle.wire.serve import Server
from startonce.oracle.wire.shape import validator
from startonce.oracle.wire.transport import Lines

PAGE = (Path(__file__).parent.parent / "docs" / "oracle-protocol.md").read_text("utf-8")

OURS = [sys.executable, "-m", "startonce.adapter"]


def example() -> str:
    """The adapter that stands in the page."""
    return PAGE.split("<!-- example -->\n```python\n")[1].split("```")[0]


def command(script: str) -> list[str]:
    """A script as a command, with nothing but the standard library."""
    return [sys.executable, "-I", "-S", "-c", script]


class Loop(Lines):
    """An adapter in this process. `held`: every line, in both directions, is held against the schema."""

    def __init__(self, server: Server, held: bool) -> None:
        self.server = server
        self.held = held
        self.said: set[str] = set()
        self.waiting: deque[bytes] = deque()
        self.operations: dict[str, str] = {}

    def send(self, line: bytes) -> None:
        request = json.loads(line)
        if not self.held:
            response = {"id": request["id"], **self.server.respond(request)}
            self.waiting.append(json.dumps(response).encode())
            return
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        fits("request", request)
        response = {"id": request["id"], **self.server.respond(request)}
        parts = request["of"] if request["do"] == "many" else [request]
        found = response["of"] if request["do"] == "many" else [response]
        response = json.loads(json.dumps(response))
        for part, one in zip(parts, json.loads(json.dumps(found)), strict=True):
            self.said.add(part["do"])
            if part["do"] == "begin":
                self.operations[part["caller"]] = part["operation"]
            operation = (
                self.operations[part["caller"]] if part["do"] == "step" else part.get("operation", "")
            )
            fits(response_to(part["do"], operation, one), one)
        self.waiting.append(json.dumps(response).encode())

    def receive(self, seconds: float) -> bytes:
        return self.waiting.popleft()

    def close(self, patience: float = 0) -> list[bytes]:
        self.server.subject.close()
        return list(self.waiting)


def response_to(do: str, operation: str, response: dict[str, Any]) -> str:
    """The definition that the response to a request has to fit, as the page has it."""
    if do in ("begin", "step") and "at" in response:
        return "held_response"
    if do in ("call", "begin", "step"):
        return f"{operation}_response"
    return f"{do}_response" if do in ("hello", "dump") else "done_response"


def fits(name: str, value: Any) -> None:
    found = [error.message for error in validator(name).iter_errors(value)]
    assert not found, (name, value, found)


def looped(server: Server, held: bool = True) -> tuple[WireSubject, Loop]:
    """A subject over the wire to a server in this process."""
    loop = Loop(server, held)
    return WireSubject(Client(loop, 10)), loop
