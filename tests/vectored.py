"""What the tests of vectors share: the files, what the model does with them, and how a subject plays them."""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from startonce import vectors as generator
from startonce.model.inputs import admissible
from startonce.model.operations import INVALID, Call, Fault, run
from startonce.model.predicates import Step
from startonce.model.reservation import NOTHING, Database
from startonce.oracle.subject import Subject
from startonce.oracle.wire.responses import read_dump
from startonce.oracle.wire.serve import Server

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "vectors"
PAGE = (ROOT / "docs" / "vectors.md").read_text("utf-8")
FILES = [FOLDER / name for name in ("reservations.json", "locks.json", "inputs.json")]
MEMBERS = ("answer", "error", "rows", "locks", "fence")

Json = dict[str, Any]


@cache
def committed() -> tuple[Json, ...]:
    """Every vector in the files."""
    return tuple(one for file in FILES for one in json.loads(file.read_text("utf-8"))["vectors"])


def value(arg: Any) -> Any:
    """An argument as the model has it."""
    if isinstance(arg, list):
        return tuple(map(value, arg))
    return bytes.fromhex(arg["bytes"]) if isinstance(arg, dict) else arg


def database(state: Json, beside: Database) -> Database:
    """The database that a start or a step shows; what it does not show is as it was."""
    shown: Json = {name: state[name] for name in ("rows", "locks", "fence") if name in state}
    found = read_dump(shown, locks="locks" in state, fence="fence" in state)
    assert isinstance(found, Database)
    if "locks" not in state:
        found = found._replace(locks=beside.locks)
    return found if "fence" in state else found._replace(fence_closed=beside.fence_closed)


def called(step: Json) -> Call:
    return Call(step["operation"], tuple(map(value, step["args"])), step["now"])


def replayed(vector: Json) -> Iterator[tuple[Json, Step]]:
    """Each step of a vector beside what the model does with its call, from the start on."""
    db = database(vector["start"], NOTHING)
    for step in vector["steps"]:
        call = called(step)
        after, answer = (
            run(db, call.operation, *call.args, now=call.now) if admissible(call) else (db, INVALID)
        )
        yield step, Step(call, None, Fault.NONE, db, after, answer, db)
        db = after


def everything(some: Iterable[Json]) -> Iterator[tuple[Json, Step]]:
    for vector in some:
        yield from replayed(vector)


def played(some: Iterable[Json], subject: Subject) -> Iterator[tuple[str, Json]]:
    """Play vectors on a subject through the wire's own forms; give each step that goes wrong.

    After one that does, the database is put as it should be.
    """
    server = Server(subject)
    for vector in some:
        server.respond({"do": "put", **vector["start"]})
        for step in vector["steps"]:
            found = {**server.respond({**step, "do": "call"}), **server.respond({"do": "dump"})}
            wanted = {name: step[name] for name in MEMBERS if name in step}
            if json.dumps({name: found.get(name, "-") for name in wanted}) != json.dumps(wanted):
                yield vector["id"], step
                state = {"rows": step["rows"], "locks": step.get("locks", []), "fence": step.get("fence")}
                server.respond({"do": "put", **state})


def fits(vector: Json) -> Json:
    """A vector as it reads from a file, held against the schema."""
    content = {"startonce": "vectors", "version": 1, "vectors": [vector]}
    content = json.loads(json.dumps(content))
    Draft202012Validator(generator.schema()).validate(content)
    found: Json = content["vectors"][0]
    assert set(found["clauses"]) == {c for step in found["steps"] for c in step.get("clauses", ())}
    return found
