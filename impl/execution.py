"""Executing a run: what the work is given, and how what came of it is kept, replayed and settled.

By the time anything here runs the effect may have happened. So whatever goes wrong is either kept as the
run's result or raised as `ResultNotPersisted`, with the result, and nothing is settled.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from startonce.impl import operations as op
from startonce.impl.operations import Operation, T
from startonce.model.errors import (
    NotApplied,
    ResultNotPersisted,
    ResultNotStorable,
    StartOnceError,
    UnknownOutcome,
    Unreadable,
    ValueRefused,
    WorkFailed,
    name_of,
)

TRIES = 3
"""How often a read is read again, or a write that was certainly not applied is sent again."""


class Run(NamedTuple):
    """What the work is given: the key that was sent and the run that it means."""

    key: str
    run_id: str


class Execute(NamedTuple):
    """Asks the driver of a start to do the work, once, now."""

    run: Run


class Done(NamedTuple):
    """The work returned a value."""

    value: Any


class Failed(NamedTuple):
    """The work raised an error."""

    error: Exception


def keep(run_id: str, holder: str, outcome: Done | Failed) -> Operation[Done | Failed]:
    """Keep what the work did in the run's lock; give it back as every replay will see it.

    A value that is no JSON, or more than the database stores, is kept as a failure: the effect has
    happened. Raises `ResultNotPersisted`.
    """
    kept, text = encoded(run_id, outcome)
    try:
        try:
            yield from _persist(run_id, holder, text)
        except ValueRefused as error:
            refused = ResultNotStorable(f"the result of run {run_id} cannot be stored: {error}")
            kept, text = encoded(run_id, Failed(refused))
            yield from _persist(run_id, holder, text)
    except Exception as error:
        cause = outcome.error if isinstance(outcome, Failed) else error
        raise ResultNotPersisted(run_id, text, str(error)) from cause
    return kept


def encoded(run_id: str, outcome: Done | Failed) -> tuple[Done | Failed, str]:
    """Return an outcome as it is replayed, and as the JSON text that is kept."""
    if isinstance(outcome, Done):
        try:
            text = json.dumps({"value": outcome.value}, allow_nan=False)
            return Done(json.loads(text)["value"]), text
        except Exception as error:
            what = _message(error)
            outcome = Failed(ResultNotStorable(f"the work of run {run_id} returned no JSON value: {what}"))
    kind = name_of(outcome.error)
    return outcome, json.dumps({"error": {"kind": kind, "message": _message(outcome.error)}})


def _message(error: Exception) -> str:
    try:
        return str(error)
    except Exception:
        return "(its message cannot be shown)"


def _persist(run_id: str, holder: str, result: str) -> Operation[None]:
    """Keep a result; after an unknown outcome the lock is read, and the write repeated."""
    trouble: StartOnceError = NotApplied("persist", "the database ignores it")
    for _ in range(TRIES):
        try:
            if (yield from op.persist(run_id, holder, result)):
                return
        except ValueRefused:
            raise
        except (NotApplied, UnknownOutcome) as error:
            trouble = error
        lock = yield from patiently(lambda: op.lock_of(run_id))
        if lock is not None and lock.ended and lock.holder == holder and lock.result == result:
            return
        if lock is None or lock.ended or lock.holder != holder:
            raise NotApplied("persist", "the lock was ended or taken by another hand")
    raise trouble


def settle_if_possible(run_id: str, clock: Callable[[], int]) -> Operation[bool]:
    """Settle a run that is over; where it fails, the next caller does it."""
    try:
        yield from op.settle(run_id, clock())
    except (NotApplied, UnknownOutcome):
        return False
    return True


def patiently(read: Callable[[], Operation[T]]) -> Operation[T]:
    """Read again what could not be read, a bounded number of times, then raise."""
    for _ in range(TRIES - 1):
        try:
            return (yield from read())
        except Unreadable:
            continue
    return (yield from read())


_decode = json.JSONDecoder().raw_decode


def value_of(run_id: str, result: str) -> Any:
    """Give back what was persisted: a value, or the failure, raised again."""
    try:
        text = result.strip(" \t\n\r")
        kept, end = _decode(text)  # `json.loads` takes three times as long
        if end < len(text):
            raise ValueError("more than one JSON value")
        if "value" in kept:
            return kept["value"]
        kind, message = kept["error"]["kind"], kept["error"]["message"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise Unreadable("read both", f"the result kept for run {run_id} is not one of ours") from error
    raise WorkFailed(run_id, str(kind), str(message))
