"""Starting runs explored whole: counts pinned, every hazard shown, every dropped duty found."""

from collections.abc import Iterator

import pytest

from startonce.checker.explore import explore, path_to
from startonce.checker.starts import (
    DUTIES,
    HAZARDS,
    SHOWN_BY,
    columns,
    explored,
    pairs,
    show,
    singles,
    witnesses,
)
from startonce.model.clauses import CLAUSES
from startonce.model.faults import first, quiet, steps
from startonce.model.properties import ALWAYS, EVENTUALLY, SOMETIMES, properties
from startonce.model.world import Budget, Scope, World

# --- the search knows nothing of reservations ------------------------------------------------------------


def counting(state: int) -> Iterator[tuple[str, int]]:
    """Double or add one, up to a hundred."""
    for label, after in (("double", state * 2), ("add", state + 1)):
        if after <= 100:
            yield label, after


def test_every_state_is_visited_and_a_trace_is_shortest() -> None:
    found = explore(1, counting, {"not 10": lambda before, label, after: after != 10})
    assert found.states == 100
    assert found.complete
    assert found.findings["not 10"].trace == ("double", "double", "add", "double")
    assert found.findings["not 10"].evaluated == found.transitions
    assert len(path_to(found.parents, 99)) == min(len(path) for path in ways(99)), "no shorter way exists"


def ways(target: int) -> Iterator[list[int]]:
    """Give every way to a number, by a search of its own."""
    layers = [[[1]]]
    while True:
        ends = [path for path in layers[-1] if path[-1] == target]
        if ends:
            yield from (path[1:] for path in ends)
            return
        layers.append([[*path, after] for path in layers[-1] for _, after in counting(path[-1])])


def test_a_property_that_says_nothing_is_not_evaluated() -> None:
    found = explore(1, counting, {"silent": lambda before, label, after: None})
    assert found.findings["silent"].evaluated == 0
    assert found.findings["silent"].trace is None


def test_a_search_that_has_had_enough_is_not_complete() -> None:
    found = explore(0, lambda n: [("add", n + 1)], {}, enough=lambda states: states > 2000)
    assert not found.complete


def test_a_search_ends_when_what_it_looks_for_is_found() -> None:
    found = explore(1, counting, {"not 4": lambda b, e, a: a != 4}, stop_at=["not 4"])
    assert found.findings["not 4"].trace == ("double", "double")
    assert found.states < 100


# --- starts -------------------------------------------------------------------------------------------


def test_every_single_fault_breaks_nothing_and_the_counts_are_pinned() -> None:
    counts = {}
    for durable in (True, False):
        for scope in singles(durable):
            result = explored(scope)
            assert result.complete
            assert [name for name, found in result.findings.items() if found.trace is not None] == []
            spent = [kind for kind, n in scope.budget._asdict().items() if n]
            counts["durable" if durable else "transient", *spent] = result.states
    assert counts == {
        ("durable",): 90, ("durable", "cancels"): 905, ("durable", "crashes"): 157,
        ("durable", "flips"): 352, ("durable", "frees"): 1101, ("durable", "late"): 948,
        ("durable", "purges"): 134, ("durable", "refusals"): 202, ("durable", "settles"): 116,
        ("durable", "stale"): 842, ("durable", "unknowns"): 204,
        ("transient",): 72, ("transient", "crashes"): 111, ("transient", "flips"): 296,
        ("transient", "late"): 653, ("transient", "purges"): 107, ("transient", "refusals"): 117,
        ("transient", "settles"): 93, ("transient", "stale"): 634, ("transient", "unknowns"): 153,
    }  # fmt: skip


PAIRS = {True: 133_167, False: 25_982}


@pytest.mark.parametrize(("durable", "states"), PAIRS.items())
def test_every_pair_of_faults_breaks_nothing(durable: bool, states: int) -> None:
    counted = 0
    evaluated = dict.fromkeys([*ALWAYS, *EVENTUALLY], 0)
    for scope in pairs(durable):
        result = explored(scope)
        counted += result.states
        for name, found in result.findings.items():
            assert found.trace is None, f"{name} in {scope}: {columns(found.trace or ())}"
            evaluated[name] += found.evaluated
    assert counted == states
    if durable:
        assert [name for name, times in evaluated.items() if not times] == []


LENGTHS = {
    ("H1", False): 21, ("H1", True): 9, ("H2", False): 11, ("H2", True): 4, ("H3", False): 6,
    ("H3", True): 6, ("H4", False): 11, ("H4", True): 12, ("H5", False): 15, ("H5", True): 11,
    ("H6", False): 4, ("H6", True): 4, ("H7", False): 6, ("H7", True): 6, ("H8", False): 7,
    ("H8", True): 8, ("H9", True): 5,
}  # fmt: skip


def test_every_hazard_is_as_documented_with_its_shortest_trace() -> None:
    found = [one for h in HAZARDS for d in (False, True) if (one := show(h, d)) is not None]
    assert all(one.as_documented for one in found)
    assert {(one.hazard.id, one.durable): len(one.trace) for one in found} == LENGTHS
    assert [hazard.id for hazard in HAZARDS] == [f"H{n}" for n in range(1, 10)]


