"""The adapter: answers the oracle's requests, one a line, over standard input and output.

It works on the database at DATABASE_URL, which it empties at will.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import psycopg
from callers import Caller, Held, Lent, Replica, Statement, Stop
from store import Store
from values import (
    InvalidInput,
    NotApplied,
    OutcomeUnknown,
    StoreError,
    Unreadable,
    ValueRefused,
    Vanished,
)
from witness import Witness

KINDS: dict[type[StoreError], str] = {
    InvalidInput: "invalid",
    Vanished: "vanished",
    NotApplied: "not applied",
    OutcomeUnknown: "unknown outcome",
    Unreadable: "unreadable",
    ValueRefused: "value refused",
}

CORE = ("reserve", "claim", "release", "settle", "read")
MORE = (
    *("for_runs", "purge", "inventory", "take_lock", "lock_of", "persist", "cancel", "free"),
    *("fence", "close_fence", "open_fence"),
)
OPERATIONS = {name: getattr(Store, name) for name in (*CORE, *MORE)}

HELLO = {
    "protocol": 1,
    "implementation": "postgres-asyncio",
    "language": "Python",
    "version": "1.0",
    "homepage": "",
    "capabilities": [
        *MORE,
        *("clock", "absent", "surrogates", "callers", "stepping", "statements", "faults"),
        *("replica", "deny", "probes", "race", "processes"),
    ],
    "not_applicable": {"RUN-2": "an array of run ids is one parameter"},
}

ANSWERS: dict[str, Callable[[Any], Any]] = {
    "reserve": lambda answer: {"row": answer[0], "created": answer[1]},
    "take_lock": lambda answer: {"mine": answer[0], "holder": answer[1]},
    "cancel": lambda answer: answer._asdict(),
    "free": lambda answer: answer._asdict(),
}
"""How an answer goes over the wire, where that is not as JSON has it."""


def argument(value: Any) -> Any:
    """Return an argument as Python has it: the protocol carries a byte string in an object."""
    return bytes.fromhex(value["bytes"]) if isinstance(value, dict) and value.keys() == {"bytes"} else value


class Stage:
    """The database, its callers, and what befalls them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.denied = False

    async def open(self) -> None:
        """Connect everybody."""
        self.witness = Witness(self.url)
        self.replica = Replica(await self._connect())
        self.callers = {name: Caller(await self._connect(), self.replica) for name in "ABCD"}

    async def _connect(self) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        # Nobody here waits long for a lock: statements are transactions of their own.
        options = "-c lock_timeout=2s -c client_min_messages=error"
        return await psycopg.AsyncConnection.connect(self.url, autocommit=True, options=options)

    async def respond(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a request. What fails here is the adapter's own failure."""
        try:
            return await getattr(self, f"do_{request['do']}")(request)  # type: ignore[no-any-return]
        except Exception as error:
            return {"failed": repr(error)}

    async def do_hello(self, request: dict[str, Any]) -> dict[str, Any]:
        """Say who this is."""
        return {**HELLO, "database": self.witness.version, "join": self.url}

    async def do_many(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer requests in order."""
        return {"of": [await self.respond(part) for part in request["of"]]}

    async def do_put(self, request: dict[str, Any]) -> dict[str, Any]:
        """Make the database be this."""
        for caller in self.callers.values():
            caller.forget()
        self.witness.put(request)
        return {"done": True}

    do_reset = do_put

    async def do_dump(self, request: dict[str, Any]) -> dict[str, Any]:
        """Show everything."""
        return self.witness.dump()

    async def do_call(self, request: dict[str, Any]) -> Stop:
        """Run an operation as a whole."""
        return await self.operate(request, None)

    async def do_begin(self, request: dict[str, Any]) -> Stop:
        """Hold an operation before its first statement."""
        caller = self.callers[request["caller"]]
        await caller.crash()
        caller.held = Held()
        return await caller.held.begin(self.operate(request, caller.held))

    async def do_step(self, request: dict[str, Any]) -> Stop:
        """Let a caller run its statement."""
        held = self.callers[request["caller"]].held
        return await held.step(request.get("fault")) if held else {"at": None}

    async def do_crash(self, request: dict[str, Any]) -> dict[str, Any]:
        """A caller is gone."""
        await self.callers[request["caller"]].crash()
        return {"done": True}

    async def do_land(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run what a caller has on its way."""
        await self.callers[request["caller"]].land()
        return {"done": True}

    async def do_pin(self, request: dict[str, Any]) -> dict[str, Any]:
        """Let the replica stay behind from now on."""
        await self.replica.pin()
        return {"done": True}

    async def do_unpin(self, request: dict[str, Any]) -> dict[str, Any]:
        """Let the replica catch up."""
        await self.replica.unpin()
        return {"done": True}

    async def do_deny(self, request: dict[str, Any]) -> dict[str, Any]:
        """Refuse, or again allow, every write."""
        self.denied = request["denied"]
        for caller in self.callers.values():
            await caller.deny(self.denied)
        return {"done": True}

    async def do_spoil(self, request: dict[str, Any]) -> dict[str, Any]:
        """Spoil the schema around a key."""
        self.witness.spoil(request["how"], request["key"])
        return {"done": True}

    async def do_unspoil(self, request: dict[str, Any]) -> dict[str, Any]:
        """Leave no table."""
        self.witness.put({})
        return {"done": True}

    async def do_race(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run operations at once, each on its caller's connection."""
        return {"of": await asyncio.gather(*(self.operate(call, None) for call in request["calls"]))}

    async def do_join(self, request: dict[str, Any]) -> dict[str, Any]:
        """Work on another process's database from now on."""
        self.url = request["with"]
        await self.open()
        return {"done": True}

    async def operate(self, request: dict[str, Any], held: Held | None) -> Stop:
        """Run an operation, held before its statements or not; give what it ended with."""
        operation, now = request["operation"], request["now"]
        caller = self.callers[request["caller"]]

        async def run(statement: Statement) -> psycopg.AsyncCursor[tuple[Any, ...]]:
            fault = await held.reach(statement) if held else None
            failing = fault in ("not applied", "reply lost") or (self.denied and statement.writes)
            if failing and self.witness.spares(statement.label):
                fault = None
                if statement.label.startswith("create "):  # PostgreSQL would refuse even that
                    return await caller.skip()
            return await caller.run(statement, fault)

        store = Store(Lent(operation, run).lend, lambda: now)
        try:
            answer = await OPERATIONS[operation](store, *map(argument, request["args"]))
        except StoreError as error:
            return {"error": KINDS[type(error)]}
        except Exception as error:
            return {"error": f"other: {error!r:.500}"}
        return {"answer": ANSWERS[operation](answer) if operation in ANSWERS else answer}


async def main() -> None:
    """Answer every line until the input ends."""
    stage = Stage(os.environ["DATABASE_URL"])
    await stage.open()
    lines = asyncio.StreamReader(limit=2**24)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        request = json.loads(line)
        response = await stage.respond(request)
        sys.stdout.write(json.dumps({"id": request["id"], **response}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
