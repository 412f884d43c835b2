"""What is asked of an adapter, as text: a request without its id, which the client puts before it."""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from startonce.model.operations import Call, Fault
from startonce.model.reservation import Database

_surrogate = re.compile("[\ud800-\udfff]").search
_encode = json.JSONEncoder(separators=(",", ":"), default=lambda value: {"bytes": value.hex()}).encode


def request(do: str, **members: Any) -> str:
    """Return a request as text."""
    return _encode({"do": do, **members})


@lru_cache(maxsize=8192)
def put(db: Database, locks: bool, fence: bool) -> str:
    """Return the request that makes the database be this, for an adapter that has locks, a fence."""
    members: dict[str, Any] = {"rows": db.rows}
    if locks:
        members["locks"] = db.locks
    if fence:
        members["fence"] = db.fence_closed
    return request("put", **members)


def call(do: str, call: Call, caller: str | None) -> str:
    """Return the request to `call` or `begin` an operation; no caller is named to who knows but one."""
    return f'{{"do":"{do}",{_called(call, caller)}}}'


def race(calls: Sequence[tuple[str, Call]]) -> str:
    """Return the request to run operations of several callers at once."""
    return (
        f'{{"do":"race","calls":[{",".join([f"{{{_called(call, caller)}}}" for caller, call in calls])}]}}'
    )


def _called(call: Call, caller: str | None) -> str:
    who = f'"caller":"{caller}",' if caller else ""
    return f'{who}"operation":"{call.operation}","args":{_encode(call.args)},"now":{call.now}'


def step(caller: str, fault: Fault) -> str:
    """Return the request to run a caller's next statement."""
    more = "" if fault is Fault.NONE else f',"fault":"{fault}"'
    return f'{{"do":"step","caller":"{caller}"{more}}}'


def carried_by_all(args: Sequence[object]) -> bool:
    """Say whether every language's JSON reader takes some values: not all of them take lone surrogates."""
    return not any(isinstance(value, str) and _surrogate(value) for value in args)
