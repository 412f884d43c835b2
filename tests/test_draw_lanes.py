"""Interleavings in lanes: any trace, every step in its lane, in order, with what it changed."""

import random
from collections import Counter
from itertools import combinations, pairwise
from typing import Any

import pytest
from drawn import SVG, Box, Element, arrows, drawn, extent, groups, nodes, outline, page, texts, title

from startonce.checker.starts import HAZARDS, Shown, show
from startonce.draw.lanes import Lanes, Mark, lanes_source
from startonce.draw.start_lanes import NoSuchTrace, start_lanes, walk
from startonce.draw.store_lanes import Observed, store_lanes
from startonce.drawing import DRAIN, drain_lanes, hazard_lanes
from startonce.model.faults import first, steps
from startonce.model.interleaving import Action
from startonce.model.operations import Fault
from startonce.model.reservation import EMPTY, NOTHING, Database, Lock, Reservation, State
from startonce.model.world import STARTED, Budget, Event, Scope
from startonce.oracle.tracefile import describe

NASTY = "<b>&lt;\"'\\N#;:%é\n"


def both_locks() -> list[Shown]:
    return [found for hazard in HAZARDS for durable in (False, True) if (found := show(hazard, durable))]


def random_trace(number: int) -> tuple[Scope, list[Event]]:
    """Take random steps of the model, with every fault, to the end or for a while."""
    chance = random.Random(number)
    durable = number % 2 == 0
    kinds = {kind: 1 for kind in Budget._fields if durable or kind not in ("cancels", "frees")}
    scope = Scope(callers=1 + number % 4, keys=1 + number % 2, budget=Budget(**kinds), durable=durable)
    world, out_of = first(scope), steps(scope)
    trace: list[Event] = []
    while len(trace) < 30 and (choices := list(out_of(world))):
        event, world = chance.choice(choices)
        trace.append(event)
    return scope, trace


def check_drawn(lanes: Lanes) -> Element:
    """Hold a picture against the lanes: what is in it, where each thing stands, that nothing is covered."""
    svg = drawn(lanes_source(lanes))
    found = nodes(svg)
    changes = [(number, thing) for number, step in enumerate(lanes.steps, 1) for thing, _ in step.changes]
    assert len(found) == (
        len(lanes.actors) + 3 * len(lanes.stored) + 2 * len(lanes.steps) + len(changes) + bool(lanes.ends)
    )
    boxes = {name: box for name, node in found.items() if (box := outline(node)) is not None}
    middle = {name: (box.left + box.right) / 2 for name, box in boxes.items()}
    lane = [middle[f"head {place}"] for place in range(len(lanes.actors) + len(lanes.stored))]
    assert lane == sorted(lane)
    for number, step in enumerate(lanes.steps, 1):
        assert middle[f"{number}"] == pytest.approx(lane[step.who], abs=6)
        assert step.text.split()[0] in "".join(texts(found[f"{number}"]))
        for thing, mark in step.changes:
            assert middle[f"{number} {thing}"] == pytest.approx(lane[len(lanes.actors) + thing], abs=6)
            said = "".join(texts(found[f"{number} {thing}"])).replace(" ", "")
            assert said == mark.text.replace(" ", "")
    down = [boxes[f"{number}"].bottom for number in range(1, len(lanes.steps) + 1)]
    assert down == sorted(down)
    edges = Counter((before, after) for before, _, after in arrows(svg).elements())
    for number, step in enumerate(lanes.steps, 1):
        way = [f"{number}", *(f"{number} {thing}" for thing, _ in step.changes)]
        assert all(edges[pair] == 1 for pair in pairwise(way))
    per_lane = Counter(step.who for step in lanes.steps)
    chained = sum(per_lane.values()) + len(changes) + 2 * len(lanes.stored)
    assert sum(edges.values()) == chained + len(changes)
    _nothing_is_covered(svg, boxes)
    return svg


def _nothing_is_covered(svg: Element, boxes: dict[str, Box]) -> None:
    for (one, here), (other, there) in combinations(boxes.items(), 2):
        assert not here.meets(there, 1), f"{one} and {other}"
    for edge in groups(svg, "edge"):
        ends = title(edge).split("->")
        line = outline(edge)
        assert line is not None
        for name, box in boxes.items():
            if name not in ends:
                assert not line.meets(box, 2), f"{title(edge)} runs through {name}"
    whole = page(svg)
    for text in svg.iter(f"{SVG}text"):
        if (text.text or "").strip():
            assert whole.holds(extent(text), 0), text.text


