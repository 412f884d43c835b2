"""Broken reserve, claim, release, settle and purge."""

from collections.abc import Mapping

from startonce.impl import operations as op
from startonce.impl import statements as sql
from startonce.impl.operations import Operation
from startonce.impl.statements import Statement
from startonce.model.errors import TableMissing, UnknownOutcome, Vanished
from startonce.model.operations import Reserved
from startonce.model.reservation import Database, Reservation, State
from startonce.oracle.broken.changes import Mutant, changed, instead, table
from startonce.own import SqlSubject

CONFLICT = "ON CONFLICT (key) DO NOTHING"


def _answers_the_proposal(now: int, key: str, run_id: str, create: bool = False) -> Operation[Reserved]:
    answer = yield from op.reserve(key, run_id, now, create=create)
    return Reserved(answer.row._replace(run_id=run_id), answer.created)


def _spent_is_not_said(now: int, key: str, run_id: str, create: bool = False) -> Operation[Reserved]:
    answer = yield from op.reserve(key, run_id, now, create=create)
    if answer.row.state is not State.TERMINAL:
        return answer
    return answer._replace(row=answer.row._replace(state=State.STARTED))


def _insert_is_believed(now: int, key: str, run_id: str, create: bool = False) -> Operation[Reserved]:
    answer = yield from op.reserve(key, run_id, now, create=create)
    return answer._replace(created=True)


def _vanished_is_mine(now: int, key: str, run_id: str, create: bool = False) -> Operation[Reserved]:
    try:
        return (yield from op.reserve(key, run_id, now, create=create))
    except Vanished:
        return Reserved(Reservation(key, run_id, State.RESERVED, now, now), True)


def _half_a_schema(now: int, key: str, run_id: str, create: bool = False) -> Operation[Reserved]:
    for statement in sql.CREATE_RESERVATIONS[2:]:
        yield statement, ()
    return (yield from op.reserve(key, run_id, now))


def _claim_reads_first(now: int, key: str, run_id: str) -> Operation[bool]:
    row = yield from op.read(key)
    if row is None or row.run_id != run_id or row.state is not State.RESERVED:
        return False
    statement = sql.CLAIM._replace(sql=sql.CLAIM.sql.replace("AND state = 'reserved'", ""))
    yield statement, (now, key, run_id)
    return True


def _claim_trusts_the_count(now: int, key: str, run_id: str) -> Operation[bool]:
    try:
        yield sql.CLAIM, (now, key, run_id)
    except TableMissing:
        return False
    rowcount = -1  # what sqlite3 says of a statement that it does not take for an UPDATE
    return bool(rowcount)


def _claim_takes_silence_for_no(now: int, key: str, run_id: str) -> Operation[bool]:
    try:
        return (yield from op.claim(key, run_id, now))
    except UnknownOutcome:
        return False


def _claim_creates(now: int, key: str, run_id: str) -> Operation[bool]:
    op.check("key", key)
    op.check("run id", run_id)
    for statement in sql.CREATE_RESERVATIONS:
        yield statement, ()
    return (yield from op.claim(key, run_id, now))


def _loser_leaves_its_mark(now: int, key: str, run_id: str) -> Operation[bool]:
    won = yield from op.claim(key, run_id, now)
    if not won:
        text = f"UPDATE {sql.RESERVATIONS} SET updated_at = ? WHERE key = ?"
        yield Statement("claim", text, True, ()), (now + 1, key)
    return won


def _settle_behind_the_fence(now: int, run_id: str) -> Operation[int]:
    op.check("run id", run_id)
    if (yield from op.fence()):
        return 0
    return (yield from op.settle(run_id, now))


def _settle_says_whether(now: int, run_id: str) -> Operation[int]:
    return min(1, (yield from op.settle(run_id, now)))


_CHANGES = Statement("changes", "SELECT total_changes()", False, ())


def _settle_counts_changes(now: int, run_id: str) -> Operation[int]:
    op.check("run id", run_id)
    ((before,),) = yield _CHANGES, ()
    yield from op.settle(run_id, now)
    ((after,),) = yield _CHANGES, ()
    return int(after - before)


