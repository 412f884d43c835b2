"""The page of reports is not stale, and what `startonce replay --reported` calls says what happens."""

from pathlib import Path

import pytest

from startonce import record, replaying
from startonce.oracle.reported import REPORTED
from startonce.oracle.reports.kinds import Probe, Trace

PAGE = Path(__file__).parent.parent / "docs" / "track-record.md"


def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text("utf-8") == record.page(), "python -m startonce.record docs/track-record.md"


def test_the_page_has_every_report_and_every_hazard_under_both_locks() -> None:
    text = PAGE.read_text("utf-8")
    for one in REPORTED.values():
        assert text.count(f"\n### {one.id}\n") == 1
        assert f"\nstartonce replay --reported {one.id}\n" in text
        assert all(f"/issues/{issue.partition('#')[2]})" in text for issue in one.seen_in)
    hazards = text[text.index("## The hazards") :]
    assert hazards.count("Durable lock, ") == 9
    assert hazards.count("Transient lock, ") == 8, "H9 does not concern a transient lock"


@pytest.mark.parametrize("id", REPORTED)
def test_a_report_is_shown(id: str) -> None:
    lines = record.show(id)
    assert lines[0] == f"{id}  {REPORTED[id].symptom}"
    assert all(line == line.rstrip() and line.isprintable() for line in lines)
    assert max(map(len, lines)) <= record.WIDEST


@pytest.mark.parametrize("id", REPORTED)
def test_a_report_is_run_on_our_own_implementation(id: str) -> None:
    assert replaying.problems(id) == []
    assert record.run(id)


def test_a_run_that_goes_wrong_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    one = REPORTED["B13"]
    wrong = one._replace(scenes=(Trace("A claim k1 r1 -> True\n= no table"), Probe("STA-1", "")))
    monkeypatch.setattr(replaying, "REPORTED", {"B13": wrong})
    assert replaying.problems("B13") == [
        "A claim k1 r1 -> True: observed False",
        "nothing evaluated STA-1",
    ]
    assert not record.run("B13")
