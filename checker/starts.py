"""Explores starting runs: scopes, verdicts, dropped duties, and every hazard with its shortest trace."""

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import NamedTuple

from startonce.checker.explore import Explored, explore
from startonce.model.faults import first, quiet, steps
from startonce.model.properties import SOMETIMES, properties
from startonce.model.world import STARTED, Budget, Event, Scope, World

Result = Explored[World, Event]
Enough = Callable[[int], bool]

DUTIES = ("CLM-6", "REL-3", "REL-4", "LCK-4", "LCK-5", "DUT-1", "DUT-2", "DUT-3", "STA-1", "STA-3")
"""Duties that a scope can drop."""


SHOWN_BY: dict[str, str] = {
    "CLM-6": "--unknowns 1",
    "REL-3": "",
    "REL-4": "--callers 3 --unknowns 1 --flips 2",
    "LCK-4": "--frees 1",
    "LCK-5": "--unknowns 1",
    "DUT-1": "--purges 1",
    "DUT-2": "--flips 2",
    "DUT-3": "--settles 1",
    "STA-1": "--flips 1",
    "STA-3": "--flips 1",
}
"""For each duty the options of a small scope in which dropping it does harm."""


def never(states: int) -> bool:
    """Let a search go on to its end."""
    return False


def explored(scope: Scope, *, stop_at: Iterable[str] = (), enough: Enough = never) -> Result:
    """Explore a scope and evaluate on every step all the properties that it must keep."""
    checks = {name: one.check for name, one in properties(scope).items()}
    return explore(first(scope), steps(scope), checks, stop_at=stop_at, enough=enough)


def witnesses(scope: Scope, enough: Enough = never) -> dict[str, tuple[Event, ...] | None]:
    """Return for everything that must sometimes come about a shortest way to it, or None."""

    def unseen(check: Callable[[World, Event, World], bool]) -> Callable[[World, Event, World], bool]:
        return lambda w, e, v: not check(w, e, v)

    checks = {name: unseen(check) for name, (_, check) in SOMETIMES.items()}
    found = explore(first(scope), steps(scope), checks, stop_at=SOMETIMES, enough=enough)
    return {name: found.findings[name].trace for name in SOMETIMES}


def pairs(durable: bool, callers: int = 2, attempts: int = 1) -> list[Scope]:
    """Return a scope for every pair of faults that the lock knows, each once, the fence there and back."""
    kinds = [kind for kind in Budget._fields if durable or kind not in ("cancels", "frees")]
    scopes = []
    for pair in combinations(kinds, 2):
        budget = Budget(**{kind: 2 if kind == "flips" else 1 for kind in pair})
        scopes.append(Scope(callers=callers, attempts=attempts, budget=budget, durable=durable))
    return scopes


def singles(durable: bool) -> list[Scope]:
    """Return a scope without faults, and one for every single fault that the lock knows."""
    kinds = sorted({kind for scope in pairs(durable) for kind, n in scope.budget._asdict().items() if n})
    budgets = [Budget(), *(Budget(**{kind: 2 if kind == "flips" else 1}) for kind in kinds)]
    return [Scope(budget=budget, durable=durable) for budget in budgets]


class Hazard(NamedTuple):
    """A way to harm that the protocol really has.

    `scope` is the smallest that shows it, with the duty dropped that prevents it. `broken` is the property
    that the harm breaks under each lock, and `kept` one that holds all the same. A hazard by design breaks
    nothing: `seen` says of a step that it has come about, `leaves` what is left and who can see it.
    """

    id: str
    sentence: str
    prevented_by: str
    scope: Scope
    transient: str = ""
    durable: str = ""
    durable_keeps: str = ""
    seen: Callable[[World, Event, World], bool] | None = None
    leaves: str = ""


def _scope(callers: int, *without: str, **budget: int) -> Scope:
    return Scope(callers=callers, budget=Budget(**budget), without=frozenset(without))


def _finds_no_row(w: World, e: Event, v: World) -> bool:
    return e.what == "read back" and not e.fault and w.rows[e.key] is None


def _stranded(w: World, e: Event, v: World) -> bool:
    rows = [row for row in v.rows if row is not None and row.state is STARTED]
    return quiet(v) and any(not v.executed[row.run] for row in rows)


def _stranded_behind_the_fence(w: World, e: Event, v: World) -> bool:
    return e.what == "release" and e.fault == "crashes before it" and not v.executed[e.run]


