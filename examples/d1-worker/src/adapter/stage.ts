// What the oracle asks, done inside the Worker: the database, the callers, and what befalls them.

import { ReservationError } from "../errors";
import { PARAMETERS, Reservations } from "../reservations";
import type { Reservation } from "../values";
import { binding, Held } from "./held";
import type { Fault, Reach, Statement, Stop } from "./held";
import { spoils } from "./spoils";
import { Witness } from "./witness";
import type { Contents } from "./witness";

export interface Env {
  DB: D1Database;
  /** Stands for a replica that stays behind. */
  REPLICA: D1Database;
}

interface Request extends Partial<Contents> {
  do: string;
  of: Request[];
  caller: string;
  operation: string;
  args: any[];
  now: number;
  fault?: Fault;
  denied: boolean;
  how: string;
  key: string;
  calls: Request[];
}

type Values = Record<string, unknown>;
type Response = Record<string, unknown>;

// What D1 says where a statement was not run, and where its reply was lost.
const OVERLOADED = "D1_ERROR: D1 DB is overloaded. Requests queued for too long.";
const LOST = "D1_ERROR: Network connection lost.";

// Which tables a statement creates, and which one needs that comes again once they are created.
type Tables = Record<string, (keyof Contents)[]>;
const CREATED: Tables = {
  "create reservations": ["rows"],
  "create locks": ["locks"],
  "create fence": ["fence"],
  "create index": [],
};
const NEEDED: Tables = { insert: ["rows", "locks"], "close fence": ["fence"], "open fence": ["fence"] };

const DONE = { done: true };
const NOTHING = { rows: null, locks: null, fence: null };

const row = (r: Reservation) => [r.key, r.runId, r.state, r.createdAt, r.updatedAt];

/** Every operation of the store, its arguments as they come and its answer as it goes over the wire. */
const OPERATIONS: Record<string, (store: Reservations, ...args: any[]) => Promise<unknown>> = {
  reserve: async (store, key, runId) => {
    const reserved = await store.reserve(key, runId);
    return { row: row(reserved.row), created: reserved.created };
  },
  claim: (store, key, runId) => store.claim(key, runId),
  release: (store, key, runId) => store.release(key, runId),
  settle: (store, runId) => store.settle(runId),
  read: async (store, key) => {
    const found = await store.read(key);
    return found && row(found);
  },
  for_runs: async (store, ...runIds) => (await store.forRuns(...runIds)).map(row),
  purge: (store, before, limit) => store.purge(before, limit),
  inventory: async (store, after, limit) =>
    (await store.inventory(after, limit)).map((e) => [e.key, e.runId, e.state, e.holder, e.ended, e.kind]),
  take_lock: (store, key, runId, holder) => store.takeLock(key, runId, holder),
  lock_of: async (store, runId) => {
    const lock = await store.lockOf(runId);
    return lock && [lock.runId, lock.key, lock.holder, lock.ended, lock.result, lock.createdAt];
  },
  persist: (store, runId, holder, result) => store.persist(runId, holder, result),
  cancel: (store, runId) => store.cancel(runId),
  free: (store, key) => store.free(key),
  fence: (store) => store.fence(),
  close_fence: async (store) => (await store.closeFence(), null),
  open_fence: async (store) => (await store.openFence(), null),
};

const CORE = ["reserve", "claim", "release", "settle", "read"];
const HELLO = {
  protocol: 1,
  implementation: "d1-worker",
  language: "TypeScript",
  version: "1.0",
  homepage: "",
  database: "Cloudflare D1 (workerd, miniflare)",
  parameter_limit: PARAMETERS,
  capabilities: [
    ...Object.keys(OPERATIONS).filter((name) => !CORE.includes(name)),
    ...["absent", "clock", "surrogates", "callers", "stepping", "statements", "faults"],
    ...["replica", "deny", "probes", "race"],
  ],
};

export class Stage {
  private readonly witness: Witness;
  private readonly replica: Witness;
  private readonly held = new Map<string, Held>();
  private readonly late = new Map<string, Statement[]>();
  private denied = false;
  private spoiled: string | undefined;
  /** Whether the database is looked at next. */
  private looking = false;

  constructor(private readonly env: Env) {
    this.witness = new Witness(env.DB);
    this.replica = new Witness(env.REPLICA);
  }

