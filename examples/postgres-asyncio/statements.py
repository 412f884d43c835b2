"""The tables, and every statement of the store.

Each statement is a transaction of its own, at READ COMMITTED. That matters twice: after an insert that
found the key taken, the read-back must see what was committed meanwhile, which an older snapshot hides;
and an UPDATE that waited for another one looks at the row again before it changes it.
"""

# --- the tables -----------------------------------------------------------------------------------------
# COLLATE "C" compares byte for byte, whatever the database's own order.

CREATE_RESERVATIONS = """
CREATE TABLE IF NOT EXISTS reservation (
    key        text COLLATE "C" PRIMARY KEY,
    run_id     text COLLATE "C" NOT NULL,
    state      text NOT NULL CHECK (state IN ('reserved', 'started', 'terminal')),
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
)"""
CREATE_LOCKS = """
CREATE TABLE IF NOT EXISTS run_lock (
    run_id     text COLLATE "C" PRIMARY KEY,
    key        text COLLATE "C",
    holder     text NOT NULL,
    ended      boolean NOT NULL DEFAULT false,
    result     text,
    created_at bigint NOT NULL
)"""
CREATE_INDEX = "CREATE INDEX IF NOT EXISTS reservation_run_id ON reservation (run_id)"
CREATE_FENCE = """
CREATE TABLE IF NOT EXISTS start_fence (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    closed   boolean NOT NULL
)"""

# --- the statements -------------------------------------------------------------------------------------

# It names the table of locks too: a schema of which only half is there shows as a missing table.
INSERT = """
INSERT INTO reservation (key, run_id, state, created_at, updated_at)
SELECT %(key)s, %(run_id)s, 'reserved', %(now)s, %(now)s WHERE NOT EXISTS (SELECT FROM run_lock WHERE false)
ON CONFLICT (key) DO NOTHING RETURNING true"""
READ = "SELECT key, run_id, state, created_at, updated_at FROM reservation WHERE key = %(key)s"
CLAIM = """
UPDATE reservation SET state = 'started', updated_at = %(now)s
WHERE key = %(key)s AND run_id = %(run_id)s AND state = 'reserved' RETURNING true"""
RELEASE = """
UPDATE reservation SET state = 'reserved', updated_at = %(now)s
WHERE key = %(key)s AND run_id = %(run_id)s AND state = 'started' RETURNING true"""
SETTLE = """
UPDATE reservation SET state = 'terminal', updated_at = %(now)s
WHERE run_id = %(run_id)s AND state <> 'terminal' RETURNING true"""
FOR_RUNS = """
SELECT key, run_id, state, created_at, updated_at FROM reservation WHERE run_id = ANY(%(run_ids)s)"""
PURGE = """
DELETE FROM reservation WHERE state = 'terminal' AND updated_at < %(before)s AND key IN (
    SELECT key FROM reservation WHERE state = 'terminal' AND updated_at < %(before)s
    ORDER BY updated_at, key LIMIT %(limit)s
) RETURNING true"""
# FOR SHARE: no settle may commit between the look at the row and the lock that is taken for it.
INSERT_LOCK = """
INSERT INTO run_lock (run_id, key, holder, created_at)
SELECT run_id, key, %(holder)s, %(now)s FROM reservation
WHERE key = %(key)s AND run_id = %(run_id)s AND state = 'started' FOR SHARE
ON CONFLICT (run_id) DO NOTHING RETURNING true"""
INSERT_CANCEL = """
INSERT INTO run_lock (run_id, holder, created_at) VALUES (%(run_id)s, 'cancel', %(now)s)
ON CONFLICT (run_id) DO NOTHING RETURNING true"""
READ_LOCK = "SELECT run_id, key, holder, ended, result, created_at FROM run_lock WHERE run_id = %(run_id)s"
PERSIST = """
UPDATE run_lock SET ended = true, result = %(result)s
WHERE run_id = %(run_id)s AND holder = %(holder)s AND NOT ended RETURNING true"""
READ_BOTH = """
SELECT r.key, r.run_id, r.state, r.created_at, r.updated_at, l.run_id, l.key, l.holder, l.ended, l.result,
    l.created_at
FROM reservation r LEFT JOIN run_lock l ON l.run_id = r.run_id WHERE r.key = %(key)s"""
DELETE = "DELETE FROM reservation WHERE key = %(key)s AND run_id = %(run_id)s RETURNING true"
INVENTORY = """
SELECT key, run_id, state, holder, coalesce(ended, false) FROM (
    SELECT r.key, r.run_id, r.state, l.holder, l.ended
    FROM reservation r LEFT JOIN run_lock l ON l.run_id = r.run_id WHERE r.state <> 'terminal'
    UNION ALL
    SELECT l.key, l.run_id, r.state, l.holder, l.ended
    FROM run_lock l LEFT JOIN reservation r ON r.key = l.key AND r.run_id = l.run_id
    WHERE l.key IS NOT NULL AND l.holder NOT IN ('free', 'cancel') AND NOT l.ended
        AND coalesce(r.state, 'terminal') = 'terminal'
) listed WHERE (key, run_id) > (%(key)s, %(run_id)s) ORDER BY key, run_id LIMIT %(limit)s"""
READ_FENCE = "SELECT closed FROM start_fence"
WRITE_FENCE = """
INSERT INTO start_fence (closed) VALUES (%(closed)s)
ON CONFLICT (only_row) DO UPDATE SET closed = excluded.closed RETURNING true"""
