"""The specification says what the model says today."""

from pathlib import Path

import pytest

from startonce import traceability
from startonce.checker import retry
from startonce.specification import SECTIONS, generated

PAGE = Path(__file__).parent.parent / "docs" / "specification.md"


@pytest.mark.long
def test_the_specification_is_not_stale() -> None:
    text = PAGE.read_text("utf-8")
    assert generated(text) == text, "python -m startonce.specification docs/specification.md"


@pytest.mark.parametrize("section", ["operations", "clauses", "properties"])
def test_the_quick_sections_are_not_stale(section: str) -> None:
    assert f"<!-- generated: {section} -->\n{SECTIONS[section]()}\n<!-- end -->" in PAGE.read_text("utf-8")


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="operations"):
        generated("")


def test_a_lost_release_is_not_repeated_and_a_lost_insert_not_under_the_same_id() -> None:
    release = retry.answer("release", "repeat it")
    insert = retry.answer("insert", "repeat it")
    assert not release.allowed
    assert not insert.allowed
    assert len(insert.trace) == 12
    assert retry.answer("insert", "start over").allowed
    assert retry.answer("take", "repeat it").allowed


def test_no_cell_of_the_traceability_table_is_empty() -> None:
    for one in traceability.table():
        assert one.model, f"{one.clause}: the model says it nowhere"
        assert one.checks, f"{one.clause}: nothing holds it"
        assert one.mutants, f"{one.clause}: no mutant dies by it"
        assert one.pictures, f"{one.clause}: no picture shows it"
        for picture in one.pictures:
            assert (PAGE.parent / "diagrams" / f"{picture}.svg").exists()
