"""Every interleaving of a subject's own statements, whatever they are: has each one a legal order?

A few callers, each with an operation or a short sequence of them, are run from a given database in every
order of their statements, with a crash at any point and a fault at any statement. Nothing is asked of how
the subject does it, only whether `linear.py` finds an order of the model's statements that explains the
answers and the table. In the end one more caller and those before work again, so that a lock or a
transaction left open shows.

No state of the subject is kept: a schedule is repeated from `put` and continued. The first ones have no
preemption, crash or fault, the next ones have one, and so on (iterative context bounding). A statement must
not wait for a caller who is held: it is answered as not applied instead.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

from startonce.model.interleaving import Action, Do
from startonce.model.operations import Call, Ended, Fault
from startonce.model.predicates import GOES_ON
from startonce.model.reservation import Database
from startonce.oracle.history import Answered, Began
from startonce.oracle.ledger import Divergence, Ledger
from startonce.oracle.linear import kept
from startonce.oracle.stage import LETTERS, Impossible, Repeated, Stage, repeat
from startonce.oracle.subject import FAULTS, Subject

CHECK, RACES = "interleavings", "races"
RACE = "race"
"""The capability of a subject whose `race(calls)` runs operations of several callers truly at once."""
LIMIT = 1_000
"""Schedules that are executed of one scenario, those with the fewest preemptions first."""
PATIENCE = 20
"""Statements in a row after which another caller has its turn."""


class Scenario(NamedTuple):
    """A database, and the operations of each caller, one after another.

    `disturbed`: also with a crash at each point and, where the subject has them, a fault at each statement.
    """

    start: Database
    calls: tuple[tuple[Call, ...], ...]
    disturbed: bool = False


class Explored(NamedTuple):
    """What was executed and found.

    `preempted` schedules held a caller while another one ran. `silent` answers said nothing (not applied,
    unknown, unreadable) though no fault befell them. `untaken` schedules ended at a fault that the subject
    did not accept, or did not repeat. `cut` scenarios have more schedules than the limit. `found` has one
    divergence for each set of clauses, those with the fewest actions first.
    """

    scenarios: int
    executed: int
    preempted: int
    silent: int
    untaken: int
    cut: int
    found: tuple[tuple[Divergence, Repeated], ...]


# --- one schedule ----------------------------------------------------------------------------------------


class Choice(NamedTuple):
    """What comes next: a caller runs a statement, crashes, or has its late statement land."""

    do: Do
    caller: int
    fault: Fault = Fault.NONE


Schedule = tuple[Choice, ...]


class _Walk:
    """One schedule: it begins as it must and goes on with as few preemptions as it can.

    `others` are the schedules that part from it after its forced part, each with what it costs: one for
    each preemption, crash, fault and landing.
    """

    def __init__(self, subject: Subject, scenario: Scenario, forced: Schedule) -> None:
        self.stage = Stage(subject, scenario.start)
        self.others: list[tuple[int, Schedule]] = []
        self.preempted = False
        self._faults = FAULTS in subject.capabilities
        self._calm = scenario.disturbed  # nothing has happened yet of what may happen once
        self._left = [list(calls) for calls in scenario.calls]  # the first one may be under way
        self._taken: list[Choice] = []
        self._cost = self._row = 0
        self._last = -1
        try:
            for number, choice in enumerate(forced, 1):
                self._take(choice, fresh=number == len(forced))
            while (following := self._next()) is not None:
                self._take(following, fresh=True)
            self.stage.again(len(self._left))
        except BaseException:
            self.stage.close()
            raise

    def _next(self) -> Choice | None:
        """Return what comes next by itself, or None at the end; note what could come instead."""
        ready = [caller for caller, calls in enumerate(self._left) if calls]
        ready.sort(key=lambda caller: (caller == self._last) == (self._row >= PATIENCE))
        found = [Choice("run", caller) for caller in ready]
        first, found = (found[0], found[1:]) if found else (None, found)
        found += [Choice("land", caller) for caller, _ in self.stage.late]
        found += [Choice("crash", caller) for caller in sorted(self.stage.held) if self._calm]
        taken = tuple(self._taken)
        self.others += [(self._cost + self._price(choice), (*taken, choice)) for choice in found]
        return first

    def _price(self, choice: Choice) -> int:
        preempts = choice.do == "run" and self._last in self.stage.held and choice.caller != self._last
        return preempts + (choice.do != "run") + (choice.fault is not Fault.NONE)

    def _take(self, choice: Choice, fresh: bool) -> None:
        do, caller, fault = choice
        price, taken, stage, left = self._price(choice), tuple(self._taken), self.stage, self._left[caller]
        self._cost += price
        if do == "run":
            if not left:
                raise Impossible(f"{LETTERS[caller]} is over: this does not repeat")
            self.preempted |= price > (fault is not Fault.NONE)
            self._row = self._row + 1 if caller == self._last else 1
            self._last = caller
            faults = stage.run(caller, left[0], fault)
            if caller not in stage.held:
                left.pop(0)
            if fresh and fault is Fault.NONE and self._calm and self._faults:
                self.others += [(self._cost + 1, (*taken, choice._replace(fault=one))) for one in faults]
        elif do == "crash":
            stage.crash(caller)
            left.clear()
        else:
            stage.land(caller)
        self._calm = self._calm and do != "crash" and fault is Fault.NONE
        self._taken.append(choice)


# --- all of them -----------------------------------------------------------------------------------------


class _Tally:
    """Judges histories, each different one once, and collects what is found."""

    def __init__(self, subject: Subject, check: str, timeless: bool) -> None:
        self.subject = subject
        self.check = check
        self.timeless = timeless
        self.count: Counter[str] = Counter()
        self.found: dict[tuple[str, ...], tuple[Divergence, Repeated]] = {}
        self._judged: dict[tuple[Any, ...], tuple[bool, tuple[str, ...]]] = {}
        self._legal: Counter[tuple[Any, ...]] = Counter()
        self._tried: dict[tuple[Any, ...], tuple[int, int]] = {}

    def judge(self, stage: Stage) -> None:
        """Ask of what happened on a stage whether it is legal."""
        self.count.update(executed=1, silent=stage.silent)
        history, final = tuple(stage.history), self.subject.dump()
        seen = (stage.start, history, final)
        if seen not in self._judged:
            finding = stage.judge(final, timeless=self.timeless)
            order = tuple(point for point in finding.orders[0] if point.began < stage.main)
            clauses = tuple(kept(history, order)) if finding.legal else finding.clauses
            self._judged[seen] = (finding.legal, clauses)
        legal, clauses = self._judged[seen]
        if legal:
            self._legal[seen] += 1
            return
        calls = tuple(event.call for event in history if isinstance(event, Began))
        size, tried = _size(stage.actions), self._tried.get((stage.start, calls, clauses))
        if tried is None or size < tried:
            self._tried[stage.start, calls, clauses] = size
            self._note(stage.start, *self._shortest(stage, final))

    def _shortest(self, stage: Stage, final: Database) -> tuple[str, tuple[Action, ...], Repeated]:
        """Return the shortest beginning of what happened that is no more legal when it is repeated."""
        actions = tuple(stage.actions)
        for number in range(1, len(actions) + 1 if self.check == CHECK else 1):
            again = repeat(self.subject, stage.start, actions[:number], timeless=self.timeless)
            if not again.finding.legal:
                return self.check, actions[:number], again
        check = f"{self.check}, does not repeat" if self.check == CHECK else self.check
        finding = stage.judge(final, timeless=self.timeless)
        return check, actions, Repeated(tuple(stage.history), (stage.start, final), finding)

    def _note(self, start: Database, check: str, actions: tuple[Action, ...], seen: Repeated) -> None:
        known = self.found.get(seen.finding.clauses)
        if known is None or _size(actions) < _size(known[0].actions):
            self.found[seen.finding.clauses] = (divergence_of(check, start, actions, seen), seen)

    def conclude(self, ledger: Ledger, scenarios: int) -> Explored:
        """Tell the ledger, and give what was executed and found."""
        for seen, times in self._legal.items():
            ledger.count(self._judged[seen][1], self.check, times)
        found = sorted(self.found.values(), key=lambda one: _size(one[0].actions))
        for divergence, _ in found:
            ledger.violated(divergence)
        return Explored(
            scenarios=scenarios,
            executed=self.count["executed"],
            preempted=self.count["preempted"],
            silent=self.count["silent"],
            untaken=self.count["untaken"],
            cut=self.count["cut"],
            found=tuple(found),
        )


def _size(actions: Sequence[Action]) -> tuple[int, int]:
    """Return how many actions there are, and how many of them are no plain statements."""
    return len(actions), sum(action.do != "run" or action.fault is not Fault.NONE for action in actions)


def divergence_of(check: str, start: Database, actions: tuple[Action, ...], seen: Repeated) -> Divergence:
    """Return what was seen of some actions, and is not legal, as a divergence."""
    finding, history = seen.finding, seen.history
    final = next(db for db in reversed(seen.databases) if db is not None)
    answer, database = finding.allowed[0]
    if finding.place < len(history):
        event = history[finding.place]
        observed = event.answer if isinstance(event, Answered) else GOES_ON
    else:  # it is the database that is wrong
        answers = [event.answer for event in history if isinstance(event, Answered)]
        answer = observed = answers[-1] if answers else GOES_ON
    expected, seen_after = (answer, database), seen.databases[1:]
    return Divergence(finding.clauses, check, start, actions, expected, (observed, final), seen_after)


def explore(
    subject: Subject,
    ledger: Ledger,
    scenarios: Sequence[Scenario],
    *,
    limit: int = LIMIT,
    timeless: bool = False,
    progress: Callable[[int], None] = lambda schedules: None,
) -> Explored:
    """Execute every schedule of some scenarios and ask of each whether it is legal.

    `timeless`: the subject takes its own times, which are not compared.
    """
    tally = _Tally(subject, CHECK, timeless)
    for scenario in scenarios:
        todo: list[tuple[int, int, Schedule]] = [(0, 0, ())]
        number = executed = 0
        while todo and executed < limit:
            _, _, schedule = heappop(todo)
            try:
                walk = _Walk(subject, scenario, schedule)
            except Impossible:
                tally.count["untaken"] += 1
                continue
            executed += 1
            tally.count["preempted"] += walk.preempted
            tally.judge(walk.stage)
            for cost, other in walk.others:
                number += 1
                heappush(todo, (cost, number, other))
        tally.count["cut"] += bool(todo)
        progress(executed)
    return tally.conclude(ledger, len(scenarios))


def race(
    subject: Subject,
    ledger: Ledger,
    scenarios: Sequence[Scenario],
    *,
    times: int = 10,
    timeless: bool = False,
) -> Explored | None:
    """Run the callers of each scenario truly at once, so many times; None for a subject that cannot.

    Of sequences the first operations. Whatever order the subject's statements had is not known and not
    controlled: a race that is lost once in a million is not seen here.
    """
    if RACE not in subject.capabilities:
        return None
    racing: Callable[[Sequence[tuple[int, Call]]], Sequence[Ended]] = subject.race  # type: ignore[attr-defined]
    tally = _Tally(subject, RACES, timeless)
    for scenario in scenarios:
        calls = [(caller, some[0]) for caller, some in enumerate(scenario.calls)]
        for _ in range(times):
            stage = Stage(subject, scenario.start)
            stage.raced(calls, racing(calls))
            stage.again(len(calls))
            tally.judge(stage)
    return tally.conclude(ledger, len(scenarios))
