"""The automaton and the race as DOT source. What is drawn is data; only its look is written here.

Black text on light fills inside a white page: legible in print, in black and white, on a dark page.
No meaning rests on colour alone.
"""

from collections.abc import Iterable, Mapping
from html import escape

import graphviz

from startonce.draw.automaton import ABSENT, STATES, Lifecycle, Transition
from startonce.draw.race import Race
from startonce.model.operations import Raised, Reserved
from startonce.model.reservation import State

FONT = "Helvetica"  # the engine knows its widths; with a list of fonts it would guess them
INK, RED = "black", "#a00000"
WHITE, YELLOW, BLUE, GREY, ORANGE = "white", "#fff3c4", "#dcebff", "#e4e4e4", "#ffe8d6"

FILLS: Mapping[str, str] = {
    ABSENT: WHITE,
    State.RESERVED: YELLOW,
    State.STARTED: BLUE,
    State.TERMINAL: GREY,
}

MEANINGS: Mapping[str, str] = {
    ABSENT: "no row",
    State.RESERVED: "the key means a run\nnobody has started",
    State.STARTED: "one caller\nwon the claim",
    State.TERMINAL: "the run is over,\nthe key is spent",
}

NOTES: Mapping[str, str] = {"release": "fence refusal only", "delete": "free"}
"""What a label says beside the name of its statement: a duty of callers, which no table shows."""


def lifecycle_source(graph: Lifecycle) -> str:
    """Return the DOT source of the life of one key."""
    back = _names(t.statement for t in graph.transitions if t.backwards)
    ends = _names(t.statement for t in graph.transitions if t.deletes)
    dot = _digraph(
        "lifecycle",
        "The life of one idempotency key",
        f"Dashed: backwards, only by {back}." if back else "No arrow leads back.",
        f"Dotted: the row is deleted, only by {ends}." if ends else "No row is ever deleted.",
        "Where there is no arrow, no statement changes the row.",
        rankdir="LR",
        nodesep="0.6",
        ranksep="0.42",
    )
    for state in graph.states:
        label = f"<b>{_text(state)}</b><br/>{_small(MEANINGS[state])}"
        dot.node(state, _html(label), fillcolor=FILLS[state])
    for transition in graph.transitions:
        label = _label(transition.statement)
        dot.edge(transition.before, transition.after, label, **_look(transition))
    return str(dot.source)


def race_source(graph: Race) -> str:
    """Return the DOT source of a race through `reserve`."""
    finals = graph.finals()
    callers = " and ".join(caller for caller, _ in graph.proposals)
    proposals = ", ".join(f"{caller} proposes {run}" for caller, run in graph.proposals)
    agreed = all(graph.agreed(place) for place in finals)
    verdict = f"{callers} have the same run, one saw created" if agreed else "NOT all agree"
    dot = _digraph(
        "reserve-race",
        f"{callers} race through reserve for one key",
        f"{proposals}. Thick arrow: the table changed.",
        f"{graph.interleavings()} orders of their statements, {len(finals)} ends: {verdict}.",
        rankdir="TB",
        nodesep="0.4",
        ranksep="0.6",
    )
    groups: dict[str, list[int]] = {}
    for place in range(len(graph.situations)):
        groups.setdefault(_runs(graph, place), []).append(place)
    for number, (runs, places) in enumerate(groups.items()):
        fill = (WHITE, BLUE, ORANGE, YELLOW, GREY)[number % 5]
        name = f"cluster {number}" if runs else None
        with dot.subgraph(name=name) as group:
            if runs:
                group.attr(label=_plain(f"the key means {runs}"), margin="16")
            for place in places:
                _situation(group, graph, place, fill)
    for move in graph.moves:
        dot.edge(
            _name(graph, move.before),
            _name(graph, move.after),
            _plain(f" {move.caller}: {move.statement} "),
            penwidth="4" if move.changed else "1.2",
        )
    return str(dot.source)


