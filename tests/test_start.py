"""Every answer of a start, and two callers interleaved by hand, on a WAL file."""

import json
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from conftest import Held, counted, ticking

from startonce.impl.databases.sqlite import SqliteDatabase
from startonce.impl.deployment import Deployment
from startonce.impl.execution import Run
from startonce.impl.start import (
    ROUNDS,
    Answer,
    Fenced,
    FencedStranded,
    Pending,
    Replayed,
    Retry,
    Settled,
    Started,
)
from startonce.model.errors import (
    ForeignTable,
    NotApplied,
    ResultNotPersisted,
    ResultNotStorable,
    UnknownOutcome,
    Unreadable,
    WorkFailed,
)
from startonce.model.operations import Fault

WRITE_LOCK = "INSERT INTO startonce_run_locks VALUES (?, 'k', ?, ?, ?, 77)"


def deployment(database: SqliteDatabase, prefix: str = "r") -> Deployment:
    return Deployment(database, clock=ticking(), mint=counted(prefix))


def later(database: SqliteDatabase, key: str = "k") -> Answer:
    """Start as a fresh caller whose work must not be called."""
    return deployment(database, "later").start(key, lambda run: pytest.fail("executed again"))


def state(database: SqliteDatabase) -> tuple[str, str] | None:
    """Give run id and state of the key."""
    found = database.connection.execute("SELECT run_id, state FROM startonce_reservations WHERE key = 'k'")
    row: tuple[str, str] | None = found.fetchone()
    return row


def since(database: SqliteDatabase, *, locked: bool) -> int:
    """Say since when the claim, or the lock, is held."""
    text = (
        "SELECT created_at FROM startonce_run_locks"
        if locked
        else "SELECT updated_at FROM startonce_reservations"
    )
    (found,) = database.connection.execute(text).fetchone()
    assert isinstance(found, int)
    return found


def change(database: SqliteDatabase, *texts: str) -> None:
    for text in texts:
        database.connection.execute(text)


def lock(database: SqliteDatabase, holder: str, ended: int = 0, result: str | None = None) -> None:
    database.connection.execute(WRITE_LOCK, ("r-1", holder, ended, result))


SETTLE = "UPDATE startonce_reservations SET state = 'terminal'"
GIVE_BACK = "UPDATE startonce_reservations SET state = 'reserved'"
TAKE = "UPDATE startonce_reservations SET state = 'started'"
DELETE = "DELETE FROM startonce_reservations"
CANCEL = "INSERT INTO startonce_run_locks VALUES ('r-1', NULL, 'cancel', 0, NULL, 77)"
OTHER_RUN = "INSERT INTO startonce_reservations VALUES ('k', 'other', 'reserved', 5, 5)"


# --- one caller after another -----------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, False, 0, "", [], {"a": [1.5, "ä\0\ud800"]}, (1, 2)])
def test_a_new_key_is_executed_once_and_then_replayed(database: SqliteDatabase, value: Any) -> None:
    given: list[Run] = []

    def work(run: Run) -> Any:
        given.append(run)
        return value

    first = deployment(database).start("k", work)
    assert given == [Run("k", "r-1")]
    assert first == Started("r-1", json.loads(json.dumps(value)), settled=True)
    assert later(database) == Replayed("r-1", first.result)
    assert state(database) == ("r-1", "terminal")


def test_two_keys_are_two_runs(database: SqliteDatabase) -> None:
    ours = deployment(database)
    answers = [ours.start(key, lambda run: run.key) for key in ("7", "007")]
    assert [answer.run_id for answer in answers] == ["r-1", "r-3"]  # r-2 was the token of a holder


def test_the_same_key_inside_its_own_work_is_pending(database: SqliteDatabase) -> None:
    inner: list[Answer] = []
    ours = deployment(database)
    outer = ours.start("k", lambda run: inner.append(ours.start("k", lambda run: 1)))
    assert isinstance(outer, Started)
    assert [type(answer) for answer in inner] == [Pending]
    assert inner[0].run_id == outer.run_id


@pytest.mark.parametrize(("stop", "reached"), [("insert lock", False), ("execute", True)])
def test_STA_7_a_crash_after_the_claim_leaves_started_and_pending(
    database: SqliteDatabase, stop: str, reached: bool
) -> None:
    Held(database, clock=ticking(1000)).until(stop)
    for _ in range(3):
        assert later(database) == Pending("r-1", since(database, locked=reached), reached)
    kinds = {True: "reached the lock, not ended", False: "never reached the lock"}
    assert [entry.kind for entry in deployment(database).reservations.inventory()] == [kinds[reached]]


