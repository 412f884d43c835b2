"""Mermaid: every line is one that it reads, and nothing from outside means anything to it."""

import re
from collections.abc import Sequence

import pytest
from test_draw_lanes import NASTY, random_trace

from startonce.draw.automaton import lifecycle
from startonce.draw.lanes import Actor, Lanes, Mark, Step
from startonce.draw.mermaid import escaped, sequence, state_diagram
from startonce.draw.start_lanes import start_lanes
from startonce.draw.store_lanes import store_lanes
from startonce.model.interleaving import Action
from startonce.model.reservation import Database, Reservation, State

LINES = (
    r"    title \S.*",
    r"    (participant|actor) [as]\d+ as \S.*",
    r"    Note over [as]\d+(,[as]\d+)?: .*",
    r"    a\d+(->>|-x)s\d+: .*",
)
ENTITY = re.compile(r"#\d+;")


def check_mermaid(text: str) -> int:
    """Hold every line against what Mermaid reads; return how many steps and notes at the end there are."""
    lines = text.splitlines()
    assert lines[0] == "sequenceDiagram"
    declared = set()
    for line in lines[1:]:
        assert any(re.fullmatch(pattern, line) for pattern in LINES), line
        bare = ENTITY.sub("", line).replace("<br/>", "")
        assert not set("#;<&%") & set(bare), line
        head, _, _ = line.partition(":")
        if found := re.match(r"    (?:participant|actor) (\w+)", line):
            declared.add(found[1])
        else:
            assert set(re.findall(r"\b[as]\d+\b", head)) <= declared or "title" in line
    numbers = [int(n) for line in lines for n in re.findall(r": (?:HARM<br/>)?(\d+)\. ", line)]
    assert sorted(set(numbers)) == list(range(1, len(set(numbers)) + 1))
    return len(set(numbers)) + sum("Note over a0,s" in line for line in lines)


def test_what_could_mean_something_to_mermaid_is_an_entity() -> None:
    assert escaped("a;b#c:d<e>") == "a#59;b#35;c#58;d#60;e#62;"
    assert escaped("end") == "#101;nd"
    assert escaped("the end") == "the end"
    assert ENTITY.sub("", escaped(NASTY)).isprintable()


def test_the_lifecycle_in_mermaid_is_the_lifecycle() -> None:
    graph = lifecycle()
    lines = state_diagram(graph).splitlines()
    assert lines[:2] == ["stateDiagram-v2", "    direction LR"]
    found = [re.fullmatch(r"    (\S+) --> (\S+): (\w+)", line) for line in lines[2:]]
    named = [(m[1], m[3], m[2]) for m in found if m is not None]
    assert len(named) == len(lines) - 2
    assert [tuple(part.replace("[*]", "absent") for part in one) for one in named] == list(
        graph.transitions
    )


def test_a_lost_reply_and_harm_are_told_in_mermaid() -> None:
    steps_: Sequence[Step] = (
        Step(
            0,
            "claim r1",
            "writes",
            "",
            "reply lost",
            changes=((0, Mark("r1 started", "started")),),
            heard=False,
        ),
        Step(0, "work", "work", harm=True),
    )
    lanes = Lanes(
        "n", "t: x", (), (Actor("A"),), ("row k1",), (Mark("no row", "absent"),), tuple(steps_), ("so",)
    )
    assert sequence(lanes).splitlines()[1:] == [
        "    title t#58; x",
        "    participant a0 as A",
        "    participant s0 as row k1",
        "    Note over s0: no row",
        "    a0-xs0: 1. claim r1<br/>reply lost",
        "    Note over s0: r1 started",
        "    Note over a0: HARM<br/>2. work",
        "    Note over a0,s0: so",
    ]


@pytest.mark.parametrize("number", range(6))
def test_any_trace_of_starts_is_written(number: int) -> None:
    scope, trace = random_trace(number)
    lanes = start_lanes(scope, trace, "random", NASTY, [], [NASTY])
    assert check_mermaid(sequence(lanes)) == len(trace) + 1


def test_keys_from_outside_mean_nothing() -> None:
    row = Reservation(NASTY, NASTY, State.STARTED, 0, 0)
    actions = (Action("run", "A", "claim", (NASTY, "end"), 1), Action("run", "B", "read", ("end",), 1))
    lanes = store_lanes(Database((row,), ()), actions, str, "t", NASTY)
    assert check_mermaid(sequence(lanes)) == len(actions)
