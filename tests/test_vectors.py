"""The vectors are the model's, take every edge and meet every refusal."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from vectored import (
    FILES,
    FOLDER,
    Json,
    committed,
    database,
    everything,
    replayed,
)

from startonce import vectors as generator
from startonce.model.inputs import admissible
from startonce.model.operations import INVALID, PROGRAMS, Stopped
from startonce.model.predicates import Step, judge, judge_trace, registered
from startonce.model.reservation import Database
from startonce.oracle import machine, scopes
from startonce.oracle.history import undated
from startonce.oracle.probes import BAD_VALUES
from startonce.oracle.situations import situation
from startonce.oracle.wire.responses import ANSWERS
from startonce.oracle.wire.serve import ended
from startonce.oracle.wire.words import CORE, ERRORS, FENCE, KINDS, LOCKS, REASONS


def test_the_files_are_not_stale() -> None:
    texts = generator.generated()
    assert {path.name for path in FOLDER.iterdir()} == set(texts)
    for name, text in texts.items():
        assert (FOLDER / name).read_text("utf-8") == text, "python -m startonce.vectors vectors"


def test_the_files_are_written_by_a_command(tmp_path: Path) -> None:
    done = [sys.executable, "-m", "startonce.vectors", str(tmp_path / "new")]
    subprocess.run(done, check=True, timeout=60)
    for path in FOLDER.iterdir():
        assert (tmp_path / "new" / path.name).read_bytes() == path.read_bytes()


def test_every_file_fits_the_schema() -> None:
    schema = json.loads((FOLDER / "schema.json").read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    for file in FILES:
        Draft202012Validator(schema).validate(json.loads(file.read_text("utf-8")))


@pytest.mark.parametrize(
    ("operation", "change"),
    [
        ("claim", {"answer": 1}),
        ("claim", {"answer": None}),
        ("settle", {"answer": True}),
        ("read", {"answer": []}),
        ("reserve", {"answer": ["k1", "r1", "reserved", 0, 0]}),
        ("claim", {"error": "invalid"}),
        ("claim", {"rows": [["k1", "r1", "begun", 0, 0]]}),
        ("claim", {"rows": {}}),
        ("claim", {"operation": "start"}),
        ("claim", {"now": "1"}),
        ("claim", {"clauses": []}),
        ("claim", {"caller": "A"}),
        *((("claim"), {name: ...}) for name in ("answer", "rows", "now", "args", "case", "clauses")),
    ],
)
def test_the_schema_refuses_what_is_no_step(operation: str, change: Json) -> None:
    content = json.loads(FILES[0].read_text("utf-8"))
    valid = Draft202012Validator(generator.schema()).is_valid
    step = next(one for one in content["vectors"][0]["steps"] if one["operation"] == operation)
    assert valid(content)
    step.update(change)
    for name in [name for name, given in change.items() if given is ...]:
        del step[name]
    assert not valid(content)


SIZES = [(4, 710), (9, 278), (7, 525)]
"""Vectors and steps of each file."""

IDS = [
    "reservations/edges",
    "reservations/no-table",
    "reservations/purge",
    "reservations/clocks",
    "locks/walk-1",
    "locks/walk-2",
    "locks/walk-3",
    "locks/walk-4",
    "locks/walk-5",
    "locks/no-table",
    "locks/several-keys",
    "locks/fence",
    "locks/fence-no-table",
    "inputs/invalid",
    "inputs/invalid-purge",
    "inputs/invalid-inventory",
    "inputs/invalid-locks",
    "inputs/distinct",
    "inputs/distinct-holders",
    "inputs/longest",
]


def test_an_id_is_given_once_and_stays() -> None:
    assert [vector["id"] for vector in committed()] == IDS


def test_the_files_are_as_small_as_they_were() -> None:
    """More steps than here are more than are needed; fewer are fewer kinds."""
    found = [json.loads(file.read_text("utf-8"))["vectors"] for file in FILES]
    assert [(len(some), sum(len(one["steps"]) for one in some)) for some in found] == SIZES
    assert len(found[0][0]["steps"]) == 672


def test_a_vector_begins_without_rows_or_without_a_table() -> None:
    starts = [vector["start"] for vector in committed()]
    assert {(start["rows"] is None, start["locks"] is None) for start in starts} == {
        (True, True),
        (False, False),
    }
    for vector in committed():
        start = vector["start"]
        assert not start["rows"]
        assert not start["locks"]
        assert start["fence"] is None
        assert (start["rows"] is None) == ("absent" in vector["needs"])


def test_what_a_vector_needs_is_in_it_and_locks_and_fence_are_shown_where_they_are_used() -> None:
    for vector in committed():
        used = {step["operation"] for step in vector["steps"]}
        assert set(vector["needs"]) >= CORE
        assert set(vector["needs"]) - CORE - {"absent"} <= used, vector["id"]
        assert bool(used & LOCKS) == bool(set(vector["needs"]) & LOCKS)
        assert bool(used & FENCE) == bool(set(vector["needs"]) & FENCE)
        for step in vector["steps"]:
            assert ("locks" in step) == bool(used & LOCKS)
            assert ("fence" in step) == bool(used & FENCE)


# --- what they cover ---


Taken = dict[tuple[Any, ...], set[tuple[Any, Database]]]


def effective(steps: Iterable[Step]) -> Taken:
    """The edges that change a table of the scope, named as the machine's tally does, with what followed."""
    found: Taken = {}
    for step in steps:
        call, rows = step.call, step.before.rows or ()
        if step.before == step.after:
            continue
        args = call.args
        if call.operation == "purge":
            args = tuple(row.key for row in rows if row.updated_at < args[0])
        name = (tuple(row[:3] for row in rows), call.operation, args)
        found.setdefault(name, set()).add((undated(step.answer), undated(step.after)))
    return found


