"""`startonce check` on our own implementation: two processes, each with a database of its own."""

import contextlib
import multiprocessing
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from startonce.checker.starts import HAZARDS, explored, pairs, singles
from startonce.impl.databases.sqlite import TABLES, connect
from startonce.model.clauses import CLAUSES
from startonce.model.errors import DatabaseUnusable, StartOnceError
from startonce.model.properties import properties
from startonce.oracle.check import (
    FULL,
    QUICK,
    WORK,
    Part,
    Size,
    conclude,
    everything,
    first_part,
    second_part,
)
from startonce.oracle.edges import Walked
from startonce.oracle.ledger import Ledger
from startonce.oracle.report import Report
from startonce.own import SqlSubject

Progress = Callable[[int], None]


def work_of(size: Size) -> int:
    """Return the number of edges and steps of a check, to measure progress by."""
    return sum(list(WORK.values())[: 1 + size.scopes]) + size.examples * size.steps


def check(
    path: Path | None = None,
    *,
    quick: bool = False,
    seed: int = 1,
    progress: Progress = lambda done: None,
) -> Report:
    """Hold our implementation against the model, on a database of its own, and report.

    Without a path the database is a WAL file in a temporary folder. With one it must not hold any table
    of ours; what the check creates there is dropped again. Raises `DatabaseUnusable`.
    """
    begun = time.perf_counter()
    size = QUICK if quick else FULL
    if path is None:
        with tempfile.TemporaryDirectory(prefix="startonce-") as folder:
            return _in_two(Path(folder), size, seed, progress, begun)
    with contextlib.closing(connect(path)) as database:
        there = sorted(set(TABLES) - set(database.missing(*TABLES)))
    if there:
        raise DatabaseUnusable(
            f"{path} already holds {', '.join(there)}: a check needs a database of its own"
        )
    subject = SqlSubject(path)
    try:
        return everything(subject, size, seed, progress, [starts(quick)])
    finally:
        subject.unspoil()
        subject.close()


class ModelBroken(StartOnceError):
    """The model of starts breaks one of its own properties."""


def starts(quick: bool) -> Part:
    """Explore starting runs on the model under every pair of faults, or every single one.

    What it says of store clauses is not counted: those are judged on the implementation. Raises
    `ModelBroken`.
    """
    ledger, states, transitions = Ledger(), 0, 0
    for durable in (True, False):
        for scope in singles(durable) if quick else pairs(durable):
            result = explored(scope)
            states += result.states
            transitions += result.transitions
            for name, found in result.findings.items():
                if found.trace is not None:
                    raise ModelBroken(f"{name} is broken in {scope}: see `startonce explore`")
                if found.evaluated:
                    judged = [c for c in properties(scope)[name].clauses if CLAUSES[c].kind != "store"]
                    ledger.count(judged, "starts", found.evaluated)
    for hazard in HAZARDS:
        if hazard.durable == "one holder":  # REL-4 and DUT-2 dropped: two holders, and no second execution
            result = explored(hazard.scope)
            states += result.states
            transitions += result.transitions
            if result.findings["one holder"].trace is None or result.findings["executes once"].trace:
                raise ModelBroken(f"STA-10 is broken in {hazard.scope}: see `startonce explore`")
            ledger.count(["STA-10"], "starts", result.findings["executes once"].evaluated)
    what = "every single fault" if quick else "every pair of faults"
    walked = Walked("starts", what, states, transitions, transitions, transitions, "explored")
    return Part((walked,), None, ledger)


def _in_two(folder: Path, size: Size, seed: int, progress: Progress, begun: float) -> Report:
    subject = SqlSubject(folder / "first.db")
    try:
        if size == QUICK:
            return everything(subject, size, seed, progress, [starts(quick=True)])
        with _beside(folder / "second.db", size) as other:
            parts = [
                first_part(subject, size, seed, lambda done: progress(done + other.drained())),
                starts(quick=False),
                other.result(progress),
            ]
        return conclude(subject, parts, seed, begun)
    finally:
        subject.close()


class _Other:
    """The part that runs in a process of its own, and what it has sent."""

    def __init__(self, connection: Connection, process: multiprocessing.process.BaseProcess) -> None:
        self._connection = connection
        self._process = process
        self._part: Part | None = None

    def drained(self) -> int:
        """Return the progress that was sent since the last look."""
        done = 0
        while self._part is None and self._connection.poll():
            done += self._received()
        return done

    def result(self, progress: Progress) -> Part:
        """Wait for the part. Raises `DatabaseUnusable` if its process died."""
        while self._part is None:
            progress(self._received())
        return self._part

    def _received(self) -> int:
        try:
            message = self._connection.recv()
        except EOFError as error:
            self._process.join()
            raise DatabaseUnusable(
                f"the second process of the check died (exit code {self._process.exitcode})"
            ) from error
        if isinstance(message, int):
            return message
        self._part = message
        return 0


@contextlib.contextmanager
def _beside(path: Path, size: Size) -> Iterator[_Other]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_second, args=(there, str(path), size))
    process.start()
    there.close()
    try:
        yield _Other(here, process)
    finally:
        process.terminate()
        process.join()
        here.close()


def _second(connection: Connection, path: str, size: Size) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
    subject = SqlSubject(path)
    unsent = 0

    def progress(done: int) -> None:
        nonlocal unsent
        unsent += done
        if unsent >= 2000:
            connection.send(unsent)
            unsent = 0

    connection.send(second_part(subject, size, progress))
    subject.close()