def _situation(dot: "graphviz.Digraph", graph: Race, place: int, fill: str) -> None:
    final = place in graph.finals()
    lines = [f"<b>{_text(_row(graph, place))}</b>"]
    for caller, _ in graph.proposals:
        answer = graph.situations[place].answer(caller)
        line = _text(_where(graph, place, caller))
        lines.append(f"<b>{line}</b>" if isinstance(answer, Reserved) and answer.created else line)
    if final:
        verdict = "same run, created once" if graph.agreed(place) else "NOT AGREED"
        lines.append(f"<b>{_small(verdict, 18)}</b>")
    look = {"peripheries": "2", "penwidth": "2"} if final else {}
    dot.node(_name(graph, place), _html("<br/>".join(lines)), fillcolor=fill, **look)


def _row(graph: Race, place: int) -> str:
    rows = graph.situations[place].world.db.rows or ()
    return ", ".join(f"{row.run_id} {row.state}" for row in rows) or "no row"


def _runs(graph: Race, place: int) -> str:
    rows = graph.situations[place].world.db.rows or ()
    return ", ".join(row.run_id for row in rows)


def _where(graph: Race, place: int, caller: str) -> str:
    """Say where a caller is: before which statement, or what it was answered."""
    upcoming = graph.held_before(place, caller)
    if upcoming is not None:
        return f"{caller} before {upcoming}"
    match graph.situations[place].answer(caller):
        case Reserved(row, created):
            return f"{caller} has {row.run_id}, {'created' if created else 'not created'}"
        case Raised(error):
            return f"{caller} failed: {error}"
        case answer:
            return f"{caller} has {answer}"


def _name(graph: Race, place: int) -> str:
    """Name a node by its number and content, which is what a screen reader says."""
    where = (_where(graph, place, caller) for caller, _ in graph.proposals)
    return "; ".join((f"{place} {_row(graph, place)}", *where)).replace(":", " ")  # no port


# --- the look -------------------------------------------------------------------------------------


def _digraph(name: str, title: str, *captions: str, **layout: str) -> "graphviz.Digraph":
    lines = "<br/>".join(_small(line, 15) for line in captions)
    gap = _small(" ", 6)
    heading = f"<b>{_small(title, 24)}</b><br/>{gap}<br/>{lines}<br/>{gap}"
    font = {"fontname": FONT, "fontcolor": INK}
    return graphviz.Digraph(
        name,
        graph_attr={
            **font,
            **layout,
            "bgcolor": WHITE,
            "fontsize": "16",
            "label": _html(heading),
            "labelloc": "t",
            "pad": "0.25",
        },
        node_attr={
            **font,
            "color": INK,
            "fontsize": "16",
            "margin": "0.2,0.12",
            "shape": "box",
            "style": "rounded,filled",
            "penwidth": "1.5",
        },
        edge_attr={**font, "color": INK, "fontsize": "16", "penwidth": "2"},
    )


def _look(transition: Transition) -> dict[str, str]:
    """Set a transition off by the style of its line; keep the way through the states straight."""
    if transition.backwards:
        return {"style": "dashed", "color": RED, "penwidth": "3.5"}
    if transition.deletes:
        return {"style": "dotted", "penwidth": "3"}
    step = STATES.index(transition.after) - STATES.index(transition.before)
    return {"weight": "20"} if step == 1 else {}


def _label(statement: str) -> str:
    note = NOTES.get(statement)
    return _plain(f"   {statement} ({note})   " if note else f" {statement} ")


def _names(statements: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(statements))


def _small(text: str, points: int = 13) -> str:
    lines = "<br/>".join(_text(line) for line in text.split("\n"))
    return f'<font point-size="{points}">{lines}</font>'


def _text(text: str) -> str:
    """Escape text inside a label with markup, where a backslash is special too."""
    return escape(text).replace("\\", "\\\\")


def _plain(text: str) -> str:
    """Escape a label without markup, which does not begin with `<`: entities, backslashes."""
    return text.replace("&", "&amp;").replace("\\", "\\\\")


def _html(label: str) -> str:
    return f"<{label}>"
