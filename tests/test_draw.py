"""The lifecycle and the engine: that the picture is the model's and changes with it."""

import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from drawn import SVG, arrows, drawn, groups, outline, texts, title

from startonce.draw import engine, text
from startonce.draw.automaton import ABSENT, ARGUMENTS, Transition, lifecycle
from startonce.draw.dot import lifecycle_source
from startonce.draw.engine import DrawingFailed, EngineMissing, UnknownFormat
from startonce.draw.pictures import PICTURES, UnknownPicture, render, write
from startonce.model import reservation as r
from startonce.model.operations import CREATE, PROGRAMS, Call, Program
from startonce.model.reservation import Database, State

ROOT = Path(__file__).parents[1]
NASTY = "<b>&lt;\"'\\N"


# --- the lifecycle ------------------------------------------------------------------------------


TODAY = {
    Transition("absent", "insert", "reserved"),
    Transition("reserved", "claim", "started"),
    Transition("started", "release", "reserved"),
    Transition("reserved", "settle", "terminal"),
    Transition("started", "settle", "terminal"),
    Transition("terminal", "purge", "absent"),
    Transition("started", "delete", "absent"),
}


def test_the_transitions_of_one_key() -> None:
    assert set(lifecycle().transitions) == TODAY
    assert {t.statement for t in TODAY if t.backwards} == {"release"}
    assert {t.statement for t in TODAY if t.deletes} == {"purge", "delete"}


def test_every_statement_of_every_operation_is_applied_to_every_state() -> None:
    seen: set[tuple[str, str, str]] = set()

    def spy(operation: str, statement: str, program: Program) -> Any:
        def apply(db: Database, call: Call) -> tuple[Database, Any]:
            row = db.row("k1")
            seen.add((operation, statement, ABSENT if row is None else row.state))
            return program.statements[statement](db, call)

        return apply

    watched = {
        name: program._replace(statements={s: spy(name, s, program) for s in program.statements})
        for name, program in PROGRAMS.items()
    }
    assert lifecycle(watched) == lifecycle()
    assert seen == {
        (name, statement, state)
        for name, program in PROGRAMS.items()
        for statement in program.statements
        for state in (ABSENT, *State)
        if name != "free" or statement == "read both" or state is State.STARTED  # it ends early elsewhere
    } - {("reserve", "read back", ABSENT)}


def test_every_operation_of_the_model_has_arguments_here() -> None:
    assert set(ARGUMENTS) == set(PROGRAMS)
    with pytest.raises(KeyError, match="reopen"):
        lifecycle({"reopen": Program((), {})})


def _settling_claim(db: Database, call: Call) -> tuple[Database, Any]:
    return r.settle(db, call.args[1], call.now)


def _writing_read(db: Database, call: Call) -> tuple[Database, Any]:
    return r.claim(db, call.args[0], "r1", call.now)[0], db.row(call.args[0])


def _greedy_purge(db: Database, call: Call) -> tuple[Database, Any]:
    return db._replace(rows=()), len(db.rows or ())


def _touching_claim(db: Database, call: Call) -> tuple[Database, Any]:
    rows = tuple(row._replace(updated_at=call.now) for row in db.rows or ())
    return db._replace(rows=rows), False


CLAIM, RELEASE = (
    Transition("reserved", "claim", "started"),
    Transition("started", "release", "reserved"),
)
CHANGED: Mapping[str, tuple[Mapping[str, Program], set[Transition], set[Transition]]] = {
    "claim leads to terminal": (
        {**PROGRAMS, "claim": Program((), {"claim": _settling_claim})},
        {CLAIM},
        {Transition(state, "claim", "terminal") for state in ("reserved", "started")},
    ),
    "release is dropped": (
        {name: program for name, program in PROGRAMS.items() if name != "release"},
        {RELEASE},
        set(),
    ),
    "a read writes": (
        {**PROGRAMS, "read": Program((), {"read": _writing_read})},
        set(),
        {Transition("reserved", "read", "started")},
    ),
    "a purge deletes what is live": (
        {**PROGRAMS, "purge": Program((), {"purge": _greedy_purge})},
        set(),
        {Transition(state, "purge", "absent") for state in ("reserved", "started")},
    ),
    "a lost claim moves the time": (
        {**PROGRAMS, "claim": Program((), {"claim": _touching_claim})},
        {CLAIM},
        {Transition(state, "claim", state) for state in State},
    ),
}
"""A changed model, the transitions that go and those that come."""


@pytest.mark.parametrize("change", CHANGED)
def test_a_changed_model_is_a_changed_picture(change: str) -> None:
    programs, gone, come = CHANGED[change]
    today, then = lifecycle(), lifecycle(programs)
    assert set(today.transitions) - set(then.transitions) == gone
    assert set(then.transitions) - set(today.transitions) == come
    before, after = arrows(drawn(lifecycle_source(today))), arrows(drawn(lifecycle_source(then)))
    assert len(before - after) == len(gone)
    assert len(after - before) == len(come)


