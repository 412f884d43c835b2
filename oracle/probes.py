"""What no walk over tables reaches: bad input, spoiled schemas, the parameter limit, one handle."""

from collections.abc import Callable, Iterator
from typing import Any

from startonce.model.interleaving import Action
from startonce.model.operations import INVALID, REFUSED, TOO_MANY, UNREADABLE, Call, Reserved
from startonce.model.reservation import EMPTY, NOTHING, Database, Reservation, State
from startonce.oracle.ledger import Divergence, Ledger
from startonce.oracle.subject import PROBES, Subject

NOW = 5

BAD_VALUES: tuple[Any, ...] = (
    "", " ", "a b", " a", "a ", "a\n", "a\0b", "é", "K\u0301", "\ud800", "１", "a/b", "a'b",
    "x" * 201, "x" * 2_000_000, 7, 0, None, True, b"a", 1.5, ("a",),
)  # fmt: skip
"""Values that are no key and no run id."""

DISTINCT = ("k", "K", "7", "007", "07", "1e3", "1000", "1.10", "1.1", "a.b", "a_b", "a~b", "a-b", "x" * 200)
"""Keys that differ in a byte, and that something between caller and table may take for the same."""

Verdict = tuple[str, bool, Action, Any, Any]
"""Clause, whether it was kept, the operation, what was expected, what was observed."""


def probe(subject: Subject, ledger: Ledger) -> None:
    """Run every probe that the subject is able to take."""
    probes: list[Callable[[Subject], Iterator[Verdict]]] = [_bad_input, _distinct, _limit, _one_handle]
    if PROBES in subject.capabilities:
        probes.append(_spoiled)
    else:
        ledger.not_checked(["RSV-7"], "the subject cannot have its schema spoiled")
    if subject.parameter_limit is None:
        ledger.not_checked(["RUN-2"], "the subject names no parameter limit")
    for one in probes:
        start = EMPTY
        for clause, kept, action, expected, observed in one(subject):
            if kept:
                ledger.count([clause], "probes")
            else:
                after = subject.dump() if one is not _spoiled else start
                ledger.violated(
                    Divergence((clause,), "probes", start, (action,), (expected, start), (observed, after))
                )
        if one is _spoiled:
            subject.unspoil()


def ask(subject: Subject, operation: str, *args: Any) -> Any:
    """Run a whole operation on a subject and return its answer."""
    held = subject.begin(0, Call(operation, args, NOW))
    outcome = held.step()
    while outcome is None:
        outcome = held.step()
    return outcome.answer


def _verdict(clause: str, subject: Subject, expected: Any, operation: str, *args: Any) -> Verdict:
    observed = ask(subject, operation, *args)
    kept = bool(observed == expected)
    return clause, kept, Action("run", "A", operation, args, NOW), expected, observed


def _bad_input(subject: Subject) -> Iterator[Verdict]:
    row = Reservation("a", "r1", State.STARTED, 0, 0)
    db = Database((row,), ())
    subject.put(db)
    for bad in BAD_VALUES:
        for operation, args in (
            ("reserve", (bad, "r1")),
            ("reserve", ("k1", bad)),
            ("claim", (bad, "r1")),
            ("claim", ("a", bad)),
            ("release", (bad, "r1")),
            ("release", ("a", bad)),
            ("settle", (bad,)),
            ("read", (bad,)),
            ("for_runs", (bad,)),
            ("for_runs", ("r1", bad)),
        ):
            if operation not in subject.capabilities:
                continue
            call = Call(operation, args, NOW)
            held = subject.begin(0, call)
            before_sql = held.statement is None
            outcome = held.step()
            answer = outcome.answer if outcome is not None else None
            kept = before_sql and answer == INVALID and subject.dump() == db
            yield "IN-1", kept, Action("run", "A", operation, args, NOW), INVALID, answer


def _distinct(subject: Subject) -> Iterator[Verdict]:
    subject.put(EMPTY)
    rows = {key: Reservation(key, f"r-{key[:100]}", State.RESERVED, NOW, NOW) for key in DISTINCT}
    for key, row in rows.items():
        yield _verdict("IN-2", subject, Reserved(row, True), "reserve", key, row.run_id)
    for key, row in rows.items():
        yield _verdict("IN-2", subject, row, "read", key)
        if "for_runs" in subject.capabilities:
            yield _verdict("IN-2", subject, (row,), "for_runs", row.run_id)
    for key, row in rows.items():
        yield _verdict("IN-2", subject, True, "claim", key, row.run_id)
        yield _verdict("IN-2", subject, 1, "settle", row.run_id)


def _limit(subject: Subject) -> Iterator[Verdict]:
    limit = subject.parameter_limit
    if limit is None or "for_runs" not in subject.capabilities:
        return
    rows = tuple(Reservation(f"k{n:06}", f"r{n:06}", State.RESERVED, 0, 0) for n in range(limit + 2))
    subject.put(Database(rows, ()))
    runs = [row.run_id for row in rows]
    for count in (0, 1, limit - 1, limit):
        yield _verdict("RUN-2", subject, rows[:count], "for_runs", *runs[:count])
    repeated = [runs[0]] * limit
    yield _verdict("RUN-2", subject, rows[:1], "for_runs", *repeated)
    for many in (runs[: limit + 1], [*repeated, runs[0]], runs):
        yield _verdict("RUN-2", subject, TOO_MANY, "for_runs", *many)


def _one_handle(subject: Subject) -> Iterator[Verdict]:
    """What one caller writes through every operation must be in the one database that is shown."""
    if not {"take_lock", "close_fence"} <= subject.capabilities:
        return
    subject.put(NOTHING)
    ask(subject, "reserve", "k1", "r1")
    ask(subject, "claim", "k1", "r1")
    ask(subject, "take_lock", "k1", "r1", "h1")
    ask(subject, "close_fence")
    shown = subject.dump()
    kept = bool(shown.rows and shown.locks and shown.fence_closed)
    yield "DB-1", kept, Action("run", "A", "close_fence", (), NOW), "row, lock and fence", shown


def _spoiled(subject: Subject) -> Iterator[Verdict]:
    subject.spoil("refused", "k9")
    yield _verdict("RSV-7", subject, REFUSED, "reserve", "k9", "r1")
    yield _verdict("RSV-7", subject, None, "read", "k9")
    subject.unspoil()
    for how in ("state", "run id", "time"):
        subject.spoil(how, "k9")
        yield _verdict("RD-3", subject, UNREADABLE, "read", "k9")
        subject.unspoil()
    subject.spoil("elsewhere", "k9")
    yield _verdict("RD-2", subject, UNREADABLE, "read", "k9")
    yield _verdict("RD-2", subject, UNREADABLE, "for_runs", "r1")
