"""Pictures of the model's tables: found by executing it, counted, and other where the model is another."""

from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import pytest
from drawn import SVG, arrows, drawn, groups, nodes, svg_of, texts, title

from startonce.checker.starts import explored
from startonce.draw import answers
from startonce.draw.faults import COLUMNS, UNTOUCHED, left_behind, strikes
from startonce.draw.flow import flow
from startonce.draw.flow_dot import flow_source
from startonce.draw.graph import graph_source, group_of
from startonce.draw.keys import ASKED, keys
from startonce.draw.keys_dot import keys_source
from startonce.draw.operations import operations_source, trouble_source
from startonce.draw.rows import TABLE, found, rows_source
from startonce.draw.started import MEANINGS, meanings, started_source
from startonce.drawing_facts import ACCEPTED, REFUSED, inputs, tables
from startonce.impl import statements as sql
from startonce.model import reservation as r
from startonce.model.faults import first, steps
from startonce.model.operations import PROGRAMS, READS, Call, Fault, Program
from startonce.model.reservation import Database, State
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


# --- the automaton of one key, the graph of two callers -------------------------------------------


def test_the_automaton_counts_every_state_edge_and_refusal() -> None:
    graph, svg = keys(), svg_of("automaton")
    states = [node for node in groups(svg, "node") if not title(node).startswith("lock ")]
    assert len(states) == len(graph.places) == 20  # four states of a row, five of a lock
    merged = {(change.before, change.after) for change in graph.changes}
    assert sum(arrows(svg).values()) == len(merged)
    labels = Counter(
        word
        for (_, label, _), count in arrows(svg).items()
        for word in label.split(", ")
        for _ in range(count)
    )
    assert labels == Counter(change.statement for change in graph.changes)
    for node in states:
        row, lock = title(node).split(", ")
        number = next(n for place, n in graph.refused.items() if place == (row, lock))
        assert texts(node) == [row, f"{number} without change"]
    caption = " ".join(texts(svg))
    assert f"20 states, {len(graph.changes)} changes; {sum(graph.refused.values())} times" in caption


def test_every_operation_that_writes_rows_or_locks_is_asked() -> None:
    writing = {name for name, program in PROGRAMS.items() if set(program.statements) - READS}
    assert set(ASKED) == writing - {"close_fence", "open_fence"}


def test_a_changed_operation_is_a_changed_automaton(monkeypatch: pytest.MonkeyPatch) -> None:
    def settling_claim(db: Database, call: Call) -> tuple[Database, Any]:
        return r.settle(db, call.args[1], call.now)

    changed = PROGRAMS["claim"]._replace(statements={"claim": settling_claim})
    today = keys()
    monkeypatch.setitem(cast("dict[str, Program]", PROGRAMS), "claim", changed)
    then = keys()
    assert {c.after.row for c in today.changes if c.statement == "claim"} == {"started"}
    assert {c.after.row for c in then.changes if c.statement == "claim"} == {"terminal"}
    assert keys_source(then) != keys_source(today)


def test_the_whole_graph_is_drawn_and_grouped() -> None:
    scope, svg = Scope(), svg_of("two-callers")
    states = list(explored(scope).parents)
    moves = [(w, v) for w in states for _, v in steps(scope)(w)]
    assert len(groups(svg, "node")) == len(states)
    assert len(groups(svg, "edge")) == len(moves)
    sizes = Counter(group_of(world) for world in states)
    labels = [texts(group)[0] for group in groups(svg, "cluster")]
    assert Counter(labels) == Counter(f"{group.words}: {n}" for group, n in sizes.items())
    assert f"{len(states)} states, {len(moves)} steps" in " ".join(texts(svg))
    thick = [edge for edge in groups(svg, "edge") if edge[1].get("stroke-width") == "3"]
    assert len(thick) == sum(w.rows != v.rows for w, v in moves)
    twice = [node for node in groups(svg, "node") if len(list(node.iter(f"{SVG}ellipse"))) == 2]
    assert len(twice) == sum(all(c.at == "over" for c in w.callers) for w in states)


def test_a_second_execution_would_be_counted_in_the_caption() -> None:
    scope = Scope(durable=False, without=frozenset(("DUT-2",)))
    said = texts(drawn(graph_source(list(explored(scope).parents), steps(scope))))
    assert any("Executions in any of them: 2." in line for line in said)
    assert any("Executions in any of them: at most one." in line for line in texts(svg_of("two-callers")))


# --- operations ---------------------------------------------------------------------------------


def test_the_operations_are_drawn_whole() -> None:
    svg = drawn(operations_source())
    said = {title(node): " ".join(texts(node)) for node in groups(svg, "node")}
    for row, (name, program) in enumerate(PROGRAMS.items(), 1):
        assert said[f"{row} 0"].startswith(name)
        drawn_steps = [said[f"{row} {column}"] for column in range(2, 6) if f"{row} {column}" in said]
        assert drawn_steps == list(program.statements)
        assert (f"{row} 1" in said) == bool(program.creates)
    chained = sum(len(p.statements) - 1 + bool(p.creates) for p in PROGRAMS.values())
    assert sum(arrows(svg).values()) == chained
    thick = {title(node) for node in groups(svg, "node") if node[1].get("stroke-width") == "3"}
    writes = {
        f"{row} {column}"
        for row, program in enumerate(PROGRAMS.values(), 1)
        for column, statement in enumerate(program.statements, 2)
        if statement not in READS
    }
    assert thick - writes == {f"{row} 1" for row, p in enumerate(PROGRAMS.values(), 1) if p.creates}
    assert writes <= thick


