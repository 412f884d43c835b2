"""Puts and shows what is in the database, by SQL of its own: the other witness beside the store.

A put and a dump are several statements in one message: what costs time is the round trip.
"""

from typing import Any

import psycopg
import statements as sql

CREATES = {
    "reservation": sql.CREATE_RESERVATIONS,
    "run_lock": sql.CREATE_LOCKS,
    "start_fence": sql.CREATE_FENCE,
}
SELECTS = {
    "reservation": "SELECT key, run_id, state, created_at, updated_at FROM reservation",
    "run_lock": "SELECT run_id, key, holder, ended, result, created_at FROM run_lock",
    "start_fence": "SELECT true, closed FROM start_fence",
}
WHICH = """
SELECT name FROM unnest(ARRAY['reservation', 'run_lock', 'start_fence']) name
WHERE to_regclass(name) IS NOT NULL"""

LOOSE = """
CREATE TABLE reservation (
    key text COLLATE "C" UNIQUE, run_id text COLLATE "C", state text, created_at bigint, updated_at bigint
)"""
SPOILED = {
    "refused": "ALTER TABLE reservation ADD CHECK (key <> %s)",
    "wanting": "ALTER TABLE reservation ADD more text NOT NULL",
    "state": "INSERT INTO reservation VALUES (%s, 'r1', 'begun', 1, 1)",
    "run id": "INSERT INTO reservation VALUES (%s, NULL, 'reserved', 1, 1)",
    "time": """
        INSERT INTO reservation VALUES (%s, 'r1', 'reserved', 1, 1);
        ALTER TABLE reservation ALTER updated_at TYPE text USING 'soon'""",
    "elsewhere": """
        CREATE FUNCTION elsewhere() RETURNS SETOF reservation LANGUAGE plpgsql
        AS 'BEGIN RETURN QUERY SELECT * FROM missing_elsewhere; END';
        ALTER TABLE reservation RENAME TO elsewhere;
        CREATE VIEW reservation AS SELECT * FROM elsewhere()""",
}

CREATED: dict[str, tuple[str, ...]] = {
    "create reservations": ("rows",),
    "create locks": ("locks",),
    "create fence": ("fence",),
    "create index": (),
}
NEEDED = {"insert": ("rows", "locks"), "close fence": ("fence",), "open fence": ("fence",)}

QUIET = "-c client_min_messages=error"


class Witness:
    """A connection of its own to the database. Contents are as on the wire."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(
            url, autocommit=True, cursor_factory=psycopg.ClientCursor, options=QUIET
        )
        major, minor = divmod(self._connection.info.server_version, 10000)
        self.version = f"PostgreSQL {major}.{minor}"
        self._there: list[str] = []
        self._view = False

    def put(self, contents: dict[str, Any]) -> None:
        """Make the database be this; a table that is null or not named must not exist afterwards."""
        fence = contents.get("fence")
        tables = {
            "reservation": contents.get("rows"),
            "run_lock": contents.get("locks"),
            "start_fence": None if fence is None else [[True, fence]],
        }
        if self._view:
            self._run("DROP TABLE elsewhere CASCADE")
            self._view = False
        script: list[str] = []
        values: list[Any] = []
        for name, rows in tables.items():
            if rows is None:
                script.append(f"DROP TABLE IF EXISTS {name}")
                continue
            script += [CREATES[name], f"DELETE FROM {name}"]
            for row in rows:
                script.append(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(row))})")
                values += row
        self._run("; ".join(script), values)

    def dump(self) -> dict[str, Any]:
        """Show everything."""
        while True:
            try:
                cursor = self._run("; ".join([WHICH, *(SELECTS[name] for name in self._there)]))
                there = [name for (name,) in cursor]
            except psycopg.errors.UndefinedTable:
                there = []
            if there == self._there:
                break
            self._there = there
        found: dict[str, Any] = {}
        for name in there:
            cursor.nextset()
            found[name] = cursor.fetchall()
        fence = found.get("start_fence")
        return {
            "rows": found.get("reservation"),
            "locks": found.get("run_lock"),
            "fence": fence if fence is None else (True, True) in fence,
        }

    def spoil(self, how: str, key: str) -> None:
        """Empty the database and spoil the schema around a key."""
        self.put({})
        script = "; ".join([LOOSE, SPOILED[how], sql.CREATE_LOCKS])
        self._view = how == "elsewhere"
        self._run(script, [key] * script.count("%s"))

    def spares(self, label: str) -> bool:
        """Say whether a statement is one that no failure befalls as the database is.

        It creates what is there already; or its table is missing: it learns that, and comes again.
        """
        there = self.dump()
        if label in CREATED:
            return all(there[table] is not None for table in CREATED[label])
        return any(there[table] is None for table in NEEDED.get(label, ()))

    def _run(self, script: str, values: list[Any] | None = None) -> psycopg.Cursor[Any]:
        return self._connection.execute(script, values or None)
