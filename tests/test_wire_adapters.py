"""Adapters that are small scripts: the one in the page, one whose clock is its own, one with own steps."""

import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from adapters import command, example
from test_wire import ROW, edges_of_the_default_scope

from startonce.model.operations import UNKNOWN, Call, Ended
from startonce.model.reservation import EMPTY, NOTHING, Database, Lock, State
from startonce.oracle.check import try_out
from startonce.oracle.edges import walk
from startonce.oracle.ledger import Ledger
from startonce.oracle.probes import probe
from startonce.oracle.subject import STEPPING
from startonce.oracle.wire import OWN_STEPS, WireSubject
from startonce.oracle.wire.misbehaviour import BadResponse, NotAskable
from startonce.oracle.wire.responses import Told
from startonce.oracle.wire.timeless import Times

# --- the adapter in the page -----------------------------------------------------------------------------------


@pytest.fixture
def simple() -> Iterator[WireSubject]:
    with closing(WireSubject.start(command(example()))) as subject:
        yield subject


def test_the_example_in_the_page_holds_as_it_stands(simple: WireSubject) -> None:
    ledger = Ledger()
    try_out(simple)
    walked = walk(simple, ledger)
    probe(simple, ledger)
    assert ledger.divergences == {}
    assert sum(one.executed for one in walked) == sum(one.edges for one in walked) > 8_000
    assert ledger.evaluated["IN-1"] > 100
    assert ledger.evaluated["CLM-4"] > 100


def test_the_example_in_the_page_is_short() -> None:
    lines = example().split("# --- its adapter")[1].splitlines()
    assert len([line for line in lines if line.strip()]) <= 60


def test_a_mistake_in_the_example_is_found() -> None:
    broken = example().replace("AND run = ? AND state", "AND run IS NOT ? AND state")
    assert broken != example()
    with closing(WireSubject.start(command(broken))) as subject:
        ledger = Ledger()
        walk(subject, ledger)
        assert "CLM-4" in ledger.divergences


def test_what_an_adapter_cannot_do_is_not_asked_of_it(simple: WireSubject) -> None:
    with pytest.raises(NotAskable, match="a run lock needs the capability take_lock"):
        simple.put(Database((), (Lock("r1", "k1", "h1", False, None, 0),)))
    with pytest.raises(NotAskable, match="fence"):
        simple.put(EMPTY._replace(fence_closed=True))
    for refused in (
        lambda: simple.hold(0, Call("claim", ("k1", "r1"), 5)),
        lambda: simple.race([(0, Call("claim", ("k1", "r1"), 5))]),
        simple.pin,
        lambda: simple.deny(True),
        lambda: simple.spoil("state", "k1"),
    ):
        with pytest.raises(NotAskable):
            refused()
    simple.put(EMPTY)
    assert simple.dump() == EMPTY


def without(*capabilities: str) -> str:
    script = example()
    for name in capabilities:
        assert f'"{name}"' in script
        script = re.sub(rf'"{name}"(, )?', "", script)
    return script


def test_without_absent_there_is_always_a_table() -> None:
    with closing(WireSubject.start(command(without("absent")))) as subject:
        with pytest.raises(NotAskable, match="absent"):
            subject.put(NOTHING)
        assert not subject.absent
        subject.reset()
        subject.put(EMPTY)
        assert subject.dump() == EMPTY


def test_without_surrogates_none_is_sent() -> None:
    with closing(WireSubject.start(command(without("surrogates")))) as subject:
        assert not subject.carries(Call("read", ("\ud800",), 5))
        assert subject.carries(Call("read", ("é",), 5))
        with pytest.raises(NotAskable, match="surrogates"):
            subject.begin(0, Call("read", ("a\udfffb",), 5))


# --- an adapter whose clock is its own --------------------------------------------------------------------------


def with_own_clock(script: str) -> str:
    """A store that asks the clock itself, and an adapter that does not pass it on."""
    assert 'request["now"]' in script
    return script.replace('request["now"]', "time.time_ns()").replace(
        "import json", "import json\nimport time"
    )


def test_without_a_clock_the_times_that_operations_wrote_are_not_compared() -> None:
    with closing(WireSubject.start(command(with_own_clock(without("clock"))))) as subject:
        ledger = Ledger()
        walked = walk(subject, ledger)
        assert ledger.divergences == {}
        assert sum(one.executed for one in walked) > 8_000
        edges = [e for e in edges_of_the_default_scope() if e.call.operation in subject.capabilities]
        found = subject.perform([(edge.before, edge.call) for edge in edges])
        assert found == [(edge.answer, edge.after) for edge in edges]