HAZARDS: tuple[Hazard, ...] = (
    Hazard(
        "H1",
        "a release repeated after a lost reply undoes another caller's claim",
        "REL-4",
        _scope(3, "REL-4", unknowns=1, flips=2),
        transient="executes once",
        durable="one holder",
        durable_keeps="executes once",
    ),
    Hazard(
        "H2",
        "one claim is dispatched twice",
        "DUT-2",
        _scope(2, "DUT-2", flips=2),
        transient="executes once",
        durable="one holder",
        durable_keeps="executes once",
    ),
    Hazard(
        "H3",
        "a settle for an attempt that was refused ends the run of another caller",
        "DUT-3",
        _scope(2, "DUT-3", settles=1, flips=2),
        transient="no live run is settled",
        durable="no live run is settled",
        durable_keeps="executes once",
    ),
    Hazard(
        "H4",
        "the purge falls between insert and read-back",
        "RSV-5: the caller begins afresh, under a fresh run id",
        _scope(2, purges=1),
        seen=_finds_no_row,
        leaves="no row; the caller itself sees that its read-back found none",
    ),
    Hazard(
        "H5",
        "a run id used again brings back a run that is over",
        "DUT-1",
        _scope(2, "DUT-1", purges=1),
        transient="executes once",
        durable="executed is never reserved",
        durable_keeps="executes once",
    ),
    Hazard(
        "H6",
        "a crash after the claim, or an unknown claim, strands the key",
        "nothing, by design: STA-7, free",
        _scope(1, crashes=1),
        seen=_stranded,
        leaves="the key started and its run unlocked; the inventory lists it as never reached the lock",
    ),
    Hazard(
        "H7",
        "a crash between refusal and release strands the key, though nothing ran",
        "nothing, by design: INV-2, free",
        _scope(1, crashes=1, flips=1),
        seen=_stranded_behind_the_fence,
        leaves="the key started behind a closed fence; the inventory lists it as never reached the lock",
    ),
    Hazard(
        "H8",
        "a run settled from outside between claim and work executes all the same",
        "DUT-3, and LCK-3 where it is settled before the lock",
        _scope(1, "DUT-3", settles=1),
        transient="no settled run begins",
        durable="no settled run begins",
        durable_keeps="executes once",
    ),
    Hazard(
        "H9",
        "the lock is taken, its reply lost: held, and never executed under",
        "LCK-2, LCK-5",
        _scope(1, "LCK-5", unknowns=1),
        durable="a lock is executed under",
        durable_keeps="executes once",
    ),
)


class Shown(NamedTuple):
    """A hazard under one lock: the shortest trace to it, and whether it is as documented."""

    hazard: Hazard
    durable: bool
    broken: str
    trace: tuple[Event, ...]
    as_documented: bool


def show(hazard: Hazard, durable: bool) -> Shown | None:
    """Search the shortest trace to a hazard under one lock; None where it does not concern that lock."""
    scope = hazard.scope._replace(durable=durable)
    if hazard.seen is not None:
        seen = hazard.seen
        found = explore(
            first(scope), steps(scope), {"seen": lambda w, e, v: not seen(w, e, v)}, stop_at=["seen"]
        )
        trace = found.findings["seen"].trace
        return Shown(hazard, durable, "", trace or (), trace is not None)
    broken = hazard.durable if durable else hazard.transient
    if not broken:
        return None
    result = explored(scope)
    trace = result.findings[broken].trace
    keeps = hazard.durable_keeps if durable else ""
    kept = not keeps or result.findings[keeps].trace is None
    prevented = explored(scope._replace(without=frozenset())).findings[broken].trace is None
    return Shown(hazard, durable, broken, trace or (), trace is not None and kept and prevented)


# --- traces in columns ----------------------------------------------------------------------------------


def columns(trace: Iterable[Event]) -> list[str]:
    """Return a trace as lines, with a column for each process and one for what happens around them."""
    events = list(trace)
    names = {who: "ABCDEFGHIJ"[who] for who in sorted({e.who for e in events if e.who >= 0})}
    texts = [event_text(event) for event in events]
    width = max([24, *(len(text) + 2 for text in texts)])
    beside = len(names) * width + 6 <= 100
    lines = []
    if beside:
        lines.append("     " + "".join(f"{name:<{width}}" for name in names.values()).rstrip())
    for number, (event, text) in enumerate(zip(events, texts, strict=True), 1):
        if event.who < 0:
            lines.append(f"{number:>3}  -- {text} --")
        elif beside:
            place = list(names).index(event.who)
            lines.append(f"{number:>3}  {' ' * (place * width)}{text}")
        else:
            lines.append(f"{number:>3}  {names[event.who]}  {text}")
    return lines


def event_text(event: Event) -> str:
    """Say in a few words what happened."""
    text = event.what if event.run < 0 else f"{event.what} r{event.run + 1}"
    if event.fault:
        text += f" ({event.fault})"
    return f"{text}: {event.answer}" if event.answer else text
