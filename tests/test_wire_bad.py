"""Every way in which an adapter can misbehave has a sentence of its own, and leaves nothing behind."""

import os
import re
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from adapters import command
from test_wire import gone
from test_wire_page import table

from startonce.model.errors import StartOnceError
from startonce.model.operations import Call
from startonce.model.reservation import EMPTY
from startonce.oracle.wire import WireSubject
from startonce.oracle.wire import misbehaviour as wrong
from startonce.oracle.wire.client import done
from startonce.oracle.wire.endpoints import Process, loopback

HELLO = {
    "protocol": 1, "implementation": "bad", "language": "Python", "version": "1", "homepage": "",
    "database": "none", "capabilities": ["clock", "absent"],
}  # fmt: skip

GOOD = """
import json, os, signal, sys, time
ROWS = []
def respond(q):
    if q["do"] == "hello":
        return dict(HELLO)
    if q["do"] == "many":
        return {"of": [respond(one) for one in q["of"]]}
    if q["do"] == "dump":
        return {"rows": ROWS}
    return {"answer": False} if q["do"] == "call" else {"done": True}
def say(value):
    sys.stdout.write((value if isinstance(value, str) else json.dumps(value)) + "\\n")
    sys.stdout.flush()
def main():
    for line in sys.stdin:
        q = json.loads(line)
        answer(q, {"id": q["id"], **respond(q)})
def answer(q, response):
    say(response)
"""


def script(body: str, hello: dict[str, Any] | None = None) -> str:
    return f"{GOOD}\nHELLO = {hello or HELLO!r}\n{body}\nmain()\n"


def on_message(number: int, what: str) -> str:
    """An adapter that does something instead of answering one message."""
    return script(f"""
def answer(q, response):
    if q["id"] == {number}:
        {what}
    else:
        say(response)
""")


CALL = Call("claim", ("k1", "r1"), 5)


def converse(text: str, timeout: float = 10) -> None:
    """Shake hands, put, call, dump, and end."""
    subject = WireSubject.start(command(text), timeout)
    try:
        for _ in range(3):
            subject.put(EMPTY)
            subject.begin(0, CALL).step()
            subject.dump()
        subject.perform([(EMPTY, CALL)] * 400)
    finally:
        subject.close()


KINDS = "invalid, vanished, unknown outcome, not applied, unreadable, value refused, too many runs"

