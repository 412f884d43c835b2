"""Legal orders: histories by hand, the model's own, and the search beside one that tries everything."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from startonce.model.inputs import admissible
from startonce.model.interleaving import Action, World, act
from startonce.model.operations import (
    CREATE,
    INVALID,
    NOT_APPLIED,
    PROGRAMS,
    READS,
    UNKNOWN,
    UNREADABLE,
    VANISHED,
    Call,
    Fault,
    Holding,
    Raised,
    Reserved,
    Stopped,
    land,
    run,
)
from startonce.model.predicates import GOES_ON
from startonce.model.reservation import EMPTY, NOTHING, Database, Lock, Reservation, State
from startonce.oracle.history import Answered, Began, Crashed, Doubted, Event, Gone, History, undated
from startonce.oracle.linear import kept, linearize

A, B, C = 0, 1, 2
R, S, T = State.RESERVED, State.STARTED, State.TERMINAL


def call(operation: str, *args: Any, now: int = 5) -> Call:
    return Call(operation, args, now)


def row(run_id: str = "r1", state: State = R, changed: int = 1, made: int = 1) -> Reservation:
    return Reservation("k1", run_id, state, made, changed)


def table(*rows: Reservation, locks: tuple[Lock, ...] = ()) -> Database:
    return Database(rows, locks)


def lock(holder: str, key: str | None = "k1") -> Lock:
    return Lock("r1", key, holder, False, None, 5)


CLAIM, RELEASE, READ = call("claim", "k1", "r1"), call("release", "k1", "r1"), call("read", "k1")
RESERVE, OTHER = call("reserve", "k1", "r1"), call("reserve", "k1", "r2")
CANCEL, FREE, PURGE = call("cancel", "r1"), call("free", "k1"), call("purge", 100, 10)
NEW = row(changed=5, made=5)


def one(caller: int, what: Call, answer: Any) -> tuple[Event, ...]:
    return (Began(caller, what), Answered(caller, answer))


def together(*some: tuple[Call, Any]) -> History:
    began = [Began(caller, what) for caller, (what, _) in enumerate(some)]
    return (*began, *(Answered(caller, answer) for caller, (_, answer) in enumerate(some)))


LEGAL: dict[str, tuple[History, Database, Database | None]] = {
    "nothing at all": ((), EMPTY, EMPTY),
    "one of two claims wins": (
        together((CLAIM, True), (CLAIM, False)), table(row()), table(row(state=S, changed=5)),
    ),
    "the second claim of two wins": (
        together((CLAIM, False), (CLAIM, True)), table(row()), table(row(state=S, changed=5)),
    ),
    "RSV-3: inserted, claimed by another, read back": (
        (Began(A, RESERVE), *one(B, CLAIM, True), Answered(A, Reserved(NEW._replace(state=S), True))),
        EMPTY, table(NEW._replace(state=S)),
    ),
    "a reserve at one moment, before the claim": (
        (Began(A, RESERVE), *one(B, CLAIM, True), Answered(A, Reserved(NEW, True))),
        EMPTY, None,
    ),
    "both reserves are first callers without a table": (
        together((RESERVE, Reserved(NEW, True)), (OTHER, Reserved(NEW, False))), NOTHING, table(NEW),
    ),
    "RSV-5: purged between insert and read-back": (
        (Began(A, OTHER), *one(B, PURGE, 1), Answered(A, VANISHED)), table(row(state=T)), EMPTY,
    ),
    "a crash that left nothing": ((Began(A, RESERVE), Crashed(A), Gone(A)), EMPTY, EMPTY),
    "a crash that left its insert": ((Began(A, RESERVE), Crashed(A), Gone(A)), EMPTY, table(NEW)),
    "a crash that leaves half a schema": (
        (Began(A, RESERVE), Crashed(A), Gone(A)), NOTHING, Database(None, ()),
    ),
    "what a crashed caller had sent lands later": (
        (Began(A, RESERVE), Crashed(A), *one(B, READ, None), *one(B, READ, NEW)), EMPTY, table(NEW),
    ),
    "a crashed cancel held the lock": (
        (Began(A, CANCEL), Crashed(A), Gone(A)), table(row()), table(row(), locks=(lock("cancel", None),)),
    ),
    "a call under way has done anything of it": ((Began(A, CLAIM),), table(row()), table(row())),
    "a call under way has done all of it": (
        (Began(A, CLAIM),), table(row()), table(row(state=S, changed=5)),
    ),
    "an unknown claim was applied": (
        one(A, CLAIM, UNKNOWN), table(row()), table(row(state=S, changed=5)),
    ),
    "an unknown claim was not applied": (one(A, CLAIM, UNKNOWN), table(row()), table(row())),
    "an unknown claim lands late": (
        (*one(A, CLAIM, UNKNOWN), *one(B, READ, row()), *one(B, CLAIM, False)),
        table(row()), table(row(state=S, changed=5)),
    ),
    "an unknown claim lands too late": (
        (*one(A, CLAIM, UNKNOWN), *one(B, CLAIM, True)), table(row()), table(row(state=S, changed=5)),
    ),
    "a lost release lands after the next claim": (
        (*one(A, RELEASE, UNKNOWN), *one(B, CLAIM, False), *one(C, CLAIM, True)),
        table(row(state=S)), table(row(state=S, changed=5)),
    ),
    "a release that is repeated, and the first one lands late": (
        (*one(A, RELEASE, UNKNOWN), *one(A, RELEASE, True), *one(B, CLAIM, True), *one(C, CLAIM, True)),
        table(row(state=S)), None,
    ),
    "not applied": (one(A, CLAIM, NOT_APPLIED), table(row()), table(row())),
    "a cancel that could not settle": (
        one(A, CANCEL, NOT_APPLIED), table(row()), table(row(), locks=(lock("cancel", None),)),
    ),
    "an insert whose read-back failed": (one(A, RESERVE, UNREADABLE), EMPTY, table(NEW)),
    "a claim that could not read": (one(A, CLAIM, UNREADABLE), table(row()), table(row())),
    "an insert whose reply was lost": (
        (Began(A, RESERVE), Doubted(A), Answered(A, Reserved(NEW, False)), Gone(A)), EMPTY, table(NEW),
    ),
    "an insert that lands after its read-back": (
        (Began(A, RESERVE), Doubted(A), Answered(A, VANISHED), *one(B, READ, NEW)), EMPTY, table(NEW),
    ),
    "an insert that never lands": (
        (Began(A, RESERVE), Doubted(A), Answered(A, VANISHED)), NOTHING, NOTHING,
    ),
    "a lock whose reply was lost is mine": (
        (Began(A, call("take_lock", "k1", "r1", "h1")), Doubted(A), Answered(A, Holding(True, "h1"))),
        table(row(state=S)), table(row(state=S), locks=(lock("h1"),)),
    ),
    "what is no key": (one(A, call("claim", "", "r1"), INVALID), table(row()), table(row())),
    "a free and a delivery": (
        together((FREE, Stopped(True, "freed")), (call("take_lock", "k1", "r1", "h1"), Holding(False, "free"))),
        table(row(state=S)), Database((), (lock("free"),)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEGAL)
def test_is_legal(name: str) -> None:
    history, start, final = LEGAL[name]
    finding = linearize(history, start, final)
    assert finding.legal
    assert finding.place == len(history)
    (order,) = finding.orders
    db = start
    for point in order:
        assert point.step.before == db, "an order is a chain of steps"
        db = point.step.after
    assert final in (None, db)
    assert reference(history, start, final)


Illegal = tuple[History, Database, Database | None, int, str]

ILLEGAL: dict[str, Illegal] = {
    "two claims win": (together((CLAIM, True), (CLAIM, True)), table(row()), None, 3, "CLM-2"),
    "no claim wins": (together((CLAIM, False), (CLAIM, False)), table(row()), None, 3, "CLM-1"),
    "two are told that they created it": (
        together((RESERVE, Reserved(NEW, True)), (OTHER, Reserved(row("r2", R, 5, 5), True))), EMPTY, None, 3, "RSV-3",
    ),
    "created, though it was there": (
        one(A, RESERVE, Reserved(row(), True)), table(row()), None, 1, "RSV-4",
    ),
    "answered as started before anybody claimed": (
        (*one(A, RESERVE, Reserved(NEW._replace(state=S), True)), *one(B, CLAIM, True)), EMPTY, None, 1, "RSV-3",
    ),
    "a claim that is overwritten": (
        together((CLAIM, True), (RELEASE, False)), table(row()), table(row()), 4, "REL-1",
    ),
    "a read finds what is gone": (
        (*one(A, PURGE, 1), *one(B, READ, row(state=T))), table(row(state=T)), None, 3, "RD-3",
    ),
    "nothing of a crashed caller is on its way": (
        (Began(A, RESERVE), Crashed(A), Gone(A), *one(B, READ, None), *one(B, READ, NEW)), EMPTY, None, 6, "RD-3",
    ),
    "nothing of an unknown claim is on its way": (
        (*one(A, CLAIM, UNKNOWN), Gone(A), *one(B, READ, row()), *one(B, CLAIM, False)), table(row()), None, 6, "CLM-1",
    ),
    "an unknown claim is applied once": (
        (*one(A, CLAIM, UNKNOWN), *one(A, RELEASE, True), *one(B, CLAIM, False)), table(row()), None, 5, "CLM-1",
    ),
    "an unknown release is applied once": (
        (*one(A, RELEASE, UNKNOWN), *one(B, CLAIM, True), *one(C, CLAIM, True)), table(row(state=S)), None, 5, "CLM-2",
    ),
    "not applied, and it was": (
        one(A, CLAIM, NOT_APPLIED), table(row()), table(row(state=S, changed=5)), 2, "CLM-1",
    ),
    "the insert was applied, so what failed is no write": (
        one(A, RESERVE, NOT_APPLIED), EMPTY, table(NEW), 2, "RSV-3",
    ),
    "a claim that moved and then could not read": (
        one(A, CLAIM, UNREADABLE), table(row()), table(row(state=S, changed=5)), 2, "CLM-1",
    ),
    "created is in doubt without a reason": (
        one(A, RESERVE, Reserved(NEW, False)), EMPTY, None, 1, "RSV-4",
    ),
    "a claim that is answered without a reply": (
        (Began(A, CLAIM), Doubted(A), Answered(A, False)), table(row()), table(row(state=S, changed=5)), 2, "CLM-3",
    ),
    "a key that is none is not refused": (one(A, call("claim", "", "r1"), False), EMPTY, None, 1, "IN-1"),
    "a key is refused for no reason": (one(A, CLAIM, INVALID), table(row()), None, 1, "CLM-1"),
    "an error of no known kind": (one(A, READ, Raised("ouch")), EMPTY, None, 1, "RD-3"),
    "freed and executing": (
        together((FREE, Stopped(True, "freed")), (call("take_lock", "k1", "r1", "h1"), Holding(True, "h1"))),
        table(row(state=S)), None, 3, "LCK-2",
    ),
    "a settle is counted twice": (
        together((call("settle", "r1"), 1), (call("settle", "r1"), 1)), table(row()), None, 3, "SET-2",
    ),
    "runs are left out": (
        one(A, call("for_runs", "r1"), ()), table(row()), None, 1, "RUN-1",
    ),
    "the inventory is empty": (
        one(A, call("inventory", None, 10), ()), table(row()), None, 1, "INV-1",
    ),
    "the fence is closed for nobody": (one(A, call("fence"), True), EMPTY, None, 1, "RD-2"),
    "a lock is there that nobody took": (one(A, call("lock_of", "r1"), lock("h1")), EMPTY, None, 1, "RD-3"),
    "a cancel whose insert lands late settles nothing": (
        (Began(A, CANCEL), Doubted(A), Answered(A, Stopped(False, "nobody holds its lock"))),
        table(row()), table(row(state=T, changed=5), locks=(lock("cancel", None),)), 3, "DUT-3",
    ),
    "a table that nobody made": ((), EMPTY, table(row()), 0, "RD-1"),
}  # fmt: skip


@pytest.mark.parametrize("name", ILLEGAL)
def test_is_illegal(name: str) -> None:
    history, start, final, place, clause = ILLEGAL[name]
    finding = linearize(history, start, final)
    assert not finding.legal
    assert (finding.place, finding.clauses[0]) == (place, clause), finding.clauses
    assert len(finding.orders) == len(finding.allowed) > 0
    assert not reference(history, start, final)
    assert reference(history[: finding.place], start, None), "the longest beginning is legal"


def test_an_illegal_history_says_what_would_have_been_allowed() -> None:
    finding = linearize(together((CLAIM, True), (CLAIM, True)), table(row()))
    assert finding.allowed == ((False, table(row(state=S, changed=5))),)
    (order,) = finding.orders
    assert [(point.caller, point.step.answer) for point in order] == [(A, True), (B, False)]


def test_every_situation_that_the_longest_orders_lead_to_is_told() -> None:
    second = call("claim", "k1", "r1", now=6)
    finding = linearize((Began(A, CLAIM), Began(B, second), *one(C, READ, None)), table(row()))
    assert {db.rows for _, db in finding.allowed} == {
        (row(),),
        (row(state=S, changed=5),),
        (row(state=S, changed=6),),
    }
    assert {allowed for allowed, _ in finding.allowed} == {
        row(),
        row(state=S, changed=5),
        row(state=S, changed=6),
    }


def test_times_are_compared_unless_they_are_not_asked_for() -> None:
    start, late = table(row()), table(row(state=S, changed=77))
    history = (*one(A, CLAIM, True), *one(B, READ, row(state=S, changed=77)))
    assert not linearize(history, start, late).legal
    assert linearize(history, start, late, timeless=True).legal
    assert not linearize(history, start, table(row(changed=77)), timeless=True).legal


def test_what_is_undated_differs_in_nothing_else() -> None:
    assert undated(Reserved(row(changed=9), True)) == Reserved(Reservation("k1", "r1", R, 0, 0), True)
    assert undated(table(row(), locks=(lock("h"),))).locks == (Lock("r1", "k1", "h", False, None, 0),)
    assert undated((7, "x", None)) == (7, "x", None)


def test_what_is_no_history_is_refused() -> None:
    for event in (Answered(A, True), Crashed(A), Doubted(A)):
        with pytest.raises(ValueError, match="nothing under way at place 2"):
            linearize((*one(A, CLAIM, True), event), table(row()))


def test_the_clauses_of_a_legal_order_are_those_of_its_answers() -> None:
    history = (Began(A, RESERVE), *one(B, CLAIM, True), Answered(A, Reserved(NEW._replace(state=S), True)))
    (order,) = linearize(history, EMPTY).orders
    counted = Counter(kept(history, order))
    assert (counted["RSV-1"], counted["RSV-3"], counted["CLM-1"], counted["CLM-2"]) == (1, 1, 1, 1)
    crashed: History = (Began(A, RESERVE), Crashed(A))
    (order,) = linearize(crashed, EMPTY, table(NEW)).orders
    assert len(order) == 1
    assert list(kept(crashed, order)) == []
    unknown = one(A, CLAIM, UNKNOWN)
    (order,) = linearize(unknown, table(row()), table(row(state=S, changed=5))).orders
    assert "CLM-6" in set(kept(unknown, order))
    (order,) = linearize(unknown, table(row()), table(row())).orders
    assert order == ()


# --- a search that tries everything ----------------------------------------------------------------------


class Known(NamedTuple):
    """A call as the reference knows it: what it heard, and whether its caller waits, is gone, or went on."""

    caller: int
    call: Call
    heard: tuple[Any, ...] = ()
    caller_is: str = "waiting"
    doubt: bool = False


def answer_of(known: Known) -> Any:
    program = PROGRAMS[known.call.operation]
    heard = known.call._replace(heard=known.heard)
    if not admissible(known.call):
        return INVALID
    early = program.early(heard) if known.heard else None
    if early is None and len(known.heard) == len(program.statements):
        return program.answer(heard)
    return GOES_ON if early is None else early


def next_of(known: Known) -> str:
    return tuple(PROGRAMS[known.call.operation].statements)[len(known.heard)]


def may_end(known: Known, answer: Any) -> bool:
    mine = answer_of(known)
    if mine != GOES_ON:
        return bool(mine == answer)
    reads = next_of(known) in READS
    failed = {NOT_APPLIED: not reads, UNREADABLE: reads}
    return answer in failed and (known.heard == () or failed[answer])


def ways(db: Database, known: Known) -> Iterator[tuple[Database, tuple[Known, ...]]]:
    """Give every way in which a call goes on by one statement: the database, and what becomes of the call."""
    program, name = PROGRAMS[known.call.operation], next_of(known)
    after, reply = land(db, known.call._replace(heard=known.heard), name)
    in_doubt = known.doubt and known.caller_is == "waiting" and name in program.resolved
    silent = known._replace(heard=(*known.heard, None))
    if reply is None and name not in READS:
        for create in program.creates:
            yield CREATE[create](db)[0], (known,)
    elif known.caller_is == "went on":
        yield after, ()
    else:
        yield after, (known._replace(heard=(*known.heard, reply)),)
        if in_doubt:
            yield after, (silent,)
    if in_doubt:
        yield db, (silent, known._replace(caller_is="went on"))


def reference(
    history: History, db: Database, final: Database | None, calls: tuple[Known, ...] = ()
) -> bool:
    """Say whether there is a legal order, by trying every one: at each point the next event or a statement."""
    if not history and final in (None, db):
        return True
    for known in calls:
        if answer_of(known) == GOES_ON:
            others = tuple(other for other in calls if other is not known)
            for after, goes_on in ways(db, known):
                changed = after != db or goes_on != (known,)
                if changed and reference(history, after, final, (*others, *goes_on)):
                    return True
    if not history:
        return False
    event, rest = history[0], history[1:]
    if isinstance(event, Began):
        return reference(rest, db, final, (*calls, Known(event.caller, event.call)))
    if isinstance(event, Gone):
        return reference(
            rest, db, final, tuple(k for k in calls if k.caller != event.caller or k.caller_is == "waiting")
        )
    (known,) = (k for k in calls if k.caller == event.caller and k.caller_is == "waiting")
    others = tuple(other for other in calls if other is not known)
    if isinstance(event, Doubted):
        return reference(rest, db, final, (*others, known._replace(doubt=True)))
    gone = known._replace(caller_is="gone")
    if isinstance(event, Crashed):
        return reference(rest, db, final, (*others, gone))
    if event.answer == UNKNOWN and answer_of(known) != INVALID:
        return reference(rest, db, final, (*others, gone))
    return may_end(known, event.answer) and reference(rest, db, final, others)


# --- histories of the model ------------------------------------------------------------------------------

Pick = Callable[[int], int]
"""Pick a number below this one."""

CALLS = (
    RESERVE, OTHER, CLAIM, RELEASE, call("settle", "r1"), READ, PURGE, CANCEL, FREE,
    call("take_lock", "k1", "r1", "h1"), call("take_lock", "k1", "r1", "h2"), call("persist", "r1", "h1", "{}"),
    call("lock_of", "r1"), call("for_runs", "r1", "r2"), call("inventory", None, 10), call("fence"),
    call("close_fence"), call("claim", "k 1", "r1"),
)  # fmt: skip
STARTS = (
    EMPTY, table(row()), table(row(state=S)), table(row(state=T)), table(row("r2")), NOTHING,
    table(row(state=S), locks=(lock("h1"),)), table(row(state=S), locks=(lock("free"),)),
)  # fmt: skip


class Told(NamedTuple):
    """A history that the model itself made."""

    history: History
    start: Database
    final: Database


def told(pick: Pick, callers: int, actions: int, faults: int) -> Told:
    """Let callers of the model act at random, and tell what is seen of them from outside."""
    start = STARTS[pick(len(STARTS))]
    world, history = World(start), list[Event]()
    for now in range(10, 10 + actions):
        caller = pick(callers)
        name = "ABC"[caller]
        under_way = world.call(name)
        kind = pick(10)
        if kind == 0 and under_way is not None and faults:
            world, _ = act(world, Action("crash", name))
            history.append(Crashed(caller))
            faults -= 1
        elif kind == 1 and world.late:
            late = world.late[pick(len(world.late))][0]
            world, _ = act(world, Action("land", late))
            if all(other != late for other, _ in world.late):
                history.append(Gone("ABC".index(late)))
        elif kind == 2 and all(other != name for other, _ in world.late):
            history.append(Gone(caller))
        else:
            begins = under_way is None
            going = CALLS[pick(len(CALLS))]._replace(now=now) if under_way is None else under_way
            fault = (Fault.NONE, Fault.NONE, Fault.NOT_APPLIED, Fault.LOST, Fault.LATE)[pick(5)]
            fault = fault if faults else Fault.NONE
            statement, reads = "", False
            if admissible(going):
                statement, reads = next_statement(world.db, going, pick)
            if reads and fault in (Fault.LOST, Fault.LATE):
                fault = Fault.NOT_APPLIED
            faults -= fault is not Fault.NONE
            history += [Began(caller, going)] if begins else []
            history += [Doubted(caller)] if fault in (Fault.LOST, Fault.LATE) else []
            action = Action("run", name, going.operation, going.args, now, statement, fault)
            world, step = act(world, action)
            assert step is not None
            if step.answer != GOES_ON:
                history.append(Answered(caller, step.answer))
    return Told(tuple(history), start, world.db)


def next_statement(db: Database, going: Call, pick: Pick) -> tuple[str, bool]:
    """Name what a call runs next: what creates its table, where that is missing."""
    program = PROGRAMS[going.operation]
    name = tuple(program.statements)[len(going.heard)]
    if name not in READS and land(db, going, name)[1] is None:
        return program.creates[pick(len(program.creates))], False
    return name, name in READS


def spoiled(pick: Pick, of: Told) -> Told:
    """Change one answer, or the final database."""
    places = [place for place, event in enumerate(of.history) if isinstance(event, Answered)]
    number = pick(len(places) + 1)
    if number == len(places):
        return of._replace(final=STARTS[pick(len(STARTS))])
    place = places[number]
    event = of.history[place]
    assert isinstance(event, Answered)
    changed = Answered(event.caller, another(event.answer, pick))
    return of._replace(history=(*of.history[:place], changed, *of.history[place + 1 :]))


def another(answer: Any, pick: Pick) -> Any:
    match answer:
        case bool():
            return not answer
        case int():
            return answer + 1
        case Reserved():
            return answer._replace(created=not answer.created)
        case Holding():
            return Holding(False, None) if answer.mine else Holding(True, "h1")
        case Stopped():
            return Stopped(not answer.done, "cancelled" if pick(2) else "freed")
        case Reservation():
            return answer._replace(state=S if answer.state is R else R)
    return (NOT_APPLIED, UNREADABLE, UNKNOWN, None, False, True)[pick(6)]


def picking(data: st.DataObject) -> Pick:
    return lambda below: data.draw(st.integers(0, below - 1))


PROPERTY = settings(max_examples=150, deadline=None, derandomize=True, database=None)


@PROPERTY
@given(st.data())
def test_what_the_model_does_is_legal(data: st.DataObject) -> None:
    of = told(picking(data), callers=3, actions=14, faults=3)
    finding = linearize(*of)
    assert finding.legal, finding


@PROPERTY
@given(st.data())
def test_the_search_finds_what_trying_everything_finds(data: st.DataObject) -> None:
    pick = picking(data)
    of = spoiled(pick, told(pick, callers=2 + pick(2), actions=7, faults=1))
    assert linearize(*of).legal == reference(of.history, of.start, of.final)


def test_most_histories_with_one_thing_changed_are_illegal() -> None:
    """And the search says of each what trying everything says."""
    rolled = random.Random(3)
    verdicts = Counter[bool]()
    for _ in range(400):
        of = spoiled(rolled.randrange, told(rolled.randrange, callers=2, actions=7, faults=1))
        legal = linearize(*of).legal
        assert legal == reference(of.history, of.start, of.final), of
        verdicts[legal] += 1
    assert verdicts[False] > 2 * verdicts[True]
    assert verdicts[True] > 40, "some changes are no harm: an unknown outcome may be anything"


def test_what_the_model_answers_alone_is_the_only_legal_answer() -> None:
    for start in STARTS:
        for what in CALLS:
            if not admissible(what):
                continue
            after, answer = run(start, what.operation, *what.args, now=what.now)
            assert linearize(one(A, what, answer), start, after).legal
            for other in {another(answer, (n).__mod__) for n in range(6)}:
                if other not in (UNKNOWN, NOT_APPLIED, UNREADABLE, answer):
                    assert not linearize(one(A, what, other), start, after).legal
