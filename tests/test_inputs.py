"""Bad input: refused before any SQL, shown safely, nothing left open. Good input: kept byte for byte."""

import re
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Any

import pytest
from conftest import counted, ticking
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from startonce.impl import operations as op
from startonce.impl.databases.sqlite import SqliteDatabase, connect
from startonce.impl.deployment import Deployment
from startonce.impl.operations import Operation
from startonce.impl.start import start
from startonce.model.errors import InvalidValue, StartOnceError, TooManyRuns

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-"
good = st.text(ALPHABET, min_size=1, max_size=200)

Bad = Callable[[Any], Operation[Any]]
OPERATIONS: dict[str, Bad] = {
    "reserve key": lambda bad: op.reserve(bad, "r", 0, create=True),
    "reserve run": lambda bad: op.reserve("k", bad, 0, create=True),
    "claim key": lambda bad: op.claim(bad, "r", 0),
    "claim run": lambda bad: op.claim("k", bad, 0),
    "release key": lambda bad: op.release(bad, "r", 0),
    "release run": lambda bad: op.release("k", bad, 0),
    "settle": lambda bad: op.settle(bad, 0),
    "read": op.read,
    "read both": op.read_both,
    "for_runs": lambda bad: op.for_runs(["r", bad], 100),
    "inventory key": lambda bad: op.inventory((bad, "r"), 1),
    "inventory run": lambda bad: op.inventory(("k", bad), 1),
    "take_lock key": lambda bad: op.take_lock(bad, "r", "h", 0),
    "take_lock run": lambda bad: op.take_lock("k", bad, "h", 0),
    "take_lock holder": lambda bad: op.take_lock("k", "r", bad, 0),
    "lock_of": op.lock_of,
    "persist run": lambda bad: op.persist(bad, "h", "{}"),
    "persist holder": lambda bad: op.persist("r", bad, "{}"),
    "start": lambda bad: start(bad, counted("r"), ticking()),  # type: ignore[dict-item, return-value]
}


def refused(operation: Callable[[], Any]) -> str:
    """Run what must be refused; give the message, which must be one short line of ASCII."""
    with pytest.raises(InvalidValue) as caught:
        operation()
    message = str(caught.value)
    assert message.isascii(), ascii(message)
    assert message.isprintable(), ascii(message)
    assert len(message) < 300
    return message


class Sub(str):
    __slots__ = ()


class Word(StrEnum):
    KEY = "k"


class Table:
    def __repr__(self) -> str:
        return "a  b\n1  2\x1b[31m"


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Schlüssel:
    pass


DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]

ODD: dict[str, Any] = {
    "empty": "",
    "201 characters": "a" * 201,
    "2 MB": "a" * 2_000_000,
    "2 MB that grow when shown": "\U0001f600" * 500_000,
    "NUL": "\0",
    "NUL inside": "k\0x",
    "lone surrogate": "k\ud800",
    "space before": " k",
    "space after": "k ",
    "newline after": "k\n",
    "composed": "\u00e9",
    "decomposed": "e\u0301",
    "fullwidth digit": "\uff17",
    "ligature": "\ufb01",
    "slash": "a/b",
    "percent": "%41",
    "quote": "'; DROP TABLE startonce_reservations; --",
    "None": None,
    "True": True,
    "int": 7,
    "huge int": 10**5000,
    "float": 1.1,
    "nan": float("nan"),
    "bytes": b"k",
    "2 MB of bytes": b"\xff" * 2_000_000,
    "bytearray": bytearray(b"k"),
    "list": ["k"],
    "a long list": list(range(10_000)),
    "deep list": DEEP,
    "subclass of str": Sub("k"),
    "enum": Word.KEY,
    "repr of two lines": Table(),
    "broken repr": Broken(),
    "class outside ASCII": Schlüssel(),
}


@pytest.mark.parametrize("bad", ODD.values(), ids=ODD)
def test_IN_1_an_odd_value_is_refused_before_any_statement(bad: Any) -> None:
    for make in OPERATIONS.values():
        refused(lambda make=make: next(make(bad)))  # type: ignore[misc]


anything = st.one_of(
    st.text(st.characters(exclude_categories=())),
    st.text(ALPHABET + " \n\0é", min_size=1),
    st.text(ALPHABET, min_size=201, max_size=300),
    st.binary(),
    st.integers(),
    st.floats(),
    st.none(),
    st.booleans(),
    st.lists(st.text()),
    st.tuples(st.text()),
    good.map(Sub),
    good.map(lambda text: text.encode()),
)


