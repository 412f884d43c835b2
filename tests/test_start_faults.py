"""Every statement of a start under every fault, alone, in pairs, and with a second caller in between.

What must hold is written once, in `World` and `Caller`, and looked at in every run; `ONE_FAULT` says
for every statement and fault what exactly becomes of the start and of the callers after it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from conftest import Held, counted, ticking
from hypothesis import given, settings
from hypothesis import strategies as st

from startonce.impl.databases.sqlite import SqliteDatabase, connect
from startonce.impl.deployment import Deployment
from startonce.impl.execution import Run
from startonce.impl.start import Answer, FencedStranded, Pending, Replayed, Retry, Settled, Started
from startonce.impl.statements import CREATE_FENCE, CREATE_RESERVATIONS
from startonce.model.errors import StartOnceError, UnknownOutcome
from startonce.model.operations import Fault


class Kind(StrEnum):
    """What befalls a statement, or the caller in front of it."""

    ONCE = "not applied"
    ALWAYS = "never applied"
    LOST = "reply lost"
    SOON = "lands before the next caller"
    LATE = "lands after the next caller"
    CRASH = "crash before"
    AFTER = "crash after"
    DOWN = "nothing works any more"


READS = ("read both", "read back", "read fence", "read holder", "read lock", "read")
OF_A_READ = (Kind.ONCE, Kind.ALWAYS, Kind.CRASH)
OF_A_WRITE = (Kind.ONCE, Kind.ALWAYS, Kind.LOST, Kind.SOON, Kind.LATE, Kind.CRASH)
OF_THE_WORK = (Kind.CRASH, Kind.AFTER)


def kinds(name: str) -> tuple[Kind, ...]:
    return OF_THE_WORK if name == "execute" else OF_A_READ if name in READS else OF_A_WRITE


class World:
    """One database with key `k`, what was executed, and what must never be seen."""

    def __init__(self, database: SqliteDatabase, *, schema: bool = True) -> None:
        self.database = database
        self.raw = database.connection.execute
        self.fence = Deployment(database).fence
        for table in ("startonce_reservations", "startonce_run_locks", "startonce_fence"):
            self.raw(f"DROP TABLE IF EXISTS {table}")
        for statement in (*CREATE_RESERVATIONS, *CREATE_FENCE) if schema else ():
            self.raw(statement.sql)
        database.schema_ensured = schema
        self.clear()

    def clear(self) -> None:
        """Forget everything but the schema."""
        if self.database.schema_ensured:
            for table in ("startonce_reservations", "startonce_run_locks", "startonce_fence"):
                self.raw(f"DELETE FROM {table}")
        self.mint = counted("r")
        self.clock = ticking()
        self.executed: Counter[str] = Counter()
        self.told: set[str] = set()
        self.never: set[str] = set()
        self.drained = self.deleted = False
        self.callers: list[Caller] = []

    def execute(self, run: Run) -> str:
        assert not self.drained, "STA-11: an execution began although the deployment is drained"
        assert run.run_id not in self.never, "FRE-4: a run that was freed or cancelled executed"
        self.executed[run.run_id] += 1
        assert max(self.executed.values()) == 1, "STA-9: a run executed twice"
        assert self.deleted or len(self.executed) == 1, "STA-9: a key executed twice"
        return run.run_id

    def look(self) -> None:
        row = self.row()
        if row is not None and row[1] == "reserved":
            assert row[0] not in self.executed, "a run that executed is reserved again"

    def row(self) -> tuple[str, str] | None:
        text = "SELECT run_id, state FROM startonce_reservations WHERE key = 'k'"
        row: tuple[str, str] | None = self.raw(text).fetchone()
        return row

    def holder(self, run_id: str) -> tuple[str, int] | None:
        text = "SELECT holder, ended FROM startonce_run_locks WHERE run_id = ?"
        lock: tuple[str, int] | None = self.raw(text, (run_id,)).fetchone()
        return lock

    def caller(self, plan: Mapping[int, Kind] | None = None) -> "Caller":
        self.callers.append(Caller(self, plan or {}))
        return self.callers[-1]

    def land(self, when: Kind | None = None) -> None:
        for caller in self.callers:
            if when in (None, caller.lands):
                caller.land()
        if self.database.schema_ensured:
            self.look()

    def quiet(self) -> Answer | Exception:
        """Let fresh callers come until they hear the same twice, whatever lands; give that answer."""
        self.fence.open()
        self.drained = False
        self.land(Kind.SOON)
        last: Answer | Exception | None = None
        for turn in range(6):
            answer = self.caller().run()
            if answer == last and turn > 1:
                break
            last = answer
            if turn:
                self.land()
        else:
            raise AssertionError(f"never quiet: {last!r}")
        stranded = self.row() is not None and not isinstance(answer, Replayed | Settled | Retry)
        if stranded:
            assert isinstance(answer, Pending)
            assert any(c.may_strand for c in self.callers), f"stranded by nobody: {answer}"
        elif isinstance(answer, Replayed | Settled):
            assert self.row() in (None, (answer.run_id, "terminal")), "it is over and not settled"
        return answer


class Caller(Held):
    """A start under a plan of faults, by position, that looks at everything it does."""

    def __init__(self, world: World, plan: Mapping[int, Kind]) -> None:
        self.world = world
        self.plan = plan
        self.position = 0
        self.sticky: set[str] = set()
        self.lands = Kind.LATE
        self.crashed = self.claimed = self.refused = self.unheard = False
        self.holder = ""
        super().__init__(world.database, "k", world.mint, world.execute, world.clock)

    @property
    def may_strand(self) -> bool:
        """Say whether it may leave the key `started` for ever: section 3, H6, H7, H9."""
        stopped = self.crashed or isinstance(self.outcome, StartOnceError | FencedStranded)
        return self.claimed and (stopped or self.unheard)

    def send(self, reply: Any) -> None:
        if self.name == "read fence":
            self.refused = bool(reply) and reply[0][0] == 1
        super().send(reply)

    def throw(self, error: Exception) -> None:
        unknown = isinstance(error, UnknownOutcome)
        self.unheard |= unknown and self.name == "insert lock"
        released = unknown and self.name == "release"
        super().throw(error)
        assert not (released and self.name == "release"), "REL-4: a release was repeated"

    def advance(self) -> None:
        """Do what is next, as the plan says."""
        name, kind = self.name, self.plan.get(self.position)
        self.position += 1
        if kind is Kind.CRASH:
            return self.crash()
        self.before(name)
        if kind is Kind.AFTER:
            self.world.execute(self.request.run)  # type: ignore[union-attr]
            return self.crash()
        if kind is Kind.ALWAYS:
            self.sticky.add(name)
        if kind is Kind.DOWN:
            self.sticky |= {"*"}
        fails = kind is Kind.ONCE or name in self.sticky or "*" in self.sticky
        if kind in (Kind.SOON, Kind.LATE):
            self.lands = kind
            self.step(Fault.LATE)
        elif fails and name != "execute":
            self.step(Fault.NOT_APPLIED)
        else:
            self.step(Fault.LOST if kind is Kind.LOST else Fault.NONE)
        if name in ("insert", "release", "execute"):
            self.world.look()
        if isinstance(self.outcome, Exception):
            assert isinstance(self.outcome, StartOnceError), repr(self.outcome)
        return None

    def before(self, name: str) -> None:
        if name == "claim":
            self.claimed, self.refused = True, False
        elif name == "release":
            assert self.refused, "STA-4: a release without a refusal of this start"
        elif name == "settle":
            lock = self.world.holder(self.request[1][1])  # type: ignore[index,misc]
            assert lock is not None, "DUT-3: a settle of a run that nobody executed"
            assert lock[1] or lock[0] == "cancel", "DUT-3: a settle of a run that is not over"
        elif name == "insert lock":
            _, (self.holder, *_) = self.request  # type: ignore[misc]
        elif name == "execute":
            run: Run = self.request.run  # type: ignore[union-attr]
            assert self.world.holder(run.run_id) == (self.holder, 0), "LCK-4: the lock is not mine"

    def crash(self) -> None:
        self._start.close()
        self.crashed, self.request = True, None

    def go(self, steps: int) -> None:
        for _ in range(steps):
            if self.name != "over":
                self.advance()

    def run(self) -> Answer | Exception:
        """Go on to the end; a crash is answered as such."""
        while self.name != "over":
            self.advance()
        if self.crashed:
            return RuntimeError("crash")
        assert self.outcome is not None
        run_id = getattr(self.outcome, "run_id", None)
        if run_id is not None:
            self.world.told.add(run_id)
        assert self.world.deleted or len(self.world.told) <= 1, "STA-2: two runs were told"
        return self.outcome


@pytest.fixture(scope="module")
def memory() -> Iterator[SqliteDatabase]:
    database = connect(":memory:")
    yield database
    database.close()


def positions(world: World) -> list[str]:
    """Name what a start does when nothing happens."""
    caller = world.caller()
    names = []
    while caller.name != "over":
        names.append(caller.name)
        caller.advance()
    return names


# --- one fault: what exactly becomes of it ---------------------------------------------------------------

ONE_FAULT = """
read both    | not applied   | Unreadable         | Started
read both    | never applied | Unreadable         | Started
read both    | crash before  | crash              | Started
create       | not applied   | NotApplied         | Started
create       | never applied | NotApplied         | Started
create       | reply lost    | Started            | Replayed
create       | lands before  | Started            | Replayed
create       | lands after   | Started            | Replayed
create       | crash before  | crash              | Started
insert       | not applied   | NotApplied         | Started
insert       | never applied | NotApplied         | Started
insert       | reply lost    | Started            | Replayed
insert       | lands before  | Started            | Replayed
insert       | lands after   | Started            | Replayed
insert       | crash before  | crash              | Started
read back    | not applied   | Unreadable         | Started
read back    | never applied | Unreadable         | Started
read back    | crash before  | crash              | Started
claim        | not applied   | NotApplied         | Started
claim        | never applied | NotApplied         | Started
claim        | reply lost    | UnknownOutcome     | Pending
claim        | lands before  | UnknownOutcome     | Pending
claim        | lands after   | UnknownOutcome     | Started
claim        | crash before  | crash              | Started
read fence   | not applied   | Started            | Replayed
read fence   | never applied | Unreadable         | Pending
read fence   | crash before  | crash              | Pending
insert lock  | not applied   | Started            | Replayed
insert lock  | never applied | NotApplied         | Pending
insert lock  | reply lost    | Started            | Replayed
insert lock  | lands before  | Pending            | Pending
insert lock  | lands after   | Pending            | Pending
insert lock  | crash before  | crash              | Pending
read holder  | not applied   | Started            | Replayed
read holder  | never applied | Started            | Replayed
read holder  | crash before  | crash              | Pending
execute      | crash before  | crash              | Pending
execute      | crash after   | crash              | Pending
persist      | not applied   | Started            | Replayed
persist      | never applied | ResultNotPersisted | Pending
persist      | reply lost    | Started            | Replayed
persist      | lands before  | Started            | Replayed
persist      | lands after   | Started            | Replayed
persist      | crash before  | crash              | Pending
settle       | not applied   | Started            | Replayed
settle       | never applied | Started            | Replayed
settle       | reply lost    | Started            | Replayed
settle       | lands before  | Started            | Replayed
settle       | lands after   | Started            | Replayed
settle       | crash before  | crash              | Replayed
"""
"""A statement, its fault, the answer of that start, and the answer of the next caller."""

REFUSED = """
read fence   | not applied   | Fenced             | Started
read fence   | never applied | Unreadable         | Pending
read fence   | crash before  | crash              | Pending
release      | not applied   | Fenced             | Started
release      | never applied | FencedStranded     | Pending
release      | reply lost    | FencedStranded     | Started
release      | lands before  | FencedStranded     | Started
release      | lands after   | FencedStranded     | Pending
release      | crash before  | crash              | Pending
"""
"""The same, for a start that comes while the fence is closed; the next caller comes when it is open."""


def table(text: str) -> dict[tuple[str, str], tuple[str, str]]:
    rows = ([cell.strip() for cell in line.split("|")] for line in text.strip().splitlines())
    return {(name, kind): (own, following) for name, kind, own, following in rows}


def said(answer: Answer | Exception) -> str:
    return "crash" if isinstance(answer, RuntimeError) else type(answer).__name__


Found = tuple[tuple[str, str], tuple[str, str]]


def one_fault(fresh: Callable[[], World], closed: bool) -> Iterator[Found]:
    """Run every statement under every fault; give what became of it, as the tables write it."""

    def begun() -> World:
        world = fresh()
        if closed:
            world.fence.close()
        return world

    for position, name in enumerate(positions(begun())):
        for kind in kinds(name):
            world = begun()
            own = world.caller({position: kind}).run()
            world.fence.open()
            world.land(Kind.SOON)
            following = world.caller().run()
            heals = isinstance(following, Started | Replayed) or (name, kind) == ("release", Kind.LATE)
            assert isinstance(world.quiet(), Replayed if heals else Pending), (name, kind)
            short = "create" if name.startswith("create") else name
            yield (short, " ".join(kind.split()[:2])), (said(own), said(following))


def test_one_fault_anywhere_has_the_consequence_that_is_written_down(memory: SqliteDatabase) -> None:
    expected = table(ONE_FAULT)
    found: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for case, became in one_fault(lambda: World(memory, schema=False), closed=False):
        found.setdefault(case, set()).add(became)
    assert found == {case: {became} for case, became in expected.items()}


def test_one_fault_on_a_wal_file_is_the_same(tmp_path: Path) -> None:
    database = connect(tmp_path / "app.db")
    database.connection.execute("PRAGMA synchronous = OFF")
    expected = {case: became for case, became in table(ONE_FAULT).items() if case[0] != "create"}
    found = dict(one_fault(lambda: World(database), closed=False))
    database.close()
    assert found == expected


def test_one_fault_behind_a_closed_fence_releases_or_strands(memory: SqliteDatabase) -> None:
    found = dict(one_fault(lambda: World(memory), closed=True))
    before = {case: became for case, became in found.items() if case[0] not in ("read fence", "release")}
    assert {case: became for case, became in found.items() if case not in before} == table(REFUSED)
    assert {own for own, _ in before.values()} == {
        "Fenced", "NotApplied", "Unreadable", "UnknownOutcome", "crash",
    }  # fmt: skip


# --- two faults, two callers, events ----------------------------------------------------------------------


def fit(name: str, kind: Kind) -> bool:
    return kind in (*kinds(name), Kind.DOWN)


def go_by_plan(caller: Caller) -> bool:
    """Run a caller to its end; False, and at once, if a fault does not fit the statement it meets."""
    while caller.name != "over":
        kind = caller.plan.get(caller.position)
        if kind is not None and not fit(caller.name, kind):
            return False
        caller.advance()
    caller.run()
    return caller.position > max(caller.plan, default=0)


def two_faults() -> Iterator[tuple[dict[int, Kind], dict[int, Kind]]]:
    """Give plans for one start, and for a second one that follows."""
    for (i, kind), (j, other) in product(product(range(11), Kind), product(range(18), Kind)):
        if i < j:
            yield {i: kind, j: other}, {}
        yield {i: kind}, {j: other}


@pytest.mark.parametrize("closed", [False, True])
def test_two_faults_in_one_start_or_in_two_that_follow(memory: SqliteDatabase, closed: bool) -> None:
    world = World(memory)
    runs = 0
    for plan, following in two_faults():
        world.clear()
        if closed:
            world.fence.close()
        if not go_by_plan(world.caller(plan)):
            continue
        world.land(Kind.SOON)
        if following and not go_by_plan(world.caller(following)):
            continue
        world.quiet()
        runs += 1
    assert runs > (700 if closed else 1400)


@pytest.mark.parametrize("fence", ["open", "closes", "opens"])
def test_two_callers_interleaved_with_one_fault(memory: SqliteDatabase, fence: str) -> None:
    world = World(memory)
    steps = len(positions(world))
    runs = 0
    for i, j in product(range(steps), range(1, steps + 1)):
        for position, kind in product(range(i, steps), Kind):
            world.clear()
            if fence == "opens":
                world.fence.close()
            a, b = world.caller(), world.caller()
            a.go(i)
            b.go(j)
            if fence != "open":
                (world.fence.close if fence == "closes" else world.fence.open)()
            a.plan = {position: kind}
            if go_by_plan(a):
                world.land(Kind.SOON)
                b.run()
                world.quiet()
                runs += 1
    assert runs > 1000


class Events:
    """What others do meanwhile, each at one moment; cancel and free in the statements of section 2."""

    def __init__(self, world: World) -> None:
        self.world = world

    def close(self) -> None:
        self.world.fence.close()

    def open(self) -> None:
        self.world.drained = False
        self.world.fence.open()

    def drain(self) -> None:
        self.world.fence.close()
        waits = {"never reached the lock", "reached the lock, not ended", "ended, not settled",
                 "settled or purged, still held"}  # fmt: skip
        entries = Deployment(self.world.database).reservations.inventory()
        self.world.drained = not any(entry.state == "started" or entry.kind in waits for entry in entries)

    def lock(self, holder: str) -> bool:
        """Take the lock as an operator; say whether it is held so."""
        world, row = self.world, self.world.row()
        if row is None:
            return False
        world.raw(
            "INSERT INTO startonce_run_locks SELECT run_id, key, ?1, 0, NULL, 7 "
            "FROM startonce_reservations WHERE key = 'k' AND (?1 = 'cancel' OR state = 'started') "
            "ON CONFLICT DO NOTHING",
            (holder,),
        )
        if world.holder(row[0]) != (holder, 0):
            return False
        world.never.add(row[0])
        return True

    def cancel(self) -> None:
        if self.lock("cancel"):
            self.world.raw("UPDATE startonce_reservations SET state = 'terminal'")

    def crash_in_cancel(self) -> None:
        self.lock("cancel")

    def free(self) -> None:
        if self.lock("free"):
            self.delete("DELETE FROM startonce_reservations")

    def crash_in_free(self) -> None:
        self.lock("free")

    def purge(self) -> None:
        self.delete("DELETE FROM startonce_reservations WHERE state = 'terminal'")

    def delete(self, text: str) -> None:
        if self.world.raw(text).rowcount:
            self.world.deleted = True

    def land(self) -> None:
        self.world.land()


EVENTS = ("close", "open", "drain", "cancel", "crash_in_cancel", "free", "crash_in_free", "purge")


def end(world: World) -> None:
    """Come to rest, finish what a crashed operator left, and come to rest again."""
    if isinstance(world.quiet(), Retry):
        Events(world).free()
        assert isinstance(world.quiet(), Replayed)


def test_two_events_anywhere_in_two_starts(memory: SqliteDatabase) -> None:
    world = World(memory)
    steps = len(positions(world))
    for first, second in product(EVENTS, EVENTS):
        for i, j, k in product(range(steps + 1), range(0, steps, 3), range(steps)):
            if i + k > steps:
                continue
            world.clear()
            events = Events(world)
            a, b = world.caller(), world.caller()
            a.go(i)
            getattr(events, first)()
            b.go(j)
            a.go(k)
            getattr(events, second)()
            a.run()
            b.run()
            end(world)


steps = st.one_of(
    st.tuples(st.integers(0, 2), st.sampled_from([None, None, None, *Kind])),
    st.tuples(st.just(None), st.sampled_from([*EVENTS, "land"])),
)


@settings(max_examples=400, deadline=None, derandomize=True, database=None)
@given(st.lists(steps, max_size=60))
def test_three_callers_under_any_faults_and_events(script: list[tuple[int | None, Any]]) -> None:
    database = connect(":memory:")
    world = World(database)
    callers = [world.caller() for _ in range(3)]
    for actor, what in script:
        if actor is None:
            getattr(Events(world), what)()
            continue
        if callers[actor].name == "over":
            callers[actor].run()
            callers[actor] = world.caller()
        caller = callers[actor]
        if what is not None and fit(caller.name, what):
            caller.plan = {caller.position: what}
        caller.advance()
    for caller in callers:
        caller.run()
    end(world)
    database.close()
