"""What must hold while runs are started, each by its clause.

A property looks at one step: the world before, what happened, the world after. It speaks of rows, locks,
executions and the answers that callers were given, not of where callers stand or what faults are left. It
says None where it says nothing about a step; a property that never said anything is reported, not passed.

What must *eventually* hold is asked of quiet worlds, in which every caller is over and nothing is on its
way. The transition system has no cycle (checked, not assumed), so under fair scheduling every run of it
comes to a quiet world, and what fails to happen fails to have happened there.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from startonce.model.faults import quiet
from startonce.model.world import CANCEL, FREE, RESERVED, STARTED, TERMINAL, Event, Lock, Row, Scope, World

Verdict = bool | None
Check = Callable[[World, Event, World], Verdict]


class Property(NamedTuple):
    """A property: what it says in words, the clauses that it holds, and its check."""

    sentence: str
    clauses: tuple[str, ...]
    check: Check


def _executing(lock: Lock | None) -> bool:
    return lock is not None and lock.holder >= 0 and not lock.ended


def _executes_once(w: World, e: Event, v: World) -> Verdict:
    return max(v.executed) <= 1 if e.what == "work" else None


def _one_holder(w: World, e: Event, v: World) -> Verdict:
    return v.won[e.run] <= 1 if v.won != w.won and e.what in ("claim", "fence") else None


def _no_settled_run_begins(w: World, e: Event, v: World) -> Verdict:
    if e.what != "work":
        return None
    return all(row is None or row.run != e.run or row.state is not TERMINAL for row in w.rows)


def _executed_is_never_reserved(w: World, e: Event, v: World) -> Verdict:
    verdict: Verdict = None
    for row in v.rows:
        if row is not None and v.executed[row.run]:
            if row.state is RESERVED:
                return False
            verdict = True
    return verdict


def _terminal_is_absorbing(w: World, e: Event, v: World) -> Verdict:
    verdict: Verdict = None
    for row, now in zip(w.rows, v.rows, strict=True):
        if row is not None and row.state is TERMINAL:
            if now is not None and now != row:
                return False
            verdict = True
    return verdict


def _run_stays(w: World, e: Event, v: World) -> Verdict:
    verdict: Verdict = None
    for row, now in zip(w.rows, v.rows, strict=True):
        if row is not None and now is not None:
            if row.run != now.run:
                return False
            verdict = True
    return verdict


def _only_a_refusal_goes_back(w: World, e: Event, v: World) -> Verdict:
    if w.rows is v.rows:
        return None
    for row, now in zip(w.rows, v.rows, strict=True):
        if row and now and row.state is STARTED and now.state is RESERVED:
            return e.what == "release" and not w.executed[row.run]
    return None


def _told_the_run_of_the_row(w: World, e: Event, v: World) -> Verdict:
    row = w.rows[e.key]
    if e.what not in ("look", "release") or not e.answer or e.fault or row is None:
        return None
    return row.run == e.told


def _drained_stays_idle(w: World, e: Event, v: World) -> Verdict:
    return not w.drained if e.what == "work" else None


def _a_freed_run_never_executes(w: World, e: Event, v: World) -> Verdict:
    if e.what != "work":
        return None
    lock = w.locks[e.run]
    return lock is None or lock.holder not in (CANCEL, FREE)


def _a_free_deletes_what_it_holds(w: World, e: Event, v: World) -> Verdict:
    if e.what != "free: delete":
        return None
    gone = [row for row, now in zip(w.rows, v.rows, strict=True) if row and now is None]
    if not gone:
        return None
    lock = w.locks[gone[0].run]
    return len(gone) == 1 and lock is not None and lock.holder == FREE and not w.executed[gone[0].run]


def _a_refused_free_changes_nothing(w: World, e: Event, v: World) -> Verdict:
    if e.answer != "refused" or not e.what.startswith("free:"):
        return None
    return (w.rows, w.locks) == (v.rows, v.locks)


def _the_inventory_tells_the_truth(w: World, e: Event, v: World) -> Verdict:
    verdict: Verdict = None
    for row in v.rows:
        if row is None or row.state is TERMINAL:
            continue
        lock, ran = v.locks[row.run], v.executed[row.run]
        truth = (
            ran == 0
            if lock is None or lock.holder in (CANCEL, FREE)
            else ran == 1
            if lock.ended
            else row.state is STARTED
        )
        if not truth:
            return False
        verdict = True
    return verdict


def _no_live_run_is_settled(w: World, e: Event, v: World) -> Verdict:
    verdict: Verdict = None
    for row in v.rows:
        if row is not None and row.state is TERMINAL:
            if _executing(v.locks[row.run]):
                return False
            verdict = True
    return verdict


def _a_lock_is_for_good(w: World, e: Event, v: World) -> Verdict:
    verdict: Verdict = None
    for lock, now in zip(w.locks, v.locks, strict=False):
        if lock is not None:
            if now is None or now.holder != lock.holder or now.ended < lock.ended:
                return False
            verdict = True
    return verdict


def _a_refused_start_did_not_execute(w: World, e: Event, v: World) -> Verdict:
    return not v.executed[e.run] if e.answer in ("fenced", "stranded") else None


def _a_refused_key_can_be_started(w: World, e: Event, v: World) -> Verdict:
    return v.rows[e.key] == Row(e.told, RESERVED) if e.answer == "fenced" else None


def _a_reserved_key_is_never_waited_for(w: World, e: Event, v: World) -> Verdict:
    if e.fault or e.what == "settle" or e.answer not in ("pending", "settled", "replayed"):
        return None  # whoever settles has read before, and the row may have changed since
    row = w.rows[e.key]
    return row is None or row.state is not RESERVED


ENDS_STARTED = ("settle", "cancel: settle", "release", "free: delete")


def _started_stays_until_it_is_ended(w: World, e: Event, v: World) -> Verdict:
    if w.rows is v.rows:
        return None
    for row, now in zip(w.rows, v.rows, strict=True):
        if row and row.state is STARTED and now != row:
            return e.what in ENDS_STARTED
    return None


# --- in quiet worlds ------------------------------------------------------------------------------------


def _no_key_is_stranded(w: World, e: Event, v: World) -> Verdict:
    if not quiet(v):
        return None
    return all(row is None or row.state is not STARTED for row in v.rows)


def _every_executed_run_is_settled(w: World, e: Event, v: World) -> Verdict:
    if not quiet(v) or not any(v.executed):
        return None
    return all(row is None or row.state is TERMINAL or not v.executed[row.run] for row in v.rows)


def _a_lock_is_executed_under(w: World, e: Event, v: World) -> Verdict:
    if not quiet(v):
        return None
    held = [run for run, lock in enumerate(v.locks) if lock is not None and lock.holder >= 0]
    alive = [run for run in held if not _taker_crashed(v, run)]
    return all(v.executed[run] for run in alive) if alive else None


def _taker_crashed(w: World, run: int) -> bool:
    lock = w.locks[run]
    return lock is not None and w.callers[lock.holder // 100].at == "crashed"


ALWAYS: Mapping[str, Property] = {
    "executes once": Property("at most one execution per run and row lifetime", ("STA-9",), _executes_once),
    "one holder": Property("at most one caller holds a claim", ("CLM-2",), _one_holder),
    "executed is never reserved": Property(
        "what was executed is never reserved again", ("STA-9",), _executed_is_never_reserved
    ),
    "terminal is absorbing": Property("terminal never changes", ("SET-5",), _terminal_is_absorbing),
    "the run stays": Property("a run id never changes while its row lives", ("RSV-2",), _run_stays),
    "only a refusal goes back": Property(
        "only a release goes back, of what was not executed", ("REL-2", "STA-4"), _only_a_refusal_goes_back
    ),
    "told the row's run": Property(
        "every caller is told the run of the row", ("STA-2",), _told_the_run_of_the_row
    ),
    "drained stays idle": Property(
        "once drained nothing begins to execute", ("STA-11",), _drained_stays_idle
    ),
    "freed never executes": Property(
        "a freed or cancelled run never executes", ("FRE-1", "FRE-4"), _a_freed_run_never_executes
    ),
    "a free holds its lock": Property(
        "a free deletes one row, whose lock it holds", ("FRE-1", "FRE-2"), _a_free_deletes_what_it_holds
    ),
    "a refused free is harmless": Property(
        "a free that is refused changed nothing", ("FRE-3",), _a_refused_free_changes_nothing
    ),
    "the inventory is true": Property(
        "what the inventory says of an entry is so", ("INV-2",), _the_inventory_tells_the_truth
    ),
    "a refused key can be started": Property(
        "whoever is answered fenced leaves the key reserved for the same run",
        ("STA-5",),
        _a_refused_key_can_be_started,
    ),
    "a reserved key is never waited for": Property(
        "nobody is told to wait for a key that is reserved, or that it is over",
        ("STA-6",),
        _a_reserved_key_is_never_waited_for,
    ),
    "started stays": Property(
        "a started row changes only by a settle, a release or a free",
        ("STA-7",),
        _started_stays_until_it_is_ended,
    ),
    "no live run is settled": Property(
        "no row is terminal while its run executes", ("DUT-3",), _no_live_run_is_settled
    ),
    "no settled run begins": Property(
        "no execution begins of a run whose row is terminal", ("DUT-3", "LCK-3"), _no_settled_run_begins
    ),
    "a lock is for good": Property("a lock keeps its holder and its end", ("LCK-1",), _a_lock_is_for_good),
    "a refused start did not execute": Property(
        "whoever is answered fenced was not executed", ("REL-3",), _a_refused_start_did_not_execute
    ),
}
"""What must hold at every step, whatever the faults."""

DURABLE_ONLY = frozenset(
    (
        "drained stays idle",
        "a lock is for good",
        "a free holds its lock",
        "a refused free is harmless",
        "freed never executes",
        "the inventory is true",
    )
)
"""Properties that speak of the durable lock."""


EVENTUALLY: Mapping[str, Property] = {
    "no key is stranded": Property(
        "without crashes and unknown outcomes no key ends started", ("STA-5",), _no_key_is_stranded
    ),
    "an executed run is settled": Property(
        "without crashes and unknown outcomes every executed run ends settled",
        ("SET-1",),
        _every_executed_run_is_settled,
    ),
    "a lock is executed under": Property(
        "a lock whose taker did not crash is executed under", ("LCK-2", "LCK-5"), _a_lock_is_executed_under
    ),
}
"""What must hold in every quiet world, where the scope has no fault that excuses it."""


def _starts_what_was_fenced(w: World, e: Event, v: World) -> bool:
    return e.what == "work" and not w.closed and w.left.flips == 0


SOMETIMES: Mapping[str, tuple[str, Callable[[World, Event, World], bool]]] = {
    "started": ("a start is answered with its result", lambda w, e, v: e.answer == "started"),
    "replayed": ("a start is answered with an earlier result", lambda w, e, v: e.answer == "replayed"),
    "pending": ("a start finds another one under way", lambda w, e, v: e.answer == "pending"),
    "retry": ("a start is told to come again", lambda w, e, v: e.answer == "retry"),
    "settled": ("a start finds its key spent without a result", lambda w, e, v: e.answer == "settled"),
    "fenced": ("a start is refused by the fence", lambda w, e, v: e.answer == "fenced"),
    "starts after the fence": (
        "a run is executed after the fence closed and opened again",
        _starts_what_was_fenced,
    ),
    "begins afresh": (
        "a read-back finds no row",
        lambda w, e, v: e.what == "read back" and not w.rows[e.key],
    ),
    "drained": ("a closed deployment is drained", lambda w, e, v: v.drained and not w.drained),
    "stranded": ("a claim cannot be given back", lambda w, e, v: e.answer == "stranded"),
    "cancelled": ("a run is cancelled before it begins", lambda w, e, v: e.answer == "cancelled"),
    "freed": ("a stranded key is freed", lambda w, e, v: e.answer == "freed"),
    "lands late": ("a statement lands late and changes a row", lambda w, e, v: _lands(w, e, v)),
}
"""What must come about somewhere, or what is said above of it is said of nothing."""


def _lands(w: World, e: Event, v: World) -> bool:
    return e.fault == "lands late" and w.rows != v.rows


def properties(scope: Scope) -> dict[str, Property]:
    """Return the properties that a scope must keep."""
    budget = scope.budget
    chosen = {n: p for n, p in ALWAYS.items() if scope.durable or n not in DURABLE_ONLY}
    if not (budget.crashes or budget.unknowns or budget.late or budget.refusals):
        chosen |= {n: EVENTUALLY[n] for n in ("no key is stranded", "an executed run is settled")}
    if scope.durable and not budget.late:
        chosen["a lock is executed under"] = EVENTUALLY["a lock is executed under"]
    return chosen
