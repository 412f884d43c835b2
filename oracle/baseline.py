"""Known failures: a file names the clauses that an implementation is known to break, each with the reason.

A known failure does not fail a run. One that holds again does, until it is struck from the file: the file
never says more than is true. What the file names and nothing evaluated is not passed over: such a run is
undetermined.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from startonce.model.clauses import CLAUSES
from startonce.model.errors import StartOnceError, shown
from startonce.oracle.columns import clipped, safe
from startonce.oracle.ledger import Verdict
from startonce.oracle.report import Report
from startonce.oracle.tracefile import describe
from startonce.oracle.wire.misbehaviour import plain

VERSION = 1
LARGEST = 1024 * 1024
"""Bytes that a baseline may have."""
LONGEST = 500
"""Characters that a reason is shown with at most."""

Outcome = Literal["holds", "violated", "known", "not applicable", "not checked"]
OUTCOMES: tuple[Outcome, ...] = ("holds", "violated", "known", "not applicable", "not checked")


class BadBaseline(StartOnceError):
    """A baseline that cannot be used; the message names the file and what is wrong in it."""


class Known(NamedTuple):
    """A clause that is known to be violated, and why it stays so."""

    clause: str
    reason: str


class Baseline(NamedTuple):
    """The known failures of an implementation, and the file that they are in, as its user named it."""

    name: str
    known: tuple[Known, ...]


NONE = Baseline("", ())
"""No failure is known."""


class Standing(NamedTuple):
    """A verdict beside the baseline: `known` is the reason given there, or None where it is not named."""

    verdict: Verdict
    outcome: Outcome
    known: str | None

    @property
    def passes_again(self) -> bool:
        """Whether this known failure is none any more: the run fails until the file does not name it."""
        return self.known is not None and self.outcome == "holds"


class Judged(NamedTuple):
    """Every verdict of a report beside a baseline."""

    baseline: Baseline
    clauses: tuple[Standing, ...]

    @property
    def lines(self) -> list[str]:
        """A line for each clause that the baseline names: what has become of it, and what to do."""
        return [note(one, self.baseline) for one in self.clauses if one.known is not None]

    @property
    def counts(self) -> dict[Outcome, int]:
        """How many clauses have each outcome, also those that none has."""
        count = Counter(one.outcome for one in self.clauses)
        return {outcome: count[outcome] for outcome in OUTCOMES}


# --- the file ------------------------------------------------------------------------------------------


def load(path: Path) -> Baseline:
    """Return the baseline in a file. Raises `BadBaseline`."""
    name = safe(str(path))
    try:
        if path.stat().st_size > LARGEST:
            raise BadBaseline(f"{name} is no baseline: it is larger than {LARGEST:,} bytes")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BadBaseline(f"{name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadBaseline(f"{name} is no baseline: it is not UTF-8 text") from error
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except _Twice as error:
        raise BadBaseline(f"{name}: an object has the member {shown(str(error))} twice") from error
    except RecursionError as error:
        raise BadBaseline(f"{name} is no baseline: it is nested too deeply") from error
    except ValueError as error:
        raise BadBaseline(f"{name} is not JSON: {plain(str(error), 100)}") from error
    for why in _wrong(value):
        raise BadBaseline(f"{name}{why}")
    return Baseline(str(path), tuple(Known(one["id"], one["reason"].strip()) for one in value["known"]))


class _Twice(Exception):
    """A JSON object with the same member twice: which one is meant, nobody knows."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for name, times in Counter(name for name, _ in pairs).items():
        if times > 1:
            raise _Twice(name)
    return dict(pairs)


def _wrong(value: Any) -> Iterator[str]:
    """Give what is wrong with the value of a file, to follow its name; nothing where it is a baseline."""
    if not isinstance(value, dict) or value.get("startonce") != "baseline":
        yield ' is no baseline: it must be an object with "startonce": "baseline"'
    elif type(value.get("version")) is not int or value["version"] != VERSION:
        yield f" has version {shown(value.get('version'))}, this is a reader of version {VERSION}"
    elif not isinstance(value.get("known"), list):
        yield ': "known" must be an array of objects with "id" and "reason"'
    else:
        for name in value:
            if name not in ("startonce", "version", "known"):
                yield f": there is no member {shown(name)}"
        told: set[str] = set()
        for number, entry in enumerate(value["known"], 1):
            for why in _wrong_entry(entry, told):
                yield f", entry {number}: {why}"