CASES: dict[str, tuple[str, type[wrong.WireError], str]] = {
    "exits at once": (
        "import sys; sys.exit('no database here')",
        wrong.Died,
        "the adapter exited with code 1 instead of answering request 1 (hello); its standard error ends:\n"
        "    no database here",
    ),
    "exits half way": (
        on_message(3, 'sys.exit("the disk is full\\x1b[31m")'),
        wrong.Died,
        "the adapter exited with code 1 instead of answering request 3 (many); its standard error ends:\n"
        r"    the disk is full\x1b[31m",
    ),
    "is killed": (
        on_message(3, "os.kill(os.getpid(), signal.SIGKILL)"),
        wrong.Died,
        "the adapter was killed by SIGKILL instead of answering request 3 (many); its standard error is empty",
    ),
    "ends in the middle of a line": (
        on_message(2, 'sys.stdout.write(\'{"id":2,"of\'); sys.exit(0)'),
        wrong.Died,
        "the adapter exited with code 0 instead of answering request 2 (many), in the middle of the line "
        """'{"id":2,"of'; its standard error is empty""",
    ),
    "closes its output": (
        on_message(2, "os.close(1); time.sleep(600)"),
        wrong.Died,
        "the adapter closed its standard output and goes on running instead of answering request 2 (many); "
        "its standard error is empty",
    ),
    "hangs": (
        on_message(2, "print('waiting for a lock', file=sys.stderr, flush=True); time.sleep(600)"),
        wrong.Hung,
        "the adapter stopped answering: nothing came for request 2 (many) in 0.5 s; its standard error ends:\n"
        "    waiting for a lock",
    ),
    "answers half a line and hangs": (
        on_message(2, "sys.stdout.write('{'); sys.stdout.flush(); time.sleep(600)"),
        wrong.Hung,
        "the adapter stopped answering: nothing came for request 2 (many) in 0.5 s; its standard error is empty",
    ),
    "prints a banner": (
        script('say("listening on port 3000")'),
        wrong.Stray,
        "the adapter printed 'listening on port 3000' where request 1 (hello) should be answered: standard "
        "output is for responses alone, print everything else to standard error",
    ),
    "prints a debug line": (
        on_message(3, "say('claim \\x07k1'); say(response)"),
        wrong.Stray,
        r"the adapter printed 'claim \x07k1' where request 3 (many) should be answered: standard output is "
        "for responses alone, print everything else to standard error",
    ),
    "prints an object": (
        on_message(3, "say({'debug': True}); say(response)"),
        wrong.Stray,
        """the adapter printed '{"debug": true}' where request 3 (many) should be answered: standard output is """
        "for responses alone, print everything else to standard error",
    ),
    "prints an empty line": (
        on_message(3, "say(''); say(response)"),
        wrong.Stray,
        "the adapter printed '' where request 3 (many) should be answered: standard output is for responses "
        "alone, print everything else to standard error",
    ),
    "answers no JSON": (
        on_message(2, "say(repr(response))"),
        wrong.NotJson,
        "the adapter answered request 2 (many) with what is not JSON (Expecting property name enclosed in "
        """double quotes: line 1 column 2 (char 1)): "{'id': 2, 'of': [{'done': True}, {'answer': False}, """
        """{'rows': []}]}\"""",
    ),
    "answers NaN": (
        on_message(2, 'say(\'{"id":2,"of":[{"answer":NaN}]}\')'),
        wrong.NotJson,
        "the adapter answered request 2 (many) with what is not JSON (NaN is no JSON number): "
        """'{"id":2,"of":[{"answer":NaN}]}'""",
    ),
    "answers no UTF-8": (
        on_message(2, 'sys.stdout.buffer.write(b\'{"id":2,"\\xff":1}\\n\'); sys.stdout.flush()'),
        wrong.NotJson,
        "the adapter answered request 2 (many) with what is not JSON ('utf-8' codec can't decode byte 0xff in "
        """position 9: invalid start byte): '{"id":2,"\\ufffd":1}'""",
    ),
    "nests without end": (
        on_message(2, "say('{\"id\":2,\"of\":' + '[' * 1000000)"),
        wrong.NotJson,
        "the adapter answered request 2 (many) with what is not JSON (nested too deep): "
        """'{"id":2,"of":""" + "[" * 63 + "...",
    ),
    "answers in one endless line": (
        on_message(2, "\n        while True: sys.stdout.write('[' * 1000000)"),
        wrong.TooLong,
        "the adapter answered request 2 (many) with a line of more than 16,777,216 bytes, which was not read "
        f"to its end; it begins '{'[' * 76}...",
    ),
    "answers twice": (
        on_message(2, "say(response); say(response)"),
        wrong.AnsweredTwice,
        "the adapter answered request 2 twice",
    ),
    "answers out of order": (
        script("""
kept = []
def answer(q, response):
    if q["id"] < 5:
        return say(response)
    kept.insert(0, response)
    if len(kept) == 2:
        say(kept.pop(0)); say(kept.pop(0))
"""),
        wrong.OutOfOrder,
        "the adapter answered request 6 before request 5: responses come in the order of the requests",
    ),
    "answers what was not asked": (
        on_message(2, "say({**response, 'id': 77})"),
        wrong.WrongId,
        "the adapter answered with the id 77 where request 2 is due: a response repeats the id of its request",
    ),
    "answers with a text for an id": (
        on_message(2, "say({**response, 'id': '2'})"),
        wrong.WrongId,
        "the adapter answered with the id '2' where request 2 is due: a response repeats the id of its request",
    ),
    "has more to say": (
        script("""
try:
    main()
finally:
    say("bye"); say("bye")
"""),
        wrong.SaidMore,
        "the adapter printed 2 more lines after its last response, beginning 'bye': it answers each request "
        "once and says nothing else on standard output",
    ),
    "speaks an older protocol": (
        script("", {**HELLO, "protocol": 0}),
        wrong.OtherProtocol,
        "the adapter speaks protocol 0, this is protocol 1: update the adapter",
    ),
    "speaks a newer protocol": (
        script("", {"protocol": 2, "capabilities": ["telepathy"]}),
        wrong.OtherProtocol,
        "the adapter speaks protocol 2, this is protocol 1: update startonce",
    ),
    "names an unknown capability": (
        script("", {**HELLO, "capabilities": ["clock", "telepathy"]}),
        wrong.UnknownCapability,
        "the adapter names the capability 'telepathy', which there is not; known are for_runs, purge, "
        "inventory, take_lock, cancel, free, lock_of, persist, fence, close_fence, open_fence, callers, clock, "
        "absent, surrogates, stepping, statements, faults, replica, deny, probes, race, processes, starts",
    ),
    "lacks what a capability needs": (
        script("", {**HELLO, "capabilities": ["callers", "statements"]}),
        wrong.BadResponse,
        "the adapter's response to request 1 (hello) cannot be: the capability statements needs the capability "
        "stepping",
    ),
    "names an unknown clause": (
        script("", {**HELLO, "not_applicable": {"CLM-99": "why not"}}),
        wrong.BadResponse,
        "the adapter's response to request 1 (hello) cannot be: not_applicable: there is no clause CLM-99",
    ),
    "has nowhere to join": (
        script("", {**HELLO, "capabilities": ["processes"]}),
        wrong.BadResponse,
        "the adapter's response to request 1 (hello) cannot be: the capability processes and the member join "
        "come together",
    ),
    "does not introduce itself": (
        script("", {**HELLO, "language": ""}),
        wrong.BadResponse,
        "the adapter's response to request 1 (hello) cannot be: language: '' should be non-empty",
    ),
    "does not shake hands": (
        on_message(1, "say({'id': 1, 'failed': 'no database\\n'})"),
        wrong.AdapterFailed,
        r"the adapter itself failed at request 1 (hello): no database\n",
    ),
    "fails at a part": (
        on_message(2, "say({'id': 2, 'of': [{'done': True}, {'failed': 'x' * 400}, {'rows': []}]})"),
        wrong.AdapterFailed,
        f"the adapter itself failed at request 2.2 (call claim): {'x' * 296}...",
    ),
    "fails at all of it": (
        on_message(2, "say({'id': 2, 'failed': 'no many here'})"),
        wrong.AdapterFailed,
        "the adapter itself failed at request 2 (many): no many here",
    ),
    "shows a row that cannot be": (
        script('ROWS.append(["k1", "r1", "begun", 0, 0])'),
        wrong.BadResponse,
        "the adapter's response to request 2.3 (dump) cannot be: rows/0/2: 'begun' is not one of ['reserved', "
        "'started', 'terminal']",
    ),
    "shows a type that cannot be": (
        script('ROWS.append(["k1", "r1", "started", "\\x1b0", 0])'),
        wrong.BadResponse,
        r"the adapter's response to request 2.3 (dump) cannot be: rows/0/3: '\\x1b0' is not of type 'integer'",
    ),
    "shows locks that it cannot have": (
        on_message(
            2, "say({'id': 2, 'of': [{'done': True}, {'answer': False}, {'rows': [], 'locks': []}]})"
        ),
        wrong.BadResponse,
        "the adapter's response to request 2.3 (dump) cannot be: its capabilities have nothing of locks",
    ),
    "shows no locks": (
        script("", {**HELLO, "capabilities": ["clock", "absent", "take_lock"]}),
        wrong.BadResponse,
        "the adapter's response to request 2.3 (dump) cannot be: its capabilities have locks",
    ),
    "answers another type": (
        on_message(2, "say({'id': 2, 'of': [{'done': True}, {'answer': 0}, {'rows': []}]})"),
        wrong.BadResponse,
        "the adapter's response to request 2.2 (call claim) cannot be: answer: 0 is not of type 'boolean'",
    ),
    "answers with an unknown error": (
        on_message(2, "say({'id': 2, 'of': [{'done': True}, {'error': 'timeout'}, {'rows': []}]})"),
        wrong.BadResponse,
        "the adapter's response to request 2.2 (call claim) cannot be: there is no error timeout; there are "
        f"{KINDS}, and `other: ` with a text",
    ),
    "answers with an unknown member": (
        on_message(2, "say({'id': 2, 'of': [{'done': True, 'took': 3}, {'answer': False}, {'rows': []}]})"),
        wrong.BadResponse,
        "the adapter's response to request 2.1 (put) cannot be: there is no member took; one of your own begins "
        "with x-",
    ),
    "acknowledges nothing": (
        on_message(2, "say({'id': 2, 'of': [{}, {'answer': False}, {'rows': []}]})"),
        wrong.BadResponse,
        "the adapter's response to request 2.1 (put) cannot be: {} has to have done or failed, one of them",
    ),
    "leaves a part out": (
        on_message(2, "say({'id': 2, 'of': [{'done': True}, {'answer': False}]})"),
        wrong.BadResponse,
        "the adapter's response to request 2 (many) cannot be: 3 requests in it, 2 responses",
    ),
    "answers many with one": (
        on_message(2, "say({'id': 2, 'done': True})"),
        wrong.BadResponse,
        "the adapter's response to request 2 (many) cannot be: 'of' is a required property",
    ),
    "answers a part with a number": (
        on_message(2, "say({'id': 2, 'of': [{'done': True}, 7, {'rows': []}]})"),
        wrong.BadResponse,
        "the adapter's response to request 2.2 (call claim) cannot be: 7 is not of type 'object'",
    ),
}


