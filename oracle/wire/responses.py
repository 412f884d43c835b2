"""What an adapter answers, as the model's values.

`wire.schema.json`, beside this file, says what each response looks like. It is read by hand here, since
that is what takes the time; whatever does not fit is looked at again with the schema, which then says why.
A test holds both to the same values.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from startonce.model.operations import PROGRAMS, READS, Ended, Holding, Raised, Reserved, Stopped
from startonce.model.reservation import Database, Entry, Lock, Reservation, State
from startonce.oracle.wire.misbehaviour import plain
from startonce.oracle.wire.words import ERRORS, KINDS, LABELS, OTHER, REASONS, STARTS

_STATES = {state.value: state for state in State}
_LEAST, _MOST = -(2**63), 2**63 - 1


class At(NamedTuple):
    """A caller held before a statement. `run_id` is that of the work of a start, where it is the work."""

    label: str
    writes: bool
    run_id: str | None = None


class Told(NamedTuple):
    """The answer of a whole start."""

    kind: str
    run_id: str | None


class Failed(NamedTuple):
    """What an adapter says where it failed itself."""

    text: str


IDLE = At("", False)
"""Nothing is under way of this caller."""


class Unfit(Exception):
    """A response does not fit. The schema says why, or the text, where it depends on capabilities."""


def _row(value: Any) -> Reservation:
    if type(value) is list and len(value) == 5:
        key, run_id, name, created, updated = value
        if type(key) is type(run_id) is type(name) is str and type(created) is type(updated) is int:
            state = _STATES.get(name)
            if state is not None and _LEAST <= created <= _MOST and _LEAST <= updated <= _MOST:
                return Reservation(key, run_id, state, created, updated)
    raise Unfit


def _lock(value: Any) -> Lock:
    if type(value) is list and len(value) == 6:
        run_id, key, holder, ended, result, created = value
        if (
            type(run_id) is type(holder) is str
            and (key is None or type(key) is str)
            and type(ended) is bool
            and (result is None or type(result) is str)
            and type(created) is int
            and _LEAST <= created <= _MOST
        ):
            return Lock(run_id, key, holder, ended, result, created)
    raise Unfit


def _entry(value: Any) -> Entry:
    if type(value) is list and len(value) == 6:
        key, run_id, name, holder, ended, kind = value
        if (
            type(key) is type(run_id) is type(kind) is str
            and (name is None or (type(name) is str and name in _STATES))
            and (holder is None or type(holder) is str)
            and type(ended) is bool
            and kind in KINDS
        ):
            return Entry(key, run_id, None if name is None else _STATES[name], holder, ended, kind)
    raise Unfit


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise Unfit
    return value


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _MOST:
        raise Unfit
    return value


def _nothing(value: Any) -> None:
    if value is not None:
        raise Unfit


def _members(value: Any, *names: str) -> dict[str, Any]:
    if type(value) is not dict or any(name not in value for name in names):
        raise Unfit
    return value


def _only(value: dict[str, Any], *names: str) -> None:
    """Refuse other members than these; what begins with `x-` is the adapter's own."""
    if any(name not in names and not name.startswith("x-") for name in value):
        raise Unfit


def _reserved(value: Any) -> Reserved:
    members = _members(value, "row", "created")
    if len(members) > 2:
        _only(members, "row", "created")
    return Reserved(_row(members["row"]), _boolean(members["created"]))


def _holding(value: Any) -> Holding:
    members = _members(value, "mine", "holder")
    _only(members, "mine", "holder")
    holder = members["holder"]
    if not (holder is None or type(holder) is str):
        raise Unfit
    return Holding(_boolean(members["mine"]), holder)


def _stopped(value: Any) -> Stopped:
    members = _members(value, "done", "reason")
    _only(members, "done", "reason", "result")
    reason, result = members["reason"], members.get("result")
    if type(reason) is not str or reason not in REASONS or not (result is None or type(result) is str):
        raise Unfit
    return Stopped(_boolean(members["done"]), reason, result)


def _told(value: Any) -> Told:
    members = _members(value, "kind", "run")
    _only(members, "kind", "run")
    kind, run_id = members["kind"], members["run"]
    if type(kind) is not str or kind not in STARTS or not (run_id is None or type(run_id) is str):
        raise Unfit
    return Told(kind, run_id)


def _list(value: Any, one: Callable[[Any], Any]) -> tuple[Any, ...]:
    if type(value) is not list:
        raise Unfit
    return tuple([one(each) for each in value])


def _rows(value: Any) -> tuple[Reservation, ...]:
    rows = _list(value, _row)
    return tuple(sorted(rows)) if len(rows) > 1 else rows


