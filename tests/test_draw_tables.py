"""Pictures of keys, operations and the schema: found by executing them, counted, other where they are other."""

from collections import Counter
from typing import Any, cast

import pytest
from drawn import SVG, arrows, drawn, groups, nodes, svg_of, texts, title

from startonce.checker.starts import explored
from startonce.draw import answers
from startonce.draw.graph import graph_source, group_of
from startonce.draw.keys import ASKED, keys
from startonce.draw.keys_dot import keys_source
from startonce.draw.operations import operations_source, trouble_source
from startonce.draw.rows import TABLE, found, rows_source
from startonce.drawing_facts import ACCEPTED, REFUSED, inputs, tables
from startonce.impl import statements as sql
from startonce.model import reservation as r
from startonce.model.faults import steps
from startonce.model.operations import PROGRAMS, READS, Call, Fault, Program
from startonce.model.reservation import Database
from startonce.model.world import Scope

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