def said(error: StartOnceError) -> str:
    text = str(error)
    assert text.isascii()
    assert "\x1b" not in text
    return text


@pytest.mark.parametrize("name", list(CASES))
def test_an_adapter_that(name: str) -> None:
    text, kind, sentence = CASES[name]
    with pytest.raises(wrong.WireError) as caught:
        converse(text, timeout=0.5 if kind is wrong.Hung else 10)
    assert said(caught.value) == sentence
    assert type(caught.value) is kind


def test_the_good_adapter_of_these_tests_is_good() -> None:
    converse(script(""))
    converse(script("def answer(q, response):\n    say({**response, 'x-took': 3})"))


STARTING: dict[str, tuple[list[str], str]] = {
    "is not there": (["no-such-adapter"], "'no-such-adapter' cannot be started: No such file or directory"),
    "is a folder": (["/"], "'/' cannot be started: Permission denied"),
    "is nothing": ([], "an empty command cannot be started: name the program of the adapter"),
    "has a NUL": (["a\0b"], r"'a\x00b' cannot be started: embedded null byte"),
}


@pytest.mark.parametrize("name", list(STARTING))
def test_a_command_that(name: str) -> None:
    words, sentence = STARTING[name]
    with pytest.raises(wrong.CannotStart) as caught:
        WireSubject.start(words)
    assert said(caught.value).startswith(sentence)


