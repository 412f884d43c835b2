"""Every picture: the committed files, that nothing is cut or covered, that black and white is enough."""

import os
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from drawn import (
    SVG,
    Box,
    Element,
    along,
    arrows,
    bytes_of,
    contrast,
    dot_of,
    extent,
    groups,
    nodes,
    outline,
    page,
    svg_of,
    texts,
    title,
)

from startonce import drawing
from startonce.checker.starts import HAZARDS
from startonce.draw.pictures import MERMAID, PICTURES, NoMermaid, UnknownPicture
from startonce.draw.shows import SHOWS
from startonce.model.clauses import CLAUSES

ROOT = Path(__file__).parents[1]
DIAGRAMS = ROOT / "docs" / "diagrams"
NAMES = sorted(drawing.every())
SMALLEST = 12
"""Points of the smallest text: 16 pixels, where the picture is 1200 pixels wide."""


# --- the files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_picture_is_what_is_drawn_today(name: str) -> None:
    how = f"{name} is out of date: startonce draw --out docs/diagrams"
    assert (DIAGRAMS / f"{name}.dot").read_text("utf-8") == dot_of(name), how
    assert (DIAGRAMS / f"{name}.svg").read_bytes() == bytes_of(name), how


def test_nothing_else_lies_among_the_pictures() -> None:
    here = {path.name for path in DIAGRAMS.iterdir()}
    assert here == {f"{name}.{ending}" for name in NAMES for ending in ("svg", "dot")}


def test_the_same_bytes_whatever_the_process(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from startonce.drawing import *\n"
        "for name in reversed(every()): write(name, Path(sys.argv[1]))"
    )
    env = {**os.environ, "PYTHONHASHSEED": "7", "LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Tokyo"}
    subprocess.run([sys.executable, "-c", script, tmp_path], env=env, check=True, cwd=tmp_path)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_bytes() for path in DIAGRAMS.iterdir()}


def test_every_picture_that_was_asked_for_is_there() -> None:
    wanted = {"legend", "lifecycle", "operations", "start", "started", "faults", "schema", "drain"}
    wanted |= {"reserve-race", "claim-race", "purge-race", "release-race", "automaton", "two-callers"}
    assert wanted | {hazard.id for hazard in HAZARDS} <= set(NAMES)
    assert set(PICTURES) < set(NAMES)
    assert all("\n" not in picture.title for picture in drawing.every().values())


# --- legible ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_an_svg_stands_alone_on_a_white_page_1200_pixels_wide(name: str) -> None:
    svg, text = svg_of(name), bytes_of(name).decode()
    for element in svg.iter():
        assert not {key for key in element.attrib if key.endswith(("href", "src"))}
        assert element.tag not in {f"{SVG}image", f"{SVG}use", f"{SVG}script", f"{SVG}style", f"{SVG}a"}
    fonts = {one.get("font-family", "") for one in svg.iter(f"{SVG}text")}
    assert {family.split(",")[1] for family in fonts} == {"Arial"}
    plain = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text)
    for foreign in ("://", "url(", "<!", "graphviz", str(ROOT)):
        assert foreign not in plain
    _, _, width, height = (float(number) for number in svg.attrib["viewBox"].split())
    assert width <= 900  # points: 1200 pixels
    assert next(svg.iter(f"{SVG}polygon")).get("fill") == "white"
    whole = page(svg)
    assert whole.right - whole.left == pytest.approx(width, abs=1)
    assert whole.bottom - whole.top == pytest.approx(height, abs=1)


@pytest.mark.parametrize("name", NAMES)
def test_no_text_is_small_or_leaves_the_page(name: str) -> None:
    svg = svg_of(name)
    whole = page(svg)
    for text in svg.iter(f"{SVG}text"):
        if (text.text or "").strip():
            assert float(text.attrib["font-size"]) >= SMALLEST, text.text
            assert whole.holds(extent(text), 0), text.text


@pytest.mark.parametrize("name", NAMES)
def test_no_label_is_cut_by_its_box(name: str) -> None:
    held = 0
    for node in groups(svg_of(name), "node"):
        box = outline(node)
        for text in node.iter(f"{SVG}text"):
            if box is not None and (text.text or "").strip():
                assert box.holds(extent(text), 1.5), f"{title(node)}: {text.text}"
                held += 1
    assert held or name == "two-callers"


@pytest.mark.parametrize("name", NAMES)
def test_no_label_covers_another_one_or_a_box(name: str) -> None:
    svg = svg_of(name)
    written = [(text.text, extent(text)) for text in svg.iter(f"{SVG}text") if (text.text or "").strip()]
    for (one, here), (other, there) in combinations(written, 2):
        assert not here.meets(there, 1.5), f"{one!r} and {other!r}"
    boxes = [(title(node), box) for node in groups(svg, "node") if (box := outline(node)) is not None]
    for edge in groups(svg, "edge"):
        for text in edge.iter(f"{SVG}text"):
            for box_of, box in boxes:
                assert not extent(text).meets(box, 1.5), f"{text.text!r} and {box_of!r}"


@pytest.mark.parametrize("name", NAMES)
def test_no_line_runs_through_the_label_of_another_one(name: str) -> None:
    svg = svg_of(name)
    edges = groups(svg, "edge")
    labels = [
        (edge, text.text, extent(text)) for edge in edges for text in edge.iter(f"{SVG}text") if text.text
    ]
    for edge in edges:
        for x, y in along(edge):
            for other, text, box in labels:
                struck = box.left + 2 < x < box.right - 2 and box.top + 2 < y < box.bottom - 2
                assert other is edge or not struck, f"{title(edge)} runs through {text!r}"


