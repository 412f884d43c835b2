"""Real processes on one WAL file: they race for new keys, and they are killed at every statement.

This file is also the program that those processes run: see `main`.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from startonce.impl.databases.sqlite import SqliteDatabase, connect
from startonce.impl.deployment import Deployment
from startonce.impl.execution import Run
from startonce.impl.statements import Statement

PROCESSES, ROUNDS, KEYS = 4, 12, 25


# --- what the processes do ------------------------------------------------------------------------------


def effect(run: Run, log: str) -> str:
    """Leave a mark that no crash takes back: one line, appended whole."""
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{run.key} {run.run_id}\n".encode())
    os.close(file)
    return run.run_id


def tell(value: Any) -> None:
    print(json.dumps(value), flush=True)


def start_all(keys: int) -> None:
    """For every file named on standard input: start each key once, and tell the answers."""
    tell("ready")
    for line in sys.stdin:
        path, answers = line.strip(), list[list[str | None]]()
        work = partial(effect, log=f"{path}.log")
        try:
            database = connect(path, timeout=60)
            ours = Deployment(database)
            for number in range(keys):
                answer = ours.start(f"k-{number}", work)
                answers.append([type(answer).__name__, answer.run_id])
            database.close()
            tell(answers)
        except Exception as error:
            tell(f"{type(error).__name__}: {error}")


class Stopping(SqliteDatabase):
    """A database that stands still for ever before one statement."""

    stop = ""

    def run(self, statement: Statement, parameters: tuple[Any, ...]) -> list[Any]:
        if statement.name == self.stop:
            stand_still()
        return super().run(statement, parameters)


def stand_still() -> None:
    tell("here")
    time.sleep(600)


def start_and_stop(path: str, stop: str) -> None:
    """Start key `k` and stand still before a statement, or in the work before or after its effect."""
    database = Stopping(sqlite3.connect(path, isolation_level=None))
    database.stop = stop

    def work(run: Run) -> str:
        if stop == "before the effect":
            stand_still()
        effect(run, path + ".log")
        if stop == "after the effect":
            stand_still()
        return run.run_id

    Deployment(database).start("k", work)


def main(mode: str, *arguments: str) -> None:
    if mode == "all":
        start_all(int(arguments[0]))
    else:
        start_and_stop(*arguments)


# --- the tests ------------------------------------------------------------------------------------------


@contextmanager
def processes(count: int, *arguments: str) -> Iterator[list[subprocess.Popen[str]]]:
    command = [sys.executable, __file__, *arguments]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def heard(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def effects(path: Path) -> list[tuple[str, str]]:
    log = Path(f"{path}.log")
    lines = log.read_text().splitlines() if log.exists() else []
    return [(line.split()[0], line.split()[1]) for line in lines]


def test_processes_that_open_a_new_file_at_once_start_every_key_once(tmp_path: Path) -> None:
    with processes(PROCESSES, "all", str(KEYS)) as started:
        assert [heard(process) for process in started] == ["ready"] * PROCESSES
        for number in range(ROUNDS):
            path = tmp_path / f"{number}.db"
            for process in started:
                assert process.stdin is not None
                process.stdin.write(f"{path}\n")
            for process in started:
                assert process.stdin is not None
                process.stdin.flush()
            told = [heard(process) for process in started]
            assert [answer for answer in told if isinstance(answer, str)] == []
            done = dict(effects(path))
            assert len(effects(path)) == len(done) == KEYS
            for key in range(KEYS):
                answers = [answer[key] for answer in told]
                assert Counter(kind for kind, _ in answers)["Started"] == 1
                assert {kind for kind, _ in answers} <= {"Started", "Replayed", "Pending"}
                assert {run_id for _, run_id in answers} == {done[f"k-{key}"]}  # STA-2
            database = connect(path)
            assert Deployment(database).reservations.inventory() == ()
            database.close()


NEVER, REACHED = "never reached the lock", "reached the lock, not ended"

KILLED = {
    "read both": (None, "Started", 1),
    "create reservations": (None, "Started", 1),
    "insert": (None, "Started", 1),
    "read back": ("reserved", "Started", 1),
    "claim": ("reserved", "Started", 1),
    "read fence": (NEVER, "Pending", 0),
    "insert lock": (NEVER, "Pending", 0),
    "read holder": (REACHED, "Pending", 0),
    "before the effect": (REACHED, "Pending", 0),
    "after the effect": (REACHED, "Pending", 1),
    "persist": (REACHED, "Pending", 1),
    "settle": ("ended, not settled", "Replayed", 1),
}
"""Where a process was killed: what the inventory says then, what a later caller hears, and the effects."""


@pytest.mark.parametrize("stop", KILLED)
def test_STA_7_a_process_killed_at_any_statement_is_told_as_what_it_is(tmp_path: Path, stop: str) -> None:
    path = tmp_path / "app.db"
    database = connect(path)
    ours = Deployment(database)
    with processes(1, "stop", str(path), stop) as (process,):
        assert heard(process) == "here"
        process.send_signal(signal.SIGKILL)
        assert process.wait(10) == -signal.SIGKILL
    kind, answer, times = KILLED[stop]
    assert [entry.kind for entry in ours.reservations.inventory()] == ([] if kind is None else [kind])
    row = ours.reservations.read("k")
    told = [ours.start("k", lambda run: effect(run, f"{path}.log")) for _ in range(3)]
    assert type(told[0]).__name__ == answer
    assert len({each.run_id for each in told}) == 1
    assert row is None or told[0].run_id == row.run_id  # STA-2, STA-6
    if answer == "Pending":
        assert {type(each).__name__ for each in told} == {"Pending"}
        assert [getattr(each, "reached_lock", None) for each in told] == [kind == REACHED] * 3
    assert len(effects(path)) == times
    database.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
