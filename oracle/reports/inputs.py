"""Reports about keys and run ids that were missing, altered, or broke something on their way."""

from startonce.oracle.reports.kinds import Probe, Reported, Trace, report

REPORTS: tuple[Reported, ...] = (
    report(
        "B10",
        "dbos-inc/dbos-transact-py#759",
        "an empty id passed the guard, was taken for none later: a workflow ran 96 times a day for a month",
        "empty is invalid, as key and as run id, before any SQL",
        "IN-1",
        Trace("""
            A reserve "" r1 -> raised invalid
            A reserve k1 "" -> raised invalid
            A claim "" r1 -> raised invalid
            A read "" -> raised invalid
            A settle "" -> raised invalid
            = no table
        """),
    ),
    report(
        "B63",
        "unkeyed/unkey#4091",
        "ids that differ in case alone met, and one was written over the other",
        "two keys, two rows",
        "IN-2",
        Trace("""
            A reserve K r1 -> r1 reserved, created
            A reserve k r2 -> r2 reserved, created
            A claim k r2 -> True
            = K r1 reserved, k r2 started
        """),
    ),
    report(
        "B65",
        "triggerdotdev/trigger.dev#4527",
        "a NUL in a key was an internal error, or made a row that nobody could reach",
        "invalid before any SQL, and nothing stays open",
        "IN-1",
        Trace(r"""
            A reserve "a\u0000b" r1 -> raised invalid
            A reserve k1 "r\u00001" -> raised invalid
            B reserve k1 r2 -> r2 reserved, created
            = k1 r2 reserved
        """),
    ),
    report(
        "B66",
        "triggerdotdev/trigger.dev#3560 inngest/inngest#3795",
        "a long key was an internal error, and only where it did not compress",
        "200 characters are a key, 201 are invalid, and so are two million",
        "IN-1",
        Trace("""
            A reserve x*200 r1 -> r1 reserved, created
            A reserve x*201 r2 -> raised invalid
            A reserve x*2000000 r3 -> raised invalid
            A claim x*200 r1 -> True
            = x*200 r1 started
        """),
    ),
    report(
        "B68",
        "wandb/weave#6731 oven-sh/bun#32841",
        "half a surrogate pair was an error in one language and another character in the next",
        "invalid: two of them must not become one key on their way",
        "IN-1",
        Trace(r"""
            A reserve "\ud800" r1 -> raised invalid
            A reserve "\udfff" r2 -> raised invalid
            B reserve k1 r3 -> r3 reserved, created
            = k1 r3 reserved
        """),
        Probe(
            "IN-1", "every operation with every bad value, then a write of the same and of another caller"
        ),
    ),
)
