// Lets `startonce conform -- node adapter.mjs` hold the store against the model: docs/oracle-protocol.md.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import Database from 'better-sqlite3';
import { Caller } from './callers.mjs';
import { SCHEMA, WRITES } from './statements.mjs';

const { name, version } = JSON.parse(readFileSync(new URL('package.json', import.meta.url)));
const folder = mkdtempSync(join(tmpdir(), 'reservations-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

function connect() {
  const db = new Database(join(folder, 'test.db'), { timeout: 50 });
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = OFF'); // a test need not survive a power cut
  return db;
}

const admin = connect();
const callers = Object.fromEntries(['A', 'B', 'C', 'D'].map((caller) => [caller, new Caller(connect())]));
const connections = Object.values(callers).map(({ connection }) => connection);
const done = { done: true };

// --- the database, by SQL of the adapter's own -----------------------------------------------------------

const prepared = new Map();

function prepare(sql) {
  if (!prepared.has(sql)) prepared.set(sql, admin.prepare(sql));
  return prepared.get(sql);
}

/** Makes a table hold exactly these records; null: there is no such table. */
function fill(table, create, records) {
  if (!records) return admin.exec(`DROP TABLE IF EXISTS ${table}`);
  admin.exec(`${create}; DELETE FROM ${table}`);
  for (const values of records) {
    prepare(`INSERT INTO ${table} VALUES (${values.map(() => '?')})`).run(values);
  }
}

const put = admin.transaction(({ rows, locks, fence = null }) => {
  for (const connection of connections) connection.late = [];
  fill('reservations', `${SCHEMA['create reservations']}; ${SCHEMA['create index']}`, rows);
  fill('run_locks', SCHEMA['create locks'], locks?.map((lock) => lock.with(3, Number(lock[3]))));
  fill('execution_fence', WRITES['create fence'], fence === null ? null : [[1, Number(fence)]]);
  return done;
});

function dump() {
  const tables = prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all();
  const all = (table) => (tables.includes(table) ? prepare(`SELECT * FROM ${table}`).raw().all() : null);
  return {
    rows: all('reservations'),
    locks: all('run_locks')?.map((lock) => lock.with(3, lock[3] === 1)) ?? null,
    fence: all('execution_fence')?.some(([, closed]) => closed === 1) ?? null,
  };
}

const COLUMNS = 'key TEXT PRIMARY KEY, run_id TEXT, state TEXT, created_at INTEGER, updated_at INTEGER';
const SPOILED_TABLES = {
  refused: `CREATE TABLE reservations (${COLUMNS}, CHECK (0))`,
  wanting: `CREATE TABLE reservations (${COLUMNS}, wanted TEXT NOT NULL)`,
  elsewhere: 'CREATE VIEW reservations AS SELECT * FROM elsewhere',
};
const SPOILED_ROWS = {
  'state': ['r1', 'begun', 0, 0],
  'run id': [null, 'reserved', 0, 0],
  'time': ['r1', 'reserved', 0, 'noon'],
};

function spoil({ how, key }) {
  put({});
  admin.exec(SPOILED_TABLES[how] ?? `CREATE TABLE reservations (${COLUMNS})`);
  const row = SPOILED_ROWS[how];
  if (row) prepare('INSERT INTO reservations VALUES (?, ?, ?, ?, ?)').run(key, ...row);
  return done;
}

function unspoil() {
  const { type } = prepare("SELECT type FROM sqlite_schema WHERE name = 'reservations'").get();
  admin.exec(`DROP ${type} reservations`);
  return put({});
}

function deny({ denied }) {
  for (const { db } of connections) {
    db.prepare('SELECT count(*) FROM sqlite_schema').get(); // so that it knows which tables are there
    db.pragma(`query_only = ${denied ? 'ON' : 'OFF'}`);
  }
  return done;
}

/** A replica that lags: a connection that stays in one read transaction. */
function pin() {
  const snapshot = connect();
  snapshot.exec('BEGIN; SELECT count(*) FROM sqlite_schema');
  for (const connection of connections) connection.snapshot = snapshot;
  return done;
}

function unpin() {
  connections[0].snapshot?.close();
  for (const connection of connections) connection.snapshot = undefined;
  return done;
}

// --- requests --------------------------------------------------------------------------------------------

const hello = () => ({
  protocol: 1,
  implementation: name,
  language: `Node ${process.versions.node}`,
  version, homepage: '',
  database: `SQLite ${prepare('SELECT sqlite_version()').pluck().get()}`,
  capabilities: [
    'for_runs', 'purge', 'inventory', 'take_lock', 'lock_of', 'persist', 'cancel', 'free',
    'fence', 'close_fence', 'open_fence', 'clock', 'absent', 'surrogates',
    'callers', 'stepping', 'statements', 'faults', 'replica', 'deny', 'probes',
  ],
  not_applicable: { 'RUN-2': 'all run ids are bound as one parameter, a JSON array' },
});

const ofCaller = (verb) => (request) => callers[request.caller ?? 'A'][verb](request);
const requests = {
  hello, put, dump, spoil, unspoil, deny, pin, unpin,
  reset: () => put({}),
  call: ofCaller('call'),
  begin: ofCaller('begin'),
  step: ofCaller('step'),
  crash: ofCaller('crash'),
  land: ofCaller('land'),
  many: ({ of }) => ({ of: of.map(respond) }),
};

function respond(request) {
  try {
    return requests[request.do](request);
  } catch (error) {
    return { failed: String(error.stack) };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  process.stdout.write(`${JSON.stringify({ id: request.id, ...respond(request) })}\n`);
}