def test_creating_the_schema_is_applied_too(monkeypatch: pytest.MonkeyPatch) -> None:
    emptied = Database(rows=(), locks=()), None
    monkeypatch.setitem(cast("dict[str, Any]", CREATE), "create locks", lambda db: emptied)
    come = set(lifecycle().transitions) - TODAY
    assert come == {Transition(state, "create locks", "absent") for state in State}


def test_the_captions_follow_the_model() -> None:
    without = {name: PROGRAMS[name] for name in ("reserve", "claim", "settle")}
    says = " ".join(texts(drawn(lifecycle_source(lifecycle(without)))))
    assert "No arrow leads back." in says
    assert "No row is ever deleted." in says
    says = " ".join(texts(drawn(lifecycle_source(lifecycle()))))
    assert "backwards, only by release." in says
    assert "deleted, only by delete, purge." in says


def test_the_lifecycle_is_drawn_whole() -> None:
    graph = lifecycle()
    svg = drawn(lifecycle_source(graph))
    assert [title(node) for node in groups(svg, "node")] == list(graph.states)
    assert [texts(node)[0] for node in groups(svg, "node")] == list(graph.states)
    said = {"release": "release (fence refusal only)", "delete": "delete (free)"}
    assert arrows(svg) == Counter(
        (t.before, said.get(t.statement, t.statement), t.after) for t in graph.transitions
    )


def test_release_is_set_off_without_colour() -> None:
    svg = drawn(lifecycle_source(lifecycle()))
    dashes: dict[str | None, list[str]] = {}
    for edge in groups(svg, "edge"):
        path = edge.find(f"{SVG}path")
        assert path is not None
        dashes.setdefault(path.get("stroke-dasharray"), []).extend(texts(edge))
    assert sorted(dashes.pop(None)) == ["claim", "insert", "settle", "settle"]
    assert sorted(dashes.values()) == [["delete (free)", "purge"], ["release (fence refusal only)"]]


# --- labels, formats, errors ---------------------------------------------------------------------


def test_labels_are_escaped() -> None:
    statement = {NASTY: PROGRAMS["claim"].statements["claim"]}
    graph = lifecycle({**PROGRAMS, "claim": Program((), statement)})
    assert ("reserved", NASTY, "started") in arrows(drawn(lifecycle_source(graph)))


def test_what_is_not_ascii_is_drawn_as_its_escape_and_no_width_is_guessed() -> None:
    assert text.drawn("“é”…\n\0") == '"\\xe9"...\\n\\x00'
    statement = {"\u202e\u2713": PROGRAMS["claim"].statements["claim"]}
    graph = lifecycle({**PROGRAMS, "claim": Program((), statement)})
    assert ("reserved", "\\u202e\\u2713", "started") in arrows(drawn(lifecycle_source(graph)))


def test_the_widths_are_those_of_the_engine() -> None:
    """The engine makes a box as wide as its text; so its width is known for every letter."""
    letters = "".join(map(chr, range(32, 127)))
    for bold in (False, True):
        label = text.markup([text.Line(letters, 20, bold)])
        node = f"digraph {{ a [label={label} shape=box fontname=Helvetica margin=0 width=0 height=0] }}"
        box = outline(groups(drawn(node), "node")[0])
        assert box is not None
        assert box.right - box.left == pytest.approx(text.width(letters, 20, bold), rel=0.01)


def test_text_is_broken_into_lines_that_fit() -> None:
    words = "a lock whose taker did not crash is executed under " + "x" * 60
    for limit in (40, 100, 1000):
        lines = text.wrapped(words, 14, limit)
        assert all(text.width(line, 14) <= limit for line in lines)
        assert "".join(lines).replace(" ", "") == words.replace(" ", "")
    assert text.balanced("one two three four", 14, 90) == ["one two", "three four"]
    assert text.wrapped("", 14, 100) == []
    assert text.cut("abcdefgh", 5) == "ab..."


def test_dot_is_the_source() -> None:
    source = PICTURES["lifecycle"].source()
    assert render(source, "dot").decode() == source
    assert source.startswith("digraph ")


def test_unknown_names_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(UnknownPicture, match="no picture 'moon': choose from legend, lifecycle, "):
        write("moon", tmp_path / "new")
    with pytest.raises(UnknownFormat, match="as 'pdf': choose from svg, dot, png, mermaid"):
        write("lifecycle", tmp_path / "new", ("svg", "pdf"))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "source",
    ["digraph {", 'digraph {a [fontname="No Such Font"]}', "digraph {a [label=<<b>x>]}"],
    ids=["syntax", "guessed width", "markup"],
)
def test_what_the_engine_refuses_or_guesses_is_an_error(source: str) -> None:
    with pytest.raises(DrawingFailed, match="refused the source"):
        render(source, "svg")


def test_a_missing_engine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_PACKAGE", "no-such-package")
    with pytest.raises(EngineMissing, match="not installed"):
        render("digraph {}", "svg")
    monkeypatch.setattr(engine, "_PACKAGE", "graphviz")
    with pytest.raises(EngineMissing, match="pip install"):
        render("digraph {}", "svg")


def test_draw_has_one_name() -> None:
    command = [sys.executable, "-c", "import draw"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "import startonce.draw, not draw" in done.stderr