def test_STA_6_a_crash_between_insert_and_claim_heals_itself(database: SqliteDatabase) -> None:
    Held(database).until("claim")
    answer = deployment(database, "later").start("k", lambda run: run.run_id)
    assert answer == Started("r-1", "r-1", settled=True)


@pytest.mark.parametrize(
    ("changes", "answer", "after"),
    [
        (("started", "cancel", 0, None), Settled("r-1"), "terminal"),
        (("terminal", "cancel", 0, None), Settled("r-1"), "terminal"),
        (("terminal", None, 0, None), Settled("r-1"), "terminal"),
        (("terminal", "free", 0, None), Settled("r-1"), "terminal"),
        (("terminal", "token", 1, None), Settled("r-1"), "terminal"),  # its value was pruned
        (("started", "token", 1, None), Settled("r-1"), "terminal"),
        (("started", "token", 1, '{"value": 3}'), Replayed("r-1", 3), "terminal"),
        (("terminal", "token", 1, '{"value": 3}'), Replayed("r-1", 3), "terminal"),
        (("started", "free", 0, None), Retry("r-1"), "started"),
        (("started", "token", 0, None), Pending("r-1", 77, True), "started"),
        (("terminal", "token", 0, None), Pending("r-1", 77, True), "terminal"),
        (("started", None, 0, None), Pending("r-1", 66, False), "started"),
    ],
    ids=str,
)
def test_section_3_step_2_a_row_that_is_not_reserved_is_answered_by_its_lock(
    database: SqliteDatabase,
    changes: tuple[str, str | None, int, str | None],
    answer: Answer,
    after: str,
) -> None:
    deployment(database).reservations.reserve("k", "r-1")
    database.connection.execute("UPDATE startonce_reservations SET state = ?, updated_at = 66", changes[:1])
    if changes[1] is not None:
        lock(database, changes[1], *changes[2:])
    for closed in (False, True):  # the fence is for the winner of a claim only (STA-1)
        ours = deployment(database)
        (ours.fence.close if closed else ours.fence.open)()
        assert later(database) == answer
        assert state(database) == ("r-1", after)


def test_a_settle_that_is_refused_does_not_hide_the_result(database: SqliteDatabase) -> None:
    Held(database, work=lambda run: 3).until("settle")
    change(database, "PRAGMA query_only = 1")
    assert later(database) == Replayed("r-1", 3)
    change(database, "PRAGMA query_only = 0")
    assert state(database) == ("r-1", "started")
    assert later(database) == Replayed("r-1", 3)
    assert state(database) == ("r-1", "terminal")


@pytest.mark.parametrize("kept", ["nonsense", "3", "[]", '"value"', '{"error": 1}', "{}", "\0"])
def test_RD_3_a_result_that_is_not_ours_is_an_error(database: SqliteDatabase, kept: str) -> None:
    Held(database).until("claim")
    change(database, TAKE)
    lock(database, "token", 1, kept)
    with pytest.raises(Unreadable, match="not one of ours"):
        later(database)


# --- the work fails, or returns what cannot be kept ---------------------------------------------------


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("cannot even say so")


@pytest.mark.parametrize(
    "error", [ValueError("card ä\ud800\0 refused"), KeyError(1), Unspeakable(), StopIteration(3)], ids=repr
)
def test_a_failure_is_kept_raised_and_replayed(database: SqliteDatabase, error: Exception) -> None:
    def work(run: Run) -> None:
        raise error

    with pytest.raises(Exception) as caught:  # noqa: PT011
        deployment(database).start("k", work)
    assert caught.value is error
    assert state(database) == ("r-1", "terminal")
    for _ in range(2):
        with pytest.raises(WorkFailed) as replayed:
            later(database)
        assert (replayed.value.run_id, replayed.value.kind) == ("r-1", type(error).__name__)
        if not isinstance(error, Unspeakable):
            assert replayed.value.message == str(error)