@settings(derandomize=True, database=None, deadline=None, max_examples=200)
@given(anything)
def test_IN_1_whatever_is_outside_the_rules_is_refused_before_any_statement(value: Any) -> None:
    if type(value) is str and re.fullmatch(r"[A-Za-z0-9._~\-]{1,200}", value):
        return
    for make in OPERATIONS.values():
        refused(lambda: next(make(value)))  # noqa: B023


@pytest.mark.parametrize(
    "bad", ["", "a b", "\ud800", "a" * 201, 7, b"k", None], ids=lambda value: ascii(value)[:12]
)
def test_IN_1_the_database_sees_nothing_of_it(database: SqliteDatabase, bad: Any) -> None:
    deployment = Deployment(database)
    rows, locks = deployment.reservations, deployment.locks
    seen: list[str] = []
    database.connection.set_trace_callback(seen.append)
    calls: list[Callable[[], Any]] = [
        lambda: deployment.start(bad, lambda run: pytest.fail("executed")),
        lambda: rows.reserve(bad, "r"),
        lambda: rows.reserve("k", bad),
        lambda: rows.claim(bad, "r"),
        lambda: rows.claim("k", bad),
        lambda: rows.release(bad, "r"),
        lambda: rows.release("k", bad),
        lambda: rows.settle(bad),
        lambda: rows.read(bad),
        lambda: rows.for_runs([bad]),
        lambda: rows.for_many_runs([bad]),
        lambda: rows.inventory((bad, "r")),
        lambda: list(rows.inventory(("k", bad))),
        lambda: locks.take_lock(bad, "r", "h"),
        lambda: locks.take_lock("k", bad, "h"),
        lambda: locks.take_lock("k", "r", bad),
        lambda: locks.lock_of(bad),
        lambda: locks.persist(bad, "h", "{}"),
        lambda: locks.persist("r", bad, "{}"),
    ]
    for call in calls:
        refused(call)
    assert seen == []
    assert not database.connection.in_transaction


def test_IN_1_the_message_says_what_is_wrong_with_what() -> None:
    def message(bad: Any) -> str:
        return refused(lambda: next(op.claim("k", bad, 0)))

    assert message("a" * 201).endswith("201 characters long, at most 200 are allowed")
    assert message("") == "run id '' is invalid: empty"
    assert r"'\ud800' is not one of A-Z a-z 0-9 . _ ~ -" in message("ab\ud800")
    assert message(7) == "run id 7 is invalid: a int, not a str"
    assert "key b'k' is invalid" in refused(lambda: next(op.read(b"k")))  # type: ignore[arg-type]


@pytest.mark.parametrize("word", ["free", "cancel"])
def test_LCK_1_the_words_of_operators_are_no_tokens(word: str) -> None:
    assert "holder" in refused(lambda: next(op.take_lock("k", "r", word, 0)))
    assert "holder" in refused(lambda: next(op.persist("r", word, "{}")))
    next(op.claim(word, word, 0))  # as a key and a run id they are like any other


# --- what is accepted ------------------------------------------------------------------------------------


@settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(key=good, run_id=good)
@example("a" * 200, "-" * 200)
@example(".", "..")
@example("NULL", "~")
@example("free", "cancel")
def test_IN_2_a_key_and_a_run_id_are_kept_byte_for_byte(
    database: SqliteDatabase, key: str, run_id: str
) -> None:
    rows = Deployment(database).reservations
    rows.reserve(key, run_id)
    row = rows.read(key)
    assert row is not None
    assert row.key == key
    assert row in rows.for_runs([row.run_id])
    assert rows.claim(key, row.run_id)
    rows.settle(row.run_id)
    rows.purge(2**62)


def test_IN_2_keys_that_look_alike_are_different_keys(database: SqliteDatabase) -> None:
    keys = ["007", "7", "7.0", "7.", "1e3", "1000", "1.10", "1.1", "K", "k", "-0", "0", "00", "nan", "NaN"]
    answers = [Deployment(database, mint=counted(f"of-{k}")).start(k, lambda run: run.key) for k in keys]
    assert [answer.run_id for answer in answers] == [f"of-{key}-1" for key in keys]
    for key in keys:
        answer = Deployment(database).start(key, lambda run: pytest.fail("executed again"))
        assert (answer.run_id, getattr(answer, "result", None)) == (f"of-{key}-1", key)


