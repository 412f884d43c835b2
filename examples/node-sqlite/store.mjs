// Start reservations on SQLite. Each operation is a generator that yields one statement at a time, as
// [name, parameters], and is sent what comes of it: the rows of a read, how many rows a write changed.
// `createStore` runs them on a connection.

import { READS, WITHOUT_LOCKS, WRITES } from './statements.mjs';

const ID = /^[A-Za-z0-9._~-]{1,200}$/;
const STATES = ['reserved', 'started', 'terminal'];
const OWN_TABLES = ['reservations', 'run_locks', 'execution_fence'];

/** What ends an operation; `code` is one of the words below. */
export class StoreError extends Error {
  name = 'StoreError';

  /** @param {'INVALID'|'VANISHED'|'NOT_APPLIED'|'UNKNOWN_OUTCOME'|'UNREADABLE'|'VALUE_REFUSED'} code */
  constructor(code, message, cause) {
    super(message, { cause });
    this.code = code;
  }
}

// --- what comes in and what comes out --------------------------------------------------------------------

const isId = (value) => typeof value === 'string' && ID.test(value);
const invalid = (what) => new StoreError('INVALID', `this is no ${what}`);

function checkIds(...ids) {
  if (!ids.every(isId)) throw invalid('key, run id or holder');
}

function checkHolder(holder) {
  checkIds(holder);
  if (holder === 'free' || holder === 'cancel') throw invalid('holder');
}

function checkInteger(value, least = Number.MIN_SAFE_INTEGER) {
  if (!Number.isSafeInteger(value) || value < least) throw invalid('whole number here');
}

const malformed = (what) => new StoreError('UNREADABLE', `a malformed ${what} was read`);

function toRow(row) {
  const wellFormed = isId(row.key) && isId(row.runId) && STATES.includes(row.state)
    && Number.isInteger(row.createdAt) && Number.isInteger(row.updatedAt);
  if (!wellFormed) throw malformed('reservation');
  return row;
}

function toLock(lock) {
  if (!isId(lock.holder) || ![0, 1].includes(lock.ended)) throw malformed('run lock');
  return { ...lock, ended: lock.ended === 1 };
}

function kindOf({ state, holder, ended }) {
  if (state === null || state === 'terminal') return 'settled or purged, still held';
  if (holder === null) return state === 'reserved' ? 'reserved' : 'never reached the lock';
  if (holder === 'free' || holder === 'cancel') return `held by a ${holder}`;
  return ended ? 'ended, not settled' : 'reached the lock, not ended';
}

// --- the operations --------------------------------------------------------------------------------------

const done = (reason) => ({ done: true, reason, result: null });
const refused = (reason, result = null) => ({ done: false, reason, result });

function refusedBy(lock) {
  if (!lock) return refused('nobody holds its lock');
  if (lock.holder === 'free' || lock.holder === 'cancel') return refused(`a ${lock.holder} holds its lock`);
  return lock.ended ? refused('it has ended', lock.result) : refused('an execution holds its lock');
}

/** Yields a write that a read follows: if its outcome is unknown, that read decides, and this gives 0. */
function* resolvedByRead(...statement) {
  try {
    return yield statement;
  } catch (error) {
    if (error.code === 'UNKNOWN_OUTCOME') return 0;
    throw error;
  }
}

/** Creates what is not there, given as {statement: what it creates}. */
function* createMissing(creates) {
  const there = (yield ['look for tables']).map(({ name }) => name);
  for (const [statement, what] of Object.entries(creates)) {
    if (!there.includes(what)) yield [statement];
  }
}

function* readLock(name, runId) {
  const [lock] = yield [name, { runId }];
  return lock ? toLock(lock) : null;
}