class Lazy(dict[str, int]):
    def items(self) -> Any:
        raise RuntimeError("the session is closed")


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "value",
    [{1}, object(), b"x", math.nan, {"a": math.inf}, {(1, 2): 3}, 10**5000, CIRCLE, DEEP, Lazy(a=1)],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_is_no_json_is_a_kept_failure(database: SqliteDatabase, value: Any) -> None:
    with pytest.raises(ResultNotStorable, match="r-1"):
        deployment(database).start("k", lambda run: value)
    with pytest.raises(WorkFailed) as replayed:
        later(database)
    assert replayed.value.kind == "ResultNotStorable"
    assert state(database) == ("r-1", "terminal")


def test_a_value_longer_than_the_database_stores_is_a_kept_failure(database: SqliteDatabase) -> None:
    database.connection.setlimit(0, 10_000)  # SQLITE_LIMIT_LENGTH
    with pytest.raises(ResultNotStorable):
        deployment(database).start("k", lambda run: "x" * 20_000)
    with pytest.raises(WorkFailed, match="ResultNotStorable"):
        later(database)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_ctrl_c_in_the_work_propagates_and_leaves_the_lock_held(
    database: SqliteDatabase, interruption: type[BaseException]
) -> None:
    def work(run: Run) -> None:
        raise interruption

    with pytest.raises(interruption):
        deployment(database).start("k", work)
    (entry,) = deployment(database).reservations.inventory()
    assert entry.kind == "reached the lock, not ended"
    assert isinstance(later(database), Pending)
    assert not database.connection.in_transaction


def test_a_result_too_deep_for_the_stack_of_its_reader_is_no_traceback(database: SqliteDatabase) -> None:
    def from_below(depth: int) -> Answer:
        return later(database) if depth == 0 else from_below(depth - 1)

    value: list[Any] = []
    for _ in range(999):
        value = [value]
    while value:  # until it is shallow enough to be kept from here
        with suppress(ResultNotStorable):
            deployment(database).start("k", lambda run, value=value: value)  # type: ignore[misc]
            break
        change(database, DELETE, "DELETE FROM startonce_run_locks")
        value = value[0]
    assert value
    with suppress(Unreadable):  # an answer or one of our errors, never a RecursionError
        assert from_below(20) == Replayed("r-1", value)


# --- the result or the settle is not heard of ---------------------------------------------------------


def under(fault: Fault, held: Held, name: str, times: int) -> Held:
    """Let a statement fail whenever it comes, so many times at most."""
    while held.name != "over":
        if held.name == name and times:
            times -= 1
            held.step(fault)
        else:
            held.step()
    return held


@pytest.mark.parametrize("fault", [Fault.NOT_APPLIED, Fault.LOST, Fault.LATE])
@pytest.mark.parametrize("times", [1, 2])
def test_a_result_is_sent_again_until_it_is_kept(
    database: SqliteDatabase, fault: Fault, times: int
) -> None:
    held = under(fault, Held(database), "persist", times)
    assert held.finish() == Started("r-1", "r-1", settled=True)
    held.land()
    assert later(database) == Replayed("r-1", "r-1")


@pytest.mark.parametrize("work", [lambda run: {"paid": 3}, lambda run: 1 / 0])
@pytest.mark.parametrize("fault", [Fault.NOT_APPLIED, Fault.LATE])
def test_a_result_that_is_not_kept_is_raised_with_it_and_settles_nothing(
    database: SqliteDatabase, fault: Fault, work: Callable[[Run], Any]
) -> None:
    held = under(fault, Held(database, work=work), "persist", 99)
    with pytest.raises(ResultNotPersisted) as caught:
        held.finish()
    assert caught.value.run_id == "r-1"
    kept = json.loads(caught.value.result)
    assert kept == {"value": {"paid": 3}} or kept["error"]["kind"] == "ZeroDivisionError"
    assert state(database) == ("r-1", "started")
    assert isinstance(later(database), Pending)
    (entry,) = deployment(database).reservations.inventory()
    assert entry.kind == "reached the lock, not ended"
    held.land()
    if fault is Fault.LATE:
        with suppress(WorkFailed):
            assert later(database) == Replayed("r-1", {"paid": 3})
        assert state(database) == ("r-1", "terminal")


@pytest.mark.parametrize("raises", ["ABORT, 'no'", "ROLLBACK, 'no'", "FAIL, 'no'", "IGNORE"])
def test_a_trigger_that_refuses_the_result_is_no_traceback(database: SqliteDatabase, raises: str) -> None:
    held = Held(database).until("persist")
    change(
        database, f"CREATE TRIGGER t BEFORE UPDATE ON startonce_run_locks BEGIN SELECT RAISE({raises}); END"
    )
    with pytest.raises(ResultNotPersisted) as caught:
        held.finish()
    assert json.loads(caught.value.result) == {"value": "r-1"}
    assert state(database) == ("r-1", "started")


