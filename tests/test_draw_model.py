"""Pictures of starts: the flow, where faults strike, what started means; found by executing the model."""

from collections.abc import Callable
from typing import Any

import pytest
from drawn import arrows, drawn, groups, nodes, svg_of, texts, title

from startonce.checker.starts import explored
from startonce.draw.faults import COLUMNS, UNTOUCHED, left_behind, strikes
from startonce.draw.flow import flow
from startonce.draw.flow_dot import flow_source
from startonce.draw.started import MEANINGS, meanings, started_source
from startonce.model.faults import first, steps
from startonce.model.reservation import State
from startonce.model.start import PROGRAM
from startonce.model.world import Budget, Caller, Event, Lock, Row, Scope, World


def walked(scope: Scope) -> list[tuple[World, Event, World]]:
    out_of = steps(scope)
    return [(w, e, v) for w in explored(scope).parents for e, v in out_of(w)]


# --- the flow of a start ------------------------------------------------------------------------


def test_the_flow_has_every_statement_and_every_answer_that_exploration_sees() -> None:
    graph = flow()
    seen, told = set(), set()
    for budget in (
        Budget(flips=1, refusals=2),
        Budget(unknowns=1, flips=1),
        Budget(cancels=1),
        Budget(frees=1),
    ):
        for _, event, _ in walked(Scope(budget=budget)):
            if 0 <= event.who < 2 and event.fault != "crashes before it":
                seen.add(event.what)
                told |= {event.answer} - {""}
    assert {name.partition(",")[0] for name in graph.statements} == seen
    assert set(graph.answers) == told


def test_no_step_of_an_exploration_leaves_the_flow() -> None:
    """Whatever a caller is seen to do next is an arrow, with or without a fault."""
    allowed = {(arrow.before, arrow.after, arrow.answers) for arrow in flow().arrows}

    def place(c: Caller) -> str:
        return f"settle, then {c.after}" if c.at == "settle" else c.at

    checked = 0
    for budget in (Budget(unknowns=1, flips=1), Budget(refusals=2), Budget(frees=1), Budget(stale=1)):
        for w, e, v in walked(Scope(budget=budget)):
            if 0 <= e.who < 2 and e.fault != "crashes before it" and w.callers[e.who].at != "idle":
                before = place(w.callers[e.who])
                after = (e.answer, True) if e.answer else (place(v.callers[e.who]), False)
                assert (before, *after) in allowed, f"{before} -> {after}"
                checked += 1
    assert checked > 1000


def test_where_a_look_leads_in_words() -> None:
    assert {arrow.after: arrow.replies for arrow in flow().leads("look")} == {
        "insert": ("no row",),
        "claim": ("reserved",),
        "pending": ("started", "terminal, lock held"),
        "settle, then replayed": ("started, ended",),
        "settle, then settled": ("started, a cancel holds its lock",),
        "retry": (
            "started, a free holds its lock",
            "reserved, the claim lost, twice, same run",
            "reserved, the lock not mine",
        ),
        "settled": ("terminal",),
        "replayed": ("terminal, ended",),
        "unreadable": (),
    }


def test_the_flow_is_drawn_whole() -> None:
    graph, svg = flow(), svg_of("start")
    assert {title(node) for node in groups(svg, "node")} == set(graph.statements)
    for name, node in nodes(svg).items():
        said = texts(node)
        for arrow in graph.leads(name):
            if arrow.answers:
                assert f"answer: {arrow.after}" in said
            for fault in arrow.faults:
                assert any(fault in line for line in said)
            for words in arrow.replies:
                assert any(words.startswith(line) for line in said), words
    pairs = {(before, after) for before, _, after in arrows(svg)}
    elsewhere = {(a.before, a.after) for a in graph.arrows if not a.answers and a.before != a.after}
    assert pairs == elsewhere
    assert len(pairs) > len(graph.statements)


