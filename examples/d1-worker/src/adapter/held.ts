// A D1 binding that tells of every statement before it runs, and callers that are held there.

type Values = Record<string, unknown>;

/** One statement that a store is about to run. */
export interface Statement {
  name: string;
  writes: boolean;
  sql: string;
  args: unknown[];
}

export type Fault = "not applied" | "reply lost" | "late" | "stale";
/** Wait until a statement may run; give the fault that is to befall it. */
export type Reach = (statement: Statement) => Promise<Fault | undefined>;
export type Run = (statement: Statement) => Promise<D1Result<Values>>;

/** Return a binding whose statements are run by `run`. It has what the store uses: prepare, bind, all. */
export function binding(run: Run): D1Database {
  const prepared = (sql: string, args: unknown[]) => ({
    bind: (...given: unknown[]) => prepared(sql, given),
    all: () => run({ name: nameOf(sql), writes: !/^\/\*.*?\*\/ SELECT/.test(sql), sql, args }),
  });
  return { prepare: (sql: string) => prepared(sql, []) } as unknown as D1Database;
}

function nameOf(sql: string): string {
  const name = /^\/\* (.*?) \*\//.exec(sql)?.[1];
  if (name === undefined) throw new Error(`a statement without a name: ${sql}`);
  return name;
}

/** Where an operation is: before a statement, or over. */
export type Stop = { at: string; writes: boolean } | { answer: unknown } | { error: string };

/** An operation under way. It waits before each of its statements until it is told to go on. */
export class Held {
  private stopped: (stop: Stop) => void = () => {};
  private go: ((fault: Fault | undefined) => void) | null = null;
  private abandon: () => void = () => {};
  private gone = false;

  /** Begin an operation, which calls `reach` before each statement and never throws. */
  begin(operation: (reach: Reach) => Promise<Stop>): Promise<Stop> {
    return new Promise((resolve) => {
      this.stopped = resolve;
      void operation((statement) => this.reach(statement)).then((stop) => this.stopped(stop));
    });
  }

  private reach({ name, writes }: Statement): Promise<Fault | undefined> {
    return new Promise((resolve, reject) => {
      this.abandon = () => reject(new Error("this caller is gone"));
      if (this.gone) return this.abandon();
      this.go = resolve;
      this.stopped({ at: name, writes });
    });
  }

  /** Let the operation run its statement, under a fault; give where it stops next, null if it is over. */
  step(fault: Fault | undefined): Promise<Stop> | null {
    const { go } = this;
    if (go === null) return null;
    this.go = null;
    return new Promise((resolve) => {
      this.stopped = resolve;
      go(fault);
    });
  }

  /** The caller is gone: whatever else its operation tries to run is refused, and nobody hears of it. */
  crash(): void {
    this.gone = true;
    this.stopped = () => {};
    this.abandon();
  }
}
