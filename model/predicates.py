"""Judges steps and traces by the clauses, the model's own as much as an implementation's.

The predicates themselves are in `predicates_rows.py`, `predicates_reads.py` and `predicates_inputs.py`;
what needs several steps is here.
"""

from collections.abc import Iterator, Sequence

from startonce.model import predicates_inputs, predicates_reads, predicates_rows
from startonce.model.inputs import admissible
from startonce.model.operations import INVALID, Reserved
from startonce.model.reservation import Reservation
from startonce.model.step import ALWAYS, BY_OPERATION, GOES_ON, RESERVED, Step, key_and_run, rows_of

WHERE = (predicates_rows, predicates_reads, predicates_inputs)
"""The modules whose predicates are registered by being imported."""


def judge(step: Step) -> Iterator[tuple[str, bool]]:
    """Give each clause that says something about a step, and whether the step keeps it.

    Of a call that was rightly refused for its input nothing else is asked.
    """
    if step.answer == INVALID and not admissible(step.call):
        yield "IN-1", step.statement is None and step.before == step.after
        return
    for clause, predicate in (*BY_OPERATION.get(step.call.operation, ()), *ALWAYS):
        verdict = predicate(step)
        if verdict is not None:
            yield clause, verdict


def registered() -> frozenset[str]:
    """Return the ids of the clauses that have a predicate over steps or traces."""
    over_steps = {clause for some in (*BY_OPERATION.values(), ALWAYS) for clause, _ in some}
    return frozenset(over_steps | {"PRG-2"})


# --- over a whole trace --------------------------------------------------------------------------------


def judge_trace(steps: Sequence[Step]) -> Iterator[tuple[str, bool, int]]:
    """Give each clause over several steps, whether it was kept, and the number of the step."""
    winners: dict[tuple[str, str], int] = {}
    creators: dict[str, int] = {}
    ended: dict[str, set[str]] = {}  # the runs of a key's earlier row lifetimes
    last: dict[str, Reservation] = {}
    for number, step in enumerate(steps):
        call = step.call
        before, after = rows_of(step.before), rows_of(step.after)
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
            key, run_id = key_and_run(step)
            winners[key, run_id] = winners.get((key, run_id), 0) + 1
            yield "CLM-2", winners[key, run_id] <= 1, number
        if call.operation != "reserve":
            continue
        key, run_id = key_and_run(step)
        if key in ended and key in after and key not in before:
            fresh = Reservation(key, run_id, RESERVED, call.now, call.now)
            yield "PRG-2", after[key] == fresh, number
        created = isinstance(step.answer, Reserved) and step.answer.created
        if created and run_id not in ended.get(key, ()):  # a run id used twice proves nothing: DUT-1
            creators[key] = creators.get(key, 0) + 1
            yield "RSV-4", creators[key] <= 1, number


__all__ = ["GOES_ON", "WHERE", "Step", "judge", "judge_trace", "registered"]
