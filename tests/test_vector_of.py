"""A divergence becomes a vector that shows it; and how traces are found that cover a scope."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from vectored import (
    fits,
    played,
    replayed,
)

from startonce.model.interleaving import Action
from startonce.model.operations import Call, Fault, Reserved
from startonce.model.predicates import Step
from startonce.model.reservation import EMPTY, NOTHING, Database, Lock, Reservation, State
from startonce.oracle.covering import timeless, traces
from startonce.oracle.edges import walk
from startonce.oracle.faulty import walk_faults
from startonce.oracle.interleave import Scenario, explore
from startonce.oracle.ledger import Divergence, Ledger
from startonce.oracle.mutants import STORES
from startonce.oracle.probes import probe
from startonce.oracle.shortest import shortest
from startonce.oracle.vectors import vector_of
from startonce.oracle.wire.serve import ended
from startonce.own import SqlSubject


@cache
def diverging(name: str) -> Divergence:
    """What the walk over whole operations finds first of a broken store's clause."""
    subject, ledger = STORES[name].subject(), Ledger()
    walk(subject, ledger)
    subject.close()
    return ledger.divergences[STORES[name].clause]


@pytest.mark.parametrize(
    "name",
    ["claim without the run id", "free of a reserved row", "settle waits for the fence", "claim creates the schema"],
)  # fmt: skip
def test_a_divergence_of_a_whole_operation_becomes_a_vector_that_shows_it(name: str) -> None:
    mutant = STORES[name]
    divergence = diverging(name)
    vector = fits(vector_of(divergence))
    assert "interleaved" not in vector
    assert vector["id"] == vector_of(divergence)["id"]
    assert vector["steps"][-1]["clauses"][0] == divergence.clauses[0]
    for step, done in replayed(vector):
        assert json.loads(json.dumps(ended(done.answer))) == {
            m: step[m] for m in ("answer", "error") if m in step
        }
    ours, broken = SqlSubject(), mutant.subject()
    assert list(played([vector], ours)) == []
    assert [step for _, step in played([vector], broken)] == [vector["steps"][-1]]
    ours.close()
    broken.close()


def test_statements_of_one_caller_after_another_become_whole_operations() -> None:
    actions = (
        Action("run", "A", "reserve", ("k1", "r1"), 1, "insert"),
        Action("run", "A", "reserve", ("k1", "r1"), 1, "create reservations"),
        Action("run", "A", "reserve", ("k1", "r1"), 1, "create locks"),
        Action("run", "A", "reserve", ("k1", "r1"), 1, "insert"),
        Action("run", "A", "reserve", ("k1", "r1"), 1, "read back"),
        Action("run", "B", "claim", ("k1", "r1"), 2, "claim"),
        Action("run", "A", "reserve", ("k2", "r1"), 3, "insert"),
    )
    found = Divergence(("RSV-1",), "machine", NOTHING, actions, ("goes on", NOTHING), ("goes on", NOTHING))
    vector = fits(vector_of(found))
    assert [(step["operation"], step["now"]) for step in vector["steps"]] == [
        ("reserve", 1),
        ("claim", 2),
        ("reserve", 3),
    ]
    assert vector["needs"] == ["reserve", "claim", "absent"]
    assert list(played([vector], SqlSubject())) == []


def test_a_caller_that_is_held_while_another_goes_on_makes_an_interleaved_vector() -> None:
    name = "claim without the run id"
    subject = STORES[name].subject()
    found = shortest(subject, diverging(name))
    subject.close()
    assert [action.caller for action in found.actions] == ["A", "B"]
    steps = fits(vector_of(found))["steps"]
    assert vector_of(found)["interleaved"] is True
    assert [(step["caller"], step["statement"]) for step in steps] == [("A", "insert"), ("B", "claim")]
    assert steps[0]["goes_on"] is True
    assert steps[1]["answer"] is False


HELD = (
    Action("run", "A", "reserve", ("k1", "r1"), 1, "insert"),
    Action("run", "B", "claim", ("k1", "r1"), 2, "claim", Fault.LOST),
    Action("pin", now=3),
    Action("run", "C", "settle", ("r1",), 4, "settle", Fault.LATE),
    Action("crash", "A", now=5),
    Action("deny", now=6),
    Action("run", "B", "cancel", ("r1",), 7, "insert cancel"),
    Action("allow", now=8),
    Action("land", "C", now=9),
    Action("run", "A", "read", ("k1",), 10, "read", Fault.STALE),
    Action("run", "B", "claim", ("k1", "r2"), 11, "claim"),
)


