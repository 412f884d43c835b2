"""A report as JSON lines: what was asked, each scope, the machine, each clause, and a last line.

Without the last line a file is known to be cut off, and `load` refuses it. The schema is
`conform.schema.json`, beside this file. Texts are as they came, in JSON strings of ASCII characters: show
them with care.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from startonce.model.clauses import CLAUSES
from startonce.model.errors import StartOnceError, shown
from startonce.oracle.baseline import Judged, Standing
from startonce.oracle.explained import repeats
from startonce.oracle.report import MachineRun, Report, divergence_to_json
from startonce.oracle.wire.handshake import About
from startonce.oracle.wire.misbehaviour import plain

VERSION = 1
LARGEST = 64 * 1024 * 1024
"""Bytes that a file may have to be read."""


class BadReport(StartOnceError):
    """A file of JSON lines that is no report of `startonce conform`; the message names the line."""

    def __init__(self, name: str, line: int, why: str) -> None:
        name = plain(name, 200)
        super().__init__(f"{name}, line {line}: {why}" if line else f"{name}: {why}")
        self.line = line


class CutOff(BadReport):
    """A report without its last line: it ends before the run did, and nothing follows from it."""

    def __init__(self, name: str, line: int) -> None:
        super().__init__(
            name,
            line,
            'cut off: the last line must be the one with "end": true, which says how the run ended',
        )


class Lines(NamedTuple):
    """The lines of a report, as JSON values. `machine` is None where it did not run."""

    head: dict[str, Any]
    scopes: tuple[dict[str, Any], ...]
    machine: dict[str, Any] | None
    clauses: tuple[dict[str, Any], ...]
    end: dict[str, Any]


# --- writing -------------------------------------------------------------------------------------------


def to_text(
    report: Report, facts: Mapping[str, Any] | None, command: Sequence[str], judged: Judged, code: int
) -> str:
    """Return a report as the text of a file.

    `facts` are what the adapter says of itself, None where there is none; `judged` is the report beside a
    baseline; `code` is the exit code of the run.
    """
    lines: list[dict[str, Any]] = [
        {
            "startonce": "conform",
            "version": VERSION,
            "subject": report.subject,
            "adapter": facts,
            "tools": report.tools,
            "seed": report.seed,
            "command": list(command),
            "baseline": judged.baseline.name or None,
        },
        *({"scope": scope.name, **_without(scope._asdict(), "name")} for scope in report.walked),
        {"machine": report.machine and _machine(report.machine)},
        *map(_clause, judged.clauses),
        {"end": True, "counts": judged.counts, "seconds": round(report.seconds, 1), "exit": code},
    ]
    return "".join(json.dumps(_clean(line), allow_nan=False) + "\n" for line in lines)


def facts_of(about: About) -> dict[str, Any]:
    """Return what an adapter says of itself as JSON values."""
    return {
        "implementation": about.implementation,
        "language": about.language,
        "version": about.version,
        "homepage": about.homepage,
        "database": about.database,
        "capabilities": sorted(about.capabilities),
        "parameter_limit": about.parameter_limit,
    }


def _machine(run: MachineRun) -> dict[str, Any]:
    return {
        "examples": run.examples,
        "steps": run.steps,
        "faults": round(run.faults, 4),
        "share": round(run.share, 4),
        "steps_per_second": round(run.steps_per_second),
    }


def _clause(one: Standing) -> dict[str, Any]:
    verdict, clause = one.verdict, CLAUSES[one.verdict.clause]
    found = verdict.divergence
    return {
        "id": clause.id,
        "kind": clause.kind,
        "sentence": clause.sentence,
        "verdict": one.outcome,
        "evaluated": verdict.evaluated,
        "checks": list(verdict.checks),
        "reason": verdict.reason or None,
        "known": one.known,
        "divergence": found and {**divergence_to_json(found), "repeats": repeats(found)},
    }


def _without(values: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}


def _clean(value: Any) -> Any:
    """Return a value as JSON that every reader takes: no lone surrogates, no infinity, nothing odd."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {str(name): _clean(one) for name, one in value.items()}
        case list() | tuple():
            return [_clean(one) for one in value]
        case bool() | None:
            return value
        case int() if value.bit_length() <= 200:
            return value
        case float() if math.isfinite(value):
            return value
    return shown(value)


# --- reading -------------------------------------------------------------------------------------------


def load(path: Path) -> Lines:
    """Return the lines of a report. Raises `CutOff` for one without its last line, and `BadReport`."""
    name = path.name
    try:
        if path.stat().st_size > LARGEST:
            raise BadReport(name, 0, f"the file is larger than {LARGEST:,} bytes")
        texts = path.read_bytes().decode("utf-8").split("\n")
    except OSError as error:
        raise BadReport(name, 0, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadReport(name, 0, "not UTF-8 text") from error
    if texts[-1] == "":
        texts.pop()
    if not texts:
        raise CutOff(name, 0)
    values = [_decoded(text) for text in texts]
    head = values[0]
    if head is None or head.get("startonce") != "conform":
        raise BadReport(name, 1, 'no report: the first line must have "startonce": "conform"')
    if type(head.get("version")) is not int or head["version"] != VERSION:
        version = shown(head.get("version"))
        raise BadReport(name, 1, f"version {version}, this is a reader of version {VERSION}")
    if values[-1] is None or "end" not in values[-1]:
        raise CutOff(name, len(values))
    lines = [_fitting(name, number, value) for number, value in enumerate(values, 1)]
    _in_order(name, [kind for kind, _ in lines])
    of = {kind: tuple(value for one, value in lines if one == kind) for kind in KINDS}
    (end,), (machine,) = of["end"], of["machine"]
    counts = Counter(clause["verdict"] for clause in of["clause"])
    if counts != Counter(end["counts"]):
        told, there = sum(end["counts"].values()), len(of["clause"])
        raise BadReport(name, len(values), f"it counts other verdicts than there are: {told} and {there}")
    return Lines(head, of["scope"], machine["machine"], of["clause"], end)


KINDS = {"head": "startonce", "scope": "scope", "machine": "machine", "clause": "id", "end": "end"}
"""The kinds of line in their order, and the member by which each is known."""


def _decoded(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _fitting(name: str, number: int, value: dict[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """Return the kind of a line that fits the schema, and its value."""
    if value is None:
        raise BadReport(name, number, "not a JSON object")
    kind = next((kind for kind, member in KINDS.items() if member in value), None)
    if kind is None:
        raise BadReport(name, number, f"no line of a report: it has none of {', '.join(KINDS.values())}")
    worst = best_match(_validator(kind).iter_errors(value))
    if worst is not None:
        where = "/".join(map(str, worst.absolute_path))
        raise BadReport(name, number, plain(f"{where}: {worst.message}" if where else worst.message, 200))
    return kind, value


def _in_order(name: str, kinds: list[str]) -> None:
    text = "".join(kind[0] for kind in kinds)
    found = re.match("hs*mc*e", text)
    if found is None or found.end() != len(text):
        raise BadReport(
            name, 0, f"its lines are not in the order {', '.join(KINDS)}, with one head and end"
        )


@cache
def _validator(kind: str) -> Draft202012Validator:
    text = files("startonce.oracle").joinpath("conform.schema.json").read_text("utf-8")
    return Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": json.loads(text)["$defs"]})
