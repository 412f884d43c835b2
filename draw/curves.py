"""Arrows whose way is given: smooth curves between two points, for pictures whose places are computed."""

import graphviz

from startonce.draw.look import Look

Point = tuple[float, float]
"""Across and downwards, in points."""
Curve = tuple[Point, Point, Point, Point]
"""The ends of a curve and between them the points that pull it."""

HEAD = 10.0
"""The length of the head of an arrow, in points."""


def straight(begin: Point, end: Point) -> Curve:
    """Return a straight line."""
    (x, y), (u, v) = begin, end
    return begin, (x + (u - x) / 3, y + (v - y) / 3), (x + 2 * (u - x) / 3, y + 2 * (v - y) / 3), end


def arrow(
    dot: "graphviz.Digraph",
    tail: str,
    head: str,
    curve: Curve,
    its: Look,
    label: str = "",
    at: Point | None = None,
) -> None:
    """Draw an arrow along a curve, its label around a point."""
    (x, y), tip = curve[2], curve[3]
    length = max(((tip[0] - x) ** 2 + (tip[1] - y) ** 2) ** 0.5, 1e-9)
    base = (tip[0] - (tip[0] - x) / length * HEAD, tip[1] - (tip[1] - y) / length * HEAD)
    places: Look = {"pos": f"e,{pos(tip)} {' '.join(map(pos, (*curve[:3], base)))}"}
    if label and at is not None:
        places |= {"label": label, "lp": pos(at)}
    dot.edge(tail, head, **places, **its)


def pos(point: Point) -> str:
    """Return a point as the engine wants it: upwards."""
    return f"{point[0]:.1f},{-point[1] + 0.0:.1f}"


def height_at(curve: Curve, x: float) -> float:
    """Return how far down a curve is where it passes a place across."""
    ways = [_point(curve, step / 64) for step in range(65)]
    return min(ways, key=lambda point: abs(point[0] - x))[1]


def _point(curve: Curve, t: float) -> Point:
    parts = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
    x, y = (sum(part * point[axis] for part, point in zip(parts, curve, strict=True)) for axis in (0, 1))
    return x, y