# --- starts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shown", both_locks(), ids=lambda shown: f"{shown.hazard.id}-{shown.durable}")
def test_a_hazard_is_drawn_whole(shown: Shown) -> None:
    lanes = hazard_lanes(shown)
    svg = check_drawn(lanes)
    assert len(lanes.steps) == len(shown.trace)
    assert lanes.harm == bool(shown.broken)
    worked = [node for node in groups(svg, "node") if texts(node)[:1] == ["work r1"]]
    assert len(worked) == sum(event.what == "work" for event in shown.trace)
    for shape in (shape for node in worked for shape in node.iter(f"{SVG}polygon")):
        assert shape.get("fill") in ("black", "none")
    last = nodes(svg)[f"{len(shown.trace)}"]
    corners = max(len(shape.get("points", "").split()) for shape in last.iter(f"{SVG}polygon"))
    assert (corners == 9) == bool(shown.broken)  # an octagon, closed


def test_what_is_stored_is_what_the_model_says() -> None:
    shown = show(HAZARDS[0], durable=False)
    assert shown is not None
    lanes = hazard_lanes(shown)
    scope = shown.hazard.scope._replace(durable=False)
    assert lanes.stored == ("row k1", "mutex r1", "fence")
    assert [mark.text for mark in lanes.begins] == ["no row", "not held", "open"]
    row = lanes.stored.index("row k1")
    now = lanes.begins[row].text
    for (_, _, after), step in zip(walk(scope, shown.trace), lanes.steps, strict=True):
        now = dict(step.changes).get(row, Mark(now, "")).text
        there = after.rows[0]
        assert now == ("no row" if there is None else f"r{there.run + 1} {there.state}")
    assert [step.told for step in lanes.steps if step.text == "claim r1"] == ["won", "won", "won"]
    assert [step.answer for step in lanes.steps if step.answer] == ["fenced"]


@pytest.mark.parametrize("number", range(24))
def test_any_trace_of_starts_can_be_drawn(number: int) -> None:
    scope, trace = random_trace(number)
    lanes = start_lanes(scope, trace, "random", f"trace {number}", ["a caption"], ["an end"])
    check_drawn(lanes)


def test_a_reply_that_is_lost_has_a_bar_at_its_caller() -> None:
    scope = Scope(callers=1, budget=Budget(unknowns=1))
    trace = [Event(0, "insert", 0, 0, "reply lost")]
    (step,) = start_lanes(scope, trace, "t", "t").steps
    assert (step.heard, step.told, step.fault) == (False, "", "reply lost")
    source = lanes_source(start_lanes(scope, trace, "t", "t"))
    assert "arrowtail=tee" in source
    assert "arrowtail=tee" not in lanes_source(start_lanes(scope, [Event(0, "insert", 0, 0)], "t", "t"))


def test_a_stale_read_is_told_what_the_replica_has() -> None:
    scope = Scope(callers=1, budget=Budget(stale=1))
    trace = [
        Event(-1, "a replica stays behind"),
        Event(0, "insert", 0, 0),
        Event(0, "read back", 0, 0, "stale"),
    ]
    assert [step.told for step in start_lanes(scope, trace, "t", "t").steps] == ["", "", "no row"]
    fresh = [*trace[:2], Event(0, "read back", 0, 0)]
    assert start_lanes(scope, fresh, "t", "t").steps[-1].told == "r1 reserved"


@pytest.mark.parametrize(
    "trace",
    [
        [Event(0, "claim", 0, 0)],
        [Event(0, "insert", 0, 0), Event(0, "read back", 0, 1)],
        [Event(0, "insert", 0, 0, "reply lost")],
        [Event(7, "insert", 0, 0)],
    ],
)
def test_a_trace_that_the_model_does_not_have_is_refused(trace: list[Event]) -> None:
    with pytest.raises(NoSuchTrace, match=f"step {len(trace)} cannot happen"):
        start_lanes(Scope(), trace, "t", "t")


def test_a_drain_refuses_waits_and_starts_the_same_run() -> None:
    lanes = drain_lanes()
    check_drawn(lanes)
    assert lanes.stored == ("row k1", "row k2", "lock r1", "lock r2", "fence")
    said = [(lanes.actors[step.who].name, step.text, step.answer) for step in lanes.steps]
    closed = said.index(("host", "closes the fence", ""))
    opened = said.index(("host", "opens the fence", ""))
    refused = next(n for n, (_, _, answer) in enumerate(said) if answer == "fenced")
    drained = next(n for n, step in enumerate(lanes.steps) if "drained" in step.told)
    assert closed < refused < drained < opened
    worked = [n for n, (_, text, _) in enumerate(said) if text.startswith("work")]
    assert len(worked) == 2
    assert not any(drained < n < opened for n in worked)
    assert said[worked[1]][1] == said[refused][1].replace("release", "work")
    assert said[worked[1]][0] != said[refused][0]
    assert any(f"drained at step {drained + 1};" in line for line in lanes.ends)
    assert DRAIN.without == frozenset()


