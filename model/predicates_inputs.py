"""What the clauses on inputs demand of one observed step: what is refused, and what is another key."""

from contextlib import suppress

from startonce.model.inputs import admissible
from startonce.model.operations import INVALID
from startonce.model.step import Step, Verdict, inserts, rows_of, says


@says("IN-1")
def _refused_before_any_statement(step: Step) -> Verdict:
    if admissible(step.call):
        return None
    return step.statement is None and step.before == step.after and bool(step.answer == INVALID)


def _alike(one: object, other: object) -> bool:
    """Whether something that folds case, trims or counts takes two keys for the same."""
    if not isinstance(one, str) or not isinstance(other, str):
        return False
    with suppress(ValueError):
        if float(one) == float(other):
            return True
    return one.strip().casefold() == other.strip().casefold()


@says("IN-2", "reserve")
def _stored_byte_for_byte(step: Step) -> Verdict:
    key = step.call.args[0]
    before, after = rows_of(step.before), rows_of(step.after)
    if not inserts(step) or step.before.rows is None or key in before or not admissible(step.call):
        return None
    elsewhere = after.keys() - before.keys() - {key}
    beside = any(_alike(key, other) for other in before)
    return not elsewhere and (key in after or not beside)