  /** Answer a request. What fails here is the adapter's own failure. */
  async respond(request: Request): Promise<Response> {
    try {
      if (request.do !== "many") return await this.one(request);
      const of: Response[] = [];
      for (const [place, part] of request.of.entries()) {
        this.looking = request.of[place + 1]?.do === "dump";
        of.push(await this.respond(part));
      }
      this.looking = false;
      return { of };
    } catch (error) {
      return { failed: String(error) };
    }
  }

  private async one(request: Request): Promise<Response> {
    const { caller } = request;
    switch (request.do) {
      case "hello":
        return HELLO;
      case "put":
      case "reset":
        this.late.clear();
        this.witness.put({ ...NOTHING, ...request });
        return DONE;
      case "dump":
        return { ...(await this.witness.dump()) };
      case "call":
        return { ...(await this.operate(request)) };
      case "begin": {
        const held = new Held();
        this.held.get(caller)?.crash();
        this.held.set(caller, held);
        return { ...(await held.begin((reach) => this.operate(request, reach))) };
      }
      case "step":
        return { ...((await this.held.get(caller)?.step(request.fault)) ?? { at: null }) };
      case "crash":
        this.held.get(caller)?.crash();
        this.held.delete(caller);
        return DONE;
      case "land":
        await this.land(caller);
        return DONE;
      case "pin":
        this.replica.put(await this.witness.dump());
        await this.replica.flush();
        return DONE;
      case "unpin":
        return DONE;
      case "deny":
        this.denied = request.denied;
        return DONE;
      case "race":
        await this.witness.flush();
        return { of: await Promise.all(request.calls.map((call) => this.operate(call))) };
      case "spoil":
      case "unspoil":
        if (this.spoiled === "elsewhere") this.witness.sql("DROP VIEW start_reservations");
        this.witness.put(NOTHING);
        this.spoiled = request.how;
        if (request.do === "spoil") {
          for (const sql of spoils(request.how, request.key)) this.witness.sql(sql);
        }
        return DONE;
      default:
        return { failed: `there is no request ${request.do}` };
    }
  }

  /** Run an operation on a binding whose statements wait for `reach`; give what it ended with. */
  private async operate(
    { caller, operation, args, now }: Request,
    reach: Reach = async () => undefined,
  ): Promise<Stop> {
    const db = binding(async (statement) => this.run(caller, statement, await reach(statement)));
    try {
      return { answer: await OPERATIONS[operation]!(new Reservations(db, () => now), ...args) };
    } catch (error) {
      return { error: error instanceof ReservationError ? error.kind : `other: ${String(error)}` };
    }
  }

  private async run(caller: string, statement: Statement, drawn?: Fault): Promise<D1Result<Values>> {
    const fault = await this.befalling(statement, drawn);
    if (fault === "not applied") throw new Error(OVERLOADED);
    if (fault === "late") {
      this.late.set(caller, [...(this.late.get(caller) ?? []), statement]);
      throw new Error(LOST);
    }
    if (fault === "stale") return await prepared(this.env.REPLICA, statement).all<Values>();
    const result = this.witness.run(prepared(this.env.DB, statement), this.looking);
    if (fault === undefined) return await result;
    await result.catch(() => undefined); // a refusal is lost like any other reply
    throw new Error(LOST);
  }

  /**
   * Say what befalls a statement. No failure befalls one that creates what is there already; nor one whose
   * table is missing and that comes again once it is created.
   */
  private async befalling({ name, writes }: Statement, drawn?: Fault): Promise<Fault | undefined> {
    const fault = this.denied && writes ? "not applied" : drawn;
    if (fault !== "not applied" && fault !== "reply lost") return fault;
    const there = await this.witness.dump();
    const isThere = (table: keyof Contents) => there[table] !== null;
    if (name in CREATED) return CREATED[name]!.every(isThere) ? undefined : fault;
    return (NEEDED[name] ?? []).every(isThere) ? fault : undefined;
  }

  private async land(caller: string): Promise<void> {
    const statement = this.late.get(caller)?.shift();
    if (statement !== undefined) await this.run(caller, statement).catch(() => undefined);
  }
}

function prepared(db: D1Database, { sql, args }: Statement): D1PreparedStatement {
  return db.prepare(sql).bind(...args);
}
