"""The visual language of every picture: what each shape, line and fill means. `legend.py` explains it.

Black text on light fills inside a white page: legible in print, in black and white, on a dark page.
No meaning rests on colour alone: a state is named and framed, a fault is dashed, harm is an octagon.
"""

from collections.abc import Iterable, Mapping

import graphviz

from startonce.draw.text import Line, balanced, markup
from startonce.model.reservation import State

FONT = "Helvetica"  # the engine knows its widths; with a list of fonts it would guess them
INK, RED, PALE = "black", "#a00000", "#707070"
WHITE, YELLOW, BLUE, GREY, ORANGE = "white", "#fff3c4", "#dcebff", "#e4e4e4", "#ffe8d6"
WIDEST = 856
"""Points that a picture may be wide inside its margin: 1200 pixels with it."""

ABSENT = "absent"
"""The state of a key that has no row."""

FILLS: Mapping[str, str] = {
    ABSENT: WHITE,
    State.RESERVED: YELLOW,
    State.STARTED: BLUE,
    State.TERMINAL: GREY,
}

Look = dict[str, str]


def state(name: str) -> Look:
    """Return the look of a row in a state: rounded, absent with a dotted frame, terminal framed twice."""
    look = {"shape": "box", "style": "rounded,filled", "fillcolor": FILLS[name], "penwidth": "1.5"}
    if name == ABSENT:
        look["style"] = "rounded,filled,dotted"
    elif name == State.STARTED:
        look["penwidth"] = "3"
    elif name == State.TERMINAL:
        look |= {"peripheries": "2", "penwidth": "1"}
    return look


LINES: Mapping[str, Look] = {
    ABSENT: {"style": "dotted", "penwidth": "2"},
    State.RESERVED: {"penwidth": "2"},
    State.STARTED: {"penwidth": "6"},
    State.TERMINAL: {"style": "dashed", "penwidth": "2"},
}
"""The line of a lane while a row is in a state; a lock that is held is drawn as a row that is started."""


def statement(writes: bool) -> Look:
    """Return the look of a statement: sharp corners, a thick frame if it writes."""
    return {"shape": "box", "style": "filled", "fillcolor": WHITE, "penwidth": "3" if writes else "1"}


FAULTY: Look = {"style": "filled,dashed", "fillcolor": ORANGE, "color": RED}
"""What a fault strikes, over the look of what it strikes."""

WORK: Look = {"shape": "box", "style": "filled", "fillcolor": INK, "fontcolor": WHITE}
"""The execution, in which the effect happens."""

HARM: Look = {"shape": "octagon", "peripheries": "2", "color": RED, "penwidth": "2.5"}
"""Where harm has come about, over the look of what it befalls: the shape of a stop sign, framed twice."""

PERSON: Look = {"shape": "box", "style": "filled", "peripheries": "2", "penwidth": "2"}
"""What a person has to end: sharp corners, framed twice."""

CALLER: Look = {"shape": "tab", "style": "filled", "fillcolor": GREY, "penwidth": "1.5"}
HOST: Look = {"shape": "component", "style": "filled", "fillcolor": WHITE, "penwidth": "1.5"}
"""A host, an operator or the environment: what acts from outside of a start."""
STORED: Look = {"shape": "cylinder", "style": "filled", "fillcolor": WHITE, "penwidth": "1.5"}
"""What the database holds."""

CHANGED, UNCHANGED = "4", "1.2"
"""How thick the arrow of a statement is that changed a table, and of one that did not."""
BACKWARDS: Look = {"style": "dashed", "color": RED, "penwidth": "3.5"}
DELETED: Look = {"style": "dotted", "penwidth": "3"}


def digraph(name: str, title: str, *captions: str, **layout: str) -> "graphviz.Digraph":
    """Begin a picture: its title and captions on top, each broken where it would be too wide."""
    heads = [Line(text, 24, True) for text in balanced(title, 24, WIDEST - 16, bold=True)]
    lines = [Line(text, 15) for caption in captions for text in balanced(caption, 15, WIDEST - 16)]
    gap = Line(" ", 6)
    font = {"fontname": FONT, "fontcolor": INK}
    return graphviz.Digraph(
        name,
        graph_attr={
            **font,
            "bgcolor": WHITE,
            "fontsize": "16",
            "label": markup([*heads, gap, *lines, gap]),
            "labelloc": "t",
            "pad": "0.25",
            **layout,
        },
        node_attr={
            **font,
            "color": INK,
            "fontsize": "16",
            "margin": "0.2,0.12",
            "shape": "box",
            "style": "rounded,filled",
            "fillcolor": WHITE,
            "penwidth": "1.5",
        },
        edge_attr={**font, "color": INK, "fontsize": "16", "penwidth": "2"},
    )


def named(heading: str, *lines: str, points: int = 16) -> str:
    """Return a label: a bold heading, and lines under it."""
    rest = [Line(text, 13) for line in lines for text in line.split("\n")]
    return markup([Line(heading, points, True), *rest])


def joined(words: Iterable[str]) -> str:
    """Name each of some words once, in the order in which they come."""
    return ", ".join(dict.fromkeys(words))
