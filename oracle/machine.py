"""A Hypothesis machine of interleaved callers, beyond the scopes that are walked whole.

Each rule takes one action on the model and the subject and compares answer and table. It goes where the
walk does not: more callers, more keys, longer, and with faults. It is steered: most beginnings draw an
operation that changes the present table, and one rule carries all faults. Steering depends on drawn
values and the model's present state alone; nothing is remembered across examples, and no rule puts the
table into a state.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from startonce.model.interleaving import Action, World
from startonce.model.operations import READS, Call, Fault, upcoming
from startonce.model.reservation import EMPTY, NOTHING, Database
from startonce.oracle import scopes
from startonce.oracle.ledger import Divergence, Ledger
from startonce.oracle.lockstep import Diverged, Lockstep
from startonce.oracle.subject import DENY, FAULTS, OPERATIONS, REPLICA, Subject

CALLERS = ("A", "B", "C", "D")
KEYS = ("k1", "k2", "k3")
RUNS = ("r1", "r2", "r3", "r4")
HOLDERS = ("h1", "h2")
RESULT = '{"value": 1}'

NUMBERS = st.sampled_from(range(7 * 5040))
"""A place in a list of any length up to ten, or in a longer one: each about equally likely."""

Steering = tuple[str, ...]

WIDE: Steering = ("core",) * 20 + ("beyond",) + ("near",) * 2 + ("fault",) * 6
"""Of 29 steps: begin what changes the table, on the keys of the scope *edges* or beyond it; begin
something on what is there, or anything, refused or not; let a fault happen."""

DEEP: Steering = ("core",) * 6 + ("beyond",) + ("locks",) * 6 + ("near",) * 10 + ("fault",) * 6
"""The same with more on run locks and more that is refused, and fewer tables."""

Choice = tuple[str, tuple[Any, ...]]


class Machine(RuleBasedStateMachine):
    """Interleaved callers on a subject beside the model. `tally` collects what it does."""

    subject: ClassVar[Subject]
    tally: ClassVar["Tally"]
    steering: ClassVar[Steering] = WIDE

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.lockstep: Lockstep

    @initialize(number=st.sampled_from(range(10)))
    def begin(self, number: int) -> None:
        """Most examples begin on an empty table, some on a database in which no key was ever used."""
        unused = 1 if self.steering is WIDE else 4
        nothing = number < unused and self.subject.absent
        self.lockstep = Lockstep(self.subject, NOTHING if nothing else EMPTY)

    def _do(self, action: Action) -> None:
        self.now += 1
        before = self.lockstep.world
        self.lockstep.do(action._replace(now=self.now))
        self.tally.note(action, before, self.lockstep)

    def _world(self) -> World:
        return self.lockstep.world

    def _begin(self, caller: str, choice: Choice, fault: Fault = Fault.NONE) -> None:
        operation, args = choice
        self._do(Action("run", caller, operation, args, fault=fault))

    def _advance(self, caller: str, fault: Fault = Fault.NONE) -> None:
        call = self._world().call(caller)
        assert call is not None
        self._do(Action("run", caller, call.operation, call.args, fault=fault))

    @rule(caller=st.sampled_from(CALLERS), number=NUMBERS, turn=st.sampled_from(range(len(WIDE))))
    def step(self, caller: str, number: int, turn: int) -> None:
        """One caller moves, or a fault befalls it. One rule: Hypothesis would leave out others at times."""
        what = self.steering[turn]
        if what == "fault":
            self._fault(caller, number % 7, number // 7)
        elif self._world().call(caller) is not None:
            self._advance(caller)
        elif what == "near":
            choices = near(self._world().db) if number % 3 else every_operation(self.now)
            self._begin(caller, self._pick(choices, number // 3) or self._any(number))
        elif what == "locks":
            choices = tuple(changing_locks(self._world().db))
            self._begin(caller, self._pick(choices, number) or self._any(number))
        else:
            self._moves(caller, number, core=what == "core")

    def _moves(self, caller: str, number: int, core: bool) -> None:
        """An idle caller begins an operation that changes the table."""
        if self._world().denied:
            self._do(Action("allow"))
        self._begin(caller, self._pick(changing(self._world().db, core), number) or self._any(number))

    def _fault(self, caller: str, kind: int, number: int) -> None:
        """Something befalls a caller, the replica, or the permission to write."""
        world, able = self._world(), self.subject.capabilities
        kinds = [Fault.NOT_APPLIED, Fault.LOST, Fault.LATE] if FAULTS in able else []
        possible: list[str] = [*kinds, *(["crash"] if world.calls else [])]
        possible += ["land"] * len(world.late)
        possible += ["stale"] if REPLICA in able else []
        possible += ["deny"] if DENY in able and world.db.rows and not world.denied else []
        match possible[kind % len(possible)] if possible else "none":
            case "land":
                self._do(Action("land", world.late[0][0]))
            case "crash":
                self._do(Action("crash", world.calls[number % len(world.calls)][0]))
            case "deny":
                self._do(Action("deny"))
            case "stale":
                self._stale(caller, number)
            case fault:
                self._under(Fault(fault), caller, number)

    def _under(self, fault: Fault, caller: str, number: int) -> None:
        call = self._world().call(caller)
        choice: Choice | None = None
        if call is None:
            db = self._world().db
            choices = near(db) if number % 3 == 0 else changing(db, True)
            choice = self._pick(choices, number // 3) or self._any(number)
            call = Call(*choice, 0)
        if fault is Fault.LATE and upcoming(call) in READS:
            fault = Fault.LOST
        if choice is not None:
            self._begin(caller, choice, fault)
        else:
            self._advance(caller, fault)

    def _stale(self, caller: str, number: int) -> None:
        world = self._world()
        call = world.call(caller)
        if world.replica is None:
            self._do(Action("pin"))
        elif call is not None and upcoming(call) in READS:
            self._advance(caller, Fault.STALE)
        elif call is None and number % 4:
            reads: tuple[Choice, ...] = (("read", (KEYS[number % 3],)), ("for_runs", RUNS[: number % 5]))
            self._begin(caller, self._pick(reads, number) or reads[0], Fault.STALE)
        else:
            self._do(Action("unpin"))

    def _any(self, number: int) -> Choice:
        choice = self._pick(every_operation(self.now), number)
        assert choice is not None
        return choice

    def _pick(self, choices: tuple[Choice, ...], number: int) -> Choice | None:
        able = self.subject.capabilities
        if not able >= OPERATIONS:
            choices = tuple(choice for choice in choices if choice[0] in able)
        return choices[number % len(choices)] if choices else None

    def teardown(self) -> None:
        """Judge the whole example and let go of everything."""
        if not hasattr(self, "lockstep"):
            return
        try:
            self.lockstep.finish()
        finally:
            self.lockstep.close()
            self.tally.example(self.lockstep)


def every_operation(now: int) -> tuple[Choice, ...]:
    """Return every operation with arguments in the machine's scope, at a clock reading."""
    return (*_timeless_operations(), ("purge", (max(0, now - 5), 2)), ("purge", (now, 1)))


