"""SQLite as it is: files, locks, foreign tables, triggers, errors. "Unreadable" is never "absent"."""

import os
import re
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from startonce.impl.databases.sqlite import CERTAINLY_NOT_APPLIED, SqliteDatabase, connect
from startonce.impl.deployment import Deployment
from startonce.impl.execution import Run
from startonce.impl.start import Pending, Replayed, Retry, Started
from startonce.impl.statements import CREATE_FENCE, CREATE_RESERVATIONS
from startonce.model.errors import (
    DatabaseUnusable,
    ForeignTable,
    MalformedRow,
    NotApplied,
    StartOnceError,
    UnknownOutcome,
    Unreadable,
    ValueRefused,
)
from startonce.model.reservation import State

READS: dict[str, Callable[[Deployment], Any]] = {
    "read": lambda d: d.reservations.read("k"),
    "for_runs": lambda d: d.reservations.for_runs(["r"]),
    "inventory": lambda d: d.reservations.inventory(),
    "lock_of": lambda d: d.locks.lock_of("r"),
    "fence": lambda d: d.fence.closed(),
}
WRITES: dict[str, Callable[[Deployment], Any]] = {
    "reserve": lambda d: d.reservations.reserve("new", "r-new"),
    "claim": lambda d: d.reservations.claim("k", "r"),
    "release": lambda d: d.reservations.release("s", "r-s"),
    "settle": lambda d: d.reservations.settle("r"),
    "purge": lambda d: d.reservations.purge(10**15),
    "take_lock": lambda d: d.locks.take_lock("s", "r-s", "h"),
    "persist": lambda d: d.locks.persist("r-t", "h", "{}"),
    "close_fence": lambda d: d.fence.close(),
}


def forbidden(run: Run) -> None:
    pytest.fail("executed")


def fill(path: Path | str, *, wal: bool = True) -> None:
    """Make a database: k is reserved, s started, t started with its lock held, x spent; fence open."""
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute(f"PRAGMA journal_mode = {'WAL' if wal else 'DELETE'}").fetchall()
    for statement in (*CREATE_RESERVATIONS, *CREATE_FENCE):
        raw.execute(statement.sql)
    raw.execute(
        "INSERT INTO startonce_reservations VALUES ('k', 'r', 'reserved', 5, 5),"
        "('s', 'r-s', 'started', 5, 5), ('t', 'r-t', 'started', 5, 5), ('x', 'r-x', 'terminal', 5, 5)"
    )
    raw.execute("INSERT INTO startonce_run_locks VALUES ('r-t', 't', 'h', 0, NULL, 5)")
    raw.execute("INSERT INTO startonce_fence VALUES (1, 0)")
    raw.close()


def content(path: Path) -> tuple[str, ...]:
    """Give everything that the database holds."""
    raw = sqlite3.connect(path)
    dump = tuple(raw.iterdump())
    raw.close()
    return dump


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fill(tmp_path / "app.db")
    return tmp_path / "app.db"


@contextmanager
def opened(path: Path | str, **options: Any) -> Iterator[Deployment]:
    database = connect(path, **{"timeout": 0.05} | options)
    try:
        yield Deployment(database)
    finally:
        database.close()


def raw_of(ours: Deployment) -> sqlite3.Connection:
    assert isinstance(ours.database, SqliteDatabase)
    return ours.database.connection


def error_of(kind: type[StartOnceError], action: Callable[[], Any], *said: str) -> StartOnceError:
    """Run what must fail with an error of this kind that says these words on one line."""
    with pytest.raises(kind) as caught:
        action()
    message = str(caught.value)
    assert "\n" not in message
    for word in said:
        assert word in message
    return caught.value


# --- opening a file -------------------------------------------------------------------------------------


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Give up the rights of root for a while: root may read and write everything."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """Give a folder that every user may search; that of pytest is its own."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.mark.parametrize("options", [{"create": False}, {"readonly": True}])
def test_a_missing_file_is_said_and_not_made(tmp_path: Path, options: Any) -> None:
    error_of(DatabaseUnusable, lambda: connect(tmp_path / "app.db", **options), "app.db does not exist")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    error_of(DatabaseUnusable, lambda: connect(tmp_path / "no" / "app.db"), "no such folder")
    (tmp_path / "file").touch()
    error_of(DatabaseUnusable, lambda: connect(tmp_path / "file" / "app.db"), "no such folder")


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    error_of(DatabaseUnusable, lambda: connect(tmp_path), "is a folder")


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe, said = tmp_path / "pipe", list[Exception]()
    os.mkfifo(pipe)

    def open_it() -> None:
        try:
            connect(pipe, timeout=0.05)
        except Exception as error:
            said.append(error)

    thread = threading.Thread(target=open_it, daemon=True)
    thread.start()
    thread.join(2)
    waited = thread.is_alive()
    if waited:
        os.close(os.open(pipe, os.O_WRONLY))
        thread.join(2)
    assert not waited
    assert [type(error) for error in said] == [DatabaseUnusable]


