"""Broken starts whose callers keep their duties, and two that break more than one.

What follows from the duties and the store is broken here by what a start answers, by what it does with an
answer, or by two mistakes at once.
"""

from collections.abc import Generator
from typing import Any

from startonce.impl import statements as sql
from startonce.impl.start import Pending, Retry, Settled, Start, start
from startonce.model.errors import Unreadable
from startonce.model.world import Budget, Scope
from startonce.oracle.broken.callers import (
    Clock,
    Mint,
    Starts,
    Undutiful,
    delivered_again,
    replacing,
    sends_it_again,
    unsent,
    with_,
)


def _tells_its_own_run(key: str, mint: Mint, clock: Clock) -> Start:
    minted: list[str] = []

    def minting() -> str:
        minted.append(mint())
        return minted[-1]

    answer = yield from start(key, minting, clock)
    return answer._replace(run_id=minted[0]) if minted and isinstance(answer, Pending | Settled) else answer


def _loses_and_asks_no_more(request: Any, clock: Clock) -> Generator[Any, Any, Any]:
    return (yield request) or Retry(None)


def _takes_silence_for_closed(request: Any, clock: Clock) -> Generator[Any, Any, Any]:
    try:
        return (yield request)
    except Unreadable:
        return [(1,)]


def _takes_silence_for_open(request: Any, clock: Clock) -> Generator[Any, Any, Any]:
    try:
        return (yield request)
    except Unreadable:
        return []


def _only_who_created_claims(key: str, mint: Mint, clock: Clock) -> Start:
    created: list[Any] = []

    def instead(request: Any, clock: Clock) -> Generator[Any, Any, Any]:
        statement, parameters = request
        if statement is sql.INSERT:
            created[:] = yield request
            return list(created)
        return (yield request) if created else Pending(parameters[2], clock(), reached_lock=False)

    return (yield from replacing(start(key, mint, clock), ("insert", "claim"), instead, clock))


def _takes_over(key: str, mint: Mint, clock: Clock) -> Start:
    answer = yield from start(key, mint, clock)
    if not isinstance(answer, Pending) or answer.reached_lock:
        return answer
    return (yield from delivered_again(key, answer.run_id, mint, clock))


def _looks_only_at_its_own(begun: Start, clock: Clock) -> Start:
    """Whoever finds a lock there does not look whose it is."""
    sent: list[Any] = []

    def instead(request: Any, clock: Clock) -> Generator[Any, Any, Any]:
        statement, parameters = request
        if statement is sql.INSERT_LOCK:
            taken = yield request
            sent[:] = [taken, parameters[0], parameters[2]]
            return taken
        taken, mine, key = sent
        return (yield request) if taken else [(parameters[0], key, mine, 0, None, clock())]

    return (yield from replacing(begun, ("insert lock", "read holder"), instead, clock))


def _begins(key: str, mint: Mint, clock: Clock) -> Start:
    return (yield from _looks_only_at_its_own(start(key, mint, clock), clock))


def _is_delivered_again(key: str, run_id: str, mint: Mint, clock: Clock) -> Start:
    return (yield from _looks_only_at_its_own(delivered_again(key, run_id, mint, clock), clock))


def _sends_the_release_again(key: str, mint: Mint, clock: Clock) -> Start:
    return (yield from replacing(_begins(key, mint, clock), ("release",), sends_it_again, clock))


def _scope(*without: str, callers: int = 2, **budget: int) -> Scope:
    return Scope(callers, budget=Budget(**budget), without=frozenset(without))


CONSEQUENCES: dict[str, Undutiful] = {
    "tells the run that it proposed": Undutiful(
        "STA-2",
        "the answer is made from what was sent, not from what is there",
        _scope(),
        "told the row's run",
        Starts(_tells_its_own_run),
        ("B19",),
    ),
    "the loser asks no more": Undutiful(
        "STA-2",
        "who loses the claim is told to come again, although the winner is known",
        _scope(),
        "",
        with_("claim", _loses_and_asks_no_more),
        ("B04",),
    ),
    "an unreadable fence is closed": Undutiful(
        "STA-4",
        "a fence that cannot be read gives the claim back, to be on the safe side",
        _scope(callers=1, refusals=1),
        "",
        with_("read fence", _takes_silence_for_closed),
        ("B39",),
    ),
    "refused, and not released": Undutiful(
        "STA-5",
        "the way back from a closed fence is left out",
        _scope(callers=1, flips=1),
        "a refused key can be started",
        with_("release", unsent(lambda request: [(request[1][2],)])),
        ("B38",),
    ),
    "only who created may claim": Undutiful(
        "STA-6",
        "a key that is found is somebody else's business",
        _scope(crashes=1),
        "a reserved key is never waited for",
        Starts(_only_who_created_claims),
        ("B21", "B30"),
    ),
    "takes over what a crash left": Undutiful(
        "STA-7",
        "a caller that has not been heard of is taken for dead",
        _scope(crashes=1),
        "",
        Starts(_takes_over),
        ("B25", "B27"),
    ),
    "delivers twice, and looks at no lock": Undutiful(
        "STA-9",
        "two deliveries of one claim, and a lock that is there is not looked at",
        _scope("DUT-2", "LCK-4"),
        "executes once",
        Starts(_begins, _is_delivered_again),
        ("X13",),
    ),
    "releases twice, and looks at no lock": Undutiful(
        "STA-10",
        "a release sent again, and a lock that is there is not looked at",
        _scope("REL-4", "LCK-4", unknowns=1, flips=2, callers=3),
        "executes once",
        Starts(_sends_the_release_again),
        ("B32",),
    ),
    "an unreadable fence is open": Undutiful(
        "STA-11",
        "a fence that cannot be read lets starts through, so that its outage stops nobody",
        _scope(callers=1, refusals=1, flips=1),
        "drained stays idle",
        with_("read fence", _takes_silence_for_open),
    ),
}
"""What follows from duties and store, broken under the durable lock that the real starts have."""
