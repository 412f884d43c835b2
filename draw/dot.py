"""The lifecycle and the races as DOT source. What is drawn is data; its look is in `look.py`."""

from collections.abc import Mapping

import graphviz

from startonce.draw import look
from startonce.draw.automaton import ABSENT, STATES, Lifecycle, Transition
from startonce.draw.look import Look, digraph, joined
from startonce.draw.race import KEY, Judged, Race, Setting, answer_words
from startonce.draw.text import Line, markup, plain
from startonce.model.operations import Reserved
from startonce.model.reservation import State

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
    back = joined(t.statement for t in graph.transitions if t.backwards)
    ends = joined(t.statement for t in graph.transitions if t.deletes)
    dot = digraph(
        "lifecycle",
        "The life of one idempotency key",
        f"Dashed: backwards, only by {back}." if back else "No arrow leads back.",
        f"Dotted: the row is deleted, only by {ends}." if ends else "No row is ever deleted.",
        "Where there is no arrow, no statement changes the row.",
        rankdir="LR",
        nodesep="0.6",
        ranksep="0.36",
    )
    for state in graph.states:
        dot.node(state, look.named(state, MEANINGS[state]), **look.state(state))
    for transition in graph.transitions:
        label = _label(transition.statement)
        dot.edge(transition.before, transition.after, label, **_look(transition))
    return str(dot.source)


def race_source(name: str, setting: Setting, graph: Race) -> str:
    """Return the DOT source of a race."""
    finals = graph.finals()
    ends = {place: setting.judge(graph, place) for place in finals}
    kept = all(end.kept for end in ends.values())
    count = f"{len(finals)} ends" if len(finals) > 1 else "one end"
    dot = digraph(
        name,
        setting.title,
        f"{setting.caption} Thick arrow: the table changed. Framed twice: all have their answers.",
        f"{graph.interleavings()} orders of their statements, {count}. "
        f"{'In' if kept else 'NOT in'} each {setting.must}.",
        rankdir="TB",
        nodesep="0.4",
        ranksep="0.6",
    )
    groups: dict[str, list[int]] = {}
    for place in range(len(graph.situations)):
        groups.setdefault(_runs(graph, place), []).append(place)
    for number, (runs, places) in enumerate(groups.items()):
        cluster = f"cluster {number}" if runs and len(groups) > 1 else None
        with dot.subgraph(name=cluster) as group:
            if cluster:
                group.attr(label=plain(f"the key means {runs}"), margin="16")
            for place in places:
                _situation(group, graph, place, ends.get(place))
    for move in graph.moves:
        dot.edge(
            _name(graph, move.before),
            _name(graph, move.after),
            plain(f" {move.caller}: {move.statement} "),
            penwidth=look.CHANGED if move.changed else look.UNCHANGED,
        )
    return str(dot.source)


def _situation(dot: "graphviz.Digraph", graph: Race, place: int, end: Judged | None) -> None:
    row = graph.situations[place].world.db.row(KEY)
    lines = [Line(_row(graph, place), 16, True)]
    for racer in graph.racers:
        answers = graph.answers(place, racer.name)
        strong = any(answer is True or _created(answer) for answer in answers)
        lines.append(Line(_where(graph, place, racer.name), 16, strong))
    its: Look = {"fillcolor": look.FILLS[ABSENT if row is None else row.state]}
    if end is not None:
        lines.append(Line(end.words, 18, True))
        its |= {"peripheries": "2", "penwidth": "2"} if end.kept else look.HARM
    dot.node(_name(graph, place), markup(lines), **its)


def _created(answer: object) -> bool:
    return isinstance(answer, Reserved) and answer.created


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
    racer = next(racer for racer in graph.racers if racer.name == caller)
    asked = zip(racer.asks, graph.answers(place, caller), strict=True)
    return f"{caller} {', '.join(answer_words(operation, answer) for (operation, _), answer in asked)}"


def _name(graph: Race, place: int) -> str:
    """Name a node by its number and content, which is what a screen reader says."""
    where = (_where(graph, place, racer.name) for racer in graph.racers)
    return "; ".join((f"{place} {_row(graph, place)}", *where)).replace(":", " ")  # no port


def _look(transition: Transition) -> Look:
    """Set a transition off by the style of its line; keep the way through the states straight."""
    if transition.backwards:
        return look.BACKWARDS
    if transition.deletes:
        return look.DELETED
    step = STATES.index(transition.after) - STATES.index(transition.before)
    return {"weight": "20"} if step == 1 else {}


def _label(statement: str) -> str:
    note = NOTES.get(statement)
    return plain(f"   {statement} ({note})   " if note else f" {statement} ")