def missing_edges(some: Iterable[Json]) -> list[tuple[Any, ...]]:
    """The effective edges of the scope *edges* that vectors do not take, by a count of its own."""
    taken = effective(step for _, step in everything(some))
    return [name for name in machine.effective_edges() if name not in taken]


def test_every_effective_edge_is_taken() -> None:
    assert len(machine.effective_edges()) == 399
    assert missing_edges(v for v in committed() if v["id"] == "reservations/edges") == []


def test_every_effective_edge_leads_where_the_scope_says() -> None:
    keys, runs = scopes.EDGES.keys, scopes.EDGES.runs
    edges = [
        edge
        for table in scopes.tables(keys, runs)
        for edge in scopes.whole_edges(table, keys, runs)
        if edge.effective
    ]
    assert len(edges) == 399
    wanted = effective(edge.step(edge.after, edge.answer) for edge in edges)
    taken = effective(
        step for _, step in everything(v for v in committed() if v["id"] == "reservations/edges")
    )
    assert {name: there for name, there in taken.items() if name in wanted} == wanted


def test_an_edge_that_is_left_out_is_missed() -> None:
    """Or the count would count nothing: without its last change the walk lacks that edge."""
    vector = deepcopy(next(v for v in committed() if v["id"] == "reservations/edges"))
    changing = [n for n, (_, step) in enumerate(replayed(vector)) if step.before != step.after]
    vector["steps"] = vector["steps"][: changing[-1]]
    assert len(missing_edges([vector])) == 1


def met() -> set[tuple[str, str]]:
    """Every situation that some operation meets, by the words in the files."""
    return {(step["operation"], step["case"]) for vector in committed() for step in vector["steps"]}


def of_scopes() -> Iterator[scopes.Edge]:
    keys, runs = scopes.EDGES.keys, scopes.EDGES.runs
    for table in scopes.tables(keys, runs):
        yield from scopes.whole_edges(table, keys, runs)
        yield from scopes.read_edges(table, keys, runs)
    for table in scopes.lock_tables():
        yield from scopes.lock_edges(table)
    for edge in scopes.bare_edges():
        if (edge.before.rows is None) == (edge.before.locks is None):  # there is no way to half a schema
            yield edge


