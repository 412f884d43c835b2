"""The reports are held against any subject, as far as it can take them."""

from pathlib import Path

import pytest

from startonce.oracle.edges import Walked
from startonce.oracle.ledger import Ledger
from startonce.oracle.mutants import STORES
from startonce.oracle.reports.held import traces, walk_reported, whole
from startonce.own import SqlSubject


def executed(subject: SqlSubject) -> tuple[int, Ledger]:
    ledger = Ledger()
    (walked,) = walk_reported(subject, ledger)
    assert isinstance(walked, Walked)
    assert walked.edges == len(list(traces()))
    return walked.executed, ledger


def test_ours_takes_all_traces_but_the_one_in_which_the_schema_is_created_half_way(tmp_path: Path) -> None:
    on_a_file, ledger = executed(SqlSubject(tmp_path / "a.db"))
    assert on_a_file == len(list(traces())) - 1
    assert ledger.divergences == {}


def test_whole_operations_take_those_in_which_nobody_is_held() -> None:
    count, ledger = executed(SqlSubject(stepping=False))
    assert count == sum(whole(actions) is not None for _, _, actions in traces()) > 30
    assert ledger.divergences == {}


@pytest.mark.parametrize(
    ("name", "clause"),
    [("insert or replace", "RSV-2"), ("claim on any state", "CLM-2"), ("settle says whether", "SET-3")],
)
def test_a_broken_store_is_seen(name: str, clause: str) -> None:
    _, ledger = executed(STORES[name].subject())
    assert clause in ledger.divergences