def test_a_device_is_no_database() -> None:
    error_of(DatabaseUnusable, lambda: connect("/dev/null", timeout=0.05), "/dev/null")


def test_a_file_that_may_not_be_read_is_said(shared_folder: Path) -> None:
    file = shared_folder / "app.db"
    fill(file)
    file.chmod(0)
    with ordinary_user():
        error_of(DatabaseUnusable, lambda: connect(file), "app.db cannot be read: Permission denied")


def test_a_folder_that_may_not_be_searched_is_said(shared_folder: Path) -> None:
    inner = shared_folder / "inner"
    inner.mkdir()
    fill(inner / "app.db")
    inner.chmod(0)
    try:
        with ordinary_user():
            error_of(DatabaseUnusable, lambda: connect(inner / "app.db"), "app.db")
    finally:
        inner.chmod(0o755)


@pytest.mark.parametrize("wal", [False, True])
def test_a_file_that_may_not_be_written_is_read_and_every_write_is_not_applied(
    shared_folder: Path, wal: bool
) -> None:
    file = shared_folder / "app.db"
    fill(file, wal=wal)
    file.chmod(0o444)
    shared_folder.chmod(0o777)  # a WAL file is read only where its index can be made
    before = content(file)
    with ordinary_user(), opened(file) as ours:
        assert ours.reservations.read("k") is not None
        for write in WRITES.values():
            error_of(NotApplied, partial(write, ours), "cannot be written")
        error_of(NotApplied, lambda: ours.start("k", forbidden), "claim")
        error_of(NotApplied, lambda: ours.start("new", forbidden))
    assert content(file) == before


ZIP = b"PK\x03\x04" + bytes(200)
TEXT = "Größe: 3\n".encode() * 9
NOT_DATABASES: dict[str, Callable[[bytes], bytes]] = {
    "text": lambda good: TEXT,
    "zip": lambda good: ZIP,
    "one byte": lambda good: b"S",
    "part of the magic": lambda good: good[:10],
    "only the magic": lambda good: good[:16],
    "cut in its header": lambda good: good[:50],
    "cut after its header": lambda good: good[:100],
    "cut in its first page": lambda good: good[:2000],
    "cut in the middle": lambda good: good[:8192],
    "garbage after the magic": lambda good: good[:16] + bytes(range(256)) * 16,
    "garbage after the header": lambda good: good[:100] + b"\xff" * (len(good) - 100),
    "encrypted": lambda good: bytes(byte ^ 0x5A for byte in good),
}


@pytest.mark.parametrize("case", NOT_DATABASES)
@pytest.mark.parametrize("options", [{}, {"create": False}, {"readonly": True}], ids=str)
def test_what_is_no_database_is_said_and_left_as_it_is(tmp_path: Path, case: str, options: Any) -> None:
    fill(tmp_path / "good.db", wal=False)
    spoiled = NOT_DATABASES[case]((tmp_path / "good.db").read_bytes())
    file = tmp_path / "bad.db"
    file.write_bytes(spoiled)
    names = sorted(tmp_path.iterdir())
    error_of(DatabaseUnusable, lambda: connect(file, timeout=0.05, **options), "bad.db")
    assert file.read_bytes() == spoiled
    assert sorted(tmp_path.iterdir()) == names


def test_the_first_bytes_of_what_is_no_database_are_shown_safely(tmp_path: Path) -> None:
    for data, shown in ((ZIP, r'"PK\x03\x04"'), (b"\x1b[31m\n", r'"\x1b[31"'), (TEXT, r'"Gr\xc3\xb6"')):
        (tmp_path / "bad.db").write_bytes(data)
        error_of(DatabaseUnusable, lambda: connect(tmp_path / "bad.db"), shown)


@pytest.mark.parametrize("name", ["a b.db", "a?mode=memory", "a#b.db", "a%00.db", "ü.db", "a&b;c=d"])
def test_a_file_may_have_an_odd_name(tmp_path: Path, name: str) -> None:
    with opened(tmp_path / name) as ours:
        ours.start("k", lambda run: 1)
    assert (tmp_path / name).read_bytes()[:15] == b"SQLite format 3"


