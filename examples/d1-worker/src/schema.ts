// The tables of start reservations on D1.
//
// Every JavaScript number reaches SQLite as a REAL. A column declared INTEGER turns 5.0 back into 5, and a
// STRICT table refuses what is no whole number: so times stay integers. TEXT compares byte for byte.

/** Which run an idempotency key means, and how far that run is. One row a key. */
export const RESERVATIONS = `CREATE TABLE IF NOT EXISTS start_reservations (
  key        TEXT NOT NULL PRIMARY KEY,
  run_id     TEXT NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('reserved', 'started', 'terminal')),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID`;

/** Who may execute a run: one row a run, for good. `holder`: an execution's token, `cancel` or `free`. */
export const LOCKS = `CREATE TABLE IF NOT EXISTS run_locks (
  run_id     TEXT NOT NULL PRIMARY KEY,
  key        TEXT,
  holder     TEXT NOT NULL,
  ended      INTEGER NOT NULL DEFAULT 0 CHECK (ended IN (0, 1)),
  result     TEXT,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID`;

/** Settling and looking up by run are the frequent ways in that are not by key. */
export const INDEX = `CREATE INDEX IF NOT EXISTS start_reservations_by_run ON start_reservations (run_id)`;

/** One row that says whether starts are refused. Without the row or the table they are not. */
export const FENCE = `CREATE TABLE IF NOT EXISTS start_fence (
  id     INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
  closed INTEGER NOT NULL CHECK (closed IN (0, 1))
) STRICT`;