def test_a_command_is_no_shell_line(tmp_path: Path) -> None:
    with pytest.raises(wrong.CannotStart):
        WireSubject.start([f"touch {tmp_path / 'a'}; true"])
    with pytest.raises(wrong.Stray, match=r"printed '\$\(touch "):
        WireSubject.start(["echo", f"$(touch {tmp_path / 'a'})", ";", "touch", str(tmp_path / "b")])
    assert list(tmp_path.iterdir()) == []


# --- an address -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["127.0.0.1:80", "localhost:80", "[::1]:80", "::1:80", "127.9.9.9:80"])
def test_an_address_of_this_machine_is_taken(address: str) -> None:
    assert loopback(address)[1] == 80


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("192.168.0.1:80", "'192.168.0.1' is not this machine"),
        ("0.0.0.0:80", "'0.0.0.0' is not this machine"),
        ("example.org:80", "'example.org' is not this machine"),
        ("127.0.0.1.example.org:80", "is not this machine"),
        (":80", "'' is not this machine"),
        ("127.0.0.1", "'127.0.0.1' is no address"),
        ("127.0.0.1:0", "is no address"),
        ("127.0.0.1:65536", "is no address"),
        ("127.0.0.1:99999999999999", "is no address"),
        ("127.0.0.1:٨٠", "is no address"),
        ("127.0.0.1:8\x1b", "is no address"),
        ("", "'' is no address"),
    ],
)
def test_any_other_address_is_refused(address: str, why: str) -> None:
    with pytest.raises(wrong.WireError) as caught:
        WireSubject.attach(address)
    assert why in said(caught.value)


