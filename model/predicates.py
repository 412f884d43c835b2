"""What each clause demands of one observed step. Written from the clauses, apart from the transitions.

A step is one statement, or one whole operation, of one caller: the database before and after it, and the
answer if it ended its operation. A predicate says True, False, or None where the clause says nothing
about this step. Nothing here calls the functions of `reservation.py` or `operations.py`: the model is
judged by these too.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from startonce.model.operations import (
    UNKNOWN,
    VANISHED,
    Call,
    Fault,
    Holding,
    Raised,
    Reserved,
)
from startonce.model.reservation import HOLDER_WORDS, Database, Reservation, State

GOES_ON = "goes on"
"""In place of an answer: the operation has more statements."""

RESERVED, STARTED, TERMINAL = State.RESERVED, State.STARTED, State.TERMINAL
Verdict = bool | None


class Step(NamedTuple):
    """One observed step. `statement` None is a whole operation with nobody in between.

    `before` and `after` are all there is in the database; `seen` is what a read was answered from, which
    a lagging replica makes older than `before`.
    """

    call: Call
    statement: str | None
    fault: Fault
    before: Database
    after: Database
    answer: Any
    seen: Database

    @property
    def applied(self) -> bool:
        """Whether the statement took effect at this step."""
        return self.fault in (Fault.NONE, Fault.LOST)

    @property
    def heard(self) -> bool:
        """Whether its caller has the reply."""
        return self.fault in (Fault.NONE, Fault.STALE)


Predicate = Callable[[Step], Verdict]
_BY_OPERATION: dict[str, list[tuple[str, Predicate]]] = {}
_ALWAYS: list[tuple[str, Predicate]] = []


def _for(clause: str, *operations: str) -> Callable[[Predicate], Predicate]:
    def register(predicate: Predicate) -> Predicate:
        for operation in operations:
            _BY_OPERATION.setdefault(operation, []).append((clause, predicate))
        if not operations:
            _ALWAYS.append((clause, predicate))
        return predicate

    return register


def judge(step: Step) -> Iterator[tuple[str, bool]]:
    """Give each clause that says something about a step, and whether the step keeps it."""
    for clause, predicate in (*_BY_OPERATION.get(step.call.operation, ()), *_ALWAYS):
        verdict = predicate(step)
        if verdict is not None:
            yield clause, verdict


def registered() -> frozenset[str]:
    """Return the ids of the clauses that have a predicate over steps or traces."""
    over_steps = {clause for some in (*_BY_OPERATION.values(), _ALWAYS) for clause, _ in some}
    return frozenset(over_steps | {"PRG-2"})


# --- what a step did ---------------------------------------------------------------------------------


def _rows(db: Database) -> dict[str, Reservation]:
    return {row.key: row for row in db.rows or ()}


def _changed(step: Step) -> set[str]:
    before, after = _rows(step.before), _rows(step.after)
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def _alone(step: Step, key: str) -> bool:
    """Whether nothing but the row of this key differs."""
    same = step.before.locks == step.after.locks or step.before.locks is None
    return _changed(step) <= {key} and same and step.before.fence_closed == step.after.fence_closed


def _inserts(step: Step) -> bool:
    return step.statement in (None, "insert") and step.applied


def _reads_back(step: Step) -> bool:
    return step.statement in (None, "read back") and step.heard


def _key_run(step: Step) -> tuple[str, str]:
    key, run_id = step.call.args[:2]
    return key, run_id


def _became(row: Reservation | None, old: Reservation, state: State, now: int) -> bool:
    return row == old._replace(state=state, updated_at=now)


# --- reserve -----------------------------------------------------------------------------------------


@_for("RSV-1", "reserve")
def _new_key(step: Step) -> Verdict:
    key, run_id = _key_run(step)
    absent = step.before.rows is not None and key not in _rows(step.before)
    if not (_inserts(step) and absent):
        return None
    new = Reservation(key, run_id, RESERVED, step.call.now, step.call.now)
    return _alone(step, key) and _rows(step.after).get(key) == new


@_for("RSV-2", "reserve")
def _existing_key(step: Step) -> Verdict:
    key, _ = _key_run(step)
    if not (_inserts(step) and key in _rows(step.before)):
        return None
    return step.before.rows == step.after.rows


@_for("RSV-3", "reserve")
def _the_row_read_back(step: Step) -> Verdict:
    if not _reads_back(step) or not isinstance(step.answer, Reserved):
        return None
    seen = step.after if step.statement is None else step.seen
    untouched = step.statement is None or step.before == step.after
    return untouched and step.answer.row == _rows(seen).get(step.call.args[0])


@_for("RSV-4", "reserve")
def _created(step: Step) -> Verdict:
    if not _reads_back(step) or not isinstance(step.answer, Reserved):
        return None
    key, run_id = _key_run(step)
    inserted = key not in _rows(step.before) if step.statement is None else step.call.heard[0]
    return step.answer.created == (inserted is True and step.answer.row.run_id == run_id)


@_for("RSV-5", "reserve")
def _vanished(step: Step) -> Verdict:
    seen = step.after if step.statement is None else step.seen
    if not _reads_back(step) or step.call.args[0] in _rows(seen):
        return None
    return bool(step.answer == VANISHED)


@_for("RSV-6", "reserve")
def _creates(step: Step) -> Verdict:
    if step.statement is not None and step.statement.startswith("create"):
        kept = step.before.rows is None or step.before.rows == step.after.rows
        return kept and (step.before.locks is None or step.before.locks == step.after.locks)
    if step.answer == GOES_ON or isinstance(step.answer, Raised):
        return None
    return step.after.rows is not None and step.after.locks is not None


@_for("RSV-6", "claim", "release", "settle", "read", "for_runs", "purge", "inventory", "take_lock",
      "lock_of", "persist", "fence", "close_fence", "open_fence")  # fmt: skip
def _creates_nothing(step: Step) -> Verdict:
    if None not in (step.before.rows, step.before.locks):
        return None
    for before, after in ((step.before.rows, step.after.rows), (step.before.locks, step.after.locks)):
        if before is None and after is not None:
            return False
    return True


# --- claim and release ---------------------------------------------------------------------------------


@_for("CLM-1", "claim")
def _claims(step: Step) -> Verdict:
    key, run_id = _key_run(step)
    row = _rows(step.before).get(key)
    if not step.applied or row is None or row.run_id != run_id or row.state is not RESERVED:
        return None
    told = step.answer is True or not step.heard
    moved = _became(_rows(step.after).get(key), row, STARTED, step.call.now)
    return told and moved and _alone(step, key)


@_for("CLM-2", "claim")
def _one_winner(step: Step) -> Verdict:
    if step.answer is not True:
        return None
    before, after = (_rows(db).get(step.call.args[0]) for db in (step.before, step.after))
    return bool(before and after and before.state is RESERVED and after.state is STARTED)


@_for("CLM-3", "claim")
def _lost_changes_nothing(step: Step) -> Verdict:
    return step.before == step.after if step.answer is False else None


@_for("CLM-4", "claim")
def _rewritten(step: Step) -> Verdict:
    key, run_id = _key_run(step)
    row = _rows(step.before).get(key)
    if step.before.rows is None or (row is not None and row.run_id == run_id):
        return None
    return step.answer is not True and step.before == step.after


@_for("CLM-5", "claim")
def _claim_without_table(step: Step) -> Verdict:
    if step.before.rows is not None or not step.applied:
        return None
    return step.before == step.after and (step.answer is False or not step.heard)


@_for("CLM-6", "claim")
def _claim_unknown(step: Step) -> Verdict:
    return bool(step.answer == UNKNOWN) if step.fault in (Fault.LOST, Fault.LATE) else None


@_for("REL-1", "release")
def _releases(step: Step) -> Verdict:
    key, run_id = _key_run(step)
    row = _rows(step.before).get(key)
    if not step.applied or row is None or row.run_id != run_id or row.state is not STARTED:
        return None
    told = step.answer is True or not step.heard
    moved = _became(_rows(step.after).get(key), row, RESERVED, step.call.now)
    return told and moved and _alone(step, key)


@_for("REL-2")
def _only_release_goes_back(step: Step) -> Verdict:
    rank = (RESERVED, STARTED, TERMINAL)
    before, after = _rows(step.before), _rows(step.after)
    back = [
        key
        for key in before.keys() & after.keys()
        if before[key].run_id == after[key].run_id
        and rank.index(after[key].state) < rank.index(before[key].state)
    ]
    released = step.call.operation == "release" and back == [step.call.args[0]]
    return not back or (released and before[back[0]].state is STARTED)


@_for("REL-5", "release")
def _nothing_to_release(step: Step) -> Verdict:
    key, run_id = _key_run(step)
    row = _rows(step.before).get(key)
    if row is not None and row.run_id == run_id and row.state is STARTED:
        return None
    return step.before == step.after and (step.answer is False or not _answered(step))


def _answered(step: Step) -> bool:
    return step.fault is Fault.NONE


# --- settle ------------------------------------------------------------------------------------------


def _live(step: Step) -> set[str]:
    (run_id,) = step.call.args
    return {
        key for key, row in _rows(step.before).items() if row.run_id == run_id and row.state is not TERMINAL
    }


@_for("SET-1", "settle")
def _settles(step: Step) -> Verdict:
    if not step.applied or step.before.rows is None:
        return None
    before, after, live = _rows(step.before), _rows(step.after), _live(step)
    return _changed(step) == live and all(
        _became(after.get(key), before[key], TERMINAL, step.call.now) for key in live
    )


@_for("SET-2", "settle")
def _settles_once(step: Step) -> Verdict:
    if not _answered(step) or _live(step):
        return None
    return step.answer == 0 and step.before == step.after


@_for("SET-3", "settle")
def _counts_settled(step: Step) -> Verdict:
    return bool(step.answer == len(_live(step))) if _answered(step) else None


@_for("SET-4", "settle")
def _settles_behind_a_fence(step: Step) -> Verdict:
    if not _answered(step) or not (step.before.fence_closed or step.before.rows is None):
        return None
    return bool(step.answer == len(_live(step))) and len(_changed(step)) == len(_live(step))


@_for("SET-5")
def _terminal_is_absorbing(step: Step) -> Verdict:
    after = _rows(step.after)
    spent = [row for row in step.before.rows or () if row.state is TERMINAL]
    if not spent:
        return None
    return all(
        after.get(row.key, None if step.call.operation == "purge" else ...) in (row, None) for row in spent
    )


# --- reads -------------------------------------------------------------------------------------------


@_for("RD-1", "read", "for_runs", "inventory", "lock_of", "fence")
def _pure(step: Step) -> Verdict:
    return step.before == step.after


@_for("RD-2", "read", "for_runs", "inventory", "lock_of", "fence")
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


@_for("RD-3", "read")
def _finds_the_row(step: Step) -> Verdict:
    if not step.heard:
        return isinstance(step.answer, Raised)
    return bool(step.answer == _rows(step.seen).get(step.call.args[0]))


@_for("RD-3", "lock_of")
def _finds_the_lock(step: Step) -> Verdict:
    if not step.heard:
        return isinstance(step.answer, Raised)
    locks = [lock for lock in step.seen.locks or () if lock.run_id == step.call.args[0]]
    return bool(step.answer == (locks[0] if locks else None))


@_for("RD-3", "fence")
def _finds_the_fence(step: Step) -> Verdict:
    if not step.heard:
        return isinstance(step.answer, Raised)
    return step.answer is (step.seen.fence_closed is True)


def _listed(step: Step) -> bool:
    return isinstance(step.answer, tuple) and not isinstance(step.answer, Raised)


@_for("RUN-1", "for_runs")
def _every_row(step: Step) -> Verdict:
    if not step.heard:
        return None
    if not _listed(step):
        return False
    wanted = {row.key for row in step.seen.rows or () if row.run_id in step.call.args}
    return sorted(row.key for row in step.answer) == sorted(wanted)


@_for("RUN-3", "for_runs")
def _agrees_with_read(step: Step) -> Verdict:
    if not step.heard or not _listed(step) or not step.answer:
        return None
    stored = _rows(step.seen)
    return all(row == stored.get(row.key) for row in step.answer)


# --- purge and inventory -----------------------------------------------------------------------------


@_for("PRG-1", "purge")
def _purges(step: Step) -> Verdict:
    if not step.applied:
        return None
    horizon, limit = step.call.args
    spent = [
        (row.updated_at, row.key)
        for row in step.before.rows or ()
        if row.state is TERMINAL and row.updated_at < horizon
    ]
    due = {key for _, key in sorted(spent)[:limit]}
    only = _changed(step) == due and not due & _rows(step.after).keys()
    told = step.answer == len(due) or not step.heard
    return only and told and step.before.locks == step.after.locks


@_for("INV-1", "inventory")
def _lists(step: Step) -> Verdict:
    if not step.heard:
        return None
    if not _listed(step):
        return False
    after, limit = step.call.args
    rows = _rows(step.seen)
    wanted = {(key, row.run_id) for key, row in rows.items() if row.state is not TERMINAL}
    for lock in step.seen.locks or ():
        if lock.key is not None and lock.holder not in HOLDER_WORDS and not lock.ended:
            wanted.add((lock.key, lock.run_id))
    due = sorted(pair for pair in wanted if after is None or pair > after)[:limit]
    return [(entry.key, entry.run_id) for entry in step.answer] == due


@_for("INV-2", "inventory")
def _explains(step: Step) -> Verdict:
    if not step.heard or not _listed(step) or not step.answer:
        return None
    rows, locks = _rows(step.seen), {lock.run_id: lock for lock in step.seen.locks or ()}
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


@_for("LCK-1")
def _locks_stay(step: Step) -> Verdict:
    if not step.before.locks:
        return None
    after = {lock.run_id: lock for lock in step.after.locks or ()}
    for lock in step.before.locks:
        now = after.get(lock.run_id)
        if now is None or now.holder != lock.holder or (lock.ended and now != lock):
            return False
    return True


@_for("LCK-1", "persist")
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


@_for("LCK-2", "take_lock")
def _mine(step: Step) -> Verdict:
    if not isinstance(step.answer, Holding):
        return None
    run_id, token = step.call.args[1:3]
    seen = step.after if step.statement is None else step.seen
    holder = next((lock.holder for lock in seen.locks or () if lock.run_id == run_id), None)
    return step.answer == Holding(holder == token, holder)


@_for("LCK-3", "take_lock")
def _takes(step: Step) -> Verdict:
    if step.statement == "read holder":
        return step.before == step.after
    if not step.applied:
        return step.before == step.after
    key, run_id, token = step.call.args
    row = _rows(step.before).get(key)
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


@_for("LCK-5", "take_lock")
def _reads_back_an_unknown(step: Step) -> Verdict:
    if step.statement == "insert lock" and step.fault in (Fault.LOST, Fault.LATE):
        return bool(step.answer == GOES_ON)
    if step.statement == "read holder" and step.call.heard == (None,) and step.heard:
        return isinstance(step.answer, Holding) and step.before == step.after
    return None


# --- over a whole trace --------------------------------------------------------------------------------


def judge_trace(steps: Sequence[Step]) -> Iterator[tuple[str, bool, int]]:
    """Give each clause over several steps, whether it was kept, and the number of the step."""
    winners: dict[tuple[str, str], int] = {}
    creators: dict[str, int] = {}
    ended: dict[str, set[str]] = {}  # the runs of a key's earlier row lifetimes
    last: dict[str, Reservation] = {}
    for number, step in enumerate(steps):
        call = step.call
        before, after = _rows(step.before), _rows(step.after)
        for old, new in ((last, before), (before, after)):  # between two steps a late one can land
            for key in old.keys() - new.keys():
                ended.setdefault(key, set()).add(old[key].run_id)
                winners = {pair: n for pair, n in winners.items() if pair[0] != key}
                creators.pop(key, None)
        last = after
        for row in before.values():
            if row.state is RESERVED:
                winners.pop((row.key, row.run_id), None)
        if call.operation == "claim" and step.answer is True:
            key, run_id = _key_run(step)
            winners[key, run_id] = winners.get((key, run_id), 0) + 1
            yield "CLM-2", winners[key, run_id] <= 1, number
        if call.operation != "reserve":
            continue
        key, run_id = _key_run(step)
        if key in ended and key in after and key not in before:
            yield "PRG-2", after[key].state is RESERVED and after[key].created_at == call.now, number
        created = isinstance(step.answer, Reserved) and step.answer.created
        if created and run_id not in ended.get(key, ()):  # a run id used twice proves nothing: DUT-1
            creators[key] = creators.get(key, 0) + 1
            yield "RSV-4", creators[key] <= 1, number