def test_callers_that_are_held_and_what_befalls_them_make_an_interleaved_vector() -> None:
    spent = Database((Reservation("k1", "r1", State.TERMINAL, 1, 4),), ())
    found = Divergence(("CLM-4",), "machine", EMPTY, HELD, (False, spent), (True, spent))
    vector = fits(vector_of(found))
    assert vector["interleaved"] is True
    steps = vector["steps"]
    assert [step["do"] for step in steps] == [action.do for action in HELD]
    assert [step.get("fault") for step in steps if step["do"] == "run"] == [
        None, "reply lost", "late", None, "stale", None,
    ]  # fmt: skip
    row = ["k1", "r1", "reserved", 1, 1]
    assert steps[0] == {
        "do": "run", "caller": "A", "operation": "reserve", "args": ["k1", "r1"], "now": 1, "statement": "insert",
        "goes_on": True, "rows": [row], "locks": [], "clauses": steps[0]["clauses"],
    }  # fmt: skip
    assert steps[1]["error"] == "unknown outcome"
    assert steps[6]["error"] == "not applied"
    assert steps[9]["answer"] == ["k1", "r1", "started", 1, 2]
    assert steps[8] == {"do": "land", "caller": "C", "rows": [["k1", "r1", "terminal", 1, 4]], "locks": []}
    assert (steps[10]["answer"], steps[10]["clauses"][0]) == (False, "CLM-4")
    assert "CLM-6" in vector["clauses"]


def test_the_model_goes_along_with_what_the_faults_show() -> None:
    mutant = STORES["unknown claim reported as lost"]
    subject, ledger = mutant.subject(), Ledger()
    walk_faults(subject, ledger)
    found = shortest(subject, ledger.divergences["CLM-6"], "CLM-6")
    subject.close()
    vector = fits(vector_of(found))
    assert vector["interleaved"] is True
    assert vector["steps"][-1]["error"] == "unknown outcome"
    assert vector["steps"][-1]["fault"] in ("reply lost", "late")
    assert all("rows" in step for step in vector["steps"])
    assert vector["id"].startswith("CLM-6-")


def test_statements_that_are_not_the_models_say_what_must_follow_in_the_end_alone() -> None:
    mutant = STORES["claim by read, then update"]
    subject, ledger = mutant.subject(held=True), Ledger()
    start = Database((Reservation("k1", "r1", State.RESERVED, 0, 0),), ())
    explore(
        subject,
        ledger,
        [Scenario(start, ((Call("claim", ("k1", "r1"), 1),), (Call("claim", ("k1", "r1"), 2),)))],
    )
    subject.close()
    found = ledger.divergences["CLM-2"]
    vector = fits(vector_of(found))
    assert vector["interleaved"] is True
    assert len({step["caller"] for step in vector["steps"]}) > 1
    assert all(not {"answer", "error", "goes_on", "rows"} & set(step) for step in vector["steps"][:-1])
    last = vector["steps"][-1]
    assert last["clauses"] == list(found.clauses)
    assert ("answer" in last, last["answer"]) == (True, found.expected[0])
    assert [step["statement"] for step in vector["steps"]] == [action.statement for action in found.actions]


def test_calls_at_once_have_no_order_to_follow() -> None:
    calls = (Action("run", "A", "reserve", ("k1", "r1"), 1), Action("run", "B", "reserve", ("k1", "r2"), 1))
    row = Reservation("k1", "r1", State.RESERVED, 1, 1)
    db = Database((row,), ())
    found = Divergence(
        ("RSV-4",), "races", EMPTY, calls, (Reserved(row, False), db), (Reserved(row, True), db)
    )
    steps = fits(vector_of(found))["steps"]
    assert "rows" not in steps[0]
    assert steps[1]["answer"] == {"row": list(row), "created": False}
    assert steps[1]["rows"] == [list(row)]


