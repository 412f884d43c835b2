"""The pictures of traces: a divergence, a trace file, and what `startonce explore --json` has written."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from startonce.draw.lanes import Lanes
from startonce.draw.pictures import Picture, lanes_picture
from startonce.draw.start_lanes import NoSuchTrace, start_lanes
from startonce.draw.store_lanes import MOST, Observed, store_lanes
from startonce.draw.text import cut
from startonce.model.clauses import CLAUSES
from startonce.model.errors import shown
from startonce.model.interleaving import Action
from startonce.model.properties import properties
from startonce.model.world import Budget, Event, Scope
from startonce.oracle import tracefile
from startonce.oracle.ledger import Divergence
from startonce.oracle.tracefile import BadTrace, describe

MOST_CALLERS = 9
"""Callers, keys and attempts that a scope has at most."""


def of_file(path: Path) -> Mapping[str, Picture]:
    """Return the pictures of a file by name: one of a trace, and of an exploration one per broken property.

    Raises `BadTrace`.
    """
    name = re.sub(r"[^A-Za-z0-9._-]", "-", path.name.removesuffix(".json")) or "trace"
    explored = _exploration(path)
    if explored is None:
        start, actions, last = tracefile.load(path)
        lanes = _file_lanes(name, start, actions, last)
        return {name: _picture(lanes)}
    found = {}
    for lanes in _explored(path.name, name, explored):
        found[lanes.name] = _picture(lanes)
    if not found:
        raise BadTrace(path.name, 0, "an exploration in which nothing is broken: there is no trace in it")
    return found


def _picture(lanes: Lanes) -> Picture:
    return lanes_picture(lanes.title, lambda: lanes)


# --- traces of the store ----------------------------------------------------------------------------------


def divergence_lanes(divergence: Divergence, name: str = "divergence") -> Lanes:
    """Return a divergence as lanes: what was done, what was expected, what was observed."""
    (expected, there), (observed, here) = divergence.expected, divergence.observed
    return _store(
        name,
        divergence.start,
        divergence.actions,
        divergence.clauses,
        divergence.check,
        (describe(expected), there),
        Observed(describe(observed), here),
    )


def _file_lanes(name: str, start: Any, actions: tuple[Action, ...], last: dict[str, Any]) -> Lanes:
    expected, observed = last["expected"], last["observed"]
    return _store(
        name,
        start,
        actions,
        tuple(last["violates"]),
        last.get("check", ""),
        (expected["answer"], tracefile.database_from_json(expected["database"])),
        Observed(observed["answer"], tracefile.database_from_json(observed["database"])),
    )


def _store(
    name: str,
    start: Any,
    actions: tuple[Action, ...],
    clauses: tuple[str, ...],
    check: str,
    expected: tuple[str, Any],
    observed: Observed,
) -> Lanes:
    known = [CLAUSES[clause].sentence for clause in clauses[:1] if clause in CLAUSES]
    title = f"{', '.join(map(_plain, clauses))} violated{': ' if known else ''}{''.join(known)}"
    captions = [f"Found by {_plain(check)}."] if check else []
    ends = [
        f"Expected: {_plain(expected[0])}; {_rows(expected[1])}.",
        f"Observed: {_plain(observed.answer)}; {_rows(observed.database)}.",
    ]
    short = observed._replace(answer=_plain(observed.answer))
    return store_lanes(start, actions, describe, name, title, captions, ends, short)


def _rows(db: Any) -> str:
    if db.rows is None:
        return "no table"
    said = [f"{_plain(row.key, 16)} {_plain(row.run_id, 16)} {row.state}" for row in db.rows[:MOST]]
    said += ["..."] if len(db.rows) > MOST else []
    said += [
        f"lock {_plain(lock.run_id, 16)} {_plain(lock.holder, 16)}{' ended' if lock.ended else ''}"
        for lock in (db.locks or ())[:MOST]
    ]
    return ", ".join(said) or "no row"


def _plain(text: str, length: int = 80) -> str:
    return cut(text if text.isascii() and text.isprintable() else shown(text, length), length)


# --- traces of starts -------------------------------------------------------------------------------------


def _exploration(path: Path) -> dict[str, Any] | None:
    """Return what an exploration wrote; None where the file is something else."""
    try:
        if path.stat().st_size > tracefile.LARGEST:
            return None
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.get("startonce") != "explore":
        return None
    if value.get("version") != 1:
        raise BadTrace(
            path.name, 0, f"version {shown(value.get('version'))}, this is a reader of version 1"
        )
    return value


def _explored(file: str, name: str, value: dict[str, Any]) -> Iterator[Lanes]:
    """Give the lanes of each broken property of each scope."""
    try:
        scopes = [(one, dict(one["properties"].items())) for one in value["scopes"]]
        traces = [
            (number, one, broken, finding["trace"])
            for number, (one, findings) in enumerate(scopes, 1)
            for broken, finding in findings.items()
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise BadTrace(file, 0, f"not an exploration: {shown(str(error))}") from error
    for number, one, broken, trace in traces:
        if trace is not None:
            yield _explored_lanes(file, f"{name}-{number}-{broken}", _scope(file, one), broken, trace)


def _scope(name: str, value: Any) -> Scope:
    try:
        given = value["scope"]
        numbers = [given[key] for key in ("callers", "keys", "attempts")]
        budget = Budget(**given["budget"])
        if not all(type(n) is int and 1 <= n <= MOST_CALLERS for n in numbers):
            raise ValueError("callers, keys or attempts")
        if not all(type(n) is int and 0 <= n <= MOST_CALLERS for n in budget):
            raise ValueError("budget")
        callers, keys, attempts = numbers
        return Scope(
            callers, keys, attempts, budget, given["lock"] == "durable", frozenset(given["without"])
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadTrace(name, 0, f"no scope of an exploration: {shown(str(error))}") from error


def _explored_lanes(file: str, name: str, scope: Scope, broken: str, trace: Any) -> Lanes:
    known = properties(scope).get(broken)
    words = f"{known.sentence} ({', '.join(known.clauses)})" if known else _plain(broken)
    faults = [f"{n} {kind}" for kind, n in scope.budget._asdict().items() if n]
    without = f", without {', '.join(sorted(scope.without))}" if scope.without else ""
    lock = "durable" if scope.durable else "transient"
    try:
        return start_lanes(
            scope,
            [Event(**event) for event in trace],
            re.sub(r"[^A-Za-z0-9._-]", "-", name),
            f"Broken: {words}",
            [f"With a {lock} lock; faults: {', '.join(faults) or 'none'}{without}. The shortest way."],
            [f'Broken: "{words}".'],
            harm=True,
        )
    except (TypeError, NoSuchTrace) as error:
        raise BadTrace(file, 0, f"no trace of its scope: {shown(str(error), 120)}") from error
