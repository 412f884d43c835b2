"""What an exploration costs: a million worlds in plain Python, and our search against `minicheck`.

The million is explored by a process of its own, every property evaluated on every step. The two searches
are compared on the filter lock, Peterson's algorithm for several processes. `minicheck` is no dependency
of this project; where it is not installed nothing is compared, and the bar counts as missed.
"""

import importlib
import json
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter, process_time
from types import ModuleType
from typing import Any

import pairs
from pairs import Figure, Pair

from startonce.checker.explore import explore
from startonce.checker.starts import explored
from startonce.model.properties import ALWAYS
from startonce.model.world import Budget, Scope

MILLION = 1_000_000
SCOPE = Scope(callers=3, budget=Budget(unknowns=1, flips=2, purges=1, settles=1, frees=1))
"""Durable; it has 1,196,466 worlds. The search stops after the first million."""

GIGABYTE = 1024**3
PAIRS = 5
REPEATS = 2
"""Searches of each side in a pair, so that each side is first once."""


# --- a million worlds -----------------------------------------------------------------------------------


def a_million() -> None:
    """Explore the scope in this process, and print what it took as JSON."""
    begun, used = perf_counter(), process_time()
    found = explored(SCOPE, enough=lambda states: states >= MILLION)
    took, used = perf_counter() - begun, process_time() - used
    silent = [name for name in ALWAYS if not found.findings[name].evaluated]
    broken = [name for name, finding in found.findings.items() if finding.trace is not None]
    print(json.dumps([found.states, found.transitions, took, used, silent, broken]))


def the_million() -> Iterator[Figure]:
    """Run a process that does just this. Raises `RuntimeError` where it did not do the whole of it."""
    child = subprocess.run([sys.executable, __file__, "a million"], stdout=subprocess.PIPE, check=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    states, transitions, took, used, silent, broken = json.loads(child.stdout)
    if states < MILLION or silent or broken:
        raise RuntimeError(f"{states:,} worlds; never evaluated: {silent}; broken: {broken}")
    yield Figure("worlds explored", states)
    yield Figure("steps, each with every property", transitions)
    yield Figure("exploring them", took, "s", at_most=60)
    yield Figure("of it on the processor", used, "s")
    yield Figure("worlds a second", states / took)
    yield Figure("peak memory", peak / GIGABYTE, "GB", at_most=1.5)


# --- the two searches -----------------------------------------------------------------------------------

PROCESSES = 5
CRITICAL = 2 * PROCESSES - 1
FIELDS = ("a", "b", "c", "d", "e", "last1", "last2", "last3", "last4")
INITIAL = (0,) * len(FIELDS)

Flat = tuple[int, ...]
"""The place of each process, then who came last to each level.

At place 2n-1 a process has come to level n, at 2n it has written that it was last; the last is CRITICAL.
"""


def filter_lock(state: Flat) -> list[tuple[str, Flat]]:
    """Give every step out of a state of the filter lock."""
    found = []
    for who in range(PROCESSES):
        place = state[who]
        level = (place + 1) // 2
        last = PROCESSES + level - 1
        if place == CRITICAL:
            found.append(("leave", (*state[:who], 0, *state[who + 1 :])))
        elif place % 2:
            after = (*state[:who], place + 1, *state[who + 1 : last], who, *state[last + 1 :])
            found.append(("write", after))
        elif place == 0 or state[last] != who or _alone(state, who, level):
            found.append(("come", (*state[:who], place + 1, *state[who + 1 :])))
    return found


def _alone(state: Flat, who: int, level: int) -> bool:
    return all((state[other] + 1) // 2 < level for other in range(PROCESSES) if other != who)


def ours(some: Sequence[int]) -> None:
    """Search with our own explorer; the invariant is evaluated on every step, as it always is."""
    for states in some:
        found = explore(
            INITIAL,
            filter_lock,
            {"exclusive": lambda w, e, v: [v[0], v[1], v[2], v[3], v[4]].count(CRITICAL) <= 1},
        )
        _same(states, found.states, found.complete and found.findings["exclusive"].trace is None)


def theirs(minicheck: ModuleType) -> Callable[[Sequence[int]], None]:
    """Search with `minicheck`; it evaluates the invariant on every new state."""
    protocol: Any = minicheck.Protocol(
        name="filter lock",
        candidate=False,
        fields=FIELDS,
        initial=INITIAL,
        transitions=filter_lock,
        invariants={"exclusive": lambda s: [s["a"], s["b"], s["c"], s["d"], s["e"]].count(CRITICAL) <= 1},
    )

    def search(some: Sequence[int]) -> None:
        for states in some:
            found = minicheck.check_safety(protocol)
            _same(states, found["reachable_states"], found["properties"]["exclusive"]["holds"] is True)

    return search


def _same(expected: int, states: int, holds: bool) -> None:
    if states != expected or not holds:
        raise RuntimeError(f"{states:,} states and not {expected:,}, or the invariant does not hold")


def the_searches(minicheck: ModuleType) -> Iterator[Figure]:
    """Search the same model with both, in turn. Raises `RuntimeError` where they do not find the same."""
    states = explore(INITIAL, filter_lock, {}).states
    search = theirs(minicheck)
    once = [states] * REPEATS
    found: list[Pair] = [pairs.in_turn(search, ours, once, once, 1) for _ in range(PAIRS)]
    yield Figure("states of the filter lock, found by both", states)
    yield Figure("minicheck, a search", statistics.median(pair.one for pair in found) / 1e6, "s")
    yield Figure("ours, a search", statistics.median(pair.other for pair in found) / 1e6, "s")
    yield Figure("ours / minicheck", pairs.ratio(found), "times", at_most=1)


def main() -> int:
    """Measure both, and give the exit code."""
    figures = list(the_million())
    try:
        minicheck = importlib.import_module("minicheck")
    except ImportError:
        minicheck = None
    if minicheck is not None:
        figures += the_searches(minicheck)
    title = f"Exploring: a million worlds once, and the median of {PAIRS} pairs of {REPEATS} searches each"
    code = pairs.conclude(title, figures)
    if minicheck is None:
        print("NOT CHECKED: our search against minicheck (pip install minicheck)")
    return code if minicheck is not None else 1


if __name__ == "__main__":
    if sys.argv[1:] == ["a million"]:
        a_million()
    else:
        sys.exit(main())
