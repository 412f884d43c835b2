"""No false alarm: what is correct and built differently is flagged by no check, and every check really ran."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from startonce.impl.statements import RESERVATIONS
from startonce.model.operations import INVALID, NOT_APPLIED, REFUSED, Reserved
from startonce.model.reservation import EMPTY, NOTHING, Database, Reservation, State
from startonce.oracle import machine
from startonce.oracle.check import QUICK, everything
from startonce.oracle.different import (
    COPY,
    DIFFERENT,
    UPSERT,
    Counting,
    Transacting,
    archiving,
    creating,
    or_error,
    over,
    returning_nothing,
    sending,
    upserting,
)
from startonce.oracle.different_tables import (
    ARCHIVE,
    ARCHIVED,
    ASKED,
    AUDIT,
    AUDITED,
    GENERATED,
    LOG,
    LOGGED,
    LOOSE,
    Logged,
    Remembered,
    Reshaped,
)
from startonce.oracle.edges import walk
from startonce.oracle.ledger import Ledger
from startonce.oracle.probes import NOW, ask, probe
from startonce.oracle.report import Report
from startonce.oracle.subject import REPLICA, STEPPING, Subject
from startonce.own import OURS, Operations, Schema, SqlSubject

IN_ONE_PIECE = {
    "one upsert",
    "a transaction around reserve",
    "archived before the purge",
    "no database",
}
"""Those whose statements are not the model's: nobody can be held inside them."""

OF_CALLERS = {
    "REL-3", "REL-4", "LCK-4", "DUT-1", "DUT-2", "STA-1", "STA-2", "STA-3", "STA-4", "STA-5", "STA-6",
    "STA-7", "STA-9", "STA-10", "STA-11",
}  # fmt: skip
BETWEEN_STATEMENTS = {"RSV-5", "CLM-6", "LCK-5"}
UNABLE = {"a log": {"RSV-7"}, "no database": {"RSV-7", "RUN-2"}}
"""A log cannot be spoiled as a table can; dicts have no schema, and no limit on parameters."""


@pytest.fixture(scope="module")
def ours() -> Report:
    """Check our own store: `test_edges` pins what is walked there."""
    return everything(SqlSubject(), QUICK)


def no_alarm(name: str, report: Report, ours: Report) -> None:
    """Nothing is flagged, every edge was executed, and no clause is silently left out."""
    whole = name in IN_ONE_PIECE
    assert {v.clause: v.divergence for v in report.of("violated")} == {}
    held = {"held locks", "faults", "statements"} if whole else set()
    assert report.walked == tuple(one for one in ours.walked if one.name not in held)
    assert all(one.executed == one.edges > 0 for one in report.walked)
    unchecked = OF_CALLERS | (BETWEEN_STATEMENTS if whole else set()) | UNABLE.get(name, set())
    assert {v.clause for v in report.of("not checked")} == unchecked
    assert report.of("not applicable") == []
    assert report.machine is not None
    assert report.machine.examples >= QUICK.examples
    assert report.machine.steps > 2_500
    assert whole or report.machine.faults > 0.15


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_is_built_differently_is_not_flagged(name: str, ours: Report) -> None:
    subject = DIFFERENT[name].build(":memory:")
    assert (STEPPING not in subject.capabilities) == (name in IN_ONE_PIECE)
    no_alarm(name, everything(subject, QUICK), ours)
    subject.close()


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "one upsert",
        "a transaction around reserve",
        "archived before the purge",
        "insert or error",
    ],
)
def test_what_is_built_differently_is_not_flagged_on_a_file(
    name: str, ours: Report, tmp_path: Path
) -> None:
    subject = DIFFERENT[name].build(tmp_path / "a.db")
    assert (REPLICA in subject.capabilities) == (name not in IN_ONE_PIECE)
    no_alarm(name, everything(subject, QUICK), ours)
    subject.close()


@pytest.mark.parametrize("name", ["generated ids", "audited", "change counter", "a log"])
def test_the_machine_flags_nothing_on_a_file(name: str, tmp_path: Path) -> None:
    subject, ledger = DIFFERENT[name].build(tmp_path / "a.db"), Ledger()
    tally, found = machine.drive(subject, ledger, examples=60)
    assert found is None
    assert tally.faults > 400
    assert set(ledger.evaluated) >= BETWEEN_STATEMENTS
    subject.close()


# --- they are different ---------------------------------------------------------------------------------

STORY: tuple[tuple[Any, ...], ...] = (
    ("reserve", "k1", "r1"),
    ("reserve", "k1", "r2"),
    ("claim", "k1", "r1"),
    ("release", "k1", "r1"),
    ("claim", "k1", "r1"),
    ("settle", "r1"),
    ("purge", 6, 10),
    ("reserve", "k1", "r3"),
)


