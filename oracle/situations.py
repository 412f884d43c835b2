"""In which situation an operation finds the database, in words: what its answer depends on.

Two calls of one operation in the same situation are answered for the same reason. So the situations of an
operation are its kinds of success and of refusal: a claim of a key without a row, of another run's row in
each state, of its own in each. Which of them change something is no matter here.
"""

from collections.abc import Mapping
from typing import Any

from startonce.model.inputs import ALPHABET, RULES, admissible, is_id
from startonce.model.operations import PROGRAMS, Call
from startonce.model.reservation import HOLDER_WORDS, Database, Lock, Reservation, State, inventory

NO_TABLE = "no table"


def situation(db: Database, call: Call) -> str:
    """Say in which situation a call finds a database."""
    operation, args = call.operation, call.args
    if not admissible(call):
        return _refused(operation, args)
    if operation in ("fence", "close_fence", "open_fence"):
        return _FENCE[db.fence_closed]
    if operation in ("lock_of", "persist"):
        return _lock(db, args[0], args[1] if operation == "persist" else "")
    if operation == "cancel":
        return f"{_lock(db, args[0])}; {_rows_of(db, args[0])}"
    if db.rows is None:
        return NO_TABLE
    match operation:
        case "reserve" | "claim" | "release":
            return f"{_row(db.row(args[0]), args[1])}{_beside(db, args[1])}"
        case "settle":
            return f"{_rows_of(db, args[0])}{_beside(db, args[0])}"
        case "take_lock":
            return f"{_row(db.row(args[0]), args[1])}; {_lock(db, args[1], args[2])}"
        case "read":
            row = db.row(args[0])
            return "no row" if row is None else f"{row.state}"
        case "free":
            row = db.row(args[0])
            return "no row" if row is None else f"{row.state}; {_lock(db, row.run_id)}"
        case "for_runs":
            return _named_runs(db, args)
        case "purge":
            return _spent(db, *args)
    return _page(db, *args)


_FENCE: Mapping[bool | None, str] = {None: NO_TABLE, False: "open", True: "closed"}


def _row(row: Reservation | None, run_id: str) -> str:
    if row is None:
        return "no row"
    return f"{row.state}" if row.run_id == run_id else f"{row.state}, of another run"


def _lock(db: Database, run_id: str, holder: str = "") -> str:
    """Say who holds the lock of a run, as seen by a holder, or by nobody in particular."""
    if db.locks is None:
        return "no table of locks"
    lock = db.lock(run_id)
    if lock is None:
        return "nobody holds the lock"
    if lock.holder in HOLDER_WORDS:
        return f"a {lock.holder} holds the lock"
    return f"{_whose(lock, holder)} the lock{' and has ended' if lock.ended else ''}"


def _whose(lock: Lock, holder: str) -> str:
    if not holder:
        return "an execution holds"
    return "this holder has" if lock.holder == holder else "another holder has"


def _beside(db: Database, run_id: str) -> str:
    """Say that there is a lock which must make no difference."""
    return "; its lock is held" if db.lock(run_id) else ""


def _rows_of(db: Database, run_id: str) -> str:
    if db.rows is None:
        return NO_TABLE
    states = [row.state for row in db.rows if row.run_id == run_id]
    return f"rows of the run: {', '.join(sorted(states)) or 'none'}"


def _named_runs(db: Database, run_ids: tuple[str, ...]) -> str:
    if not run_ids:
        return "no run ids"
    found = [row.run_id for row in db.rows or () if row.run_id in run_ids]
    repeat = ", one named twice" if len(set(run_ids)) < len(run_ids) else ""
    return f"runs {len(set(run_ids))}{repeat}; rows {len(found)}, of runs {len(set(found))}"


def _spent(db: Database, horizon: int, limit: int) -> str:
    spent = [row for row in db.rows or () if row.state is State.TERMINAL]
    due = [row for row in spent if row.updated_at < horizon]
    if len(due) > limit:
        last, left = sorted((row.updated_at, row.key) for row in due)[limit - 1 : limit + 1]
        return f"the limit leaves one that is {'as old' if last[0] == left[0] else 'younger'}"
    if due:
        exact = any(row.updated_at == horizon for row in spent)
        return f"{len(due)} due{', one exactly as old as the horizon' if exact else ''}"
    if spent:
        exact = any(row.updated_at == horizon for row in spent)
        return f"spent rows, none due{', one exactly as old as the horizon' if exact else ''}"
    return "no spent row" if db.rows else "no row"


def _page(db: Database, after: Any, limit: int) -> str:
    _, every = inventory(db, None, 2**53)
    _, rest = inventory(db, after, 2**53)
    kinds = ", ".join(sorted({entry.kind for entry in rest[:limit]})) or "nothing"
    begun = "" if after is None else "behind an entry: " if len(rest) < len(every) else "behind nothing: "
    return f"{begun}{kinds}{', and more than the limit' if len(rest) > limit else ''}"


# --- arguments that break their rules ------------------------------------------------------------------


def _refused(operation: str, args: tuple[Any, ...]) -> str:
    names = PROGRAMS[operation].arguments
    if names == ("run_ids",):
        place = next(place for place, value in enumerate(args) if not is_id(value))
        return f"run id {place + 1} of {len(args)}: {_wrong(args[place])}"
    name, value = next(pair for pair in zip(names, args, strict=False) if not RULES[pair[0]](pair[1]))
    if name == "after" and isinstance(value, tuple):
        if len(value) != 2:
            return f"after: a list of {len(value)}"
        part = next(
            part for part in zip(("its key", "its run id"), value, strict=True) if not is_id(part[1])
        )
        return f"after, {part[0]}: {_wrong(part[1])}"
    return f"{name.replace('_', ' ')}: {_wrong(value)}"


_TYPES: Mapping[type, str] = {
    bool: "a boolean",
    bytes: "a byte string",
    float: "a fraction",
    tuple: "a list",
    type(None): "null",
}


def _wrong(value: Any) -> str:
    """Say in what a value is wrong, without showing it."""
    if type(value) is int:
        return "a number" if value > 0 else "not above 0"
    if not isinstance(value, str):
        return _TYPES.get(type(value), "of another kind")
    if value in HOLDER_WORDS:
        return f"the word {value}"
    if not value:
        return "empty"
    odd = next((char for char in value if char not in ALPHABET), None)
    if odd is not None:
        where = "first" if value[0] == odd else "last" if value[-1] == odd else "inside"
        return f"U+{ord(odd):04X} {where}"
    return "a text" if len(value) <= 200 else "too long"
