"""Interleavings of a subject's own statements: broken ones are flagged by what they do, not by names."""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from startonce.impl import operations as op
from startonce.impl import statements as sql
from startonce.impl.databases.sqlite import SqliteDatabase
from startonce.impl.operations import Operation
from startonce.impl.statements import LOCKS, RESERVATIONS, Statement
from startonce.model.errors import NotApplied, TableMissing, UnknownOutcome, Unreadable
from startonce.model.interleaving import Action
from startonce.model.operations import (
    NOT_APPLIED,
    UNKNOWN,
    UNREADABLE,
    Call,
    Ended,
    Fault,
    Holding,
    Raised,
    Reserved,
    Stopped,
)
from startonce.model.reservation import EMPTY, NOTHING, Database, Reservation, State
from startonce.oracle.history import Began
from startonce.oracle.interleave import CHECK, RACE, RACES, Explored, Scenario, explore, race
from startonce.oracle.ledger import Ledger
from startonce.oracle.report import interleaving
from startonce.oracle.scenarios import TABLES, scenarios
from startonce.oracle.stage import AGAIN, ENDLESS, Impossible, Stage, repeat
from startonce.oracle.subject import FAULTS, Held, Subject
from startonce.oracle.tracefile import load, to_text
from startonce.own import OURS, Operations, SqlHeld, SqlSubject

CORE = frozenset({"reserve", "claim", "release", "settle", "purge", "read"})


def look(name: str, where: str) -> Statement:
    columns = "key, run_id, state, created_at, updated_at"
    return Statement(name, f"SELECT {columns} FROM {RESERVATIONS} WHERE {where}", False, (RESERVATIONS,))


def write(name: str, text: str) -> Statement:
    return Statement(name, text, True, (RESERVATIONS, LOCKS))


LOOK = look("look", "key = ?")
MOVE = write("move", f"UPDATE {RESERVATIONS} SET state = ?, updated_at = ? WHERE key = ?")
PUT = write("put", f"INSERT INTO {RESERVATIONS} VALUES (?, ?, 'reserved', ?, ?)")
REPLACE = PUT._replace(name="replace", sql=PUT.sql.replace("INSERT", "INSERT OR REPLACE"))


# --- implementations with other statements -------------------------------------------------------------


def looked(rows: list[Any]) -> Reservation | None:
    return Reservation(rows[0][0], rows[0][1], State(rows[0][2]), *rows[0][3:]) if rows else None


def there(key: str) -> Operation[Reservation | None]:
    try:
        return looked((yield LOOK, (key,)))
    except TableMissing:
        return None


def claim_looks_then_writes(now: int, key: str, run_id: str) -> Operation[bool]:
    row = yield from there(key)
    if row is None or row.run_id != run_id or row.state is not State.RESERVED:
        return False
    yield MOVE, ("started", now, key)
    return True


def claim_looks_then_claims(now: int, key: str, run_id: str) -> Operation[bool]:
    """Right: what was seen first decides nothing but to answer no."""
    row = yield from there(key)
    if row is None or row.run_id != run_id or row.state is not State.RESERVED:
        return False
    return bool((yield sql.CLAIM._replace(name="take it"), (now, key, run_id)))


def claim_sends_again(now: int, key: str, run_id: str) -> Operation[bool]:
    try:
        return (yield from op.claim(key, run_id, now))
    except UnknownOutcome:
        return (yield from op.claim(key, run_id, now))


def release_looks_then_writes(now: int, key: str, run_id: str) -> Operation[bool]:
    row = yield from there(key)
    if row is None or row.run_id != run_id or row.state is not State.STARTED:
        return False
    yield MOVE, ("reserved", now, key)
    return True


def release_sends_again(now: int, key: str, run_id: str) -> Operation[bool]:
    try:
        return (yield from op.release(key, run_id, now))
    except UnknownOutcome:
        yield from op.release(key, run_id, now)
        return True


