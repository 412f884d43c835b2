"""The reports of a conform run: every verdict in every format, the baseline, and names that mean harm."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from junitparser import JUnitXml

from startonce.model.clauses import CLAUSES
from startonce.model.interleaving import Action
from startonce.model.operations import Call, Fault, Reserved
from startonce.model.reservation import EMPTY, NOTHING, Database, Lock, Reservation, State
from startonce.oracle import baseline as known
from startonce.oracle import jsonlines, junit
from startonce.oracle.baseline import BadBaseline, Baseline, Known, apply, exit_code, suggest
from startonce.oracle.check import NOT_REPEATED
from startonce.oracle.edges import Walked
from startonce.oracle.explained import Saved, explained
from startonce.oracle.history import Answered, Began, Crashed, History
from startonce.oracle.jsonlines import BadReport, CutOff, facts_of, load
from startonce.oracle.ledger import Divergence, Ledger, Verdict
from startonce.oracle.report import MachineRun, Report
from startonce.oracle.wire.handshake import About

R1 = Reservation("k1", "r1", State.RESERVED, 1, 1)
R2 = R1._replace(run_id="r2")


def run(caller: str, text: str, now: int = 1, statement: str = "", fault: Fault = Fault.NONE) -> Action:
    operation, *args = text.split()
    return Action("run", caller, operation, tuple(args), now, statement, fault)


def rows(*some: Reservation) -> Database:
    return Database(some, ())


REWRITTEN = Divergence(
    ("CLM-4",),
    "statements",
    EMPTY,
    (run("A", "reserve k1 r2", 1, "insert"), run("B", "claim k1 r1", 2, "claim")),
    (False, rows(R2)),
    (True, rows(R2._replace(state=State.STARTED, updated_at=2))),
)
TWICE = Divergence(
    ("CLM-2",),
    "edges",
    EMPTY,
    (run("A", "reserve k1 r1"), run("A", "claim k1 r1", 2), run("A", "claim k1 r1", 3)),
    (False, rows(R1._replace(state=State.STARTED, updated_at=2))),
    (True, rows(R1._replace(state=State.STARTED, updated_at=3))),
)
VERDICTS = (
    Verdict("RSV-1", "holds", 1204, ("edges", "machine"), "", None),
    Verdict("CLM-2", "violated", 7, ("edges",), "", TWICE),
    Verdict("CLM-4", "violated", 312, ("statements",), "", REWRITTEN),
    Verdict("LCK-1", "not checked", 0, (), "the subject has no take_lock", None),
    Verdict("STA-2", "not applicable", 0, (), "SQLite has no lagging replica", None),
)
REPORT = Report(
    "orders 2.1 on SQLite",
    "Hypothesis 6 on Python 3",
    7,
    (Walked("edges", "2 keys, 3 runs", 100, 2400, 800, 2400),),
    MachineRun(500, 24013, 0.25, 0.96, 1234.5),
    VERDICTS,
    12.34,
)
KNOWN = Baseline("known.json", (Known("CLM-2", "two claims race until issue 12 is done"),))
ADAPTER = About(
    "orders", "TypeScript", "2.1", "", "SQLite", frozenset({"read", "claim"}), 999, {}, "join me"
)
COMMAND = ("node", "my adapter.mjs")


def of(*clauses: str, report: Report = REPORT) -> Report:
    return report._replace(verdicts=tuple(v for v in report.verdicts if v.clause in clauses))


def clause(report: Report, name: str, **changes: Any) -> Report:
    return report._replace(
        verdicts=tuple(v._replace(**changes) if v.clause == name else v for v in report.verdicts)
    )


FINE = {"status": "holds", "evaluated": 9, "checks": ("edges",), "reason": "", "divergence": None}


# --- a divergence that explains itself -----------------------------------------------------------------


def test_a_divergence_shows_its_steps_what_was_expected_the_table_and_what_to_do_next() -> None:
    saved = Saved("CLM-4.trace.json", "CLM-4.svg", "CLM-4.vector.json", ("--", *COMMAND))
    assert (
        "\n".join(explained("CLM-4", REWRITTEN, saved=saved))
        == """\
CLM-4 violated   a row rewritten underneath the caller is not claimed

     A                      B                      row k1
 1   reserve k1 r2: insert                         r2 reserved
 2 ✗                        claim k1 r1            r2 started

     expected  False; r2 reserved
     observed  True; r2 started

     row k1    before    r2 reserved, created 1, updated 1
               expected  r2 reserved, created 1, updated 1
               observed  r2 started, created 1, updated 2

     found by  statements
     trace     startonce replay CLM-4.trace.json -- node 'my adapter.mjs'
     picture   startonce draw CLM-4.trace.json
               CLM-4.svg
     vector    CLM-4.vector.json"""
    )


def test_the_rows_of_whole_operations_are_those_after_all_of_their_statements() -> None:
    found = TWICE._replace(observed=(True, TWICE.expected[1]))
    assert (
        "\n".join(explained("CLM-2", found))
        == """\