_AUDIT = f"""
CREATE TRIGGER startonce_audit AFTER UPDATE ON {sql.RESERVATIONS}
BEGIN UPDATE {sql.RESERVATIONS} SET created_at = created_at WHERE key = NEW.key; END"""


class Graveyard(SqlSubject):
    """A subject that remembers, beside the table, which runs it has purged."""

    def put(self, db: Database) -> None:
        """Make the database be exactly this, with nothing remembered."""
        self._raw("CREATE TABLE IF NOT EXISTS graveyard (key TEXT PRIMARY KEY, run_id TEXT)")
        self._raw("DELETE FROM graveyard")
        super().put(db)


def _bury(now: int, horizon: int, limit: int) -> Operation[int]:
    text = f"INSERT OR REPLACE INTO graveyard SELECT key, run_id FROM {sql.RESERVATIONS}"
    try:
        yield Statement("bury", text, True, (sql.RESERVATIONS,)), ()
    except TableMissing:
        return 0
    return (yield from op.purge(horizon, limit))


def _resurrect(now: int, key: str, run_id: str, create: bool = False) -> Operation[Reserved]:
    op.check("key", key)
    op.check("run id", run_id)
    find = Statement("exhume", "SELECT run_id FROM graveyard WHERE key = ?", False, ())
    buried = yield find, (key,)
    return (yield from op.reserve(key, buried[0][0] if buried else run_id, now, create=create))


