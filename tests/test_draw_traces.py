"""Trace files become pictures, and values show themselves in a notebook."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from drawn import drawn, groups, texts, title

from startonce import notebook
from startonce.checker.starts import HAZARDS, explored, show
from startonce.draw.lanes import lanes_source
from startonce.draw.pictures import Picture, UnknownPicture, write
from startonce.drawing_traces import divergence_lanes, of_file
from startonce.exploring import Exploration, to_json
from startonce.model.interleaving import Action
from startonce.model.reservation import EMPTY, Database, Reservation, State
from startonce.model.world import Budget, Scope
from startonce.oracle.ledger import Divergence, Verdict
from startonce.oracle.report import Report
from startonce.oracle.tracefile import BadTrace, to_text

ROW = Reservation("k1", "r2", State.RESERVED, 1, 1)
FOUND = Divergence(
    ("CLM-4", "CLM-1"),
    "statements",
    EMPTY,
    (
        Action("run", "A", "reserve", ("k1", "r2"), 1, "insert"),
        Action("run", "B", "claim", ("k1", "r1"), 2, "claim"),
    ),
    (False, Database((ROW,), ())),
    (True, Database((ROW._replace(state=State.STARTED),), ())),
)


def written(folder: Path, text: str, name: str = "CLM-4.trace.json") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def says(picture: Picture) -> list[str]:
    return [line for group in [drawn(picture.source())] for line in texts(group)]


# --- a trace of the store -----------------------------------------------------------------------


def test_a_trace_file_becomes_a_picture(tmp_path: Path) -> None:
    pictures = of_file(written(tmp_path, to_text(FOUND, "test")))
    assert list(pictures) == ["CLM-4.trace"]
    svg = drawn(pictures["CLM-4.trace"].source())
    said = " ".join(texts(svg))
    assert "CLM-4, CLM-1 violated: a row rewritten underneath the caller is not claimed" in said
    assert "Found by statements." in said
    assert "Expected: False; k1 r2 reserved." in said
    assert "Observed: True; k1 r2 started." in said
    cells = {title(node): texts(node) for node in groups(svg, "node")}
    assert cells["2"] == ["claim k1 r1", "answer: True"]
    assert cells["2 0"] == ["r2 started"]
    paths = write("CLM-4.trace", tmp_path / "out", ("svg", "dot", "png", "mermaid"), pictures)
    assert [path.name for path in paths] == [f"CLM-4.trace.{end}" for end in ("svg", "dot", "png", "mmd")]


def test_a_file_and_the_value_that_it_was_written_of_are_one_picture(tmp_path: Path) -> None:
    pictures = of_file(written(tmp_path, to_text(FOUND, "test"), "divergence"))
    assert pictures["divergence"].source() == lanes_source(divergence_lanes(FOUND))


def test_the_name_of_a_file_is_no_way_out_of_the_folder(tmp_path: Path) -> None:
    pictures = of_file(written(tmp_path, to_text(FOUND, "test"), "a b;$(x)é.trace.json"))
    assert list(pictures) == ["a-b---x--.trace"]


# --- what explore wrote -------------------------------------------------------------------------


def exploration(**changes: Any) -> dict[str, Any]:
    scope = Scope(callers=2, without=frozenset(("DUT-2",)), durable=False)
    value: dict[str, Any] = json.loads(to_json([Exploration(scope, explored(scope), 0.0)]))
    value["scopes"][0]["scope"].update(changes)
    return value


def test_each_broken_property_of_an_exploration_becomes_a_picture(tmp_path: Path) -> None:
    value = exploration()
    broken = {name for name, one in value["scopes"][0]["properties"].items() if one["trace"] is not None}
    assert len(broken) > 1
    pictures = of_file(written(tmp_path, json.dumps(value), "found.json"))
    assert set(pictures) == {f"found-1-{name.replace(' ', '-')}".replace("'", "-") for name in broken}
    said = " ".join(says(pictures["found-1-executes-once"]))
    assert "Broken: at most one execution per run and row lifetime (STA-9)" in said
    assert "With a transient lock; faults: none, without DUT-2." in said
    assert said.count("work r1") == 2


def edited(edit: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    value = exploration()
    edit(value)
    return value


def _executes_once(value: dict[str, Any]) -> list[dict[str, Any]]:
    trace: list[dict[str, Any]] = value["scopes"][0]["properties"]["executes once"]["trace"]
    return trace


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (exploration(callers=10**9), "no scope"),
        (exploration(callers=True), "no scope"),
        (exploration(budget={"crashes": -1}), "no scope"),
        (exploration(budget={"meteors": 1}), "no scope"),
        (exploration(without=3), "no scope"),
        (edited(lambda v: v["scopes"][0].pop("scope")), "no scope"),
        (edited(lambda v: v.update(version=2)), "version 2"),
        (edited(lambda v: v.update(scopes=3)), "not an exploration"),
        (edited(lambda v: v["scopes"][0].update(properties=[])), "not an exploration"),
        (edited(lambda v: v.update(scopes=[])), "nothing is broken"),
        (edited(lambda v: _executes_once(v).pop(0)), "step 1 cannot happen"),
        (edited(lambda v: _executes_once(v)[0].update(what="<b>\n")), "cannot happen"),
        (edited(lambda v: _executes_once(v)[0].update(more=1)), "no trace of its scope"),
        (edited(lambda v: _executes_once(v)[0].update(who=[])), "cannot happen"),
        ({"startonce": "check"}, "required"),
        ([], "not"),
    ],
)
def test_what_is_no_exploration_is_refused(value: Any, why: str, tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match=why) as caught:
        of_file(written(tmp_path, json.dumps(value), "found.json"))
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "hello", "{", "[" * 100_000, '{"startonce": "trace"}'])
def test_what_is_no_trace_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(BadTrace):
        of_file(written(tmp_path, text))
    with pytest.raises(BadTrace, match="cannot be read"):
        of_file(tmp_path / "none")


# --- a notebook ---------------------------------------------------------------------------------

HOLDS = Verdict("RSV-1", "holds", 1234, ("edges",), "", None)
VIOLATED = Verdict("CLM-4", "violated", 3, ("statements",), "", FOUND)
ASIDE = Verdict("RUN-2", "not checked", 0, (), "<script>alert(1)</script> & so", None)
REPORT = Report("<mine>", "tools", 1, (), None, (HOLDS, VIOLATED, ASIDE), 1.0)


def test_a_divergence_a_hazard_and_an_automaton_show_themselves() -> None:
    shown = show(HAZARDS[1], durable=True)
    assert shown is not None
    for value in (notebook.trace(FOUND), notebook.trace(shown), notebook.automaton()):
        svg = ElementTree.fromstring(value._repr_svg_())
        assert svg.tag.endswith("}svg")
        assert len(groups(svg, "node")) > 5
    assert "H2: one claim is dispatched twice" in texts(
        ElementTree.fromstring(notebook.trace(shown)._repr_svg_())
    )
    assert notebook.picture("lifecycle").source.startswith("digraph")
    with pytest.raises(UnknownPicture, match="no picture 'moon'"):
        notebook.picture("moon")


def test_verdicts_show_themselves_and_nothing_is_shown_raw() -> None:
    html = notebook.verdicts(REPORT)._repr_html_()
    table = ElementTree.fromstring(html)
    rows = [[cell.text for cell in row] for row in table.iter("tr")]
    assert rows[0] == ["clause", "verdict", "evaluated", None]
    assert rows[1] == ["RSV-1", "✓ holds", "1,234", "a new key stores the proposed run as reserved"]
    assert rows[2][:2] == ["CLM-4", "✗ violated"]
    assert rows[3][:2] == ["RUN-2", "? not checked"]
    assert (rows[3][3] or "").endswith("(<script>alert(1)</script> & so)")
    assert {element.tag for element in table.iter()} <= {
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    caption = table.findtext("caption") or ""
    assert caption == "<mine>: 1 holds, 1 violated, 0 not applicable, 1 not checked"


def test_one_verdict_shows_itself() -> None:
    html = notebook.verdicts(VIOLATED)._repr_html_()
    assert re.findall(r"<td>([^<]*)</td>", html)[:3] == ["CLM-4", "✗ violated", "3"]


def test_a_budget_of_everything_is_named_in_the_caption(tmp_path: Path) -> None:
    scope = Scope(1, budget=Budget(settles=1), without=frozenset(("DUT-3",)))
    text = to_json([Exploration(scope, explored(scope), 0.0)])
    pictures = of_file(written(tmp_path, text, "found.json"))
    assert all("faults: 1 settles, without DUT-3" in " ".join(says(one)) for one in pictures.values())
