"""Reports about crashes, timeouts and lost replies."""

from startonce.oracle.reports.kinds import Hazard, Reported, Starts, Trace, report

REPORTS: tuple[Reported, ...] = (
    report(
        "B04",
        "",
        "the loser was told that the service is unavailable, although the winner was known",
        "who loses a claim reads again, and answers by what the winner did",
        "CLM-3 STA-2",
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            B claim k1 r1 -> True
            A claim k1 r1 -> False
            A read k1 -> k1 r1 started
            = k1 r1 started
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
            "the winner is under way",
        ),
        Starts(
            """
            A insert r1
            B insert r2
            A read back r1
            B read back r2
            A claim r1
            B claim r1
            A fence r1
            A take r1
            A holder r1
            A work r1
            A persist r1
            A settle r1 -> started r1
            B look r1 -> replayed r1
            = k1 r1 terminal, lock r1 A ended, ran r1
            """,
            "the winner is done",
        ),
    ),
    report(
        "B21",
        "oban-bg/oban#1087",
        "a caller was told that the job exists; the one it had lost to rolled back, and there was none",
        "nothing read back is an error to try again after, and a read that fails says nothing",
        "RSV-5 RD-3 STA-6",
        Trace("""
            A reserve k1 r1 @1 -> r1 reserved, created
            A settle r1 @2 -> 1
            B reserve k1 r2 @3 | insert
            C purge 4 10 -> 1
            B | read back -> raised vanished
            B read k1 -> None
            B reserve k1 r3 @5 -> r3 reserved, created
            B read k1 (not applied) -> raised unreadable
            = k1 r3 reserved
        """),
        Starts(
            """
            A insert r1
            A read back r1 (crashes before it)
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
            """,
            "whom it lost to is gone: the loser starts the run",
        ),
    ),
    report(
        "B25",
        "aws-powertools/powertools-lambda-python#1038",
        "after a timeout a record stayed in progress for ever: whoever would have ended it was gone",
        "it stays started, is listed, and is ended by a settle or a free: nobody guesses who is alive",
        "STA-7 STA-8 INV-2",
        Trace("""
            A reserve k1 r1 @1 -> r1 reserved, created
            A claim k1 r1 @2 -> True
            B read k1 -> k1 r1 started
            B claim k1 r1 @999999999 -> False
            B inventory None 10 -> [[k1, r1, started, None, False, never reached the lock]]
            B settle r1 @1000000000 -> 1
            = k1 r1 terminal 1 1000000000
        """),
        Hazard("H6"),
        Starts("""
            A insert r1
            A read back r1
            A claim r1
            A fence r1 (crashes before it)
            B insert r2
            B read back r2
            B look r1 -> pending r1
            = k1 r1 started
        """),
    ),
    report(
        "B27",
        "aws-powertools/powertools-lambda-python#8049",
        "a timeout alone let the same withdrawal be made again",
        "however late it is, nothing becomes possible by that",
        "STA-8 STA-7",
        Trace("""
            A reserve k1 r1 @1 -> r1 reserved, created
            A claim k1 r1 @2 -> True
            B claim k1 r1 @30003 -> False
            B reserve k1 r2 @86400000 -> r1 started, not created
            B claim k1 r1 @99999999999 -> False
            = k1 r1 started 1 2
        """),
        Starts(
            """
            A insert r1
            A read back r1
            A claim r1
            B insert r2
            B read back r2
            B look r1 -> pending r1
            A fence r1
            A take r1
            A holder r1
            A work r1
            A persist r1
            A settle r1 -> started r1
            = k1 r1 terminal, lock r1 A ended, ran r1
            """,
            "A is slow, and not dead",
        ),
    ),
    report(
        "B30",
        "zoolutions/sidekiq-unique-jobs#379",
        "a kill left the lock behind, and the job never ran again",
        "a reserve that was cut off is claimed by the next caller, a free that was is completed",
        "STA-6 FRE-4",
        Trace("""
            A reserve k1 r1 | insert
            A crashes
            B reserve k1 r2 -> r1 reserved, not created
            B claim k1 r1 -> True
            = k1 r1 started
        """),
        Trace(
            """
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            B free k1 | insert free
            B crashes
            C free k1 -> freed
            C reserve k1 r2 -> r2 reserved, created
            = k1 r2 reserved, lock r1 free
            """,
            "a free is killed, and leaves its own lock",
        ),
        Starts("""
            A insert r1
            A read back r1
            A claim r1 (crashes before it)
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
        "B36",
        "bytedance/deer-flow#4431",
        "an error while a lease was renewed was passed over, and the run went on",
        "a claim without an answer is neither won nor lost; a lock without one is read back",
        "CLM-6 LCK-5",
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 (reply lost) -> raised unknown outcome
            B claim k1 r1 -> False
            = k1 r1 started
        """),
        Trace("""
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 -> True
            A take_lock k1 r1 h1 | insert lock (reply lost)
            A | read holder -> mine
            = k1 r1 started, lock r1 h1
        """),
        Starts("""
            A insert r1
            A read back r1
            A claim r1 (reply lost) -> unknown r1
            B insert r2
            B read back r2
            B look r1 -> pending r1
            = k1 r1 started
        """),
    ),
    report(
        "B55",
        "cloudflare/cloudflare-docs#18485",
        "the database fails a few times a day as a matter of course, or hangs: was it written?",
        "certainly not applied may be sent again; unknown is resolved by a read, or said",
        "CLM-6 LCK-5 RSV-4",
        Trace(
            """
            A reserve k1 r1 | insert (not applied) -> raised not applied
            A reserve k1 r1 | insert (reply lost)
            A | read back -> r1 reserved, not created
            A claim k1 r1 (not applied) -> raised not applied
            A claim k1 r1 (reply lost) -> raised unknown outcome
            A take_lock k1 r1 h1 | insert lock (not applied) -> raised not applied
            A take_lock k1 r1 h1 | insert lock (reply lost)
            A | read holder -> mine
            A persist r1 h1 done (not applied) -> raised not applied
            A persist r1 h1 done (reply lost) -> raised unknown outcome
            A persist r1 h1 done -> False
            A settle r1 (not applied) -> raised not applied
            A settle r1 (reply lost) -> raised unknown outcome
            A settle r1 -> 0
            A read k1 (not applied) -> raised unreadable
            = k1 r1 terminal, lock r1 h1 ended with done
            """,
            "every write of a start, failing before it is applied and after",
        ),
        Trace(
            """
            A reserve k1 r1 -> r1 reserved, created
            A claim k1 r1 (late) -> raised unknown outcome
            B claim k1 r1 -> True
            B release k1 r1 (not applied) -> raised not applied
            B release k1 r1 -> True
            A lands
            = k1 r1 started
            """,
            "a claim that is applied when nobody waits for it any more",
        ),
        Starts("""
            A insert r1 (reply lost)
            A read back r1
            A claim r1 (reply lost) -> unknown r1
            = k1 r1 started
        """),
    ),
)
