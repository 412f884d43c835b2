"""Reports about runs that were over: started again, written over, or forgotten."""

from startonce.oracle.reports.kinds import Reported, Starts, Trace, report

REPORTS: tuple[Reported, ...] = (
    report(
        "B11",
        "temporalio/temporal#11968",
        "a retry after the run had closed started a second one: only open runs were looked at",
        "the key is spent, and its run keeps its lock for good",
        "RSV-2 SET-5 LCK-1",
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            A settle r1 -> 1
            B reserve k1 r2 -> r1 terminal, not created
            B claim k1 r1 -> False
            B claim k1 r2 -> False
            = k1 r1 terminal
        """),
        Trace(
            """
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            A take_lock k1 r1 h1 -> mine
            A persist r1 h1 done -> True
            B take_lock k1 r1 h2 -> held by 'h1'
            = k1 r1 started, lock r1 h1 ended with done
            """,
            "an execution that has ended, and is not settled yet",
        ),
    ),
    report(
        "B23",
        "riverqueue/river#619 oban-bg/oban#1416",
        "a key was unique among some states only: the way back met a row that had come in meanwhile",
        "a key is unique in every state; claim and release in any order meet no constraint",
        "RSV-2 REL-1 SET-5",
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            B reserve k1 r2 -> r1 started, not created
            A release k1 r1 -> True
            B claim k1 r1 -> True
            B settle r1 -> 1
            C reserve k1 r3 -> r1 terminal, not created
            C claim k1 r1 -> False
            B release k1 r1 -> False
            = k1 r1 terminal
        """),
    ),
    report(
        "B29",
        "aws-powertools/powertools-lambda-typescript#5714",
        "a recovery decided on what it had read, then wrote over a result that had come in meanwhile",
        "whoever acts on an old read changes nothing",
        "CLM-3 CLM-4 RSV-2 LCK-1 FRE-1",
        Trace("""
            A reserve k1 r1 @1 -> r1 reserved, created
            A read k1 -> k1 r1 reserved
            B claim k1 r1 @5 -> True
            B settle r1 @6 -> 1
            A claim k1 r1 @7 -> False
            A release k1 r1 @8 -> False
            A reserve k1 r2 @9 -> r1 terminal, not created
            = k1 r1 terminal 1 6
        """),
        Trace(
            """
            A reserve k1 r1 @1 -> r1 reserved, created
            B settle r1 @2 -> 1
            B purge 3 10 -> 1
            C reserve k1 r2 @4 -> r2 reserved, created
            A claim k1 r1 @5 -> False
            = k1 r2 reserved 4 4
            """,
            "the row is rewritten for another run",
        ),
        Trace(
            """
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            A take_lock k1 r1 h1 -> mine
            A persist r1 h1 first -> True
            A persist r1 h1 second -> False
            = k1 r1 started, lock r1 h1 ended with first
            """,
            "the result is there",
        ),
        Trace(
            """
            A reserve k1 r1 @1 -> r1 reserved, created
            A claim k1 r1 @2 -> True
            B free k1 | read holder
            A settle r1 @4 -> 1
            A purge 5 10 -> 1
            C reserve k1 r2 @6 -> r2 reserved, created
            B goes on -> freed
            = k1 r2 reserved 6 6, lock r1 free
            """,
            "a free that is three statements old deletes no other run's row",
        ),
    ),
    report(
        "B40",
        "",
        "what had been cancelled went on to be running, and completed",
        "terminal is never left, and a run that executes is not cancelled",
        "SET-5 REL-5 LCK-1 DUT-3",
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            B settle r1 -> 1
            A claim k1 r1 -> False
            A release k1 r1 -> False
            A take_lock k1 r1 h1 -> not held
            = k1 r1 terminal
        """),
        Trace(
            """
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            A take_lock k1 r1 h1 -> mine
            B cancel r1 -> refused: an execution holds its lock
            A persist r1 h1 first -> True
            A persist r1 h1 second -> False
            B cancel r1 -> refused: it has ended
            = k1 r1 started, lock r1 h1 ended with first
            """,
            "it executes, then it has ended",
        ),
    ),
    report(
        "B42",
        "hatchet-dev/hatchet#2950",
        "asks for a key to be free again once its run is over, with time as a safety net only",
        "not here, by design: a spent key stays spent until it is purged",
        "RSV-2 PRG-2 STA-8",
        Trace("""
            A reserve k1 r1 @1 -> r1 reserved, created
            A settle r1 @2 -> 1
            A reserve k1 r2 @999999999 -> r1 terminal, not created
            B purge 3 10 -> 1
            A reserve k1 r3 @999999999 -> r3 reserved, created
            = k1 r3 reserved
        """),
        documented="README.md",
    ),
    report(
        "B72",
        "alphagov/pay-connector#4632",
        "a key outlived the record that it named, and looking it up crashed",
        "a spent key without a result says so; a purge never takes what is not over",
        "PRG-1 RSV-2 STA-2",
        Trace("""
            A reserve k1 r1 @1 -> r1 reserved, created
            B purge 1000 10 -> 0
            A claim k1 r1 @2 -> True
            B purge 1000 10 -> 0
            A settle r1 @3 -> 1
            B lock_of r1 -> None
            B reserve k1 r2 @4 -> r1 terminal, not created
            = k1 r1 terminal 1 3
        """),
        Starts(
            """
            A insert r1
            A read back r1
            C begins to cancel r1
            C cancel: take r1
            C cancel: holder r1
            C cancel: settle r1 -> cancelled r1
            A claim r1
            A look r1 -> settled r1
            B insert r2
            B read back r2
            B look r1 -> settled r1
            = k1 r1 terminal, lock r1 cancel
            """,
            "C is an operator: the run is over, and there is no result",
        ),
    ),
    report(
        "B74",
        "PostHog/posthog#46932",
        "a key was remembered for ever, and what came under it again was dropped without a word",
        "the caller is told the state of the row, and the result that there was",
        "RSV-3 STA-2",
        Trace("""
            A reserve k1 r1 @1 -> r1 reserved, created
            A claim k1 r1 @2 -> True
            A settle r1 @3 -> 1
            B reserve k1 r2 @4 -> r1 terminal, not created
            B claim k1 r1 @5 -> False
            = k1 r1 terminal 1 3
        """),
        Starts("""
            A insert r1
            A read back r1
            A claim r1
            A fence r1
            A take r1
            A holder r1
            A work r1
            A persist r1
            A settle r1 -> started r1
            B insert r2
            B read back r2
            B look r1 -> replayed r1
            = k1 r1 terminal, lock r1 A ended, ran r1
        """),
    ),
)
