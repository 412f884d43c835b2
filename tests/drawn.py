"""Reads an SVG as it was drawn: its nodes, edges and texts, where each stands, and how large it is."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple
from xml.etree import ElementTree

from startonce import drawing
from startonce.draw.engine import render
from startonce.draw.text import width

SVG = "{http://www.w3.org/2000/svg}"
Element = ElementTree.Element


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def holds(self, other: "Box", slack: float) -> bool:
        return (
            self.left - slack <= other.left
            and self.top - slack <= other.top
            and other.right <= self.right + slack
            and other.bottom <= self.bottom + slack
        )

    def meets(self, other: "Box", slack: float = 0.0) -> bool:
        """Whether two boxes overlap by more than a few points."""
        return (
            self.left + slack < other.right
            and other.left + slack < self.right
            and self.top + slack < other.bottom
            and other.top + slack < self.bottom
        )


@cache
def dot_of(name: str) -> str:
    return drawing.every()[name].source()


@cache
def bytes_of(name: str) -> bytes:
    return render(dot_of(name), "svg")


def svg_of(name: str) -> Element:
    return ElementTree.fromstring(bytes_of(name))


def drawn(source: str) -> Element:
    return ElementTree.fromstring(render(source, "svg"))


def groups(svg: Element, kind: str) -> list[Element]:
    return [group for group in svg.iter(f"{SVG}g") if group.get("class") == kind]


def title(group: Element) -> str:
    return group.findtext(f"{SVG}title") or ""


def texts(group: Element) -> list[str]:
    return [(text.text or "").strip() for text in group.iter(f"{SVG}text")]


def arrows(svg: Element) -> Counter[tuple[str, str, str]]:
    """Return (from, label, to) of every edge, as it is drawn."""
    found = Counter[tuple[str, str, str]]()
    for edge in groups(svg, "edge"):
        before, after = (re.sub(r":[nesw]$", "", end) for end in title(edge).split("->"))
        found[before, " ".join(texts(edge)), after] += 1
    return found


def nodes(svg: Element) -> dict[str, Element]:
    found = {title(node): node for node in groups(svg, "node")}
    assert len(found) == len(groups(svg, "node"))
    return found


def extent(text: Element) -> Box:
    """Return the box of a text, by the widths of its font."""
    size = float(text.attrib["font-size"])
    said = (text.text or "").replace("\N{NO-BREAK SPACE}", " ")
    wide = width(said, size, text.get("font-weight") == "bold")
    x, y = float(text.attrib["x"]), float(text.attrib["y"])
    left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[text.get("text-anchor", "start")]
    return Box(left, y - 0.72 * size, left + wide, y + 0.21 * size)


def _points(shape: Element) -> Iterator[tuple[float, float]]:
    if shape.tag == f"{SVG}ellipse":
        cx, cy, rx, ry = (float(shape.attrib[name]) for name in ("cx", "cy", "rx", "ry"))
        yield cx - rx, cy - ry
        yield cx + rx, cy + ry
    numbers = re.findall(r"-?\d+(?:\.\d+)?", shape.get("points", "") + shape.get("d", ""))
    yield from zip(map(float, numbers[::2]), map(float, numbers[1::2]), strict=True)


def outline(group: Element) -> Box | None:
    """Return the box around the shapes of a node or an edge; None where it has none."""
    points = [point for shape in group if shape.tag != f"{SVG}text" for point in _points(shape)]
    for inner in group.iter(f"{SVG}g"):
        if inner is not group:  # a table is drawn inside a link to nowhere
            points += [point for shape in inner if shape.tag != f"{SVG}text" for point in _points(shape)]
    if not points:
        return None
    across, down = zip(*points, strict=True)
    return Box(min(across), min(down), max(across), max(down))


def along(edge: Element) -> Iterator[tuple[float, float]]:
    """Give points along the line of an edge, close together."""
    for path in edge.iter(f"{SVG}path"):
        points = list(_points(path))
        for start in range(0, len(points) - 3, 3):
            a, b, c, d = points[start : start + 4]
            for step in range(65):
                t = step / 64
                parts = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
                x, y = (
                    sum(part * point[axis] for part, point in zip(parts, (a, b, c, d), strict=True))
                    for axis in (0, 1)
                )
                yield x, y


def page(svg: Element) -> Box:
    found = next(svg.iter(f"{SVG}polygon"))
    across, down = zip(*_points(found), strict=True)
    return Box(min(across), min(down), max(across), max(down))


def luminance(colour: str) -> float:
    """Return how light a colour is, from 0 to 1, as the rules for contrast have it."""
    named = {"black": "#000000", "white": "#ffffff"}
    parts = [int(named.get(colour, colour)[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
