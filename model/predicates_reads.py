"""What the clauses on reads, the inventory and the run lock demand of one observed step.

As in `predicates_rows.py`: written from the clauses, apart from the transition functions.
"""

from startonce.model.operations import Fault, Holding, Raised, Stopped
from startonce.model.reservation import HOLDER_WORDS, Lock, Reservation
from startonce.model.step import GOES_ON, RESERVED, STARTED, TERMINAL, Step, Verdict, rows_of, says

# --- reads -------------------------------------------------------------------------------------------


@says("RD-1", "read", "for_runs", "inventory", "lock_of", "fence")
def _pure(step: Step) -> Verdict:
    return step.before == step.after


@says("RD-2", "read", "for_runs", "inventory", "lock_of", "fence")
def _without_table(step: Step) -> Verdict:
    seen = step.seen
    absent = {
        "lock_of": seen.locks is None,
        "fence": seen.fence_closed is None,
    }.get(step.call.operation, seen.rows is None)
    if not absent or not step.heard:
        return None
    nothing = {"read": None, "lock_of": None, "fence": False}.get(step.call.operation, ())
    return bool(step.answer == nothing)


@says("RD-3", "read")
def _finds_the_row(step: Step) -> Verdict:
    if not step.heard:
        return isinstance(step.answer, Raised)
    return bool(step.answer == rows_of(step.seen).get(step.call.args[0]))


@says("RD-3", "lock_of")
def _finds_the_lock(step: Step) -> Verdict:
    if not step.heard:
        return isinstance(step.answer, Raised)
    locks = [lock for lock in step.seen.locks or () if lock.run_id == step.call.args[0]]
    return bool(step.answer == (locks[0] if locks else None))


@says("RD-3", "fence")
def _finds_the_fence(step: Step) -> Verdict:
    if not step.heard:
        return isinstance(step.answer, Raised)
    return step.answer is (step.seen.fence_closed is True)


def _listed(step: Step) -> bool:
    return isinstance(step.answer, tuple) and not isinstance(step.answer, Raised)


@says("RUN-1", "for_runs")
def _every_row(step: Step) -> Verdict:
    if not step.heard:
        return None
    if not _listed(step):
        return False
    wanted = {row.key for row in step.seen.rows or () if row.run_id in step.call.args}
    return sorted(row.key for row in step.answer) == sorted(wanted)


@says("RUN-3", "for_runs")
def _agrees_with_read(step: Step) -> Verdict:
    if not step.heard or not _listed(step) or not step.answer:
        return None
    stored = rows_of(step.seen)
    return all(row == stored.get(row.key) for row in step.answer)


@says("INV-1", "inventory")
def _lists(step: Step) -> Verdict:
    if not step.heard:
        return None
    if not _listed(step):
        return False
    after, limit = step.call.args
    rows = rows_of(step.seen)
    wanted = {(key, row.run_id) for key, row in rows.items() if row.state is not TERMINAL}
    for lock in step.seen.locks or ():
        if lock.key is not None and lock.holder not in HOLDER_WORDS and not lock.ended:
            wanted.add((lock.key, lock.run_id))
    due = sorted(pair for pair in wanted if after is None or pair > after)[:limit]
    return [(entry.key, entry.run_id) for entry in step.answer] == due


@says("INV-2", "inventory")
def _explains(step: Step) -> Verdict:
    if not step.heard or not _listed(step) or not step.answer:
        return None
    rows, locks = rows_of(step.seen), {lock.run_id: lock for lock in step.seen.locks or ()}
    for entry in step.answer:
        row, lock = rows.get(entry.key), locks.get(entry.run_id)
        live = row is not None and row.run_id == entry.run_id and row.state is not TERMINAL
        executing = lock is not None and lock.holder not in HOLDER_WORDS
        truth = {
            "reserved": live and lock is None and row is not None and row.state is RESERVED,
            "never reached the lock": live and lock is None and row is not None and row.state is STARTED,
            "held by a cancel": live and lock is not None and lock.holder == "cancel",
            "held by a free": live and lock is not None and lock.holder == "free",
            "ended, not settled": live and executing and lock is not None and lock.ended,
            "reached the lock, not ended": live and executing and lock is not None and not lock.ended,
            "settled or purged, still held": not live and executing,
        }
        if not truth.get(entry.kind):
            return False
    return True


# --- the run lock ------------------------------------------------------------------------------------


@says("LCK-1")
def _locks_stay(step: Step) -> Verdict:
    if not step.before.locks:
        return None
    after = {lock.run_id: lock for lock in step.after.locks or ()}
    for lock in step.before.locks:
        now = after.get(lock.run_id)
        if now is None or now.holder != lock.holder or (lock.ended and now != lock):
            return False
    return True


