"""The notation of traces: one step a line, with the answer that is right.

    A reserve k1 r1 -> r1 reserved, created      a whole operation of caller A, and its answer
    B reserve k1 r2 | insert                     B is held behind its insert
    B claim k1 r1 | before it writes             B has read what it reads first, and is held there
    B | read back -> r1 reserved, not created    B goes on, here to its end; also `B goes on -> ...`
    A claim k1 r1 (reply lost) -> raised unknown outcome
    A claim k1 r1 @900 -> False                  at this reading of the clock, else 1, 2, 3 and so on
    A crashes, A lands                           its late statement is applied now
    - writes are refused                         and what else befalls everybody: `AROUND`, `SPOILED`
    = k1 r1 started 1 900                        all there is, with or without the times of the rows

Answers are in the words of `oracle/tracefile.py`. A value that is no plain word is a JSON text; `x*201` is
a letter so many times. A trace begins without tables, or with empty ones where its first line says so. Of
whole starts a line is a statement and its run, `A read back r1`; the run that an answer names follows it.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from textwrap import dedent
from typing import Any, NamedTuple

from startonce.model.operations import PROGRAMS, Call, Fault
from startonce.model.reservation import Database
from startonce.model.step import GOES_ON
from startonce.model.world import CANCEL, FREE, HOST, Budget, Event, Scope, World
from startonce.oracle.reports.kinds import Starts

LETTERS = "ABCDEFGH"

BEFORE_IT_WRITES = "before it writes"

AROUND: Mapping[str, str] = {
    "a replica stays behind": "pin",
    "the replica catches up": "unpin",
    "writes are refused": "deny",
    "writes are allowed": "allow",
}
"""What befalls everybody, as an action of `model/interleaving.py`."""

SPOILED: Mapping[str, tuple[str, str]] = {
    "the schema refuses k9": ("refused", "k9"),
    "the schema wants a value that no insert gives": ("wanting", "k9"),
    "our table is a view of one that is missing": ("elsewhere", "k9"),
}
"""What is wrong with the schema, as `Subject.spoil` takes it."""


class Line(NamedTuple):
    """One line of a trace. `do` is an action, or `table` or `spoil`.

    `call` begins an operation; None goes on with the one under way. `statement` is the one that the fault
    befalls, or behind which the caller is held where `expected` says that it goes on.
    """

    text: str
    do: str
    caller: str = ""
    call: Call | None = None
    statement: str = ""
    fault: Fault = Fault.NONE
    expected: str = ""
    args: tuple[str, ...] = ()


_STEP = re.compile(
    r"(?P<caller>[A-H]) (?P<call>[^|(@>]*?)(?:@(?P<now>-?\d+) *)?(?:\| (?P<statement>[a-z ]+?) *)?"
    r"(?:\((?P<fault>[a-z ]+)\) *)?(?:-> (?P<expected>.+))?"
)
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')


def lines(text: str) -> list[str]:
    """Return the lines of a text that is indented as a whole."""
    return [line.rstrip() for line in dedent(text).strip().splitlines()]


def parsed(text: str) -> list[Line]:
    """Return the lines of a trace. Raises `ValueError` for one that cannot be read."""
    found: list[Line] = []
    for line in lines(text):
        found.append(_line(line, 1 + sum(one.call is not None for one in found)))
    return found


def _line(text: str, now: int) -> Line:
    if text.startswith("= "):
        return Line(text, "table", expected=text[2:])
    if text.startswith("- "):
        spoiled = SPOILED.get(text[2:], ())
        return Line(text, "spoil" if spoiled else AROUND[text[2:]], args=spoiled)
    if text[1:] in (" crashes", " lands"):
        return Line(text, text[2:].removesuffix("es").removesuffix("s"), text[0])
    step = _STEP.fullmatch(text)
    if step is None:
        raise ValueError(f"not a line of a trace: {text}")
    words = [word.group() for word in _WORD.finditer(step["call"])]
    operation = "" if words in ([], ["goes", "on"]) else words.pop(0)
    call = None
    statement = step["statement"] or ""
    fault = Fault(step["fault"]) if step["fault"] else Fault.NONE
    if operation:
        args = tuple(_value(operation, word) for word in words)
        call = Call(operation, args, int(step["now"]) if step["now"] else now)
        if fault is not Fault.NONE and not statement:
            (statement,) = PROGRAMS[operation].statements
    if not (step["expected"] or step["statement"]):
        raise ValueError(f"neither held nor answered: {text}")
    return Line(text, "run", step["caller"], call, statement, fault, step["expected"] or GOES_ON)


def _value(operation: str, word: str) -> Any:
    if word.startswith('"'):
        return json.loads(word)
    if word[1:2] == "*":
        return word[0] * int(word[2:])
    if operation in ("purge", "inventory"):
        return None if word == "None" else int(word)
    return word


def table_text(db: Database, times: bool = False) -> str:
    """Say all there is in a database, with or without the times of the rows."""
    if db.rows is None:
        found = ["no table"]
    else:
        found = [
            f"{_short(row.key)} {row.run_id} {row.state}"
            + (f" {row.created_at} {row.updated_at}" if times else "")
            for row in db.rows
        ] or ["no row"]
    for lock in db.locks or ():
        ended = f" ended with {lock.result}" if lock.ended else ""
        found.append(f"lock {lock.run_id} {lock.holder}{ended}")
    if db.fence_closed is not None:
        found.append("fence closed" if db.fence_closed else "fence open")
    return ", ".join(found)


def _short(key: str) -> str:
    return f"{key[0]}*{len(key)}" if len(key) > 20 and len(set(key)) == 1 else key


# --- whole starts -----------------------------------------------------------------------------------------

_EVENT = re.compile(
    r"(?P<who>[A-H-]) (?P<what>[a-z: ]+?)(?: k(?P<key>\d))?(?: r(?P<run>\d))?(?: \((?P<fault>[a-z, ]+)\))?"
    r"(?: -> (?P<answer>[a-z ]+?)(?: r(?P<told>\d))?)?"
)


def events(text: str) -> tuple[tuple[Event, ...], str]:
    """Return the events of a trace of starts, and what is there in the end: its last line."""
    *steps, last = lines(text)
    if not last.startswith("= "):
        raise ValueError(f"the last line must say what is there: {last}")
    return tuple(_event(step) for step in steps), last[2:]


def _event(text: str) -> Event:
    found = _EVENT.fullmatch(text)
    if found is None:
        raise ValueError(f"not a line of a trace of starts: {text}")
    who = HOST if found["who"] == "-" else LETTERS.index(found["who"])
    key, run, told = (int(found[name] or 0) - 1 for name in ("key", "run", "told"))
    return Event(who, found["what"], max(key, 0), run, found["fault"] or "", found["answer"] or "", told)


_SPENDS = {
    "crashes before it": "crashes",
    "reply lost, on its way": "late",
    "not applied": "refusals",
    "cannot be read": "refusals",
    "closes the fence": "flips",
    "opens the fence": "flips",
    "begins to cancel": "cancels",
    "begins to free": "frees",
    "a replica stays behind": "stale",
}


def _spends(event: Event) -> str:
    """Name the fault of the budget that an event is."""
    if event.who == HOST and event.what in ("purge", "settle") and not event.fault:
        return f"{event.what}s"
    spent = _SPENDS.get(event.fault) or _SPENDS.get(event.what, "")
    return spent or ("unknowns" if event.fault.startswith("reply lost") else "")


def scope_of(starts: Starts) -> Scope:
    """Return the smallest scope in which a trace of starts can happen."""
    trace, _ = events(starts.text)
    operators = {event.who for event in trace if event.what.startswith("begins to")}
    callers = {event.who for event in trace if event.who != HOST} - operators
    spent = Counter(_spends(event) for event in trace)
    return Scope(
        callers=len(callers),
        keys=1 + max(event.key for event in trace),
        attempts=starts.attempts,
        budget=Budget(**{kind: spent[kind] for kind in Budget._fields}),
        without=frozenset(starts.without),
    )


def world_text(w: World) -> str:
    """Say what is there in a world of starts: rows, locks, what was executed, and a closed fence."""
    rows = [f"k{n} r{row.run + 1} {row.state}" for n, row in enumerate(w.rows, 1) if row is not None]
    holders = {CANCEL: "cancel", FREE: "free"}
    locks = [
        f"lock r{n} {holders.get(one.holder) or LETTERS[one.holder // 100]}{' ended' if one.ended else ''}"
        for n, one in enumerate(w.locks, 1)
        if one is not None
    ]
    ran = [f"ran r{n}{'' if t == 1 else f' {t} times'}" for n, t in enumerate(w.executed, 1) if t]
    return ", ".join([*(rows or ["no row"]), *locks, *ran, *(["fence closed"] if w.closed else [])])