CLM-2 violated   of all claims on a row one wins, until a release

     A              row k1
 1   reserve k1 r1  r1 reserved
 2   claim k1 r1    r1 started
 3 ✗ claim k1 r1    r1 started

     expected  False; r1 started
     observed  True; r1 started

     row k1    unchanged r1 started, created 1, updated 2

     found by  edges"""
    )


def test_everything_in_a_database_is_shown_and_what_is_missing() -> None:
    lock = Lock("r1", None, "h1", True, '{"paid": true}', 3)
    began = rows(R1, R2._replace(key="k2"))
    there = Database((R1,), (lock,), True)
    found = Divergence(
        ("FRE-2",), "machine", began, (run("A", "free k2", 9),), (None, there), (True, Database())
    )
    assert (
        "\n".join(explained("FRE-2", found))
        == """\
FRE-2 violated   a free acts on started rows or its own lock alone

     begins with k1 r1 reserved, k2 r2 reserved
     A         rows
 1 ✗ free k2   no table

     expected  None; k1 r1 reserved, k2 -, lock r1: h1 ended, fence closed
     observed  True; no table

     row k1    before    r1 reserved, created 1, updated 1
               expected  r1 reserved, created 1, updated 1
               observed  -
     row k2    before    r2 reserved, created 1, updated 1
               after     -
     fence     before    no table
               expected  closed
               observed  no table
     lock r1   before    -
               expected  h1 of no key, ended, result '{"paid": true}', created 3
               observed  -
     table     before    there
               expected  there
               observed  missing

     found by  machine"""
    )


def test_one_that_does_not_repeat_is_shown_with_both_histories() -> None:
    found = REWRITTEN._replace(check=f"statements{NOT_REPEATED}")
    assert (
        "\n".join(explained("CLM-4", found))
        == """\
CLM-4 violated   a row rewritten underneath the caller is not claimed

It does not repeat: the same steps, from the same table, had two outcomes.

The first time

     A                      B                      row k1
 1   reserve k1 r2: insert                         r2 reserved
 2 ✗                        claim k1 r1            r2 started

     expected  False; r2 reserved
     observed  True; r2 started

     row k1    before    r2 reserved, created 1, updated 1
               expected  r2 reserved, created 1, updated 1
               observed  r2 started, created 1, updated 2

The second time

     A                      B                      row k1
 1   reserve k1 r2: insert                         r2 reserved
 2                          claim k1 r1            r2 reserved

     observed  False; r2 reserved, as expected

     row k1    unchanged r2 reserved, created 1, updated 1

     found by  statements"""
    )


def test_the_second_time_can_have_diverged_elsewhere() -> None:
    second = REWRITTEN._replace(
        actions=REWRITTEN.actions[:1], expected=("goes on", rows(R2)), observed=("goes on", EMPTY)
    )
    found = REWRITTEN._replace(check="interleavings, does not repeat")
    first, _, again = "\n".join(explained("CLM-4", found, second)).partition("The second time")
    assert "observed  True; r2 started" in first
    assert (
        again
        == """

     A                      row k1
 1 ✗ reserve k1 r2: insert  -

     expected  goes on; r2 reserved
     observed  goes on; -

     row k1    before    -
               expected  r2 reserved, created 1, updated 1
               observed  -

     found by  interleavings"""
    )


CLAIMS = tuple(Began(place, Call("claim", ("k1", "r1"), 5)) for place in range(3))
STARTED = rows(R1._replace(state=State.STARTED))
FOREIGN = Divergence(
    ("CLM-2",),
    "interleavings",
    rows(R1),
    (
        run("A", "claim k1 r1", 5, "look"),
        run("B", "claim k1 r1", 5, "look"),
        run("C", "claim k1 r1", 5, "look"),
        Action("crash", "C"),
        run("B", "claim k1 r1", 5, "move"),
        run("A", "claim k1 r1", 5, "move"),
    ),
    (False, STARTED),
    (True, STARTED),
    (rows(R1), None, rows(R1), rows(R1), STARTED, STARTED),
)
HISTORY: History = (*CLAIMS, Crashed(2), Answered(1, True), Answered(0, True))


def test_between_statements_of_its_own_the_tables_and_answers_are_those_that_were_seen() -> None:
    assert (
        "\n".join(explained("CLM-2", FOREIGN, history=HISTORY))
        == """\
