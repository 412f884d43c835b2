"""An adapter over the wire is held to the model as a subject of this process is."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from broken import BROKEN
from test_edges import HELD, WHOLE
from wire import OURS, command, example, looped

from startonce.model.operations import INVALID, UNKNOWN, Call, Ended, Fault, Reserved
from startonce.model.reservation import EMPTY, NOTHING, Database, Lock, Reservation, State
from startonce.oracle import machine, scopes
from startonce.oracle.check import try_out
from startonce.oracle.edges import walk, walk_statements
from startonce.oracle.ledger import Ledger
from startonce.oracle.misbehaviour import BadResponse, NotAskable
from startonce.oracle.probes import probe
from startonce.oracle.responses import Told
from startonce.oracle.scopes import EDGES, STATEMENTS
from startonce.oracle.serve import Server
from startonce.oracle.subject import STEPPING
from startonce.oracle.wire import OWN_STEPS, WireSubject
from startonce.own import SqlSubject

ROW = Reservation("k1", "r1", State.RESERVED, 5, 5)


@pytest.fixture(scope="module")
def ours() -> Iterator[WireSubject]:
    with closing(WireSubject.start(OURS)) as subject:
        yield subject


# --- our own implementation, through the wire -----------------------------------------------------------


def test_an_adapter_has_the_capabilities_of_the_subject_it_serves(ours: WireSubject) -> None:
    assert ours.capabilities >= SqlSubject.capabilities
    assert ours.parameter_limit == 100
    assert ours.name.startswith("startonce 0.1.0 · Python · SQLite ")


def test_every_edge_of_whole_operations_is_executed_through_the_wire(ours: WireSubject) -> None:
    ledger = Ledger()
    assert walk(ours, ledger) == WHOLE
    assert ledger.divergences == {}


def test_every_edge_between_statements_is_executed_through_the_wire(ours: WireSubject) -> None:
    ledger, before = Ledger(), ours.sent
    assert walk_statements(ours, ledger, STATEMENTS[:1]) == HELD[:1]
    assert ledger.divergences == {}
    assert ours.sent - before < 1.3 * HELD[0].edges, "an edge is one round trip"


def edges_of_the_default_scope() -> list[scopes.Edge]:
    tables = scopes.tables(EDGES.keys, EDGES.runs)
    return [edge for table in tables for edge in scopes.whole_edges(table, EDGES.keys, EDGES.runs)]


def test_many_edges_travel_in_one_message(ours: WireSubject) -> None:
    edges, before = edges_of_the_default_scope(), ours.sent
    found = ours.perform([(edge.before, edge.call) for edge in edges])
    assert found == [(edge.answer, edge.after) for edge in edges]
    assert ours.sent - before == -(-len(edges) // 64)


def test_a_broken_store_diverges_through_the_wire_too() -> None:
    broken = SqlSubject(operations=BROKEN["claim without the run id"].operations)
    subject, _ = looped(Server(broken), held=False)
    edges = edges_of_the_default_scope()
    found = subject.perform([(edge.before, edge.call) for edge in edges])
    wrong = [
        edge.call.operation
        for edge, pair in zip(edges, found, strict=True)
        if pair != (edge.answer, edge.after)
    ]
    assert wrong
    assert set(wrong) == {"claim"}


def test_the_machine_and_the_probes_say_nothing_but_what_the_schema_allows(tmp_path: Path) -> None:
    """On a file, so that stale reads, refused writes and late statements are among it."""
    subject, loop = looped(Server(SqlSubject(tmp_path / "a.db")))
    ledger = Ledger()
    try_out(subject)
    probe(subject, ledger)
    machine.drive(subject, ledger, examples=8)
    assert ledger.divergences == {}
    subject.reset()
    assert subject.dump() == NOTHING
    assert loop.said == {
        "hello", "put", "reset", "dump", "begin", "step", "crash", "land", "pin", "unpin", "deny", "spoil",
        "unspoil",
    }  # fmt: skip
    subject.close()


def test_the_server_answers_many_and_whole_calls_as_the_schema_says() -> None:
    subject, loop = looped(Server(SqlSubject()))
    edges = [*scopes.bare_edges(), *scopes.lock_edges(next(iter(scopes.lock_tables())))]
    found = subject.perform([(edge.before, edge.call) for edge in edges])
    assert found == [(edge.answer, edge.after) for edge in edges]
    assert loop.said == {"hello", "put", "call", "dump"}


def test_a_request_that_is_not_served_is_a_failure_of_the_adapter() -> None:
    server = Server(SqlSubject())
    assert server.respond({"do": "explode"}) == {"failed": "there is no request 'explode'"}
    assert server.respond({"do": "respond"}) == {"failed": "there is no request 'respond'"}
    assert "failed" in server.respond({"do": "join", "with": "x"})


def test_an_exception_out_of_the_store_is_an_answer_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    def claim(now: int, key: str, run_id: str) -> Any:
        raise ZeroDivisionError("a\x1b[31m")
        yield

    subject, _ = looped(Server(SqlSubject(operations={**OURS_OPERATIONS, "claim": claim})))
    ((answer, _),) = subject.perform([(EMPTY, Call("claim", ("k1", "r1"), 5))])
    assert answer.error == r"other: ZeroDivisionError: a\x1b[31m"
    capsys.readouterr()


OURS_OPERATIONS = dict(SqlSubject()._operations)


# --- held between statements ----------------------------------------------------------------------------


def test_a_held_operation_names_its_next_statement(ours: WireSubject) -> None:
    ours.put(EMPTY)
    held = ours.hold(0, Call("reserve", ("k1", "r1"), 5))
    assert (held.statement, held.writes, held.refused) == ("insert", True, None)
    assert held.step() is None
    assert (held.statement, held.writes) == ("read back", False)
    assert held.step() == Ended(Reserved(ROW, True))
    assert held.statement is None
    assert ours.dump() == Database((ROW,), ())


def test_an_operation_that_ends_before_its_first_statement_is_refused(ours: WireSubject) -> None:
    ours.put(EMPTY)
    held = ours.hold(0, Call("claim", ("k 1", "r1"), 5))
    assert held.statement is None
    assert held.refused == held.step() == Ended(INVALID)
    unseen = ours.hold(1, Call("claim", ("k 1", "r1"), 5))
    assert unseen.step() == Ended(INVALID), "also where begin and step travel together"
    assert ours.dump() == EMPTY


def test_late_statements_land_in_their_order_and_never_after_a_put(ours: WireSubject) -> None:
    ours.put(Database((ROW,), ()))
    late = ours.begin(0, Call("claim", ("k1", "r1"), 6))
    assert late.step(Fault.LATE) == Ended(UNKNOWN)
    assert ours.dump().rows == (ROW,)
    ours.land(late)
    assert ours.dump().rows == (ROW._replace(state=State.STARTED, updated_at=6),)
    ours.put(Database((ROW,), ()))
    late = ours.begin(0, Call("claim", ("k1", "r1"), 6))
    late.step(Fault.LATE)
    ours.put(EMPTY)
    with pytest.raises(KeyError):
        ours.land(late)


def test_a_crash_travels_with_what_is_asked_next(ours: WireSubject) -> None:
    ours.put(EMPTY)
    held = ours.hold(0, Call("reserve", ("k1", "r1"), 5))
    held.step()
    before = ours.sent
    held.crash()
    assert ours.sent == before
    again = ours.hold(0, Call("read", ("k1",), 6))
    assert again.step() == Ended(ROW)
    assert ours.sent == before + 1


def test_an_argument_of_any_kind_arrives(ours: WireSubject) -> None:
    assert ours.carries(Call("read", ("\ud800",), 0))
    ours.put(EMPTY)
    for bad in ("\ud800", b"a", 7, 1.5, None, True, ("a",), "a\0b", "x" * 2_000_000):
        assert ours.hold(0, Call("read", (bad,), 0)).refused == Ended(INVALID)


# --- processes, and an adapter that its user started -------------------------------------------------------


def test_two_processes_share_a_database(tmp_path: Path) -> None:
    here = WireSubject.start([*OURS, "--database", str(tmp_path / "a.db")])
    with closing(here), closing(here.join()) as there:
        here.put(EMPTY)
        here.hold(0, Call("reserve", ("k1", "r1"), 5)).step()
        assert there.dump().rows == (ROW,)
        assert there.begin(0, Call("claim", ("k1", "r1"), 6)).step() == Ended(True)
        assert here.begin(0, Call("claim", ("k1", "r1"), 7)).step() == Ended(False)


def test_an_adapter_in_memory_has_no_further_process(ours: WireSubject) -> None:
    with pytest.raises(NotAskable, match="processes"):
        ours.join()


def test_an_adapter_that_listens_is_attached_to() -> None:
    with subprocess.Popen([*OURS, "--listen", "0"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = process.stderr.readline().split()[-1]
        with closing(WireSubject.attach(address)) as subject:
            edges = edges_of_the_default_scope()[:300]
            found = subject.perform([(edge.before, edge.call) for edge in edges])
            assert found == [(edge.answer, edge.after) for edge in edges]
            with pytest.raises(NotAskable, match="processes"):
                subject.join()
        assert process.wait(10) == 0


# --- nothing is left behind ------------------------------------------------------------------------------------


def gone(pid: int) -> bool:
    """Whether a process is gone, within ten seconds."""
    for _ in range(1000):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        stat = Path(f"/proc/{pid}/stat")
        if stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z" and not is_child(pid):
            return True  # it waits for a parent that is not this process
        time.sleep(0.01)
    return False


def is_child(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1] == str(os.getpid())


def test_an_adapter_ends_when_its_input_does() -> None:
    subject = WireSubject.start(OURS)
    pid = subject._client.lines.pid  # type: ignore[attr-defined]
    subject.close()
    subject.close()
    assert gone(pid)


STUBBORN = """
import json, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-I", "-S", "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"])
line = json.loads(sys.stdin.readline())
print(json.dumps({"id": 1, "protocol": 1, "implementation": "stubborn", "language": "Python", "version": "1",
    "homepage": "", "database": str(child.pid), "capabilities": []}), flush=True)
time.sleep(600)
"""


def test_an_adapter_that_will_not_end_is_killed_with_all_that_it_started() -> None:
    subject = WireSubject.start(command(STUBBORN))
    pid, child = subject._client.lines.pid, int(subject.about.database)  # type: ignore[attr-defined]
    subject.close()
    assert gone(pid)
    assert gone(child)


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


def test_the_work_of_a_start_shows_its_run(stepping: WireSubject) -> None:
    held = stepping.hold(0, Call("start", ("k1",), 5))
    found = held.at()
    assert found == ("work", True, "r1")
    assert held.step() == Ended(Told("started", "r1"))


def test_a_race_gives_the_answer_of_each_caller(stepping: WireSubject) -> None:
    call = Call("claim", ("k1", "r1"), 5)
    assert stepping.race([(0, call), (1, call)]) == [True, UNKNOWN]
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
