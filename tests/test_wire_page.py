"""The page, the schema and the code say the same of every message."""

import json
import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
from adapters import PAGE, command, example, fits

from startonce.impl import start as answers
from startonce.model.inputs import RULES
from startonce.model.operations import PROGRAMS, READS, Fault, Stopped
from startonce.oracle import scopes
from startonce.oracle.wire import responses, words
from startonce.oracle.wire.responses import Unfit
from startonce.oracle.wire.shape import decoded, schema, validator


def table(name: str) -> list[list[str]]:
    """The rows of a table in the page, without its head."""
    text = PAGE.split(f"<!-- table: {name} -->\n")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return rows[2:]


def first(name: str) -> list[str]:
    """What the first column of a table names."""
    return [word for row in table(name) for word in re.findall(r"`([^`]+)`", row[0])]


# --- the page and the model -----------------------------------------------------------------------------


def test_the_page_lists_every_operation_with_its_arguments() -> None:
    listed = {row[0].strip("`"): row[1] for row in table("operations")}
    assert listed == {name: ", ".join(program.arguments) for name, program in PROGRAMS.items()}
    assert first("operations")[:5] == ["reserve", "claim", "release", "settle", "read"]


def test_the_page_lists_the_rule_of_every_argument() -> None:
    assert set(first("arguments")) == {*RULES, "run_ids"}
    assert set(RULES) | {"run_ids"} == {name for p in PROGRAMS.values() for name in p.arguments}


def test_the_page_lists_the_statements_of_the_model() -> None:
    for (operation, statements, creates), (name, program) in zip(
        table("statements"), PROGRAMS.items(), strict=True
    ):
        assert operation == f"`{name}`"
        named = [word.removesuffix(" (writes)") for word in statements.split(", ")]
        assert named == list(program.statements)
        assert {word for word in named if f"{word} (writes)" not in statements} == set(named) & READS
        assert [word for word in creates.split(", ") if word] == list(program.creates)


def test_the_page_lists_every_word() -> None:
    assert set(first("errors")) == set(words.ERRORS)
    assert len(first("capabilities")) == len(words.CAPABILITIES)
    assert {row[0].strip("`"): tuple(re.findall(r"`(\w+)`", row[1])) for row in table("capabilities")} == (
        words.CAPABILITIES
    )
    assert set(first("reasons")) == words.REASONS
    assert set(first("kinds")) == words.KINDS
    assert first("spoils") == list(words.SPOILS)
    assert set(first("starts")) == words.STARTS
    assert set(first("faults")) == set(Fault) - {Fault.NONE}


def test_the_words_are_those_of_the_model() -> None:
    edges = [*scopes.bare_edges()]
    for number, table_ in enumerate(scopes.lock_tables()):
        if number % 7 == 0:
            edges += scopes.lock_edges(table_)
    reasons = {edge.answer.reason for edge in edges if isinstance(edge.answer, Stopped)}
    kinds = {entry.kind for e in edges if e.call.operation == "inventory" for entry in e.answer}
    assert reasons == words.REASONS
    assert kinds == words.KINDS
    starts = {kind.__name__.lower() for kind in answers.Answer.__args__}
    assert {kind.replace("stranded", "fencedstranded") for kind in words.STARTS} - {
        "not persisted"
    } == starts


def test_the_schema_has_the_words_of_the_page() -> None:
    found = schema()
    assert set(found["hello_response"]["properties"]["capabilities"]["items"]["enum"]) == set(
        words.CAPABILITIES
    )
    assert set(found["error"]["anyOf"][0]["enum"]) == set(words.ERRORS)
    assert set(found["stopped"]["properties"]["reason"]["enum"]) == words.REASONS
    assert set(found["entry"]["prefixItems"][5]["enum"]) == words.KINDS
    assert set(found["operation"]["enum"]) == {*PROGRAMS, "start"}
    assert {f"{name}_response" for name in (*PROGRAMS, "start")} <= set(found)
    assert tuple(found["spoil_request"]["properties"]["how"]["enum"]) == words.SPOILS
    assert set(found["step_request"]["properties"]["fault"]["enum"]) == set(Fault) - {Fault.NONE}
    assert set(responses.ANSWERS) == {*PROGRAMS, "start"}


def test_every_request_in_the_schema_is_explained_in_the_page() -> None:
    for name in schema():
        if name.endswith("_request") and name != "part_request":
            assert re.search(
                rf'`{name.removesuffix("_request")}`|"do":"{name.removesuffix("_request")}"', PAGE
            ), name