CLM-2 violated   of all claims on a row one wins, until a release

     begins with r1 reserved
     A                  B                  C                  row k1
 1   claim k1 r1: look                                        r1 reserved
 2                      claim k1 r1: look                     not shown
 3                                         claim k1 r1: look  r1 reserved
 4                                         crashes            r1 reserved
 5                      claim k1 r1: move                     r1 started
 6 ✗ claim k1 r1: move                                        r1 started

     answers   C claim k1 r1: no answer, it crashed
               B claim k1 r1: True
               A claim k1 r1: True

     expected  False; r1 started
     observed  True; r1 started

     row k1    unchanged r1 started, created 1, updated 1

     found by  interleavings"""
    )


def test_a_table_that_nobody_saw_and_the_model_cannot_tell_is_not_made_up() -> None:
    for found in (FOREIGN._replace(seen=FOREIGN.seen[-1:]), FOREIGN._replace(seen=(), check="machine")):
        lines = explained("CLM-2", found)
        assert [line.split("  ")[-1].strip() for line in lines[4:10]] == [*["not shown"] * 5, "r1 started"]
        assert "     row k1    before    not shown" in lines


def test_an_operation_that_never_answered_is_said_to_have_none() -> None:
    lines = explained("CLM-2", FOREIGN, history=(*CLAIMS[:2], Answered(1, True)))
    assert lines[11:13] == ["     answers   B claim k1 r1: True", "               A claim k1 r1: no answer"]


def test_a_race_has_no_order_that_is_known() -> None:
    lines = explained("CLM-2", TWICE._replace(check="races", seen=(TWICE.observed[1],)))
    assert lines[3:5] == [" 1   reserve k1 r1  not shown", " 2   claim k1 r1    not shown"]
    assert lines[-2:] == [
        "     found by  races",
        "               the callers ran at once: in which order, is not known",
    ]


def test_callers_without_room_share_a_column() -> None:
    callers = "ABCDE"
    actions = tuple(run(one, "take_lock k1 r1 h1", 1, "insert lock", Fault.LOST) for one in callers)
    found = Divergence(("LCK-1",), "machine", EMPTY, actions, (None, EMPTY), (True, EMPTY))
    lines = explained("LCK-1", found)
    assert lines[2:5] == [
        "                                                      row k1",
        " 1   A  take_lock k1 r1 h1: insert lock (reply lost)  -",
        " 2   B  take_lock k1 r1 h1: insert lock (reply lost)  -",
    ]
    assert max(map(len, lines)) <= 80


def test_many_steps_and_many_things_are_counted_and_not_lost() -> None:
    many = rows(*(R1._replace(key=f"k{n:02}") for n in range(20)))
    found = Divergence(("RD-1",), "machine", many, (run("A", "read k01"),) * 120, (None, many), (1, many))
    lines = explained("RD-1", found)
    assert "      A         rows" in lines
    assert any(line.startswith("  1   read k01  k00 r1 reserved, k01 r1") for line in lines)
    assert any(line.startswith("120 ✗ read k01") for line in lines)
    assert "     and 12 more" in lines


def test_a_clause_of_several_steps_says_that_it_wants_another_answer() -> None:
    lines = explained("CLM-2", TWICE._replace(expected=("…", TWICE.observed[1])))
    assert "     expected  another answer; r1 started" in lines


# --- names that mean harm ------------------------------------------------------------------------------

NASTY = "a\x1b[31m\x00\n\r\u202e\u2028<b>&'\"]]>é\ud800\ufffe\x7f|`$(rm)" + "x" * 5000
PRINTABLE = set(map(chr, range(32, 127))) | set("✗…\n")


def nasty(text: str = NASTY) -> Report:
    """Give a report in which whatever an adapter can choose is this text."""
    row = Reservation(text, text, State.STARTED, 1, 2)
    lock = Lock(text, text, text, True, text, 3)
    actions = (
        Action("run", "A", "reserve", (text, text), 1, text),
        Action("run", "B", "claim", (text, text), 1, "", Fault.LATE),
    )
    here = Database((row, row._replace(key=text + "2")), (lock,), True)
    found = Divergence((text, "CLM-4"), text, here, actions, (Reserved(row, True), here), (text, EMPTY))
    report = Report(text, text, 1, (Walked(text, text, 1, 1, 1, 1, text),), None, VERDICTS, 1.0)
    report = clause(report, "CLM-2", divergence=found, checks=(text,))
    report = clause(report, "CLM-4", divergence=found._replace(check=f"{text}{NOT_REPEATED}"))
    report = clause(report, "RSV-1", checks=(text,))
    return clause(clause(report, "LCK-1", reason=text), "STA-2", reason=text)


def test_nothing_from_an_adapter_is_shown_raw_in_an_explanation() -> None:
    report = nasty()
    found = report.verdicts[1].divergence
    assert found is not None
    history = (Began(0, Call("claim", (NASTY, NASTY), 1)), Answered(0, NASTY))
    for seen in ((), (found.start, found.start)):
        lines = explained("CLM-2", found._replace(seen=seen), history=history, saved=Saved("t.json"))
        assert set("".join(lines)) <= PRINTABLE - {"\n"}
        assert max(map(len, lines)) <= 80
        assert len(lines) < 80
        assert "a\\x1b[31m\\x00\\n\\r\\u202e\\u2028<b>&'\"" in "\n".join(lines)


def test_a_file_with_a_hostile_name_is_quoted_and_printable() -> None:
    lines = explained("CLM-4", REWRITTEN, saved=Saved("a b;\x1b.json", adapter=("--", "x y")))
    assert lines[-2:] == [
        "     trace     startonce replay 'a b;\\x1b.json' -- 'x y'",
        "     picture   startonce draw 'a b;\\x1b.json'",
    ]


def test_nothing_from_an_adapter_is_shown_raw_in_xml() -> None:
    baseline = Baseline(NASTY, (Known("CLM-2", NASTY), Known("RSV-1", NASTY)))
    text = junit.to_xml(nasty(), None, (NASTY,)) + junit.to_xml(nasty(), apply(nasty(), baseline))
    assert set(text) <= PRINTABLE | {"\t"}
    for one in text.split("<?xml")[1:]:
        suite = ET.fromstring("<?xml" + one)
        assert max(len(value) for e in suite.iter() for value in e.attrib.values()) < 6000
        assert "]]>é" not in "".join(suite.itertext())
    assert "a\\x1b[31m\\x00\\n\\r" in text


def test_json_lines_keep_the_names_and_are_ascii_that_every_reader_takes(tmp_path: Path) -> None:
    text = lines_of(nasty(), about=ADAPTER._replace(language=NASTY), command=(NASTY,))
    assert set(text) <= set(map(chr, range(32, 127))) | {"\n"}
    for line in text.splitlines():
        json.dumps(json.loads(line), ensure_ascii=False).encode()  # no half of a surrogate pair
    read = load(written(tmp_path, text))
    kept = NASTY.replace("\ud800", "\ufffd")
    assert read.head["subject"] == read.head["adapter"]["language"] == read.head["command"][0] == kept
    assert read.clauses[1]["divergence"]["start"]["rows"][0][0] == kept


def test_json_lines_have_no_number_that_is_none() -> None:
    odd = rows(R1._replace(created_at=float("inf"), updated_at=10**5000))  # type: ignore[arg-type]
    found = REWRITTEN._replace(observed=(1, odd))
    text = lines_of(clause(REPORT, "CLM-4", divergence=found))
    assert "Infinity" not in text
    assert '["k1", "r1", "reserved", "inf", "<an int of 16610 bits>"]' in text


# --- JSON lines ----------------------------------------------------------------------------------------


def written(folder: Path, text: str | bytes, name: str = "conform.jsonl") -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return path


def test_json_lines_say_everything_and_end_with_a_last_line() -> None:
    report = of("RSV-1", "CLM-2", "CLM-4", "LCK-1", "STA-2")
    text = lines_of(report, KNOWN, ADAPTER, COMMAND)
    head, scope, machine, *clauses, end = text.splitlines()
    assert head == (
        '{"startonce": "conform", "version": 1, "subject": "orders 2.1 on SQLite", "adapter": {"implementation": '
        '"orders", "language": "TypeScript", "version": "2.1", "homepage": "", "database": "SQLite", '
        '"capabilities": ["claim", "read"], "parameter_limit": 999}, "tools": "Hypothesis 6 on Python 3", "seed": '
        '7, "command": ["node", "my adapter.mjs"], "baseline": "known.json"}'
    )
    assert scope == (
        '{"scope": "edges", "what": "2 keys, 3 runs", "states": 100, "edges": 2400, "effective": 800, '
        '"executed": 2400, "how": "executed"}'
    )
    assert machine == (
        '{"machine": {"examples": 500, "steps": 24013, "faults": 0.25, "share": 0.96, "steps_per_second": 1234}}'
    )
    assert clauses[0] == (
        '{"id": "RSV-1", "kind": "store", "sentence": "a new key stores the proposed run as reserved", '
        '"verdict": "holds", "evaluated": 1204, "checks": ["edges", "machine"], "reason": null, "known": null, '
        '"divergence": null}'
    )
    assert clauses[2] == (
        '{"id": "CLM-4", "kind": "store", "sentence": "a row rewritten underneath the caller is not claimed", '
        '"verdict": "violated", "evaluated": 312, "checks": ["statements"], "reason": null, "known": null, '
        '"divergence": {"violates": ["CLM-4"], "found_by": "statements", "start": {"rows": [], "locks": [], '
        '"fence_closed": null}, "steps": [{"caller": "A", "do": "reserve k1 r2: insert", "fault": "none"}, '
        '{"caller": "B", "do": "claim k1 r1", "fault": "none"}], "expected": {"answer": "False", "database": '
        '{"rows": [["k1", "r2", "reserved", 1, 1]], "locks": [], "fence_closed": null}}, "observed": {"answer": '
        '"True", "database": {"rows": [["k1", "r2", "started", 1, 2]], "locks": [], "fence_closed": null}}, '
        '"repeats": true}}'
    )
    assert clauses[3] == (
        '{"id": "LCK-1", "kind": "store", "sentence": "a run has one lock row for good; ended stays ended", '
        '"verdict": "not checked", "evaluated": 0, "checks": [], "reason": "the subject has no take_lock", '
        '"known": null, "divergence": null}'
    )
    assert [(one["verdict"], one["known"]) for one in map(json.loads, clauses)] == [
        ("holds", None),
        ("known", "two claims race until issue 12 is done"),
        ("violated", None),
        ("not checked", None),
        ("not applicable", None),
    ]
    assert end == (
        '{"end": true, "counts": {"holds": 1, "violated": 1, "known": 1, "not applicable": 1, "not checked": 1}, '
        '"seconds": 12.3, "exit": 1}'
    )


def lines_of(
    report: Report,
    baseline: Baseline | None = None,
    about: About | None = None,
    command: tuple[str, ...] = (),
) -> str:
    facts = about and facts_of(about)
    return jsonlines.to_text(report, facts, command, apply(report, baseline), 1)


def schema() -> Any:
    return json.loads(files("startonce.oracle").joinpath("conform.schema.json").read_text("utf-8"))


WHOLE = REPORT._replace(verdicts=tuple(Ledger().verdicts()))


@pytest.mark.parametrize("report", [REPORT, nasty(), WHOLE, REPORT._replace(machine=None, walked=())])
@pytest.mark.parametrize("baseline", [None, KNOWN])
def test_every_line_fits_the_schema_and_is_read_again(
    report: Report, baseline: Baseline | None, tmp_path: Path
) -> None:
    Draft202012Validator.check_schema(schema())
    text = lines_of(report, baseline, ADAPTER)
    validator = Draft202012Validator(schema())
    for line in text.splitlines():
        validator.validate(json.loads(line))
    read = load(written(tmp_path, text))
    assert [one["id"] for one in read.clauses] == [one.clause for one in report.verdicts]
    assert len(read.scopes) == len(report.walked)
    assert (read.machine is None) == (report.machine is None)
    assert (read.end["exit"], sum(read.end["counts"].values())) == (1, len(report.verdicts))


def test_a_whole_report_has_a_line_for_every_clause() -> None:
    lines = [json.loads(line) for line in lines_of(WHOLE).splitlines()]
    assert [line["id"] for line in lines if "id" in line] == list(CLAUSES)
    assert {line["verdict"] for line in lines if "id" in line} == {"not checked"}


TEXT = lines_of(REPORT)
LINES = TEXT.splitlines(keepends=True)


@pytest.mark.parametrize("kept", [0, 1, 2, len(LINES) - 1])
@pytest.mark.parametrize("half", ["", '{"end": tr', '{"id": "CLM'])
def test_a_file_without_its_last_line_is_known_to_be_cut_off(kept: int, half: str, tmp_path: Path) -> None:
    path = written(tmp_path, "".join(LINES[:kept]) + half)
    if kept or not half:
        with pytest.raises(CutOff, match=r"conform\.jsonl.*: cut off: the last line must be the one with"):
            load(path)
    else:
        with pytest.raises(BadReport, match="line 1: no report: the first line must have"):
            load(path)


def test_a_file_whose_last_line_has_no_newline_is_whole(tmp_path: Path) -> None:
    assert load(written(tmp_path, TEXT.rstrip("\n"))).end["exit"] == 1


def changed(number: int, **changes: Any) -> str:
    line = json.dumps({**json.loads(LINES[number]), **changes}) + "\n"
    return "".join([*LINES[:number], line, *LINES[number + 1 :]])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("PK\x03\x04", "line 1: no report"),
        ('{"startonce": "trace"}\n', "line 1: no report"),
        ("[1]\n", "line 1: no report"),
        (changed(0, version=2), "line 1: version 2, this is a reader of version 1"),
        (changed(0, version=True), "line 1: version True, this is a reader of version 1"),
        (changed(0, seed="1"), "line 1: seed: '1' is not of type 'integer'"),
        (changed(3, verdict="maybe"), "line 4: verdict: 'maybe' is not one of"),
        (changed(3, evaluated=0), "line 4: evaluated: 0 is less than the minimum of 1"),
        (changed(6, reason=None), "line 7: reason: None is not of type 'string'"),
        (changed(4, divergence=None), "line 5: divergence: None is not of type 'object'"),
        (changed(4, passed=True), "line 5: Additional properties are not allowed"),
        (changed(8, end=False), "line 9: end: True was expected"),
        (
            TEXT.replace('"holds": 1', '"holds": 2'),
            "line 9: it counts other verdicts than there are: 6 and 5",
        ),
        (
            TEXT.replace('"verdict": "violated"', '"verdict": "known"', 1),
            "line 5: known: None is not of type",
        ),
        ("".join([*LINES[:4], *LINES[5:]]), "line 8: it counts other verdicts than there are: 5 and 4"),
        ("".join([LINES[0], *LINES[2:3], LINES[1], *LINES[3:]]), "not in the order head, scope, machine"),
        ("".join([*LINES[:2], *LINES[3:]]), "not in the order"),
        (TEXT + TEXT, "not in the order"),
        ("".join([*LINES[:3], "nothing\n", *LINES[3:]]), "line 4: not a JSON object"),
        ("".join([*LINES[:3], "[" * 100_000, "\n", *LINES[3:]]), "line 4: not a JSON object"),
        ("".join([*LINES[:3], '{"x": 1}\n', *LINES[3:]]), "line 4: no line of a report"),
        (b"\xff\xfe", "not UTF-8 text"),
    ],
)
def test_what_is_no_report_is_refused_with_its_line(text: str | bytes, says: str, tmp_path: Path) -> None:
    with pytest.raises(BadReport) as caught:
        load(written(tmp_path, text))
    assert says in str(caught.value)
    assert not isinstance(caught.value, CutOff)
    assert str(caught.value).startswith("conform.jsonl")


def test_a_report_that_cannot_be_read_or_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BadReport, match=r"conform\.jsonl: cannot be read: No such file"):
        load(tmp_path / "conform.jsonl")
    monkeypatch.setattr(jsonlines, "LARGEST", len(TEXT) - 1)
    with pytest.raises(BadReport, match=r"conform\.jsonl: the file is larger than"):
        load(written(tmp_path, TEXT))


# --- JUnit XML -----------------------------------------------------------------------------------------

XML = """\
<?xml version="1.0" encoding="utf-8"?>
<testsuites>
	<testsuite name="startonce conform" tests="5" errors="1" failures="1" skipped="1" time="12.3">
		<properties>
			<property name="subject" value="orders 2.1 on SQLite"/>
			<property name="tools" value="Hypothesis 6 on Python 3"/>
			<property name="seed" value="7"/>
			<property name="command" value="node 'my adapter.mjs'"/>
		</properties>
		<testcase name="RSV-1 a new key stores the proposed run as reserved" classname="startonce.store">
			<system-out>holds: evaluated 1,204 times by edges, machine</system-out>
		</testcase>
		<testcase name="CLM-2 of all claims on a row one wins, until a release" classname="startonce.store">
			<system-out>CLM-2 is a known failure in known.json: two claims race until issue 12 is done

