// Start reservations on D1: a key means one run, and one caller may start it.
//
// Every statement runs on its own: D1 has no transaction that a Worker could hold open. What a statement
// did is read from the rows that it returns (RETURNING), never from `meta.changes`, which counts triggers.

import { NoTable, ofRead, ofWrite, ReservationError } from "./errors";
import { FENCE, INDEX, LOCKS, RESERVATIONS } from "./schema";
import { SQL } from "./statements";
import * as values from "./values";
import type { Entry, Holding, Lock, Reservation, Values } from "./values";

/** How many values D1 binds in one statement. */
export const PARAMETERS = 100;

/** The answer of `takeLock`: whether it is mine, and whose it is. */
export interface Taken {
  mine: boolean;
  holder: string | null;
}

/** The answer of `cancel` and `free`. */
export interface Stopped {
  done: boolean;
  reason: string;
  result?: string | null;
}

const KEYS = "start_reservations";
const RUNS = "run_locks";

/** The store. Make one for each request, over its binding; `now` is its clock, in milliseconds, UTC. */
export class Reservations {
  constructor(
    private readonly db: D1Database,
    private readonly now: () => number = Date.now,
  ) {}

  /** Reserve a key for a run, unless it means one already; `created` never means "mine to start". */
  async reserve(key: string, runId: string): Promise<{ row: Reservation; created: boolean }> {
    values.checkIds(key, runId);
    const insert = () => this.write("insert", [KEYS, RUNS], SQL.insert, key, runId, this.now());
    let inserted: Values[] = [];
    try {
      inserted = await insert().catch(async (error: unknown) => {
        if (!(error instanceof NoTable)) throw error;
        await this.createTables();
        return await insert();
      });
    } catch (error) {
      if (!isUnknown(error)) throw error; // what is unknown, the read-back tells
    }
    const row = await this.readRow("read back", key);
    if (row === null) throw new ReservationError("vanished", `${key} was deleted meanwhile`);
    return { row, created: inserted.length === 1 && row.runId === runId };
  }

  /** Move a key from `reserved` to `started`. True: this caller won, and nobody else did. */
  async claim(key: string, runId: string): Promise<boolean> {
    values.checkIds(key, runId);
    const moved = this.write("claim", [KEYS], SQL.move, "started", this.now(), key, runId, "reserved");
    return (await moved.catch(none)).length === 1;
  }

  /** Give a won claim back. Only after the fence refused this very start, and only once. */
  async release(key: string, runId: string): Promise<boolean> {
    values.checkIds(key, runId);
    const moved = this.write("release", [KEYS], SQL.move, "reserved", this.now(), key, runId, "started");
    return (await moved.catch(none)).length === 1;
  }

  /** End every key of a run that is over, or can never begin; give their number. */
  async settle(runId: string): Promise<number> {
    values.checkIds(runId);
    return (await this.write("settle", [KEYS], SQL.settle, this.now(), runId).catch(none)).length;
  }

  /** Read the reservation of a key. */
  async read(key: string): Promise<Reservation | null> {
    values.checkIds(key);
    return await this.readRow("read", key);
  }

  /** Read every reservation of some runs, at most `PARAMETERS` of them. */
  async forRuns(...runIds: string[]): Promise<Reservation[]> {
    values.checkIds(...runIds);
    if (runIds.length > PARAMETERS) throw new ReservationError("too many runs", `at most ${PARAMETERS}`);
    if (runIds.length === 0) return [];
    const rows = await this.query("for runs", [KEYS], SQL.forRuns(runIds.length), ...runIds).catch(none);
    return rows.map(values.reservation);
  }

  /** Delete terminal rows last changed before a time, the oldest first, at most `limit`. */
  async purge(before: number, limit: number): Promise<number> {
    values.checkInteger(before);
    values.checkInteger(limit, 1);
    return (await this.write("purge", [KEYS], SQL.purge, before, limit).catch(none)).length;
  }

  /** List what a drain must wait for or explain, after a key and run, at most `limit`. */
  async inventory(after: [string, string] | null, limit: number): Promise<Entry[]> {
    if (after !== null) values.checkIds(...after);
    values.checkInteger(limit, 1);
    const [key, runId] = after ?? ["", ""]; // before every key
    try {
      const rows = await this.query("inventory", [KEYS, RUNS], SQL.inventory, key, runId, limit);
      return rows.map(values.entry);
    } catch (error) {
      if (!(error instanceof NoTable)) throw error;
      if (error.message === KEYS) return [];
      // Rows without the table of locks: an empty list would end a drain too early.
      throw new ReservationError("unreadable", "there is no table of locks", error);
    }
  }

  /** Take the lock of a run for an execution. Only `mine` is permission to execute. */
  async takeLock(key: string, runId: string, holder: string): Promise<Taken> {
    values.checkIds(key, runId);
    values.checkHolder(holder);
    await this.insertLock("insert lock", key, runId, holder);
    const lock = await this.readLock("read holder", runId);
    return { mine: lock?.holder === holder, holder: lock?.holder ?? null };
  }

  /** Read the lock of a run. */
  async lockOf(runId: string): Promise<Lock | null> {
    values.checkIds(runId);
    return await this.readLock("read lock", runId);
  }

  /** Mark the execution of a run ended and keep its result, a JSON text. */
  async persist(runId: string, holder: string, result: string): Promise<boolean> {
    values.checkIds(runId);
    values.checkHolder(holder);
    values.checkText(result);
    const ended = this.write("persist", [RUNS], SQL.persist, runId, holder, result);
    return (await ended.catch(none)).length === 1;
  }