def test_a_file_name_outside_of_unicode_is_opened_or_said(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/caf\xe9.db"
    with suppress(DatabaseUnusable), opened(os.fsdecode(name)) as ours:
        ours.start("k", lambda run: 1)
        assert os.path.exists(name)


@pytest.mark.parametrize("name", ["a" * 300, "app.db\0x"], ids=["too long", "NUL"])
def test_a_file_name_that_cannot_be_is_said(tmp_path: Path, name: str) -> None:
    error_of(DatabaseUnusable, lambda: connect(f"{tmp_path}/{name}"))
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_is_a_wal_file_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    fill(tmp_path / "old.db", wal=False)
    for name, mode in (("new.db", "wal"), ("old.db", "delete")):
        with opened(tmp_path / name) as ours:
            raw = raw_of(ours)
            assert raw.execute("PRAGMA journal_mode").fetchone() == (mode,)
            assert raw.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_connection_that_is_not_in_autocommit_is_refused() -> None:
    raw = sqlite3.connect(":memory:")
    error_of(DatabaseUnusable, lambda: SqliteDatabase(raw), "isolation_level=None")
    raw.close()


# --- other connections ----------------------------------------------------------------------------------


def test_a_lock_held_too_long_is_not_applied_and_may_be_tried_again(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    before = content(path)
    other.execute("BEGIN IMMEDIATE")
    with opened(path) as ours:
        for write in WRITES.values():
            error_of(NotApplied, partial(write, ours), "locked", "timeout")
        error_of(NotApplied, lambda: ours.start("k", forbidden), "claim")
        for read in READS.values():
            read(ours)  # RD-3: the others write, and we read
        other.execute("ROLLBACK")
        assert content(path) == before
        assert ours.start("k", lambda run: 1) == Started("r", 1, settled=True)
    other.close()


def test_a_commit_that_readers_hold_up_is_rolled_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    fill(path, wal=False)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM startonce_reservations").fetchone()
    with opened(path) as ours:
        for write in WRITES.values():
            error_of(NotApplied, partial(write, ours), "locked")
        raw = raw_of(ours)
        assert not raw.in_transaction
        reader.execute("COMMIT")
        assert ours.reservations.claim("k", "r")
    reader.close()


def test_a_lock_given_back_within_the_timeout_is_waited_for(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.1, lambda: other.execute("COMMIT"))
    timer.start()
    with opened(path, timeout=10) as ours:
        assert ours.reservations.claim("k", "r")
    timer.join()
    other.close()


def test_a_transaction_that_somebody_left_open_executes_nothing(path: Path) -> None:
    with opened(path) as ours:
        raw = raw_of(ours)
        raw.execute("BEGIN")
        error_of(Unreadable, lambda: ours.start("k", forbidden))
        raw.execute("ROLLBACK")
        assert ours.start("k", lambda run: 1) == Started("r", 1, settled=True)


def test_a_transaction_that_the_work_left_open_keeps_no_answer_back(path: Path) -> None:
    with opened(path) as ours:
        raw = raw_of(ours)
        with suppress(StartOnceError):
            ours.start("k", lambda run: raw.execute("BEGIN").fetchall())
            with opened(path) as others:
                assert isinstance(others.start("k", forbidden), Replayed)


def test_a_closed_connection_is_said(path: Path) -> None:
    with opened(path) as ours:
        raw_of(ours).close()
        for read in READS.values():
            error = error_of(Unreadable, partial(read, ours), "closed")
            assert "value" not in str(error)
        for write in WRITES.values():
            error = error_of(NotApplied, partial(write, ours), "closed")
            assert not isinstance(error, ValueRefused), str(error)


def test_a_connection_of_another_thread_is_said(path: Path) -> None:
    said: list[BaseException] = []

    def elsewhere() -> None:
        for action in (WRITES["claim"], READS["read"], lambda d: d.start("k", forbidden)):
            try:
                action(ours)
            except BaseException as error:
                said.append(error)

    with opened(path) as ours:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert ours.reservations.claim("k", "r")
    assert [type(error) for error in said] == [NotApplied, Unreadable, Unreadable]
    assert all("thread" in str(error) for error in said)


# --- reads ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("tables", [True, False])
def test_RD_1_a_read_writes_nothing(
    tmp_path: Path, read: Callable[[Deployment], Any], tables: bool
) -> None:
    path = tmp_path / "app.db"
    if tables:
        fill(path, wal=False)
    else:
        raw = sqlite3.connect(path)
        raw.execute("CREATE TABLE other (x)")
        raw.close()
    data = path.read_bytes()
    with opened(path) as ours, opened(path, readonly=True) as readonly:
        raw = raw_of(ours)
        versions = [raw.execute(f"PRAGMA {name}").fetchone() for name in ("data_version", "schema_version")]
        reads_only = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION}
        for each in (ours, readonly):
            raw_of(each).set_authorizer(
                lambda action, *_: sqlite3.SQLITE_OK if action in reads_only else sqlite3.SQLITE_DENY
            )
            answer = read(each)
            if not tables:
                assert answer in (None, (), False)
            raw_of(each).set_authorizer(None)
        assert versions == [
            raw.execute(f"PRAGMA {name}").fetchone() for name in ("data_version", "schema_version")
        ]
        assert raw.total_changes == 0
    assert path.read_bytes() == data
    assert [file.name for file in tmp_path.iterdir()] == ["app.db"]


def test_RD_3_a_spent_key_is_replayed_on_a_connection_that_may_not_write(path: Path) -> None:
    with opened(path) as ours:
        ours.start("k", lambda run: [1])
    with opened(path, readonly=True) as ours:
        assert ours.start("k", forbidden) == Replayed("r", [1])
        assert ours.start("s", forbidden) == Pending("r-s", 5, False)


def test_without_tables_everything_answers_and_nothing_is_made(tmp_path: Path) -> None:
    with opened(tmp_path / "app.db") as ours:
        assert [read(ours) for read in READS.values()] == [None, (), (), None, False]
        answers = {name: write(ours) for name, write in WRITES.items() if name in
                   ("claim", "release", "settle", "purge", "persist")}  # fmt: skip
        assert answers == {"claim": False, "release": False, "settle": 0, "purge": 0, "persist": False}
        assert not ours.locks.take_lock("k", "r", "h").mine
        raw = raw_of(ours)
        assert raw.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)


