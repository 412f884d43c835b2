"""Broken callers: each a real start that does not keep one duty, as somebody really got it wrong.

The duties of callers cannot be held against a store: what breaks them is not a statement but who sends it,
and when. So each is the real start with one of its statements done in another way, together with a small
scope in which the model knows the shortest way to harm; `startonce.rehearsal` performs that very way.
"""

from collections.abc import Callable, Collection, Generator
from typing import Any, NamedTuple

from startonce.impl import operations as op
from startonce.impl import statements as sql
from startonce.impl.execution import Execute, Failed
from startonce.impl.operations import Operation, Request
from startonce.impl.start import Answer, Fenced, Pending, Retry, Start, start
from startonce.model.errors import UnknownOutcome
from startonce.model.world import Budget, Scope

Mint = Callable[[], str]
Clock = Callable[[], int]


def _settle_what_is_over(run_id: str, clock: Clock) -> Operation[Any]:
    lock = yield from op.lock_of(run_id)
    if lock is not None and (lock.ended or lock.holder == "cancel"):
        yield from op.settle(run_id, clock())


class Starts(NamedTuple):
    """How runs are started: by callers, by what delivers to them, and what their host does beside them.

    `begin` starts a key. `dispatch` is what a transport does that delivers a won claim, of this key and
    run, a second time: None where it does not. `settle` is a host's settle of a run from outside.
    """

    begin: Callable[[str, Mint, Clock], Start] = start
    dispatch: Callable[[str, str, Mint, Clock], Start] | None = None
    settle: Callable[[str, Clock], Operation[Any]] = _settle_what_is_over


DUTIFUL = Starts()
"""Our own starts, which keep every duty."""


class Undutiful(NamedTuple):
    """Starts that break a clause: which, what somebody did, and where the model shows the harm.

    `scope` is a small scope that drops the duty, `breaks` the property that falls in it. Where the scope
    drops none, the start is led along every trace of it, the shortest first, until the property falls or,
    with no property named, until it does what the model does not. `seen` names public reports.
    """

    clause: str
    mistake: str
    scope: Scope
    breaks: str
    starts: Starts
    seen: tuple[str, ...] = ()


# --- a start with a statement done in another way ---------------------------------------------------------

Instead = Callable[[Any, Clock], Generator[Any, Any, Any]]
"""Does a request of a start in another way: gives the reply to it, or the answer that ends the start."""


def asks_for(request: Request | Execute) -> str:
    """Name what a start asks for: its statement, or `execute`."""
    return "execute" if isinstance(request, Execute) else request[0].name


def replacing(begun: Start, names: Collection[str], instead: Instead, clock: Clock) -> Start:
    """Run a start with some of its requests done in another way."""
    try:
        request = next(begun)
        while True:
            try:
                reply = yield from (
                    instead(request, clock) if asks_for(request) in names else _as_it_is(request)
                )
            except Exception as error:
                request = begun.throw(error)
            else:
                if isinstance(reply, Retry | Fenced | Pending):
                    begun.close()
                    break
                request = begun.send(reply)
    except StopIteration as stop:
        reply = stop.value
    ended: Answer | Failed = reply
    return ended


def _as_it_is(request: Any) -> Generator[Any, Any, Any]:
    return (yield request)


def with_(name: str, instead: Instead) -> Starts:
    """Our own starts with one statement done in another way."""
    return Starts(lambda key, mint, clock: replacing(start(key, mint, clock), (name,), instead, clock))


def unsent(reply: Callable[[Any], Any]) -> Instead:
    """Do not send a statement at all, and go on as if this were its reply."""

    def instead(request: Any, clock: Clock) -> Generator[Any, Any, Any]:
        yield from ()
        return reply(request)

    return instead


# --- the mistakes -----------------------------------------------------------------------------------------


def _takes_it_for_won(request: Request, clock: Clock) -> Generator[Any, Any, Any]:
    try:
        return (yield request)
    except UnknownOutcome:
        _, (_, _, run_id) = request
        return [(run_id,)]


def _releases_on_any_failure(request: Execute, clock: Clock) -> Generator[Any, Any, Any]:
    done = yield request
    if isinstance(done, Failed):
        key, run_id = request.run
        released = yield from op.release(key, run_id, clock())
        return Fenced(run_id) if released else Retry(run_id)
    return done


def sends_it_again(request: Request, clock: Clock) -> Generator[Any, Any, Any]:
    """Send a statement again whose reply was lost."""
    try:
        return (yield request)
    except UnknownOutcome:
        return (yield request)


def _gives_up(request: Request, clock: Clock) -> Generator[Any, Any, Any]:
    try:
        return (yield request)
    except UnknownOutcome:
        _, (_, _, _, run_id) = request
        return Retry(run_id)


def _derives_the_run_id(request: Request, clock: Clock) -> Generator[Any, Any, Any]:
    statement, (key, _, *times) = request
    return (yield statement, (key, f"run-of-{key}", *times))


