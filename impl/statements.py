"""Every SQL statement of the implementation, once. `startonce sql` prints this file's content.

Each runs on its own, in autocommit. What a write did is told by the rows it returns, never by a change
counter: a trigger inflates those, and drivers disagree on what they count.
"""

from typing import NamedTuple

RESERVATIONS = "startonce_reservations"
LOCKS = "startonce_run_locks"
FENCE = "startonce_fence"


class Statement(NamedTuple):
    """One SQL statement: its name, its text, whether it writes, and the tables it needs."""

    name: str
    sql: str
    writes: bool
    tables: tuple[str, ...]


def _write(name: str, sql: str, *tables: str) -> Statement:
    return Statement(name, sql.strip(), True, tables)


def _read(name: str, sql: str, *tables: str) -> Statement:
    return Statement(name, sql.strip(), False, tables)


CREATE_RESERVATIONS = (
    _write(
        "create locks",
        f"""
CREATE TABLE IF NOT EXISTS {LOCKS} (
  run_id     TEXT NOT NULL PRIMARY KEY,
  key        TEXT,
  holder     TEXT NOT NULL,
  ended      INTEGER NOT NULL CHECK (ended IN (0, 1)),
  result     TEXT,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID""",
    ),
    _write(
        "create index",
        f"CREATE INDEX IF NOT EXISTS {LOCKS}_held ON {LOCKS} (key, run_id) WHERE ended = 0",
    ),
    _write(
        "create reservations",
        f"""
CREATE TABLE IF NOT EXISTS {RESERVATIONS} (
  key        TEXT NOT NULL PRIMARY KEY,
  run_id     TEXT NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('reserved', 'started', 'terminal')),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID""",
    ),
    _write(
        "create index",
        f"CREATE INDEX IF NOT EXISTS {RESERVATIONS}_by_run ON {RESERVATIONS} (run_id)",
    ),
    _write(
        "create index",
        f"CREATE INDEX IF NOT EXISTS {RESERVATIONS}_live ON {RESERVATIONS} (key, run_id) "
        "WHERE state <> 'terminal'",
    ),
    _write(
        "create index",
        f"CREATE INDEX IF NOT EXISTS {RESERVATIONS}_spent ON {RESERVATIONS} (updated_at, key) "
        "WHERE state = 'terminal'",
    ),
)
"""What `reserve` creates, and nobody else (RSV-6). The locks come first: a crash in between leaves a schema
that still reads as absent, never reservations without locks."""

CREATE_FENCE = (
    _write(
        "create fence",
        f"""
CREATE TABLE IF NOT EXISTS {FENCE} (
  id     INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  closed INTEGER NOT NULL CHECK (closed IN (0, 1))
) STRICT""",
    ),
)
"""What closing or opening the fence creates, and nobody else."""

INSERT = _write(
    "insert",
    f"""
INSERT INTO {RESERVATIONS} (key, run_id, state, created_at, updated_at)
VALUES (?, ?, 'reserved', ?, ?)
ON CONFLICT (key) DO NOTHING
RETURNING run_id""",
    RESERVATIONS,
)

_ROW = "key, run_id, state, created_at, updated_at"

READ_BACK = _read("read back", f"SELECT {_ROW} FROM {RESERVATIONS} WHERE key = ?", RESERVATIONS)

READ = READ_BACK._replace(name="read")

CLAIM = _write(
    "claim",
    f"""
UPDATE {RESERVATIONS} SET state = 'started', updated_at = ?
WHERE key = ? AND run_id = ? AND state = 'reserved'
RETURNING run_id""",
    RESERVATIONS,
)

RELEASE = _write(
    "release",
    f"""
UPDATE {RESERVATIONS} SET state = 'reserved', updated_at = ?
WHERE key = ? AND run_id = ? AND state = 'started'
RETURNING run_id""",
    RESERVATIONS,
)

SETTLE = _write(
    "settle",
    f"""
UPDATE {RESERVATIONS} SET state = 'terminal', updated_at = ?
WHERE run_id = ? AND state <> 'terminal'
RETURNING key""",
    RESERVATIONS,
)

PURGE = _write(
    "purge",
    f"""
DELETE FROM {RESERVATIONS}
WHERE state = 'terminal' AND updated_at < ? AND key IN (
  SELECT key FROM {RESERVATIONS}
  WHERE state = 'terminal' AND updated_at < ?
  ORDER BY updated_at, key
  LIMIT ?)
RETURNING key""",
    RESERVATIONS,
)


