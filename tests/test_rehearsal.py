"""Real starts over a real database walk where the model walks; broken ones come to the harm it foretells."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from startonce.checker.explore import explore, path_to
from startonce.checker.starts import DUTIES, HAZARDS, columns, explored, show, singles, witnesses
from startonce.model.faults import first, steps
from startonce.model.properties import SOMETIMES
from startonce.model.world import Budget, Event, Scope, World
from startonce.oracle.broken.callers import CALLERS, DUTIFUL
from startonce.rehearsal import Rehearsed, along, kill, rehearse

Trace = tuple[Event, ...]


def told(trace: Trace, done: Rehearsed) -> str:
    return "\n".join([*columns(trace[: done.agreed + 1]), done.parted])


def agrees(trace: Trace, scope: Scope) -> Rehearsed:
    """Perform a trace by our own starts, which must agree with the model to its end, and break nothing."""
    done = rehearse(DUTIFUL, trace, scope)
    assert not done.parted, told(trace, done)
    assert done.agreed == len(trace)
    assert [name for name, one in done.judged(scope).items() if one.broken_at is not None] == []
    return done


def shortest(scope: Scope, seen: Callable[[World, Event, World], bool]) -> Trace:
    """Return a shortest trace to a step of a scope."""
    found = explore(first(scope), steps(scope), {"": lambda w, e, v: not seen(w, e, v)}, stop_at=[""])
    trace = found.findings[""].trace
    assert trace is not None
    return trace


# --- our own starts do what the model does --------------------------------------------------------------------


def covering(scope: Scope) -> Iterator[Trace]:
    """Give traces that together take every step out of every reachable world of a scope."""
    found, out_of = explored(scope), steps(scope)
    assert found.complete
    for world in found.parents:
        path = path_to(found.parents, world)
        for label, after in out_of(world):
            goes_on = found.parents[after] == (world, label) and any(True for _ in out_of(after))
            if not goes_on:  # else the steps out of the world after it take this one too
                yield (*path, label)


@pytest.mark.long
@pytest.mark.parametrize("scope", singles(durable=True))
def test_every_step_that_the_model_can_take_under_one_fault_is_taken_by_real_starts(scope: Scope) -> None:
    for trace in covering(scope):
        agrees(trace, scope)


WITNESSED = (
    Scope(),
    Scope(budget=Budget(flips=2, unknowns=1)),
    Scope(budget=Budget(cancels=1, frees=1)),
    Scope(budget=Budget(purges=1, late=1)),
    Scope(budget=Budget(crashes=1, frees=1)),
    Scope(keys=2, attempts=2),
    Scope(callers=3, budget=Budget(stale=1)),
)


def test_whatever_comes_about_in_the_model_comes_about_in_reality() -> None:
    seen = set()
    for scope in WITNESSED:
        for name, trace in witnesses(scope).items():
            if trace is not None:
                done = agrees(trace, scope)
                w, v = done.worlds[-2:]
                assert SOMETIMES[name][1](w, done.events[-1], v)
                by_the_model = Rehearsed(len(trace), "", trace, along(scope, trace))
                assert by_the_model.judged(scope) == done.judged(scope)
                seen.add(name)
    assert seen == set(SOMETIMES)


@pytest.mark.parametrize("hazard", [one for one in HAZARDS if one.seen is not None], ids=lambda one: one.id)
def test_a_hazard_by_design_is_there_in_reality(hazard: Any) -> None:
    shown = show(hazard, durable=True)
    assert shown is not None
    done = agrees(shown.trace, hazard.scope)
    w, v = done.worlds[-2:]
    assert hazard.seen(w, done.events[-1], v)


MOST = Budget(
    crashes=1, unknowns=1, late=1, refusals=2, flips=2, purges=1, settles=1, cancels=1, frees=1, stale=1
)
"""Two refusals and no more: a real start tries three times what the model would try for ever."""


def scope_of(random: Random) -> Scope:
    kinds = random.sample(Budget._fields, k=random.choice([2, 3, 5, len(Budget._fields)]))
    budget = Budget(**{kind: getattr(MOST, kind) for kind in kinds})
    keys = 1 if budget.purges else random.choice([1, 2])  # a real purge takes the oldest row, a model's any
    return Scope(random.choice([2, 3, 4]), keys, random.choice([1, 1, 2]), budget)


def walk(scope: Scope, random: Random) -> Trace:
    """Walk at random until nothing can move."""
    out_of, world, trace = steps(scope), first(scope), list[Event]()
    while moves := list(out_of(world)):
        calm = [(e, v) for e, v in moves if e.who >= 0 and not e.fault]
        event, world = random.choice(calm if calm and random.random() < 0.6 else moves)
        trace.append(event)
    return tuple(trace)


@pytest.mark.parametrize("seed", range(8))
def test_real_starts_follow_random_walks_of_the_model(seed: int) -> None:
    random = Random(seed)
    for _ in range(75):
        scope = scope_of(random)
        agrees(walk(scope, random), scope)


# --- broken callers come to harm ----------------------------------------------------------------------------

HARM = {
    "an unknown claim taken for won": (13, 9, "expected claim r1 (reply lost, takes it for won), observed "
        "claim r1 (reply lost, takes it for won): unknown"),
    "release on any failure": (8, 7, "expected release r1: fenced, observed persist r1"),
    "release repeated after a lost reply": (15, 6, "expected release r1 (reply lost, repeats it), observed "
        "release r1 (reply lost, repeats it): stranded"),
    "a lock sent is a lock held": (10, 8, "expected holder r1 (skips it), observed holder r1"),
    "gives up after an unknown lock": (5, 4, "expected take r1 (reply lost, gives up): retry, observed "
        "take r1 (reply lost, gives up)"),
    "run id derived from the key": (11, 10, "expected insert r1, observed insert r2"),
    "a transport that delivers twice": (11, 3, "expected fence r1 (is dispatched too), observed nothing r1"),
    "a timeout that settles": (6, 5, "rows: expected (Row(run=0, state=<State.TERMINAL: 'terminal'>),), "
        "observed (Row(run=0, state=<State.STARTED: 'started'>),)"),
    "created means mine to start": (13, 2, "expected claim r1 (skips it), observed claim r1"),
    "the fence is not read": (8, 4, "expected fence r1 (skips it), observed fence r1"),
    "the fence read before the claim": (8, 4, "expected fence r1 (skips it), observed fence r1"),
}  # fmt: skip
"""For each broken caller the steps to its harm, on how many of them a dutiful one goes along, and where not."""


def test_every_duty_of_a_caller_is_broken() -> None:
    assert {one.clause for one in CALLERS.values()} == set(DUTIES)
    assert all(one.scope.without == {one.clause} for one in CALLERS.values())
    assert CALLERS.keys() == HARM.keys()


@pytest.mark.parametrize("name", CALLERS)
def test_a_broken_caller_comes_to_the_harm_that_the_model_foretells(name: str) -> None:
    one = CALLERS[name]
    harm = kill(one)
    assert harm.came_about, told(harm.trace, harm.rehearsed)
    assert len(harm.trace) == harm.rehearsed.agreed == HARM[name][0]
    by_the_model = Rehearsed(len(harm.trace), "", harm.trace, along(one.scope, harm.trace))
    assert by_the_model.judged(one.scope) == harm.rehearsed.judged(one.scope)


@pytest.mark.parametrize("name", CALLERS)
def test_whatever_else_falls_with_the_duty_falls_in_reality_too(name: str) -> None:
    one = CALLERS[name]
    for fallen, found in explored(one.scope).findings.items():
        if found.trace is not None:
            harm = kill(one._replace(breaks=fallen))
            assert harm.came_about, told(harm.trace, harm.rehearsed)


@pytest.mark.parametrize("name", CALLERS)
def test_a_dutiful_caller_on_the_same_schedule_parts_before_the_harm(name: str) -> None:
    one = CALLERS[name]
    length, along_with_it, parted = HARM[name]
    harm = kill(one._replace(starts=DUTIFUL))
    assert not harm.came_about
    done = harm.rehearsed
    assert (done.agreed, done.parted) == (along_with_it, parted)
    assert done.agreed < length == len(harm.trace)
    judged = done.judged(one.scope)
    assert [name for name, found in judged.items() if found.broken_at is not None] == []
    assert judged[one.breaks].evaluated or not any(done.worlds[-1].executed), (
        "it was judged, or did nothing"
    )


@pytest.mark.parametrize("name", ["a transport that delivers twice", "a timeout that settles"])
def test_starts_meet_what_is_done_to_them_as_the_model_says(name: str) -> None:
    """Here the starts keep their duties: it is others who do not, at any moment that the model has."""
    one = CALLERS[name]
    scope = one.scope._replace(callers=2)
    for trace in covering(scope):
        done = rehearse(one.starts, trace, scope)
        assert not done.parted, told(trace, done)


STRAY = [
    name
    for name, one in CALLERS.items()
    if one.starts.begin is not DUTIFUL.begin and one.clause != "REL-3"  # that waits for work that fails
]


@pytest.mark.parametrize("name", STRAY)
def test_a_broken_start_is_seen_to_part_from_the_model_of_dutiful_ones(name: str) -> None:
    one = CALLERS[name]
    kept = one.scope._replace(without=frozenset())
    kept = kept._replace(budget=kept.budget._replace(unknowns=1, flips=2))
    assert any(rehearse(one.starts, trace, kept).parted for trace in covering(kept))


def test_what_is_no_trace_of_the_scope_is_refused() -> None:
    trace = witnesses(Scope())["started"]
    assert trace is not None
    with pytest.raises(ValueError, match="step 3, claim r1, is not possible in this scope"):
        rehearse(DUTIFUL, (*trace[:2], trace[2]._replace(who=1)), Scope())
    with pytest.raises(ValueError, match="real starts have a durable lock"):
        rehearse(DUTIFUL, (), Scope(durable=False))