def test_what_is_answered_in_trouble() -> None:
    said = {title(node): " ".join(texts(node)) for node in groups(drawn(trouble_source()), "node")}
    rows = {name: [said.get(f"{row} {n}", "") for n in range(1, 5)] for row, name in enumerate(PROGRAMS, 1)}
    assert rows["claim"] == ["False", "error: not applied", "error: unknown outcome", ""]
    assert rows["settle"] == ["0", "error: not applied", "error: unknown outcome", ""]
    assert rows["read"] == ["nothing", "as ever", "", "error: unreadable"]
    assert rows["reserve"][2] == "the row, not created"
    assert rows["take_lock"][2] == "as ever"
    assert "creates reservations, locks, index" in rows["reserve"][0]
    creating = {name for name, cells in rows.items() if "creates" in cells[0]}
    assert creating == {"reserve", "close_fence", "open_fence"}


def test_a_changed_operation_answers_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = PROGRAMS["claim"]._replace(
        resolved=("claim",), answer=lambda call: call.heard[0] is not False
    )
    assert answers.struck("claim", Fault.LOST, reads=False) == ["error: unknown outcome"]
    monkeypatch.setitem(cast("dict[str, Program]", PROGRAMS), "claim", changed)
    assert answers.struck("claim", Fault.LOST, reads=False) == ["True"]


def test_what_each_operation_finds_in_one_table() -> None:
    by_hand = {
        "read": {"k1"},
        "for_runs": {"k1", "k2", "k3"},
        "inventory": {"k1", "k2", "k3", "k6"},
        "purge": {"k4"},
    }
    svg = drawn(rows_source())
    assert (
        len([node for node in groups(svg, "node") if title(node).endswith(" 1")])
        == len(TABLE.rows or ()) + 1
    )
    several = list(found())
    assert {one.operation: set(one.keys) for one in several if one.operation in by_hand} == by_hand
    said = [(one.operation, one.keys, one.answer) for one in several if one.operation not in by_hand]
    assert said == [
        ("claim", ("k1",), "True"),
        ("claim", (), "False"),
        ("release", ("k2",), "True"),
        ("release", (), "False"),
        ("settle", ("k2", "k3"), "2"),
        ("settle", (), "0"),
    ]
    assert sum(arrows(svg).values()) == sum(len(one.keys) for one in several)


# --- our implementation -------------------------------------------------------------------------


def test_the_schema_is_the_one_of_the_statements() -> None:
    three = {table.name: table for table in tables()}
    assert list(three) == [sql.RESERVATIONS, sql.LOCKS, sql.FENCE]
    assert [c.name for c in three[sql.RESERVATIONS].columns] == list(r.Reservation._fields)
    assert [c.name for c in three[sql.LOCKS].columns] == list(r.Lock._fields)
    assert [c.name for t in three.values() for c in t.columns if c.key] == ["key", "run_id", "id"]
    assert "only ('reserved', 'started', 'terminal')" in three[sql.RESERVATIONS].columns[2].refuses
    assert three[sql.RESERVATIONS].created_by == three[sql.LOCKS].created_by == ("reserve",)
    assert three[sql.FENCE].created_by == ("close_fence", "open_fence")
    assert sum(len(table.indexes) for table in three.values()) == sum(
        "CREATE INDEX" in s.sql for s in sql.ALL
    )
    written = {name for table in three.values() for name in table.written_by}
    creating = {s.name for s in (*sql.CREATE_RESERVATIONS, *sql.CREATE_FENCE)}
    assert written == {s.name for s in sql.ALL if s.writes} - creating
    svg = svg_of("schema")
    assert {title(node) for node in groups(svg, "node")} == {"handle", *three}
    assert {(before, after) for before, _, after in arrows(svg)} == {("handle", name) for name in three}
    for name, node in nodes(svg).items():
        if name in three:
            assert {column.name for column in three[name].columns} <= {
                line.split()[0] for line in texts(node)
            }


def test_what_is_refused_is_seen_on_a_real_database() -> None:
    asked = {one.words: one for one in inputs()}
    accepted = [asked[f"reserve {key!r}"] for key in ACCEPTED]
    assert [one.sent for one in accepted] == [("insert", "read back")] * len(ACCEPTED)
    assert len({one.came for one in accepted}) == len(ACCEPTED)
    assert all(one.came.endswith(", created") for one in accepted)
    refused = [one for one in asked.values() if one.came == "InvalidValue"]
    assert len(refused) == len(REFUSED)
    assert {one.sent for one in refused} == {()}
    assert asked["for_runs of 101 runs"].sent == ()
    assert asked["for_runs of 101 runs"].came == "TooManyRuns"
    assert asked["for_runs of 100 runs"].came == f"{len(ACCEPTED)} rows"
    assert asked["reserve, the clock far too large"].came == "ValueRefused"
    assert asked["read a row that says 'begun'"].came == "MalformedRow"
    cells = [texts(node) for node in groups(svg_of("inputs"), "node")]
    assert len(cells) == 3 * (len(asked) + 1)
    assert sum(cell == ["none"] for cell in cells) == len(refused) + 1
