"""The whole graph of callers that start one key, grouped by what is stored: every state, every step.

The states come from an exploration and are passed in, in the order in which they were found.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from startonce.draw import look
from startonce.draw.look import ABSENT
from startonce.draw.replies import letter
from startonce.draw.text import plain
from startonce.model.faults import OVER
from startonce.model.world import TERMINAL, Event, World

Out = Callable[[World], Iterable[tuple[Event, World]]]


class Group(NamedTuple):
    """States in which the same is stored: in words, as which state of a row, and by whom."""

    words: str
    as_state: str
    who: str


def group_of(w: World) -> Group:
    """Say what is stored in a world of one key."""
    row = w.rows[0]
    if row is None:
        return Group("no row", ABSENT, "")
    lock = w.locks[row.run]
    if lock is None:
        return Group(row.state.value, row.state, "")
    who = letter(lock.holder // 100)
    if row.state is TERMINAL:
        return Group(f"{who} executed, terminal", row.state, who)
    if lock.ended:
        return Group(f"{who} ended", row.state, who)
    return Group(f"{who} executed" if w.executed[row.run] else f"{who} has the lock", row.state, who)


STYLES: Mapping[int, str] = {0: "solid", 1: "dashed", 2: "dotted"}
"""The line of each caller's steps."""


def graph_source(states: Sequence[World], out_of: Out) -> str:
    """Return the DOT source of a whole graph, its states grouped."""
    places = {world: place for place, world in enumerate(states)}
    moves = [(places[w], e, w, v, places[v]) for w in states for e, v in out_of(w)]
    most = max(sum(w.executed) for w in states)
    groups: dict[Group, list[World]] = {}
    for world in states:
        groups.setdefault(group_of(world), []).append(world)
    dot = look.digraph(
        "two-callers",
        "Two callers start one key: every state, every step",
        f"{len(states)} states, {len(moves)} steps, grouped by what is stored. "
        f"Executions in any of them: {'at most one' if most == 1 else most}.",
        "Solid: A moves. Dashed: B moves. Thick: the row changes. Framed twice: both have their answers.",
        rankdir="LR",
        nodesep="0.08",
        ranksep="0.35",
    )
    for number, (group, worlds) in enumerate(groups.items()):
        with dot.subgraph(name=f"cluster {number}") as box:
            box.attr(
                label=plain(f"{group.words}: {len(worlds)}"),
                labeljust="r" if group.who == "B" else "l",
                margin="9",
                fontsize="15",
                style="filled",
                fillcolor=look.FILLS[group.as_state],
                penwidth=look.state(group.as_state)["penwidth"],
            )
            for world in worlds:
                over = all(c.at in OVER for c in world.callers)
                size = {"shape": "circle", "width": "0.14", "fixedsize": "true", "margin": "0"}
                box.node(f"{places[world]}", "", **size, **({"peripheries": "2"} if over else {}))
    for tail, event, w, v, head in moves:
        pen = "3" if w.rows != v.rows else "1"
        dot.edge(f"{tail}", f"{head}", style=STYLES[event.who % 3], penwidth=pen, arrowsize="0.5")
    return str(dot.source)
