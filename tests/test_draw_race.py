"""The races: that every interleaving is searched and drawn, and that what is broken is seen."""

from collections import Counter
from itertools import permutations
from typing import Any, cast
from xml.etree import ElementTree

import pytest
from drawn import arrows, drawn, groups, texts, title

from startonce.draw.dot import race_source
from startonce.draw.engine import render
from startonce.draw.race import RACES, Race, race, reserves
from startonce.model import reservation as r
from startonce.model.operations import PROGRAMS, Call, Ended, Program, Reserved, advance
from startonce.model.reservation import EMPTY, Database, Reservation, State

RESERVE = RACES["reserve-race"]
NASTY = "<b>&lt;\"'\\N"


def run(name: str) -> Race:
    return race(RACES[name].racers, RACES[name].start)


def source(name: str) -> str:
    return race_source(name, RACES[name], run(name))


def _final_answers_by_hand() -> set[tuple[Any, Any]]:
    """Run every order of two statements each, with nothing but the model's `advance`."""
    ends = set()
    for order in set(permutations("AABB")):
        db = EMPTY
        calls: dict[str, Call | Ended] = {
            "A": Call("reserve", ("k1", "r1"), 0),
            "B": Call("reserve", ("k1", "r2"), 0),
        }
        for caller in order:
            call = calls[caller]
            assert isinstance(call, Call)
            db, calls[caller] = advance(db, call)
        answers = [call.answer for call in calls.values() if isinstance(call, Ended)]
        ends.add((answers[0], answers[1]))
    return ends


def test_the_race_is_searched_whole() -> None:
    graph = run("reserve-race")
    # Two callers, 0 to 2 statements each: 9 places; all but the first in two versions, by who
    # was first, save the four in which only one has begun.
    assert (len(graph.situations), len(graph.moves)) == (13, 16)
    assert graph.interleavings() == 6
    ends = {(graph.answers(place, "A")[0], graph.answers(place, "B")[0]) for place in graph.finals()}
    assert ends == _final_answers_by_hand()
    assert Counter(move.changed for move in graph.moves) == {True: 2, False: 14}


def test_in_every_end_all_have_one_run_and_one_saw_created() -> None:
    graph = run("reserve-race")
    rows = []
    for place in graph.finals():
        answers = [graph.answers(place, caller)[0] for caller in "AB"]
        assert sum(answer.created for answer in answers) == 1
        rows.append({answer.row.run_id for answer in answers})
        assert RESERVE.judge(graph, place).kept
    assert sorted(rows, key=str) == [{"r1"}, {"r2"}]


def test_three_callers_race_too() -> None:
    graph = race(reserves(("A", "r1"), ("B", "r2"), ("C", "r3")), EMPTY)
    assert graph.interleavings() == 90  # 6! / (2! 2! 2!)
    assert len(graph.finals()) == 3
    assert all(RESERVE.judge(graph, place).kept for place in graph.finals())


@pytest.mark.parametrize(
    ("name", "orders", "ends"),
    [
        ("claim-race", 2, {("r1 started", "A won", "B lost"), ("r1 started", "A lost", "B won")}),
        ("purge-race", 4, {("r2 reserved", "A lost", "B purged 1, has r2, created")}),
        (
            "release-race",
            6,
            {
                ("r1 started", "A released", "B won", "C lost"),
                ("r1 started", "A released", "B lost", "C won"),
                ("r1 reserved", "A released", "B lost", "C lost"),
            },
        ),
    ],
)
def test_the_ends_of_a_race_are_those(name: str, orders: int, ends: set[tuple[str, ...]]) -> None:
    graph = run(name)
    assert graph.interleavings() == orders
    assert all(RACES[name].judge(graph, place).kept for place in graph.finals())
    nodes = {int(title(node).split()[0]): texts(node) for node in groups(drawn(source(name)), "node")}
    assert {tuple(nodes[place][:-1]) for place in graph.finals()} == ends