@pytest.mark.parametrize(
    "change_it",
    [
        "UPDATE startonce_run_locks SET ended = 1, result = '1'",
        "UPDATE startonce_run_locks SET holder = 'another'",
        "DELETE FROM startonce_run_locks",
        "DROP TABLE startonce_run_locks",
    ],
)
def test_a_lock_that_another_hand_ended_or_took_away_is_reported(
    database: SqliteDatabase, change_it: str
) -> None:
    held = Held(database).until("persist")
    change(database, change_it)
    with pytest.raises(ResultNotPersisted):
        held.finish()
    assert state(database) == ("r-1", "started")


@pytest.mark.parametrize("fault", [Fault.NOT_APPLIED, Fault.LOST, Fault.LATE])
def test_a_settle_that_is_lost_is_still_started_and_the_next_caller_settles(
    database: SqliteDatabase, fault: Fault
) -> None:
    held = Held(database).until("settle")
    held.step(fault)
    assert held.finish() == Started("r-1", "r-1", settled=False)
    assert state(database) == ("r-1", "terminal" if fault is Fault.LOST else "started")
    assert later(database) == Replayed("r-1", "r-1")
    assert state(database) == ("r-1", "terminal")
    held.land()
    assert state(database) == ("r-1", "terminal")


# --- the fence -----------------------------------------------------------------------------------------


def test_STA_5_a_refused_key_starts_the_same_run_after_the_fence_opens(
    database: SqliteDatabase,
) -> None:
    ours = deployment(database)
    ours.fence.close()
    refused = ours.start("k", lambda run: pytest.fail("executed behind the fence"))
    assert refused == Fenced("r-1")
    assert later(database) == Fenced("r-1")
    ours.fence.open()
    assert ours.start("k", lambda run: 1) == Started("r-1", 1, settled=True)


@pytest.mark.parametrize(
    ("fault", "times", "answer"),
    [
        (Fault.NOT_APPLIED, 2, Fenced("r-1")),
        (Fault.NOT_APPLIED, 99, FencedStranded("r-1")),
        (Fault.LOST, 99, FencedStranded("r-1")),
        (Fault.LATE, 99, FencedStranded("r-1")),
    ],
)
def test_REL_4_a_release_is_repeated_only_after_it_was_certainly_not_applied(
    database: SqliteDatabase, fault: Fault, times: int, answer: Answer
) -> None:
    deployment(database).fence.close()
    held = under(fault, Held(database), "release", times)
    assert held.finish() == answer
    stays = isinstance(answer, FencedStranded) and fault is not Fault.LOST
    assert state(database) == ("r-1", "started" if stays else "reserved")
    if stays:
        assert isinstance(later(database), Pending)
    assert len(held.late) == (1 if fault is Fault.LATE else 0)
    held.land()
    heals = not stays or fault is Fault.LATE
    assert state(database) == ("r-1", "reserved" if heals else "started")


@pytest.mark.parametrize("times", [1, 2, 3])
def test_STA_4_a_fence_that_cannot_be_read_is_no_refusal(database: SqliteDatabase, times: int) -> None:
    held = under(Fault.LOST, Held(database), "read fence", times)
    if times < 3:
        assert held.finish() == Started("r-1", "r-1", settled=True)
        return
    with pytest.raises(Unreadable):
        held.finish()
    assert state(database) == ("r-1", "started")
    assert isinstance(later(database), Pending)


def test_a_release_that_finds_the_row_changed_goes_by_a_fresh_read(
    database: SqliteDatabase,
) -> None:
    deployment(database).fence.close()
    held = Held(database).until("release")
    change(database, CANCEL, SETTLE)
    assert held.finish() == Settled("r-1")


def test_a_release_that_finds_no_row_begins_afresh(database: SqliteDatabase) -> None:
    deployment(database).fence.close()
    held = Held(database).until("release")
    change(database, DELETE)
    assert held.finish() == Fenced("r-3")  # r-2 was minted as the holder of a lock
    assert state(database) == ("r-3", "reserved")


# --- two callers ----------------------------------------------------------------------------------------


