// What goes in and comes out: the checks on arguments, and rows as they are read.

import { ReservationError } from "./errors";

export type State = "reserved" | "started" | "terminal";

/** Which run a key means. Times are milliseconds, UTC. */
export interface Reservation {
  key: string;
  runId: string;
  state: State;
  createdAt: number;
  updatedAt: number;
}

/** Who may execute a run. `key` is null for a cancel; `result` is a JSON text once the run has ended. */
export interface Lock {
  runId: string;
  key: string | null;
  holder: string;
  ended: boolean;
  result: string | null;
  createdAt: number;
}

/** Who holds a run, if anybody does. */
export type Holding = Pick<Lock, "ended" | "result"> & { holder: string | null };

/** Something that a drain must wait for or explain. */
export interface Entry {
  key: string;
  runId: string;
  state: State | null;
  holder: string | null;
  ended: boolean;
  kind: string;
}

export type Values = Record<string, unknown>;

const ID = /^[A-Za-z0-9._~-]{1,200}$/;

/** Refuse what is no key or run id. */
export function checkIds(...values: unknown[]): void {
  if (!values.every((value) => typeof value === "string" && ID.test(value))) refuse("a key or run id");
}

/** Refuse what is no token of an execution: the words of the operators are none. */
export function checkHolder(value: unknown): void {
  checkIds(value);
  if (value === "free" || value === "cancel") refuse("a holder");
}

export function checkText(value: unknown): void {
  if (typeof value !== "string") refuse("a result");
}

export function checkInteger(value: unknown, least = Number.MIN_SAFE_INTEGER): void {
  if (!Number.isSafeInteger(value) || (value as number) < least) refuse("a number");
}

function refuse(what: string): never {
  throw new ReservationError("invalid", `this is not ${what}`);
}

/** Read a reservation. Throws `unreadable` for a row that cannot be. */
export function reservation(row: Values): Reservation {
  const { key, run_id: runId, state, created_at: createdAt, updated_at: updatedAt } = row;
  if (isText(key) && isText(runId) && isState(state) && isTime(createdAt) && isTime(updatedAt)) {
    return { key, runId, state, createdAt, updatedAt };
  }
  throw new ReservationError("unreadable", "a reservation with values that cannot be");
}

/** Read a lock. Throws `unreadable` for a row that cannot be. */
export function lock(row: Values): Lock {
  const { run_id: runId, key, holder, ended, result, created_at: createdAt } = row;
  if (isText(runId) && orNull(key) && isText(holder) && orNull(result) && isTime(createdAt)) {
    return { runId, key, holder, ended: ended === 1, result, createdAt };
  }
  throw new ReservationError("unreadable", "a lock with values that cannot be");
}

/** Read who holds a run from a row that may have no lock beside it. */
export function holding({ holder = null, ended, result = null }: Values): Holding {
  if (orNull(holder) && orNull(result)) return { holder, ended: ended === 1, result };
  throw new ReservationError("unreadable", "a lock with values that cannot be");
}

/** Read an entry of the inventory and say of which kind it is. */
export function entry(row: Values): Entry {
  const { key, run_id: runId, state, holder, ended } = row;
  if (isText(key) && isText(runId) && (state === null || isState(state)) && orNull(holder)) {
    return { key, runId, state, holder, ended: ended === 1, kind: kind(state, holder, ended === 1) };
  }
  throw new ReservationError("unreadable", "an entry with values that cannot be");
}

function kind(state: State | null, holder: string | null, ended: boolean): string {
  if (state === null || state === "terminal") return "settled or purged, still held";
  if (holder === null) return state === "reserved" ? "reserved" : "never reached the lock";
  if (holder === "free" || holder === "cancel") return `held by a ${holder}`;
  return ended ? "ended, not settled" : "reached the lock, not ended";
}

const isText = (value: unknown): value is string => typeof value === "string";
const orNull = (value: unknown): value is string | null => value === null || isText(value);
const isTime = (value: unknown): value is number => Number.isSafeInteger(value);
const isState = (value: unknown): value is State =>
  value === "reserved" || value === "started" || value === "terminal";