export const operations = {
  *reserve(now, key, runId) {
    checkIds(key, runId);
    yield* createMissing({
      'create reservations': 'reservations',
      'create locks': 'run_locks',
      'create index': 'reservations_by_run',
    });
    const inserted = yield* resolvedByRead('insert', { key, runId, now });
    const [row] = yield ['read back', { key }];
    if (!row) throw new StoreError('VANISHED', 'the row was deleted before the read-back; reserve again');
    return { row: toRow(row), created: inserted === 1 && row.runId === runId };
  },

  *claim(now, key, runId) {
    checkIds(key, runId);
    return (yield ['claim', { key, runId, now }]) === 1;
  },

  *release(now, key, runId) {
    checkIds(key, runId);
    return (yield ['release', { key, runId, now }]) === 1;
  },

  *settle(now, runId) {
    checkIds(runId);
    return yield ['settle', { runId, now }];
  },

  *read(now, key) {
    checkIds(key);
    const [row] = yield ['read', { key }];
    return row ? toRow(row) : null;
  },

  *forRuns(now, ...runIds) {
    checkIds(...runIds);
    if (runIds.length === 0) return [];
    return (yield ['for runs', { runIds: JSON.stringify(runIds) }]).map(toRow);
  },

  *purge(now, horizon, limit) {
    checkInteger(horizon);
    checkInteger(limit, 1);
    return yield ['purge', { horizon, limit }];
  },

  *inventory(now, after, limit) {
    if (after !== null && (!Array.isArray(after) || after.length !== 2)) throw invalid('place in the list');
    checkIds(...(after ?? []));
    checkInteger(limit, 1);
    const [key, runId] = after ?? ['', ''];
    const entries = yield ['inventory', { key, runId, limit }];
    return entries.map((entry) => ({ ...entry, ended: entry.ended === 1, kind: kindOf(entry) }));
  },

  *takeLock(now, key, runId, holder) {
    checkIds(key, runId);
    checkHolder(holder);
    yield* resolvedByRead('insert lock', { key, runId, holder, now });
    const lock = yield* readLock('read holder', runId);
    return { mine: lock?.holder === holder, holder: lock?.holder ?? null };
  },

  *lockOf(now, runId) {
    checkIds(runId);
    return yield* readLock('read lock', runId);
  },

  *persist(now, runId, holder, result) {
    checkIds(runId);
    checkHolder(holder);
    if (typeof result !== 'string') throw invalid('result');
    return (yield ['persist', { runId, holder, result }]) === 1;
  },

  *cancel(now, runId) {
    checkIds(runId);
    yield* resolvedByRead('insert cancel', { runId, now });
    const lock = yield* readLock('read holder', runId);
    if (lock?.holder !== 'cancel') return refusedBy(lock);
    yield ['settle', { runId, now }];
    return done('cancelled');
  },

  *free(now, key) {
    checkIds(key);
    const [both] = yield ['read both', { key }];
    if (!both) return refused('no row');
    const { runId, state, holder } = both;
    if (state !== 'started' && holder !== 'free') return refused(`it is ${state}`);
    if (holder !== null && holder !== 'free') return refusedBy(both);
    yield* resolvedByRead('insert free', { key, runId, holder: 'free', now });
    const lock = yield* readLock('read holder', runId);
    if (lock?.holder !== 'free') return refusedBy(lock);
    yield ['delete', { key, runId }];
    return done('freed');
  },

  *fence() {
    const [row] = yield ['read fence'];
    return row?.closed === 1;
  },

  *closeFence() {
    yield* createMissing({ 'create fence': 'execution_fence' });
    yield ['close fence'];
    return null;
  },

  *openFence() {
    yield* createMissing({ 'create fence': 'execution_fence' });
    yield ['open fence'];
    return null;
  },
};

// --- running them ----------------------------------------------------------------------------------------

const certainlyNotApplied = /^SQLITE_(BUSY|LOCKED|READONLY|CANTOPEN|PERM|AUTH|FULL|NOMEM)/;

/** What an error of the driver means; one that means nothing to a caller is given back as it is. */
function meaningOf(error, writes) {
  const { code = '', message } = error;
  if (!code.startsWith('SQLITE_')) return error;
  if (!writes || message.startsWith('no such table: ')) return new StoreError('UNREADABLE', message, error);
  if (code.startsWith('SQLITE_CONSTRAINT')) return new StoreError('VALUE_REFUSED', message, error);
  if (certainlyNotApplied.test(code)) return new StoreError('NOT_APPLIED', message, error);
  return code === 'SQLITE_ERROR' ? error : new StoreError('UNKNOWN_OUTCOME', message, error);
}

/**
 * The store on a better-sqlite3 connection: every operation above as a method, without its `now`, as in
 * `store.claim(key, runId)`, and `execute`, which runs one statement of an operation.
 * @param {import('better-sqlite3').Database} db
 * @param {{now?: () => number}} options the clock, in milliseconds
 */
export function createStore(db, { now = Date.now } = {}) {
  const prepared = new Map();

  function prepare(sql) {
    if (!prepared.has(sql)) prepared.set(sql, db.prepare(sql));
    return prepared.get(sql);
  }

  function execute([name, parameters = {}], reads = READS) {
    const writes = name in WRITES;
    try {
      return writes ? prepare(WRITES[name]).run(parameters).changes : prepare(reads[name]).all(parameters);
    } catch (error) {
      // Where there is no table there are no rows. (A table behind a view is named "main.x".)
      const missing = OWN_TABLES.find((table) => error.message === `no such table: ${table}`);
      const fallback = missing === 'run_locks' && reads === READS && name in WITHOUT_LOCKS;
      if (fallback) return execute([name, parameters], WITHOUT_LOCKS);
      if (missing) return writes ? 0 : [];
      throw meaningOf(error, writes);
    }
  }

  function run(steps) {
    let step = steps.next();
    while (!step.done) {
      let reply;
      try {
        reply = execute(step.value);
      } catch (error) {
        step = steps.throw(error);
        continue;
      }
      step = steps.next(reply);
    }
    return step.value;
  }

  const methods = Object.entries(operations).map(
    ([name, operation]) => [name, (...args) => run(operation(now(), ...args))]);
  return { execute, ...Object.fromEntries(methods) };
}
