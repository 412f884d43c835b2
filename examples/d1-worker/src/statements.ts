// Every statement of the store. Each is one moment: what must hold together is decided inside one of them.

export const SQL = {
  // Names the locks too, so that half a schema is noticed here and completed.
  insert: `INSERT INTO start_reservations (key, run_id, state, created_at, updated_at)
    SELECT ?1, ?2, 'reserved', ?3, ?3 WHERE NOT EXISTS (SELECT 1 FROM run_locks WHERE false)
    ON CONFLICT (key) DO NOTHING RETURNING key`,
  read: `SELECT key, run_id, state, created_at, updated_at FROM start_reservations WHERE key = ?1`,
  move: `UPDATE start_reservations SET state = ?1, updated_at = ?2
    WHERE key = ?3 AND run_id = ?4 AND state = ?5 RETURNING key`,
  settle: `UPDATE start_reservations SET state = 'terminal', updated_at = ?1
    WHERE run_id = ?2 AND state <> 'terminal' RETURNING key`,
  forRuns: (count: number) => `SELECT key, run_id, state, created_at, updated_at FROM start_reservations
    WHERE run_id IN (${Array(count).fill("?").join(", ")})`,
  purge: `DELETE FROM start_reservations WHERE key IN (
      SELECT key FROM start_reservations WHERE state = 'terminal' AND updated_at < ?1
      ORDER BY updated_at, key LIMIT ?2
    ) RETURNING key`,
  delete: `DELETE FROM start_reservations WHERE key = ?1 AND run_id = ?2 RETURNING key`,
  insertLock: `INSERT INTO run_locks (run_id, key, holder, created_at)
    SELECT run_id, key, ?3, ?4 FROM start_reservations WHERE key = ?1 AND run_id = ?2 AND state = 'started'
    ON CONFLICT (run_id) DO NOTHING RETURNING holder`,
  insertCancel: `INSERT INTO run_locks (run_id, holder, created_at) VALUES (?1, 'cancel', ?2)
    ON CONFLICT (run_id) DO NOTHING RETURNING holder`,
  readLock: `SELECT run_id, key, holder, ended, result, created_at FROM run_locks WHERE run_id = ?1`,
  persist: `UPDATE run_locks SET ended = 1, result = ?3 WHERE run_id = ?1 AND holder = ?2 AND ended = 0
    RETURNING run_id`,
  readBoth: `SELECT r.*, l.holder, l.ended, l.result FROM start_reservations AS r
    LEFT JOIN run_locks AS l ON l.run_id = r.run_id WHERE r.key = ?1`,
  inventory: `SELECT * FROM (
      SELECT l.key, l.run_id, r.state, l.holder, l.ended
        FROM run_locks AS l LEFT JOIN start_reservations AS r ON r.key = l.key AND r.run_id = l.run_id
        WHERE l.key IS NOT NULL AND l.holder NOT IN ('free', 'cancel') AND l.ended = 0
          AND (r.state IS NULL OR r.state = 'terminal')
      UNION ALL
      SELECT r.key, r.run_id, r.state, l.holder, l.ended
        FROM start_reservations AS r LEFT JOIN run_locks AS l ON l.run_id = r.run_id
        WHERE r.state <> 'terminal'
    ) WHERE (key, run_id) > (?1, ?2) ORDER BY key, run_id LIMIT ?3`,
  readFence: `SELECT closed FROM start_fence WHERE id = 1`,
  writeFence: `INSERT INTO start_fence (id, closed) VALUES (1, ?1)
    ON CONFLICT (id) DO UPDATE SET closed = excluded.closed RETURNING closed`,
};
