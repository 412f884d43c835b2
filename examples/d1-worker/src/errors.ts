// What can go wrong, and which of D1's errors means what.

/**
 * - `invalid`: an argument is no key, run id, holder, ... Nothing was sent.
 * - `vanished`: the key was purged or freed while it was being reserved. Try again with a fresh run id.
 * - `not applied`: the write certainly changed nothing.
 * - `unknown outcome`: nobody knows whether the write was applied, or will be. Neither won nor lost.
 * - `unreadable`: what is in the database cannot be told. Never take it for "no such key".
 * - `value refused`: a constraint of the schema refuses the value.
 * - `too many runs`: more run ids than D1 binds in one statement.
 */
export type Kind =
  | "invalid"
  | "vanished"
  | "not applied"
  | "unknown outcome"
  | "unreadable"
  | "value refused"
  | "too many runs";

/** Every error that the store throws. `cause` is D1's own error where there is one. */
export class ReservationError extends Error {
  constructor(readonly kind: Kind, detail: string, cause?: unknown) {
    super(`${kind}: ${detail}`, { cause });
    this.name = "ReservationError";
  }
}

/** One of an operation's own tables does not exist; every operation says itself what that means. */
export class NoTable extends Error {}

// What D1 says before it has run anything, and what SQLite says when it has changed nothing.
const NOT_APPLIED = /overloaded|too many requests queued|SQLITE_(BUSY|FULL|READONLY)|maximum DB size/i;
const REFUSED = /SQLITE_CONSTRAINT|constraint failed/;
const MISSING = /no such table: (?:main\.)?(\w+)/;

/** Say what an error of a write means. What is not known to be harmless is an unknown outcome. */
export function ofWrite(error: unknown, tables: readonly string[]): Error {
  const text = message(error);
  const missing = MISSING.exec(text)?.[1];
  if (missing !== undefined) return tables.includes(missing) ? new NoTable(missing) : unreadable(error);
  if (REFUSED.test(text)) return new ReservationError("value refused", text, error);
  if (NOT_APPLIED.test(text)) return new ReservationError("not applied", text, error);
  return new ReservationError("unknown outcome", text, error);
}

/** Say what an error of a read means: a table that is missing, or something that cannot be read. */
export function ofRead(error: unknown, tables: readonly string[]): Error {
  const missing = MISSING.exec(message(error))?.[1];
  return missing !== undefined && tables.includes(missing) ? new NoTable(missing) : unreadable(error);
}

function unreadable(error: unknown): ReservationError {
  return new ReservationError("unreadable", message(error), error);
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