ANSWERS: Mapping[str, Callable[[Any], Any]] = {
    "reserve": _reserved,
    "claim": _boolean,
    "release": _boolean,
    "settle": _number,
    "read": lambda value: None if value is None else _row(value),
    "for_runs": _rows,
    "purge": _number,
    "inventory": lambda value: _list(value, _entry),
    "take_lock": _holding,
    "cancel": _stopped,
    "free": _stopped,
    "lock_of": lambda value: None if value is None else _lock(value),
    "persist": _boolean,
    "fence": _boolean,
    "close_fence": _nothing,
    "open_fence": _nothing,
    "start": _told,
}
"""How the answer of each operation is read. Rows come in any order: they are sorted here."""


def read_done(response: dict[str, Any]) -> Failed | None:
    """Read the response to what answers nothing."""
    if response.get("done") is True:
        _only(response, "done")
        return None
    return _failed(response)


def read_dump(response: dict[str, Any], locks: bool, fence: bool) -> Database | Failed:
    """Read a dump of an adapter that has locks, a fence. Without locks it shows none where it has rows."""
    whole = "rows" in response and (not locks or "locks" in response) and (not fence or "fence" in response)
    if not whole or len(response) != 1 + locks + fence:
        if "failed" in response:
            return _failed(response)
        for name, wanted in (("locks", locks), ("fence", fence)):
            if (name in response) != wanted:
                raise Unfit(f"its capabilities have {'' if wanted else 'nothing of '}{name}")
        _only(response, "rows", "locks", "fence")
        _members(response, "rows")
    shown_rows = response["rows"]
    rows = None if shown_rows is None else _rows(shown_rows)
    found = None if rows is None else ()
    closed = None
    if locks:
        shown_locks = response["locks"]
        found = None if shown_locks is None else tuple(sorted(_list(shown_locks, _lock)))
    if fence:
        closed = response["fence"]
        if closed is not None and type(closed) is not bool:
            raise Unfit
    return Database(rows, found, closed)


def read_call(response: dict[str, Any], operation: str) -> Ended | Failed:
    """Read what an operation ended with."""
    if "answer" in response:
        if len(response) > 1:
            _only(response, "answer")
        return Ended(ANSWERS[operation](response["answer"]))
    error = response.get("error")
    if type(error) is not str:
        return _failed(response)
    _only(response, "error")
    if error.startswith(OTHER):
        return Ended(Raised(OTHER + plain(error.removeprefix(OTHER), 200)))
    if error not in ERRORS:
        kinds = ", ".join(ERRORS)
        raise Unfit(f"there is no error {plain(error, 60)}; there are {kinds}, and `{OTHER}` with a text")
    return Ended(ERRORS[error])


def read_step(response: dict[str, Any], operation: str, begins: bool = False) -> At | Ended | Failed:
    """Read where a caller is held now, or what its operation ended with.

    One that `begins` is not idle.
    """
    if "at" not in response:
        return read_call(response, operation)
    label = response["at"]
    if label is None:
        _only(response, "at")
        if begins:
            raise Unfit("an operation that begins is held before a statement, or ends")
        return IDLE
    _only(response, "at", "writes", "run")
    if type(label) is not str or not (0 < len(label) <= 100 and label.isascii() and label.isprintable()):
        raise Unfit
    writes, run_id = _boolean(response.get("writes")), response.get("run")
    if label == "work" and type(run_id) is str and run_id:
        return At(label, writes, run_id)
    if label == "work" or "run" in response:
        raise Unfit
    return At(label, writes)


def read_statement(response: dict[str, Any], operation: str, begins: bool = False) -> At | Ended | Failed:
    """Read the same of an adapter whose statements are those of the model, with their names."""
    found = read_step(response, operation, begins)
    if isinstance(found, At) and found is not IDLE and operation in PROGRAMS:
        if found.label not in LABELS:
            raise Unfit(f"{found.label} is no statement of the model")
        if found.writes == (found.label in READS):
            raise Unfit(f"in the model {found.label} {'reads' if found.writes else 'writes'}")
    return found


def read_race(response: dict[str, Any], operations: Sequence[str]) -> list[Ended | Failed] | Failed:
    """Read what operations ended with that ran at once."""
    of = response.get("of")
    if type(of) is not list:
        return _failed(response)
    _only(response, "of")
    if len(of) != len(operations) or any(type(one) is not dict for one in of):
        raise Unfit(f"{len(operations)} calls in it, and not as many responses")
    found = [read_call(one, operation) for one, operation in zip(of, operations, strict=True)]
    return next((one for one in found if isinstance(one, Failed)), found)


def _failed(response: dict[str, Any]) -> Failed:
    text = response.get("failed")
    if type(text) is not str:
        raise Unfit
    _only(response, "failed")
    return Failed(text)