@lru_cache(maxsize=1)
def _timeless_operations() -> tuple[Choice, ...]:
    pairs = [(key, run_id) for key in KEYS for run_id in RUNS]
    return (
        *(("reserve", pair) for pair in pairs),
        *(("claim", pair) for pair in pairs),
        *(("release", pair) for pair in pairs),
        *(("settle", (run_id,)) for run_id in RUNS),
        *(("read", (key,)) for key in KEYS),
        *(("for_runs", RUNS[:n]) for n in range(len(RUNS) + 1)),
        ("inventory", (None, 10)),
        ("inventory", (("k1", "r1"), 2)),
        *(("take_lock", (*pair, holder)) for pair in pairs[:4] for holder in HOLDERS),
        *(("persist", (run_id, holder, RESULT)) for run_id in RUNS[:2] for holder in HOLDERS),
        *(("lock_of", (run_id,)) for run_id in RUNS),
        *(("cancel", (run_id,)) for run_id in RUNS),
        *(("free", (key,)) for key in KEYS),
        ("fence", ()),
        ("close_fence", ()),
        ("open_fence", ()),
    )


@lru_cache(maxsize=65536)
def changing(db: Database, core: bool) -> tuple[Choice, ...]:
    """Return the operations that change a table. `core`: on the keys and runs of the scope *edges*."""
    keys, runs = (KEYS[:2], RUNS[:3]) if core else (KEYS, RUNS)
    rows = db.rows or ()
    found: list[Choice] = [
        ("reserve", (key, run_id)) for key in keys if db.row(key) is None for run_id in runs
    ]
    for row in rows:
        if row.key not in keys:
            continue
        if row.state == "reserved":
            found += [("claim", (row.key, row.run_id)), ("settle", (row.run_id,))]
        elif row.state == "started":
            found += [("release", (row.key, row.run_id)), ("settle", (row.run_id,))]
        else:
            later = {other.updated_at + 1 for other in rows if other.updated_at >= row.updated_at}
            found += [("purge", (horizon, 10)) for horizon in sorted(later)]
    if not core:
        found += changing_locks(db)
    return tuple(found)


@lru_cache(maxsize=65536)
def near(db: Database) -> tuple[Choice, ...]:
    """Return the operations on the rows and locks that are there, whatever comes of them."""
    found: list[Choice] = [("inventory", (None, 10)), ("fence", ())]
    found += [("read", ("k1",)), ("claim", ("k1", "r1"))] * 4 if db.rows is None else []
    pairs = [("k1", "r1")] if db.rows is None else [(row.key, row.run_id) for row in db.rows]
    for pair in pairs:
        found += [("claim", pair), ("release", pair), ("settle", pair[1:]), ("cancel", pair[1:])]
        found += [("read", pair[:1]), ("for_runs", pair[1:]), ("free", pair[:1])]
        found += [("take_lock", (*pair, holder)) for holder in HOLDERS]
    for row in db.rows or ():
        found += [("purge", (row.updated_at + late, limit)) for late in (0, 1) for limit in (1, 10)]
    for lock in db.locks or ():
        found += [("lock_of", (lock.run_id,)), ("inventory", (None, 10))]
        found += [("persist", (lock.run_id, lock.holder, RESULT))] * 2 if lock.holder in HOLDERS else []
        found += [("persist", (lock.run_id, holder, RESULT)) for holder in HOLDERS]
    return tuple(found)