def test_many_callers_are_pressed_into_a_page() -> None:
    scope = Scope(callers=9, budget=Budget(flips=1))
    trace = [Event(who, "insert", 0, who) for who in range(9)]
    lanes = start_lanes(scope, trace, "t", "nine callers", [], [])
    check_drawn(lanes)
    whole = page(drawn(lanes_source(lanes)))
    assert whole.right - whole.left <= 900


# --- the store ----------------------------------------------------------------------------------

ROW = Reservation("k1", "r1", State.STARTED, 1, 2)
FULL = Database((ROW,), (Lock("r1", "k1", "h1", True, "{}", 3),), True)
EVERYTHING = (
    Action("pin", now=2),
    Action("run", "A", "reserve", ("k2", "r2"), 1, "insert"),
    Action("run", "B", "claim", ("k1", "r1"), 4, "claim", Fault.LATE),
    Action("crash", "A", now=3),
    Action("run", "B", "read", ("k2",), 6, "read", Fault.STALE),
    Action("run", "C", "settle", ("r1",), 6, "settle", Fault.LOST),
    Action("deny", now=6),
    Action("run", "B", "purge", (9, 1), 6, "purge"),
    Action("allow", now=6),
    Action("land", "B", now=7),
    Action("run", "C", "free", ("k2",), 7),
    Action("run", "C", "open_fence", (), 7),
    Action("unpin", now=2),
    Action("run", "D", "claim", ("k1", "r1"), 9, "insert"),
)


def test_every_action_of_the_store_can_be_drawn() -> None:
    lanes = store_lanes(
        FULL, EVERYTHING, describe, "t", "everything", ["c"], ["e"], Observed("True", EMPTY)
    )
    svg = check_drawn(lanes)
    said = {step.text: step for step in lanes.steps}
    assert said["claim k1 r1: insert"].answer == "True"  # as it was observed
    assert said["settle r1"].fault == "reply lost"
    assert not said["settle r1"].heard
    assert said["settle r1"].changes == ((1, Mark("r1 terminal", "terminal")),)
    assert said["purge 9 1"].answer == "raised not applied"
    assert said["reserve k2 r2: insert"].changes == ((0, Mark("r2 reserved", "reserved")),)
    assert said["read k2"].answer == "None"
    assert said["free k2"].answer == "refused: it is reserved"
    assert [step.acts for step in lanes.steps].count("event") == 6
    assert lanes.stored == ("row k2", "row k1", "lock r1", "fence")
    assert any("not in the model" in step.fault for step in lanes.steps)
    assert Counter(text for node in groups(svg, "node") for text in texts(node))["crashes"] == 1


def test_an_action_without_a_statement_is_a_whole_operation() -> None:
    actions = (Action("run", "A", "reserve", ("k1", "r1"), 1), Action("run", "B", "claim", ("k1", "r1"), 1))
    lanes = store_lanes(NOTHING, actions, describe, "t", "t")
    assert [step.answer for step in lanes.steps] == ["r1 reserved, created", "True"]
    assert [mark.text for step in lanes.steps for _, mark in step.changes] == ["r1 reserved", "r1 started"]
    assert lanes.begins == (Mark("no table", "absent"),)


def test_keys_from_outside_are_shown_safely() -> None:
    row = Reservation(NASTY, NASTY, STARTED, 0, 0)
    actions = (Action("run", "A", "claim", (NASTY, "r" * 200), 1), Action("run", "B", "read", (NASTY,), 1))
    lanes = store_lanes(Database((row,), ()), actions, describe, "t", NASTY, [NASTY], [NASTY])
    svg = check_drawn(lanes)
    assert "<b>" not in "".join(element.tag for element in svg.iter())
    assert all(char.isprintable() and char.isascii() for text in texts(svg) for char in text)


def test_the_scope_of_the_random_traces_reaches_every_kind_of_event() -> None:
    """Or the test above would be of little."""
    seen: set[Any] = set()
    for number in range(24):
        _, trace = random_trace(number)
        seen |= {event.fault.split(",")[0] for event in trace} | {
            event.what for event in trace if event.who < 0
        }
    assert {
        "reply lost",
        "not applied",
        "cannot be read",
        "stale",
        "crashes before it",
        "lands late",
    } <= seen
    assert {"closes the fence", "purge", "a replica stays behind"} <= seen
