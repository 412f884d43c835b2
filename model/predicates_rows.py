"""What the clauses on reserve, claim, release, settle and purge demand of one observed step.

A predicate says True, False, or None where its clause says nothing about the step. It is written from the
clause, and calls none of the transition functions that it judges.
"""

from startonce.model.operations import UNKNOWN, VANISHED, Fault, Raised, Reserved
from startonce.model.reservation import Reservation
from startonce.model.step import (
    GOES_ON,
    RESERVED,
    STARTED,
    TERMINAL,
    Step,
    Verdict,
    alone,
    answered,
    became,
    changed,
    inserts,
    key_and_run,
    reads_back,
    rows_of,
    says,
)

# --- reserve -----------------------------------------------------------------------------------------


@says("RSV-1", "reserve")
def _new_key(step: Step) -> Verdict:
    key, run_id = key_and_run(step)
    absent = step.before.rows is not None and key not in rows_of(step.before)
    if not (inserts(step) and absent):
        return None
    new = Reservation(key, run_id, RESERVED, step.call.now, step.call.now)
    return alone(step, key) and rows_of(step.after).get(key) == new


@says("RSV-2", "reserve")
def _existing_key(step: Step) -> Verdict:
    key, _ = key_and_run(step)
    if not (inserts(step) and key in rows_of(step.before)):
        return None
    return step.before.rows == step.after.rows


@says("RSV-3", "reserve")
def _the_row_read_back(step: Step) -> Verdict:
    if not reads_back(step) or not isinstance(step.answer, Reserved):
        return None
    seen = step.after if step.statement is None else step.seen
    untouched = step.statement is None or step.before == step.after
    return untouched and step.answer.row == rows_of(seen).get(step.call.args[0])


@says("RSV-4", "reserve")
def _created(step: Step) -> Verdict:
    if not reads_back(step) or not isinstance(step.answer, Reserved):
        return None
    key, run_id = key_and_run(step)
    inserted = key not in rows_of(step.before) if step.statement is None else step.call.heard[0]
    return step.answer.created == (inserted is True and step.answer.row.run_id == run_id)


@says("RSV-5", "reserve")
def _vanished(step: Step) -> Verdict:
    seen = step.after if step.statement is None else step.seen
    if not reads_back(step) or step.call.args[0] in rows_of(seen):
        return None
    return bool(step.answer == VANISHED)


@says("RSV-6", "reserve")
def _creates(step: Step) -> Verdict:
    if step.statement is not None and step.statement.startswith("create"):
        kept = step.before.rows is None or step.before.rows == step.after.rows
        return kept and (step.before.locks is None or step.before.locks == step.after.locks)
    if step.answer == GOES_ON or isinstance(step.answer, Raised):
        return None
    return step.after.rows is not None and step.after.locks is not None


@says("RSV-6", "claim", "release", "settle", "read", "for_runs", "purge", "inventory", "take_lock",
      "lock_of", "persist", "cancel", "free", "fence", "close_fence", "open_fence")  # fmt: skip
def _creates_nothing(step: Step) -> Verdict:
    if None not in (step.before.rows, step.before.locks):
        return None
    for before, after in ((step.before.rows, step.after.rows), (step.before.locks, step.after.locks)):
        if before is None and after is not None:
            return False
    return True


# --- claim and release ---------------------------------------------------------------------------------


@says("CLM-1", "claim")
def _claims(step: Step) -> Verdict:
    key, run_id = key_and_run(step)
    row = rows_of(step.before).get(key)
    if not step.applied or row is None or row.run_id != run_id or row.state is not RESERVED:
        return None
    told = step.answer is True or not step.heard
    moved = became(rows_of(step.after).get(key), row, STARTED, step.call.now)
    return told and moved and alone(step, key)


@says("CLM-2", "claim")
def _one_winner(step: Step) -> Verdict:
    if step.answer is not True:
        return None
    before, after = (rows_of(db).get(step.call.args[0]) for db in (step.before, step.after))
    return bool(before and after and before.state is RESERVED and after.state is STARTED)