def reserve_looks_then_puts(put: Statement) -> Callable[..., Operation[Reserved]]:
    def reserve(now: int, key: str, run_id: str, create: bool = False) -> Operation[Reserved]:
        if create:
            for statement in sql.CREATE_RESERVATIONS:
                yield statement, ()
        row = yield from there(key)
        if row is not None:
            return Reserved(row, False)
        yield put, (key, run_id, now, now)
        return Reserved(Reservation(key, run_id, State.RESERVED, now, now), True)

    return reserve


def settle_by_keys(now: int, run_id: str) -> Operation[int]:
    try:
        rows = yield look("live", "run_id = ? AND state <> 'terminal'"), (run_id,)
    except TableMissing:
        return 0
    for key, *_ in rows:
        yield MOVE, ("terminal", now, key)
    return len(rows)


def settle_by_keys_carefully(now: int, run_id: str) -> Operation[int]:
    """Each key for itself, so others see the run half settled."""
    try:
        rows = yield look("live", "run_id = ? AND state <> 'terminal'"), (run_id,)
    except TableMissing:
        return 0
    guarded = sql.SETTLE._replace(name="end one", sql=sql.SETTLE.sql.replace("WHERE", "WHERE key = ? AND"))
    count = 0
    for key, *_ in rows:
        count += len((yield guarded, (now, key, run_id)))
    return count


def purge_by_keys(now: int, horizon: int, limit: int) -> Operation[int]:
    try:
        rows = yield look("spent", "state = 'terminal' AND updated_at < ? LIMIT ?"), (horizon, limit)
    except TableMissing:
        return 0
    for key, *_ in rows:
        yield write("drop", f"DELETE FROM {RESERVATIONS} WHERE key = ?"), (key,)
    return len(rows)


def take_lock_looks_first(now: int, key: str, run_id: str, holder: str) -> Operation[Holding]:
    row, held = (yield from there(key)), (yield from op.lock_of(run_id))
    if row is None or row.run_id != run_id or row.state is not State.STARTED or held is not None:
        return Holding(held is not None and held.holder == holder, held.holder if held else None)
    grab = f"INSERT OR REPLACE INTO {LOCKS} VALUES (?, ?, ?, 0, NULL, ?)"
    yield write("grab", grab), (run_id, key, holder, now)
    return Holding(True, holder)


def cancel_settles_first(now: int, run_id: str) -> Operation[Stopped]:
    yield from op.settle(run_id, now)
    return (yield from op.cancel(run_id, now))


def free_looks_at_the_lock(now: int, key: str) -> Operation[Stopped]:
    found = yield from op.read_both(key)
    if found is None or found[0].state is not State.STARTED or found[1] is not None:
        return (yield from op.free(key, now))
    yield sql.DELETE, (key, found[0].run_id)
    return Stopped(True, "freed")


def upsert(now: int, key: str, run_id: str, create: bool = False) -> Operation[Reserved]:
    """Right: one statement gives what is there from now on. Run ids are minted fresh (DUT-1)."""
    text = f"{PUT.sql} ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING *"
    if create:
        for statement in sql.CREATE_RESERVATIONS:
            yield statement, ()
    row = looked((yield PUT._replace(name="upsert", sql=text), (key, run_id, now, now)))
    assert row is not None
    return Reserved(row, row.run_id == run_id)


class OwnHeld(SqlHeld):
    @property
    def writes(self) -> bool:
        return self.statement is None or self._request[0].writes

    def crash(self) -> None:
        super().crash()
        self._end_transaction()

    def land(self) -> None:
        super().land()
        self._end_transaction()

    def _end_transaction(self) -> None:
        if self._database.connection.in_transaction and not isinstance(self._subject, Careless):
            self._database.connection.execute("ROLLBACK")


class Own(SqlSubject):
    """A subject that says of statements of its own whether they write."""

    def __init__(self, operations: Operations, path: str | Path = ":memory:") -> None:
        super().__init__(path, {**OURS, **operations}, timeout=0.0)

    def begin(self, caller: int, call: Call) -> SqlHeld:
        database = self.database(caller)
        more = {} if database.schema_ensured or call.operation != "reserve" else {"create": True}
        return OwnHeld(self, database, self._operations[call.operation](call.now, *call.args, **more))


# --- in a transaction, with a connection for each caller -------------------------------------------------

