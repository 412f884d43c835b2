"""Asks of a history, what several callers began and were answered, whether it has a legal order.

The callers may run any statements of their own. A history is legal if there is one order in which the
*model's* statements of each operation, run between its beginning and its end, give exactly the answers
that were observed and the table that was left: linearizability, with as many points as the model has
statements. So a `reserve` may be two moments or one, and a claim by read and write is as good as any if
from outside it looks like one moment.

An answer that says nothing must be true as well: *not applied* leaves nothing of the statement that
failed; an *unknown outcome* was applied, or lands at any later time, or never.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from startonce.model.inputs import admissible
from startonce.model.operations import (
    INVALID,
    NOT_APPLIED,
    PROGRAMS,
    READS,
    UNKNOWN,
    UNREADABLE,
    Call,
    Ended,
    Fault,
    advance,
    upcoming,
)
from startonce.model.predicates import GOES_ON, Step, judge
from startonce.model.reservation import Database
from startonce.oracle.edges import BLAME
from startonce.oracle.history import (
    Answered,
    Began,
    Crashed,
    Doubted,
    Event,
    Finding,
    Gone,
    History,
    Order,
    Point,
    undated,
)


class _Running(NamedTuple):
    """A call and how far it is; `answer` is the model's, once its statements have run.

    `left`: its caller has gone on, and *one* statement may land, or is gone, and the *rest* may.
    """

    began: int
    caller: int
    call: Call
    answer: Any = GOES_ON
    doubt: bool = False
    left: str = ""


class _Place(NamedTuple):
    at: int
    db: Database
    calls: tuple[_Running, ...] = ()

    def of(self, caller: int) -> _Running:
        for one in self.calls:
            if one.caller == caller and not one.left:
                return one
        raise ValueError(f"caller {caller} has nothing under way at place {self.at} of the history")

    def to(self, old: _Running, *new: _Running, db: Database | None = None) -> "_Place":
        calls = (*(one for one in self.calls if one is not old), *new)
        return _Place(self.at, self.db if db is None else db, calls)


Move = tuple[_Place, Point | None]


def linearize(
    history: History,
    start: Database,
    final: Database | None = None,
    *,
    timeless: bool = False,
    suspect: int | None = None,
) -> Finding:
    """Search a legal order of a history, from a database to a final one; None: it was not observed.

    `timeless` compares without times, for what takes its own. `suspect` is the caller that moved last, if
    that is not the one of the last event: where the final database cannot be, its clauses are asked first.

    A depth-first search over how far the history is, the database, and how far each call is; no situation
    is looked at twice. A call that never ends may have run any part of its statements. Raises `ValueError`
    for what is no history.
    """
    wanted = undated(final) if timeless else final
    root = _Place(0, start)
    came: dict[_Place, Move | None] = {root: None}
    todo, furthest = [root], 0
    while todo:
        place = todo.pop()
        furthest = max(furthest, place.at)
        if place.at == len(history) and (
            wanted is None or (undated(place.db) if timeless else place.db) == wanted
        ):
            return Finding(True, (_path(place, came),), place.at)
        for then, point in reversed(list(_moves(place, history, timeless))):
            if then not in came:
                came[then] = (place, point)
                todo.append(then)
    event = history[furthest] if furthest < len(history) else None
    stuck = [place for place in came if place.at == furthest and _allowed(place, event) != GOES_ON]
    orders = tuple(_path(place, came) for place in stuck)
    last = history[-1].caller if suspect is None and history else suspect
    found = [
        _wrong_answer(order, place, event)
        if isinstance(event, Answered)
        else _wrong_database(history, order, place, final, last)
        for order, place in zip(orders, stuck, strict=True)
    ]
    always = tuple(clause for clause in found[0] if all(clause in one for one in found))
    allowed = tuple((_allowed(place, event), place.db) for place in stuck)
    return Finding(False, orders, furthest, allowed, always or found[0])


def _path(place: _Place, came: dict[_Place, Move | None]) -> Order:
    points: list[Point] = []
    while (move := came[place]) is not None:
        place, point = move
        points += [] if point is None else [point]
    return tuple(reversed(points))


def _allowed(place: _Place, event: Event | None) -> Any:
    """Return what the model answers where an answer was observed, else None."""
    return place.of(event.caller).answer if isinstance(event, Answered) else None


def _moves(place: _Place, history: History, timeless: bool) -> Iterator[Move]:
    """Give what can come next: the next event, or a statement.

    Before a beginning or a lost reply nothing is run that could not run as well after it.
    """
    event = history[place.at] if place.at < len(history) else None
    then = None if event is None else _after(place, event, timeless)
    if then is not None:
        yield then, None
    hopeless = then is None and isinstance(event, Answered) and _allowed(place, event) != GOES_ON
    if hopeless or isinstance(event, Began | Doubted):
        return
    for one in place.calls:
        if one.answer == GOES_ON:
            yield from _run(place, one)


def _after(place: _Place, event: Event, timeless: bool) -> _Place | None:
    """Return the place after an event, or None where the event cannot happen."""
    at = place.at + 1
    if isinstance(event, Began):
        answer = GOES_ON if admissible(event.call) else INVALID
        one = _Running(place.at, event.caller, event.call, answer)
        return place._replace(at=at, calls=(*place.calls, one))
    if isinstance(event, Gone):
        calls = tuple(one for one in place.calls if one.caller != event.caller or not one.left)
        return place._replace(at=at, calls=calls)
    one, place = place.of(event.caller), place._replace(at=at)
    if isinstance(event, Doubted):
        return place.to(one, one._replace(doubt=True))
    goes_on = one.answer == GOES_ON
    if isinstance(event, Crashed) or (event.answer == UNKNOWN and one.answer != INVALID):
        return place.to(one, one._replace(left="rest")) if goes_on else place.to(one)
    if goes_on and event.answer in (NOT_APPLIED, UNREADABLE):
        fails = UNREADABLE if upcoming(one.call) in READS else NOT_APPLIED
        return place.to(one) if fails == event.answer or not one.call.heard else None
    same = undated(one.answer) == undated(event.answer) if timeless else one.answer == event.answer
    return place.to(one) if same else None


def _run(place: _Place, one: _Running) -> Iterator[Move]:
    """Give every way in which a call can run its next statement, under a lost reply too."""
    db, call, name = place.db, one.call, upcoming(one.call)
    creates: tuple[str, ...] = ()
    if not call.heard and advance(db, call)[1] is call:  # there is no table
        creates = PROGRAMS[call.operation].creates
    ways = [(create, Fault.NONE) for create in creates if advance(db, call, create)[0] != db]
    ways += [] if creates else [(name, Fault.NONE)]
    if one.doubt and not one.left and name in PROGRAMS[call.operation].resolved:
        ways.append((name, Fault.LATE))  # a reply that is lost is one whose statement lands at once
    for statement, fault in ways:
        after, then = advance(db, call, statement, fault)
        if isinstance(then, Ended):
            answer, new = then.answer, [] if one.left else [one._replace(answer=then.answer)]
        else:
            answer, new = GOES_ON, [one._replace(call=then)]
        if one.left == "one" and statement == name:
            new = []
        elif fault is Fault.LATE:
            new.append(one._replace(left="one"))
        step = Step(call, statement, fault, db, after, answer, db)
        yield place.to(one, *new, db=after), Point(one.began, one.caller, step, bool(one.left))


def _wrong_answer(order: Order, place: _Place, event: Answered) -> tuple[str, ...]:
    """Name what an answer breaks that cannot be given after an order."""
    one = place.of(event.caller)
    if one.answer == INVALID:
        return ("IN-1",)
    last = [point.step for point in order if point.began == one.began][-1]
    lost = one.doubt and last.statement not in READS
    step = last._replace(answer=event.answer, fault=Fault.LOST if lost else last.fault)
    return _broken([step])


def _wrong_database(
    history: History, order: Order, place: _Place, final: Database | None, suspect: int | None
) -> tuple[str, ...]:
    """Name what a final database breaks: as if the suspect had made it, or else what wrote before."""
    assert final is not None
    steps = [point.step._replace(after=final) for point in reversed(order)]
    steps.sort(key=lambda step: step.statement in READS)
    for began, event in reversed(list(enumerate(history))):
        if isinstance(event, Began) and event.caller == suspect:
            calls = [one.call for one in place.calls if one.began == began and one.answer == GOES_ON]
            calls += [point.step.call for point in reversed(order) if point.began == began]
            ends = [
                one.answer for one in history[began:] if isinstance(one, Answered) and one.caller == suspect
            ]
            steps.insert(0, _made((*calls, event.call)[0], ends, place.db, final))
            break
    return _broken(steps)


def _made(call: Call, ends: Sequence[Any], before: Database, after: Database) -> Step:
    """Return the step by which a call made a database of another; `ends` is empty or its answer."""
    name = upcoming(call)
    going = GOES_ON if name in PROGRAMS[call.operation].resolved else UNKNOWN
    answer = ends[0] if ends else going
    if answer in (NOT_APPLIED, UNREADABLE):
        fault = Fault.NOT_APPLIED
    else:
        fault = Fault.LOST if answer in (GOES_ON, UNKNOWN) else Fault.NONE
    return Step(call, name, fault, before, after, answer, before)


def _broken(steps: Sequence[Step]) -> tuple[str, ...]:
    """Name the clauses that the first one breaks of some steps; where none breaks any, of its operation."""
    for step in steps:
        broken = dict.fromkeys(clause for clause, kept in judge(step) if not kept)
        if broken:
            return tuple(broken)
    return (BLAME[steps[0].call.operation],) if steps else ("RD-1",)


def kept(history: History, order: Order) -> Iterator[str]:
    """Give the clauses that a legal order evaluates: on statements of operations that have an answer."""
    began: dict[int, int] = {}
    answers: dict[int, Any] = {}
    for at, event in enumerate(history):
        if isinstance(event, Began):
            began[event.caller] = at
        elif isinstance(event, Answered):
            answers[began[event.caller]] = event.answer
    for point in order:
        step, answer = point.step, answers.get(point.began, GOES_ON)
        if answer == UNKNOWN and step.answer != GOES_ON:
            step = step._replace(fault=Fault.LOST, answer=UNKNOWN)
        if answer != GOES_ON:
            yield from (clause for clause, verdict in judge(step) if verdict)
