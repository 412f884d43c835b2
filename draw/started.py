"""What a started row can mean, and who may end it: read off the steps of the model, which are passed in."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from startonce.draw import look
from startonce.draw.faults import PEOPLE, Steps, left_behind
from startonce.draw.look import ABSENT
from startonce.draw.text import plain
from startonce.model.reservation import State
from startonce.model.world import HOST, STARTED, Event, World

MEANINGS: Mapping[str, str] = {
    "never reached the lock": "nothing has executed",
    "reached the lock, not ended": "executing, or crashed:\nrows cannot tell,\na person decides",
    "ended, not settled": "executed, its result kept",
    "held by a cancel": "it never executes",
    "held by a free": "it never executes",
}
"""What each kind of entry in the inventory says (INV-2)."""
OVER, NONE = "nothing: it is over", "no row"


class End(NamedTuple):
    """A step from one meaning of a row to another: by whom, by which statement."""

    before: str
    who: str
    statement: str
    after: str


class Meanings(NamedTuple):
    """The kinds that a started row was seen to be of, and every step between meanings."""

    started: tuple[str, ...]
    ends: tuple[End, ...]


def meanings(callers: int, walks: Iterable[Steps]) -> Meanings:
    """Collect what the first row means, and by what that changes, over the steps of several walks."""
    started: dict[str, None] = {}
    ends: dict[End, None] = {}
    for steps in walks:
        for w, e, v in steps:
            if w.rows[0] == v.rows[0] and w.locks == v.locks:
                continue
            before, after = left_behind(w, 0), left_behind(v, 0)
            for world, meaning in ((w, before), (v, after)):
                row = world.rows[0]
                if row is not None and row.state is STARTED:
                    started[meaning] = None
            if before != after:
                ends[End(before, _who(callers, w, e), e.what, after)] = None
    order = list(MEANINGS)
    return Meanings(tuple(sorted(started, key=order.index)), tuple(sorted(ends)))


def _who(callers: int, w: World, e: Event) -> str:
    if e.who == HOST:
        return "host"
    if e.who >= callers:
        return "operator"
    if e.what in ("insert", "claim"):
        return "any caller"
    return "next caller" if w.callers[e.who].after in ("replayed", "settled") else "its caller"


def started_source(found: Meanings) -> str:
    """Return the DOT source of what a started row can mean and who may end it."""
    dot = look.digraph(
        "started",
        "What a started row can mean, and who may end it",
        "Thick frame: the row says started. Framed twice inside it: only a person can end it.",
        "Beside an arrow: who may do it, and by which statement. No timer does anything.",
        rankdir="TB",
        nodesep="0.3",
        ranksep="0.5",
    )
    others = {State.RESERVED.value: (State.RESERVED, "any caller may claim it"), NONE: (ABSENT, ""), OVER: (State.TERMINAL, "")}
    for name, (as_state, note) in others.items():
        dot.node(name, look.named(name, *([note] if note else [])), **look.state(as_state))
    with dot.subgraph(name="cluster started") as group:
        group.attr(label=plain("the row says started"), margin="14")
        for name in found.started:
            its = look.state(State.STARTED)
            if name in PEOPLE:
                its = {**its, "peripheries": "2"}
            group.node(name, look.named(name, MEANINGS[name]), **its)
    labels: dict[tuple[str, str], list[str]] = {}
    for end in found.ends:
        labels.setdefault((end.before, end.after), []).append(f"{end.who}: {end.statement}")
    for (before, after), words in labels.items():
        label = "\\l".join(plain(f" {word} ") for word in words)
        dot.edge(before, after, label + "\\l", fontsize="13", **_look(before, after))
    return str(dot.source)


def _look(before: str, after: str) -> look.Look:
    if after == State.RESERVED.value and before in MEANINGS:
        return look.BACKWARDS
    if after == NONE:
        return look.DELETED
    return {}
