"""The pictures: that they are the model's, that they change with it, and that nothing is cut."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

import pytest

from startonce.draw import engine
from startonce.draw.automaton import ABSENT, ARGUMENTS, Transition, lifecycle
from startonce.draw.dot import lifecycle_source, race_source
from startonce.draw.engine import DrawingFailed, EngineMissing, UnknownFormat
from startonce.draw.pictures import PICTURES, UnknownPicture, render, write
from startonce.draw.race import Race, race
from startonce.model import reservation as r
from startonce.model.operations import CREATE, PROGRAMS, Call, Ended, Program, Reserved, advance
from startonce.model.reservation import Database, Reservation, State

ROOT = Path(__file__).parents[1]
DIAGRAMS = ROOT / "docs" / "diagrams"
SVG = "{http://www.w3.org/2000/svg}"
NASTY = "<b>&lt;\"'\\N"
NAMES = sorted(PICTURES)


def drawn(source: str) -> ElementTree.Element:
    return ElementTree.fromstring(render(source, "svg"))


def groups(svg: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [group for group in svg.iter(f"{SVG}g") if group.get("class") == kind]


def title(group: ElementTree.Element) -> str:
    return group.findtext(f"{SVG}title") or ""


def texts(group: ElementTree.Element) -> list[str]:
    return [(text.text or "").strip() for text in group.iter(f"{SVG}text")]


def arrows(svg: ElementTree.Element) -> Counter[tuple[str, str, str]]:
    """Return (from, label, to) of every edge, as it is drawn."""
    found = Counter[tuple[str, str, str]]()
    for edge in groups(svg, "edge"):
        before, after = title(edge).split("->")
        found[before, " ".join(texts(edge)), after] += 1
    return found


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


# --- the race -----------------------------------------------------------------------------------


def _final_answers_by_hand() -> set[tuple[Any, Any]]:
    """Run every order of two statements each, with nothing but the model's `advance`."""
    ends = set()
    for order in set(permutations("AABB")):
        db = Database(rows=(), locks=())
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
    graph = race()
    # Two callers, 0 to 2 statements each: 9 places; all but the first in two versions, by who
    # was first, save the four in which only one has begun.
    assert (len(graph.situations), len(graph.moves)) == (13, 16)
    assert graph.interleavings() == 6
    ends = [graph.situations[place] for place in graph.finals()]
    assert {(end.answer("A"), end.answer("B")) for end in ends} == _final_answers_by_hand()
    assert Counter(move.changed for move in graph.moves) == {True: 2, False: 14}


def test_in_every_end_all_have_one_run_and_one_saw_created() -> None:
    graph = race()
    rows = []
    for place in graph.finals():
        answers = [graph.situations[place].answer(caller) for caller in "AB"]
        assert sum(answer.created for answer in answers) == 1
        rows.append({answer.row.run_id for answer in answers})
        assert graph.agreed(place)
    assert sorted(rows, key=str) == [{"r1"}, {"r2"}]


def test_three_callers_race_too() -> None:
    graph = race((("A", "r1"), ("B", "r2"), ("C", "r3")))
    assert graph.interleavings() == 90  # 6! / (2! 2! 2!)
    assert len(graph.finals()) == 3
    assert all(graph.agreed(place) for place in graph.finals())


def _moved(graph: Race) -> Counter[tuple[int, str, int]]:
    return Counter((m.before, f"{m.caller}: {m.statement}", m.after) for m in graph.moves)


def test_the_race_is_drawn_whole() -> None:
    graph = race()
    svg = drawn(race_source(graph))
    nodes = {int(title(node).split()[0]): texts(node) for node in groups(svg, "node")}
    assert len(groups(svg, "node")) == len(nodes) == len(graph.situations)
    drawn_moves = Counter[tuple[int, str, int]]()
    for (before, label, after), count in arrows(svg).items():
        drawn_moves[int(before.split()[0]), label, int(after.split()[0])] += count
    assert drawn_moves == _moved(graph)
    assert len(groups(svg, "edge")) == len(graph.moves)
    thick = [texts(edge) for edge in groups(svg, "edge") if edge[1].get("stroke-width") == "4"]
    assert thick == [["A: insert"], ["B: insert"]]
    assert nodes[0] == ["no row", "A before insert", "B before insert"]
    ends = [nodes[place] for place in graph.finals()]
    assert ends == [
        ["r1 reserved", "A has r1, created", "B has r1, not created", "same run, created once"],
        ["r2 reserved", "A has r2, not created", "B has r2, created", "same run, created once"],
    ]
    assert [texts(group) for group in groups(svg, "cluster")] == [
        ["the key means r1"],
        ["the key means r2"],
    ]


def _overwriting(db: Database, call: Call) -> tuple[Database, Any]:
    key, run_id = call.args
    row = Reservation(key, run_id, State.RESERVED, call.now, call.now)
    return db._replace(rows=(row,)), True


def _believing(call: Call) -> Reserved:
    return Reserved(call.heard[1], created=True)


