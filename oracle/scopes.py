"""The scopes that are walked whole: which tables, which callers held where, which edges.

All from the model. A table stands for all tables that differ only in their times; an edge carries the
concrete table on which it is executed, chosen so that times matter: a row is older than the purge's
horizon or exactly as old.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, combinations, product
from typing import Any, NamedTuple

from startonce.model.operations import Call, Ended, Fault, advance, run, upcoming
from startonce.model.predicates import GOES_ON, Step, judge
from startonce.model.reservation import Database, Lock, Reservation, State

NOW = 5
HORIZON = 2
OLD, YOUNG = HORIZON - 1, HORIZON


class Scope(NamedTuple):
    """So many keys, runs and callers that can be held inside `reserve`."""

    name: str
    keys: tuple[str, ...]
    runs: tuple[str, ...]
    callers: int


EDGES = Scope("edges", ("k1", "k2"), ("r1", "r2", "r3"), 0)
STATEMENTS = (
    Scope("statements", ("k1",), ("r1", "r2", "r3"), 3),
    Scope("statements", ("k1", "k2"), ("r1", "r2", "r3"), 2),
)


class Edge(NamedTuple):
    """One thing to execute: from this table, this statement or whole operation, and what must follow."""

    call: Call
    statement: str | None
    before: Database
    after: Database
    answer: Any
    then: Call | None
    """The call held afterwards, where the operation goes on."""

    @property
    def effective(self) -> bool:
        """Whether the table changes."""
        return self.before != self.after

    def step(self, after: Database, answer: Any) -> Step:
        """Return the observed step: this edge, with what was observed."""
        return Step(self.call, self.statement, Fault.NONE, self.before, after, answer, self.before)

    def clauses(self) -> tuple[str, ...]:
        """Return the clauses that say something about this edge when it does as it must."""
        return tuple(clause for clause, _ in judge(self.step(self.after, self.answer)))


def timeless(db: Database) -> Database:
    """Return the table with all times forgotten."""
    if db.rows is None:
        return db
    return db._replace(rows=tuple(row._replace(created_at=0, updated_at=0) for row in db.rows))


def dated(db: Database, old: Sequence[str] = ()) -> Database:
    """Return the table with times: the rows of some keys are older than the horizon."""
    if db.rows is None:
        return db
    return db._replace(
        rows=tuple(row._replace(updated_at=OLD if row.key in old else YOUNG) for row in db.rows)
    )


def tables(keys: Sequence[str], runs: Sequence[str]) -> Iterator[Database]:
    """Give every table over some keys and runs."""
    rows = [[None, *((run_id, state) for run_id in runs for state in State)] for _ in keys]
    for choice in product(*rows):
        yield Database(
            rows=tuple(
                Reservation(key, row[0], row[1], 0, 0)
                for key, row in zip(keys, choice, strict=True)
                if row is not None
            ),
            locks=(),
        )


def whole(db: Database, operation: str, *args: Any, now: int = NOW) -> Edge:
    """Return the edge of a whole operation on a table that has its times."""
    after, answer = run(db, operation, *args, now=now)
    return Edge(Call(operation, args, now), None, db, after, answer, None)


def single(db: Database, call: Call) -> Edge:
    """Return the edge of the next statement of a call on a table that has its times."""
    after, then = advance(db, call)
    if isinstance(then, Ended):
        return Edge(call, upcoming(call), db, after, then.answer, None)
    return Edge(call, upcoming(call), db, after, GOES_ON, then)


@cache
def one_statement_edges(db: Database, keys: tuple[str, ...], runs: tuple[str, ...]) -> tuple[Edge, ...]:
    """Return the edges of claim, release, settle, and purge of any subset of the keys."""
    here = dated(db)
    calls: list[tuple[str, ...]] = [
        (name, key, run_id) for name in ("claim", "release") for key in keys for run_id in runs
    ]
    calls += [("settle", run_id) for run_id in runs]
    edges = [single(here, Call(name, tuple(args), NOW)) for name, *args in calls]
    subsets = chain.from_iterable(combinations(keys, n) for n in range(1, len(keys) + 1))
    purge = Call("purge", (HORIZON, 10), NOW)
    return (*edges, *(single(dated(db, old), purge) for old in subsets))


@cache
def begin_edges(db: Database, keys: tuple[str, ...], runs: tuple[str, ...]) -> tuple[Edge, ...]:
    """Return the edges of an idle caller: the inserts of every reserve."""
    calls = (Call("reserve", (key, run_id), NOW) for key in keys for run_id in runs)
    return tuple(single(dated(db), call) for call in calls)


@cache
def held_edge(db: Database, call: Call) -> Edge:
    """Return the edge of a caller held inside its operation."""
    return single(dated(db), call)


@cache
def whole_edges(db: Database, keys: tuple[str, ...], runs: tuple[str, ...]) -> tuple[Edge, ...]:
    """Return every edge of whole operations of a reservation that can write: the scope *edges*."""
    reserves = (whole(dated(db), "reserve", key, run_id) for key in keys for run_id in runs)
    single_statement = one_statement_edges(db, keys, runs)
    return (*reserves, *(edge._replace(statement=None) for edge in single_statement))


@cache
def read_edges(db: Database, keys: tuple[str, ...], runs: tuple[str, ...]) -> tuple[Edge, ...]:
    """Return every read: of each key, of each subset of the runs, with a repeat, of every page."""
    here = dated(db)
    subsets = chain.from_iterable(combinations(runs, n) for n in range(len(runs) + 1))
    pages = [(None, 10), (None, 1), *(((key, runs[0]), 10) for key in keys)]
    return (
        *(whole(here, "read", key) for key in keys),
        *(whole(here, "for_runs", *some) for some in subsets),
        whole(here, "for_runs", runs[0], runs[0]),
        *(whole(here, "inventory", after, limit) for after, limit in pages),
        whole(here, "purge", HORIZON + 1, 1),
    )


def other_clocks(edges: Sequence[Edge]) -> Iterator[Edge]:
    """Give edges again, with a clock that stands still, runs backwards, or is far ahead (STA-8)."""
    for now in (0, HORIZON, 10**15):
        for edge in edges:
            yield whole(edge.before, edge.call.operation, *edge.call.args, now=now)


Held = tuple[Call | None, ...]
Place = tuple[Database, Held]


class Graph(NamedTuple):
    """Every reachable state of a scope, grouped by where its callers are held."""

    scope: Scope
    by_held: dict[Held, list[Database]]
    states: int
    edges: int


def edges_from(scope: Scope, db: Database, held: Held) -> Iterator[tuple[Edge, int | None]]:
    """Give every edge from a state, with the caller that it moves, or None for a single statement."""
    for edge in one_statement_edges(db, scope.keys, scope.runs):
        yield edge, None
    for caller, call in enumerate(held):
        if call is not None:
            yield held_edge(db, call), caller
        else:
            for edge in begin_edges(db, scope.keys, scope.runs):
                yield edge, caller


def graph(scope: Scope) -> Graph:
    """Return every state that a scope reaches from the empty table, by breadth-first search."""
    start: Place = (Database(rows=(), locks=()), (None,) * scope.callers)
    seen = {start}
    frontier = [start]
    edges = 0
    while frontier:
        reached = []
        for db, held in frontier:
            for edge, caller in edges_from(scope, db, held):
                edges += 1
                then = held
                if caller is not None:
                    call = edge.then and edge.then._replace(now=NOW)
                    then = (*held[:caller], call, *held[caller + 1 :])
                state = (_timeless(edge.after), then)
                if state not in seen:
                    seen.add(state)
                    reached.append(state)
        frontier = reached
    by_held: dict[Held, list[Database]] = {}
    for db, held in seen:
        by_held.setdefault(held, []).append(db)
    for some in by_held.values():
        some.sort()
    ordered = dict(sorted(by_held.items(), key=lambda item: str(item[0])))
    return Graph(scope, ordered, len(seen), edges)


_timeless = cache(timeless)


# --- run locks, the fence, and what does not exist -----------------------------------------------------


def lock_tables() -> Iterator[Database]:
    """Give every table of one key and two runs with every lock that each run can have."""
    executions = [(holder, ended) for holder in ("h1", "h2") for ended in (False, True)]
    kinds = [None, *executions, ("cancel", False), ("free", False)]
    for table in tables(("k1",), ("r1", "r2")):
        for choice in product(kinds, repeat=2):
            locks = tuple(
                Lock(
                    run_id,
                    None if kind[0] == "cancel" else "k1",
                    kind[0],
                    kind[1],
                    "{}" if kind[1] else None,
                    0,
                )
                for run_id, kind in zip(("r1", "r2"), choice, strict=True)
                if kind is not None
            )
            yield table._replace(locks=locks)


def lock_edges(db: Database) -> Iterator[Edge]:
    """Give every edge on run locks, and of everything that must leave them alone."""
    here = dated(db, ["k1"])
    for run_id in ("r1", "r2"):
        for holder in ("h1", "h2"):
            yield whole(here, "take_lock", "k1", run_id, holder)
            yield whole(here, "persist", run_id, holder, "[1]")
        yield whole(here, "lock_of", run_id)
        yield whole(here, "claim", "k1", run_id)
        yield whole(here, "release", "k1", run_id)
        yield whole(here, "settle", run_id)
        yield whole(here, "reserve", "k1", run_id)
        yield whole(here, "cancel", run_id)
    yield whole(here, "free", "k1")
    for page in ((None, 10), (None, 1), (("k1", "r1"), 10), (("k1", "r2"), 10)):
        yield whole(here, "inventory", *page)
    yield whole(here, "purge", HORIZON, 10)


def lock_calls() -> Iterator[Call]:
    """Give every way to be held inside `take_lock`, `cancel` and `free` of the key and its two runs.

    Each is where the operation gets from the database of `held_from`, the first reply lost where it
    is None.
    """
    for run_id in ("r1", "r2"):
        for taken in (True, False, None):
            yield Call("take_lock", ("k1", run_id, "h1"), NOW, (taken,))
        for operation, args in (("cancel", (run_id,)), ("free", ("k1",))):
            call = Call(operation, args, NOW)
            db = held_from(call, run_id)
            while True:
                db, then = advance(db, call)
                if isinstance(then, Ended):
                    break
                call = then
                yield call


def held_from(call: Call, run_id: str = "r1") -> Database:
    """Return the database from which a caller comes to be held where a scope holds it."""
    first = call.heard[0] if call.heard else None
    if call.operation == "reserve":
        key = call.args[0]
        return Database(() if first else (Reservation(key, "r0", State.RESERVED, 0, 0),), ())
    if call.operation == "free":
        run_id = first[0].run_id if first else run_id
    elif call.operation == "take_lock":
        run_id = call.args[1]
    if call.operation == "cancel" or (call.operation == "take_lock" and first is False):
        return Database((), ())
    return Database((Reservation("k1", run_id, State.STARTED, 0, 0),), ())


def bare_edges() -> Iterator[Edge]:
    """Give every operation on databases in which tables are missing, and on every fence."""
    operations: tuple[tuple[Any, ...], ...] = (
        ("reserve", "k1", "r1"),
        ("claim", "k1", "r1"),
        ("release", "k1", "r1"),
        ("settle", "r1"),
        ("read", "k1"),
        ("for_runs", "r1", "r2"),
        ("purge", HORIZON, 10),
        ("take_lock", "k1", "r1", "h1"),
        ("lock_of", "r1"),
        ("cancel", "r1"),
        ("free", "k1"),
        ("persist", "r1", "h1", "{}"),
        ("fence",),
        ("close_fence",),
        ("open_fence",),
    )
    started = Reservation("k1", "r1", State.STARTED, 0, YOUNG)
    halves = (
        Database(),
        Database(rows=()),
        Database(locks=()),
        Database(rows=(started,)),
        Database(rows=(), locks=()),
        Database(rows=(started,), locks=()),
    )
    for half, closed in product(halves, (None, False, True)):
        for operation, *args in operations:
            yield whole(half._replace(fence_closed=closed), operation, *args)
        if half.rows is None or half.locks is not None:
            yield whole(half._replace(fence_closed=closed), "inventory", None, 10)