  /** See to it that a run never begins, and end its keys; refused where an execution came first. */
  async cancel(runId: string): Promise<Stopped> {
    values.checkIds(runId);
    const insert = this.write("insert cancel", [RUNS], SQL.insertCancel, runId, this.now());
    await insert.catch(none).catch(unknown);
    const lock = await this.readLock("read holder", runId);
    if (lock?.holder !== "cancel") return refusal(lock);
    await this.settle(runId);
    return { done: true, reason: "cancelled" };
  }

  /** Give a key back whose run was started and provably never executed. */
  async free(key: string): Promise<Stopped> {
    values.checkIds(key);
    const row = await this.readBoth(key);
    if (row === null) return { done: false, reason: "no row" };
    if (row.holder !== "free") {
      if (row.state !== "started") return { done: false, reason: `it is ${row.state}` };
      if (row.holder !== null) return refusal(row);
    }
    await this.insertLock("insert free", key, row.runId, "free");
    const lock = await this.readLock("read holder", row.runId);
    if (lock?.holder !== "free") return refusal(lock);
    await this.write("delete", [KEYS], SQL.delete, key, row.runId).catch(none);
    return { done: true, reason: "freed" };
  }

  /** Say whether starts are refused. */
  async fence(): Promise<boolean> {
    const rows = await this.query("read fence", ["start_fence"], SQL.readFence).catch(none);
    return rows[0]?.closed === 1;
  }

  async closeFence(): Promise<void> {
    await this.writeFence("close fence", 1);
  }

  async openFence(): Promise<void> {
    await this.writeFence("open fence", 0);
  }

  // --- statements -------------------------------------------------------------------------------------

  private async readRow(name: string, key: string): Promise<Reservation | null> {
    const rows = await this.query(name, [KEYS], SQL.read, key).catch(none);
    return rows[0] === undefined ? null : values.reservation(rows[0]);
  }

  private async readLock(name: string, runId: string): Promise<Lock | null> {
    const rows = await this.query(name, [RUNS], SQL.readLock, runId).catch(none);
    return rows[0] === undefined ? null : values.lock(rows[0]);
  }

  /** A row and its lock, at one moment. */
  private async readBoth(key: string): Promise<(Reservation & Holding) | null> {
    const both = this.query("read both", [KEYS, RUNS], SQL.readBoth, key);
    const rows = await both.catch((error: unknown) => {
      if (!(error instanceof NoTable && error.message === RUNS)) return none(error);
      // Without the table of locks nobody holds one; the row is still there to tell.
      return this.query("read both", [KEYS], SQL.read, key).catch(none);
    });
    return rows[0] === undefined ? null : { ...values.reservation(rows[0]), ...values.holding(rows[0]) };
  }

  /** After an unknown outcome the holder is read back, and that decides. */
  private async insertLock(name: string, key: string, runId: string, holder: string): Promise<void> {
    const args = [key, runId, holder, this.now()];
    await this.write(name, [KEYS, RUNS], SQL.insertLock, ...args).catch(none).catch(unknown);
  }

  private async writeFence(name: string, closed: 0 | 1): Promise<void> {
    const write = () => this.write(name, ["start_fence"], SQL.writeFence, closed);
    await write().catch(async (error: unknown) => {
      if (!(error instanceof NoTable)) throw error;
      await this.write("create fence", [], FENCE);
      await write();
    });
  }

  /** The locks first: then there is no moment with reservations and nowhere to lock them. */
  private async createTables(): Promise<void> {
    await this.write("create locks", [], LOCKS);
    await this.write("create reservations", [], RESERVATIONS);
    await this.write("create index", [], INDEX);
  }

  private async write(name: string, tables: string[], sql: string, ...args: unknown[]): Promise<Values[]> {
    return await this.run(name, sql, args).catch((error: unknown) => {
      throw ofWrite(error, tables);
    });
  }

  private async query(name: string, tables: string[], sql: string, ...args: unknown[]): Promise<Values[]> {
    return await this.run(name, sql, args).catch((error: unknown) => {
      throw ofRead(error, tables);
    });
  }

  /** The name goes along as a comment: it says in logs and in D1's query insights whose statement it is. */
  private async run(name: string, sql: string, args: unknown[]): Promise<Values[]> {
    const { results } = await this.db.prepare(`/* ${name} */ ${sql}`).bind(...args).all<Values>();
    if (!Array.isArray(results)) throw new Error("D1 answered without rows");
    return results;
  }
}

/** Without the table there are no rows. */
function none(error: unknown): Values[] {
  if (error instanceof NoTable) return [];
  throw error;
}

/** Go on after an unknown outcome, for whoever reads back what became of it. */
function unknown(error: unknown): void {
  if (!isUnknown(error)) throw error;
}

function isUnknown(error: unknown): boolean {
  return error instanceof ReservationError && error.kind === "unknown outcome";
}

function refusal(lock: Holding | null): Stopped {
  if (lock === null || lock.holder === null) return { done: false, reason: "nobody holds its lock" };
  if (lock.holder === "cancel" || lock.holder === "free") {
    return { done: false, reason: `a ${lock.holder} holds its lock` };
  }
  if (lock.ended) return { done: false, reason: "it has ended", result: lock.result };
  return { done: false, reason: "an execution holds its lock" };
}
