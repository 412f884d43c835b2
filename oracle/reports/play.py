"""Plays a trace, on the model alone or on a subject alone, and holds it against what is written in it."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from startonce.model.inputs import admissible
from startonce.model.interleaving import Action, World, act
from startonce.model.operations import PROGRAMS, READS, Call, Ended, Fault, land, upcoming
from startonce.model.reservation import EMPTY, NOTHING, Database
from startonce.model.step import GOES_ON
from startonce.oracle.reports.notation import BEFORE_IT_WRITES, LETTERS, Line, parsed, table_text
from startonce.oracle.subject import REPLICA, Held, Subject
from startonce.oracle.tracefile import describe


class Unable(Exception):
    """What plays a trace cannot do what the trace asks for: nothing is known then."""


class Hand(Protocol):
    """What a trace is played on."""

    def put(self, db: Database) -> None:
        """Make the database be exactly this."""
        ...

    def dump(self) -> Database:
        """Show all there is."""
        ...

    def begin(self, caller: str, call: Call) -> None:
        """Begin an operation of a caller, without running anything of it."""
        ...

    def statement(self, caller: str) -> str | None:
        """Name the statement that a caller runs next."""
        ...

    def step(self, caller: str, fault: Fault = Fault.NONE) -> Ended | None:
        """Run that statement; the answer if the operation ended, else None."""
        ...

    def around(self, line: Line) -> None:
        """Do what is no statement. Raises `Unable`."""
        ...


class OnModel:
    """The model, and nothing else. `actions` are what was done, as a trace file holds it."""

    def __init__(self) -> None:
        self.world = World()
        self.actions: list[Action] = []
        self._begun: dict[str, Call] = {}

    def put(self, db: Database) -> None:
        """Begin with this database."""
        self.world = World(db)

    def dump(self) -> Database:
        """Show all there is."""
        return self.world.db

    def begin(self, caller: str, call: Call) -> None:
        """Note what a caller begins: it is under way from its first statement on."""
        self._begun[caller] = call

    def _call(self, caller: str) -> Call:
        return self.world.call(caller) or self._begun[caller]

    def statement(self, caller: str) -> str | None:
        """Name the statement that a caller runs next."""
        return upcoming(self._call(caller))

    def step(self, caller: str, fault: Fault = Fault.NONE) -> Ended | None:
        """Run the next statement, and before it what creates the tables that it needs."""
        call = self._call(caller)
        bare = admissible(call) and land(self.world.db, call, upcoming(call))[1] is None
        creates = PROGRAMS[call.operation].creates if bare and not call.heard else ()
        for name in creates:
            ended = self._run(caller, call, name, Fault.NONE)
            if ended is not None:
                return ended
        return self._run(caller, call, upcoming(call), fault)

    def _run(self, caller: str, call: Call, statement: str, fault: Fault) -> Ended | None:
        action = Action("run", caller, call.operation, call.args, call.now, statement, fault)
        self.world, step = act(self.world, action)
        self.actions.append(action)
        assert step is not None
        return None if step.answer == GOES_ON else Ended(step.answer)

    def around(self, line: Line) -> None:
        """Take an action that is no statement."""
        if line.do == "spoil":
            raise Unable("the model has no schema that could be spoiled")
        action = Action(line.do, line.caller)  # type: ignore[arg-type]
        self.world, _ = act(self.world, action)
        self.actions.append(action)


class OnSubject:
    """A subject, and nothing else."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._held: dict[str, Held] = {}
        self._late: list[tuple[str, Held]] = []

    def put(self, db: Database) -> None:
        """Make the database be exactly this."""
        self.subject.put(db)

    def dump(self) -> Database:
        """Show all there is."""
        return self.subject.dump()

    def begin(self, caller: str, call: Call) -> None:
        """Begin an operation of a caller."""
        self._held[caller] = self.subject.begin(LETTERS.index(caller), call)

    def statement(self, caller: str) -> str | None:
        """Name the statement that a caller runs next."""
        return self._held[caller].statement

    def step(self, caller: str, fault: Fault = Fault.NONE) -> Ended | None:
        """Run that statement under a fault."""
        held = self._held[caller]
        if fault is Fault.LATE:
            self._late.append((caller, held))
        outcome = held.step(fault)
        if outcome is not None:
            del self._held[caller]
        return outcome

    def around(self, line: Line) -> None:
        """Do what is no statement."""
        subject, caller = self.subject, line.caller
        match line.do:
            case "crash":
                self._held.pop(caller).crash()
            case "land":
                place = [other for other, _ in self._late].index(caller)
                subject.land(self._late.pop(place)[1])
            case "spoil":
                subject.spoil(*line.args)
            case "pin" if REPLICA not in subject.capabilities:
                raise Unable("nothing here stays behind")
            case "pin":
                subject.pin()
            case "unpin":
                subject.unpin()
            case _:
                subject.deny(line.do == "deny")


class Played(NamedTuple):
    """A line that was played, and what was observed."""

    line: Line
    observed: str

    @property
    def differs(self) -> str:
        """Say in what the line differs from what was observed; nothing where it does not."""
        if self.observed == self.line.expected:
            return ""
        return f"{self.line.text}: observed {self.observed}"


def play(text: str, hand: Hand) -> Iterator[Played]:
    """Play a trace line by line; whoever asks for the next one has it go on. Raises `Unable`."""
    trace = parsed(text)
    hand.put(EMPTY if trace[0].do == "table" else NOTHING)
    for line in trace:
        if line.do == "run":
            observed = _run(line, hand)
        elif line.do == "table":
            db = hand.dump()
            both = table_text(db, times=True), table_text(db)
            observed = line.expected if line.expected in both else both[0]
        else:
            hand.around(line)
            observed = ""
        yield Played(line, observed)


def difference(text: str, hand: Hand) -> str:
    """Play a trace and say in what it first differs from what is written in it; nothing if nowhere."""
    return next((one.differs for one in play(text, hand) if one.differs), "")


def _run(line: Line, hand: Hand) -> str:
    if line.call is not None:
        hand.begin(line.caller, line.call)
    while line.statement != BEFORE_IT_WRITES or hand.statement(line.caller) in READS:
        here = hand.statement(line.caller) == line.statement
        outcome = hand.step(line.caller, line.fault if here else Fault.NONE)
        if outcome is not None:
            return describe(outcome.answer)
        if here and line.expected == GOES_ON:
            break
    return GOES_ON