@pytest.mark.parametrize("broken", ["insert", "answer"])
def test_a_broken_reserve_is_seen_in_the_race(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    today = render(race_source(race()), "svg")
    program = PROGRAMS["reserve"]
    if broken == "insert":
        statements = {**program.statements, "insert": _overwriting}
        changed = program._replace(statements=statements)
    else:
        changed = program._replace(answer=_believing)
    monkeypatch.setitem(cast("dict[str, Program]", PROGRAMS), "reserve", changed)
    graph = race()
    broken_ends = [place for place in graph.finals() if not graph.agreed(place)]
    assert broken_ends
    svg = render(race_source(graph), "svg")
    assert svg != today
    says = texts(ElementTree.fromstring(svg))
    assert says.count("NOT AGREED") == len(broken_ends)
    assert any(line.endswith("ends: NOT all agree.") for line in says)


# --- the files ----------------------------------------------------------------------------------


def test_the_committed_pictures_are_what_is_drawn_today(tmp_path: Path) -> None:
    for name in NAMES:
        for path in write(name, tmp_path / "new"):
            committed = DIAGRAMS / path.name
            assert committed.read_bytes() == path.read_bytes(), f"{committed} is out of date"
    here = {path.name for path in DIAGRAMS.iterdir() if path.suffix in (".svg", ".dot")}
    assert here == {path.name for path in (tmp_path / "new").iterdir()}


def test_the_same_bytes_whatever_the_process(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from startonce.draw.pictures import *\n"
        "for name in PICTURES: write(name, Path(sys.argv[1]))"
    )
    for seed, locale in (("1", "C"), ("2", "de_DE.UTF-8")):
        env = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale}
        folder = tmp_path / seed
        subprocess.run([sys.executable, "-c", script, folder], env=env, check=True, cwd=tmp_path)
    first = {path.name: path.read_bytes() for path in (tmp_path / "1").iterdir()}
    assert len(first) == 2 * len(NAMES)
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "2").iterdir()}
    for name in NAMES:
        assert first[f"{name}.svg"] == render(PICTURES[name].source(), "svg")


@pytest.mark.parametrize("name", NAMES)
def test_an_svg_stands_alone_on_a_white_page(name: str) -> None:
    content = render(PICTURES[name].source(), "svg")
    svg = ElementTree.fromstring(content)
    assert svg.tag == f"{SVG}svg"
    for element in svg.iter():
        assert not {key for key in element.attrib if key.endswith(("href", "src"))}
        assert element.tag not in {f"{SVG}image", f"{SVG}use", f"{SVG}script", f"{SVG}style"}
    fonts = {text.get("font-family", "") for text in svg.iter(f"{SVG}text")}
    assert {family.split(",")[1] for family in fonts} == {"Arial"}
    text = content.decode()
    plain = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text)
    for foreign in ("://", "url(", "<!", "graphviz", str(ROOT)):
        assert foreign not in plain
    _, _, width, height = (float(number) for number in svg.attrib["viewBox"].split())
    assert width <= 900  # points: 1200 pixels
    page = next(svg.iter(f"{SVG}polygon"))
    corners = [[float(n) for n in pair.split(",")] for pair in page.attrib["points"].split()]
    across, down = zip(*corners, strict=True)
    assert page.get("fill") == "white"
    assert max(across) - min(across) == pytest.approx(width, abs=1)
    assert max(down) - min(down) == pytest.approx(height, abs=1)


def test_labels_are_escaped() -> None:
    statement = {NASTY: PROGRAMS["claim"].statements["claim"]}
    graph = lifecycle({**PROGRAMS, "claim": Program((), statement)})
    assert ("reserved", NASTY, "started") in arrows(drawn(lifecycle_source(graph)))

    run = "r1"
    svg = drawn(race_source(race(((f"A{NASTY}", run), ("B", "r2")))))
    nodes = groups(svg, "node")
    assert len(nodes) == 13
    assert [f"A{NASTY} before insert", "B before insert"] == texts(nodes[0])[1:]
    assert f"the key means {run}" in texts(svg)
    assert any(f"A{NASTY} has {run}, created" in texts(node) for node in nodes)
    assert sum(arrows(svg).values()) == 16
    assert {label for _, label, _ in arrows(svg) if label.startswith("A")} == {
        f"A{NASTY}: insert",
        f"A{NASTY}: read back",
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_png_is_drawn_at_most_1200_wide(name: str, tmp_path: Path) -> None:
    (path,) = write(name, tmp_path, ("png",))
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(content[16:20], "big") <= 1200


@pytest.mark.parametrize("name", NAMES)
def test_dot_is_the_source(name: str) -> None:
    source = PICTURES[name].source()
    assert render(source, "dot").decode() == source
    assert source.startswith("digraph ")
    assert "\n" not in PICTURES[name].title


# --- the errors ---------------------------------------------------------------------------------


def test_unknown_names_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(UnknownPicture, match="no picture 'moon': choose from lifecycle, reserve-r"):
        write("moon", tmp_path / "new")
    with pytest.raises(UnknownFormat, match="as 'pdf': choose from svg, dot, png"):
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
