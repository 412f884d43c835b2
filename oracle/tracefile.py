"""Trace files: an interleaving that anybody can read, draw, and replay.

JSON lines. The first line says what it is and the database that it begins with, then one line per
action, and a last line with the clause, what was expected and what was observed. Without the last line
a file is known to be cut off. The schema is `trace.schema.json`, beside this file.
"""

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from startonce.model.errors import StartOnceError, shown
from startonce.model.interleaving import Action
from startonce.model.operations import Fault, Holding, Raised, Reserved, Stopped
from startonce.model.reservation import Database, Lock, Reservation, State
from startonce.oracle.ledger import Divergence

VERSION = 1
LARGEST = 16 * 1024 * 1024
"""Bytes that a trace file may have."""


class BadTrace(StartOnceError):
    """A trace file that cannot be used; the message names the line."""

    def __init__(self, name: str, line: int, why: str) -> None:
        super().__init__(f"{name}, line {line}: {why}" if line else f"{name}: {why}")
        self.line = line


@cache
def _validator(kind: str) -> Draft202012Validator:
    text = files("startonce.oracle").joinpath("trace.schema.json").read_text("utf-8")
    schema = json.loads(text)
    return Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": schema["$defs"]})


def database_to_json(db: Database) -> dict[str, Any]:
    """Return a database as plain JSON values."""
    return {
        "rows": None if db.rows is None else [list(row) for row in db.rows],
        "locks": None if db.locks is None else [list(lock) for lock in db.locks],
        "fence_closed": db.fence_closed,
    }


def database_from_json(value: dict[str, Any]) -> Database:
    """Return the database that plain JSON values describe."""
    rows, locks = value["rows"], value["locks"]
    return Database(
        None if rows is None else tuple(Reservation(r[0], r[1], State(r[2]), *r[3:]) for r in rows),
        None if locks is None else tuple(Lock(*lock) for lock in locks),
        value["fence_closed"],
    )


def word(text: Any) -> str:
    """Return a text as it is where it is plain ASCII, and shown safely where it is not."""
    return text if isinstance(text, str) and text.isascii() and text.isprintable() else shown(text)


def describe(answer: Any) -> str:
    """Say an answer in a few words, the same for model and subject."""
    match answer:
        case Raised():
            return f"raised {word(answer.error)}"
        case Reserved():
            row = answer.row
            return f"{word(row.run_id)} {row.state}, {'created' if answer.created else 'not created'}"
        case Stopped():
            return word(answer.reason) if answer.done else f"refused: {word(answer.reason)}"
        case Holding():
            return (
                "mine"
                if answer.mine
                else f"held by {shown(answer.holder)}"
                if answer.holder
                else "not held"
            )
        case Reservation():
            return f"{word(answer.key)} {word(answer.run_id)} {answer.state}"
        case tuple():
            return f"[{', '.join(describe(one) for one in answer)}]"
        case str():
            return answer if answer.isascii() and len(answer) < 80 else shown(answer)
        case _:
            return shown(answer)


def to_text(divergence: Divergence, subject: str) -> str:
    """Return a divergence as the text of a trace file."""
    head = {
        "startonce": "trace",
        "version": VERSION,
        "subject": subject,
        "start": database_to_json(divergence.start),
    }
    lines = [head]
    for action in divergence.actions:
        one = action._asdict()
        lines.append({name: value for name, value in one.items() if value not in ("", (), "none")})
    (expected, there), (observed, here) = divergence.expected, divergence.observed
    lines.append(
        {
            "violates": list(divergence.clauses),
            "check": divergence.check,
            "expected": {"answer": describe(expected), "database": database_to_json(there)},
            "observed": {"answer": describe(observed), "database": database_to_json(here)},
        }
    )
    return "".join(json.dumps(line, default=_odd) + "\n" for line in lines)


def _odd(value: Any) -> str:
    return shown(value)


def load(path: Path) -> tuple[Database, tuple[Action, ...], dict[str, Any]]:
    """Return what a trace file begins with, its actions, and its last line. Raises `BadTrace`."""
    name = path.name
    try:
        if path.stat().st_size > LARGEST:
            raise BadTrace(name, 1, f"the file is larger than {LARGEST:,} bytes")
        lines = path.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise BadTrace(name, 1, "not UTF-8 text") from error
    except OSError as error:
        raise BadTrace(name, 0, f"cannot be read: {error.strerror}") from error
    values = [_line(name, number, text) for number, text in enumerate(lines, 1)]
    if not values or "startonce" not in values[0]:
        raise BadTrace(name, 1, 'not a trace: the first line must have "startonce": "trace"')
    if values[0]["version"] != VERSION:
        raise BadTrace(name, 1, f"version {values[0]['version']}, this is a reader of version {VERSION}")
    if len(values) < 2 or "violates" not in values[-1]:
        raise BadTrace(name, len(values), "cut off: the last line must say what the trace violates")
    actions = []
    for number, value in enumerate(values[1:-1], 2):
        if "do" not in value:
            raise BadTrace(name, number, "not an action")
        args = tuple(tuple(arg) if isinstance(arg, list) else arg for arg in value.get("args", ()))
        actions.append(Action(**{**value, "args": args, "fault": Fault(value.get("fault", "none"))}))
    return database_from_json(values[0]["start"]), tuple(actions), values[-1]


def _line(name: str, number: int, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadTrace(name, number, "not a JSON object; the file may be cut off here") from error
    if not isinstance(value, dict):
        raise BadTrace(name, number, "not a JSON object")
    if value.get("startonce") == "trace" and value.get("version") != VERSION:
        raise BadTrace(
            name, number, f"version {shown(value.get('version'))}, this is a reader of version {VERSION}"
        )
    kind = "first" if "startonce" in value else "action" if "do" in value else "last"
    worst = best_match(_validator(kind).iter_errors(value))
    if worst is not None:
        where = "/".join(map(str, worst.absolute_path))
        raise BadTrace(name, number, shown(f"{where}: {worst.message}" if where else worst.message, 160))
    return value
