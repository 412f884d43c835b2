// Schemas that are spoiled around a key, for the oracle's probes.

import { LOCKS } from "../schema";

const TABLE = (columns: string) => `CREATE TABLE start_reservations (${columns})`;
const LOOSE = "key TEXT PRIMARY KEY, run_id TEXT, state TEXT, created_at INTEGER, updated_at ANY";

/** Return the statements that spoil an empty database. */
export function spoils(how: string, key: string): string[] {
  const name = `'${key}'`; // an admissible key holds nothing that could end a literal
  const holding = (values: string) => {
    return [TABLE(LOOSE), LOCKS, `INSERT INTO start_reservations VALUES (${name}, ${values})`];
  };
  switch (how) {
    case "refused":
      return [TABLE(`${LOOSE}, CHECK (key <> ${name})`), LOCKS];
    case "wanting":
      return [TABLE(`${LOOSE}, more TEXT NOT NULL`), LOCKS];
    case "state":
      return holding("'r1', 'begun', 1, 1");
    case "run id":
      return holding("NULL, 'reserved', 1, 1");
    case "time":
      return holding("'r1', 'reserved', 1, 'soon'");
    case "elsewhere":
      return ["CREATE VIEW start_reservations AS SELECT * FROM missing_elsewhere", LOCKS];
    default:
      throw new Error(`there is no way to spoil: ${how}`);
  }
}