def test_with_a_clock_they_are() -> None:
    with closing(WireSubject.start(command(with_own_clock(example())))) as subject:
        ledger = Ledger()
        walk(subject, ledger)
        assert {"RSV-1", "CLM-1"} <= set(ledger.divergences)


def test_without_a_clock_a_row_that_is_touched_without_need_is_still_seen() -> None:
    script = with_own_clock(without("clock"))
    touching = script.replace(
        '    return db.execute(MOVE, ("started"',
        "    db.execute('UPDATE r SET moved = moved + 1 WHERE key = ?', (key,))\n"
        '    return db.execute(MOVE, ("started"',
    )
    assert touching != script
    with closing(WireSubject.start(command(touching))) as subject:
        ledger = Ledger()
        walk(subject, ledger)
        assert "CLM-3" in ledger.divergences
        assert "CLM-1" not in ledger.divergences


def test_without_a_clock_locks_stand_for_the_time_of_their_step_too() -> None:
    times = Times()
    row, lock = ROW._replace(state=State.STARTED, created_at=0), Lock("r1", "k1", "h1", False, None, 3)
    times.put(Database((row,), (lock,)))
    new = Lock("r2", "k1", "h2", False, None, 10**15)
    shown = Database((row,), (lock, new))
    assert times.dumped(shown, 7) == Database((row,), (lock, new._replace(created_at=7)))
    assert times.answered(new) == new._replace(created_at=7)
    ended = new._replace(ended=True, result="{}")
    assert times.dumped(shown._replace(locks=(lock, ended)), 8).locks == (
        lock,
        ended._replace(created_at=7),
    )
    moved = lock._replace(created_at=4)
    assert times.dumped(shown._replace(locks=(moved,)), 9).locks == (moved._replace(created_at=9),)
    assert times.answered(False) is False
    assert times.answered((row,)) == (row,)
    assert times.answered(()) == ()


# --- statements of its own, races, whole starts -------------------------------------------------------------------

STEPS = """
import json, sys
rows, held = [], {}
def claim(args):  # not one statement: it reads, then writes
    yield {"at": "look, then leap", "writes": False}
    mine = [row for row in rows if row[:3] == [args[0], args[1], "reserved"]]
    yield {"at": "leap", "writes": True}
    for row in mine:
        row[2] = "started"
    return bool(mine)
def start(args):
    yield {"at": "work", "writes": True, "run": "r1"}
    return {"kind": "started", "run": "r1"}
def move(caller):
    try:
        return next(held[caller])
    except StopIteration as stop:
        del held[caller]
        return {"answer": stop.value}
def respond(q):
    do = q["do"]
    if do == "hello":
        return {"protocol": 1, "implementation": "steps", "language": "Python", "version": "1", "homepage": "",
                "database": "a list", "capabilities": ["callers", "clock", "stepping", "race", "starts"]}
    if do == "many":
        return {"of": [respond(one) for one in q["of"]]}
    if do == "put":
        rows[:] = q["rows"]
        return {"done": True}
    if do == "dump":
        return {"rows": rows}
    if do == "begin":
        held[q["caller"]] = globals()[q["operation"]](q["args"])
        return move(q["caller"])
    if do == "step":
        return move(q["caller"]) if q["caller"] in held else {"at": None}
    if do == "crash":
        held.pop(q["caller"], None)
        return {"done": True}
    if do == "race":
        return {"of": [{"answer": True}, {"error": "unknown outcome"}][: len(q["calls"])]}
    if do == "call":
        *_, last = list(globals()[q["operation"]](q["args"]))
        return {"answer": bool(rows)}
for line in sys.stdin:
    q = json.loads(line)
    print(json.dumps({"id": q["id"], **respond(q)}), flush=True)
"""


@pytest.fixture
def stepping() -> Iterator[WireSubject]:
    with closing(WireSubject.start(command(STEPS))) as subject:
        yield subject


