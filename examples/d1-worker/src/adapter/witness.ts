// Puts and shows what is in the database, by SQL of its own: the other witness beside the store.
//
// What costs time is the round trip to D1, not the statements in it. So a put travels with whatever comes
// next, and a statement takes along the look at the database that is wanted after it. D1 runs a batch as
// one transaction, and nobody else is there. Of a batch that fails nothing is applied: then everything is
// sent one by one, and the error that the store sees is that of its own statement.

import { FENCE, LOCKS, RESERVATIONS } from "../schema";

type Values = Record<string, unknown>;
type Rows = unknown[][];

/** Null is a table that does not exist. */
export interface Contents {
  rows: Rows | null;
  locks: Rows | null;
  fence: boolean | null;
}

const CREATE: Record<string, string> = {
  run_locks: LOCKS,
  start_fence: FENCE,
  start_reservations: RESERVATIONS,
};
const COLUMNS: Record<string, string[]> = {
  run_locks: ["run_id", "key", "holder", "ended", "result", "created_at"],
  start_fence: ["id", "closed"],
  start_reservations: ["key", "run_id", "state", "created_at", "updated_at"],
};
const NAMES = `SELECT json_group_array(name) FROM sqlite_schema
  WHERE type = 'table' AND name IN ('run_locks', 'start_fence', 'start_reservations')`;

export class Witness {
  private waiting: D1PreparedStatement[] = [];
  /** Which tables there are as far as is known, in order of name. */
  private tables: string[] = [];
  private seen: Contents | null = null;

  constructor(private readonly db: D1Database) {}

  /** Make the database be this. */
  put({ rows, locks, fence }: Contents): void {
    this.tables = [];
    this.fill("run_locks", locks);
    this.fill("start_fence", fence === null ? null : [[1, fence]]);
    this.fill("start_reservations", rows);
  }

  private fill(name: string, rows: Rows | null): void {
    if (rows === null) return this.sql(`DROP TABLE IF EXISTS ${name}`);
    this.tables.push(name);
    this.sql(CREATE[name]!);
    this.sql(`DELETE FROM ${name}`);
    if (rows.length === 0) return;
    const picked = COLUMNS[name]!.map((_, place) => `value ->> ${place}`);
    this.sql(`INSERT INTO ${name} SELECT ${picked} FROM json_each(?)`, JSON.stringify(rows));
  }

  /** Run any SQL before whatever comes next. */
  sql(text: string, ...args: unknown[]): void {
    this.waiting.push(this.db.prepare(text).bind(...args));
    this.seen = null;
  }

  /** Run what waits. */
  async flush(): Promise<void> {
    if (this.waiting.length) await this.db.batch(this.waiting);
    this.waiting = [];
  }

  /** Run a statement of the store and, if that is wanted, look at the database after it. */
  async run(statement: D1PreparedStatement, look: boolean): Promise<D1Result<Values>> {
    const { waiting } = this;
    this.seen = null;
    if (look || waiting.length) {
      try {
        const looking = look ? [this.look()] : [];
        const results = await this.db.batch<Values>([...waiting, statement, ...looking]);
        this.waiting = [];
        if (look) this.saw(results[waiting.length + 1]!);
        return results[waiting.length]!;
      } catch {
        await this.flush();
      }
    }
    return await statement.all<Values>();
  }

  /** Show everything. */
  async dump(): Promise<Contents> {
    while (this.seen === null) {
      const { waiting } = this;
      const results = await this.db.batch<Values>([...waiting, this.look()]);
      this.waiting = [];
      this.saw(results[waiting.length]!);
    }
    return this.seen;
  }

  /** One statement that gives the names of all tables, and the rows of those that are known. */
  private look(): D1PreparedStatement {
    const rows = this.tables.map(
      (name) => `, (SELECT json_group_array(json_array(${COLUMNS[name]})) FROM ${name}) AS ${name}`,
    );
    return this.db.prepare(`SELECT (${NAMES}) AS names${rows.join("")}`);
  }

  /** Take note of what `look` gave: it holds if there are no other tables than were looked at. */
  private saw({ results: [found] }: D1Result<Values>): void {
    const tables = JSON.parse(found!.names as string).sort();
    if (tables.join() === this.tables.join()) this.seen = this.contents(found!);
    this.tables = tables;
  }

  private contents(found: Values): Contents {
    const of = (name: string) => (name in found ? (JSON.parse(found[name] as string) as Rows) : null);
    const fence = of("start_fence");
    const locks = of("run_locks");
    for (const lock of locks ?? []) lock[3] = lock[3] === 1;
    return { rows: of("start_reservations"), locks, fence: fence && fence[0]?.[1] === 1 };
  }
}