@pytest.mark.parametrize("name", RACES)
def test_the_race_is_drawn_whole(name: str) -> None:
    graph, svg = run(name), drawn(source(name))
    nodes = {int(title(node).split()[0]) for node in groups(svg, "node")}
    assert len(groups(svg, "node")) == len(nodes) == len(graph.situations)
    moves = Counter[tuple[int, str, int]]()
    for (before, label, after), count in arrows(svg).items():
        moves[int(before.split()[0]), label, int(after.split()[0])] += count
    assert moves == Counter((m.before, f"{m.caller}: {m.statement}", m.after) for m in graph.moves)
    assert len(groups(svg, "edge")) == len(graph.moves)
    thick = [edge for edge in groups(svg, "edge") if edge[1].get("stroke-width") == "4"]
    assert len(thick) == sum(move.changed for move in graph.moves) > 0
    twice = [node for node in groups(svg, "node") if len(node) - len(texts(node)) == 3]  # title, two frames
    assert {int(title(node).split()[0]) for node in twice} == set(graph.finals())


def test_the_reserve_race_in_words() -> None:
    svg = drawn(source("reserve-race"))
    nodes = [texts(node) for node in groups(svg, "node")]
    assert nodes[0] == ["no row", "A before insert", "B before insert"]
    assert [node for node in nodes if len(node) == 4] == [
        ["r1 reserved", "A has r1, created", "B has r1, not created", "same run, created once"],
        ["r2 reserved", "A has r2, not created", "B has r2, created", "same run, created once"],
    ]
    assert [texts(group) for group in groups(svg, "cluster")] == [
        ["the key means r1"],
        ["the key means r2"],
    ]


# --- broken operations --------------------------------------------------------------------------


def _overwriting(db: Database, call: Call) -> tuple[Database, Any]:
    key, run_id = call.args
    row = Reservation(key, run_id, State.RESERVED, call.now, call.now)
    return db._replace(rows=(row,)), True


def _believing(call: Call) -> Reserved:
    return Reserved(call.heard[1], created=True)


def _claiming_what_is_started(db: Database, call: Call) -> tuple[Database, Any]:
    after, won = r.claim(db, call.args[0], call.args[1], call.now)
    row = db.row(call.args[0])
    return after, won or (row is not None and row.state is State.STARTED)


def _claiming_any_run(db: Database, call: Call) -> tuple[Database, Any]:
    row = db.row(call.args[0])
    return r.claim(db, call.args[0], row.run_id if row else "", call.now)


def _releasing_and_settling(db: Database, call: Call) -> tuple[Database, Any]:
    return r.settle(db, call.args[1], call.now)[0], True


BROKEN = {
    "an insert overwrites": ("reserve-race", "reserve", "insert", _overwriting, "NOT AGREED"),
    "a claim is won twice": ("claim-race", "claim", "claim", _claiming_what_is_started, "2 WON"),
    "a claim takes any run": ("purge-race", "claim", "claim", _claiming_any_run, "A WON"),
    "a release ends the run": ("release-race", "release", "release", _releasing_and_settling, "0 WON"),
    "a claim is won by two": ("release-race", "claim", "claim", _claiming_what_is_started, "2 WON"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_statement_is_seen_in_its_race(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, operation, statement, apply, words = BROKEN[broken]
    today = source(name)
    program = PROGRAMS[operation]
    changed = program._replace(statements={**program.statements, statement: apply})
    monkeypatch.setitem(cast("dict[str, Program]", PROGRAMS), operation, changed)
    graph = run(name)
    ends = [RACES[name].judge(graph, place) for place in graph.finals()]
    bad = [end for end in ends if not end.kept]
    assert bad
    assert words in {end.words for end in bad}
    assert source(name) != today
    says = texts(drawn(source(name)))
    assert says.count(words) == sum(end.words == words for end in bad)
    assert any("NOT in each" in line for line in says)


def test_a_broken_answer_is_seen_in_the_race(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = PROGRAMS["reserve"]._replace(answer=_believing)
    monkeypatch.setitem(cast("dict[str, Program]", PROGRAMS), "reserve", changed)
    says = texts(ElementTree.fromstring(render(source("reserve-race"), "svg")))
    assert says.count("NOT AGREED") == 2


def test_labels_of_a_race_are_escaped() -> None:
    racers = reserves((f"A{NASTY}", "r1"), ("B", "r2"))
    svg = drawn(race_source("race", RESERVE, race(racers, EMPTY)))
    nodes = groups(svg, "node")
    assert len(nodes) == 13
    assert [f"A{NASTY} before insert", "B before insert"] == texts(nodes[0])[1:]
    assert any(f"A{NASTY} has r1, created" in texts(node) for node in nodes)
    assert sum(arrows(svg).values()) == 16
    assert {label for _, label, _ in arrows(svg) if label.startswith("A")} == {
        f"A{NASTY}: insert",
        f"A{NASTY}: read back",
    }
