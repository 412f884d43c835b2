"""What no walk over tables reaches: bad input, spoiled schemas, the parameter limit, one handle."""

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any, NamedTuple

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


class Verdict(NamedTuple):
    """A clause, whether it was kept, and the operations with what they began from and what came of them."""

    clause: str
    kept: bool
    start: Database
    actions: tuple[Action, ...]
    expected: Any
    observed: Any


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
        for v in one(subject):
            if v.kept:
                ledger.count([v.clause], "probes")
            else:
                after = subject.dump() if one is not _spoiled else v.start
                ledger.violated(
                    Divergence(
                        (v.clause,),
                        "probes",
                        v.start,
                        v.actions,
                        (v.expected, v.start),
                        (v.observed, after),
                    )
                )
        if one is _spoiled:
            subject.unspoil()


def ask(subject: Subject, operation: str, *args: Any, caller: int = 0) -> Any:
    """Run a whole operation on a subject and return its answer."""
    held = subject.begin(caller, Call(operation, args, NOW))
    outcome = held.step()
    while outcome is None:
        outcome = held.step()
    return outcome.answer


def _verdict(
    clause: str, subject: Subject, start: Database, expected: Any, operation: str, *args: Any
) -> Verdict:
    observed = ask(subject, operation, *args)
    kept = bool(observed == expected)
    action = Action("run", "A", operation, args, NOW)
    return Verdict(clause, kept, start, (action,), expected, observed)


def _bad_input(subject: Subject) -> Iterator[Verdict]:
    db = Database((Reservation("a", "r1", State.STARTED, 0, 0),), ())
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
            if not subject.carries(call):
                continue
            held = subject.begin(0, call)
            before_sql = held.statement is None
            outcome = held.step()
            answer = outcome.answer if outcome is not None else None
            kept = before_sql and answer == INVALID and subject.dump() == db
            action = Action("run", "A", operation, args, NOW)
            yield Verdict("IN-1", kept, db, (action,), INVALID, answer)
            yield from _leaves_nothing_open(subject, action)
            subject.put(db)


def _leaves_nothing_open(subject: Subject, refused: Action) -> Iterator[Verdict]:
    """After a refusal the same caller's write is there for all to see, and another caller can write."""
    start = subject.dump()
    given = Reservation("a", "r1", State.RESERVED, 0, NOW)
    actions = [refused]
    for caller, operation, row in (
        (0, "release", given),
        (1, "claim", given._replace(state=State.STARTED)),
    ):
        answer = ask(subject, operation, "a", "r1", caller=caller)
        kept = answer is True and subject.dump() == Database((row,), ())
        actions.append(Action("run", "AB"[caller], operation, ("a", "r1"), NOW))
        yield Verdict("IN-1", kept, start, tuple(actions), True, answer)


def _distinct(subject: Subject) -> Iterator[Verdict]:
    """Beside the row of one key, every other key is another one."""
    for key, other in permutations(DISTINCT, 2):
        row = Reservation(key, f"r-{key[:100]}", State.RESERVED, NOW, NOW)
        new = Reservation(other, f"r-{other[:100]}", State.RESERVED, NOW, NOW)
        start = Database((row,), ())
        subject.put(start)
        yield _verdict("IN-2", subject, start, None, "read", other)
        yield _verdict("IN-2", subject, start, False, "claim", other, row.run_id)
        yield _verdict("IN-2", subject, start, 0, "settle", new.run_id)
        yield _verdict("IN-2", subject, start, Reserved(new, True), "reserve", other, new.run_id)
        if "for_runs" in subject.capabilities:
            both = Database(tuple(sorted((row, new))), ())
            yield _verdict("IN-2", subject, both, (row,), "for_runs", row.run_id)


def _limit(subject: Subject) -> Iterator[Verdict]:
    limit = subject.parameter_limit
    if limit is None or "for_runs" not in subject.capabilities:
        return
    rows = tuple(Reservation(f"k{n:06}", f"r{n:06}", State.RESERVED, 0, 0) for n in range(limit + 2))
    start = Database(rows, ())
    subject.put(start)
    runs = [row.run_id for row in rows]
    for count in (0, 1, limit - 1, limit):
        yield _verdict("RUN-2", subject, start, rows[:count], "for_runs", *runs[:count])
    repeated = [runs[0]] * limit
    yield _verdict("RUN-2", subject, start, rows[:1], "for_runs", *repeated)
    for many in (runs[: limit + 1], [*repeated, runs[0]], runs):
        yield _verdict("RUN-2", subject, start, TOO_MANY, "for_runs", *many)


def _one_handle(subject: Subject) -> Iterator[Verdict]:
    """What one caller writes through every operation must be in the one database that is shown."""
    if not {"take_lock", "close_fence"} <= subject.capabilities:
        return
    subject.put(NOTHING if subject.absent else EMPTY)
    ask(subject, "reserve", "k1", "r1")
    ask(subject, "claim", "k1", "r1")
    ask(subject, "take_lock", "k1", "r1", "h1")
    ask(subject, "close_fence")
    shown = subject.dump()
    kept = bool(shown.rows and shown.locks and shown.fence_closed)
    action = Action("run", "A", "close_fence", (), NOW)
    yield Verdict("DB-1", kept, EMPTY, (action,), "row, lock and fence", shown)


def _spoiled(subject: Subject) -> Iterator[Verdict]:
    for how in ("refused", "wanting"):
        subject.spoil(how, "k9")
        yield _verdict("RSV-7", subject, EMPTY, REFUSED, "reserve", "k9", "r1")
        yield _verdict("RSV-7", subject, EMPTY, None, "read", "k9")
        subject.unspoil()
    for how in ("state", "run id", "time"):
        subject.spoil(how, "k9")
        yield _verdict("RD-3", subject, EMPTY, UNREADABLE, "read", "k9")
        subject.unspoil()
    subject.spoil("elsewhere", "k9")
    yield _verdict("RD-2", subject, EMPTY, UNREADABLE, "read", "k9")
    yield _verdict("RD-2", subject, EMPTY, UNREADABLE, "for_runs", "r1")
