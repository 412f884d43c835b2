"""An adapter over the wire is held to the model as a subject of this process is."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from adapters import OURS, command, looped
from test_edges import HELD, WHOLE

from startonce.model.operations import INVALID, UNKNOWN, Call, Ended, Fault, Reserved
from startonce.model.reservation import EMPTY, NOTHING, Database, Reservation, State
from startonce.oracle import machine, scopes
from startonce.oracle.check import try_out
from startonce.oracle.edges import walk, walk_statements
from startonce.oracle.ledger import Ledger
from startonce.oracle.mutants import STORES
from startonce.oracle.probes import probe
from startonce.oracle.scopes import EDGES, STATEMENTS
from startonce.oracle.wire import WireSubject
from startonce.oracle.wire.misbehaviour import NotAskable
from startonce.oracle.wire.serve import Server
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
    assert ours.absent
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


def test_what_was_shown_before_many_edges_is_not_shown_again_after_them(ours: WireSubject) -> None:
    ours.put(NOTHING)
    assert ours.dump() == NOTHING
    ((_, after),) = ours.perform([(EMPTY, Call("reserve", ("k1", "r1"), 5))])
    assert ours.dump() == after == Database((ROW,), ())


def test_a_broken_store_diverges_through_the_wire_too() -> None:
    subject, _ = looped(Server(STORES["claim without the run id"].subject()), held=False)
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
    ours.put(Database((ROW,), ()))
    later = ours.begin(0, Call("settle", ("r1",), 9))
    later.step(Fault.LATE)
    ours.land(later)
    assert ours.dump().rows == (ROW._replace(state=State.TERMINAL, updated_at=9),)


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
