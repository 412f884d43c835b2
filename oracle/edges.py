"""Every edge of the walked scopes, refusals included, executed on a subject. No sampling.

After each edge the answer and the whole table are compared with the model's, and every clause that says
something about the step is evaluated on what was observed. A caller that the scope holds inside an
operation is really held: its operation was begun and its first statement run.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from startonce.model.interleaving import Action
from startonce.model.operations import Call, Fault
from startonce.model.predicates import GOES_ON, judge
from startonce.model.reservation import EMPTY, Database
from startonce.oracle import scopes
from startonce.oracle.ledger import Divergence, Ledger
from startonce.oracle.scopes import EDGES, STATEMENTS, Edge, Graph, Scope
from startonce.oracle.subject import FAULTS, STEPPING, Held, Subject

Progress = Callable[[int], None]


class Walked(NamedTuple):
    """How much of a scope was executed: `states` are tables, with their callers where those are held."""

    name: str
    what: str
    states: int
    edges: int
    effective: int
    executed: int
    how: str = "executed"


BLAME = {
    "reserve": "RSV-3", "claim": "CLM-1", "release": "REL-1", "settle": "SET-1", "read": "RD-3",
    "for_runs": "RUN-1", "purge": "PRG-1", "inventory": "INV-1", "take_lock": "LCK-2",
    "lock_of": "RD-3", "persist": "LCK-1", "fence": "RD-3", "close_fence": "STA-3",
    "open_fence": "STA-3", "cancel": "DUT-3", "free": "FRE-2",
}  # fmt: skip
"""The clause that names a divergence which breaks none of the predicates."""


LOCKS = {"take_lock", "lock_of", "persist"}

NEEDED = {
    "for_runs": "RUN-1 RUN-2 RUN-3",
    "purge": "PRG-1 PRG-2",
    "inventory": "INV-1 INV-2",
    "cancel": "DUT-3",
    "free": "FRE-1 FRE-2 FRE-3 FRE-4",
    "take_lock": "DB-1 LCK-1 LCK-2 LCK-3 LCK-5",
}
"""Clauses that only an operation which a subject need not have can show."""


def walk(subject: Subject, ledger: Ledger, progress: Progress = lambda edges: None) -> list[Walked]:
    """Execute every edge of whole operations; give what was walked."""
    walker = _Walker(subject, ledger, progress)
    reports = [walker.whole_operations(), walker.reads(), walker.clocks(), walker.bare()]
    if subject.capabilities >= LOCKS:
        reports.append(walker.locks())
        if STEPPING in subject.capabilities:
            reports.append(walker.held_locks())
    walker.finish()
    for operation, clauses in NEEDED.items():
        if operation not in subject.capabilities:
            ledger.not_checked(clauses.split(), f"the subject has no {operation}")
    return reports


def walk_statements(
    subject: Subject,
    ledger: Ledger,
    scopes_: Sequence[Scope] = STATEMENTS,
    progress: Progress = lambda edges: None,
) -> list[Walked]:
    """Execute every edge of scopes in which callers are held between their statements."""
    if STEPPING not in subject.capabilities:
        return []
    walker = _Walker(subject, ledger, progress)
    reports = [walker.statements(scope) for scope in scopes_]
    walker.finish()
    return reports


class _Walker:
    def __init__(self, subject: Subject, ledger: Ledger, progress: Progress) -> None:
        self.subject = subject
        self.ledger = ledger
        self.progress = progress
        self.kept: Counter[int] = Counter()
        self.edges: dict[int, tuple[Edge, str]] = {}
        self.executed = 0
        self.present: Sequence[Any] = ()
        self.diverged: set[tuple[Database, Call]] = set()
        self.otherwise = False  # whether the clock is another one than in `diverged`

    def finish(self) -> None:
        """Count what every kept edge evaluated, once for each time that it was executed."""
        for number, times in self.kept.items():
            edge, check = self.edges[number]
            self.ledger.count(edge.clauses(), check, times)

    # --- the scopes ---------------------------------------------------------------------------------

    def whole_operations(self) -> Walked:
        """Walk the scope *edges*: whole operations from every table."""
        self._empty()
        count, executed = Counter[str](), self.executed
        for table in scopes.tables(EDGES.keys, EDGES.runs):
            edges = self._able(scopes.whole_edges(table, EDGES.keys, EDGES.runs))
            self._from_table([(edge, None) for edge in edges], (), "edges")
            self._tally(count, edges)
        self._nothing_else()
        return Walked("edges", "2 keys, 3 runs", *_counts(count, self.executed - executed))

    def reads(self) -> Walked:
        """Walk every read and a purge of one row, from every table of the scope *edges*."""
        self._empty()
        count, executed = Counter[str](), self.executed
        for table in scopes.tables(EDGES.keys, EDGES.runs):
            edges = self._able(scopes.read_edges(table, EDGES.keys, EDGES.runs))
            self._from_table([(edge, None) for edge in edges], (), "edges")
            self._tally(count, edges)
        self._nothing_else()
        return Walked("reads", "2 keys, 3 runs", *_counts(count, self.executed - executed))

    def clocks(self) -> Walked:
        """Walk the scope *edges* again under other clocks: no transition may depend on one (STA-8)."""
        self._empty()
        count, executed = Counter[str](), self.executed
        for table in scopes.tables(EDGES.keys, EDGES.runs):
            edges = self._able(scopes.whole_edges(table, EDGES.keys, EDGES.runs))
            again = list(scopes.other_clocks(edges))
            self.otherwise = True
            before = len(self.ledger.divergences)
            self._from_table([(edge, None) for edge in again], (), "edges")
            if len(self.ledger.divergences) == before:
                self.ledger.count(["STA-8"], "edges", len(again))
            self.otherwise = False
            self._tally(count, again)
        return Walked("clocks", "2 keys, 3 runs, 3 clocks", *_counts(count, self.executed - executed))

    def statements(self, scope: Scope) -> Walked:
        """Walk a scope in which callers are held between their statements."""
        graph = scopes.graph(scope)
        self._empty()
        count, executed = Counter[str](), self.executed
        for held, some in graph.by_held.items():
            self._statements(graph, held, some, count)
        self._nothing_else()
        what = f"{_n(scope.keys, 'key')}, {_n(scope.runs, 'run')}, {scope.callers} callers"
        return Walked("statements", what, *_counts(count, self.executed - executed))

    def _statements(
        self, graph: Graph, held: scopes.Held, some: list[Database], count: Counter[str]
    ) -> None:
        callers: list[Held | None] = [None] * len(held)
        for table in some:
            for caller, call in enumerate(held):
                if call is not None and callers[caller] is None:
                    callers[caller] = self._hold(caller, call)
            edges = list(scopes.edges_from(graph.scope, table, held))
            for caller in self._from_table(edges, callers, "statements"):
                callers[caller] = None
            self._tally(count, [edge for edge, _ in edges])
        for caller_held in callers:
            if caller_held is not None:
                caller_held.crash()

    def locks(self) -> Walked:
        """Walk every operation on run locks, and every other one beside them."""
        count, executed = Counter[str](), self.executed
        for table in scopes.lock_tables():
            edges = self._able(list(scopes.lock_edges(table)))
            self._each(edges, "locks")
            self._tally(count, edges)
        return Walked("locks", "1 key, 2 runs, 2 holders", *_counts(count, self.executed - executed))

    def held_locks(self) -> Walked:
        """Walk every statement of a caller held inside a take, a cancel or a free, from every table."""
        count, executed = Counter[str](), self.executed
        for table in scopes.lock_tables():
            edges = [
                scopes.held_edge(table, call)
                for call in scopes.lock_calls()
                if call.heard != (None,) or FAULTS in self.subject.capabilities
            ]
            for edge in edges:
                self._hold_and_run(edge, "locks")
            self._tally(count, edges)
        return Walked("held locks", "1 key, 2 runs, 2 holders", *_counts(count, self.executed - executed))

    def bare(self) -> Walked:
        """Walk every operation on databases in which tables are missing."""
        edges = self._able(list(scopes.bare_edges()))
        if not self.subject.capabilities >= LOCKS:  # it knows no half of a schema
            edges = [e for e in edges if (e.before.rows is None) == (e.before.locks is None)]
        if not self.subject.absent:
            edges = [e for e in edges if None not in (e.before.rows, e.before.locks)]
        if "fence" not in self.subject.capabilities:
            edges = [e for e in edges if e.before.fence_closed is None]
        count, executed = Counter[str](), self.executed
        self._each(edges, "edges")
        for before in {edge.before for edge in edges}:
            self._tally(count, [edge for edge in edges if edge.before == before])
        return Walked("bare", "missing tables, 3 fences", *_counts(count, self.executed - executed))

    def _able(self, edges: Sequence[Edge]) -> Sequence[Edge]:
        able = self.subject.capabilities
        return [edge for edge in edges if edge.call.operation in able]

    def _tally(self, count: Counter[str], edges: Iterable[Edge]) -> None:
        count["tables"] += 1
        number = 0
        for edge in edges:
            number += 1
            count["effective"] += edge.effective
        count["edges"] += number
        self.progress(number)

    # --- executing ----------------------------------------------------------------------------------

    def _from_table(
        self,
        edges: list[tuple[Edge, int | None]],
        callers: Iterable[Held | None],
        check: str,
    ) -> list[int]:
        """Execute edges, most from one table; give the held callers that have ended."""
        held = tuple(callers)
        subject, kept = self.subject, self.kept
        ended = []
        for edge, caller in edges:
            rows = edge.before.rows or ()
            if rows != self.present:
                subject.put_rows(rows, self.present)
            moving = held[caller] if caller is not None else None
            if moving is not None:
                ended.append(caller)
            else:
                moving = subject.begin(len(held) if caller is None else caller, edge.call)
            outcome = moving.step()
            while outcome is None and edge.statement is None:
                outcome = moving.step()
            answer = GOES_ON if outcome is None else outcome.answer
            self.present = subject.dump_rows()
            self.executed += 1
            if answer == edge.answer and self.present == edge.after.rows:
                number = id(edge)
                kept[number] += 1
                if number not in self.edges:
                    self.edges[number] = (edge, check)
            else:
                self._diverged(edge, subject.dump(), answer, check)
            if outcome is None:
                moving.crash()
        return [caller for caller in ended if caller is not None]

    def _each(self, edges: Iterable[Edge], check: str) -> None:
        """Execute whole operations, each from a database put for it."""
        before: Database | None = None
        for edge in edges:
            if edge.before != before:
                self.subject.put(edge.before)
            held = self.subject.begin(0, edge.call)
            outcome = held.step()
            while outcome is None:
                outcome = held.step()
            after = self.subject.dump()
            self._compare(edge, after, outcome.answer, check)
            before = after

    def _hold_and_run(self, edge: Edge, check: str) -> None:
        held = self._hold(0, edge.call)
        self.subject.put(edge.before)
        if held is None:
            return
        outcome = held.step()
        answer = GOES_ON if outcome is None else outcome.answer
        held.crash()
        self._compare(edge, self.subject.dump(), answer, check)

    def _compare(self, edge: Edge, after: Database, answer: Any, check: str) -> None:
        self.executed += 1
        if answer == edge.answer and after == edge.after:
            self.ledger.count(edge.clauses(), check)
        else:
            self._diverged(edge, after, answer, check)

    def _hold(self, caller: int, call: Call) -> Held | None:
        """Bring a caller to where a scope holds it, by running its statements until there for real."""
        before = scopes.held_from(call)
        if call.operation == "reserve":
            self.subject.put_rows(before.rows or (), self.present)
        else:
            self.subject.put(before)
        begun = call._replace(heard=())
        held = self.subject.begin(caller, begun)
        for reply in call.heard:
            edge = scopes.single(before, begun)
            fault = Fault.LOST if reply is None else Fault.NONE
            outcome = held.step(fault)
            if outcome is not None:
                self._diverged(edge, self.subject.dump(), outcome.answer, "statements", fault)
                held.crash()
                return None
            before, begun = edge.after, begun._replace(heard=(*begun.heard, reply))
        self.present = self.subject.dump_rows()
        return held

    def _empty(self) -> None:
        self.subject.put(EMPTY)
        self.present = self.subject.dump_rows()

    def _nothing_else(self) -> None:
        """After a walk over reservations alone there must be no lock and no fence."""
        left = self.subject.dump()
        if left.locks or left.fence_closed is not None:
            edge = scopes.whole(EMPTY, "read", "k1")
            self._diverged(edge, left, None, "edges")

    def _diverged(
        self, edge: Edge, after: Database, answer: Any, check: str, fault: Fault = Fault.NONE
    ) -> None:
        clauses = blamed(edge, after, answer, fault)
        at_the_other_time = (edge.before, edge.call._replace(now=scopes.NOW))
        if self.otherwise and at_the_other_time not in self.diverged:
            clauses = ("STA-8", *clauses)  # it is the clock that makes the difference
        self.diverged.add((edge.before, edge.call))
        action = Action(
            "run", "A", edge.call.operation, edge.call.args, edge.call.now, edge.statement or "", fault
        )
        self.ledger.violated(
            Divergence(
                clauses,
                check,
                edge.before,
                (action,),
                (edge.answer, edge.after),
                (answer, after),
            )
        )


def blamed(edge: Edge, after: Database, answer: Any, fault: Fault = Fault.NONE) -> tuple[str, ...]:
    """Name the clauses that an observed step breaks, the most telling first."""
    step = edge.step(after, answer)._replace(fault=fault)
    broken = [clause for clause, kept in judge(step) if not kept]
    return tuple(dict.fromkeys(broken)) or (BLAME[edge.call.operation],)


def _counts(count: Counter[str], executed: int) -> tuple[int, int, int, int]:
    return count["tables"], count["edges"], count["effective"], executed


def _n(some: tuple[str, ...], noun: str) -> str:
    return f"{len(some)} {noun}{'s' if len(some) > 1 else ''}"
