"""Reports in which one key was started twice, or its row was written over."""

from startonce.oracle.reports.kinds import Reported, Starts, Trace, report

REPORTS: tuple[Reported, ...] = (
    report(
        "B01",
        "mastodon/mastodon#37879",
        "two requests with one key both found nothing, and both posted",
        "both reserve, both claim, one of them wins",
        "CLM-2 STA-1",
        Trace("""
            A reserve k1 r1 | insert
            B reserve k1 r2 | insert
            A | read back -> r1 reserved, created
            B | read back -> r1 reserved, not created
            A claim k1 r1 -> True
            B claim k1 r1 -> False
            = k1 r1 started
        """),
        Starts("""
            A insert r1
            B insert r2
            A read back r1
            B read back r2
            A claim r1
            B claim r1
            A fence r1
            B look r1 -> pending r1
            A take r1
            A holder r1
            A work r1
            A persist r1
            A settle r1 -> started r1
            = k1 r1 terminal, lock r1 A ended, ran r1
        """),
    ),
    report(
        "B05",
        "",
        "a second start put its own run over the one that was under way",
        "the key keeps its run and its state",
        "RSV-2",
        Trace("""
            A reserve k1 r1 @1 -> r1 reserved, created
            A claim k1 r1 @2 -> True
            B reserve k1 r2 @3 -> r1 started, not created
            = k1 r1 started 1 2
        """),
    ),
    report(
        "B07",
        "dbos-inc/dbos-transact-py#544",
        "duplicates were looked for among finished runs only: every call at once was executed",
        "one claim wins, and none after it while the row is started",
        "CLM-2",
        Trace("""
            A reserve k1 r1 | insert
            B reserve k1 r2 | insert
            C reserve k1 r3 | insert
            C | read back -> r1 reserved, not created
            C claim k1 r1 -> True
            A | read back -> r1 started, created
            B | read back -> r1 started, not created
            A claim k1 r1 -> False
            B claim k1 r1 -> False
            C claim k1 r1 -> False
            D reserve k1 r4 -> r1 started, not created
            D claim k1 r1 -> False
            = k1 r1 started
        """),
    ),
    report(
        "B13",
        "Azure/azure-functions-durable-extension#367",
        "a start under a used id silently replaced the instance that ran",
        "the row stays started; nobody can claim it again",
        "RSV-2",
        Trace("""
            A reserve k1 r1 @1 -> r1 reserved, created
            A claim k1 r1 @2 -> True
            B reserve k1 r1 @3 -> r1 started, not created
            B reserve k1 r2 @4 -> r1 started, not created
            B claim k1 r1 @5 -> False
            = k1 r1 started 1 2
        """),
    ),
    report(
        "B14",
        "Azure/azure-functions-durable-extension#612",
        "a status query came first, then the start: singletons ran several times",
        "a read permits nothing; of two claims one wins",
        "CLM-1 CLM-2",
        Trace("""
            A read k1 -> None
            B read k1 -> None
            A reserve k1 r1 -> r1 reserved, created
            B reserve k1 r2 -> r1 reserved, not created
            A claim k1 r1 | before it writes
            B claim k1 r1 -> True
            A goes on -> False
            = k1 r1 started
        """),
    ),
    report(
        "B16",
        "dagster-io/dagster#9360",
        "a second thread found the run, took it for its own to recover, and submitted it again",
        "found or made, only who wins the claim may start, and only who holds the lock executes",
        "RSV-4 STA-1 LCK-2 LCK-4",
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            B reserve k1 r2 -> r1 reserved, not created
            B claim k1 r1 -> True
            A claim k1 r1 -> False
            B take_lock k1 r1 h2 -> mine
            A take_lock k1 r1 h1 -> held by 'h2'
            = k1 r1 started, lock r1 h2
        """),
        Starts(
            """
            A insert r1
            A read back r1
            B insert r2
            B read back r2
            B claim r1
            A claim r1
            A look r1 -> pending r1
            B fence r1
            B take r1
            B holder r1
            B work r1
            B persist r1
            B settle r1 -> started r1
            = k1 r1 terminal, lock r1 B ended, ran r1
            """,
            "who found the row is faster than who made it",
        ),
    ),
    report(
        "B17",
        "apache/airflow#29582",
        "ids made from a clock second were given out twice, and a lookup by one found the other",
        "every row that names a run is found and settled; each insert has an id of its own",
        "RUN-1 SET-3 DUT-1",
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            B reserve k2 r1 -> r1 reserved, created
            A for_runs r1 -> [k1 r1 reserved, k2 r1 reserved]
            A settle r1 -> 2
            B settle r1 -> 0
            = k1 r1 terminal, k2 r1 terminal
        """),
        Starts(
            """
            A insert r1
            B insert r2
            A read back r1
            B read back r2
            A claim r1
            B claim r1
            B look r1 -> pending r1
            = k1 r1 started
            """,
            "two starts of a key send two ids",
        ),
    ),
    report(
        "B19",
        "PrefectHQ/prefect#6571",
        "a create that timed out was sent again without a key: six runs",
        "the retry is told the run that is stored, which can be claimed once",
        "RSV-3 RSV-4 STA-2",
        Trace("""
            A reserve k1 r1 | insert (reply lost)
            A crashes
            A reserve k1 r2 -> r1 reserved, not created
            A claim k1 r1 -> True
            B reserve k1 r3 -> r1 started, not created
            B claim k1 r1 -> False
            = k1 r1 started
        """),
        Starts("""
            A insert r1 (reply lost)
            A read back r1
            A claim r1
            B insert r2
            B read back r2
            B look r1 -> pending r1
            A fence r1
            = k1 r1 started
        """),
    ),
    report(
        "B44",
        "",
        "retries minted a new key each: cards were charged two and three times",
        "two keys are two runs, and both may start: only a key that is sent again says that it is a retry",
        "RSV-1 CLM-1",
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            A reserve k2 r2 -> r2 reserved, created
            A claim k2 r2 -> True
            = k1 r1 started, k2 r2 started
        """),
        documented="README.md",
    ),
    report(
        "B59",
        "codeigniter4/queue#86",
        "two workers selected one job, then updated it by its key",
        "the condition stands in the write: one claim wins, and a free holds the lock before it deletes",
        "CLM-1 CLM-2 FRE-1",
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 | before it writes
            B claim k1 r1 | before it writes
            B goes on -> True
            A goes on -> False
            = k1 r1 started
        """),
        Trace(
            """
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            B free k1 | before it writes
            A take_lock k1 r1 h1 -> mine
            B goes on -> refused: an execution holds its lock
            = k1 r1 started, lock r1 h1
            """,
            "the same in a free: it looks, and the lock is taken before it writes",
        ),
    ),
)
