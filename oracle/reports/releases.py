"""Reports about what was given back, or ended, by who had no right to it any more."""

from startonce.oracle.reports.kinds import Hazard, Reported, Starts, Trace, report

REPORTS: tuple[Reported, ...] = (
    report(
        "B32",
        "rails/solid_queue#761",
        "a holder whose lock had gone released it once more: eleven ran at once",
        "a release goes by key and run; one claim is released once, or harm comes of it",
        "REL-4 REL-5",
        Hazard("H1"),
        Trace(
            """
            A reserve k1 r1 @1 -> r1 reserved, created
            A claim k1 r1 @2 -> True
            B settle r1 @3 -> 1
            B purge 4 10 -> 1
            B reserve k1 r2 @5 -> r2 reserved, created
            B claim k1 r2 @6 -> True
            A release k1 r1 @7 -> False
            = k1 r2 started 5 6
            """,
            "the key is another run's by now",
        ),
    ),
    report(
        "B34",
        "",
        "the end of an old attempt was written to the one that had replaced it: it went by run id alone",
        "a result goes by its holder; a settle is sent by who saw the run end, or harm comes of it",
        "LCK-1 DUT-3",
        Hazard("H3"),
        Trace(
            """
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            A release k1 r1 -> True
            B claim k1 r1 -> True
            B take_lock k1 r1 h2 -> mine
            A persist r1 h1 late -> False
            B persist r1 h2 done -> True
            = k1 r1 started, lock r1 h2 ended with done
            """,
            "with a result",
        ),
    ),
    report(
        "B38",
        "",
        "a rollout left keys locked for two hours, and counted what it had refused as failures",
        "a start that the fence refused gives its claim back: the next one gets the same run",
        "REL-1 STA-5",
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            C close_fence -> None
            A fence -> True
            A release k1 r1 -> True
            C open_fence -> None
            B reserve k1 r2 -> r1 reserved, not created
            B claim k1 r1 -> True
            = k1 r1 started, fence open
        """),
        Starts("""
            - closes the fence
            A insert r1
            A read back r1
            A claim r1
            A fence r1
            A release r1 -> fenced r1
            - opens the fence
            B insert r2
            B read back r2
            B claim r1
            B fence r1
            B take r1
            B holder r1
            B work r1
            B persist r1
            B settle r1 -> started r1
            = k1 r1 terminal, lock r1 B ended, ran r1
        """),
    ),
    report(
        "B39",
        "lightdash/lightdash#29390",
        "a shutdown released jobs whose handlers still ran",
        "nothing but a refusal by the fence releases: not a failure, not a fence that cannot be read",
        "REL-3 STA-4 FRE-3",
        Starts(
            """
            A insert r1
            A read back r1
            A claim r1
            A fence r1
            A take r1
            A holder r1
            A work r1 (fails, gives the claim back)
            A release r1 -> fenced r1
            = k1 r1 reserved, lock r1 A, ran r1
            """,
            "who drops the duty offers what was executed to the next caller",
            without=("REL-3",),
            breaks="executed is never reserved",
        ),
        Starts("""
            A insert r1
            A read back r1
            A claim r1
            A fence r1 (cannot be read) -> unreadable r1
            = k1 r1 started
        """),
        Trace(
            """
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            A take_lock k1 r1 h1 -> mine
            B free k1 -> refused: an execution holds its lock
            = k1 r1 started, lock r1 h1
            """,
            "nor does a free",
        ),
    ),
)