BEGIN, COMMIT, ROLLBACK = (
    Statement(text.lower(), text, True, ()) for text in ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK")
)


class TransactingDatabase(SqliteDatabase):
    def run(self, statement: Statement, parameters: tuple[Any, ...]) -> list[Any]:
        if statement is ROLLBACK and not self.connection.in_transaction:
            return []
        if statement is not BEGIN and not self.connection.in_transaction:
            return super().run(statement, parameters)
        try:
            return self.connection.execute(statement.sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise NotApplied(statement.name, str(error)) from error


class Transacting(Own):
    def _connect(self) -> SqliteDatabase:
        return TransactingDatabase(super()._connect().connection)

    def put(self, db: Database) -> None:
        for database in self._callers:
            if database.connection.in_transaction:
                database.connection.execute("ROLLBACK")
        super().put(db)

    def run_under(self, fault: Fault, database: SqliteDatabase, request: Any) -> list[Any]:
        if fault is Fault.NOT_APPLIED:
            raise (NotApplied if request[0].writes else Unreadable)(request[0].name, "refused")
        return super().run_under(fault, database, request)


class Careless(Transacting):
    """Its crashed callers leave their transactions open."""


def reserve_in_a_transaction(now: int, key: str, run_id: str, create: bool = False) -> Operation[Reserved]:
    try:
        yield BEGIN, ()
        answer = yield from op.reserve(key, run_id, now, create=create)
        yield COMMIT, ()
    except Exception:
        yield ROLLBACK, ()
        raise
    return answer


def reserve_forgets_to_commit(now: int, key: str, run_id: str, create: bool = False) -> Operation[Reserved]:
    """Where the key is there it returns early, in the middle of its transaction."""
    yield BEGIN, ()
    answer = yield from op.reserve(key, run_id, now, create=create)
    if answer.created:
        yield COMMIT, ()
    return answer


# --- what is flagged ------------------------------------------------------------------------------------


class Wrong(NamedTuple):
    """A broken implementation, the operations beside which it is run, and the shortest trace of a clause."""

    operations: Operations
    beside: str
    clause: str
    trace: tuple[str, ...]


WRONG = {
    "claim by read, then update": Wrong(
        {"claim": claim_looks_then_writes}, "claim read", "CLM-2", ("A look", "B look", "B move", "A move"),
    ),
    "claim of what another run has now": Wrong(
        {"claim": claim_looks_then_writes}, "claim settle purge reserve", "CLM-4",
        ("A look", "B settle", "B purge", "B insert", "A move"),
    ),
    "claim sent again after an unknown outcome": Wrong(
        {"claim": claim_sends_again}, "claim read", "CLM-6", ("A claim, reply lost", "A claim"),
    ),
    "release by read, then update": Wrong(
        {"release": release_looks_then_writes}, "release settle", "REL-2", ("A look", "B settle", "A move"),
    ),
    "release sent again after an unknown outcome": Wrong(
        {"release": release_sends_again}, "release claim", "CLM-2", ("B release, reply lost", "A claim", "B release"),
    ),
    "reserve by read, then insert": Wrong(
        {"reserve": reserve_looks_then_puts(PUT)}, "reserve", "RSV-3", ("A look", "B look", "B put", "A put"),
    ),
    "reserve by read, then replace": Wrong(
        {"reserve": reserve_looks_then_puts(REPLACE)}, "reserve", "RSV-4", ("A look", "B look", "B replace", "A replace"),
    ),
    "settle by read, then one by one": Wrong(
        {"settle": settle_by_keys}, "settle", "SET-2", ("A live", "B live", "B move", "A move"),
    ),
    "settle one by one": Wrong(
        {"settle": settle_by_keys_carefully}, "settle read", "SET-1", ("A live", "A end one"),
    ),
    "purge by read, then delete": Wrong(
        {"purge": purge_by_keys}, "purge read", "PRG-1", ("A spent", "B spent", "B drop", "A drop"),
    ),
    "take_lock by read, then write": Wrong(
        {"take_lock": take_lock_looks_first}, "take_lock read", "LCK-2",
        ("A look", "A read lock", "B look", "B read lock", "B grab", "A grab"),
    ),
    "cancel that settles before it holds the lock": Wrong(
        {"cancel": cancel_settles_first}, "cancel take_lock", "DUT-3", ("A settle",),
    ),
    "free that looks at the lock": Wrong(
        {"free": free_looks_at_the_lock}, "free take_lock", "FRE-3",
        ("A read both", "B insert lock", "B read holder", "A delete"),
    ),
}  # fmt: skip


def explored(subject: Subject, some: Sequence[Scenario], **more: Any) -> tuple[Explored, Ledger]:
    ledger = Ledger()
    try:
        return explore(subject, ledger, some, **more), ledger
    finally:
        subject.close()


def words(actions: Sequence[Action]) -> tuple[str, ...]:
    faults = {fault: f", {fault}" if fault is not Fault.NONE else "" for fault in Fault}
    return tuple(f"{a.caller} {a.statement or a.do}{faults[a.fault]}" for a in actions)


@pytest.mark.parametrize("name", WRONG)
def test_is_flagged_by_what_it_does(name: str) -> None:
    wrong = WRONG[name]
    some = scenarios(frozenset(wrong.beside.split()), bare=False)
    found, ledger = explored(Own(wrong.operations), some, limit=60)
    assert found.preempted > 0
    divergence = ledger.divergences[wrong.clause]
    assert (divergence.check, words(divergence.actions)) == (CHECK, wrong.trace)
    assert divergence.expected != divergence.observed
    assert interleaving(divergence)
    ours, _ = explored(Own({}), some, limit=60)
    assert ours.found == ()


def test_a_divergence_is_repeated_and_saved(tmp_path: Path) -> None:
    subject = Own({"claim": claim_looks_then_writes})
    some = scenarios(frozenset({"claim", "read"}), bare=False)
    ((divergence, seen), *_) = explore(subject, Ledger(), some).found
    file = tmp_path / "one.trace.json"
    file.write_text(to_text(divergence, subject.name), "utf-8")
    start, actions, _ = load(file)
    assert (start, actions) == (divergence.start, divergence.actions)
    again = repeat(subject, start, actions)
    assert again == seen
    assert again.finding.clauses == divergence.clauses == ("CLM-2",)
    assert [db and [row.state for row in db.rows or ()] for db in again.databases] == [
        ["reserved"], ["reserved"], ["reserved"], ["started"], ["started"],
    ]  # fmt: skip
    subject.close()
    assert repeat(Own({}), start, actions[-1:]).finding.legal


# --- what is right --------------------------------------------------------------------------------------

EVERY = scenarios(SqlSubject.capabilities)


def test_our_own_store_is_right_in_every_interleaving() -> None:
    found, ledger = explored(SqlSubject(), [one._replace(disturbed=False) for one in EVERY])
    assert found == Explored(560, 6_437, 5_205, silent=0, untaken=0, cut=3, found=())
    assert ledger.divergences == {}
    assert ledger.evaluated["CLM-2"] > 50


def test_our_own_store_is_right_under_crashes_and_faults() -> None:
    able = frozenset({"reserve", "claim", "release", "settle", "take_lock", "free"})
    found, ledger = explored(SqlSubject(), scenarios(able, bare=False), limit=100)
    assert found == Explored(253, 11_402, 5_309, silent=0, untaken=0, cut=16, found=())
    assert ledger.evaluated["CLM-6"] > 50


@pytest.mark.long
def test_our_own_store_is_right_in_every_interleaving_with_a_crash_or_a_fault() -> None:
    found, _ = explored(SqlSubject(), EVERY, limit=20_000)
    assert found == Explored(560, 51_396, 39_391, silent=0, untaken=0, cut=0, found=())


RIGHT: dict[str, tuple[Operations, str, int]] = {
    "one upsert": ({"reserve": upsert}, "reserve claim purge read settle", 2_028),
    "claim by read, then claim": (
        {"claim": claim_looks_then_claims},
        "claim release settle purge reserve",
        3_787,
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_is_right_though_it_is_built_differently(name: str) -> None:
    operations, beside, executed = RIGHT[name]
    found, ledger = explored(Own(operations), scenarios(frozenset(beside.split())), limit=100)
    assert (found.executed, found.silent, found.untaken) == (executed, 0, 0)
    assert (found.found, ledger.divergences) == ((), {})


TRANSACTION = scenarios(frozenset({"reserve", "claim", "settle", "purge", "read"}), bare=False)


def test_a_transaction_is_right_and_who_finds_it_busy_is_not_applied(tmp_path: Path) -> None:
    subject = Transacting({"reserve": reserve_in_a_transaction}, tmp_path / "a.db")
    found, ledger = explored(subject, TRANSACTION, limit=40)
    assert (found.found, ledger.divergences) == ((), {})
    assert found.silent > 100
    assert found.untaken == 0


def test_a_transaction_that_is_not_ended_shows_afterwards(tmp_path: Path) -> None:
    subject = Transacting({"reserve": reserve_forgets_to_commit}, tmp_path / "a.db")
    some = [one._replace(disturbed=False) for one in TRANSACTION]
    ((divergence, seen), *_) = explored(subject, some, limit=10)[0].found
    assert words(divergence.actions) == (
        "A begin immediate",
        "A insert",
        "A read back",
        "B begin immediate",
    )
    assert divergence.observed[0] == Raised("not applied, with nobody else under way")
    assert seen.databases == (divergence.start,) * 5


def alone(start: str, operation: str, *args: Any) -> Scenario:
    return Scenario(TABLES[start], ((Call(operation, args, 5),),))


def test_a_lock_that_nobody_meets_meanwhile_shows_when_another_caller_writes(tmp_path: Path) -> None:
    subject = Transacting({"reserve": reserve_forgets_to_commit}, tmp_path / "a.db")
    ((divergence, seen), *_) = explored(subject, [alone("reserved", "reserve", "k1", "r2")])[0].found
    assert words(divergence.actions)[-1] == "B begin immediate"
    assert divergence.actions[-1].args == AGAIN
    assert not seen.finding.legal


def test_an_old_snapshot_that_is_left_open_shows_when_its_caller_reads_again(tmp_path: Path) -> None:
    def claim(now: int, key: str, run_id: str) -> Operation[bool]:
        yield BEGIN._replace(name="begin", sql="BEGIN", writes=False), ()
        yield LOOK, (key,)
        return False

    subject = Transacting({"claim": claim}, tmp_path / "a.db")
    ((divergence, _), *_) = explored(subject, [alone("terminal", "claim", "k1", "r1")])[0].found
    assert words(divergence.actions)[-1] == "A read"
    assert divergence.observed[0] is None


def test_who_has_crashed_does_not_work_again() -> None:
    stage = Stage(SqlSubject(), EMPTY)
    stage.run(0, Call("reserve", ("k1", "r1"), 5))
    stage.crash(0)
    assert stage.main == 0
    stage.again(2)
    assert stage.main == len(stage.history) - 4
    later = [event for event in stage.history[stage.main :] if isinstance(event, Began)]
    assert [(event.caller, event.call.operation) for event in later] == [(2, "reserve"), (1, "read")]


class Lingering(Own):
    """What a caller had not yet sent when it crashed is sent all the same, before the operation after next."""

    left: list[SqlHeld | None] = []  # noqa: RUF012 (it is replaced, never changed)

    def put(self, db: Database) -> None:
        self.left = []
        super().put(db)

    def begin(self, caller: int, call: Call) -> SqlHeld:
        held, self.left = (self.left or [None])[0], self.left[1:]
        while held is not None and held.step() is None:
            pass
        return LingeringHeld(
            self, self.database(caller), self._operations[call.operation](call.now, *call.args)
        )


class LingeringHeld(OwnHeld):
    def crash(self) -> None:
        assert isinstance(self._subject, Lingering)
        self._subject.left = [None, self]


def test_nothing_of_a_caller_lands_after_its_crash() -> None:
    cancel, read = Call("cancel", ("r1",), 5), Call("read", ("k1",), 6)
    scenario = Scenario(TABLES["reserved"], ((cancel,), (read, read._replace(now=7))), disturbed=True)
    assert explored(Own({}), [scenario])[0].found == ()
    ((divergence, _), *_) = explored(Lingering({}), [scenario])[0].found
    assert "A crash" in words(divergence.actions)


def test_a_transaction_that_a_crash_leaves_open_shows_afterwards(tmp_path: Path) -> None:
    subject = Careless({"reserve": reserve_in_a_transaction}, tmp_path / "a.db")
    ((divergence, _), *_) = explored(subject, TRANSACTION, limit=40)[0].found
    assert words(divergence.actions) == ("A begin immediate", "A crash", "B claim")
    assert divergence.observed[0] == Raised("not applied, with nobody else under way")


def test_a_subject_without_statements_runs_whole_operations_in_every_order() -> None:
    some = scenarios(CORE)
    found, _ = explored(SqlSubject(stepping=False), some)
    assert (found.preempted, found.found) == (0, ())
    assert found.executed == 458


# --- the schedules --------------------------------------------------------------------------------------


class Scripted:
    """A read in so many statements. Every step is logged: with a fault as A!, of a landing as l, a crash as x."""

    def __init__(self, script: "Script", caller: int) -> None:
        self.script, self.name, self.left = script, "AB"[caller], script.statements[caller]
        self.statement: str | None = "step"
        self.writes = script.writes

    def step(self, fault: Fault = Fault.NONE) -> Ended | None:
        log = self.script.logs[-1]
        if fault is Fault.LOST:
            log.append("?")
            raise NotImplementedError
        log.append(self.name + {Fault.NONE: "", Fault.LATE: "~"}.get(fault, "!"))
        if fault is not Fault.NONE:
            return Ended(UNKNOWN if fault is Fault.LATE else UNREADABLE)
        self.left -= 1
        return None if self.left > 0 or self.script.waits(self.name) else Ended(self.script.says(self.name))

    def crash(self) -> None:
        self.script.logs[-1].append("x")


class Script(Subject):
    """Two callers who read a key that is not there."""

    def __init__(
        self, *statements: int, faults: bool = False, writes: bool | None = None, answer: Any = None
    ) -> None:
        self.statements, self.writes, self.answer = statements, writes, answer
        self.capabilities = frozenset({FAULTS} if faults else ())
        self.logs: list[list[str]] = []

    def put(self, db: Database) -> None:
        self.db = db
        self.logs.append([])

    def dump(self) -> Database:
        return self.db

    def waits(self, name: str) -> bool:
        return False

    def says(self, name: str) -> Any:
        return self.answer

    def begin(self, caller: int, call: Call) -> Scripted:
        return Scripted(self, caller)

    def land(self, held: Held) -> None:
        self.logs[-1].append("l")


class Spinning(Script):
    """B goes on until A has ended, as one that tries again while the database is busy."""

    def waits(self, name: str) -> bool:
        return name == "B" and "A" in self.logs[-1] and self.logs[-1].count("A") < 2


BOTH_READ = Scenario(EMPTY, ((Call("read", ("k1",), 5),), (Call("read", ("k1",), 6),)))


def schedules(script: Script, disturbed: bool = False) -> list[str]:
    found, _ = explored(script, [BOTH_READ._replace(disturbed=disturbed)])
    assert found.found == ()
    return ["".join(log) for log in script.logs]


def test_every_schedule_is_executed_once_those_with_fewer_preemptions_first() -> None:
    found = schedules(Script(2, 2))
    assert sorted(found) == ["AABB", "ABAB", "ABBA", "BAAB", "BABA", "BBAA"]
    assert found[:2] == ["AABB", "BBAA"]
    assert set(found[2:4]) == {"ABBA", "BAAB"}
    many = schedules(Script(5, 4))
    assert len(many) == len(set(many)) == 126


def test_a_limit_cuts_the_schedules_with_most_preemptions_and_says_so() -> None:
    found, _ = explored(Script(5, 4), [BOTH_READ], limit=20)
    assert (found.executed, found.cut) == (20, 1)
    found, _ = explored(Script(5, 4), [BOTH_READ], limit=126)
    assert (found.executed, found.cut) == (126, 0)


def test_there_is_one_crash_at_each_point() -> None:
    found = schedules(Script(2, 1), disturbed=True)
    assert sorted(found) == sorted(["AAB", "ABA", "BAA", "AxB", "ABx", "BAx"])


def test_a_crashed_caller_begins_nothing_more() -> None:
    twice = BOTH_READ.calls[0] * 2
    script = Script(2, 1)
    explored(script, [Scenario(EMPTY, (twice, BOTH_READ.calls[1]), disturbed=True)])
    crashed = ["".join(log) for log in script.logs if "x" in log]
    assert {log.count("A") for log in crashed} == {1, 3}
    assert len(crashed) == len(set(crashed)) == 3 + 5


class Sooner(Script):
    """A is wrong, and sooner if B comes in between."""

    def waits(self, name: str) -> bool:
        log = self.logs[-1]
        return name == "A" and log.count("A") < (2 if log[:2] == ["A", "B"] else 4)

    def says(self, name: str) -> Any:
        return True if name == "A" else None


def test_of_several_divergences_the_shortest_is_kept() -> None:
    ((divergence, _),) = explored(Sooner(1, 1), [BOTH_READ])[0].found
    assert words(divergence.actions) == ("A step", "B step", "A step")


def test_there_is_one_fault_at_each_statement_and_what_a_subject_does_not_take_is_counted() -> None:
    script = Script(2, 1, faults=True)
    found, _ = explored(script, [BOTH_READ._replace(disturbed=True)])
    logs = ["".join(log) for log in script.logs]
    taken = [log for log in logs if "?" not in log and "x" not in log]
    faulty = ["A!B", "BA!", "AA!B", "ABA!", "BAA!", "AAB!", "AB!A", "B!AA"]
    assert sorted(taken) == sorted(["AAB", "ABA", "BAA", *faulty])
    assert found.untaken == len([log for log in logs if "?" in log]) == len(faulty)


def test_a_late_statement_lands_at_each_later_point_or_never() -> None:
    logs = schedules(Script(1, 1, faults=True, writes=True), disturbed=True)
    late = sorted(log for log in logs if "A~" in log)
    assert late == sorted(["A~B", "A~lB", "A~Bl", "BA~", "BA~l"])


def test_a_read_has_no_reply_that_is_lost_or_late() -> None:
    logs = schedules(Script(1, 1, faults=True, writes=False), disturbed=True)
    assert sorted(logs) == sorted(["AB", "BA", "A!B", "AB!", "B!A", "BA!"])


def test_who_waits_for_another_lets_it_have_its_turn() -> None:
    found, _ = explored(Spinning(2, 1), [BOTH_READ], limit=50)
    assert (found.executed, found.found) == (50, ())


def test_what_never_ends_is_flagged() -> None:
    ((divergence, _), *_) = explored(Script(10**9, 1), [BOTH_READ], limit=1)[0].found
    assert divergence.observed[0] == Raised(f"no end after {ENDLESS} statements")


def test_an_answer_that_says_nothing_needs_a_reason() -> None:
    ((divergence, seen), *_) = explored(Script(1, 1, answer=NOT_APPLIED), [BOTH_READ])[0].found
    assert words(divergence.actions) == ("A step",)
    assert divergence.observed[0] == Raised("not applied, with nobody else under way")
    assert not seen.finding.legal
    found, _ = explored(Script(2, 2, answer=NOT_APPLIED), [BOTH_READ], limit=6)
    assert found.silent == 12


def test_what_cannot_be_repeated_is_said_to_be_so() -> None:
    read = Action("run", "A", "read", ("k1",), 5)
    for action in (
        Action("crash", "A"),
        Action("land", "A"),
        Action("pin", "A"),
        read._replace(fault=Fault.STALE),
        read._replace(fault=Fault.LATE),
        read._replace(fault=Fault.LOST),
    ):
        with pytest.raises(Impossible):
            repeat(Script(1, faults=True), EMPTY, [action])
    seen = repeat(Script(1), EMPTY, [])
    assert (seen.history, seen.databases, seen.finding.legal) == ((), (EMPTY,), True)


class Unfinished(Script):
    def dump(self) -> Database:
        if any(len(log) == 1 for log in self.logs[-1:]):
            raise sqlite3.OperationalError("database is locked")
        return self.db


def test_a_database_that_cannot_be_shown_meanwhile_is_not_observed() -> None:
    read = Action("run", "A", "read", ("k1",), 5)
    seen = repeat(Unfinished(2), EMPTY, [read, read])
    assert seen.databases == (EMPTY, None, EMPTY)
    with pytest.raises(sqlite3.OperationalError):
        repeat(Unfinished(1), EMPTY, [read])


def test_what_does_not_repeat_is_reported_all_the_same() -> None:
    class Once(Script):
        def put(self, db: Database) -> None:
            self.answer = None if self.logs else True
            super().put(db)

    ((divergence, _),) = explored(Once(1, 1), [BOTH_READ])[0].found
    assert divergence.check == f"{CHECK}, does not repeat"
    assert divergence.observed[0] is True


def test_times_of_its_own_are_not_compared_where_that_is_asked() -> None:
    def late(now: int, key: str, run_id: str) -> Operation[bool]:
        return op.claim(key, run_id, now + 1000)

    some = scenarios(frozenset({"claim", "read"}), bare=False)
    assert explored(Own({"claim": late}), some)[0].found != ()
    found, ledger = explored(Own({"claim": late}), some, timeless=True)
    assert found.found == ()
    assert ledger.evaluated["CLM-2"] > 0
    assert ledger.evaluated["RSV-1"] == 0, "what callers do again in the end is not counted"


# --- the scope, and races -------------------------------------------------------------------------------


def test_every_run_id_and_every_token_is_minted_fresh_and_every_call_has_its_own_time() -> None:
    for start, callers, _ in EVERY:
        calls = [call for some in callers for call in some]
        known = [row.run_id for row in start.rows or ()]
        minted = [call.args[1] for call in calls if call.operation == "reserve"]
        tokens = [call.args[2] for call in calls if call.operation == "take_lock"]
        assert len({*known, *minted}) == len({*known}) + len(minted)
        assert len(set(tokens)) == len(tokens)
        assert len({call.now for call in calls}) == len(calls)


def test_the_scope_is_what_a_subject_can_do() -> None:
    assert len(EVERY) == 560
    core = scenarios(CORE, bare=False)
    used = {call.operation for one in core for some in one.calls for call in some}
    assert used == CORE
    assert all(one.start.locks == () for one in core)
    assert {len(one.calls) for one in core} == {2, 3}
    assert max(len(some) for one in core for some in one.calls) == 3
    assert NOTHING in {one.start for one in EVERY}
    assert scenarios(frozenset()) == ()


class Racing(SqlSubject):
    capabilities = SqlSubject.capabilities | {RACE}
    believed = False

    def race(self, calls: Sequence[tuple[int, Call]]) -> list[Ended]:
        found = {}
        for caller, call in reversed(calls):
            _, answers = repeat_whole(self, caller, call)
            found[caller] = Ended(True) if self.believed and call.operation == "claim" else answers
        return [found[caller] for caller, _ in calls]


def repeat_whole(subject: SqlSubject, caller: int, call: Call) -> tuple[int, Ended]:
    held, outcome = subject.begin(caller, call), None
    while outcome is None:
        outcome = held.step()
    return caller, outcome


def test_races_are_judged_by_their_answers_alone() -> None:
    some = scenarios(frozenset({"claim", "release", "read"}), bare=False)
    ledger = Ledger()
    found = race(Racing(), ledger, some, times=2)
    assert found is not None
    assert (found.executed, found.found) == (2 * len(some), ())
    assert ledger.evaluated["CLM-2"] > 0
    broken = Racing()
    broken.believed = True
    found = race(broken, ledger, some, times=1)
    assert found is not None
    assert found.found[0][0].check == RACES
    assert ledger.divergences["CLM-2"].check == RACES


def test_a_subject_that_cannot_race_is_not_raced() -> None:
    ledger = Ledger()
    assert race(SqlSubject(), ledger, EVERY) is None
    assert not ledger.evaluated