CLM-2 violated   of all claims on a row one wins, until a release

     A              row k1
 1   reserve k1 r1  r1 reserved
 2   claim k1 r1    r1 started
 3 ✗ claim k1 r1    r1 started

     expected  False; r1 started
     observed  True; r1 started

     row k1    before    r1 started, created 1, updated 2
               expected  r1 started, created 1, updated 2
               observed  r1 started, created 1, updated 3

     found by  edges</system-out>
		</testcase>
		<testcase name="CLM-4 a row rewritten underneath the caller is not claimed" classname="startonce.store">
			<failure message="a row rewritten underneath the caller is not claimed" type="violated">CLM-4 violated   a row rewritten underneath the caller is not claimed

     A                      B                      row k1
 1   reserve k1 r2: insert                         r2 reserved
 2 ✗                        claim k1 r1            r2 started

     expected  False; r2 reserved
     observed  True; r2 started

     row k1    before    r2 reserved, created 1, updated 1
               expected  r2 reserved, created 1, updated 1
               observed  r2 started, created 1, updated 2

     found by  statements</failure>
		</testcase>
		<testcase name="LCK-1 a run has one lock row for good; ended stays ended" classname="startonce.store">
			<error message="the subject has no take_lock" type="not checked">not checked: the subject has no take_lock</error>
		</testcase>
		<testcase name="STA-2 all callers in one row lifetime are told one run" classname="startonce.consequence">
			<skipped message="not applicable: SQLite has no lagging replica"/>
			<system-out>not applicable: SQLite has no lagging replica</system-out>
		</testcase>
	</testsuite>