# --- many runs -----------------------------------------------------------------------------------------


@pytest.fixture
def capped(database: SqliteDatabase) -> SqliteDatabase:
    """Give a database that binds as few parameters as D1, with 300 rows of 260 runs."""
    database.connection.setlimit(9, 100)  # SQLITE_LIMIT_VARIABLE_NUMBER
    capped = SqliteDatabase(database.connection)
    rows = Deployment(capped, clock=ticking()).reservations
    rows.reserve("k-0", "r-0")
    for number in range(1, 300):
        rows.reserve(f"k-{number}", f"r-{number % 260}")
    return capped


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 250])
@pytest.mark.parametrize("repeated", [False, True])
def test_RUN_2_binds_exactly_what_it_is_given(capped: SqliteDatabase, count: int, repeated: bool) -> None:
    rows = Deployment(capped).reservations
    runs = [f"r-{number % 7 if repeated else number}" for number in range(count)]
    naming = {row.key for number in range(300) if (row := rows.read(f"k-{number}")) and row.run_id in runs}
    seen: list[str] = []
    capped.connection.set_trace_callback(seen.append)
    if count <= 100:
        found = rows.for_runs(runs)
        assert [row.key for row in found] == sorted(naming)
        assert len(seen) == min(count, 1)
    else:
        with pytest.raises(TooManyRuns, match=f"{count} run ids .* at most 100.*for_many_runs"):
            rows.for_runs(runs)
        assert seen == []
    seen.clear()
    assert [row.key for row in rows.for_many_runs(iter(runs))] == sorted(naming)
    assert len(seen) == -(-len(set(runs)) // 100)


def test_RUN_2_too_many_is_said_before_an_id_is_looked_at() -> None:
    with pytest.raises(TooManyRuns):
        next(op.for_runs(["not an id"] * 101, 100))


# --- bounds and horizons ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limit",
    [0, -1, True, False, None, 1.0, "1", b"1", 2**63, 2**70, 10**5000],
    ids=lambda value: f"{type(value).__name__}-{value if value != 10**5000 else 'huge'}",
)
def test_a_limit_that_is_no_count_is_refused_before_any_statement(limit: Any) -> None:
    refused(lambda: next(op.purge(0, limit)))
    refused(lambda: next(op.inventory(None, limit)))


@pytest.mark.parametrize(
    "horizon",
    [
        None,
        1.5,
        float("inf"),
        float("nan"),
        "2026-01-01",
        "",
        b"",
        datetime(2000, 1, 1),
        True,
        2**63,
        2**70,
    ],
    ids=str,
)
def test_PRG_1_a_horizon_that_is_no_time_deletes_nothing(database: SqliteDatabase, horizon: Any) -> None:
    deployment = Deployment(database)
    deployment.start("k", lambda run: 1)
    try:
        refused(lambda: deployment.reservations.purge(horizon))
    finally:
        assert deployment.reservations.read("k") is not None, "a spent key was forgotten"


@pytest.mark.parametrize("horizon", [-(2**63), -1, 0, 2**63 - 1])
def test_PRG_1_every_time_that_sqlite_stores_is_a_horizon(database: SqliteDatabase, horizon: int) -> None:
    deployment = Deployment(database, clock=lambda: 1)
    deployment.start("k", lambda run: 1)
    assert deployment.reservations.purge(horizon, 2**63 - 1) == (horizon > 1)
    assert len(deployment.reservations.inventory(limit=2**63 - 1)) == 0


@pytest.mark.parametrize("now", [1.5, "now", None, 2**63, 2**70])
def test_RSV_7_a_clock_that_gives_no_time_stores_nothing(database: SqliteDatabase, now: Any) -> None:
    ours = Deployment(database, clock=lambda: now)
    with pytest.raises(StartOnceError) as caught:
        ours.start("k", lambda run: pytest.fail("executed"))
    assert "insert" in str(caught.value)
    assert Deployment(database).reservations.read("k") is None
    assert not database.connection.in_transaction


def test_DUT_1_a_mint_that_gives_no_id_stores_nothing(database: SqliteDatabase) -> None:
    ours = Deployment(database, mint=lambda: "no id")
    refused(lambda: ours.start("k", lambda run: pytest.fail("executed")))
    assert Deployment(database).reservations.read("k") is None


def test_a_parameter_limit_is_that_of_the_connection() -> None:
    database = connect(":memory:")
    assert database.parameter_limit == database.connection.getlimit(9)
    database.close()
