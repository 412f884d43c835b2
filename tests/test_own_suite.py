"""Our own store, held to every clause by the class that users subclass."""

from pathlib import Path
from typing import Any

import pytest

from startonce.impl.databases.sqlite import connect
from startonce.impl.deployment import Deployment
from startonce.impl.statements import CREATE_RESERVATIONS, LOCKS, RESERVATIONS
from startonce.model.errors import StartOnceError
from startonce.model.operations import Raised
from startonce.model.reservation import NOTHING, Database, Reservation, State
from startonce.oracle.check import QUICK
from startonce.oracle.subject import OPERATIONS, Plain, Subject
from startonce.own import SqlSubject, raised
from startonce.testing import StartReservations


class TestStatementByStatement(StartReservations):
    """With every capability."""

    size = QUICK
    required = ("RSV-5", "CLM-4", "CLM-6", "LCK-5")

    def subject(self) -> Subject:
        return SqlSubject()


class ThroughTheStore(Plain):
    """Through the public methods of `Reservations`, as a user of the store would."""

    name = "the store"
    capabilities = OPERATIONS - {
        "take_lock",
        "persist",
        "cancel",
        "free",
        "lock_of",
        "fence",
        "close_fence",
        "open_fence",
    }

    def __init__(self) -> None:
        self.now = 0
        self.database = connect(":memory:")
        self.store = Deployment(self.database, clock=lambda: self.now).reservations

    def put(self, db: Database) -> None:
        execute = self.database.connection.execute
        for table in (RESERVATIONS, LOCKS):
            execute(f"DROP TABLE IF EXISTS {table}")
        self.database.schema_ensured = False
        for statement in CREATE_RESERVATIONS if db.rows is not None else ():
            execute(statement.sql)
        for row in db.rows or ():
            execute(f"INSERT INTO {RESERVATIONS} VALUES (?, ?, ?, ?, ?)", row)

    def dump(self) -> Database:
        if self.database.missing(RESERVATIONS):
            return NOTHING
        rows = self.database.connection.execute(f"SELECT * FROM {RESERVATIONS} ORDER BY key")
        return Database(tuple(Reservation(k, r, State(s), c, u) for k, r, s, c, u in rows), ())

    def call(self, operation: str, *args: Any, now: int) -> Any:
        self.now = now
        if operation == "for_runs":
            args = (args,)
        try:
            return getattr(self.store, operation)(*args)
        except StartOnceError as error:
            return raised(error)


class TestThroughTheStore(StartReservations):
    """Whole operations only: what that leaves unchecked is skipped, never passed."""

    size = QUICK

    def subject(self) -> Subject:
        return ThroughTheStore()


def test_what_is_not_checked_is_skipped_and_required_fails(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from test_own_suite import ThroughTheStore
        from startonce.oracle.check import QUICK
        from startonce.testing import StartReservations

        class TestIt(StartReservations):
            size = QUICK
            required = ("CLM-6",)
            def subject(self):
                return ThroughTheStore()
        """
    )
    pytester.makeconftest(f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})")
    result = pytester.runpytest_subprocess("-p", "no:xdist", "-rs")
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1
    assert outcomes["skipped"] > 10
    assert outcomes["passed"] > 20
    result.stdout.fnmatch_lines(["*CLM-6 is required and not checked*"])


def test_a_broken_store_fails_the_clause_it_breaks(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from test_own_suite import ThroughTheStore
        from startonce.oracle.check import QUICK
        from startonce.testing import StartReservations

        class Broken(ThroughTheStore):
            def call(self, operation, *args, now):
                if operation == "settle":
                    row = [r for r in self.dump().rows or () if r.run_id == args[0] and r.state == "started"]
                    if not row:
                        return 0
                return super().call(operation, *args, now=now)

        class TestBroken(StartReservations):
            size = QUICK
            def subject(self):
                return Broken()
        """
    )
    pytester.makeconftest(f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})")
    result = pytester.runpytest_subprocess("-p", "no:xdist")
    result.stdout.fnmatch_lines(["*test_clause?SET-1?*", "*expected*", "*observed*"])
    assert result.ret == 1


def test_the_adapter_in_the_readme_works_as_it_stands(pytester: pytest.Pytester) -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
    code = readme.split("<!-- adapter -->\n```python\n")[1].split("```")[0]
    pytester.makepyfile(code)
    outcomes = pytester.runpytest_subprocess("-p", "no:xdist").parseoutcomes()
    assert outcomes["passed"] >= 20
    assert "failed" not in outcomes
    assert "errors" not in outcomes
    pytester.makepyfile(code.replace("AND run = ? AND state", "AND run IS NOT ? AND state"))
    result = pytester.runpytest_subprocess("-p", "no:xdist")
    result.stdout.fnmatch_lines(["*test_clause?CLM-4?*"])
    assert result.ret == 1


def test_an_adapter_that_does_not_show_what_was_put_is_told_so(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})")
    pytester.makepyfile(
        """
        from test_own_suite import ThroughTheStore
        from startonce.oracle.check import QUICK
        from startonce.testing import StartReservations

        class Forgetful(ThroughTheStore):
            def put(self, db):
                super().put(db._replace(rows=()))

        class TestIt(StartReservations):
            size = QUICK
            def subject(self):
                return Forgetful()
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:xdist", "-k", "CLM-4")
    result.stdout.fnmatch_lines(["*the adapter, not the store: after put(rows=None) dump() shows*"])


def test_an_error_of_another_kind_is_named_by_its_class() -> None:
    assert raised(StartOnceError("x")) == Raised("StartOnceError")
