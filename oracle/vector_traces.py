"""Which conformance vectors there are: traces that cover a scope, and short ones written down."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from startonce.model.inputs import ALPHABET
from startonce.model.operations import PROGRAMS
from startonce.model.predicates import Step
from startonce.model.reservation import EMPTY, NOTHING, Database
from startonce.oracle.covering import Trace, traces
from startonce.oracle.probes import BAD_VALUES, DISTINCT
from startonce.oracle.scopes import EDGES
from startonce.oracle.situations import situation
from startonce.oracle.vectors import ABSENT, Operation, Vector, script
from startonce.oracle.wire.requests import carried_by_all
from startonce.oracle.wire.words import CORE, FENCE, LOCKS

TAKES = frozenset({"take_lock", "lock_of", "persist"})
"""The operations on run locks that an implementation has if it has any."""

# --- reservations ------------------------------------------------------------------------------------


def edge_choices(db: Database) -> Iterator[Operation]:
    """Give every operation on the keys and runs of the scope *edges*, with every horizon that differs."""
    keys, runs = EDGES.keys, EDGES.runs
    for key in keys:
        for run_id in runs:
            yield from ((name, key, run_id) for name in ("reserve", "claim", "release"))
        yield "read", key
    yield from (("settle", run_id) for run_id in runs)
    times = sorted({row.updated_at for row in db.rows or ()})
    yield from (("purge", horizon, 10) for horizon in (*times, times[-1] + 1 if times else 1))
    yield from (("for_runs", *some) for some in ((), runs[:1], runs[:1] * 2, runs[:2], runs))
    yield from (("inventory", after, limit) for after, limit in ((None, 10), (None, 1), (("k1", "r2"), 10)))


def edge_covered(step: Step) -> frozenset[Hashable]:
    """Return the effective edge that a step is, or the kind of operation that changes nothing.

    A purge is known by the rows that are older than its horizon.
    """
    call, rows = step.call, step.before.rows or ()
    if step.before == step.after:
        return frozenset({(call.operation, situation(step.before, call))})
    args = call.args
    if call.operation == "purge":
        args = tuple(row.key for row in rows if row.updated_at < args[0])
    return frozenset({(tuple(row[:3] for row in rows), call.operation, args)})


WITHOUT_TABLE: tuple[Operation, ...] = (
    ("claim", "k1", "r1"), ("release", "k1", "r1"), ("settle", "r1"), ("read", "k1"),
    ("for_runs", "r1", "r2"), ("for_runs",), ("purge", 10, 10), ("inventory", None, 10),
    ("reserve", "k1", "r1"), ("claim", "k1", "r1"),
)  # fmt: skip
PURGES: tuple[Operation, ...] = (
    ("reserve", "k4", "r1"), ("reserve", "k2", "r1"), ("reserve", "k3", "r2"), ("reserve", "k1", "r3"),
    ("settle", "r2"), ("settle", "r1"), ("purge", 6, 10), ("reserve", "k3", "r4"), ("settle", "r4"),
    ("purge", 100, 1), ("purge", 100, 1), ("purge", 100, 1), ("purge", 100, 1), ("reserve", "k2", "r5"),
)  # fmt: skip
"""Two rows that are equally old, with a younger one between them by key, and one that is not spent."""
LIVES: tuple[Operation, ...] = (
    ("reserve", "k1", "r1"), ("claim", "k1", "r1"), ("release", "k1", "r1"), ("claim", "k1", "r1"),
    ("claim", "k1", "r1"), ("reserve", "k1", "r2"), ("settle", "r1"), ("settle", "r1"),
    ("reserve", "k1", "r3"), ("read", "k1"), ("reserve", "k2", "r2"), ("claim", "k2", "r2"),
    ("release", "k2", "r2"), ("settle", "r2"),
)  # fmt: skip
CLOCK = (1_700_000_000_000, 0, 0, 5, 10**15, 10**15, 1, 10**15, 10**15, 2, 9, 9, 9, 9)
"""Readings that stand still, run backwards, and are far ahead."""


def reservations() -> Iterator[Vector]:
    """Give the vectors of reservations."""
    title = "every operation that changes a table of 2 keys and 3 runs, and every kind that changes nothing"
    for name, trace in _numbered(traces(EMPTY, edge_choices, edge_covered)):
        yield Vector(f"reservations/edges{name}", title, EMPTY, trace)
    yield Vector(
        "reservations/no-table", "without the table nothing is there, and only a reserve creates it",
        NOTHING, script(NOTHING, WITHOUT_TABLE), CORE | {ABSENT},
    )  # fmt: skip
    yield Vector(
        "reservations/purge", "the oldest spent rows go first, then by key, and a key comes back anew",
        EMPTY, script(EMPTY, PURGES), CORE | {"purge"},
    )  # fmt: skip
    yield Vector(
        "reservations/clocks", "no operation depends on the clock",
        EMPTY, script(EMPTY, LIVES, CLOCK), also=("STA-8",),
    )  # fmt: skip


# --- run locks and the fence -------------------------------------------------------------------------


def lock_choices(db: Database) -> Iterator[Operation]:
    """Give every operation on one key, two runs and two holders."""
    yield from (("inventory", None, 10), ("inventory", None, 1), ("inventory", ("k1", "r1"), 10))
    for run_id in ("r1", "r2"):
        yield "lock_of", run_id
        yield from (("persist", run_id, holder, '{"value":1}') for holder in ("h1", "h2"))
        yield from (("take_lock", "k1", run_id, holder) for holder in ("h1", "h2"))
        yield from ((name, "k1", run_id) for name in ("claim", "release", "reserve"))
        yield from ((name, run_id) for name in ("settle", "cancel"))
    yield from (("free", "k1"), ("read", "k1"))
    yield "purge", max((row.updated_at for row in db.rows or ()), default=0) + 1, 10


def lock_covered(step: Step) -> frozenset[Hashable]:
    """Return the operation and the situation that it meets; of an inventory each kind of its entries."""
    call = step.call
    if call.operation == "inventory":
        kinds = [entry.kind for entry in step.answer] or ["nothing"]
        return frozenset(("inventory", *call.args, kind) for kind in kinds)
    return frozenset({(call.operation, situation(step.before, call))})


LOCKS_WITHOUT_TABLE: tuple[Operation, ...] = (
    ("take_lock", "k1", "r1", "h1"), ("lock_of", "r1"), ("persist", "r1", "h1", "{}"), ("cancel", "r1"),
    ("free", "k1"), ("inventory", None, 10), ("reserve", "k1", "r1"), ("claim", "k1", "r1"),
    ("take_lock", "k1", "r1", "h1"), ("lock_of", "r1"),
)  # fmt: skip
SEVERAL_KEYS: tuple[Operation, ...] = (
    ("reserve", "k1", "r1"), ("reserve", "k2", "r1"), ("claim", "k2", "r1"), ("reserve", "k3", "r2"),
    ("claim", "k3", "r2"), ("reserve", "k4", "r2"), ("cancel", "r1"), ("cancel", "r1"),
    ("take_lock", "k2", "r1", "h1"), ("free", "k3"), ("claim", "k4", "r2"), ("take_lock", "k4", "r2", "h1"),
    ("inventory", None, 10), ("free", "k4"), ("free", "k4"), ("lock_of", "r2"),
)  # fmt: skip
FENCES: tuple[Operation, ...] = (
    ("fence",), ("close_fence",), ("fence",), ("close_fence",), ("reserve", "k1", "r1"),
    ("claim", "k1", "r1"), ("fence",), ("release", "k1", "r1"), ("claim", "k1", "r1"), ("settle", "r1"),
    ("read", "k1"), ("open_fence",), ("fence",), ("open_fence",), ("close_fence",), ("open_fence",),
)  # fmt: skip
FENCES_WITHOUT_TABLE: tuple[Operation, ...] = (
    ("fence",), ("open_fence",), ("fence",), ("close_fence",), ("claim", "k1", "r1"), ("settle", "r1"),
    ("read", "k1"), ("reserve", "k1", "r1"), ("fence",),
)  # fmt: skip


def locks() -> Iterator[Vector]:
    """Give the vectors of run locks and of the fence."""
    title = "one key, two runs, two holders: every operation in every situation of row and lock"
    for name, trace in _numbered(traces(EMPTY, lock_choices, lock_covered)):
        used = frozenset(step.call.operation for step in trace)
        yield Vector(f"locks/walk{name}", title, EMPTY, trace, CORE | (used & TAKES or used & LOCKS))
    yield Vector(
        "locks/no-table", "without tables there is no lock to take, to keep or to free",
        NOTHING, script(NOTHING, LOCKS_WITHOUT_TABLE), CORE | TAKES | {ABSENT},
    )  # fmt: skip
    yield Vector(
        "locks/several-keys", "a cancel settles every key of its run, a free deletes its own alone",
        EMPTY, script(EMPTY, SEVERAL_KEYS), CORE | {"take_lock", "lock_of", "cancel", "free"},
    )  # fmt: skip
    yield Vector(
        "locks/fence", "the fence closes and opens, and reservations go on behind it",
        EMPTY, script(EMPTY, FENCES), CORE | FENCE,
    )  # fmt: skip
    yield Vector(
        "locks/fence-no-table", "without its table the fence is open",
        NOTHING, script(NOTHING, FENCES_WITHOUT_TABLE), CORE | FENCE | {ABSENT},
    )  # fmt: skip


# --- inputs ------------------------------------------------------------------------------------------

BAD_IDS = tuple(
    bad for bad in BAD_VALUES if carried_by_all([bad]) and (type(bad) is not str or len(bad) < 999)
)
"""What is no key and no run id, as far as every JSON reader takes it, and none of it long."""
BAD: Mapping[str, tuple[Any, ...]] = {
    "key": BAD_IDS,
    "run_id": BAD_IDS,
    "holder": (*BAD_IDS, "cancel", "free"),
    "result": (7, None, True, 1.5, b"{}", ("a",)),
    "horizon": ("5", None, True, 1.5, b"5", (5,)),
    "limit": (0, -1, "1", None, True, 1.5, b"1", (1,)),
    "after": (
        *("a", 7, True, b"a", ("a",), ("a", "a", "a")),
        *((bad, "a") for bad in BAD_IDS),
        *(("a", bad) for bad in BAD_IDS),
    ),
}
"""For each argument what breaks its rule."""
GOOD: Mapping[str, Any] = {
    **dict.fromkeys(BAD, "a"),
    "result": "{}",
    "horizon": 1,
    "limit": 1,
    "after": None,
}


def refused(operation: str) -> Iterator[Operation]:
    """Give an operation with every bad value in every place, the other arguments being good."""
    names = PROGRAMS[operation].arguments
    if names == ("run_ids",):
        yield from ((operation, bad) for bad in BAD_IDS)
        yield from ((operation, "a", bad) for bad in BAD_IDS)
        return
    for place, name in enumerate(names):
        for bad in BAD[name]:
            yield operation, *(bad if at == place else GOOD[other] for at, other in enumerate(names))


def _refused(*operations: str) -> Iterator[Operation]:
    for operation in operations:
        yield from refused(operation)


def _distinct() -> Iterator[Operation]:
    keys = [key for key in DISTINCT if len(key) < 9]
    yield from (("reserve", key, f"r-{key}") for key in keys)
    yield from (("claim", key, f"r-{key}") for key in keys)
    yield from (("read", key) for key in keys)
    yield from (("settle", f"r-{key}") for key in keys)


LONGEST: tuple[Operation, ...] = tuple(
    operation
    for key, run_id in (("x" * 200, "y" * 200), ("".join(sorted(ALPHABET)), "-"), ("~", "."))
    for operation in (("reserve", key, run_id), ("claim", key, run_id), ("read", key), ("for_runs", run_id))
)
HOLDERS: tuple[Operation, ...] = (
    ("reserve", "k", "r"), ("claim", "k", "r"), ("reserve", "K", "R"), ("claim", "K", "R"),
    ("take_lock", "k", "r", "h"), ("take_lock", "k", "r", "H"), ("take_lock", "K", "R", "H"),
    ("persist", "r", "H", "{}"), ("persist", "R", "H", "[]"), ("lock_of", "r"), ("lock_of", "R"),
)  # fmt: skip


def inputs() -> Iterator[Vector]:
    """Give the vectors of the input rules."""
    title = "what breaks the rule of its argument is refused, and nothing changes"
    begun, started = [("reserve", "a", "a")], [("reserve", "a", "a"), ("claim", "a", "a")]
    calls = [*begun, *_refused("reserve", "claim"), ("claim", "a", "a")]
    calls += [*_refused("release", "settle", "read", "for_runs"), ("release", "a", "a")]
    yield Vector("inputs/invalid", title, EMPTY, script(EMPTY, calls))
    calls = [*begun, ("settle", "a"), *_refused("purge"), ("purge", 3, 1)]
    yield Vector("inputs/invalid-purge", title, EMPTY, script(EMPTY, calls), CORE | {"purge"})
    calls = [*begun, *_refused("inventory"), ("inventory", None, 1)]
    yield Vector("inputs/invalid-inventory", title, EMPTY, script(EMPTY, calls), CORE | {"inventory"})
    calls = [*started, ("take_lock", "a", "a", "a")]
    calls += [*_refused("take_lock", "lock_of", "persist", "cancel", "free"), ("persist", "a", "a", "{}")]
    yield Vector("inputs/invalid-locks", title, EMPTY, script(EMPTY, calls), CORE | TAKES)
    yield Vector(
        "inputs/distinct", "keys and run ids that differ in a byte are not the same",
        EMPTY, script(EMPTY, _distinct()), also=("IN-2",),
    )  # fmt: skip
    yield Vector(
        "inputs/distinct-holders", "holders and locked runs that differ in a byte are not the same",
        EMPTY, script(EMPTY, HOLDERS), CORE | TAKES, also=("IN-2",),
    )  # fmt: skip
    yield Vector(
        "inputs/longest", "200 characters, and every one of the alphabet, are kept as they are",
        EMPTY, script(EMPTY, LONGEST), also=("IN-1",),
    )  # fmt: skip


def _numbered(some: list[Trace]) -> Iterator[tuple[str, Trace]]:
    """Number traces from 1, a single one not at all."""
    yield from ((f"-{n}" if len(some) > 1 else "", trace) for n, trace in enumerate(some, 1))


VECTORS = {"reservations": reservations, "locks": locks, "inputs": inputs}
"""The vectors of each file."""