def _does_not_claim_its_own(key: str, mint: Mint, clock: Clock) -> Start:
    created: list[tuple[str]] = []

    def instead(request: Request, clock: Clock) -> Generator[Any, Any, Any]:
        statement, (_, _, run_id, *_) = request
        if statement is sql.INSERT:
            created[:] = yield request
            return created
        return created if created == [(run_id,)] else (yield request)

    begun = start(key, mint, clock)
    return (yield from replacing(begun, ("insert", "claim"), instead, clock))


def _does_not_look_whose_it_is(key: str, mint: Mint, clock: Clock) -> Start:
    mine = ""

    def instead(request: Request, clock: Clock) -> Generator[Any, Any, Any]:
        nonlocal mine
        statement, parameters = request
        if statement is sql.INSERT_LOCK:
            mine = parameters[0]
            return (yield request)
        return [(parameters[0], key, mine, 0, None, clock())]

    begun = start(key, mint, clock)
    return (yield from replacing(begun, ("insert lock", "read holder"), instead, clock))


def _reads_the_fence_first(key: str, mint: Mint, clock: Clock) -> Start:
    seen = yield sql.READ_FENCE, ()
    begun = start(key, mint, clock)
    return (yield from replacing(begun, ("read fence",), unsent(lambda request: seen), clock))


def delivered_again(key: str, run_id: str, mint: Mint, clock: Clock) -> Start:
    """Go on with a claim that somebody won, from the fence on."""
    message = {
        "read both": [(key, run_id, "reserved", clock(), clock(), None, None, None, None)],
        "claim": [(run_id,)],
    }

    def instead(request: Request, clock: Clock) -> Generator[Any, Any, Any]:
        known = message.pop(asks_for(request), None)  # it brings the row and the won claim along, once
        return (yield request) if known is None else known

    return (yield from replacing(start(key, mint, clock), tuple(message), instead, clock))


def _settles_on_a_timeout(run_id: str, clock: Clock) -> Operation[Any]:
    return (yield from op.settle(run_id, clock()))


def _scope(clause: str, callers: int, **budget: int) -> Scope:
    return Scope(callers, budget=Budget(**budget), without=frozenset({clause}))


_BACK = "executed is never reserved"

CALLERS: dict[str, Undutiful] = {
    "an unknown claim taken for won": Undutiful(
        "CLM-6",
        "a caller whose claim lost its reply goes on as its winner",
        _scope("CLM-6", 2, unknowns=1, flips=1),
        _BACK,
        with_("claim", _takes_it_for_won),
        ("B36", "B55"),
    ),
    "release on any failure": Undutiful(
        "REL-3",
        "the way out of the fence serves for work that raised, too",
        _scope("REL-3", 1),
        _BACK,
        with_("execute", _releases_on_any_failure),
        ("B39",),
    ),
    "release repeated after a lost reply": Undutiful(
        "REL-4",
        "a release is taken for idempotent, and sent again by a retry of the driver's",
        _scope("REL-4", 2, unknowns=1, flips=2),
        _BACK,
        with_("release", sends_it_again),
        ("B32", "X01"),
    ),
    "a lock sent is a lock held": Undutiful(
        "LCK-4",
        "the lock is inserted, and nobody looks whose it is",
        _scope("LCK-4", 1, frees=1),
        "freed never executes",
        Starts(_does_not_look_whose_it_is),
        ("B16",),
    ),
    "gives up after an unknown lock": Undutiful(
        "LCK-5",
        "a lost reply to the lock is answered with: come again",
        _scope("LCK-5", 1, unknowns=1),
        "a lock is executed under",
        with_("insert lock", _gives_up),
    ),
    "run id derived from the key": Undutiful(
        "DUT-1",
        "the run id is a function of the key, and comes back after a purge",
        _scope("DUT-1", 2, purges=1),
        _BACK,
        with_("insert", _derives_the_run_id),
        ("B17", "X04"),
    ),
    "a transport that delivers twice": Undutiful(
        "DUT-2",
        "a queue with at-least-once delivery stands between the claim and the fence",
        _scope("DUT-2", 2, flips=1),
        _BACK,
        DUTIFUL._replace(dispatch=delivered_again),
        ("X13",),
    ),
    "a timeout that settles": Undutiful(
        "DUT-3",
        "a run that takes long is settled by its host, which has not seen it end",
        _scope("DUT-3", 1, settles=1),
        "no live run is settled",
        DUTIFUL._replace(settle=_settles_on_a_timeout),
        ("B34", "X06"),
    ),
    "created means mine to start": Undutiful(
        "STA-1",
        "only who finds a row claims it: whoever created it goes on at once",
        _scope("STA-1", 2, flips=1),
        _BACK,
        Starts(_does_not_claim_its_own),
        ("B16", "X07"),
    ),
    "the fence is not read": Undutiful(
        "STA-3",
        "the drain is left to whoever deploys",
        _scope("STA-3", 1, flips=1),
        "drained stays idle",
        with_("read fence", unsent(lambda request: [])),
    ),
    "the fence read before the claim": Undutiful(
        "STA-3",
        "one read at the beginning decides about fence and key together",
        _scope("STA-3", 1, flips=1),
        "drained stays idle",
        Starts(_reads_the_fence_first),
    ),
}
"""Every duty of a caller, broken at least once, under the durable lock that the real starts have."""