MUTANTS: Mapping[str, Mutant] = {
    # reserve
    "reserve that starts": Mutant(
        "RSV-1", "reserving and claiming in one write", changed("insert", "'reserved'", "'started'")
    ),
    "insert or replace": Mutant(
        "RSV-2",
        "the last caller wins the key",
        changed("insert", f"{CONFLICT}\n", "ON CONFLICT (key) DO UPDATE SET run_id = excluded.run_id\n"),
        seen=("B05",),
    ),
    "reserve resets the state": Mutant(
        "RSV-2",
        "an unconditional create over an instance that runs",
        changed("insert", CONFLICT, "ON CONFLICT (key) DO UPDATE SET state = 'reserved'"),
        seen=("B13",),
    ),
    "loser writes to the winner's row": Mutant(
        "RSV-2",
        "the loser of the insert notes its visit",
        changed("insert", CONFLICT, "ON CONFLICT (key) DO UPDATE SET updated_at = excluded.updated_at"),
        seen=("B29",),
    ),
    "reserve answers its proposal": Mutant(
        "RSV-3",
        "the answer names the run that was sent",
        instead(reserve=_answers_the_proposal),
        seen=("B19",),
    ),
    "spent, and not said": Mutant(
        "RSV-3",
        "whatever comes under a spent key is told that it is being worked on",
        instead(reserve=_spent_is_not_said),
        seen=("B74",),
    ),
    "lost insert believed": Mutant(
        "RSV-4", "found is taken for made", instead(reserve=_insert_is_believed), seen=("B16", "B49", "B53")
    ),
    "vanished row believed": Mutant(
        "RSV-5",
        "nothing read back is taken for mine",
        instead(reserve=_vanished_is_mine),
        seen=("B21", "B45", "B56", "X02"),
    ),
    "half a schema": Mutant(
        "RSV-6", "the run locks are left to another migration", instead(reserve=_half_a_schema)
    ),
    "insert ignores what it may not": Mutant(
        "RSV-7",
        "OR IGNORE swallows CHECK and NOT NULL too",
        changed("insert", "INSERT INTO", "INSERT OR IGNORE INTO"),
        seen=("B46", "B47", "X08"),
        blind="the machine never spoils the schema",
    ),
    # claim
    "claim by read, then update": Mutant(
        "CLM-1",
        "select, then update by key",
        instead(claim=_claim_reads_first),
        seen=("B14", "B59"),
        blind="nobody is held between two statements of its own",
        own=True,
    ),
    "claim keeps the time": Mutant(
        "CLM-1", "the time of the change is not moved", changed("claim", ", updated_at = ?", "", (1, 2))
    ),
    "claim on any state": Mutant(
        "CLM-2",
        "started again while it runs",
        changed("claim", "AND state = 'reserved'", ""),
        seen=("B01", "B07"),
    ),
    "claim believes a truthy row count": Mutant(
        "CLM-2", "a count of -1 is true", instead(claim=_claim_trusts_the_count), seen=("B49", "B62")
    ),
    "loser leaves its mark": Mutant(
        "CLM-3",
        "a lost claim is noted in the row",
        instead(claim=_loser_leaves_its_mark),
        seen=("B29",),
        own=True,
    ),
    "claim without the run id": Mutant(
        "CLM-4", "the key alone is claimed", changed("claim", "AND run_id = ?", "", (0, 1)), seen=("B29",)
    ),
    "claim creates the schema": Mutant(
        "CLM-5", "every operation migrates", instead(claim=_claim_creates), seen=("B61",), own=True
    ),
    "unknown claim reported as lost": Mutant(
        "CLM-6",
        "no answer is taken for no",
        instead(claim=_claim_takes_silence_for_no),
        seen=("B36", "B55"),
    ),
    # release
    "release spends the key": Mutant(
        "REL-1",
        "an interruption is counted as a failure",
        changed("release", "state = 'reserved'", "state = 'terminal'"),
        seen=("B38",),
    ),
    "release of a terminal row": Mutant(
        "REL-2",
        "no guard for what is over",
        changed("release", "AND state = 'started'", "AND state <> 'reserved'"),
        seen=("B40",),
    ),
    "release without the run id": Mutant(
        "REL-5",
        "whoever has the key gives it back",
        changed("release", "AND run_id = ?", "", (0, 1)),
        seen=("B32",),
    ),
    # settle
    "settle of started rows only": Mutant(
        "SET-1",
        "a run cancelled before its start stays claimable",
        changed("settle", "state <> 'terminal'", "state = 'started'"),
        seen=("X03",),
    ),
    "settle of terminal rows again": Mutant(
        "SET-2",
        "matched is taken for changed",
        changed("settle", "AND state <> 'terminal'", ""),
        seen=("B62",),
    ),
    "settle counts triggers": Mutant(
        "SET-3",
        "the change counter counts what a trigger wrote",
        instead(settle=_settle_counts_changes),
        {**table(sql.RESERVATIONS, more=[_AUDIT])["schema"]},
        seen=("B51",),
        own=True,
    ),
    "settle says whether": Mutant(
        "SET-3",
        "one run, one key: so it was thought",
        instead(settle=_settle_says_whether),
        seen=("B17", "X05"),
    ),
    "settle waits for the fence": Mutant(
        "SET-4", "every write stops while draining", instead(settle=_settle_behind_the_fence), own=True
    ),
    "spent key used again": Mutant(
        "SET-5",
        "only open runs are looked at for duplicates",
        changed(
            "insert",
            CONFLICT,
            "ON CONFLICT (key) DO UPDATE SET run_id = excluded.run_id, state = 'reserved' "
            "WHERE state = 'terminal'",
        ),
        seen=("B11", "B23", "B42"),
    ),
    # purge, and time
    "purge at the horizon": Mutant(
        "PRG-1",
        "not older than is taken for older",
        changed("purge", "updated_at < ?", "updated_at <= ?"),
        seen=("X12",),
    ),
    "purge of live rows": Mutant(
        "PRG-1", "old is taken for over", changed("purge", "state = 'terminal' AND", ""), seen=("B72",)
    ),
    "purge without a limit": Mutant(
        "PRG-1", "the limit is not passed on", changed("purge", "LIMIT ?", "LIMIT max(?, 1000)")
    ),
    "purged key keeps its run": Mutant(
        "PRG-2",
        "a purged key comes back with its old run",
        instead(purge=_bury, reserve=_resurrect),
        kind=Graveyard,
        own=True,
    ),
    "timer reopens a started row": Mutant(
        "STA-8",
        "a lease: what has not ended in time is claimed again",
        changed(
            "claim",
            "AND state = 'reserved'",
            "AND (state = 'reserved' OR (state = 'started' AND updated_at < ? - 30000))",
            (0, 1, 2, 0),
        ),
        seen=("B25", "B27"),
        blind="its clock does not run for 30 seconds",
    ),
}
