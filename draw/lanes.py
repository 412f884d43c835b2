"""An interleaving as a picture: a lane for each caller, one for each thing stored, time running down.

Any trace becomes a value of `Lanes` first (`lanes_of.py`), and this draws it: every statement at its place
in the lane of whoever runs it, every change of what is stored at the same height, an arrow between them.
The places are computed here, so that lanes are straight; the engine only draws.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import graphviz

from startonce.draw import look
from startonce.draw.look import LINES, Look
from startonce.draw.text import Line, markup, width, wrapped

Who = Literal["caller", "host"]
Acts = Literal["writes", "reads", "work", "crash", "event"]


class Actor(NamedTuple):
    """Whoever does something: its name, and whether it is a caller or acts from outside."""

    name: str
    kind: Who = "caller"


class Mark(NamedTuple):
    """What a stored thing is from now on: in words, and as which state of a row it is drawn."""

    text: str
    as_state: str


class Step(NamedTuple):
    """One thing that an actor does: in words, what it is told, the fault that strikes, what changes.

    `who` is a place in `Lanes.actors`; `changes` pairs places in `Lanes.stored` with what they become.
    `heard` is False where the reply was lost.
    """

    who: int
    text: str
    acts: Acts
    told: str = ""
    fault: str = ""
    answer: str = ""
    changes: tuple[tuple[int, Mark], ...] = ()
    heard: bool = True
    harm: bool = False


class Lanes(NamedTuple):
    """An interleaving: what is drawn, and the words on top and at the end."""

    name: str
    title: str
    captions: tuple[str, ...]
    actors: tuple[Actor, ...]
    stored: tuple[str, ...]
    begins: tuple[Mark, ...]
    """What each stored thing is at the beginning."""
    steps: tuple[Step, ...]
    ends: tuple[str, ...] = ()
    """What has come of it, in sentences."""
    harm: bool = False
    """Whether what has come of it is harm."""


TEXT, SMALL, HEAD = 14, 12, 15
NUMBER, MARGIN, CORNERS, AROUND = 26.0, 18.0, 52.0, 28.0
"""Points: the column of numbers; what a box, an octagon, and the head of a lane add to their text."""
FITS = ((150.0, 26.0), (110.0, 26.0), (110.0, 16.0), (84.0, 16.0), (84.0, 8.0), (70.0, 8.0))
"""How wide the text of a lane may be and how far lanes are apart: the first that fits is taken."""


def lanes_source(lanes: Lanes) -> str:
    """Return the DOT source of an interleaving."""
    dot = look.digraph(
        lanes.name, lanes.title, *lanes.captions, layout="nop", splines="line", forcelabels="false"
    )
    limit, centres, total = _fit(lanes)
    board = _Board(dot, centres, limit)
    board.heads(lanes)
    for number, step in enumerate(lanes.steps, 1):
        board.step(number, step, len(lanes.actors))
    board.end(lanes, total)
    return str(dot.source)


def _fit(lanes: Lanes) -> tuple[float, list[float], float]:
    """Return how wide the text of a lane may be, the middle of each lane, and the width of all."""
    for limit, gap in FITS:
        centres, total = _columns(lanes, limit, gap)
        if total <= look.WIDEST:
            break
    return limit, centres, total


def _columns(lanes: Lanes, limit: float, gap: float) -> tuple[list[float], float]:
    """Return the middle of each lane and the width of all; no lane is wider than it must be."""
    heads = [Line(name, HEAD, True) for name in _names(lanes)]
    texts: list[list[Line]] = [[] for _ in lanes.actors]
    texts += [[Line(mark.text, TEXT)] for mark in lanes.begins]
    for step in lanes.steps:
        texts[step.who] += _said(step)
        for thing, mark in step.changes:
            texts[len(lanes.actors) + thing].append(Line(mark.text, TEXT))
    centres, left = [], NUMBER
    harmed = {step.who for step in lanes.steps if step.harm}
    for place, (head, lines) in enumerate(zip(heads, texts, strict=True)):
        full = _widest(lines, limit) + (CORNERS if place in harmed else MARGIN)
        full = max(full, _widest([head], limit) + AROUND)
        centres.append(left + full / 2)
        left += full + gap
    return centres, left - gap


def _names(lanes: Lanes) -> list[str]:
    return [*(actor.name for actor in lanes.actors), *lanes.stored]


def _said(step: Step) -> list[Line]:
    """Return the words of a step: what is done, the fault, what is told, the answer."""
    lines = [Line(step.text, TEXT, step.acts == "work")]
    lines += [Line(step.fault, SMALL)] if step.fault else []
    lines += [Line(step.told, SMALL)] if step.told else []
    return [*lines, Line(f"answer: {step.answer}", TEXT, True)] if step.answer else lines


def _broken(lines: Sequence[Line], limit: float) -> list[Line]:
    return [
        Line(text, line.points, line.bold)
        for line in lines
        for text in wrapped(line.text, line.points, limit, line.bold)
    ]


def _widest(lines: Sequence[Line], limit: float) -> float:
    return max((width(*line) for line in _broken(lines, limit)), default=0.0)


class _Board:
    """Places nodes from the top down, and knows the last one of every lane."""

    def __init__(self, dot: "graphviz.Digraph", centres: list[float], limit: float) -> None:
        self.dot = dot
        self.centres = centres
        self.limit = limit
        self.y = 0.0
        self.last: list[str] = [""] * len(centres)
        self.line: list[Look] = [{"penwidth": "1"}] * len(centres)

    def heads(self, lanes: Lanes) -> None:
        """Place the head of every lane, and what each stored thing is at the beginning."""
        looks = [look.CALLER if actor.kind == "caller" else look.HOST for actor in lanes.actors]
        looks += [look.STORED] * len(lanes.stored)
        lines = [_broken([Line(name, HEAD, True)], self.limit) for name in _names(lanes)]
        height = max(map(_height, lines)) + 10
        for place, (some, its) in enumerate(zip(lines, looks, strict=True)):
            wide = max(width(*line) for line in some) + AROUND
            size = {"width": _inches(wide), "height": _inches(height), "fixedsize": "true"}
            self._node(place, f"head {place}", some, height, {**its, **size})
        self._down(height)
        marks = [_broken([Line(mark.text, TEXT)], self.limit) for mark in lanes.begins]
        height = max(map(_height, marks), default=0.0)
        for thing, mark in enumerate(lanes.begins):
            self._mark(len(lanes.actors) + thing, f"0 {thing}", mark, height)
        if lanes.begins:
            self._down(height)

    def step(self, number: int, step: Step, actors: int) -> None:
        """Place a step, what it changes, and the arrows from one to the other."""
        lines = _broken(_said(step), self.limit)
        marks = [_broken([Line(mark.text, TEXT)], self.limit) for _, mark in step.changes]
        height = max(map(_height, (lines, *marks))) + (16 if step.harm else 0)
        name = f"{number}"
        self.dot.node(
            f"{number} number",
            name,
            pos=f"{NUMBER / 2:.1f},{-(self.y + height / 2):.1f}",
            shape="plaintext",
            style="",
            margin="0",
            width="0.2",
            height="0.2",
            fontsize=f"{SMALL}",
        )
        its = _look(step)
        if step.harm:
            wide = max(width(*line) for line in lines) + CORNERS
            its |= {"width": _inches(wide), "height": _inches(height - 2), "fixedsize": "true"}
        self._node(step.who, name, lines, height, its)
        for thing, mark in step.changes:
            changed = f"{number} {thing}"
            self._mark(actors + thing, changed, mark, height)
            self.dot.edge(name, changed, **_arrow(step))
            name, step = changed, step._replace(heard=True)  # to the next one from here, not through it
        self._down(height + (6 if step.harm else 0))

    def end(self, lanes: Lanes, total: float) -> None:
        """Let the lanes of what is stored run to the end; say what has come of it."""
        for place in range(len(lanes.actors), len(self.centres)):
            end = f"end {place - len(lanes.actors)}"
            self.dot.node(end, "", pos=self._pos(place, 0), shape="point", width="0.01")
            self._join(place, end)
        if lanes.ends:
            wide = max(total, 640.0) - 24
            lines = _broken([Line(text, TEXT) for text in lanes.ends], wide)
            self.y += 16
            y = self.y + _height(lines) / 2
            self.dot.node(
                "ends",
                markup(lines),
                pos=f"{total / 2:.1f},{-y:.1f}",
                style="filled",
                margin="0.12,0.08",
                **({**look.HARM, "shape": "box"} if lanes.harm else {"penwidth": "1"}),
            )

    def _mark(self, place: int, name: str, mark: Mark, height: float) -> None:
        lines = _broken([Line(mark.text, TEXT)], self.limit)
        self._node(place, name, lines, height, look.state(mark.as_state))
        self.line[place] = LINES[mark.as_state]

    def _node(self, place: int, name: str, lines: list[Line], height: float, its: Look) -> None:
        size = {"margin": "0.1,0.05", "width": "0.2", "height": "0.2"}
        self.dot.node(name, markup(lines), **{**size, **its, "pos": self._pos(place, height)})
        self._join(place, name)

    def _join(self, place: int, name: str) -> None:
        if self.last[place]:
            self.dot.edge(self.last[place], name, dir="none", **self.line[place])
        self.last[place] = name

    def _pos(self, place: int, height: float) -> str:
        return f"{self.centres[place]:.1f},{-(self.y + height / 2):.1f}"

    def _down(self, height: float) -> None:
        self.y += height + 12


def _height(lines: Sequence[Line]) -> float:
    return sum(line.points * 1.2 for line in lines) + 10


def _inches(points: float) -> str:
    return f"{points / 72:.3f}"


def _look(step: Step) -> Look:
    if step.acts == "work":
        its = look.WORK
    elif step.acts == "event":
        its = {**look.HOST, "shape": "box"}
    else:
        its = look.statement(step.acts == "writes")
    if step.fault or step.acts == "crash":
        its = {**its, **look.FAULTY}
    if step.harm:
        its = {**its, **look.HARM}
    return its


def _arrow(step: Step) -> Look:
    """Return the look of the arrow of a change: with a bar at the caller who never hears of it."""
    thick = {"penwidth": look.CHANGED, "arrowsize": "0.7"}
    return thick if step.heard else {**thick, "dir": "both", "arrowtail": "tee", "style": "dashed"}