</testsuites>
"""


def test_junit_xml_has_a_case_for_each_clause() -> None:
    assert junit.to_xml(REPORT, apply(REPORT, KNOWN), COMMAND) == XML


def outcomes(text: str) -> dict[str, tuple[str, str]]:
    """Give the result of each case, `passed` where it has none, and its message."""
    found = {}
    for case in ET.fromstring(text).iter("testcase"):
        results = [child for child in case if child.tag != "system-out"]
        assert len(results) <= 1
        result = results[0] if results else None
        name = case.attrib["name"].split()[0]
        found[name] = ("passed", "") if result is None else (result.tag, result.attrib["message"])
    return found


def test_what_the_baseline_names_and_does_not_fail_is_no_pass() -> None:
    named = Baseline("known.json", tuple(Known(v.clause, "it was") for v in VERDICTS))
    assert outcomes(junit.to_xml(REPORT, apply(REPORT, named))) == {
        "RSV-1": (
            "failure",
            "RSV-1 holds again: strike it from known.json, which fails this run until then",
        ),
        "CLM-2": ("passed", ""),
        "CLM-4": ("passed", ""),
        "LCK-1": ("error", "the subject has no take_lock"),
        "STA-2": (
            "error",
            "STA-2 is a known failure in known.json and does not apply (SQLite has no lagging replica): strike it "
            "from there",
        ),
    }


def test_whatever_was_not_checked_is_an_error_and_never_skipped() -> None:
    (suite,) = JUnitXml.fromstring(junit.to_xml(WHOLE).encode())
    assert (suite.tests, suite.errors, suite.failures, suite.skipped) == (len(CLAUSES), len(CLAUSES), 0, 0)


def test_a_better_explanation_is_taken_and_made_safe() -> None:
    text = junit.to_xml(REPORT, explanations={"CLM-4": ["seen <twice>", "\x1b[31m"]})
    failures = [one.text for one in ET.fromstring(text).iter("failure")]
    assert failures[1] == "seen <twice>\n\\x1b[31m"
    assert str(failures[0]).startswith("CLM-2 violated")


# --- the baseline --------------------------------------------------------------------------------------


def entries(*some: Any) -> str:
    return json.dumps({"startonce": "baseline", "version": 1, "known": some})


def test_a_baseline_is_read_with_its_reasons(tmp_path: Path) -> None:
    text = entries({"id": "CLM-2", "reason": " until issue 12 "}, {"id": "RSV-1", "reason": "old"})
    path = written(tmp_path, "\ufeff" + text, "known.json")
    assert known.load(path) == Baseline(
        str(path), (Known("CLM-2", "until issue 12"), Known("RSV-1", "old"))
    )
    assert known.load(written(tmp_path, entries(), "none.json")).known == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("CLM-4", "known.json is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("", "known.json is not JSON"),
        ("[" * 100_000, "known.json is no baseline: it is nested too deeply"),
        (b"\xff\xfe\x00", "known.json is no baseline: it is not UTF-8 text"),
        (b" " * (known.LARGEST + 1), "known.json is no baseline: it is larger than 1,048,576 bytes"),
        ("[]", 'known.json is no baseline: it must be an object with "startonce": "baseline"'),
        ('{"startonce": "trace"}', "known.json is no baseline"),
        ('{"startonce": "baseline"}', "has version None, this is a reader of version 1"),
        ('{"startonce": "baseline", "version": 2, "known": []}', "known.json has version 2"),
        ('{"startonce": "baseline", "version": true, "known": []}', "known.json has version True"),
        ('{"startonce": "baseline", "version": 1}', '"known" must be an array of objects'),
        ('{"startonce": "baseline", "version": 1, "known": [], "x\\u001b": 1}', r"no member 'x\x1b'"),
        ('{"startonce": "baseline", "version": 1, "known": [], "known": []}', "the member 'known' twice"),
        (entries("CLM-4"), 'entry 1: it must be an object with "id" and "reason"'),
        (entries({"reason": "so"}), 'entry 1: it must be an object with "id" and "reason"'),
        (
            entries({"id": "XYZ-1\x1b", "reason": "so"}),
            r"entry 1: there is no clause 'XYZ-1\x1b': `startonce",
        ),
        (entries({"id": ["CLM-4"], "reason": "so"}), "entry 1: there is no clause ['CLM-4']"),
        (entries({"id": "CLM-4"}), 'entry 1: CLM-4 has no reason: say in "reason" why this failure stays'),
        (entries({"id": "CLM-4", "reason": " \n"}), "entry 1: CLM-4 has no reason"),
        (entries({"id": "CLM-4", "reason": None}), "entry 1: CLM-4 has no reason"),
        (entries({"id": "CLM-4", "reason": "a", "why": "b"}), "entry 1: CLM-4 has no member 'why'"),
        (entries(*[{"id": "CLM-4", "reason": "so"}] * 2), "entry 2: CLM-4 is named twice"),
    ],
)
def test_a_baseline_that_cannot_be_used_says_why(text: str | bytes, says: str, tmp_path: Path) -> None:
    with pytest.raises(BadBaseline) as caught:
        known.load(written(tmp_path, text, "known.json"))
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}")
    assert str(caught.value).isprintable()


def test_a_baseline_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadBaseline, match=r"known\.json cannot be read: No such file or directory"):
        known.load(tmp_path / "known.json")


def baseline(*clauses: str) -> Baseline:
    return Baseline("known.json", tuple(Known(one, "it is slow\x1b") for one in clauses))


@pytest.mark.parametrize(
    ("report", "names", "required", "code"),
    [
        (of("RSV-1", "LCK-1", "STA-2"), (), (), 0),
        (REPORT, (), (), 1),
        (REPORT, ("CLM-2",), (), 1),
        (REPORT, ("CLM-2", "CLM-4"), (), 0),
        (REPORT, ("CLM-2", "CLM-4"), ("CLM-2", "STA-2"), 0),
        (REPORT, ("CLM-2", "CLM-4"), ("LCK-1",), 3),
        (REPORT, ("CLM-2",), ("LCK-1",), 1),
        (REPORT, ("CLM-2", "CLM-4", "RSV-1"), (), 1),
        (REPORT, ("CLM-2", "CLM-4", "LCK-1"), (), 3),
        (REPORT, ("CLM-2", "CLM-4", "STA-2"), (), 3),
        (REPORT, ("CLM-2", "LCK-1"), (), 1),
        (of("CLM-2"), ("CLM-2",), (), 0),
        (of("LCK-1", "STA-2"), (), (), 3),
        (of("STA-2"), (), (), 3),
        (of(), (), (), 3),
    ],
)
def test_a_run_ends_with_the_code_that_its_verdicts_and_its_baseline_give(
    report: Report, names: tuple[str, ...], required: tuple[str, ...], code: int
) -> None:
    assert exit_code(report, baseline(*names), required) == code


def test_one_line_says_what_has_become_of_each_clause_in_the_baseline() -> None:
    assert apply(REPORT, baseline("RSV-1", "CLM-2", "LCK-1", "STA-2")).lines == [
        "RSV-1 holds again: strike it from known.json, which fails this run until then",
        "CLM-2 is a known failure in known.json: it is slow\\x1b",
        "LCK-1 is a known failure in known.json and was not checked: the subject has no take_lock",
        "STA-2 is a known failure in known.json and does not apply (SQLite has no lagging replica): strike it "
        "from there",
    ]
    assert apply(REPORT).lines == []


def test_what_is_suggested_is_a_baseline_of_the_failures(tmp_path: Path) -> None:
    text = suggest(REPORT)
    assert (
        text
        == """\
{
 "startonce": "baseline",
 "version": 1,
 "known": [
  {
   "id": "CLM-2",
   "reason": "claim answered True instead of False when this file was written"
  },
  {
   "id": "CLM-4",
   "reason": "claim answered True instead of False when this file was written"
  }
 ]
}
"""
    )
    assert exit_code(REPORT, known.load(written(tmp_path, text, "known.json"))) == 0
    assert known.load(written(tmp_path, suggest(nasty()), "known.json")).known[0].clause == "CLM-2"


def test_what_is_suggested_keeps_reasons_and_strikes_what_is_none_any_more() -> None:
    before = baseline("RSV-1", "CLM-2", "LCK-1", "STA-2")
    table = (True, rows(R1))
    report = clause(REPORT, "CLM-4", divergence=REWRITTEN._replace(expected=table, observed=(True, EMPTY)))
    assert [(one["id"], one["reason"]) for one in json.loads(suggest(report, before))["known"]] == [
        ("CLM-2", "it is slow\x1b"),
        ("CLM-4", "claim left another table than expected when this file was written"),
        ("LCK-1", "it is slow\x1b"),
    ]


def test_a_failure_that_is_mended_is_a_pass_again_once_it_is_struck() -> None:
    mended = clause(clause(REPORT, "CLM-2", **FINE), "CLM-4", **FINE)
    assert exit_code(mended, KNOWN) == 1
    assert exit_code(mended) == 0
    assert json.loads(suggest(mended, KNOWN))["known"] == []


# --- the same everywhere -------------------------------------------------------------------------------

SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from test_reports import *
texts = [junit.to_xml(nasty(), apply(nasty(), KNOWN), COMMAND), junit.to_xml(REPORT, apply(REPORT, KNOWN), COMMAND), suggest(nasty()),
         lines_of(nasty(), KNOWN, ADAPTER, COMMAND),
         *explained("FRE-2", nasty().verdicts[1].divergence), *explained("CLM-2", FOREIGN, history=HISTORY)]
sys.stdout.buffer.write("".join(texts).encode())
"""


def test_a_report_is_the_same_bytes_whatever_terminal_locale_zone_and_hash_there_is() -> None:
    def bytes_under(**env: str) -> bytes:
        command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent)]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, check=True)
        assert len(done.stdout) > 10_000
        return done.stdout

    one = bytes_under(COLUMNS="40", LC_ALL="C", TZ="Asia/Tokyo", PYTHONHASHSEED="1", PYTHONUTF8="0")
    other = bytes_under(COLUMNS="200", LC_ALL="C.UTF-8", TZ="America/Lima", PYTHONHASHSEED="2")
    assert one == other


def test_a_table_that_is_missing_and_one_that_is_empty_are_told_apart() -> None:
    found = Divergence(("RSV-6",), "edges", NOTHING, (run("A", "read k1"),), (None, NOTHING), (None, EMPTY))
    assert explained("RSV-6", found)[5:11] == [
        "     expected  None; no table",
        "     observed  None; -",
        "",
        "     table     before    missing",
        "               expected  missing",
        "               observed  there",
    ]
