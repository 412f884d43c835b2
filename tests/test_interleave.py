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
from startonce.model.errors import NotApplied, TableMissing, UnknownOutcome, Unreadable, ValueRefused
from startonce.model.interleaving import Action
from startonce.model.operations import NOT_APPLIED, Call, Ended, Fault, Holding, Reserved, Stopped
from startonce.model.reservation import EMPTY, NOTHING, Database, Reservation, State
from startonce.oracle.history import Answered, Began
from startonce.oracle.interleave import CHECK, Explored, Scenario, explore, race
from startonce.oracle.ledger import Ledger
from startonce.oracle.report import interleaving
from startonce.oracle.scenarios import BACK_AND_FORTH, REWRITTEN, TABLES, TRIPLES, scenarios
from startonce.oracle.stage import Impossible, Stage, repeat
from startonce.oracle.subject import FAULTS, STEPPING, Subject
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
        if self._database.connection.in_transaction and not isinstance(self._subject, Careless):
            self._database.connection.execute("ROLLBACK")


class Own(SqlSubject):
    """A subject that says of statements of its own whether they write."""

    def __init__(self, path: str | Path = ":memory:", **operations: Callable[..., Operation[Any]]) -> None:
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
    found, ledger = explored(Own(**wrong.operations), some, limit=60)
    assert found.preempted > 0
    divergence = ledger.divergences[wrong.clause]
    assert (divergence.check, words(divergence.actions)) == (CHECK, wrong.trace)
    assert divergence.expected != divergence.observed
    assert interleaving(divergence)
    ours, _ = explored(Own(), some, limit=60)
    assert ours.found == ()


def test_a_divergence_is_repeated_and_saved(tmp_path: Path) -> None:
    subject = Own(claim=claim_looks_then_writes)
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
    assert repeat(Own(), start, actions[-1:]).finding.legal


# --- what is right --------------------------------------------------------------------------------------

EVERY = scenarios(SqlSubject.capabilities)


def test_our_own_store_is_right_in_every_interleaving() -> None:
    found, ledger = explored(SqlSubject(), [one._replace(disturbed=False) for one in EVERY])
    assert found == Explored(560, 6_437, 5_205, silent=0, untaken=0, cut=3, found=())
    assert ledger.divergences == {}
    assert ledger.evaluated["CLM-2"] > 50


def test_our_own_store_is_right_under_crashes_and_faults() -> None:
    able = frozenset({"reserve", "claim", "release", "settle", "purge", "take_lock", "free"})
    found, ledger = explored(SqlSubject(), scenarios(able, bare=False), limit=100)
    assert found == ()
    assert ledger.evaluated["CLM-6"] > 50


@pytest.mark.long
def test_our_own_store_is_right_in_every_interleaving_with_a_crash_or_a_fault() -> None:
    found, _ = explored(SqlSubject(), EVERY, limit=20_000)
    assert found == Explored(560, 51_396, 39_391, silent=0, untaken=0, cut=0, found=())


RIGHT: dict[str, tuple[Operations, str, int]] = {
    "one upsert": ({"reserve": upsert}, "reserve claim purge read settle", 0),
    "claim by read, then claim": (
        {"claim": claim_looks_then_claims},
        "claim release settle purge reserve",
        0,
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_is_right_though_it_is_built_differently(name: str) -> None:
    operations, beside, executed = RIGHT[name]
    found, ledger = explored(Own(**operations), scenarios(frozenset(beside.split())), limit=100)
    assert (found.found, found.silent, found.untaken) == ((), 0, 0)
    assert ledger.divergences == {}
    assert found.executed == executed


TRANSACTION = scenarios(frozenset({"reserve", "claim", "settle", "purge", "read"}), bare=False)


def test_a_transaction_is_right_and_who_finds_it_busy_is_not_applied(tmp_path: Path) -> None:
    subject = Transacting(tmp_path / "a.db", reserve=reserve_in_a_transaction)
    found, ledger = explored(subject, TRANSACTION, limit=40)
    assert ledger.divergences == {}
    assert found.silent > 100
    assert found.untaken == 0


def test_a_transaction_that_is_not_ended_shows_afterwards(tmp_path: Path) -> None:
    subject = Transacting(tmp_path / "a.db", reserve=reserve_forgets_to_commit)
    found, _ = explored(subject, TRANSACTION, limit=10)
    ((divergence, _), *_) = found.found
    print(words(divergence.actions), divergence)
    assert 0


def test_a_transaction_that_a_crash_leaves_open_shows_afterwards(tmp_path: Path) -> None:
    subject = Careless(tmp_path / "a.db", reserve=reserve_in_a_transaction)
    found, _ = explored(subject, TRANSACTION, limit=40)
    ((divergence, _), *_) = found.found
    print(words(divergence.actions), divergence)
    assert 0