def test_the_session_in_the_page_is_what_the_example_says() -> None:
    lines = PAGE.split("<!-- session -->\n```\n")[1].split("\n```")[0].splitlines()
    assert len(lines) == 10
    asked = [line[2:] for line in lines if line.startswith("> ")]
    told = [json.loads(line[2:]) for line in lines if line.startswith("< ")]
    told[0]["database"] = f"SQLite {sqlite3.sqlite_version}"
    done = subprocess.run(
        command(example()), input="\n".join(asked) + "\n", capture_output=True, text=True, check=True
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == told
    for request in asked:
        fits("request", json.loads(request))


def test_the_example_answers_vanished_where_its_row_is_gone() -> None:
    """The purge between insert and read-back cannot be had of a whole operation: the store is bent."""
    bent = example().replace("    row = read(now, key)\n", "    row = None\n")
    assert bent != example()
    asked = '{"id":1,"do":"call","operation":"reserve","args":["k","r"],"now":1}\n'
    done = subprocess.run(command(bent), input=asked, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"id": 1, "error": "vanished"}


# --- the schema and the checks by hand --------------------------------------------------------------------

LOCK = ["r1", "k1", "h1", True, "{}", 3]
ROW = ["k1", "r1", "started", 1, 2]
ENTRY = ["k1", "r1", "started", "h1", False, "reached the lock, not ended"]
STOPPED = [{"done": True, "reason": "freed"}, {"done": False, "reason": "it has ended", "result": "[]"}]

ANSWERS: dict[str, list[Any]] = {
    "reserve": [{"row": ROW, "created": True}],
    **{name: [True] for name in ("claim", "release", "persist", "fence")},
    **{name: [0, 7] for name in ("settle", "purge")},
    "read": [ROW, None],
    "for_runs": [[], [ROW, ["k0", "r1", "terminal", -5, 2**63 - 1]]],
    "inventory": [[], [ENTRY, ["k2", "r2", None, None, False, "settled or purged, still held"]]],
    "take_lock": [{"mine": False, "holder": None}, {"mine": True, "holder": "h1"}],
    "lock_of": [None, LOCK, ["r1", None, "cancel", False, None, 0]],
    "cancel": STOPPED,
    "free": STOPPED,
    "close_fence": [None],
    "open_fence": [None],
    "start": [{"kind": "pending", "run": "r1"}, {"kind": "retry", "run": None}],
}
COMMON = [{"error": "vanished"}, {"error": "other: boom"}, {"failed": "no database"}]
HELD = [{"at": None}, {"at": "insert", "writes": True}, {"at": "work", "writes": False, "run": "r1"}]

Read = Callable[[dict[str, Any]], Any]
CASES: dict[str, tuple[Read, list[Any]]] = {
    **{
        f"{name}_response": (
            partial(responses.read_call, operation=name),
            [*({"answer": answer} for answer in good), *COMMON],
        )
        for name, good in ANSWERS.items()
    },
    "held_response": (partial(responses.read_step, operation="claim"), HELD),
    "done_response": (responses.read_done, [{"done": True}, {"failed": "x"}]),
    "dump_response": (
        partial(responses.read_dump, locks=True, fence=True),
        [
            {"rows": [ROW], "locks": [LOCK], "fence": None},
            {"rows": None, "locks": None, "fence": True},
            COMMON[2],
        ],
    ),
}

ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**63, -(2**63) - 1, 10**400, 1.0, 1.5, -0.0, 1e30, "", "x", "reserved", "work",
    "insert\n", "\x00", "é", "\ud800", "x" * 101, "other: ", "other", [], [1], {}, {"row": 1}, ROW, LOCK,
)  # fmt: skip


def mutated(value: Any) -> Iterator[Any]:
    """Every value that differs from one in one place: replaced, left out, or added."""
    yield from ODD
    if isinstance(value, dict):
        for name in value:
            yield {other: kept for other, kept in value.items() if other != name}
            for one in mutated(value[name]):
                yield {**value, name: one}
        for more in (
            "extra",
            "x-extra",
            "answer",
            "error",
            "failed",
            "done",
            "at",
            "writes",
            "run",
            "result",
        ):
            if more not in value:
                yield from ({**value, more: one} for one in (None, True, "x", "r1"))
    if isinstance(value, list):
        for place in range(len(value)):
            yield value[:place] + value[place + 1 :]
            for one in mutated(value[place]):
                yield [*value[:place], one, *value[place + 1 :]]
        yield [*value, *value[-1:]]
        yield [*value, None]


def taken(read: Read, response: Any) -> bool:
    """Whether the checks by hand take a response."""
    try:
        read(response)
    except Unfit:
        return False
    return True


@pytest.mark.parametrize("name", list(CASES))
def test_the_schema_and_the_checks_by_hand_agree(name: str) -> None:
    read, good = CASES[name]
    valid = validator(name).is_valid
    yes, no = 0, 0
    for response in good:
        assert taken(read, deepcopy(response)), response
        assert valid(response), response
        for value in mutated(response):
            if not isinstance(value, dict):
                continue  # refused before anybody reads it: see `tests/test_wire_bad.py`
            as_sent = decoded(json.dumps(value).encode())
            by_schema = valid(as_sent)
            if name == "dump_response" and "rows" in as_sent and not {"locks", "fence"} <= set(as_sent):
                by_schema = False  # which members there are depends on the capabilities
            assert taken(read, as_sent) == by_schema, as_sent
            yes, no = yes + by_schema, no + (not by_schema)
    assert yes > 0
    assert no > 50


def test_a_row_in_any_order_is_read_in_order_of_key() -> None:
    rows = [["k2", "r1", "started", 0, 0], ["k1", "r1", "started", 0, 0]]
    found = responses.read_dump({"rows": rows}, locks=False, fence=False)
    assert [row.key for row in found.rows or ()] == ["k1", "k2"]  # type: ignore[union-attr]
    ended = responses.read_call({"answer": rows}, "for_runs")
    assert [row.key for row in ended.answer] == ["k1", "k2"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b"[1.0, 1e2, -0.0]", [1, 100, 0]),
        (b"[1.5]", [1.5]),
        (b'"\xc3\xa9"', "é"),
        (b' {"a": 1}\r', {"a": 1}),
    ],
)
def test_a_number_is_read_by_its_value(line: bytes, value: Any) -> None:
    assert decoded(line) == value
    assert [type(one) for one in decoded(line)] == [type(one) for one in value]


@pytest.mark.parametrize("line", [b"NaN", b"[Infinity]", b"\xff", b"{'a': 1}", b"", b"{} {}", b"9" * 5000])
def test_what_is_no_json_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decoded(line)
