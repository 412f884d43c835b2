"""Reports about what databases and drivers do, and say of what they did."""

from startonce.oracle.reports.kinds import Probe, Reported, Scripted, Starts, Trace, report

REPORTS: tuple[Reported, ...] = (
    report(
        "B45",
        "oxidecomputer/omicron#1168 Kinto/kinto#1525",
        "the insert did nothing since the key was there, and the select after it found no row",
        "an older snapshot is no absence: an error, and a fresh try that finds the row",
        "RSV-5",
        Trace("""
            A reserve k2 r0 -> r0 reserved, created
            - a replica stays behind
            A reserve k1 r1 -> r1 reserved, created
            B reserve k1 r2 | insert
            B | read back (stale) -> raised vanished
            - the replica catches up
            B reserve k1 r3 -> r1 reserved, not created
            = k1 r1 reserved, k2 r0 reserved
        """),
    ),
    report(
        "B46",
        "",
        "an insert that ignores conflicts ignored a CHECK and a NOT NULL too, and reported success",
        "what the schema refuses is an error that says so",
        "RSV-7",
        Trace("""
            - the schema refuses k9
            A reserve k9 r1 -> raised value refused
            A read k9 -> None
            = no row
        """),
        Trace("""
            - the schema wants a value that no insert gives
            A reserve k9 r1 -> raised value refused
            A read k9 -> None
            = no row
        """),
    ),
    report(
        "B47",
        "tursodatabase/turso#6481",
        "engines disagree on what an insert that ignores conflicts does with a NOT NULL",
        "the conflict is named: only the key's own uniqueness is passed over",
        "RSV-7",
        Trace("""
            - the schema wants a value that no insert gives
            A reserve k9 r1 -> raised value refused
            A read k9 -> None
            = no row
        """),
    ),
    report(
        "B49",
        "duckdb/duckdb-rs#498",
        "a write that returns rows made the driver count no change at all",
        "rows decide, not counts; a driver without either says nothing: created is False, a claim unknown",
        "RSV-4 CLM-2 CLM-6",
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            B reserve k1 r2 -> r1 reserved, not created
            A claim k1 r1 -> True
            B claim k1 r1 -> False
            A settle r1 -> 1
            = k1 r1 terminal
        """),
        Trace(
            """
            A reserve k1 r1 -> r1 reserved, not created
            A claim k1 r1 -> raised unknown outcome
            = k1 r1 started
            """,
            "a driver that gives no rows, and whose count says nothing",
            driver="silent",
        ),
    ),
    report(
        "B51",
        "oven-sh/bun#43306",
        "the count of changes took in what a trigger wrote: one row, and three changes",
        "rows decide: won, and one row settled; by such a count alone a claim is unknown",
        "CLM-6 SET-3",
        Trace("""
            = no row
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            B claim k1 r1 -> False
            A settle r1 -> 1
            B settle r1 -> 0
            = k1 r1 terminal
        """),
        Trace(
            """
            = no row
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            B claim k1 r1 -> False
            A settle r1 -> 1
            = k1 r1 terminal
            """,
            "the same on a table with such a trigger",
            driver="triggers",
        ),
        Trace(
            """
            = no row
            A reserve k1 r1 -> r1 reserved, not created
            A claim k1 r1 -> raised unknown outcome
            = k1 r1 started
            """,
            "by the count alone",
            driver="triggers, counted",
        ),
    ),
    report(
        "B53",
        "cloudflare/cloudflare-docs#14422",
        "the field that was read counts rows of indexes too",
        "an insert that was lost did not create anything, whatever was written to indexes",
        "RSV-4 CLM-2",
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            B reserve k1 r2 -> r1 reserved, not created
            A claim k1 r1 -> True
            B claim k1 r1 -> False
            = k1 r1 started
        """),
        Trace(
            """
            A reserve k1 r1 -> r1 reserved, not created
            B reserve k1 r2 -> r1 reserved, not created
            A claim k1 r1 -> raised unknown outcome
            = k1 r1 started
            """,
            "a driver that gives three rows written for every insert and update",
            driver="rows written",
        ),
    ),
    report(
        "B54",
        "prisma/orm#23743 drizzle-team/drizzle-orm#2479",
        "a lookup of more ids than one statement binds failed",
        "as many as are bound are found; more are refused before any SQL; a helper sends chunks",
        "RUN-2",
        Probe("RUN-2", "0, 1, 99, 100 ids of as many runs, one id a hundred times, and 101 or 102 ids"),
        Scripted("0 to 250 ids, some of them twice, in chunks of 100 and at once, find the same rows"),
    ),
    report(
        "B56",
        "cloudflare/cloudflare-docs#20922",
        "replicas answered with what had been there a while ago",
        "an old read lets nothing start; the fence and the holder of a lock come from the primary",
        "RSV-5 CLM-2",
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            - a replica stays behind
            A claim k1 r1 -> True
            B read k1 (stale) -> k1 r1 reserved
            B claim k1 r1 -> False
            = k1 r1 started
        """),
        Trace("""
            A reserve k2 r0 -> r0 reserved, created
            - a replica stays behind
            A reserve k1 r1 -> r1 reserved, created
            B read k1 (stale) -> None
            B reserve k1 r2 | insert
            B | read back (stale) -> raised vanished
            = k1 r1 reserved, k2 r0 reserved
        """),
        Starts("""
            A insert r1
            A read back r1
            - a replica stays behind
            A claim r1
            B insert r2
            B read back r2 (stale)
            B claim r1
            B look r1 -> pending r1
            = k1 r1 started
        """),
    ),
    report(
        "B58",
        "",
        "claims failed with “database is locked” at once, whatever the timeout: a read had begun them",
        "no statement stands in a transaction; a database that is busy has changed nothing",
        "RD-3 CLM-1",
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            A read k1 -> k1 r1 reserved
            B reserve k2 r2 -> r2 reserved, created
            A claim k1 r1 -> True
            = k1 r1 started, k2 r2 reserved
        """),
        Trace(
            """
            A reserve k1 r1 -> r1 reserved, created
            - writes are refused
            A claim k1 r1 -> raised not applied
            - writes are allowed
            A claim k1 r1 -> True
            = k1 r1 started
            """,
            "and what was not applied is sent again",
        ),
        Scripted(
            "a claim while another connection holds the file locked is not applied, and wins afterwards"
        ),
    ),
    report(
        "B61",
        "",
        "“no such table” came from the wrong environment: one database had the schema, the other had not",
        "without our tables nothing is there and nothing is made; another missing table is an error",
        "RD-2 CLM-5 DB-1",
        Trace("""
            A read k1 -> None
            A claim k1 r1 -> False
            A release k1 r1 -> False
            A settle r1 -> 0
            A for_runs r1 -> []
            A purge 10 10 -> 0
            A inventory None 10 -> []
            A lock_of r1 -> None
            = no table
        """),
        Trace("""
            - our table is a view of one that is missing
            A read k9 -> raised unreadable
            A for_runs r1 -> raised unreadable
        """),
        Trace(
            """
            A close_fence -> None
            B fence -> True
            = no table, fence closed
            """,
            "what one caller writes the other one reads",
        ),
    ),
    report(
        "B62",
        "sysown/proxysql#1072 transact-rs/sqlx#1366 sidorares/node-mysql2#875",
        "affected rows meant rows that matched, not rows that changed, by a flag of the connection",
        "the condition leaves out the state that is wanted: once, and then none, in both meanings",
        "CLM-2 SET-2",
        *(
            Trace(
                """
                A reserve k1 r1 -> r1 reserved, created
                A claim k1 r1 -> True
                B claim k1 r1 -> False
                A release k1 r1 -> True
                B release k1 r1 -> False
                A settle r1 -> 1
                B settle r1 -> 0
                = k1 r1 terminal
                """,
                title,
                driver=driver,
            )
            for title, driver in (
                ("", ""),
                ("a driver that counts rows that matched", "matched"),
                ("a driver that counts rows that changed", "changed"),
            )
        ),
    ),
    report(
        "B75",
        "PrefectHQ/prefect#8321",
        "the only way to look a key up was to create a run",
        "a read writes nothing, and needs no permission to write",
        "RD-1 RD-3",
        Trace("""
            A read k1 -> None
            = no table
        """),
        Trace("""
            A reserve k1 r1 @1 -> r1 reserved, created
            - writes are refused
            B read k1 -> k1 r1 reserved
            = k1 r1 reserved 1 1
        """),
        Scripted("the bytes of the file, its schema version and its data version are as before"),
    ),
)
