"""Trace files: what is written is read again, and what is no trace is refused with its line."""

import json
from pathlib import Path
from typing import Any

import pytest

from startonce.model.interleaving import Action
from startonce.model.operations import Fault
from startonce.model.reservation import EMPTY, Database, Lock, Reservation, State
from startonce.oracle.ledger import Divergence
from startonce.oracle.lockstep import follow
from startonce.oracle.mutants import STORES
from startonce.oracle.tracefile import BadTrace, load, to_text
from startonce.own import SqlSubject

ACTIONS = (
    Action("run", "A", "reserve", ("k1", "r1"), 1, "insert"),
    Action("pin", now=2),
    Action("crash", "A", now=3),
    Action("run", "B", "claim", ("k1", "r1"), 4, "claim", Fault.LATE),
    Action("run", "B", "inventory", (("k1", "r1"), 5), 5, "inventory"),
    Action("run", "B", "inventory", (None, 5), 6, "inventory", Fault.STALE),
    Action("land", "B", now=7),
)
DB = Database(
    (Reservation("k1", "r1", State.STARTED, 1, 2),), (Lock("r1", "k1", "h1", True, "{}", 3),), True
)
FOUND = Divergence(("CLM-4", "CLM-1"), "machine", DB, ACTIONS, (False, DB), (True, EMPTY))


def written(folder: Path, text: str) -> Path:
    path = folder / "t.trace.json"
    path.write_text(text, "utf-8")
    return path


def test_a_trace_is_read_as_it_was_written(tmp_path: Path) -> None:
    start, actions, last = load(written(tmp_path, to_text(FOUND, "test")))
    assert (start, actions) == (DB, ACTIONS)
    assert last["violates"] == ["CLM-4", "CLM-1"]
    assert last["observed"]["answer"] == "True"


def test_a_saved_divergence_diverges_again(tmp_path: Path) -> None:
    subject = STORES["claim without the run id"].subject()
    actions = (
        Action("run", "A", "reserve", ("k1", "r2"), 1),
        Action("run", "B", "claim", ("k1", "r1"), 2),
    )
    found = follow(subject, actions, EMPTY)
    assert found is not None
    start, again, _ = load(written(tmp_path, to_text(found, subject.name)))
    repeated = follow(subject, again, start)
    assert repeated is not None
    assert repeated.clauses == found.clauses
    assert follow(SqlSubject(), again, start) is None


LINES = to_text(FOUND, "test").splitlines()


def edited(line: int, **changes: Any) -> str:
    values = [json.loads(text) for text in LINES]
    values[line - 1].update(changes)
    return "\n".join(json.dumps(value) for value in values)


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("", 1, "not a trace"),
        ("hello", 1, "not a JSON object"),
        ("[]", 1, "not a JSON object"),
        ("{}", 1, "required"),
        ("\n".join(LINES[:-1]), len(LINES) - 1, "cut off"),
        ("\n".join(LINES)[:-20], len(LINES), "cut off"),
        ("\n".join(LINES[1:]), 1, "not a trace"),
        (edited(1, version=2), 1, "version 2"),
        (edited(1, version="1"), 1, "version '1'"),
        (edited(1, start={"rows": [["k"]], "locks": None, "fence_closed": None}), 1, "start/rows/0"),
        (edited(1, start={"rows": [["k", "r", "begun", 0, 0]], "locks": None, "fence_closed": None}), 1, "begun"),
        (edited(2, do="explode"), 2, "explode"),
        (edited(2, caller="AA"), 2, "caller"),
        (edited(2, args=[{"$": 1}]), 2, "args"),
        (edited(3, now=10**30), 3, "now"),
        (edited(5, fault="maybe"), 5, "maybe"),
        (edited(4, extra=1), 4, "extra"),
        ("\n".join([*LINES[:3], LINES[0], *LINES[3:]]), 4, "not an action"),
        ("\n".join([*LINES[:3], "[" * 100_000, *LINES[3:]]), 4, "not a JSON object"),
    ],
)  # fmt: skip
def test_what_is_no_trace_is_refused_with_its_line(text: str, line: int, why: str, tmp_path: Path) -> None:
    with pytest.raises(BadTrace) as caught:
        load(written(tmp_path, text))
    assert caught.value.line == line
    assert why in str(caught.value)
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="cannot be read"):
        load(tmp_path / "none")
    with pytest.raises(BadTrace, match="cannot be read"):
        load(tmp_path)
    (tmp_path / "b").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadTrace, match="UTF-8"):
        load(tmp_path / "b")