def test_bad_input_becomes_a_vector_and_a_spoiled_schema_does_not() -> None:
    for name, clause in (("trimmed keys", "IN-1"), ("unreadable is absent", "RD-3")):
        subject, ledger = STORES[name].subject(), Ledger()
        probe(subject, ledger)
        subject.close()
        found = ledger.divergences[clause]
        if clause == "IN-1":
            vector = fits(vector_of(found))
            assert vector["steps"][-1]["error"] == "invalid"
            assert list(played([vector], SqlSubject())) == []
            assert len(list(played([vector], STORES[name].subject()))) == 1
        else:
            with pytest.raises(ValueError, match="answers otherwise"):
                vector_of(found)


def test_locks_and_a_fence_that_are_there_are_shown_even_if_nothing_asks_for_them() -> None:
    start = Database(
        (Reservation("k1", "r1", State.STARTED, 1, 2),), (Lock("r1", "k1", "h1", False, None, 3),), True
    )
    action = Action("run", "A", "settle", ("r1",), 4)
    after = start._replace(rows=(Reservation("k1", "r1", State.TERMINAL, 1, 4),))
    found = Divergence(("LCK-1",), "edges", start, (action,), (1, after), (1, after._replace(locks=())))
    vector = fits(vector_of(found))
    assert vector["start"] == {
        "rows": [["k1", "r1", "started", 1, 2]], "locks": [["r1", "k1", "h1", False, None, 3]], "fence": True,
    }  # fmt: skip
    assert (vector["steps"][0]["locks"], vector["steps"][0]["fence"]) == (
        [["r1", "k1", "h1", False, None, 3]],
        True,
    )
    assert vector["needs"] == ["settle"]


def test_the_id_of_a_divergence_is_its_own() -> None:
    one = diverging("claim without the run id")
    ids = {
        vector_of(one)["id"],
        vector_of(one._replace(clauses=("CLM-1",)))["id"],
        vector_of(one._replace(actions=(one.actions[0]._replace(now=77),), expected=("…", one.start)))[
            "id"
        ],
    }
    assert len(ids) == 3


# --- covering ---


def test_where_nothing_new_can_be_reached_another_trace_begins() -> None:
    """A run is locked for good: who covers both ways to lock it needs two traces."""

    def choices(db: Database) -> Iterator[tuple[Any, ...]]:
        yield from (("reserve", "k1", "r1"), ("claim", "k1", "r1"))
        yield from (("take_lock", "k1", "r1", "h1"), ("cancel", "r1"), ("lock_of", "r1"))

    def covers(step: Step) -> frozenset[Any]:
        lock = step.answer if step.call.operation == "lock_of" else None
        return frozenset({lock.holder} if lock else ())

    found = traces(EMPTY, choices, covers)
    assert [[step.call.operation for step in trace] for trace in found] == [
        ["cancel", "lock_of"],
        ["reserve", "claim", "take_lock", "lock_of"],
    ]
    assert [step.call.now for step in found[1]] == [1, 2, 3, 4]


def test_a_trace_takes_the_nearest_step_that_is_new_and_first_what_changes_nothing() -> None:
    def choices(db: Database) -> Iterator[tuple[Any, ...]]:
        yield from (("reserve", "k1", "r1"), ("claim", "k1", "r1"), ("settle", "r1"), ("read", "k1"))

    def covers(step: Step) -> frozenset[Any]:
        row = step.after.row("k1")
        return frozenset(
            {(step.call.operation, row and row.state)} if row is None or row.state != "started" else ()
        )

    (trace,) = traces(EMPTY, choices, covers)
    of_no_row, of_a_reserved_one = ["claim", "settle", "read"], ["reserve", "read"]
    of_a_spent_one = ["settle", "reserve", "claim", "read"]
    assert [step.call.operation for step in trace] == of_no_row + of_a_reserved_one + of_a_spent_one


def test_what_differs_in_the_clock_alone_is_one_place() -> None:
    rows = [Reservation(key, "r1", State.TERMINAL, 0, at) for key, at in (("k1", 5), ("k2", 9))]
    later = tuple(row._replace(updated_at=row.updated_at * 3, created_at=2) for row in rows)
    other = tuple(row._replace(updated_at=20 - row.updated_at) for row in rows)
    assert timeless(Database(tuple(rows), ())) == timeless(Database(later, ()))
    assert timeless(Database(tuple(rows), ())) != timeless(Database(other, ()))