def for_runs(count: int) -> Statement:
    """Return the read of every row naming one of `count` runs, in order of key."""
    marks = ", ".join("?" * count)
    return _read(
        "for runs",
        f"SELECT {_ROW} FROM {RESERVATIONS} WHERE run_id IN ({marks}) ORDER BY key",
        RESERVATIONS,
    )


INSERT_LOCK = _write(
    "insert lock",
    f"""
INSERT INTO {LOCKS} (run_id, key, holder, ended, result, created_at)
SELECT run_id, key, ?, 0, NULL, ? FROM {RESERVATIONS}
WHERE key = ? AND run_id = ? AND state = 'started'
ON CONFLICT (run_id) DO NOTHING
RETURNING run_id""",
    LOCKS,
    RESERVATIONS,
)

_LOCK = "run_id, key, holder, ended, result, created_at"

READ_HOLDER = _read("read holder", f"SELECT {_LOCK} FROM {LOCKS} WHERE run_id = ?", LOCKS)

READ_LOCK = READ_HOLDER._replace(name="read lock")

INSERT_FREE = INSERT_LOCK._replace(name="insert free")

INSERT_CANCEL = _write(
    "insert cancel",
    f"""
INSERT INTO {LOCKS} (run_id, key, holder, ended, result, created_at)
VALUES (?, NULL, 'cancel', 0, NULL, ?)
ON CONFLICT (run_id) DO NOTHING
RETURNING run_id""",
    LOCKS,
)

DELETE = _write(
    "delete", f"DELETE FROM {RESERVATIONS} WHERE key = ? AND run_id = ?\nRETURNING key", RESERVATIONS
)

PERSIST = _write(
    "persist",
    f"""
UPDATE {LOCKS} SET ended = 1, result = ?
WHERE run_id = ? AND holder = ? AND ended = 0
RETURNING run_id""",
    LOCKS,
)

READ_BOTH = _read(
    "read both",
    f"""
SELECT r.key, r.run_id, r.state, r.created_at, r.updated_at, l.holder, l.ended, l.result, l.created_at
FROM {RESERVATIONS} AS r LEFT JOIN {LOCKS} AS l ON l.run_id = r.run_id
WHERE r.key = ?""",
    RESERVATIONS,
    LOCKS,
)
"""A row and its run's lock at one moment: all that a start goes by, in one read."""

READ_FENCE = _read("read fence", f"SELECT closed FROM {FENCE} WHERE id = 1", FENCE)

CLOSE_FENCE = _write(
    "close fence",
    f"""
INSERT INTO {FENCE} (id, closed) VALUES (1, 1)
ON CONFLICT (id) DO UPDATE SET closed = excluded.closed
RETURNING id""",
    FENCE,
)

OPEN_FENCE = CLOSE_FENCE._replace(
    name="open fence", sql=CLOSE_FENCE.sql.replace("VALUES (1, 1)", "VALUES (1, 0)")
)

INVENTORY = _read(
    "inventory",
    f"""
SELECT r.key, r.run_id, r.state, l.holder, l.ended
FROM {RESERVATIONS} AS r LEFT JOIN {LOCKS} AS l ON l.run_id = r.run_id
WHERE r.state <> 'terminal' AND (r.key, r.run_id) > (?, ?)
UNION ALL
SELECT l.key, l.run_id, r.state, l.holder, l.ended
FROM {LOCKS} AS l LEFT JOIN {RESERVATIONS} AS r ON r.key = l.key AND r.run_id = l.run_id
WHERE l.ended = 0 AND l.key IS NOT NULL AND l.holder NOT IN ('cancel', 'free')
  AND (r.state IS NULL OR r.state = 'terminal') AND (l.key, l.run_id) > (?, ?)
ORDER BY 1, 2
LIMIT ?""",
    RESERVATIONS,
    LOCKS,
)

ALL: tuple[Statement, ...] = (
    *CREATE_RESERVATIONS,
    *CREATE_FENCE,
    INSERT,
    READ_BACK,
    CLAIM,
    RELEASE,
    SETTLE,
    READ,
    for_runs(3),
    PURGE,
    INVENTORY,
    INSERT_LOCK,
    INSERT_CANCEL,
    INSERT_FREE,
    DELETE,
    READ_HOLDER,
    READ_LOCK,
    READ_BOTH,
    PERSIST,
    READ_FENCE,
    CLOSE_FENCE,
    OPEN_FENCE,
)
