"""What the wire costs: the harness beside an adapter that answers from memory, and edges on SQLite.

The adapter in memory is this file, started with `--adapter`: a dictionary, in a process of its own. An
operation is one edge: a put before it, the call, a dump after it, each answer read, checked and compared.
"""

import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import pairs
from pairs import Figure, Mode

from startonce.oracle.edges import Walked, walk, walk_statements
from startonce.oracle.ledger import Ledger
from startonce.oracle.scopes import EDGES, STATEMENTS, Edge, tables, whole_edges
from startonce.oracle.wire import WireSubject

RUNS = 7
OURS = [sys.executable, "-m", "startonce.adapter"]
IN_MEMORY = [sys.executable, __file__, "--adapter"]

Row = list[Any]


class Memory:
    """A store that is a dictionary, and its adapter."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] | None = None

    def respond(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer one request."""
        match request["do"]:
            case "many":
                return {"of": [self.respond(one) for one in request["of"]]}
            case "call":
                return {"answer": self._call(request["operation"], request["args"], request["now"])}
            case "dump":
                return {"rows": None if self.rows is None else list(self.rows.values())}
            case "put":
                rows = request["rows"]
                self.rows = None if rows is None else {row[0]: row for row in rows}
                return {"done": True}
        about = {"implementation": "a dictionary", "language": "Python", "version": "1", "homepage": ""}
        return {"protocol": 1, **about, "database": "none", "capabilities": ["absent", "clock"]}

    def _call(self, operation: str, args: Sequence[str], now: int) -> Any:
        if operation == "reserve":
            return self._reserve(args[0], args[1], now)
        if operation == "settle":
            return self._settle(args[0], now)
        row = (self.rows or {}).get(args[0])
        if operation == "read":
            return row
        here, there = ("reserved", "started") if operation == "claim" else ("started", "reserved")
        if row is None or row[1:3] != [args[1], here]:
            return False
        row[2], row[4] = there, now
        return True

    def _reserve(self, key: str, run_id: str, now: int) -> dict[str, Any]:
        self.rows = self.rows or {}
        created = key not in self.rows
        row = self.rows.setdefault(key, [key, run_id, "reserved", now, now])
        return {"row": row, "created": created}

    def _settle(self, run_id: str, now: int) -> int:
        live = [row for row in (self.rows or {}).values() if row[1] == run_id and row[2] != "terminal"]
        for row in live:
            row[2], row[4] = "terminal", now
        return len(live)


def adapter() -> None:
    """Answer requests from memory until there are no more."""
    memory = Memory()
    encode = json.JSONEncoder(separators=(",", ":")).encode
    for line in sys.stdin:
        request = json.loads(line)
        sys.stdout.write(encode({"id": request["id"], **memory.respond(request)}) + "\n")
        sys.stdout.flush()


def default_scope(subject: WireSubject) -> list[Edge]:
    """Return the edges of the default scope that an adapter can take."""
    every = (edge for table in tables(*EDGES[1:3]) for edge in whole_edges(table, *EDGES[1:3]))
    return [edge for edge in every if edge.call.operation in subject.capabilities]


def together(subject: WireSubject, edges: Sequence[Edge]) -> None:
    """Run edges, many to a message, and compare."""
    found = subject.perform([(edge.before, edge.call) for edge in edges])
    for edge, (answer, after) in zip(edges, found, strict=True):
        assert answer == edge.answer
        assert after.rows == edge.after.rows


def one_by_one(subject: WireSubject, edges: Sequence[Edge]) -> None:
    """Run edges one after another, as the walk does, and compare: a message for each, or for each step."""
    for edge in edges:
        subject.put(edge.before)
        held = subject.begin(0, edge.call)
        while (outcome := held.step()) is None:
            pass
        assert outcome.answer == edge.answer
        assert subject.dump().rows == edge.after.rows


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return how long something took, in seconds of the clock and of this processor."""
    begun, processor = perf_counter(), process_time()
    work()
    return perf_counter() - begun, process_time() - processor


def beside_memory() -> Iterator[Figure]:
    """Measure the harness beside an adapter that answers from memory."""
    with closing(WireSubject.start(IN_MEMORY)) as subject:
        edges = default_scope(subject)
        for name, way in (("many", together), ("one", one_by_one)):
            way(subject, edges)
            before = subject.sent
            took = [timed(partial(way, subject, edges)) for _ in range(RUNS)]
            messages = (subject.sent - before) // RUNS
            clock, processor = (statistics.median(column) for column in zip(*took, strict=True))
            what = f"operations, {name} to a message ({messages:,} messages)"
            yield Figure(what, len(edges) / clock, "a second", at_least=10_000)
            yield Figure("of the harness alone", processor / len(edges) * 1e6, "µs")


def on_sqlite(database: str, mode: Mode) -> Iterator[Figure]:
    """Measure edges through our own adapter."""
    with closing(WireSubject.start([*OURS, "--database", database])) as subject:
        edges = default_scope(subject)
        for name, way in (("many to a message", together), ("by steps", one_by_one)):
            took = [timed(partial(way, subject, edges))[0] for _ in range(3)]
            what = f"default scope, {len(edges):,} edges, {name}"
            yield Figure(what, statistics.median(took), "s", mode, at_most=10)
        walks: dict[str, Callable[[WireSubject, Ledger], list[Walked]]] = {
            "whole operations": walk,
            "statements": partial(walk_statements, scopes_=STATEMENTS[:1]),
        }
        for name, walking in walks.items():
            ledger = Ledger()
            begun = perf_counter()
            walked = walking(subject, ledger)
            seconds = perf_counter() - begun
            executed = sum(one.executed for one in walked)
            assert executed == sum(one.edges for one in walked)
            assert not ledger.divergences, ledger.divergences
            yield Figure(f"{name}, {executed:,} edges, by steps", seconds, "s", mode)


def figures() -> Iterator[Figure]:
    """Measure all of it."""
    yield from beside_memory()
    yield from on_sqlite(":memory:", Mode("memory", "off", "-"))
    with tempfile.TemporaryDirectory(dir=pairs.MEMORY_FILES) as folder:
        file = str(Path(folder) / "wire.db")
        yield from on_sqlite(file, Mode("wal", "off", pairs.file_system(folder)))


if __name__ == "__main__":
    if sys.argv[1:] == ["--adapter"]:
        adapter()
    else:
        title = f"An adapter over standard streams: medians of {RUNS} runs"
        sys.exit(pairs.conclude(title, list(figures())))
