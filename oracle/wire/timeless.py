"""Times of an adapter whose clock is its own: those that its operations wrote are not compared.

What is shown is turned into what would be shown if the clock reading that was passed in had been used.
A time that nothing wrote has to be the one that was put there, so a row that is touched without need is
still seen. Where a state changed nobody can tell whether the time of that change was written.
"""

from typing import Any

from startonce.model.operations import Reserved
from startonce.model.reservation import Database, Lock, Reservation


class Times:
    """The rows and locks as they were last shown, and with the times that they stand for."""

    def __init__(self) -> None:
        self._rows: dict[Reservation, Reservation] = {}
        self._locks: dict[Lock, Lock] = {}

    def put(self, db: Database) -> None:
        """Begin with this database: its times are those that it was given."""
        self._rows = {row: row for row in db.rows or ()}
        self._locks = {lock: lock for lock in db.locks or ()}

    def dumped(self, db: Database, now: int) -> Database:
        """Return a dump with the times that it stands for, after a step at this clock reading."""
        if db.rows is not None:
            before = {row.key: row for row in self._rows}
            self._rows = {row: self._row(row, before.get(row.key), now) for row in db.rows}
            db = db._replace(rows=tuple(self._rows[row] for row in db.rows))
        if db.locks is not None:
            known = {lock.run_id: lock for lock in self._locks}
            self._locks = {lock: self._lock(lock, known.get(lock.run_id), now) for lock in db.locks}
            db = db._replace(locks=tuple(self._locks[lock] for lock in db.locks))
        return db

    def answered(self, answer: Any) -> Any:
        """Return an answer with the times that it stands for, by the dump that followed it."""
        match answer:
            case Reservation():
                return self._rows.get(answer, answer)
            case Lock():
                return self._locks.get(answer, answer)
            case Reserved():
                return answer._replace(row=self._rows.get(answer.row, answer.row))
            case tuple() if answer and type(answer[0]) is Reservation:
                return tuple(self._rows.get(row, row) for row in answer)
        return answer

    def _row(self, row: Reservation, before: Reservation | None, now: int) -> Reservation:
        if before is None:
            return row._replace(created_at=now, updated_at=now)
        stood = self._rows[before]
        created = stood.created_at if row.created_at == before.created_at else now
        untouched = row[1:3] == before[1:3] and row.updated_at == before.updated_at
        return row._replace(created_at=created, updated_at=stood.updated_at if untouched else now)

    def _lock(self, lock: Lock, before: Lock | None, now: int) -> Lock:
        kept = before is not None and lock.created_at == before.created_at
        return lock._replace(created_at=self._locks[before].created_at if before and kept else now)