def test_statements_of_its_own_are_held_before_and_seen_to_race(stepping: WireSubject) -> None:
    assert OWN_STEPS in stepping.capabilities
    assert STEPPING not in stepping.capabilities
    call = Call("claim", ("k1", "r1"), 5)
    stepping.put(Database((ROW,), ()))
    one, other = stepping.hold(0, call), stepping.hold(1, call)
    assert (one.statement, one.writes) == ("look, then leap", False)
    assert one.step() is None
    assert other.step() is None
    assert (one.statement, one.writes) == ("leap", True)
    assert [one.step(), other.step()] == [Ended(True), Ended(True)], "two winners: CLM-2"


def test_an_operation_by_own_steps_begins_whole_unless_they_are_wanted(stepping: WireSubject) -> None:
    call = Call("claim", ("k1", "r1"), 5)
    stepping.put(Database((ROW,), ()))
    assert stepping.begin(0, call).step() == Ended(True)
    stepping.own_steps = True
    stepping.put(Database((ROW,), ()))
    held = stepping.begin(0, call)
    assert held.step() is None
    assert held.statement == "leap"


def test_by_own_steps_there_are_faults_only_while_operations_are_held() -> None:
    script = STEPS.replace('"stepping", ', '"stepping", "faults", "replica", ')
    with closing(WireSubject.start(command(script))) as subject:
        assert {"stepping", "faults", "replica"}.isdisjoint(subject.capabilities)
        subject.own_steps = True
        assert subject.capabilities >= {OWN_STEPS, "faults", "replica"}
        assert STEPPING not in subject.capabilities
        subject.own_steps = False
        assert {"stepping", "faults", "replica"}.isdisjoint(subject.capabilities)


def test_the_work_of_a_start_shows_its_run(stepping: WireSubject) -> None:
    held = stepping.hold(0, Call("start", ("k1",), 5))
    found = held.at()
    assert found == ("work", True, "r1")
    assert held.step() == Ended(Told("started", "r1"))


def test_a_race_gives_the_answer_of_each_caller(stepping: WireSubject) -> None:
    call = Call("claim", ("k1", "r1"), 5)
    assert stepping.race([(0, call), (1, call)]) == [Ended(True), Ended(UNKNOWN)]
    with pytest.raises(BadResponse, match=r"3 calls in it"):
        stepping.race([(0, call), (1, call), (2, call)])


def test_a_statement_that_the_model_does_not_have_is_refused_of_one_that_says_statements() -> None:
    script = STEPS.replace('"stepping", ', '"stepping", "statements", ')
    with closing(WireSubject.start(command(script))) as subject:
        subject.put(Database((ROW,), ()))
        held = subject.hold(0, Call("claim", ("k1", "r1"), 5))
        with pytest.raises(BadResponse, match="look, then leap is no statement of the model"):
            _ = held.statement
    script = script.replace('"at": "look, then leap", "writes": False', '"at": "claim", "writes": False')
    with closing(WireSubject.start(command(script))) as subject:
        subject.put(Database((ROW,), ()))
        with pytest.raises(BadResponse, match="in the model claim writes"):
            subject.hold(0, Call("claim", ("k1", "r1"), 5)).step()


def test_an_operation_that_begins_is_not_idle() -> None:
    begun = 'return move(q["caller"])\n    if do == "step"'
    script = STEPS.replace(begun, 'return {"at": None}\n    if do == "step"')
    assert script != STEPS
    with closing(WireSubject.start(command(script))) as subject:
        subject.put(EMPTY)
        with pytest.raises(
            BadResponse, match="an operation that begins is held before a statement, or ends"
        ):
            subject.hold(0, Call("claim", ("k1", "r1"), 5)).step()


def test_an_operation_that_is_held_does_not_get_lost() -> None:
    script = STEPS.replace('if q["caller"] in held else', 'if not q["caller"] else')
    assert script != STEPS
    with closing(WireSubject.start(command(script))) as subject:
        subject.put(EMPTY)
        with pytest.raises(BadResponse, match="a step of A cannot be: its operation has not ended"):
            subject.hold(0, Call("claim", ("k1", "r1"), 5)).step()


def test_an_operation_that_has_ended_does_not_go_on() -> None:
    begun = 'return move(q["caller"])\n    if do == "step"'
    script = STEPS.replace(begun, 'return {"error": "invalid"}\n    if do == "step"')
    with closing(WireSubject.start(command(script))) as subject:
        subject.put(EMPTY)
        with pytest.raises(
            BadResponse, match="a step of A cannot be: its operation ended without a statement"
        ):
            subject.hold(0, Call("claim", ("k1", "r1"), 5)).step()