def two(database: SqliteDatabase) -> tuple[Held, Held]:
    """Give A, whose runs are a-1.., and B, both before their claim of a-1."""
    a = Held(database, mint=counted("a")).until("claim")
    b = Held(database, mint=counted("b")).until("claim")
    return a, b


@pytest.mark.parametrize("stop", ["read fence", "insert lock", "execute", "persist"])
def test_the_loser_of_a_claim_is_told_that_the_run_is_pending(database: SqliteDatabase, stop: str) -> None:
    a, b = two(database)
    a.until(stop)
    reached = stop in ("execute", "persist")
    assert b.finish() == Pending("a-1", since(database, locked=reached), reached)
    assert a.finish() == Started("a-1", "a-1", settled=True)


@pytest.mark.parametrize("stop", ["settle", "over"])
def test_the_loser_of_a_claim_settles_and_replays_what_has_ended(
    database: SqliteDatabase, stop: str
) -> None:
    a, b = two(database)
    a.until(stop)
    assert b.finish() == Replayed("a-1", "a-1")
    assert state(database) == ("a-1", "terminal")
    assert a.finish() == Started("a-1", "a-1", settled=True)


def test_a_lost_claim_on_a_row_that_is_reserved_again_is_tried_once_more(
    database: SqliteDatabase,
) -> None:
    _, b = two(database)
    change(database, TAKE)
    b.step()
    change(database, GIVE_BACK)
    assert b.finish() == Started("a-1", "a-1", settled=True)


def test_a_claim_lost_twice_to_callers_that_were_refused_is_a_retry(
    database: SqliteDatabase,
) -> None:
    _, b = two(database)
    for _ in range(2):
        b.until("claim")
        change(database, TAKE)
        b.step()
        change(database, GIVE_BACK)
    assert b.finish() == Retry("a-1")
    assert state(database) == ("a-1", "reserved")


def test_a_lost_claim_on_a_row_that_vanished_begins_afresh(database: SqliteDatabase) -> None:
    a, b = two(database)
    a.finish()
    change(database, DELETE)
    assert b.finish() == Started("b-2", "b-2", settled=True)  # b-1 was minted as the holder of a lock
    assert state(database) == ("b-2", "terminal")


def test_CLM_4_a_lost_claim_on_a_rewritten_row_goes_by_that_row(database: SqliteDatabase) -> None:
    _, b = two(database)
    change(database, DELETE, OTHER_RUN)
    assert b.finish() == Started("other", "other", settled=True)


def test_a_lost_claim_on_a_row_that_another_run_started_is_pending(
    database: SqliteDatabase,
) -> None:
    _, b = two(database)
    change(database, DELETE, OTHER_RUN, TAKE)
    assert b.finish() == Pending("other", 5, False)


def test_a_claim_whose_outcome_is_unknown_is_raised_and_nothing_follows(
    database: SqliteDatabase,
) -> None:
    a, b = two(database)
    a.step(Fault.LATE)
    with pytest.raises(UnknownOutcome, match="claim"):
        a.finish()
    assert state(database) == ("a-1", "reserved")
    a.land()
    assert b.finish() == Pending("a-1", since(database, locked=False), False)


LOCK_LOST: list[tuple[tuple[str, ...], Answer]] = [
    ((CANCEL, SETTLE), Settled("r-1")),
    ((CANCEL,), Settled("r-1")),
    ((SETTLE,), Settled("r-1")),
    ((GIVE_BACK,), Retry("r-1")),
    ((WRITE_LOCK.replace("?, 'k', ?, ?, ?", "'r-1', 'k', 'free', 0, NULL"),), Retry("r-1")),
    (
        (WRITE_LOCK.replace("?, 'k', ?, ?, ?", "'r-1', 'k', 'else', 0, NULL"),),
        Pending("r-1", 77, True),
    ),
    (
        (WRITE_LOCK.replace("?, 'k', ?, ?, ?", """'r-1', 'k', 'else', 1, '{"value": 3}'"""),),
        Replayed("r-1", 3),
    ),
    ((DELETE, OTHER_RUN), Retry("other")),
    ((DELETE, OTHER_RUN, TAKE), Pending("other", 5, False)),
    ((DELETE, OTHER_RUN, SETTLE), Settled("other")),
    ((TAKE + ", updated_at = 66", "DROP TABLE startonce_run_locks"), Pending("r-1", 66, False)),
]