def _wrong_entry(entry: Any, told: set[str]) -> Iterator[str]:
    if not isinstance(entry, dict) or "id" not in entry:
        yield 'it must be an object with "id" and "reason"'
        return
    clause, reason = entry["id"], entry.get("reason")
    if not isinstance(clause, str) or clause not in CLAUSES:
        yield f"there is no clause {shown(clause)}: `startonce clauses` prints them"
    elif clause in told:
        yield f"{clause} is named twice"
    elif not isinstance(reason, str) or not reason.strip():
        yield f'{clause} has no reason: say in "reason" why this failure stays'
    else:
        told.add(clause)
        for name in entry:
            if name not in ("id", "reason"):
                yield f"{clause} has no member {shown(name)}"


def suggest(report: Report, baseline: Baseline | None = None) -> str:
    """Return the text of a baseline that knows the failures of a run, for a person to give the reasons.

    Reasons that were given before are kept; where there is none, what was seen stands in its place. What
    holds or does not apply is struck; what was not checked stays.
    """
    known = []
    for one in apply(report, baseline).clauses:
        if one.outcome in ("violated", "known") or (one.known and one.outcome == "not checked"):
            known.append({"id": one.verdict.clause, "reason": one.known or _seen(one.verdict)})
    return json.dumps({"startonce": "baseline", "version": VERSION, "known": known}, indent=1) + "\n"


def _seen(verdict: Verdict) -> str:
    found = verdict.divergence
    if found is None:
        return "violated when this file was written"
    last = f"{found.actions[-1].operation} " if found.actions else ""
    expected, observed = (clipped(describe(answer), 80) for answer, _ in (found.expected, found.observed))
    if expected == observed:
        return f"{last}left another table than expected when this file was written"
    return f"{last}answered {observed} instead of {expected} when this file was written"


# --- what it makes of a report -------------------------------------------------------------------------


def apply(report: Report, baseline: Baseline | None = None) -> Judged:
    """Set every verdict of a report beside the baseline; None: no failure is known."""
    baseline = baseline or NONE
    reasons = {one.clause: one.reason for one in baseline.known}
    clauses = []
    for verdict in report.verdicts:
        known = reasons.get(verdict.clause)
        outcome: Outcome = verdict.status
        if outcome == "violated" and known is not None:
            outcome = "known"
        clauses.append(Standing(verdict, outcome, known))
    return Judged(baseline, tuple(clauses))


def note(one: Standing, baseline: Baseline) -> str:
    """Say in one line what has become of a clause that the baseline names."""
    clause, file = one.verdict.clause, safe(baseline.name)
    if one.passes_again:
        return f"{clause} holds again: strike it from {file}, which fails this run until then"
    if one.outcome == "known":
        return f"{clause} is a known failure in {file}: {clipped(one.known or '', LONGEST)}"
    reason = clipped(one.verdict.reason, LONGEST)
    if one.outcome == "not applicable":
        return f"{clause} is a known failure in {file} and does not apply ({reason}): strike it from there"
    return f"{clause} is a known failure in {file} and was not checked: {reason}"


def exit_code(report: Report, baseline: Baseline | None = None, required: Collection[str] = ()) -> int:
    """Return how a run ends: 0 holds, 1 fails, 3 undetermined.

    It fails with a violation that the baseline does not know, or a known failure that holds again. It is
    undetermined if nothing was evaluated, a required clause was not checked, or nothing evaluated a clause
    that the baseline names. A required clause that is known to be violated was checked, and does not fail.
    """
    judged = apply(report, baseline).clauses
    if any(one.outcome == "violated" or one.passes_again for one in judged):
        return 1
    if not any(one.outcome in ("holds", "known") for one in judged):
        return 3
    for one in judged:
        unchecked = one.outcome == "not checked"
        if unchecked and one.verdict.clause in required:
            return 3
        if one.known is not None and (unchecked or one.outcome == "not applicable"):
            return 3
    return 0
