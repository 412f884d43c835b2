"""Every step that a world of starting callers can take: statements, faults, operators, the environment.

`steps(scope)` is the transition system. Each fault spends its budget; a duty that the scope drops adds
what a caller does who does not keep it.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from startonce.model.start import MAY_BE_STALE, PROGRAM, TRANSIENT, Next, Told, land
from startonce.model.world import (
    CANCEL,
    HOST,
    STARTED,
    TERMINAL,
    Budget,
    Caller,
    Event,
    Scope,
    World,
    execute,
    sent,
    settle,
)

Steps = Iterator[tuple[Event, World]]


def first(scope: Scope) -> World:
    """Return the world before anything has happened."""
    callers = (Caller(left=scope.attempts),) * scope.callers
    return World((None,) * scope.keys, (), (), (), False, False, callers, (), None, scope.budget)


def steps(scope: Scope) -> Callable[[World], Steps]:
    """Return the function that gives every step out of a world."""

    def out_of(w: World) -> Steps:
        offered: set[Caller] = set()
        for who, c in enumerate(w.callers):
            if c.at in OVER or (c.at == "idle" and scope.symmetry and c in offered):
                continue
            offered.add(c)
            if c.at == "idle":
                for key in range(scope.keys):
                    yield from _caller(w, who, _begun(c, key), scope)
                continue
            yield from _caller(w, who, c, scope)
            if w.left.crashes:
                yield _crash(w, who, c, scope)
        for place, late in enumerate(w.late):
            if late in w.late[:place]:
                continue
            rest = w._replace(late=w.late[:place] + w.late[place + 1 :])
            event = Event(HOST, late.what, max(late.key, 0), late.run, "lands late")
            yield event, _watched(land(rest, late))
        yield from _environment(w, scope)

    return out_of


OVER = ("over", "crashed")


def quiet(w: World) -> bool:
    """Whether every caller is over or crashed and nothing is on its way: what is now, stays."""
    if w.late:
        return False
    for c in w.callers:  # noqa: SIM110 (a loop takes a third of the time here)
        if c.at not in OVER:
            return False
    return True


def _begun(c: Caller, key: int) -> Caller:
    return c._replace(at="insert", key=key, left=c.left - 1)


def _caller(w: World, who: int, c: Caller, scope: Scope) -> Steps:
    if c.at == "insert" and c.run >= 0:  # sent again under the id that it had
        yield from _statement(w, who, c, scope)
    elif c.at == "insert":
        minted = w._replace(locks=(*w.locks, None), executed=(*w.executed, 0), won=(*w.won, 0))
        yield from _statement(minted, who, c._replace(run=len(w.locks)), scope)
        if "DUT-1" in scope.without:
            for used in range(len(w.locks)):
                yield from _statement(w, who, c._replace(run=used), scope)
    elif c.at == "work":
        after, _ = execute(w, who, c)
        then = c._replace(at="persist" if scope.durable else "let go")
        yield Event(who, "work", c.key, c.run), _on(after, who, c, then)
        if "REL-3" in scope.without:
            yield (
                Event(who, "work", c.key, c.run, "fails, gives the claim back"),
                _on(after, who, c, c._replace(at="release")),
            )
    else:
        yield from _statement(w, who, c, scope)
        if scope.without:
            yield from _undutiful(w, who, c, scope)


def _statement(w: World, who: int, c: Caller, scope: Scope) -> Steps:
    """Run a statement: as it should be, and under each fault that can befall it."""
    statement = (PROGRAM if scope.durable else TRANSIENT)[c.at]
    left = w.left
    after, reply = statement.effect(w, who, c)
    yield _event(_counted(after, c, reply), who, c, "", statement.then(c, reply))
    if not scope.durable and c.at in ("take", "let go"):
        return  # a mutex of the host's own: no statement, and no reply that could be lost
    if w.replica is not None and c.at in MAY_BE_STALE:
        rows, locks = w.replica
        _, old = statement.effect(w._replace(rows=rows, locks=locks), who, c)
        caught_up = w._replace(replica=None)  # it answers one read, and has caught up
        yield _event(caught_up, who, c, "stale", statement.then(c, old))
    if left.unknowns and statement.writes:
        spent = after._replace(left=_less(left, "unknowns"))
        yield _event(_given_up(spent, c), who, c, "reply lost", statement.unknown(c))
        if scope.without or scope.after_unknown:
            yield from _unknown_undutiful(spent, who, c, scope)
    if left.late and statement.writes:
        on_its_way = tuple(sorted((*w.late, sent(who, c))))
        spent = w._replace(left=_less(left, "late"), late=on_its_way)
        yield _event(_given_up(spent, c), who, c, "reply lost, on its way", statement.unknown(c))
        if scope.without or scope.after_unknown:
            yield from _unknown_undutiful(spent, who, c, scope)
    if left.refusals:
        spent = w._replace(left=_less(left, "refusals"))
        fault = "not applied" if statement.writes else "cannot be read"
        yield _event(spent, who, c, fault, statement.refused(c))


def _counted(w: World, c: Caller, reply: object) -> World:
    """Count a claim that was answered True, and one that was given back."""
    if c.at == "claim" and reply is True:
        return _won(w, c, 1)
    return _given_up(w, c) if c.at == "release" and reply is True else w


def _given_up(w: World, c: Caller) -> World:
    """A caller whose release was answered, or lost its reply, holds the claim no more."""
    return _won(w, c, -1) if c.at == "release" else w


def _won(w: World, c: Caller, change: int) -> World:
    return w._replace(won=(*w.won[: c.run], w.won[c.run] + change, *w.won[c.run + 1 :]))


def _event(after: World, who: int, c: Caller, fault: str, then: Next) -> tuple[Event, World]:
    answer, told = then if isinstance(then, Told) else ("", -1)
    return Event(who, c.at, c.key, c.run, fault, answer, told), _on(after, who, c, then)


def _on(w: World, who: int, c: Caller, then: Next) -> World:
    """Put a caller to where it goes on; an answer ends its start."""
    if isinstance(then, Told):
        then = Caller(left=c.left) if c.left else Caller("over")
    return _watched(w._replace(callers=(*w.callers[:who], then, *w.callers[who + 1 :])))


def _watched(w: World) -> World:
    """Note when a closed deployment is drained."""
    drained = w.closed and (w.drained or _is_idle(w))
    return w if drained == w.drained else w._replace(drained=drained)


def _is_idle(w: World) -> bool:
    for row in w.rows:
        if row is not None and row.state is STARTED:
            return False
    for lock in w.locks:  # noqa: SIM110 (a loop takes a third of the time here)
        if lock is not None and lock.holder >= 0 and not lock.ended:
            return False
    return True


def _crash(w: World, who: int, c: Caller, scope: Scope) -> tuple[Event, World]:
    locks = w.locks
    if not scope.durable and c.at in ("work", "let go"):
        locks = (*locks[: c.run], None, *locks[c.run + 1 :])  # a mutex dies with its holder
    callers = (*w.callers[:who], Caller("crashed"), *w.callers[who + 1 :])
    left = w.left._replace(crashes=w.left.crashes - 1)
    after = w._replace(locks=locks, callers=callers, left=left)
    return Event(who, c.at, c.key, c.run, "crashes before it"), _watched(after)


# --- duties that are not kept -------------------------------------------------------------------------


def _undutiful(w: World, who: int, c: Caller, scope: Scope) -> Steps:
    """What a caller does who does not keep a duty."""
    without = scope.without
    if c.at == "claim" and "STA-1" in without:
        yield Event(who, "claim", c.key, c.run, "skips it"), _on(w, who, c, c._replace(at="fence"))
    if c.at == "fence" and "STA-3" in without:
        yield Event(who, "fence", c.key, c.run, "skips it"), _on(w, who, c, c._replace(at="take"))
    if c.at == "holder" and "LCK-4" in without:
        yield Event(who, "holder", c.key, c.run, "skips it"), _on(w, who, c, c._replace(at="work"))
    if c.at == "fence" and "DUT-2" in without:
        for other, idle in enumerate(w.callers):
            if idle.at == "idle":  # a transport delivers the claim to another process as well
                copy = c._replace(left=idle.left - 1)
                event = Event(other, "fence", c.key, c.run, "is dispatched too")
                yield event, _on(_won(w, c, 1), other, copy, copy)
                break


RETRIES: Mapping[str, Callable[[Caller], Next]] = {
    "repeat it": lambda c: c,
    "read and decide": lambda c: c._replace(at="look", after="row"),
    "start over": lambda c: Caller("insert", key=c.key, left=c.left),
    "nothing": lambda c: Told("unknown", c.run),
}
"""What a caller could do whose reply was lost."""


def _unknown_undutiful(w: World, who: int, c: Caller, scope: Scope) -> Steps:
    """What a caller does after a lost reply who does not keep a duty."""
    for statement, retry in scope.after_unknown:
        if c.at == statement:
            after = w if retry == "repeat it" else _given_up(w, c)
            yield _event(after, who, c, f"reply lost: {retry}", RETRIES[retry](c))
    if c.at == "release" and "REL-4" in scope.without:
        yield Event(who, c.at, c.key, c.run, "reply lost, repeats it"), _on(w, who, c, c)
    if c.at == "claim" and "CLM-6" in scope.without:
        then = c._replace(at="fence")
        yield (
            Event(who, c.at, c.key, c.run, "reply lost, takes it for won"),
            _on(_won(w, c, 1), who, c, then),
        )
    if c.at == "take" and "LCK-5" in scope.without:
        yield (
            Event(who, c.at, c.key, c.run, "reply lost, gives up", "retry", c.run),
            _on(w, who, c, Told("retry", c.run)),
        )


# --- what a host, an operator and the environment do ------------------------------------------------------


def _environment(w: World, scope: Scope) -> Steps:
    left = w.left
    if left.flips:
        flipped = w._replace(closed=not w.closed, drained=False, left=_less(left, "flips"))
        yield Event(HOST, "opens the fence" if w.closed else "closes the fence"), _watched(flipped)
    if left.stale and w.replica is None:
        behind = w._replace(replica=(w.rows, w.locks), left=_less(left, "stale"))
        yield Event(HOST, "a replica stays behind"), behind
    if left.purges:
        for key, row in enumerate(w.rows):
            if row is not None and row.state is TERMINAL:
                rows = (*w.rows[:key], None, *w.rows[key + 1 :])
                yield Event(HOST, "purge", key, row.run), w._replace(rows=rows, left=_less(left, "purges"))
    if left.settles:
        for run in range(len(w.locks)):
            if "DUT-3" in scope.without or _is_over(w, run, scope):
                after, _ = settle(w, HOST, Caller(run=run))
                yield Event(HOST, "settle", 0, run), _watched(after._replace(left=_less(left, "settles")))
    if left.cancels and scope.durable:
        for run in range(len(w.locks)):
            yield _operator(w, Caller("cancel: take", run=run), "begins to cancel", _less(left, "cancels"))
    if left.frees and scope.durable:
        for key in range(scope.keys):
            yield _operator(w, Caller("free: look", key=key), "begins to free", _less(left, "frees"))


@cache
def _less(left: Budget, fault: str) -> Budget:
    return left._replace(**{fault: getattr(left, fault) - 1})


def _is_over(w: World, run: int, scope: Scope) -> bool:
    """Whether a host may know that a run is over or can never begin (DUT-3)."""
    lock = w.locks[run]
    if scope.durable:
        return lock is not None and (lock.ended or lock.holder == CANCEL)
    return w.executed[run] > 0 and lock is None


def _operator(w: World, c: Caller, name: str, left: Budget) -> tuple[Event, World]:
    return Event(len(w.callers), name, c.key, c.run), w._replace(callers=(*w.callers, c), left=left)