@pytest.mark.parametrize("name", NAMES)
def test_no_box_covers_another_one(name: str) -> None:
    svg = svg_of(name)
    boxes = [(title(node), box) for node in groups(svg, "node") if (box := outline(node)) is not None]
    for (one, here), (other, there) in combinations(boxes, 2):
        assert not here.meets(there, 1), f"{one} and {other}"


def _fills(node: Element) -> list[str]:
    shapes = [shape for shape in node.iter() if shape.tag in (f"{SVG}polygon", f"{SVG}path")]
    return [fill for shape in shapes if (fill := shape.get("fill", "none")) not in ("none", "transparent")]


@pytest.mark.parametrize("name", NAMES)
def test_text_stands_out_in_black_and_white(name: str) -> None:
    for node in groups(svg_of(name), "node"):
        inks = {text.get("fill", "black") for text in node.iter(f"{SVG}text")}
        fills = set(_fills(node)) or {"white"}
        if name == "start":  # a table: the head of the work is white on black, the rest black on light
            fills -= {"black"}
            inks -= {"white"}
        for ink in inks:
            for fill in fills:
                assert contrast(ink, fill) >= 4.5, f"{title(node)}: {ink} on {fill}"


def test_what_differs_in_colour_differs_in_shape_or_line_too() -> None:
    def look(node: Element, colour: bool) -> tuple[object, ...]:
        kinds = []
        for shape in node:
            if shape.tag not in (f"{SVG}title", f"{SVG}text"):
                corners = len(re.findall(r",", shape.get("points", "") + shape.get("d", "")))
                line = (shape.get("stroke-width", "1"), shape.get("stroke-dasharray"))
                dark = shape.get("fill") == "black"
                kinds.append((shape.tag, corners, line, dark, shape.get("fill") if colour else ""))
        return tuple(kinds)

    samples = {
        name: node
        for name, node in nodes(svg_of("legend")).items()
        if name.endswith(" 0") and name != "0 0"
    }
    assert len(samples) == 13
    for here, there in combinations(samples.values(), 2):
        assert look(here, colour=False) != look(there, colour=False), f"{texts(here)} and {texts(there)}"


# --- what is in them ----------------------------------------------------------------------------


def test_every_clause_is_seen_in_a_picture() -> None:
    assert drawing.SHOWS is SHOWS
    assert set(SHOWS) == set(CLAUSES)
    for clause, names in SHOWS.items():
        assert names, clause
        assert set(names) <= set(NAMES), clause
        assert len(set(names)) == len(names), clause


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_that_names_a_clause_shows_it(name: str) -> None:
    named = set(re.findall(r"\b[A-Z]{2,3}-\d+\b", " ".join(texts(svg_of(name)))))
    assert named <= set(CLAUSES)
    assert {clause for clause in named if name not in SHOWS[clause]} == set()


def test_every_picture_shows_a_clause_but_the_legend() -> None:
    seen = {name for names in SHOWS.values() for name in names}
    assert set(NAMES) - seen == {"legend"}


@pytest.mark.parametrize("name", NAMES)
def test_nodes_and_edges_are_those_of_the_source(name: str) -> None:
    """The engine loses none: every node and edge of the source is drawn once."""
    source, svg = dot_of(name), svg_of(name)
    edges = re.findall(r"^\s*(?:\"[^\"]*\"|\w+)(?::\w+)* -> ", source, re.MULTILINE)
    named = re.findall(r"^\s*(\"[^\"]*\"|\w+) \[", source, re.MULTILINE)
    assert sum(arrows(svg).values()) == len(edges)
    assert len(nodes(svg)) == len({one for one in named if one not in ("graph", "node", "edge")})


@pytest.mark.parametrize("name", NAMES)
def test_a_png_is_at_most_1200_wide(name: str, tmp_path: Path) -> None:
    (path,) = drawing.write(name, tmp_path, ("png",))
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(content[16:20], "big") <= 1200


def test_mermaid_is_written_where_there_is_any(tmp_path: Path) -> None:
    having = {name for name, picture in drawing.every().items() if MERMAID in picture.formats}
    hazards = {name for name in NAMES if re.fullmatch(r"H\d(-durable)?", name)}
    assert having == {"lifecycle", "drain"} | hazards
    for name in having:
        (path,) = drawing.write(name, tmp_path, (MERMAID,))
        assert path.suffix == ".mmd"
        assert path.read_text("utf-8").startswith(("stateDiagram-v2\n", "sequenceDiagram\n"))
    with pytest.raises(NoMermaid, match="schema is not written as mermaid"):
        drawing.write("schema", tmp_path / "new", ("svg", MERMAID))
    with pytest.raises(UnknownPicture, match=r"choose from legend, .*H9"):
        drawing.write("moon", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_boxes_of_the_checks_overlap_as_boxes_do() -> None:
    box = Box(0, 0, 10, 10)
    assert box.meets(Box(5, 5, 15, 15))
    assert not box.meets(Box(9.5, 0, 20, 10), 1)
    assert box.holds(Box(1, 1, 9, 9), 0)
    assert not box.holds(Box(-2, 1, 9, 9), 1.5)