def told(subject: Subject) -> list[Any]:
    """Tell the story on an empty database; give the answers."""
    subject.put(NOTHING)
    return [ask(subject, *step) for step in STORY]


ONLY_THERE = {
    "one upsert": "DO UPDATE SET asked = asked + 1",
    "a transaction around reserve": f"BEGIN IMMEDIATE\n;\nINSERT INTO {RESERVATIONS}",
    "insert where absent": f"INSERT INTO {RESERVATIONS} (key, run_id, state, created_at, updated_at)\nSELECT",
    "insert or error": "VALUES ('k1', 'r1', 'reserved', 5, 5)\nRETURNING",
    "generated ids": "WHERE id = (SELECT id FROM",
    "audited": f"CREATE TRIGGER IF NOT EXISTS {AUDIT}_update",
    "another table": "key VARCHAR(200) NOT NULL PRIMARY KEY",
    "archived before the purge": f"INSERT INTO {ARCHIVE}",
    "change counter": "AND run_id = 'r1' AND state = 'reserved'\n;",
    "a log": f"INSERT INTO {LOG}",
}
"""A piece of SQL that one of them sends and none of the others, nor we."""


def test_each_says_the_same_by_other_statements() -> None:
    sent = {}
    expected = told(SqlSubject())
    for name, build in [("ours", SqlSubject), *((name, one.build) for name, one in DIFFERENT.items())]:
        subject = build(":memory:")
        texts: list[str] = []
        if isinstance(subject, SqlSubject):
            subject.observer.connection.set_trace_callback(texts.append)
        assert told(subject) == expected
        sent[name] = "".join(f"{text}\n;\n" for text in texts)
        subject.close()
    for name, piece in ONLY_THERE.items():
        assert [other for other, text in sent.items() if piece in text] == [name]
    assert [name for name, text in sent.items() if not text] == ["no database"]
    assert set(ONLY_THERE) | {"no database"} == set(DIFFERENT)


def raw(name: str, text: str) -> list[Any]:
    """Tell the story to one of them; give what this finds in its database."""
    subject = DIFFERENT[name].build(":memory:")
    assert isinstance(subject, SqlSubject)
    told(subject)
    found = subject.observer.connection.execute(text).fetchall()
    subject.close()
    return found


def test_their_tables_are_of_other_shapes() -> None:
    columns = f"SELECT name FROM pragma_table_info('{RESERVATIONS}')"
    ours = [(field,) for field in Reservation._fields]
    assert raw("one upsert", columns) == [*ours, ("asked",)]
    assert raw("generated ids", columns) == [("id",), *ours]
    assert raw("another table", columns) == ours[::-1]
    assert raw("a log", f"SELECT type FROM sqlite_schema WHERE name = '{RESERVATIONS}'") == [("view",)]


def test_what_they_keep_beside_the_rows_is_kept() -> None:
    assert raw("generated ids", f"SELECT id > 1, run_id FROM {RESERVATIONS}") == [(1, "r3")]
    assert raw("archived before the purge", f"SELECT key, run_id FROM {ARCHIVE}") == [("k1", "r1")]
    states = ["reserved", "started", "reserved", "started", "terminal", "gone", "reserved"]
    assert raw("a log", f"SELECT state FROM {LOG} ORDER BY seq") == [(state,) for state in states]
    what = ["insert", *["update"] * 4, "delete", "insert"]
    assert raw("audited", f"SELECT what FROM {AUDIT} ORDER BY rowid") == [(one,) for one in what]


def test_audit_triggers_inflate_the_change_counter() -> None:
    for name, changes in (("audited", 3), ("change counter", 1)):
        subject = DIFFERENT[name].build(":memory:")
        assert isinstance(subject, SqlSubject)
        subject.put(EMPTY)
        ask(subject, "reserve", "k1", "r1")
        before = subject.observer.connection.total_changes
        assert ask(subject, "claim", "k1", "r1") is True
        assert subject.observer.connection.total_changes - before == changes


# --- transactions -----------------------------------------------------------------------------------------


def test_a_transaction_around_reserve_is_left_open_by_no_error(tmp_path: Path) -> None:
    build = DIFFERENT["a transaction around reserve"].build
    assert isinstance(build, partial)
    subject = build(tmp_path / "a.db", timeout=0)
    mine, other = subject.database(0).connection, subject.database(1).connection

    def answer(*call: Any) -> Any:
        given = ask(subject, *call)
        assert not mine.in_transaction
        return given

    subject.put(NOTHING)
    other.execute("BEGIN IMMEDIATE")
    assert answer("reserve", "k1", "r1") == NOT_APPLIED
    other.execute("ROLLBACK")
    assert subject.dump() == NOTHING
    assert answer("reserve", "k 1", "r1") == INVALID
    subject.spoil("refused", "k9")
    assert answer("reserve", "k9", "r1") == REFUSED
    row = Reservation("k1", "r1", State.RESERVED, 5, 5)
    assert answer("reserve", "k1", "r1") == Reserved(row, True)
    assert ask(subject, "claim", "k1", "r1", caller=1) is True
    subject.close()


