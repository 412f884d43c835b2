"""A subject with several callers on it, each held between statements of the subject's own.

What is done becomes actions, as a trace file holds them, with the subject's own names of its statements;
what is seen becomes a history.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from startonce.model.errors import StartOnceError
from startonce.model.interleaving import Action
from startonce.model.operations import (
    NOT_APPLIED,
    PROGRAMS,
    READS,
    UNKNOWN,
    UNREADABLE,
    Call,
    Ended,
    Fault,
    Raised,
)
from startonce.model.reservation import Database
from startonce.oracle.history import Answered, Began, Crashed, Doubted, Event, Finding, Gone, History
from startonce.oracle.linear import linearize
from startonce.oracle.subject import Held, Subject

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SILENT = (UNKNOWN, NOT_APPLIED, UNREADABLE)
"""Answers that say nothing of what is in the database."""
WRITES = {name for p in PROGRAMS.values() for name in (*p.creates, *p.statements)} - READS
AGAIN, LATER = ("again", "again"), 900
"""The key and the run id of those who work again in the end, and their clock reading."""
ENDLESS = 500
"""Statements after which an operation is taken for one that never ends."""


class Impossible(Exception):
    """What cannot be done: a fault that a statement cannot have, or a step of nobody."""


class Stage:
    """A subject with its callers, from a database that is put; what was done and seen so far.

    `silent` answers said nothing though no fault befell them. `main` is where in the history the callers
    were done and began to work again.
    """

    def __init__(self, subject: Subject, start: Database) -> None:
        self.subject = subject
        self.start = start
        self.begin: Callable[[int, Call], Held] = getattr(subject, "hold", subject.begin)
        self.history: list[Event] = []
        self.actions: list[Action] = []
        self.held: dict[int, Held] = {}
        self.late: list[tuple[int, Held]] = []
        self.main = self.silent = 0
        self._calls: dict[int, Call] = {}
        self._alone: set[int] = set()  # since they began
        self._faulted: set[int] = set()
        subject.put(start)

    def run(self, caller: int, call: Call, fault: Fault = Fault.NONE) -> tuple[Fault, ...]:
        """Run a caller's next statement, beginning the call if it is idle; give the faults it could have.

        An answer that says nothing is taken as such only where a fault or another caller explains it.
        Raises `Impossible`.
        """
        if caller not in self.held:
            self._alone = set() if self.held else {caller}
            self._faulted.discard(caller)
            self.held[caller], self._calls[caller] = self.begin(caller, call), call
            self.history.append(Began(caller, call))
        held, call = self.held[caller], self._calls[caller]
        faults = faults_of(held)
        if fault not in (Fault.NONE, *faults):
            raise Impossible(f"{held.statement} cannot be {fault}")
        if fault is not Fault.NONE:
            self._faulted.add(caller)
        if fault in (Fault.LOST, Fault.LATE):
            self.history.append(Doubted(caller))
        action = Action("run", LETTERS[caller], call.operation, call.args, call.now, "", fault)
        self.actions.append(action._replace(statement=held.statement or ""))
        if fault is Fault.LATE:
            self.late.append((caller, held))
        try:
            outcome = held.step(fault)
        except NotImplementedError as error:
            if fault is Fault.NONE:
                raise
            raise Impossible(f"{held.statement} cannot be {fault}") from error
        if len(self.actions) >= ENDLESS:
            outcome = Ended(Raised(f"no end after {ENDLESS} statements"))
        if outcome is not None:
            self._ended(caller, outcome.answer)
        return faults

    def _ended(self, caller: int, answer: Any) -> None:
        del self.held[caller]
        if answer in SILENT and caller not in self._faulted:
            self.silent += 1
            if caller in self._alone:
                answer = Raised(f"{answer.error}, with nobody else under way")
        self.history.append(Answered(caller, answer))
        if caller in self._faulted:
            self._gone(caller)

    def _gone(self, caller: int) -> None:
        if all(other != caller for other, _ in self.late):
            self.history.append(Gone(caller))

    def whole(self, caller: int, call: Call) -> None:
        """Run a call from its beginning to its end."""
        self.run(caller, call)
        while caller in self.held:
            self.run(caller, call)

    def crash(self, caller: int) -> None:
        """A caller is gone between two of its statements. Raises `Impossible`."""
        if caller not in self.held:
            raise Impossible(f"{LETTERS[caller]} has nothing under way that could crash")
        self.actions.append(Action("crash", LETTERS[caller]))
        self.held.pop(caller).crash()
        self.history.append(Crashed(caller))
        self._gone(caller)

    def land(self, caller: int) -> None:
        """Apply the late statement of a caller, of several the first. Raises `Impossible`."""
        places = [place for place, (other, _) in enumerate(self.late) if other == caller]
        if not places:
            raise Impossible(f"nothing of {LETTERS[caller]} is on its way")
        self.actions.append(Action("land", LETTERS[caller]))
        self.subject.land(self.late.pop(places[0])[1])
        self._gone(caller)

    def again(self, callers: int) -> None:
        """Let one more caller write, then those before who have not crashed read what it wrote."""
        self.main = len(self.history)
        gone = {event.caller for event in self.history if isinstance(event, Crashed)}
        able = self.subject.capabilities
        if "reserve" in able:
            self.whole(callers, Call("reserve", AGAIN, LATER))
        for caller in range(callers):
            if "read" in able and caller not in gone:
                self.whole(caller, Call("read", AGAIN[:1], LATER))

    def raced(self, calls: Sequence[tuple[int, Call]], ended: Sequence[Ended]) -> None:
        """Note calls that ran at once, by no order that is known, and what they ended with."""
        for caller, call in calls:
            self.history.append(Began(caller, call))
            self.actions.append(Action("run", LETTERS[caller], call.operation, call.args, call.now))
        for (caller, _), one in zip(calls, ended, strict=True):
            self.silent += one.answer in SILENT
            self.history.append(Answered(caller, one.answer))

    def judge(self, final: Database | None, *, timeless: bool = False) -> Finding:
        """Ask whether what was seen is legal, with this database in the end."""
        last = LETTERS.index(self.actions[-1].caller) if self.actions else None
        return linearize(tuple(self.history), self.start, final, timeless=timeless, suspect=last)

    def close(self) -> None:
        """Let go of every caller."""
        for held in self.held.values():
            held.crash()
        self.held.clear()


def faults_of(held: Held) -> tuple[Fault, ...]:
    """Return the faults that a statement can have, by its name in the model or what it says of itself."""
    statement, writes = held.statement, getattr(held, "writes", None)
    if statement is None:
        return ()
    if statement in READS or writes is False:
        return (Fault.NOT_APPLIED,)
    if statement in WRITES or writes:
        return (Fault.NOT_APPLIED, Fault.LOST, Fault.LATE)
    return (Fault.NOT_APPLIED, Fault.LOST)


class Repeated(NamedTuple):
    """What was seen of some actions: the history, the databases, and how it is judged.

    `databases` are the first one and that after each action: None where the subject could not show it with
    a caller in the middle of something.
    """

    history: History
    databases: tuple[Database | None, ...]
    finding: Finding


def repeat(
    subject: Subject, start: Database, actions: Iterable[Action], *, timeless: bool = False
) -> Repeated:
    """Take actions, by whatever statements the subject has; give what is seen. Raises `Impossible`."""
    stage = Stage(subject, start)
    databases: list[Database | None] = [start]
    try:
        for action in actions:
            caller = LETTERS.index(action.caller)
            match action.do:
                case "run":
                    stage.run(caller, Call(action.operation, action.args, action.now), action.fault)
                case "crash":
                    stage.crash(caller)
                case "land":
                    stage.land(caller)
                case _:
                    raise Impossible(f"{action.do} is nothing that a caller does")
            databases.append(_shown(stage))
    finally:
        stage.close()
    return Repeated(tuple(stage.history), tuple(databases), stage.judge(databases[-1], timeless=timeless))


def _shown(stage: Stage) -> Database | None:
    try:
        return stage.subject.dump()
    except StartOnceError:
        raise
    except Exception:
        if stage.held:  # a transaction that is open keeps others out
            return None
        raise