@contextmanager
def listening(serve: Callable[[socket.socket], object]) -> Iterator[str]:
    """An adapter that its user started: it serves one connection, and the address is given."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            connection, _ = listener.accept()
            with connection:
                serve(connection)

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join(10)
        assert not thread.is_alive()


NOTHING_LISTENS = "nothing answers at 127.0.0.1, port {}: Connection refused; start the adapter first"


def test_an_address_at_which_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(wrong.CannotStart) as caught:
        WireSubject.attach(f"127.0.0.1:{port}")
    assert said(caught.value) == NOTHING_LISTENS.format(port)


def test_a_connection_that_is_closed() -> None:
    with listening(lambda connection: connection.recv(10)) as address, pytest.raises(wrong.Died) as caught:
        WireSubject.attach(address)
    assert said(caught.value).startswith("the adapter closed the connection instead of answering request 1")


def test_a_connection_on_which_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(connection: socket.socket) -> None:
        while connection.recv(1000):
            pass

    monkeypatch.setattr("startonce.oracle.wire.handshake.START", 0.2)
    with listening(wait) as address, pytest.raises(wrong.Hung) as caught:
        WireSubject.attach(address, 0.2)
    assert "nothing came for request 1 (hello) in 0.2 s" in said(caught.value)


# --- the page ------------------------------------------------------------------------------------------------


def test_the_page_has_the_sentence_for_each() -> None:
    sentences = [row[1] for row in table("sentences")]
    patterns = {text: re.escape(text).replace("…", ".+").replace(r"\`", "`") for text in sentences}
    told = [sentence for _, _, sentence in CASES.values()]
    told += [sentence + "x" for _, sentence in STARTING.values()] + [NOTHING_LISTENS.format(5)]
    used = set()
    for sentence in told:
        found = {text for text, pattern in patterns.items() if re.fullmatch(pattern, sentence, re.DOTALL)}
        assert len(found) == 1, (sentence, found)
        used |= found
    assert used == set(sentences)
    raised = {kind for _, kind, _ in CASES.values()} | {wrong.CannotStart, wrong.NotAskable}
    assert raised == {
        kind for kind in vars(wrong).values() if isinstance(kind, type) and is_wire_error(kind)
    }


def is_wire_error(kind: type) -> bool:
    return issubclass(kind, wrong.WireError) and kind is not wrong.WireError


# --- nothing blocks, nothing grows, nothing is left ----------------------------------------------------------


CHATTERING = script("""
def answer(q, response):
    sys.stderr.write("x" * 300_000 + "\\n")
    sys.stderr.flush()
    say({**response, "x-more": "y" * 300_000})
""")


def test_neither_side_waits_for_the_other_to_read() -> None:
    """More than any pipe holds is on its way in three directions at once."""
    subject = WireSubject.start(command(CHATTERING))
    big = Call("claim", ("k" * 50_000, "r1"), 5)
    found = subject.perform([(EMPTY, big)] * 640)
    assert found == [(False, EMPTY)] * 640
    subject.close()


def test_a_line_without_end_is_not_kept_in_memory() -> None:
    text, kind, _ = CASES["answers in one endless line"]
    tracemalloc.start()
    try:
        with pytest.raises(kind):
            converse(text)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 64 * 1024 * 1024


def test_a_standard_error_without_end_is_not_kept_in_memory() -> None:
    text = on_message(2, "\n        while True: sys.stderr.write('e' * 1_000_000)")
    tracemalloc.start()
    try:
        with pytest.raises(wrong.Hung) as caught:
            converse(text, timeout=1)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 16 * 1024 * 1024
    assert len(str(caught.value)) < 2000


def test_a_conversation_that_broke_does_not_go_on() -> None:
    subject = WireSubject.start(command(on_message(2, "sys.exit(3)")))
    with pytest.raises(wrong.Died) as caught:
        subject.begin(0, CALL).step()
    with pytest.raises(wrong.Died) as again:
        subject.dump()
    assert again.value is caught.value
    subject.close()


def test_an_adapter_that_failed_once_can_be_asked_again() -> None:
    subject = WireSubject.start(command(on_message(2, "say({'id': 2, 'failed': 'once'})")))
    with pytest.raises(wrong.AdapterFailed):
        subject.dump()
    assert subject.dump() == EMPTY
    subject.close()


@pytest.mark.parametrize("name", ["exits half way", "hangs", "prints a banner", "has more to say"])
def test_nothing_is_left_of_an_adapter_that(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pids = []
    real = Process.__init__

    def remember(self: Process, words: list[str]) -> None:
        real(self, words)
        pids.append(self.pid)

    monkeypatch.setattr(Process, "__init__", remember)
    open_before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(wrong.WireError):
        converse(CASES[name][0], timeout=0.5)
    assert len(pids) == 1
    assert gone(pids[0])
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_what_an_adapter_started_goes_with_it_also_where_it_ended_by_itself() -> None:
    text = script("""
import subprocess
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"])
HELLO["database"] = str(child.pid)
""")
    subject = WireSubject.start(command(text))
    child = int(subject.about.database)
    subject.close()
    assert gone(child)


def test_done_is_what_answers_nothing() -> None:
    assert done("deny", denied=True).text == '{"do":"deny","denied":true}'


def test_what_an_adapter_says_of_itself_is_shown_safely() -> None:
    raw = {
        **HELLO,
        "implementation": "a\x1b[31mb",
        "database": "Bäse" * 50,
        "not_applicable": {"STA-2": "no\nreplica"},
    }
    subject = WireSubject.start(command(script("", raw)))
    assert subject.name == "a\\x1b[31mb 1 · Python · " + "B\\xe4se" * 10 + "B\\xe4s..."
    assert subject.not_applicable == {"STA-2": "no\\nreplica"}
    subject.close()