@pytest.mark.parametrize(("changes", "answer"), LOCK_LOST)
def test_LCK_4_a_lock_that_is_not_mine_goes_by_a_fresh_read(
    database: SqliteDatabase, changes: tuple[str, ...], answer: Answer
) -> None:
    held = Held(database, work=lambda run: pytest.fail("executed without the lock"))
    held.until("insert lock")
    change(database, *changes)
    assert held.finish() == answer


def test_LCK_4_a_lock_that_is_not_mine_and_no_row_begins_afresh(database: SqliteDatabase) -> None:
    held = Held(database).until("insert lock")  # r-2 is its holder
    change(database, DELETE)
    assert held.finish() == Started("r-3", "r-3", settled=True)


def test_LCK_5_a_lock_whose_reply_was_lost_is_read_back_and_executed(
    database: SqliteDatabase,
) -> None:
    held = Held(database).until("insert lock")
    held.step(Fault.LOST)
    assert held.finish() == Started("r-1", "r-1", settled=True)


def test_H9_a_lock_that_lands_late_is_held_and_never_executed(database: SqliteDatabase) -> None:
    held = Held(database, work=lambda run: pytest.fail("executed without the lock"))
    held.until("insert lock").step(Fault.LATE)
    assert held.finish() == Pending("r-1", since(database, locked=False), False)
    held.land()
    assert later(database) == Pending("r-1", since(database, locked=True), True)


@pytest.mark.parametrize("trouble", [Unreadable, ForeignTable])
def test_LCK_5_after_an_unknown_outcome_the_lock_is_only_read(
    database: SqliteDatabase, trouble: type[Unreadable]
) -> None:
    held = Held(database).until("insert lock")
    held.step(Fault.LOST)
    held.throw(trouble("read holder", "injected"))
    seen = []
    while held.name != "execute":
        seen.append(held.name)
        held.step()
    assert set(seen) == {"read lock"}


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_lock_that_was_certainly_not_taken_is_taken_again(database: SqliteDatabase, times: int) -> None:
    held = under(Fault.NOT_APPLIED, Held(database), "insert lock", times)
    if times < 3:
        assert held.finish() == Started("r-1", "r-1", settled=True)
        return
    with pytest.raises(NotApplied):
        held.finish()
    assert isinstance(later(database), Pending)


# --- reserving -------------------------------------------------------------------------------------------


def test_the_loser_of_an_insert_goes_by_the_run_of_the_winner(database: SqliteDatabase) -> None:
    a = Held(database, mint=counted("a")).until("insert")
    b = Held(database, mint=counted("b")).until("insert")
    a.until("read back")
    b.until("read back")
    assert b.finish() == Started("a-1", "a-1", settled=True)
    assert a.finish() == Replayed("a-1", "a-1")


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.LATE])
def test_an_insert_whose_reply_was_lost_is_resolved_by_reading(
    database: SqliteDatabase, fault: Fault
) -> None:
    held = Held(database).until("insert")
    held.step(fault)
    answer = held.finish()
    assert answer.run_id == ("r-1" if fault is Fault.LOST else "r-2")  # minted afresh: DUT-1
    assert isinstance(answer, Started)
    held.land()
    assert later(database) == Replayed(answer.run_id, answer.run_id)


def test_a_lost_reply_while_the_schema_is_made_is_resolved_by_reading_the_key(
    database: SqliteDatabase,
) -> None:
    held = Held(database)
    held.step()
    while held.name.startswith("create"):
        held.step(Fault.LOST)
    assert isinstance(held.finish(), Started)


def test_RSV_5_a_row_that_was_purged_before_the_read_back_is_reserved_afresh(
    database: SqliteDatabase,
) -> None:
    Held(database, mint=counted("old")).finish()
    change(database, "ALTER TABLE startonce_reservations RENAME TO aside")
    held = Held(database, mint=counted("new")).until("create locks")  # it read that there is no row
    change(database, "ALTER TABLE aside RENAME TO startonce_reservations")
    held.until("read back")
    change(database, DELETE)
    assert held.finish() == Started("new-2", "new-2", settled=True)


def test_a_key_whose_row_vanishes_for_ever_is_a_retry(database: SqliteDatabase) -> None:
    held = Held(database)
    for _ in range(ROUNDS):
        held.until("read back")
        change(database, DELETE)
        held.step()
    assert held.finish() == Retry(None)