def changing_locks(db: Database) -> list[Choice]:
    """Return the operations that change a run lock or the fence."""
    found: list[Choice] = [("close_fence", ())]
    if db.fence_closed:
        found = [("open_fence", ())]
    for row in db.rows or ():
        if row.state == "started" and db.lock(row.run_id) is None:
            found += [("take_lock", (row.key, row.run_id, holder)) for holder in HOLDERS]
            found += [("free", (row.key,)), ("cancel", (row.run_id,))]
    for lock in db.locks or ():
        if not lock.ended and lock.holder in HOLDERS:
            found.append(("persist", (lock.run_id, lock.holder, RESULT)))
    return found


@dataclass
class Tally:
    """What the machine did over all examples; nothing of it steers anything."""

    steps: int = 0
    faults: int = 0
    examples: int = 0
    reached: set[tuple[Any, ...]] = field(default_factory=set)
    judged: list[str] = field(default_factory=list)
    progress: Callable[[int], None] = lambda steps: None

    def note(self, action: Action, before: World, lockstep: Lockstep) -> None:
        """Count an action, and the edge of the scope *edges* that it was."""
        self.steps += 1
        if action.do != "run" or (lockstep.steps and lockstep.steps[-1].fault is not Fault.NONE):
            self.faults += 1
        elif before.db.rows is not None and before.db.rows != lockstep.world.db.rows:
            self._reach(before.db, lockstep.steps[-1].call)

    def _reach(self, db: Database, call: Call) -> None:
        args = call.args
        rows = tuple(row for row in db.rows or () if row.key in scopes.EDGES.keys)
        if any(row.run_id not in scopes.EDGES.runs for row in rows):
            return
        if call.operation == "purge":
            args = tuple(row.key for row in rows if row.updated_at < call.args[0])
        self.reached.add((tuple(row[:3] for row in rows), call.operation, args))

    def example(self, lockstep: Lockstep) -> None:
        """Take over what one example evaluated."""
        self.examples += 1
        self.judged += lockstep.judged
        self.progress(len(lockstep.actions))

    def share(self) -> float:
        """Return the share of the effective edges of the scope *edges* that was reached."""
        every = effective_edges()
        return sum(edge in self.reached for edge in every) / len(every)


@lru_cache(maxsize=1)
def effective_edges() -> tuple[tuple[Any, ...], ...]:
    """Return the effective edges of the scope *edges*, as the tally names them.

    A purge is named by those of its keys that have a row: with one row the purges of its key, with and
    without the absent one, are reached together.
    """
    found = []
    for table in scopes.tables(scopes.EDGES.keys, scopes.EDGES.runs):
        for edge in scopes.whole_edges(table, scopes.EDGES.keys, scopes.EDGES.runs):
            args = edge.call.args
            if edge.call.operation == "purge":
                rows = edge.before.rows or ()
                args = tuple(row.key for row in rows if row.updated_at < scopes.HORIZON)
            if edge.effective:
                found.append((tuple(row[:3] for row in table.rows or ()), edge.call.operation, args))
    return tuple(found)


def drive(
    subject: Subject,
    ledger: Ledger,
    *,
    examples: int = 500,
    steps: int = 50,
    seed_: int = 1,
    shrink: bool = True,
    steering: Steering = WIDE,
    progress: Callable[[int], None] = lambda steps: None,
) -> tuple[Tally, Divergence | None]:
    """Run the machine on a subject; give what it did, and the shrunk divergence if there is one.

    The same seed takes the same steps. Without `shrink` the divergence is as it was met. A failure that
    does not repeat is reported with the clause that the first failure broke.
    """
    tally = Tally(progress=progress)
    bound = type("Bound", (Machine,), {"subject": subject, "tally": tally, "steering": steering})
    configured = settings(
        max_examples=examples,
        stateful_step_count=steps,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        print_blob=False,
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    divergence = None
    try:
        seed(seed_)(bound)
        run_state_machine_as_test(bound, settings=configured)
    except Diverged as diverged:
        divergence = diverged.divergence
    except Flaky as flaky:
        found = [e for e in _leaves(flaky) if isinstance(e, Diverged)]
        if not found:
            raise
        divergence = found[0].divergence._replace(check="machine, does not repeat")
    ledger.count(tally.judged, "machine")
    if divergence is not None:
        ledger.violated(divergence)
    return tally, divergence


def _leaves(error: BaseException) -> list[BaseException]:
    inner = getattr(error, "exceptions", ()) or tuple(filter(None, (error.__cause__, error.__context__)))
    return [error, *(leaf for one in inner for leaf in _leaves(one))]
