// Every SQL statement of the store, by name. Each runs on its own; all that it is given are parameters.

const ROW = 'key, run_id AS runId, state, created_at AS createdAt, updated_at AS updatedAt';
const LOCK = 'run_id AS runId, key, holder, ended, result, created_at AS createdAt';

/** What `reserve` creates, in this order. */
export const SCHEMA = {
  'create reservations': `
    CREATE TABLE IF NOT EXISTS reservations (
      key        TEXT PRIMARY KEY NOT NULL,
      run_id     TEXT NOT NULL,
      state      TEXT NOT NULL CHECK (state IN ('reserved', 'started', 'terminal')),
      created_at INTEGER NOT NULL,
      updated_at INTEGER NOT NULL
    ) STRICT`,
  'create locks': `
    CREATE TABLE IF NOT EXISTS run_locks (
      run_id     TEXT PRIMARY KEY NOT NULL,
      key        TEXT,
      holder     TEXT NOT NULL,
      ended      INTEGER NOT NULL CHECK (ended IN (0, 1)),
      result     TEXT,
      created_at INTEGER NOT NULL
    ) STRICT`,
  'create index': 'CREATE INDEX IF NOT EXISTS reservations_by_run ON reservations (run_id)',
};

export const WRITES = {
  ...SCHEMA,
  // ON CONFLICT (key) and not OR IGNORE, which would swallow a failing CHECK or NOT NULL as well.
  'insert': `
    INSERT INTO reservations (key, run_id, state, created_at, updated_at)
    VALUES (@key, @runId, 'reserved', @now, @now)
    ON CONFLICT (key) DO NOTHING`,
  'claim': `
    UPDATE reservations SET state = 'started', updated_at = @now
    WHERE key = @key AND run_id = @runId AND state = 'reserved'`,
  'release': `
    UPDATE reservations SET state = 'reserved', updated_at = @now
    WHERE key = @key AND run_id = @runId AND state = 'started'`,
  'settle': `
    UPDATE reservations SET state = 'terminal', updated_at = @now
    WHERE run_id = @runId AND state <> 'terminal'`,
  'purge': `
    DELETE FROM reservations WHERE key IN (
      SELECT key FROM reservations WHERE state = 'terminal' AND updated_at < @horizon
      ORDER BY updated_at, key LIMIT @limit)`,
  'insert lock': `
    INSERT INTO run_locks (run_id, key, holder, ended, result, created_at)
    SELECT run_id, key, @holder, 0, NULL, @now FROM reservations
    WHERE key = @key AND run_id = @runId AND state = 'started'
    ON CONFLICT (run_id) DO NOTHING`,
  'insert cancel': `
    INSERT INTO run_locks (run_id, key, holder, ended, result, created_at)
    VALUES (@runId, NULL, 'cancel', 0, NULL, @now)
    ON CONFLICT (run_id) DO NOTHING`,
  'persist': `
    UPDATE run_locks SET ended = 1, result = @result
    WHERE run_id = @runId AND holder = @holder AND NOT ended`,
  'delete': 'DELETE FROM reservations WHERE key = @key AND run_id = @runId',
  'create fence': `
    CREATE TABLE IF NOT EXISTS execution_fence (
      id     INTEGER PRIMARY KEY CHECK (id = 1),
      closed INTEGER NOT NULL CHECK (closed IN (0, 1))
    ) STRICT`,
  'close fence': 'INSERT INTO execution_fence VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET closed = 1',
  'open fence': 'INSERT INTO execution_fence VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET closed = 0',
};
WRITES['insert free'] = WRITES['insert lock'];

export const READS = {
  'look for tables': `
    SELECT name FROM sqlite_schema
    WHERE name IN ('reservations', 'run_locks', 'reservations_by_run', 'execution_fence')`,
  'read': `SELECT ${ROW} FROM reservations WHERE key = @key`,
  'for runs': `SELECT ${ROW} FROM reservations WHERE run_id IN (SELECT value FROM json_each(@runIds))`,
  'read lock': `SELECT ${LOCK} FROM run_locks WHERE run_id = @runId`,
  'read both': `
    SELECT r.run_id AS runId, r.state, l.holder, l.ended, l.result
    FROM reservations r LEFT JOIN run_locks l ON l.run_id = r.run_id
    WHERE r.key = @key`,
  // Rows that are not over, then locks of executions that have not ended and whose row is over or gone.
  'inventory': `
    WITH entries AS (
      SELECT r.key, r.run_id AS runId, r.state, l.holder, coalesce(l.ended, 0) AS ended
      FROM reservations r LEFT JOIN run_locks l ON l.run_id = r.run_id
      WHERE r.state <> 'terminal'
      UNION ALL
      SELECT l.key, l.run_id, r.state, l.holder, l.ended
      FROM run_locks l LEFT JOIN reservations r ON r.key = l.key AND r.run_id = l.run_id
      WHERE l.key IS NOT NULL AND l.holder NOT IN ('free', 'cancel') AND NOT l.ended
        AND coalesce(r.state, 'terminal') = 'terminal'
    )
    SELECT * FROM entries WHERE (key, runId) > (@key, @runId) ORDER BY key, runId LIMIT @limit`,
  'read fence': 'SELECT closed FROM execution_fence',
};
READS['read back'] = READS['read'];
READS['read holder'] = READS['read lock'];

/** What two of the reads are while nobody has created the table of run locks. */
export const WITHOUT_LOCKS = {
  'read both': `
    SELECT run_id AS runId, state, NULL AS holder, 0 AS ended, NULL AS result
    FROM reservations WHERE key = @key`,
  'inventory': `
    SELECT key, run_id AS runId, state, NULL AS holder, 0 AS ended FROM reservations
    WHERE state <> 'terminal' AND (key, run_id) > (@key, @runId) ORDER BY key, run_id LIMIT @limit`,
};