@says("CLM-3", "claim")
def _lost_changes_nothing(step: Step) -> Verdict:
    return step.before == step.after if step.answer is False else None


@says("CLM-4", "claim")
def _rewritten(step: Step) -> Verdict:
    key, run_id = key_and_run(step)
    row = rows_of(step.before).get(key)
    if step.before.rows is None or (row is not None and row.run_id == run_id):
        return None
    return step.answer is not True and step.before == step.after


@says("CLM-5", "claim")
def _claim_without_table(step: Step) -> Verdict:
    if step.before.rows is not None or not step.applied:
        return None
    return step.before == step.after and (step.answer is False or not step.heard)


@says("CLM-6", "claim")
def _claim_unknown(step: Step) -> Verdict:
    return bool(step.answer == UNKNOWN) if step.fault in (Fault.LOST, Fault.LATE) else None


@says("REL-1", "release")
def _releases(step: Step) -> Verdict:
    key, run_id = key_and_run(step)
    row = rows_of(step.before).get(key)
    if not step.applied or row is None or row.run_id != run_id or row.state is not STARTED:
        return None
    told = step.answer is True or not step.heard
    moved = became(rows_of(step.after).get(key), row, RESERVED, step.call.now)
    return told and moved and alone(step, key)


@says("REL-2")
def _only_release_goes_back(step: Step) -> Verdict:
    rank = (RESERVED, STARTED, TERMINAL)
    before, after = rows_of(step.before), rows_of(step.after)
    back = [
        key
        for key in before.keys() & after.keys()
        if before[key].run_id == after[key].run_id
        and rank.index(after[key].state) < rank.index(before[key].state)
    ]
    released = step.call.operation == "release" and back == [step.call.args[0]]
    return not back or (released and before[back[0]].state is STARTED)


@says("REL-5", "release")
def _nothing_to_release(step: Step) -> Verdict:
    key, run_id = key_and_run(step)
    row = rows_of(step.before).get(key)
    if row is not None and row.run_id == run_id and row.state is STARTED:
        return None
    return step.before == step.after and (step.answer is False or not answered(step))


# --- settle ------------------------------------------------------------------------------------------


def _live(step: Step) -> set[str]:
    (run_id,) = step.call.args
    return {
        key
        for key, row in rows_of(step.before).items()
        if row.run_id == run_id and row.state is not TERMINAL
    }


@says("SET-1", "settle")
def _settles(step: Step) -> Verdict:
    if not step.applied or step.before.rows is None:
        return None
    before, after, live = rows_of(step.before), rows_of(step.after), _live(step)
    return changed(step) == live and all(
        became(after.get(key), before[key], TERMINAL, step.call.now) for key in live
    )


@says("SET-2", "settle")
def _settles_once(step: Step) -> Verdict:
    if not answered(step) or _live(step):
        return None
    return step.answer == 0 and step.before == step.after


@says("SET-3", "settle")
def _counts_settled(step: Step) -> Verdict:
    return bool(step.answer == len(_live(step))) if answered(step) else None


@says("SET-4", "settle")
def _settles_behind_a_fence(step: Step) -> Verdict:
    if not answered(step) or not (step.before.fence_closed or step.before.rows is None):
        return None
    return bool(step.answer == len(_live(step))) and len(changed(step)) == len(_live(step))


@says("SET-5")
def _terminal_is_absorbing(step: Step) -> Verdict:
    after = rows_of(step.after)
    spent = [row for row in step.before.rows or () if row.state is TERMINAL]
    if not spent:
        return None
    deleting = step.call.operation in ("purge", "free")
    return all(after.get(row.key, None if deleting else ...) in (row, None) for row in spent)


# --- purge -----------------------------------------------------------------------------


@says("PRG-1", "purge")
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
    only = changed(step) == due and not due & rows_of(step.after).keys()
    told = step.answer == len(due) or not step.heard
    return only and told and step.before.locks == step.after.locks