CHANGES: dict[str, tuple[str, dict[str, Any], Callable[[Any], bool]]] = {
    "a lost claim is taken for won": (
        "claim",
        {"unknown": lambda c: c._replace(at="fence")},
        lambda a: (a.before, a.after) == ("claim", "fence") and a.faults == ("reply lost",),
    ),
    "a closed fence is gone through": (
        "fence",
        {"then": lambda c, closed: c._replace(at="take")},
        lambda a: (a.before, a.after, a.replies) == ("fence", "take", ()),
    ),
    "whoever finds the row goes to the fence": (
        "read back",
        {"then": lambda c, row: c._replace(at="fence", run=row.run if row else c.run)},
        lambda a: (a.before, a.after) == ("read back", "fence"),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_start_is_a_changed_flow(change: str) -> None:
    name, other, seen = CHANGES[change]
    changed = flow({**PROGRAM, name: PROGRAM[name]._replace(**other)})
    assert not any(seen(arrow) for arrow in flow().arrows)
    assert any(seen(arrow) for arrow in changed.arrows)
    assert flow_source(changed) != flow_source(flow())


# --- where faults strike, what started means ----------------------------------------------------


def test_every_fault_stands_where_it_can_strike_and_nowhere_else() -> None:
    svg = svg_of("faults")
    cells = {title(node): texts(node) for node in groups(svg, "node")}
    columns = len(COLUMNS) + 1
    rows = len(cells) // columns
    assert len(cells) == rows * columns
    names = [" ".join(cells[f"{row} 0"]) for row in range(1, rows)]
    assert set(names) == {name.partition(",")[0] for name in flow().statements}
    for row, name in enumerate(names, 1):
        writes = name != "work" and PROGRAM[name].writes
        lost, late, stale = (cells[f"{row} {column}"] != [UNTOUCHED] for column in (3, 4, 5))
        assert (lost, late) == (writes, writes), name
        assert stale == (name in ("read back", "look"))
        assert (cells[f"{row} 2"] != [UNTOUCHED]) == (name != "work")
        assert (cells[f"{row} 1"] != [UNTOUCHED]) == (name != "insert")


def test_what_a_fault_leads_to_is_what_the_program_says() -> None:
    struck = strikes([walked(Scope(callers=1, budget=Budget(unknowns=1, flips=1)))])
    for name, statement in PROGRAM.items():
        if (name, "reply lost") in struck:
            then = statement.unknown(Caller(name, run=0, after="started"))
            said = f"answer: {then.answer}" if not isinstance(then, Caller) else then.at
            assert struck[name, "reply lost"] == (said,)
    assert len(struck) == 6


def test_what_a_crash_leaves_is_said_by_the_inventory() -> None:
    start = first(Scope(callers=1))
    world = start._replace(locks=(None,), executed=(0,), won=(0,))
    kinds: dict[Row | None, dict[Lock | None, str]] = {
        None: {None: "no row"},
        Row(0, State.RESERVED): {None: "reserved", Lock(-1): "held by a cancel"},
        Row(0, State.STARTED): {
            None: "never reached the lock",
            Lock(0): "reached the lock, not ended",
            Lock(0, True): "ended, not settled",
            Lock(-2): "held by a free",
        },
        Row(0, State.TERMINAL): {
            None: "over",
            Lock(0, True): "over",
            Lock(0): "settled or purged, still held",
        },
    }
    for row, locks in kinds.items():
        for lock, kind in locks.items():
            assert left_behind(world._replace(rows=(row,), locks=(lock,)), 0) == kind


def test_who_may_end_a_started_row() -> None:
    some = [
        meanings(1, walked(Scope(1, budget=Budget(cancels=1, frees=1, settles=1)))),
        meanings(2, walked(Scope(2, budget=Budget(crashes=1)))),
    ]
    svg = drawn(started_source(some))
    said = {title(node): " ".join(texts(node)) for node in groups(svg, "node")}
    kinds = {text for place, text in said.items() if place.endswith(" 0")} - {"a started row means"}
    assert {kind for kind in MEANINGS if any(text.startswith(kind) for text in kinds)} == set(MEANINGS)
    ends: dict[str, set[str]] = {}
    for before, _, after in arrows(svg):
        if after.endswith(" 2"):
            ends.setdefault(said[after], set()).add(said[before])
    assert ends["over"] == {
        "host: settle",
        "its caller: settle",
        "next caller: settle",
        "operator: cancel, settle",
    }
    assert ends["no row"] == {"operator: free, delete"}
    assert "reserved" not in ends  # the fence is never closed in these scopes
    assert ends["ended, not settled"] == {"its caller: persist", "a person: persist"}
    committed = " ".join(texts(svg_of("started")))
    assert "its caller: release" in committed


def test_a_duty_that_is_dropped_lets_somebody_else_end_it() -> None:
    """The picture follows the steps that it is given: without DUT-3 a host settles what is executing."""
    scope = Scope(1, budget=Budget(settles=1))
    kept = {end for end in meanings(1, walked(scope)).ends if end.who == "host"}
    dropped = {
        end
        for end in meanings(1, walked(scope._replace(without=frozenset(("DUT-3",))))).ends
        if end.who == "host"
    }
    assert {end.before for end in kept} == {"ended, not settled"}
    assert {end.before for end in dropped} > {"never reached the lock", "reserved"}