CARRIES = {
    "CLM-6": (Scope(budget=Budget(unknowns=1)), {"one holder": 6}),
    "REL-3": (
        Scope(),
        {
            "an executed run is settled": 11, "executed is never reserved": 8, "no key is stranded": 15,
            "only a refusal goes back": 8, "a refused start did not execute": 8, "the inventory is true": 8,
        },
    ),
    "REL-4": (
        Scope(callers=3, budget=Budget(unknowns=1, flips=2)),
        {
            "one holder": 9, "executed is never reserved": 15, "only a refusal goes back": 15,
            "a refused start did not execute": 15, "the inventory is true": 13,
        },
    ),
    "LCK-4": (Scope(budget=Budget(frees=1)), {"freed never executes": 10, "the inventory is true": 10, "a free holds its lock": 12}),
    "LCK-5": (Scope(budget=Budget(unknowns=1)), {"a lock is executed under": 8}),
    "DUT-1": (
        Scope(budget=Budget(purges=1)), {"executed is never reserved": 11, "one holder": 13},
    ),
    "DUT-2": (
        Scope(budget=Budget(flips=2)),
        {  "executed is never reserved": 11, "only a refusal goes back": 11,
            "a refused start did not execute": 11, "one holder": 4, "the inventory is true": 9,
        },
    ),
    "DUT-3": (
        Scope(budget=Budget(settles=1)), {"no live run is settled": 6, "no settled run begins": 8},
    ),
    "STA-3": (Scope(budget=Budget(flips=1)), {"drained stays idle": 8}),
    "STA-1": (Scope(durable=False), {
        "executes once": 13, "executed is never reserved": 6, "no live run is settled": 13,
        "no settled run begins": 14,
    }),
}  # fmt: skip
"""For each duty: a small scope, and the properties that fall with it, with the steps of a shortest trace."""


@pytest.mark.parametrize("duty", CARRIES)
def test_a_dropped_duty_turns_exactly_what_it_carries_red(duty: str) -> None:
    scope, carried = CARRIES[duty]
    kept = explored(scope)
    assert [name for name, found in kept.findings.items() if found.trace is not None] == []
    dropped = explored(scope._replace(without=frozenset({duty})))
    red = {name: len(found.trace) for name, found in dropped.findings.items() if found.trace is not None}
    assert red == carried


@pytest.mark.parametrize(
    ("duty", "scope"),
    [
        ("CLM-6", Scope(budget=Budget(late=1, flips=2))),
        ("DUT-2", Scope(callers=3, budget=Budget(flips=2))),
        ("REL-4", Scope(callers=3, budget=Budget(unknowns=1, flips=3))),
        ("STA-3", Scope(budget=Budget(flips=1))),
    ],
)
def test_STA_11_stands_on_duties_too_even_with_a_durable_lock(duty: str, scope: Scope) -> None:
    name = "drained stays idle"
    dropped = explored(scope._replace(without=frozenset({duty})), stop_at=[name])
    assert dropped.findings[name].trace is not None


@pytest.mark.parametrize("duty", SHOWN_BY)
def test_the_options_that_are_said_to_show_a_duty_do(duty: str) -> None:
    words = SHOWN_BY[duty].split()
    options = {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}
    callers, durable = int(options.pop("callers", "2")), options.pop("lock", "durable") == "durable"
    budget = Budget(**{kind: int(number) for kind, number in options.items()})
    scope = Scope(callers=callers, budget=budget, durable=durable, without=frozenset({duty}))
    assert any(found.trace is not None for found in explored(scope).findings.values())


def test_every_duty_can_be_dropped() -> None:
    assert set(CARRIES) == set(DUTIES) == {c.id for c in CLAUSES.values() if c.kind == "duty"}


def test_every_property_is_of_a_clause() -> None:
    for one in (*ALWAYS.values(), *EVENTUALLY.values()):
        assert set(one.clauses) <= set(CLAUSES)


@pytest.mark.parametrize("scope", [*singles(True), *singles(False), *pairs(False)[:8]])
def test_no_step_leads_back_so_every_fair_run_comes_to_a_quiet_world(scope: Scope) -> None:
    """What is said of liveness stands on this: without a cycle a run goes on until nothing can move."""
    out_of = steps(scope)
    open_, done = set[World](), set[World]()
    stack = [(first(scope), iter(list(out_of(first(scope)))))]
    open_.add(first(scope))
    while stack:
        world, rest = stack[-1]
        moved = next(rest, None)
        if moved is None:
            stack.pop()
            open_.remove(world)
            done.add(world)
            moves = (e.fault == "lands late" or (e.who >= 0 and not e.fault) for e, _ in out_of(world))
            assert quiet(world) or any(moves)
        elif moved[1] not in done:
            assert moved[1] not in open_, f"a cycle: {moved[0]}"
            open_.add(moved[1])
            stack.append((moved[1], iter(list(out_of(moved[1])))))


def test_symmetry_loses_no_verdict() -> None:
    scope = Scope(callers=3, budget=Budget(unknowns=1))
    with_, without = explored(scope), explored(scope._replace(symmetry=False))
    assert with_.states < without.states
    assert {n: f.trace for n, f in with_.findings.items()} == {
        n: f.trace for n, f in without.findings.items()
    }


def test_everything_that_is_spoken_of_comes_about_somewhere() -> None:
    budgets = (
        Budget(flips=2, unknowns=1),
        Budget(cancels=1, frees=1),
        Budget(purges=1, late=1),
        Budget(crashes=1, frees=1),
    )
    seen = [witnesses(Scope(budget=budget)) for budget in budgets]
    never = [name for name in SOMETIMES if all(found[name] is None for found in seen)]
    assert never == []
    assert seen[0]["started"] is not None
    assert len(seen[0]["started"]) == 9


def test_two_keys_and_two_attempts_are_explored_too() -> None:
    result = explored(Scope(keys=2, attempts=2))
    assert result.complete
    assert all(found.trace is None for found in result.findings.values())
    assert set(properties(Scope())) <= set(ALWAYS) | set(EVENTUALLY)
