// The callers of the adapter: each has a connection of its own, and is held before each of its statements.

import Database from 'better-sqlite3';
import { WRITES } from './statements.mjs';
import { createStore, operations, StoreError } from './store.mjs';

const fail = (message, code) => { throw new Database.SqliteError(message, code); };
const quietly = (run) => { try { run(); } catch { /* a refusal is for nobody, like the reply */ } };

/** What the next statement of a connection meets with: `fault`. `late` are the statements on their way. */
function faulty(db) {
  const connection = { db, late: [], fault: undefined, snapshot: undefined };
  connection.prepare = (sql) => {
    let statement;
    const send = (method) => (parameters) => {
      const run = () => (statement ??= db.prepare(sql))[method](parameters);
      const { fault } = connection;
      connection.fault = undefined;
      if (fault === undefined) return run();
      if (fault === 'stale') return connection.snapshot.prepare(sql)[method](parameters);
      if (fault === 'not applied') return fail('database is locked', 'SQLITE_BUSY');
      if (fault === 'late') connection.late.push(run);
      if (fault === 'reply lost') quietly(run);
      return fail('disk I/O error', 'SQLITE_IOERR');
    };
    return { run: send('run'), all: send('all') };
  };
  return connection;
}

const methodOf = (operation) => operation.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
const argumentOf = (arg) => (typeof arg?.bytes === 'string' ? Buffer.from(arg.bytes, 'hex') : arg);
const list = (value) => value && Object.values(value);
const lists = (values) => values.map(list);
const TO_ANSWER = {
  reserve: ({ row, created }) => ({ row: list(row), created }),
  read: list, lock_of: list, for_runs: lists, inventory: lists,
};

const answered = (operation, value) => ({ answer: TO_ANSWER[operation]?.(value) ?? value });
const failed = (error) => ({
  error: error instanceof StoreError ? error.code.toLowerCase().replace('_', ' ') : `other: ${error}`,
});

export class Caller {
  #now;
  #held = null;

  constructor(db) {
    this.connection = faulty(db);
    this.store = createStore(this.connection, { now: () => this.#now });
  }

  call({ operation, args, now }) {
    this.#now = now;
    try {
      return answered(operation, this.store[methodOf(operation)](...args.map(argumentOf)));
    } catch (error) {
      return failed(error);
    }
  }

  begin({ operation, args, now }) {
    const steps = operations[methodOf(operation)](now, ...args.map(argumentOf));
    return this.#goOn({ operation, steps }, () => steps.next());
  }

  step({ fault }) {
    if (!this.#held) return { at: null };
    this.connection.fault = fault;
    return this.#run(this.#held);
  }

  crash() {
    this.#held = null;
    return { done: true };
  }

  land() {
    const run = this.connection.late.shift();
    if (run) quietly(run);
    return { done: true };
  }

  #run({ operation, steps, statement }) {
    try {
      const reply = this.store.execute(statement);
      return this.#goOn({ operation, steps }, () => steps.next(reply));
    } catch (error) {
      return this.#goOn({ operation, steps }, () => steps.throw(error));
    }
  }

  /** Takes an operation on to its next statement, or to its end. */
  #goOn({ operation, steps }, move) {
    this.#held = null;
    try {
      const { done, value: statement } = move();
      if (done) return answered(operation, statement);
      // The model has no look for tables: it is part of beginning.
      if (statement[0] === 'look for tables') return this.#run({ operation, steps, statement });
      this.#held = { operation, steps, statement };
      return { at: statement[0], writes: statement[0] in WRITES };
    } catch (error) {
      return failed(error);
    }
  }
}
