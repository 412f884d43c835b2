"""Real starts, operators and a host over a real SQLite database: events performed, worlds observed.

A start of the model begins with its insert; the real one reads first. It does so before anything else has
happened, which is one of its interleavings.
"""

import sqlite3
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

from startonce.impl import operations as op
from startonce.impl import statements as sql
from startonce.impl.databases.sqlite import SqliteDatabase, connect
from startonce.impl.execution import TRIES, Done, Execute, Failed
from startonce.impl.store import drive
from startonce.model.errors import NotApplied, UnknownOutcome, Unreadable
from startonce.model.reservation import State
from startonce.model.world import CANCEL, FREE, HOST, STARTED, Caller, Event, Lock, Row, Scope, Sent, World
from startonce.oracle.broken.callers import Starts
from startonce.process import Process

WINNER = ("fence", "release", "take", "holder", "work")
"""Where a start stands after its claim if it goes on as the winner."""

REFUSALS = ("not applied", "cannot be read")


class Stage:
    """A real database file, and the processes of a trace in front of it, each with its own connection."""

    def __init__(self, path: Path, scope: Scope, starts: Starts, stack: ExitStack) -> None:
        self.path, self.scope, self.starts, self.stack = path, scope, starts, stack
        self.host, self.replica = self._create(), self._connect()
        for statement in (*sql.CREATE_RESERVATIONS, *sql.CREATE_FENCE):
            self.host.run(statement, ())
        self.ids, self.times = count(1), count(1000)
        self.keys = [f"k{number}" for number in range(1, scope.keys + 1)]
        self.runs: list[str] = []  # in order of the inserts that were sent
        self.executed: list[int] = []
        self.won: list[int] = []
        self.tokens = {"cancel": CANCEL, "free": FREE}
        self.late: list[tuple[Sent, Any]] = []
        self.left = [scope.attempts] * scope.callers
        self.waiting: list[deque[Process]] = [deque() for _ in self.left]
        self.processes: list[Process | None] = [None] * scope.callers

    def _create(self) -> SqliteDatabase:
        connection = sqlite3.connect(self.path, isolation_level=None)
        self.stack.callback(connection.close)
        connection.execute("PRAGMA synchronous = OFF")  # no power is cut here: nothing waits for the disk
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        return SqliteDatabase(connection)

    def _connect(self) -> SqliteDatabase:
        database = connect(self.path)
        self.stack.callback(database.close)
        database.connection.execute("PRAGMA synchronous = OFF")
        return database

    def mint(self) -> str:
        """Mint a fresh id."""
        return f"id-{next(self.ids)}"

    def clock(self) -> int:
        """Tell a time that moves at every look."""
        return next(self.times)

    def prepare(self, trace: Sequence[Event], model: Sequence[World]) -> None:
        """Let every start of a trace read what it reads before its insert, while nothing is there."""
        for event, w in zip(trace, model, strict=False):
            caller = 0 <= event.who < self.scope.callers and event.what == "insert"
            if caller and w.callers[event.who].at == "idle":
                begun = self.starts.begin(self.keys[event.key], self.mint, self.clock)
                process = Process(begun, self._connect())
                while process.at in ("look", "fence"):
                    process.run()
                self.waiting[event.who].append(process)

    # --- what happens ---------------------------------------------------------------------------------

    def perform(self, e: Event, w: World, v: World) -> Event:
        """Perform an event that leads the model from one world to another; return what really happened."""
        if e.who == HOST:
            return e if self._host(e, w, v) else _nothing(e)
        if e.what.startswith("begins to"):
            return e if self._operator(e) else _nothing(e)
        if e.fault == "is dispatched too":
            return self._dispatch(e)
        if w.callers[e.who].at == "idle" and self.waiting[e.who]:
            self._begin(e.who, self.waiting[e.who].popleft())
        process = self.processes[e.who]
        if process is None:
            return _nothing(e)
        return self._move(process, e, len(v.late) > len(w.late), v.callers[e.who].at)

    def _begin(self, who: int, process: Process) -> None:
        self.left[who] -= 1
        process.token = who * 100 + self.left[who]
        self.processes[who] = process

    def _move(self, process: Process, e: Event, late: bool, then: str) -> Event:
        """Let a process move under a fault; `then` is where the model's stands afterwards."""
        if process.request is None:
            refused_early = process.answer == "refused" and e.what in ("free: take", "free: holder")
            return e._replace(answer="refused" if e.answer else "") if refused_early else _nothing(e)
        if e.fault == "skips it" and process.at != e.what:
            return e
        if e.fault == "crashes before it":
            e = e._replace(what=process.at)
            process.crash()
            return e
        real = self._named(process, e)
        fault, rows = self._under(process, real, late)
        for _ in range(TRIES - 1):  # where the model gives up at once, the real one tries again
            if fault in REFUSALS and e.answer and process.at == real.what:
                self._under(process, real, late)
        while process.at == "read ended" != then:
            process.run()  # the real one looks what became of its persist where the model's does not
        self._count(process, real, rows, lost=fault.startswith("reply lost"))
        answer, told = process.answer, getattr(process.outcome, "run_id", None)
        if answer == "refused" and then == "free: take":
            answer = ""  # the real one refuses as soon as it sees the lock held: the model looks again
        run = -1 if not answer else e.told if told is None else self.runs.index(told)
        return real._replace(fault=fault, answer=answer, told=run)

    def _named(self, process: Process, e: Event) -> Event:
        """Say of an event what the process does: its statement, and the key and run that it names."""
        key, run_id = process.subject
        if process.at == "insert" and run_id is not None and run_id not in self.runs:
            self.runs.append(run_id)
            self.executed.append(0)
            self.won.append(0)
        return e._replace(
            what=process.at,
            key=e.key if key is None else self.keys.index(key),
            run=e.run if run_id is None else self.runs.index(run_id),
        )

    def _under(self, process: Process, real: Event, late: bool) -> tuple[str, Any]:
        """Answer a request under the fault of an event; return the fault that befell it, and its rows."""
        if isinstance(process.request, Execute):
            self.executed[real.run] += 1
            failed = real.fault.startswith("fails")
            process.send(Failed(RuntimeError("declined")) if failed else Done(process.request.run.run_id))
            return real.fault if failed else "", None
        statement, parameters = process.request
        if statement is sql.INSERT_LOCK:
            self.tokens[parameters[0]] = process.token
        if real.fault in REFUSALS:
            kind = NotApplied if statement.writes else Unreadable
            process.throw(kind(statement.name, "it was made to fail"))
            return REFUSALS[not statement.writes], None
        if real.fault.startswith("reply lost") and statement.writes:
            if late:
                self.late.append((_sent(real, process.token), process.request))
            else:
                process.database.run(statement, parameters)
            process.throw(UnknownOutcome(statement.name, "its reply was lost"))
            return real.fault, None
        if real.fault == "stale" and statement in (sql.READ_BACK, sql.READ_BOTH):
            rows = self.replica.connection.execute(statement.sql, parameters).fetchall()
            self.replica.connection.execute("ROLLBACK")  # it has caught up
            process.send(rows)
            return "stale", rows
        return "", process.run()

    def _count(self, process: Process, real: Event, rows: Any, *, lost: bool) -> None:
        """Count a claim as won by whoever goes on as its winner, and as given back by a release."""
        if real.what == "claim" and process.at in WINNER:
            self.won[real.run] += 1
        if real.what == "release" and (rows or (lost and process.at != "release")):
            self.won[real.run] -= 1

    def _dispatch(self, e: Event) -> Event:
        """Deliver a won claim a second time, where the transport does."""
        if self.starts.dispatch is None:
            return _nothing(e)
        again = self.starts.dispatch(self.keys[e.key], self.runs[e.run], self.mint, self.clock)
        process = Process(again, self._connect())
        self._begin(e.who, process)
        self.won[e.run] += 1
        return e._replace(what=process.at)

    def _operator(self, e: Event) -> bool:
        process = None
        if e.what == "begins to free":
            process = Process(op.free(self.keys[e.key], self.clock()), self._connect(), "free: ")
        elif e.run < len(self.runs):
            process = Process(op.cancel(self.runs[e.run], self.clock()), self._connect(), "cancel: ")
        self.processes.append(process)
        return process is not None

    def _host(self, e: Event, w: World, v: World) -> bool:
        if e.fault == "lands late":
            (landed,) = Counter(w.late) - Counter(v.late)
            place = next((n for n, (sent, _) in enumerate(self.late) if sent == landed), None)
            if place is not None:
                _, request = self.late.pop(place)
                self.host.run(*request)
            return place is not None
        if e.what == "a replica stays behind":
            self.replica.connection.execute("BEGIN")
            self.replica.connection.execute("SELECT count(*) FROM startonce_reservations").fetchall()
        elif e.what == "settle":
            drive(self.host.run, self.starts.settle(self.runs[e.run], self.clock))
        elif e.what == "purge":
            drive(self.host.run, op.purge(self.clock(), 1))
        else:
            drive(self.host.run, op.open_fence() if e.what == "opens the fence" else op.close_fence())
        return True

    def finish(self) -> Iterator[Event]:
        """Let whoever has begun go on to the end, and nobody begin any more."""
        self.left = [0] * len(self.left)
        for who, process in enumerate(self.processes):
            while process is not None and process.request is not None:
                yield self._move(process, Event(who, process.at), late=False, then="read ended")
        yield Event(HOST, "the end")

    # --- what is there --------------------------------------------------------------------------------

    def observed(self, model: World, before: World | None = None) -> World:
        """Return what is there as a world. Only the budget of faults is the model's."""
        read = self.host.connection.execute
        rows: list[Row | None] = [None] * len(self.keys)
        for key, run_id, state in read("SELECT key, run_id, state FROM startonce_reservations").fetchall():
            rows[self.keys.index(key)] = Row(self.runs.index(run_id), State(state))
        locks: list[Lock | None] = [None] * len(self.runs)
        for run_id, holder, ended in read("SELECT run_id, holder, ended FROM startonce_run_locks"):
            locks[self.runs.index(run_id)] = Lock(self.tokens[holder], bool(ended))
        closed = any(one for (one,) in read("SELECT closed FROM startonce_fence").fetchall())
        started = any(row is not None and row.state is STARTED for row in rows)
        held = any(lock is not None and lock.holder >= 0 and not lock.ended for lock in locks)
        was_drained = before is not None and before.closed and before.drained
        return World(
            rows=tuple(rows),
            locks=tuple(locks),
            executed=tuple(self.executed),
            won=tuple(self.won),
            closed=closed,
            drained=closed and (was_drained or not (started or held)),
            callers=tuple(self._caller(who) for who in range(len(self.processes))),
            late=tuple(sorted(sent for sent, _ in self.late)),
            replica=None,
            left=model.left,
        )

    def _caller(self, who: int) -> Caller:
        process, left = self.processes[who], self.left[who] if who < len(self.left) else 0
        if process is None or (process.at == "over" and left):
            return Caller("idle" if left else "over", left=left)
        return Caller(process.at)


def _sent(real: Event, token: int) -> Sent:
    """Return a statement that is on its way as the model writes it down."""
    key = -1 if real.what in ("settle", "persist") else real.key
    return Sent(real.what, key, real.run, token if real.what in ("take", "persist") else 0)


def _nothing(e: Event) -> Event:
    """Say of an event that nothing happened: whoever should have moved cannot."""
    return e._replace(what="nothing", fault="", answer="", told=-1)
