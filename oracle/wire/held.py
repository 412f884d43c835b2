"""Operations under way at an adapter, as the oracle holds them."""

from typing import Protocol

from startonce.model.operations import Call, Ended, Fault
from startonce.oracle.wire import misbehaviour as wrong
from startonce.oracle.wire.client import Part, done
from startonce.oracle.wire.responses import IDLE, At


class Adapter(Protocol):
    """What an operation under way needs of the subject that it belongs to."""

    def flush(self) -> None:
        """Ask what was held back."""
        ...

    def later(self, part: Part) -> None:
        """Hold back what answers nothing."""
        ...

    def stepped(self, held: "WireHeld", fault: Fault) -> At | Ended:
        """Run the next statement of a held operation."""
        ...

    def ran(self, part: Part, now: int) -> At | Ended:
        """Run something at a clock reading."""
        ...


class WireHeld:
    """An operation that an adapter holds before its next statement."""

    def __init__(self, subject: Adapter, caller: str, call: Call) -> None:
        self.caller = caller
        self.call = call
        self._subject = subject
        self._at: At | Ended | None = None

    def began(self, found: At | Ended) -> None:
        """Take note of how the operation began."""
        self._at = found

    def at(self) -> At | Ended:
        """Return where the operation is held, or what it ended with."""
        if self._at is None:
            self._subject.flush()
        assert self._at is not None
        return self._at

    @property
    def statement(self) -> str | None:
        """The adapter's name of the next statement; None where the operation is over."""
        at = self.at()
        return at.label if isinstance(at, At) else None

    @property
    def writes(self) -> bool:
        """Whether the adapter says of the next statement that it writes."""
        at = self.at()
        return isinstance(at, At) and at.writes

    @property
    def refused(self) -> Ended | None:
        """What the operation ended with, where it is over."""
        at = self.at()
        return at if isinstance(at, Ended) else None

    def step(self, fault: Fault = Fault.NONE) -> Ended | None:
        """Run the next statement under a fault."""
        if isinstance(self._at, Ended):
            return self._at
        found = self._subject.stepped(self, fault)
        if isinstance(self._at, Ended):  # it was over before its first statement
            if found is not IDLE:
                raise wrong.BadResponse(
                    f"a step of {self.caller}", "its operation ended without a statement"
                )
            return self._at
        if found is IDLE:
            raise wrong.BadResponse(f"a step of {self.caller}", "its operation has not ended")
        self._at = found
        return found if isinstance(found, Ended) else None

    def crash(self) -> None:
        """The caller is gone."""
        if not isinstance(self._at, Ended):
            self._subject.later(done("crash", caller=self.caller))


class WireWhole:
    """An operation that an adapter runs as a whole."""

    statement: str | None = None

    def __init__(self, subject: Adapter, part: Part, call: Call) -> None:
        self._subject = subject
        self._part = part
        self._call = call

    def step(self, fault: Fault = Fault.NONE) -> Ended | None:
        """Run the whole operation."""
        ended = self._subject.ran(self._part, self._call.now)
        assert isinstance(ended, Ended)
        return ended

    def crash(self) -> None:
        """Nothing has run."""