SPENT = Database(
    (
        Reservation("k1", "r1", State.TERMINAL, 0, 1),
        Reservation("k2", "r2", State.STARTED, 0, 1),
        Reservation("k3", "r3", State.TERMINAL, 0, 1),
    ),
    (),
)


@pytest.mark.parametrize("statements", range(6))
def test_a_purge_that_crashes_has_neither_copied_nor_deleted(statements: int, tmp_path: Path) -> None:
    """It begins, copies, deletes two rows and commits: five statements."""
    subject = DIFFERENT["archived before the purge"].build(tmp_path / "a.db")
    assert isinstance(subject, SqlSubject)
    subject.put(SPENT)
    purge, database = archiving(COPY)["purge"](NOW, 2, 10), subject.database(0)
    ended: tuple[int, int] | None = None
    try:
        request = next(purge)
        for _ in range(statements):
            request = purge.send(database.run(*request))
    except StopIteration as stop:
        ended = (statements, stop.value)
    database.close()
    archived = subject.observer.connection.execute(f"SELECT key FROM {ARCHIVE} ORDER BY key").fetchall()
    left = [row.key for row in subject.dump().rows or ()]
    done = statements == 5
    assert ended == ((5, 2) if done else None)
    assert (archived, left) == ([("k1",), ("k3",)] if done else [], ["k2"] if done else ["k1", "k2", "k3"])
    subject.close()


# --- the same eyes see what is broken ----------------------------------------------------------------------


def without(schema: Schema, piece: str, instead: str = "") -> Schema:
    """A schema with a piece of its statements replaced."""
    assert any(piece in statement.sql for statement in schema[RESERVATIONS])
    return {
        **schema,
        RESERVATIONS: tuple(
            one._replace(sql=one.sql.replace(piece, instead)) for one in schema[RESERVATIONS]
        ),
    }


def upsert(text: str) -> Callable[[], Subject]:
    assert text != UPSERT
    operations = over(creating(ASKED), upserting(text))
    return partial(Reshaped, operations=operations, schema=ASKED, stepping=False)


def archive(text: str) -> Callable[[], Subject]:
    assert text != COPY
    return partial(Transacting, operations=archiving(text), schema=ARCHIVED, stepping=False)


def reshaped(schema: Schema, operations: Operations = OURS) -> Callable[[], Subject]:
    return partial(Reshaped, operations=over(creating(schema), operations), schema=schema)


LATEST_LOSES = {
    "insert": (
        f"INSERT INTO {LOG} (key, run_id, state, created_at, updated_at)\n"
        "VALUES (?, ?, 'reserved', ?, ?) RETURNING run_id",
        (0, 1, 2, 3),
    )
}


class Careless(Remembered):
    """Looks at the state of a row and not at its run."""

    def _move(self, now: int, row: Reservation | None, run_id: str, here: State, there: State) -> bool:
        return super()._move(now, row, row.run_id if row is not None else run_id, here, there)


BROKEN: dict[str, tuple[str, Callable[[], Subject]]] = {
    "an upsert that takes the run over": (
        "RSV-2", upsert(UPSERT.replace("asked + 1", "asked + 1, run_id = excluded.run_id")),
    ),
    "an upsert that always created": ("RSV-4", upsert(UPSERT.replace("asked = 1", "1"))),
    "an archive that takes live rows": ("PRG-1", archive(COPY.replace("state = 'terminal' AND ", ""))),
    "an archive without an order": ("PRG-1", archive(COPY.replace("updated_at, key", "key DESC"))),
    "generated ids and keys that are not unique": (
        "RSV-2", reshaped(without(GENERATED, " UNIQUE"), over(or_error)),
    ),
    "a table that folds the case of keys": (
        "IN-2", reshaped(without(LOOSE, "NOT NULL PRIMARY KEY", "COLLATE NOCASE NOT NULL PRIMARY KEY")),
    ),
    "a change counter beside triggers": (
        "SET-3",
        partial(Counting, operations=over(creating(AUDITED), over(returning_nothing)), schema=AUDITED),
    ),
    "a log that takes every insert": (
        "RSV-2",
        partial(Logged, operations=over(creating(LOGGED), over(sending(LATEST_LOSES))), schema=LOGGED),
    ),
    "dicts that do not look at the run": ("CLM-4", Careless),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_one_that_is_broken_is_flagged_where_it_is_broken(name: str) -> None:
    clause, build = BROKEN[name]
    subject, ledger = build(), Ledger()
    walk(subject, ledger)
    probe(subject, ledger)
    assert clause in ledger.divergences, f"{name} survived; found {list(ledger.divergences)}"
    found = ledger.divergences[clause]
    assert found.expected != found.observed
    subject.close()
