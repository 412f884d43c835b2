"""Every edge of the scopes is executed, and the counts are pinned: one that moved is a change of meaning."""

from pathlib import Path

import pytest

from startonce.model.predicates import judge
from startonce.model.reservation import NOTHING, Database
from startonce.oracle import scopes
from startonce.oracle.edges import Walked, walk, walk_statements
from startonce.oracle.ledger import Ledger
from startonce.oracle.scopes import EDGES, STATEMENTS
from startonce.own import SqlSubject

WHOLE = [
    Walked("edges", "2 keys, 3 runs", 100, 2_400, 399, 2_400),
    Walked("reads", "2 keys, 3 runs", 100, 1_600, 51, 1_600),
    Walked("clocks", "2 keys, 3 runs, 3 clocks", 100, 7_200, 1_197, 7_200),
    Walked("bare", "missing tables, 3 fences", 18, 282, 66, 282),
    Walked("locks", "1 key, 2 runs, 2 holders", 343, 8_918, 994, 8_918),
    Walked("held locks", "1 key, 2 runs, 2 holders", 343, 5_488, 504, 5_488),
]
HELD = [
    Walked("statements", "1 key, 3 runs, 3 callers", 3_358, 46_594, 5_466, 46_594),
    Walked("statements", "2 keys, 3 runs, 2 callers", 15_364, 320_280, 53_307, 320_280),
]


@pytest.mark.parametrize("where", ["memory", "file"])
def test_every_edge_of_whole_operations_is_executed(where: str, tmp_path: Path) -> None:
    subject = SqlSubject(":memory:" if where == "memory" else tmp_path / "a.db")
    ledger = Ledger()
    assert walk(subject, ledger) == WHOLE
    assert ledger.divergences == {}
    subject.close()


def test_every_edge_between_statements_is_executed_in_memory() -> None:
    subject, ledger = SqlSubject(), Ledger()
    assert walk_statements(subject, ledger) == HELD
    assert ledger.divergences == {}


def test_every_edge_between_statements_is_executed_on_a_file(tmp_path: Path) -> None:
    subject, ledger = SqlSubject(tmp_path / "a.db"), Ledger()
    assert walk_statements(subject, ledger, STATEMENTS[:1]) == HELD[:1]
    assert ledger.divergences == {}
    subject.close()


@pytest.mark.long
def test_every_edge_of_the_larger_scope_is_executed_on_a_file(tmp_path: Path) -> None:
    subject, ledger = SqlSubject(tmp_path / "a.db"), Ledger()
    assert walk_statements(subject, ledger, STATEMENTS[1:]) == HELD[1:]
    assert ledger.divergences == {}
    subject.close()


def test_the_model_itself_keeps_every_clause() -> None:
    edges = [
        *(e for t in scopes.tables(EDGES.keys, EDGES.runs) for e in scopes.whole_edges(t, *EDGES[1:3])),
        *(e for t in scopes.tables(EDGES.keys, EDGES.runs) for e in scopes.read_edges(t, *EDGES[1:3])),
        *(e for t in scopes.lock_tables() for e in scopes.lock_edges(t)),
        *scopes.bare_edges(),
    ]
    broken = {
        (clause, edge.call)
        for edge in edges
        for clause, kept in judge(edge.step(edge.after, edge.answer))
        if not kept
    }
    assert broken == set()


def test_an_edge_that_was_not_executed_is_not_counted() -> None:
    """The counts come from execution: a subject whose operations fail to begin yields none."""
    subject, ledger = SqlSubject(operations={}), Ledger()
    with pytest.raises(KeyError):
        walk(subject, ledger)
    assert sum(ledger.evaluated.values()) == 0


def test_a_table_of_another_shape_beside_ours_is_noticed() -> None:
    """After a walk over reservations there must be neither a lock nor a fence."""
    subject, ledger = SqlSubject(), Ledger()
    real = subject.dump

    def dump() -> Database:
        return real()._replace(fence_closed=False)

    subject.dump = dump  # type: ignore[method-assign]
    walk(subject, ledger)
    assert ledger.divergences
    assert subject.dump() != NOTHING