def test_every_situation_of_the_walked_scopes_is_met() -> None:
    unmet = {
        (edge.call.operation, situation(edge.before, edge.call))
        for edge in of_scopes()
        if edge.call.operation != "inventory"  # which kinds of entry stand together is no matter
    } - met()
    assert unmet == set()


def row_before(step: Step) -> str:
    """How the row of a key looks to a run, said in another way than `situation` does."""
    row = next((row for row in step.before.rows or () if row.key == step.call.args[0]), None)
    if row is None:
        return "none"
    return f"{'own' if row.run_id == step.call.args[1] else 'other'} {row.state.value}"


def holder_before(step: Step, run_id: str, holder: str = "") -> str:
    """Who holds the lock of a run, likewise."""
    lock = next((lock for lock in step.before.locks or () if lock.run_id == run_id), None)
    if lock is None:
        return "nobody"
    who = (
        lock.holder
        if lock.holder in ("cancel", "free")
        else "mine"
        if lock.holder == holder
        else "an execution"
    )
    return f"{who}, ended" if lock.ended else who


STATES = ("reserved", "started", "terminal")
ROWS = {"none", *(f"{who} {state}" for who in ("own", "other") for state in STATES)}
HOLDERS = {"an execution", "an execution, ended", "cancel", "free"}


def kept() -> list[Step]:
    """Steps on an existing table that change nothing, of admissible arguments."""
    return [
        step
        for _, step in everything(committed())
        if step.before == step.after and step.before.rows is not None and admissible(step.call)
    ]


def test_every_refusal_of_reserve_claim_and_release_occurs() -> None:
    found = {
        (s.call.operation, row_before(s))
        for s in kept()
        if s.call.operation in ("reserve", "claim", "release")
    }
    assert found == {
        *(("reserve", row) for row in ROWS - {"none"}),
        *(("claim", row) for row in ROWS - {"own reserved"}),
        *(("release", row) for row in ROWS - {"own started"}),
    }


def test_every_refusal_of_the_lock_occurs() -> None:
    taken = {
        (row_before(s), holder_before(s, *s.call.args[1:]))
        for s in kept()
        if s.call.operation == "take_lock"
    }
    mine = {"mine", "mine, ended", "nobody", *HOLDERS}
    assert taken == {(row, holder) for row in ROWS for holder in mine} - {("own started", "nobody")}
    persisted = {holder_before(s, *s.call.args[:2]) for s in kept() if s.call.operation == "persist"}
    assert persisted == mine - {"mine"}
    looked = {holder_before(s, *s.call.args) for s in kept() if s.call.operation == "lock_of"}
    assert looked == {"nobody", *HOLDERS}


def test_cancel_and_free_say_every_reason() -> None:
    said = {
        (step.call.operation, step.answer.reason)
        for _, step in everything(committed())
        if isinstance(step.answer, Stopped)
    }
    assert {reason for _, reason in said} == REASONS
    both = {"it has ended", "nobody holds its lock", "an execution holds its lock"}
    cancel = {"cancelled", "a free holds its lock", *both}
    assert said == {
        *(("cancel", reason) for reason in cancel),
        *(
            ("free", reason)
            for reason in REASONS - {"cancelled", "a free holds its lock", "nobody holds its lock"}
        ),
    }


def test_a_purge_and_a_settle_find_nothing_in_every_way() -> None:
    purged = {case for operation, case in met() if operation == "purge"}
    assert purged >= {
        "no table",
        "no row",
        "no spent row",
        "spent rows, none due, one exactly as old as the horizon",
        "the limit leaves one that is as old",
        "the limit leaves one that is younger",
    }
    settled = {
        tuple(sorted(row.state.value for row in s.before.rows or () if row.run_id == s.call.args[0]))
        for s in kept()
        if s.call.operation == "settle"
    }
    assert settled == {(), ("terminal",), ("terminal", "terminal")}


