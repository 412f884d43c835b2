"""Holes in the protocol as it was first described, each closed since, or shown as a hazard."""

from startonce.oracle.reports.kinds import Hazard, Reported, Scripted, Starts, Trace, report

REPORTS: tuple[Reported, ...] = (
    report(
        "X01",
        "",
        "a release sent again after a lost reply undoes another caller's claim",
        "the statements cannot tell: a caller releases once, or this comes about",
        "REL-4",
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            A release k1 r1 (reply lost) -> raised unknown outcome
            B claim k1 r1 -> True
            A release k1 r1 -> True
            C claim k1 r1 -> True
            = k1 r1 started
        """),
        Hazard("H1"),
    ),
    report(
        "X02",
        "",
        "the insert stops at an old row, a purge takes it away, and the read-back finds nothing",
        "a retryable error of its own: neither absent nor created",
        "RSV-5",
        Trace("""
            A reserve k1 r1 @1 -> r1 reserved, created
            A settle r1 @2 -> 1
            B reserve k1 r2 @3 | insert
            C purge 4 10 -> 1
            B | read back -> raised vanished
            = no row
        """),
        Trace(
            """
            A reserve k1 r1 @1 | insert
            B claim k1 r1 @2 -> True
            B settle r1 @3 -> 1
            C purge 4 10 -> 1
            A | read back -> raised vanished
            = no row
            """,
            "it was my own row, and its run is over: a retry takes a fresh id",
        ),
        Hazard("H4"),
    ),
    report(
        "X03",
        "",
        "a settle ends a row that nobody had started",
        "allowed: the run was cancelled before it began, and cannot be claimed any more",
        "SET-1",
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            B settle r1 -> 1
            A claim k1 r1 -> False
            = k1 r1 terminal
        """),
    ),
    report(
        "X04",
        "",
        "a settle comes before the reserve and ends nothing; the row that follows can be claimed",
        "the statements cannot tell: a run id is never used again, or this comes about",
        "DUT-1",
        Trace("""
            B settle r1 -> 0
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            = k1 r1 started
        """),
        Hazard("H5"),
    ),
    report(
        "X05",
        "",
        "two keys name one run",
        "both rows are found, and both are settled at once",
        "SET-3 RUN-1",
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            B reserve k2 r1 -> r1 reserved, created
            B for_runs r1 r1 -> [k1 r1 started, k2 r1 reserved]
            B settle r1 -> 2
            B settle r1 -> 0
            = k1 r1 terminal, k2 r1 terminal
        """),
    ),
    report(
        "X06",
        "",
        "a late settle for an attempt that was refused ends the run that another caller has claimed since",
        "the statements cannot tell: only who saw a run end settles it, or this comes about",
        "DUT-3",
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            A release k1 r1 -> True
            B claim k1 r1 -> True
            A settle r1 -> 1
            = k1 r1 terminal
        """),
        Hazard("H3"),
    ),
    report(
        "X07",
        "",
        "who created a row may find it claimed, or claimed and given back, when it reads it back",
        "created says who made the row, and never that it may be started",
        "RSV-4 STA-1",
        Trace("""
            A reserve k1 r1 | insert
            B claim k1 r1 -> True
            A | read back -> r1 started, created
            A claim k1 r1 -> False
            = k1 r1 started
        """),
        Trace("""
            A reserve k1 r1 | insert
            B claim k1 r1 -> True
            B release k1 r1 -> True
            A | read back -> r1 reserved, created
            B claim k1 r1 -> True
            A claim k1 r1 -> False
            = k1 r1 started
        """),
        Starts("""
            A insert r1
            B insert r2
            A read back r1
            B read back r2
            B claim r1
            A claim r1
            A look r1 -> pending r1
            = k1 r1 started
        """),
    ),
    report(
        "X08",
        "",
        "a value that a CHECK refuses vanishes in the insert, and the read-back finds nothing",
        "an error that names what was refused, and no row",
        "RSV-7",
        Trace("""
            - the schema refuses k9
            A reserve k9 r1 -> raised value refused
            A read k9 -> None
            A reserve k1 r1 -> r1 reserved, created
            = k1 r1 reserved
        """),
    ),
    report(
        "X09",
        "",
        "a primary key of text takes NULL, as often as one likes",
        "the schema says NOT NULL",
        "RSV-6",
        Scripted("our table, as `reserve` makes it, refuses a row without a key"),
    ),
    report(
        "X10",
        "",
        "any message with “no such table” in it was read as: no reservation",
        "only our own missing table is; another one is an error",
        "RD-2",
        Trace("""
            - our table is a view of one that is missing
            A read k9 -> raised unreadable
            A for_runs r1 -> raised unreadable
        """),
    ),
    report(
        "X12",
        "",
        "a clock stands still or runs backwards: claim and release leave the same time",
        "no answer goes by the clock, and a purge takes what is older than its horizon, not as old",
        "STA-8 PRG-1",
        Trace("""
            A reserve k1 r1 @7 -> r1 reserved, created
            A claim k1 r1 @7 -> True
            A release k1 r1 @7 -> True
            B claim k1 r1 @3 -> True
            B settle r1 @3 -> 1
            B settle r1 @1 -> 0
            C purge 3 10 -> 0
            = k1 r1 terminal 7 3
            C purge 4 10 -> 1
            = no row
        """),
    ),
    report(
        "X13",
        "",
        "one claim is dispatched twice: the first is refused and gives it back, the second one executes",
        "a claim is dispatched once, or this comes about; the durable lock still lets one execute",
        "DUT-2 STA-9",
        Hazard("H2"),
        Starts(
            """
            A insert r1
            A read back r1
            A claim r1
            B fence r1 (is dispatched too)
            A fence r1
            B fence r1
            A take r1
            A holder r1
            B take r1
            B holder r1
            B look r1 -> pending r1
            A work r1
            A persist r1
            A settle r1 -> started r1
            = k1 r1 terminal, lock r1 A ended, ran r1
            """,
            "both deliveries reach the lock",
            without=("DUT-2",),
            twice=True,
        ),
    ),
)