@says("LCK-1", "persist")
def _persists(step: Step) -> Verdict:
    run_id, holder, result = step.call.args
    if not step.applied:
        return None
    held = [
        lock
        for lock in step.before.locks or ()
        if lock.run_id == run_id and lock.holder == holder and not lock.ended
    ]
    ended = [lock._replace(ended=True, result=result) for lock in held]
    others = set(step.before.locks or ()) - set(held)
    told = step.answer is bool(held) or not step.heard
    return told and set(step.after.locks or ()) == others | set(ended)


@says("LCK-2", "take_lock")
def _mine(step: Step) -> Verdict:
    if not isinstance(step.answer, Holding):
        return None
    run_id, token = step.call.args[1:3]
    seen = step.after if step.statement is None else step.seen
    holder = next((lock.holder for lock in seen.locks or () if lock.run_id == run_id), None)
    return step.answer == Holding(holder == token, holder)


@says("LCK-3", "take_lock")
def _takes(step: Step) -> Verdict:
    if step.statement == "read holder":
        return step.before == step.after
    if not step.applied:
        return step.before == step.after
    key, run_id, token = step.call.args
    row = rows_of(step.before).get(key)
    free = step.before.locks is not None and run_id not in {x.run_id for x in step.before.locks}
    may = free and row is not None and row.run_id == run_id and row.state is STARTED
    taken = set(step.after.locks or ()) - set(step.before.locks or ())
    if not may:
        return step.before == step.after
    lock = next(iter(taken), None)
    return (
        len(taken) == 1
        and lock is not None
        and lock[:5] == (run_id, key, token, False, None)
        and step.before.rows == step.after.rows
    )


# --- cancel and free -----------------------------------------------------------------------------------


@says("DUT-3", "cancel")
def _settles_what_it_cancelled(step: Step) -> Verdict:
    (run_id,) = step.call.args
    moved = {key for key, row in rows_of(step.after).items() if rows_of(step.before).get(key) != row}
    if step.statement is None:
        held = [lock.holder for lock in step.after.locks or () if lock.run_id == run_id]
    elif step.statement == "settle":
        held = [lock.holder for lock in step.before.locks or () if lock.run_id == run_id]
    else:
        return not moved
    spent = all(row.state is TERMINAL for row in step.after.rows or () if row.run_id == run_id)
    if not isinstance(step.answer, Stopped):
        return held == ["cancel"] if moved else None
    if step.answer.done:
        return held == ["cancel"] and spent
    return not moved and held != ["cancel"]


@says("FRE-1", "free")
def _frees_what_it_holds(step: Step) -> Verdict:
    gone = rows_of(step.before).keys() - rows_of(step.after).keys()
    if not gone:
        return None
    run_id = rows_of(step.before)[step.call.args[0]].run_id if step.call.args[0] in gone else ""
    held = [lock for lock in step.after.locks or () if lock.run_id == run_id]
    return len(gone) == 1 and [(lock.holder, lock.ended) for lock in held] == [("free", False)]


def _lock_before(step: Step) -> tuple[Reservation | None, Lock | None]:
    row = rows_of(step.before).get(step.call.args[0])
    locks = {lock.run_id: lock for lock in step.before.locks or ()}
    return row, locks.get(row.run_id) if row is not None else None


@says("FRE-2", "free")
def _acts_on_started_alone(step: Step) -> Verdict:
    row, lock = _lock_before(step)
    if step.statement is not None or (lock is not None and lock.holder == "free"):
        return None
    if row is not None and row.state is STARTED:
        return None
    refused = isinstance(step.answer, Stopped) and not step.answer.done
    return refused and step.before == step.after


@says("FRE-3", "free")
def _takes_no_lock_from_another(step: Step) -> Verdict:
    _, lock = _lock_before(step)
    if lock is None or lock.holder == "free":
        return None
    refused = not isinstance(step.answer, Stopped) or not step.answer.done
    return refused and step.before == step.after


@says("FRE-4", "free")
def _completes_one_that_crashed(step: Step) -> Verdict:
    row, lock = _lock_before(step)
    if step.statement is not None or step.fault is not Fault.NONE:
        return None
    if row is None or lock is None or lock.holder != "free":
        return None
    others = [other for other in step.before.rows or () if other != row]
    done = isinstance(step.answer, Stopped) and step.answer.done
    return done and list(step.after.rows or ()) == others


@says("LCK-5", "take_lock")
def _reads_back_an_unknown(step: Step) -> Verdict:
    if step.statement == "insert lock" and step.fault in (Fault.LOST, Fault.LATE):
        return bool(step.answer == GOES_ON)
    if step.statement == "read holder" and step.call.heard == (None,) and step.heard:
        return isinstance(step.answer, Holding) and step.before == step.after
    return None