def test_every_kind_of_entry_is_listed_and_no_error_but_one_is_answered() -> None:
    every = list(everything(committed()))
    pages = [s.answer for _, s in every if s.call.operation == "inventory" and isinstance(s.answer, tuple)]
    assert {entry.kind for page in pages for entry in page if len(entry) == 6} == KINDS
    assert {step["error"] for step, _ in every if "error" in step} == {INVALID.error}


def test_every_operation_is_asked_without_a_table() -> None:
    bare = {s.call.operation for _, s in everything(committed()) if s.before.rows is None}
    assert bare == set(PROGRAMS)


IDS_OF = {"key", "run_id", "run_ids"}


def test_every_place_is_given_every_bad_value() -> None:
    """But the two that are long or that not every reader takes."""
    bad = {repr(value) for value in BAD_VALUES if value != "\ud800" and value != "x" * 2_000_000}
    assert len(bad) == len(BAD_VALUES) - 2
    given: dict[tuple[str, int], set[str]] = {}
    for _, step in everything(committed()):
        if step.answer == INVALID:
            rules = PROGRAMS[step.call.operation].arguments
            for place, arg in enumerate(step.call.args):
                name = rules[0] if rules == ("run_ids",) else rules[place]
                parts = enumerate(arg, 10) if name == "after" and isinstance(arg, tuple) else [(place, arg)]
                for at, part in parts:
                    given.setdefault((step.call.operation, at), set()).add(repr(part))
    for operation, program in PROGRAMS.items():
        for place, name in enumerate(program.arguments):
            places = (10, 11) if name == "after" else (0, 1) if name == "run_ids" else (place,)
            if name in IDS_OF or name in ("holder", "after"):
                assert all(given[operation, at] >= bad for at in places), (operation, name)
            if name == "holder":
                assert given[operation, place] >= {"'cancel'", "'free'"}
            if name in ("horizon", "limit", "result"):
                assert len(given[operation, place]) >= 6
    assert {"0", "-1", "'1'", "True"} <= given["purge", 1] & given["inventory", 1]


# --- what the model says of them ---


def test_the_model_answers_what_the_files_say() -> None:
    steps = 0
    for step, done in everything(committed()):
        assert json.loads(json.dumps(ended(done.answer))) == {
            m: step[m] for m in ("answer", "error") if m in step
        }
        assert database(step, done.after) == done.after
        if "answer" in step:
            assert ANSWERS[step["operation"]](step["answer"]) == done.answer
        else:
            assert ERRORS[step["error"]] == done.answer
        steps += 1
    assert steps > 1_400


ALSO = {
    "reservations/clocks": {"STA-8"},
    "inputs/distinct": {"IN-2"},
    "inputs/distinct-holders": {"IN-2"},
    "inputs/longest": {"IN-1"},
}
"""What a vector shows as a whole, beside what the predicates say of its steps."""


def test_the_clauses_of_a_step_are_those_that_say_something_of_it() -> None:
    for vector in committed():
        steps = list(replayed(vector))
        over_all: dict[int, set[str]] = {}
        for clause, _, number in judge_trace([done for _, done in steps]):
            over_all.setdefault(number, set()).add(clause)
        for number, (step, done) in enumerate(steps):
            wanted = {clause for clause, _ in judge(done)} if admissible(done.call) else {"IN-1"}
            wanted |= over_all.get(number, set()) | ALSO.get(vector["id"], set())
            if type(done.answer) is bool:
                wrong = judge(done._replace(answer=not done.answer))
                wanted |= {clause for clause, kept in wrong if not kept}
            assert set(step["clauses"]) == wanted, (vector["id"], number)
            assert step["case"] == situation(done.before, done.call)
        assert set(vector["clauses"]) == {c for step in vector["steps"] for c in step["clauses"]}


def test_every_clause_that_whole_operations_can_show_is_in_some_vector() -> None:
    shown = {clause for vector in committed() for clause in vector["clauses"]}
    assert registered() - shown == {"RSV-5", "CLM-6", "LCK-5"}  # they need two callers, or a fault
    assert shown - registered() == {"STA-8"}
