"""Histories: what several callers began and were answered, as it is seen from outside, and their orders.

Nothing in a history says how an operation is done. Its events are values, in order of time; callers are
counted from 0. `linear.py` judges them.
"""

from typing import Any, NamedTuple

from startonce.model.operations import Call
from startonce.model.predicates import Step
from startonce.model.reservation import Database


class Began(NamedTuple):
    """A caller begins an operation."""

    caller: int
    call: Call


class Doubted(NamedTuple):
    """From here on a statement of a caller's operation can lose its reply: applied, later, or never."""

    caller: int


class Answered(NamedTuple):
    """The operation of a caller ends with this answer."""

    caller: int
    answer: Any


class Crashed(NamedTuple):
    """A caller is gone in the middle of its operation. What it had sent may still land."""

    caller: int


class Gone(NamedTuple):
    """Nothing is on its way any more that a caller had sent and not heard of."""

    caller: int


Event = Began | Doubted | Answered | Crashed | Gone
History = tuple[Event, ...]


class Point(NamedTuple):
    """A statement of the model in an order, of the operation that begins at a place of the history.

    `late`: it lands after its caller went on or was gone.
    """

    began: int
    caller: int
    step: Step
    late: bool


Order = tuple[Point, ...]


class Finding(NamedTuple):
    """Whether a history is legal, and an order that shows it.

    Where it is not, `orders` are the longest legal ones, one for each situation that they lead to, `place`
    is that of the event which can follow none of them (the length of the history if it is the final
    database that cannot), `allowed` the answer and database of the model at the end of each order, and
    `clauses` are broken by what was observed instead, the most telling first.
    """

    legal: bool
    orders: tuple[Order, ...]
    place: int
    allowed: tuple[tuple[Any, Database], ...] = ()
    clauses: tuple[str, ...] = ()


def undated(value: Any) -> Any:
    """Return a value with every time in it forgotten."""
    if not isinstance(value, tuple):
        return value
    if not hasattr(value, "_fields"):
        return tuple(undated(one) for one in value)
    times = ("created_at", "updated_at")
    fields: dict[str, Any] = value._asdict()  # type: ignore[attr-defined]
    return type(value)(**{name: 0 if name in times else undated(one) for name, one in fields.items()})