# --- tables of our name that are not ours ---------------------------------------------------------------

LOOSE = "CREATE TABLE startonce_reservations (key, run_id, state, created_at, updated_at)"
LOOSE_LOCKS = "CREATE TABLE startonce_run_locks (run_id UNIQUE, key, holder, ended, result, created_at)"


def spoil(path: Path, *texts: str) -> None:
    raw = sqlite3.connect(path, isolation_level=None)
    for text in texts:
        raw.execute(text)
    raw.close()


SCHEMAS = {
    "other columns": "CREATE TABLE startonce_reservations (id, name)",
    "a view of nothing": "CREATE VIEW startonce_reservations AS SELECT * FROM startonce_archive",
    "a view": "CREATE VIEW startonce_reservations AS SELECT 'k' AS key, 3 AS other",
    "no unique key": LOOSE,
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_RD_2_a_table_that_is_not_ours_is_an_error_and_never_absent(path: Path, schema: str) -> None:
    spoil(path, "DROP TABLE startonce_reservations", schema)
    before = content(path)
    loose = schema == LOOSE
    with opened(path) as ours:
        for name in ("read", "for_runs", "inventory"):
            if not loose:
                error_of(Unreadable, partial(READS[name], ours), "startonce")
        for name in ("reserve", "claim", "release", "settle", "purge", "take_lock"):
            if not loose or name == "reserve":
                error_of(NotApplied, partial(WRITES[name], ours), "startonce")
        with pytest.raises(ForeignTable, match="startonce sql"):
            ours.start("k", forbidden)
    made = [line for line in content(path) if line not in before]
    assert all("CREATE INDEX" in line for line in made)  # by `reserve`, where the columns fit


def test_RD_2_a_trigger_on_a_missing_table_is_an_error(path: Path) -> None:
    spoil(
        path,
        "CREATE TRIGGER t AFTER UPDATE ON startonce_reservations "
        "BEGIN INSERT INTO startonce_archive VALUES (1); END",
    )
    with opened(path) as ours:
        for name in ("claim", "release", "settle"):
            error_of(NotApplied, partial(WRITES[name], ours), "archive")
        error_of(NotApplied, lambda: ours.start("k", forbidden), "archive")
        row = ours.reservations.read("k")
        assert row is not None
        assert row.state is State.RESERVED


BAD_ROWS = {
    "state unknown": "'k', 'r', 'running', 5, 5",
    "state NULL": "'k', 'r', NULL, 5, 5",
    "state in capitals": "'k', 'r', 'RESERVED', 5, 5",
    "state a blob": "'k', 'r', x'7265736572766564', 5, 5",
    "run NULL": "'k', NULL, 'reserved', 5, 5",
    "run a number": "'k', 7, 'reserved', 5, 5",
    "time a text": "'k', 'r', 'reserved', 'now', 5",
    "time NULL": "'k', 'r', 'reserved', 5, NULL",
    "time a float": "'k', 'r', 'reserved', 5, 5.5",
}


@pytest.mark.parametrize("row", BAD_ROWS.values(), ids=BAD_ROWS)
def test_RD_3_a_malformed_row_is_an_error_and_never_absent(path: Path, row: str) -> None:
    spoil(
        path,
        "DROP TABLE startonce_reservations",
        LOOSE.replace("key,", "key UNIQUE,"),
        f"INSERT INTO startonce_reservations VALUES ({row})",
    )
    with opened(path) as ours:
        error_of(MalformedRow, lambda: ours.reservations.read("k"))
        error_of(MalformedRow, lambda: ours.start("k", forbidden))
        if "'r'" in row:
            error_of(MalformedRow, lambda: ours.reservations.for_runs(["r"]))


@pytest.mark.parametrize("twice", ["k", "K"])
def test_RD_3_two_rows_for_a_key_are_an_error(path: Path, twice: str) -> None:
    loose = LOOSE.replace("key,", "key COLLATE NOCASE,")
    row = "INSERT INTO startonce_reservations VALUES ('{}', 'r', 'reserved', 5, 5)"
    spoil(path, "DROP TABLE startonce_reservations", loose, row.format("k"), row.format(twice))
    with opened(path) as ours:
        error_of(MalformedRow, lambda: ours.reservations.read("k"))
        error_of(MalformedRow, lambda: ours.start("k", forbidden))


def test_IN_2_a_table_that_ignores_case_is_not_ours(path: Path) -> None:
    loose = LOOSE.replace("key,", "key UNIQUE COLLATE NOCASE,")
    row = "INSERT INTO startonce_reservations VALUES ('K', 'r', 'reserved', 5, 5)"
    spoil(path, "DROP TABLE startonce_reservations", loose, row)
    with opened(path) as ours:
        error_of(MalformedRow, lambda: ours.reservations.read("k"), "'K'")
        error_of(MalformedRow, lambda: ours.start("k", forbidden))


def test_RD_3_a_state_written_past_the_check_is_an_error(path: Path) -> None:
    spoil(
        path, "PRAGMA ignore_check_constraints = 1", "UPDATE startonce_reservations SET state = 'running'"
    )
    with opened(path) as ours:
        error_of(MalformedRow, lambda: ours.reservations.read("k"), "running")
        error_of(MalformedRow, lambda: ours.reservations.inventory(), "running")
        error_of(MalformedRow, lambda: ours.start("k", forbidden), "running")


def test_NULL_keys_are_nobodys(path: Path) -> None:
    nobody = "INSERT INTO startonce_reservations VALUES (NULL, 'r', 'reserved', 5, 5)"
    spoil(path, "DROP TABLE startonce_reservations", LOOSE.replace("key,", "key UNIQUE,"), nobody, nobody)
    with opened(path) as ours:
        assert ours.reservations.read("k") is None
        error_of(MalformedRow, lambda: ours.reservations.for_runs(["r"]), "None")


def test_our_own_schema_takes_no_NULL_and_no_other_type(path: Path) -> None:
    raw = sqlite3.connect(path, isolation_level=None)
    good = ["n", "r", "reserved", 5, 5]
    for place, value in [(0, None), (0, b"n"), (1, None), (2, None), (2, "odd"), (3, "x"), (4, None)]:
        bad = [value if index == place else cell for index, cell in enumerate(good)]
        with pytest.raises(sqlite3.IntegrityError):
            raw.execute("INSERT INTO startonce_reservations VALUES (?, ?, ?, ?, ?)", bad)
    raw.close()


BAD_LOCKS = {
    "holder NULL": "'r-t', 't', NULL, 0, NULL, 5",
    "holder a number": "'r-t', 't', 7, 0, NULL, 5",
    "ended NULL": "'r-t', 't', 'h', NULL, NULL, 5",
    "ended 7": "'r-t', 't', 'h', 7, NULL, 5",
    "result a blob": "'r-t', 't', 'h', 1, x'7b7d', 5",
    "result a number": "'r-t', 't', 'h', 1, 3, 5",
    "time a text": "'r-t', 't', 'h', 0, NULL, 'now'",
    "time NULL": "'r-t', 't', 'h', 0, NULL, NULL",
}


@pytest.mark.parametrize("lock", BAD_LOCKS.values(), ids=BAD_LOCKS)
def test_RD_3_a_malformed_lock_is_an_error_and_never_a_free_one(path: Path, lock: str) -> None:
    insert = f"INSERT INTO startonce_run_locks VALUES ({lock})"
    spoil(path, "DROP TABLE startonce_run_locks", LOOSE_LOCKS, insert)
    with opened(path) as ours:
        error_of(Unreadable, lambda: ours.locks.lock_of("r-t"))
        error_of(Unreadable, lambda: ours.start("t", forbidden))


@pytest.mark.parametrize("holder", ["NULL", "7"])
def test_INV_2_a_malformed_lock_is_not_explained_as_something_else(path: Path, holder: str) -> None:
    insert = f"INSERT INTO startonce_run_locks VALUES ('r-t', 't', {holder}, 0, NULL, 5)"
    spoil(path, "DROP TABLE startonce_run_locks", LOOSE_LOCKS, insert)
    with opened(path) as ours:
        error_of(Unreadable, lambda: ours.reservations.inventory())


FENCES = {
    "2": "UPDATE startonce_fence SET closed = 2",
    "NULL": "INSERT INTO startonce_fence VALUES (1, NULL)",
    "a text": "INSERT INTO startonce_fence VALUES (1, 'no')",
    "two rows": "INSERT INTO startonce_fence VALUES (1, 0), (1, 1)",
    "other columns": "ALTER TABLE startonce_fence RENAME COLUMN closed TO shut",
    "a view of nothing": "CREATE VIEW startonce_fence AS SELECT * FROM elsewhere",
}


@pytest.mark.parametrize("case", FENCES)
def test_a_fence_that_is_nonsense_is_unreadable_and_no_refusal(path: Path, case: str) -> None:
    if case in ("NULL", "a text", "two rows"):
        spoil(path, "DROP TABLE startonce_fence", "CREATE TABLE startonce_fence (id, closed)")
    if case == "a view of nothing":
        spoil(path, "DROP TABLE startonce_fence")
    spoil(path, "PRAGMA ignore_check_constraints = 1", FENCES[case])
    with opened(path) as ours:
        error_of(Unreadable, ours.fence.closed, "fence")
        error_of(Unreadable, lambda: ours.start("k", forbidden), "fence")
        row = ours.reservations.read("k")
        assert row is not None
        assert row.state is State.STARTED  # never released for that


def test_RSV_6_half_a_schema_is_completed_by_a_reserve(path: Path) -> None:
    whole = content(path)
    for loss in (
        "DROP INDEX startonce_reservations_live",
        "DROP INDEX startonce_run_locks_held",
        "DROP TABLE startonce_run_locks",
    ):
        spoil(path, loss)
        with opened(path) as ours:
            if "TABLE" in loss:
                error_of(MalformedRow, ours.reservations.inventory, "half a schema")
                assert ours.locks.lock_of("r-t") is None
                assert ours.start("s", forbidden) == Pending("r-s", 5, False)
            assert not ours.reservations.reserve("k", "other").created
        assert {line for line in content(path) if "CREATE" in line} == {
            line for line in whole if "CREATE" in line
        }


def test_RSV_6_without_its_own_table_a_start_begins_anew(path: Path) -> None:
    spoil(path, "DROP TABLE startonce_reservations")
    with opened(path) as ours:
        assert ours.reservations.inventory() == ()
        assert isinstance(ours.start("k", lambda run: 1), Started)


# --- triggers -------------------------------------------------------------------------------------------


def state(path: Path, key: str = "k") -> str:
    raw = sqlite3.connect(path)
    (found,) = raw.execute("SELECT state FROM startonce_reservations WHERE key = ?", (key,)).fetchone()
    raw.close()
    assert isinstance(found, str)
    return found


@pytest.mark.parametrize("when", ["BEFORE", "AFTER"])
@pytest.mark.parametrize("how", ["ABORT", "FAIL", "ROLLBACK"])
def test_a_trigger_that_raises_is_certainly_not_applied_only_where_nothing_changed(
    path: Path, when: str, how: str
) -> None:
    spoil(
        path,
        f"CREATE TRIGGER t {when} UPDATE ON startonce_reservations BEGIN SELECT RAISE({how}, 'ä\nno'); END",
    )
    with opened(path) as ours:
        for name, key, before in (("claim", "k", "reserved"), ("release", "s", "started")):
            with pytest.raises((NotApplied, UnknownOutcome)) as caught:
                WRITES[name](ours)
            if isinstance(caught.value, NotApplied):
                assert state(path, key) == before, f"{name} was applied: {caught.value}"
        if (when, how) == ("AFTER", "FAIL"):  # the claim above was applied, and its outcome unknown
            assert isinstance(ours.start("k", forbidden), Pending)
        else:
            with pytest.raises((NotApplied, UnknownOutcome)):
                ours.start("k", forbidden)


def test_a_trigger_that_ignores_a_claim_changed_nothing(path: Path) -> None:
    spoil(path, "CREATE TRIGGER t BEFORE UPDATE ON startonce_reservations BEGIN SELECT RAISE(IGNORE); END")
    with opened(path) as ours:
        assert not ours.reservations.claim("k", "r")
        assert ours.start("k", forbidden) == Retry("r")
    assert state(path) == "reserved"


def test_a_trigger_that_undoes_a_claim_executes_nothing(path: Path) -> None:
    spoil(
        path,
        "CREATE TRIGGER t AFTER UPDATE ON startonce_reservations WHEN NEW.state = 'started' "
        "BEGIN UPDATE startonce_reservations SET state = 'reserved' WHERE key = NEW.key; END",
    )
    with opened(path) as ours:
        assert ours.start("k", forbidden) == Retry("r")


def test_a_trigger_that_deletes_what_is_reserved_executes_nothing(path: Path) -> None:
    spoil(
        path,
        "CREATE TRIGGER t AFTER INSERT ON startonce_reservations "
        "BEGIN DELETE FROM startonce_reservations WHERE key = NEW.key; END",
    )
    with opened(path) as ours:
        assert ours.start("new", forbidden) == Retry(None)


def test_triggers_that_write_more_rows_change_no_answer(path: Path) -> None:
    log = "INSERT INTO log VALUES (1), (2), (3);"
    spoil(
        path,
        "CREATE TABLE log (x)",
        *(
            f"CREATE TRIGGER {table}_{event} AFTER {event} ON startonce_{table} BEGIN {log} END"
            for table in ("reservations", "run_locks", "fence")
            for event in ("INSERT", "UPDATE", "DELETE")
        ),
    )
    with opened(path) as ours:
        rows = ours.reservations
        assert rows.reserve("new", "r").created
        assert not rows.reserve("new", "r-2").created
        assert [rows.claim("k", "r"), rows.claim("k", "r")] == [True, False]
        assert [rows.release("k", "r"), rows.release("k", "r")] == [True, False]
        assert [rows.settle("r"), rows.settle("r")] == [2, 0]
        assert [rows.purge(10**15, 1), rows.purge(10**15), rows.purge(10**15)] == [1, 2, 0]
        assert ours.locks.take_lock("s", "r-s", "h").mine
        assert [ours.locks.persist("r-s", "h", "{}") for _ in range(2)] == [True, False]
        ours.fence.close()
        assert ours.fence.closed()


# --- the table of errors --------------------------------------------------------------------------------


class Hooked(sqlite3.Connection):
    """A connection that calls `hook` with every statement before it runs."""

    hook: Callable[[str], None] = staticmethod(lambda text: None)

    def execute(self, text: str, *parameters: Any) -> sqlite3.Cursor:
        self.hook(text)
        return super().execute(text, *parameters)


@pytest.fixture
def hooked(path: Path) -> Iterator[tuple[Hooked, Deployment]]:
    raw = sqlite3.connect(path, isolation_level=None, factory=Hooked)
    yield raw, Deployment(SqliteDatabase(raw))
    raw.close()


def failing(code: int, name: str, first: str) -> Callable[[str], None]:
    """Make every statement that begins with a word fail with an error of SQLite."""

    def hook(text: str) -> None:
        if text.startswith(first) and "sqlite_schema" not in text:
            error = sqlite3.OperationalError("injected")
            error.sqlite_errorcode, error.sqlite_errorname = code, name
            raise error

    return hook


CODES = """
ERROR INTERNAL PERM ABORT BUSY LOCKED NOMEM READONLY INTERRUPT IOERR CORRUPT NOTFOUND FULL CANTOPEN
PROTOCOL EMPTY SCHEMA TOOBIG CONSTRAINT MISMATCH MISUSE NOLFS AUTH FORMAT RANGE NOTADB
BUSY_SNAPSHOT BUSY_RECOVERY LOCKED_SHAREDCACHE READONLY_DBMOVED CONSTRAINT_CHECK CONSTRAINT_NOTNULL
CANTOPEN_ISDIR IOERR_FSYNC IOERR_WRITE IOERR_SHORT_READ CORRUPT_INDEX
"""
"""Every primary code of SQLite, and some extended ones."""


def certain(name: str) -> bool:
    """Say whether section 7 and SQLite's documentation promise that nothing was applied."""
    return name.split("_")[0] not in (
        "IOERR", "FULL", "CORRUPT", "NOMEM", "INTERNAL", "NOTFOUND", "EMPTY", "NOLFS", "FORMAT",
    )  # fmt: skip


@pytest.mark.parametrize("name", CODES.split())
def test_every_error_of_sqlite_is_one_of_ours(hooked: tuple[Hooked, Deployment], name: str) -> None:
    raw, ours = hooked
    code = getattr(sqlite3, f"SQLITE_{name}")
    raw.hook = failing(code, f"SQLITE_{name}", "SELECT")
    error_of(Unreadable, lambda: ours.reservations.read("k"), name)
    raw.hook = failing(code, f"SQLITE_{name}", "UPDATE")
    error = error_of(StartOnceError, lambda: ours.reservations.claim("k", "r"), name)
    assert type(error) is (
        UnknownOutcome
        if not certain(name)
        else ForeignTable
        if name == "ERROR"
        else ValueRefused
        if name.split("_")[0] in ("CONSTRAINT", "TOOBIG", "MISMATCH")
        else NotApplied
    )
    error_of(type(error), lambda: ours.start("k", forbidden), name)
    raw.hook = lambda text: None
    assert ours.start("k", lambda run: 1) == Started("r", 1, settled=True)


def test_an_error_without_a_code_is_an_unknown_outcome(hooked: tuple[Hooked, Deployment]) -> None:
    raw, ours = hooked

    def hook(text: str) -> None:
        raise sqlite3.OperationalError("no code")

    raw.hook = hook
    error_of(UnknownOutcome, lambda: ours.reservations.claim("k", "r"), "no code")
    error_of(Unreadable, lambda: ours.reservations.read("k"), "no code")


def test_more_rows_than_a_claim_can_change_are_an_unknown_outcome(path: Path) -> None:
    row = "INSERT INTO startonce_reservations VALUES ('k', 'r', 'reserved', 5, 5)"
    spoil(path, "DROP TABLE startonce_reservations", LOOSE, row, row)
    with opened(path) as ours:
        error_of(UnknownOutcome, lambda: ours.reservations.claim("k", "r"), "2 rows")


def test_a_claim_whose_reply_the_disk_lost_is_never_released(hooked: tuple[Hooked, Deployment]) -> None:
    raw, ours = hooked
    sent: list[str] = []

    def hook(text: str) -> None:
        sent.append(text.split()[0])
        failing(sqlite3.SQLITE_IOERR, "SQLITE_IOERR", "UPDATE")(text)

    raw.hook = hook
    error_of(UnknownOutcome, lambda: ours.start("k", forbidden), "claim")
    assert sent == ["SELECT", "UPDATE"]


@pytest.mark.parametrize("statement", ["SELECT", "INSERT", "UPDATE"])
def test_RSV_6_a_table_that_another_caller_just_made_is_not_foreign(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "app.db"
    with opened(path):
        pass  # an empty WAL file
    raw = sqlite3.connect(path, isolation_level=None, factory=Hooked)
    ours = Deployment(SqliteDatabase(raw))
    ours.database.schema_ensured = True

    def hook(text: str) -> None:
        if "sqlite_schema" in text and sent[-1] == statement:  # it just failed, and asks what is missing
            raw.hook = lambda text: None
            fill(path)
        sent.append(text.split()[0])

    sent = [""]
    raw.hook = hook
    if statement == "UPDATE":
        assert ours.reservations.claim("k", "r"), (
            "the statement is run again, on the table that is there now"
        )
    elif statement == "INSERT":
        assert ours.reservations.reserve("k", "other").row.run_id == "r"
    else:
        assert ours.start("new", lambda run: 1).run_id
    raw.close()


@pytest.mark.parametrize("statement", ["SELECT", "INSERT", "UPDATE"])
def test_a_schema_that_changed_under_a_statement_is_looked_at_again(
    hooked: tuple[Hooked, Deployment], statement: str
) -> None:
    raw, ours = hooked
    fails = failing(sqlite3.SQLITE_SCHEMA, "SQLITE_SCHEMA", statement)
    failed: list[str] = []

    def hook(text: str) -> None:  # SQLite says so while another process makes the tables
        if not failed and text.startswith(statement):
            failed.append(text)
            fails(text)

    raw.hook = hook
    assert isinstance(ours.start("new", lambda run: 1), Started)
    assert failed


def test_an_interrupt_is_certainly_not_applied(path: Path) -> None:
    with opened(path) as ours:
        raw = raw_of(ours)
        raw.set_progress_handler(lambda: 1, 1)
        error_of(NotApplied, lambda: ours.reservations.claim("k", "r"), "INTERRUPT")
        error_of(Unreadable, lambda: ours.reservations.read("k"), "INTERRUPT")
        raw.set_progress_handler(None, 0)
    assert state(path) == "reserved"


def test_too_many_parameters_are_no_foreign_table(path: Path) -> None:
    with opened(path) as ours:
        raw = raw_of(ours)
        raw.setlimit(9, 10)  # after the deployment asked for the limit
        error_of(Unreadable, lambda: ours.reservations.for_runs(["r"] * 20), "too many SQL variables")


def test_the_page_of_answers_shows_this_very_table() -> None:
    page = (Path(__file__).parents[1] / "docs" / "answers.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\| `(SQLITE_\w+)` \| (.+?) \|$", page, re.MULTILINE))
    assert shown == dict(CERTAINLY_NOT_APPLIED)


def test_the_page_of_answers_names_every_answer_and_error() -> None:
    page = (Path(__file__).parents[1] / "docs" / "answers.md").read_text(encoding="utf-8")
    from startonce.impl import start
    from startonce.model import errors

    answers = [kind.__name__ for kind in start.Answer.__args__]
    kinds = [name for name, kind in vars(errors).items() if isinstance(kind, type) and name[0] != "_"]
    hidden = {"StartOnceError", "TableMissing", "Vanished", "TooManyRuns"}  # `start` raises none of these
    assert [name for name in answers + kinds if f"`{name}" not in page and name not in hidden] == []


def test_a_start_waits_no_longer_than_its_timeout(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with opened(path, timeout=0.2) as ours:
        began = time.monotonic()
        error_of(NotApplied, lambda: ours.start("k", forbidden), "timeout")
        assert time.monotonic() - began < 5
    other.close()
