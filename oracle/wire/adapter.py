"""An adapter in any language as a subject: what the oracle asks of it, asked over the wire.

`docs/oracle-protocol.md` is the protocol; this is how it becomes the interface of `subject.py` with few
round trips. What answers nothing, a put or a crash, is held back until something must be known, and then
goes first in the same message. A step asks for the dump too, since the oracle looks at it after every step:
so an edge is one round trip. `perform` puts many edges into a message, and sends messages ahead.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from startonce.model.operations import Call, Ended, Fault
from startonce.model.reservation import NOTHING, Database
from startonce.oracle.subject import STEPPING, Held, Subject
from startonce.oracle.wire import misbehaviour as wrong
from startonce.oracle.wire import requests, responses
from startonce.oracle.wire.client import Client, Part, done
from startonce.oracle.wire.endpoints import Attached, Process
from startonce.oracle.wire.handshake import shake
from startonce.oracle.wire.held import WireHeld, WireWhole
from startonce.oracle.wire.responses import At
from startonce.oracle.wire.timeless import Times
from startonce.oracle.wire.words import CALLERS, CORE, FENCE, LOCKS

OWN_STEPS = "own steps"
"""The capability of an adapter that stops before statements of its own: see `WireSubject.hold`."""

BATCH, AHEAD = 64, 4
"""How many edges `perform` puts into a message, and how many messages it sends ahead."""


class WireSubject(Subject):
    """An adapter as a subject. Every method that asks raises `WireError`.

    Its capabilities are those of the wire; *stepping* is in them only where the statements are those of the
    model. Where they are the adapter's own there is `OWN_STEPS`, and `begin` runs an operation as a whole
    unless `own_steps` is set. `about` is what the adapter says of itself.

    Without *callers* every caller is one and the same. Without *clock* what is shown has the times that the
    clock passed in would have given; but where operations are held by own steps times mean nothing then.
    """

    def __init__(self, client: Client, command: Sequence[str] = ()) -> None:
        self._client = client
        self._command = tuple(command)
        try:
            self.about = shake(client)
        except BaseException:
            client.close()
            raise
        about, able = self.about, self.about.capabilities
        self.name = about.title
        self.own_steps = False
        self.absent = "absent" in able
        self.parameter_limit = about.parameter_limit
        self.not_applicable = about.not_applicable
        self._has = bool(able & LOCKS), bool(able & FENCE)
        read = partial(responses.read_dump, locks=self._has[0], fence=self._has[1])
        self._dumping = Part(requests.request("dump"), "dump", read)
        self._later: list[Part] = []
        self._late: dict[str, list[WireHeld]] = {}
        of_model = STEPPING in self.capabilities
        self._read_step = responses.read_statement if of_model else responses.read_step
        self._times = None if "clock" in able else Times()
        self._now = 0
        self._dump: Database | None = None
        self._spoiled = False

    @classmethod
    def start(cls, command: Sequence[str], timeout: float = 10.0) -> "WireSubject":
        """Start an adapter by its command, without a shell. `timeout` is for each message, in seconds."""
        return cls(Client(Process(command), timeout), command)

    @classmethod
    def attach(cls, address: str, timeout: float = 10.0) -> "WireSubject":
        """Connect to an adapter that listens on this machine, at HOST:PORT."""
        return cls(Client(Attached(address), timeout))

    @property
    def own_steps(self) -> bool:
        """Whether operations are held before the adapter's own statements, or run as a whole."""
        return self._own_steps

    @own_steps.setter
    def own_steps(self, wanted: bool) -> None:
        able = self.about.capabilities
        self._own_steps = wanted and "stepping" in able and "statements" not in able
        if "stepping" in able and "statements" not in able:
            able = able - {"stepping"} | {OWN_STEPS}
            able = able if wanted else able - {"faults", "replica"}
        self.capabilities = CORE | able

    def join(self) -> "WireSubject":
        """Start another process of the adapter, which shares the database of this one."""
        if self.about.join is None or not self._command:
            raise wrong.NotAskable("another process on the same database", "processes")
        other = WireSubject.start(self._command, self._client.timeout)
        try:
            other._ask(done("join", **{"with": self.about.join}))
        except BaseException:
            other.close()
            raise
        return other

    @property
    def sent(self) -> int:
        """How many messages were sent so far."""
        return self._client.sent

    def close(self) -> None:
        """End the conversation and the adapter; nothing of it is left."""
        self._client.close()

    # --- the database -----------------------------------------------------------------------------------

    def put(self, db: Database) -> None:
        """Make the database be exactly this. What is on its way now never lands."""
        self._become(db, self._putting(db))

    def reset(self) -> None:
        """Leave a database in which no key was ever used."""
        self._become(NOTHING, done("reset"))

    def _become(self, db: Database, part: Part) -> None:
        self.later(part)
        self._late.clear()
        if self._times is not None:
            self._times.put(db)

    def _putting(self, db: Database) -> Part:
        locks, fence = self._has
        if db.rows is None or (locks and db.locks is None):
            self._needs("absent", "a database without the table")
        if db.locks and not locks:
            self._needs("take_lock", "a run lock")
        if db.fence_closed is not None and not fence:
            self._needs("fence", "a fence")
        return Part(requests.put(db, locks, fence), "put", responses.read_done)

    def dump(self) -> Database:
        """Show everything in the database; without run locks none of them where there are reservations."""
        if self._dump is None:
            (dump,) = self._ask(self._dumping)
            self._dumped(dump)
        assert self._dump is not None
        return self._dump

    def _dumped(self, dump: Database) -> None:
        self._dump = dump if self._times is None else self._times.dumped(dump, self._now)

    # --- operations -------------------------------------------------------------------------------------

    def carries(self, call: Call) -> bool:
        """Say whether the arguments of a call can be told to this adapter."""
        return "surrogates" in self.capabilities or requests.carried_by_all(call.args)

    def begin(self, caller: int, call: Call) -> Held:
        """Begin an operation: held before statements that are the model's, or else as a whole."""
        if STEPPING in self.capabilities or self._own_steps:
            return cast(Held, self.hold(caller, call))  # where it is held is asked only if it matters
        return WireWhole(self, self._calling(caller, call), call)

    def hold(self, caller: int, call: Call) -> WireHeld:
        """Begin an operation, held before its first statement, in whosever words that is named."""
        self._needs("stepping", "to hold an operation")
        held = WireHeld(self, CALLERS[caller], call)
        read = partial(self._read_step, operation=call.operation, begins=True)
        self.later(Part(self._text("begin", caller, call), "begin", read, call.operation, held.began))
        return held

    def stepped(self, held: WireHeld, fault: Fault) -> At | Ended:
        """Run the next statement of a held operation; give where it is held then, or how it ended."""
        operation = held.call.operation
        if fault is Fault.LATE:
            self._late.setdefault(held.caller, []).append(held)
        read = partial(self._read_step, operation=operation)
        part = Part(requests.step(held.caller, fault), "step", read, operation)
        # Before statements of its own a caller may hold a lock for which a dump would have to wait.
        return self.ran(part, held.call.now, look=not self._own_steps)

    def ran(self, part: Part, now: int, look: bool = True) -> At | Ended:
        """Ask what runs at a clock reading, and to `look` at the database after it."""
        self._now = now
        found: At | Ended
        if not look or self._spoiled:
            (found,) = self._ask(part)
            return found
        found, dump = self._ask(part, self._dumping)
        self._dumped(dump)
        if self._times is not None and isinstance(found, Ended):
            return Ended(self._times.answered(found.answer))
        return found

    def perform(self, edges: Sequence[tuple[Database, Call]]) -> list[tuple[Any, Database]]:
        """Run whole operations of caller A, each from a database; give the answers, and the dumps after.

        Many travel in one message, and messages are sent ahead of the responses to earlier ones.
        """
        self.flush()
        self._dump = None
        found: list[tuple[Any, Database]] = []
        waiting = 0
        for first in range(0, len(edges), BATCH):
            parts: list[Part] = []
            for db, call in edges[first : first + BATCH]:
                parts += (self._putting(db), self._calling(0, call), self._dumping)
            self._client.send(parts)
            waiting += 1
            if waiting > AHEAD:
                found += self._performed(edges[len(found) :])
                waiting -= 1
        for _ in range(waiting):
            found += self._performed(edges[len(found) :])
        return found

    def _performed(self, edges: Sequence[tuple[Database, Call]]) -> list[tuple[Any, Database]]:
        """Receive what the first of some edges did, as many as the earliest message has."""
        read = self._client.receive()
        pairs = [(ended.answer, dump) for ended, dump in zip(read[1::3], read[2::3], strict=True)]
        if self._times is None:
            return pairs
        timed = []
        for (db, call), (answer, dump) in zip(edges, pairs, strict=False):
            self._times.put(db)
            shown = self._times.dumped(dump, call.now)
            timed.append((self._times.answered(answer), shown))
        return timed

    def race(self, calls: Sequence[tuple[int, Call]]) -> list[Ended]:
        """Run operations of several callers truly at once; give what each ended with."""
        self._needs("race", "a race")
        text = requests.race([(CALLERS[caller], call) for caller, call in calls])
        read = partial(responses.read_race, operations=[call.operation for _, call in calls])
        found: list[Ended] = self._ask(Part(text, "race", read))[0]
        return found

    def _text(self, do: str, caller: int, call: Call) -> str:
        if not self.carries(call):
            self._needs("surrogates", "a lone surrogate")
        return requests.call(do, call, CALLERS[caller] if "callers" in self.capabilities else None)

    def _calling(self, caller: int, call: Call) -> Part:
        read = partial(responses.read_call, operation=call.operation)
        return Part(self._text("call", caller, call), "call", read, call.operation)

    # --- what surrounds the callers ---------------------------------------------------------------------

    def land(self, held: Held) -> None:
        """Apply the statement of a caller that went on without its reply; of several the oldest."""
        assert isinstance(held, WireHeld)
        oldest = self._late[held.caller].pop(0)
        assert oldest is held, "statements of one caller land in the order in which they were sent"
        self._now = held.call.now
        self.later(done("land", caller=held.caller))

    def pin(self) -> None:
        """Let stale reads be answered from the database as it is at this moment."""
        self._needs("replica", "a stale read")
        self.later(done("pin"))

    def unpin(self) -> None:
        """Let the replica catch up."""
        self.later(done("unpin"))

    def deny(self, denied: bool) -> None:
        """Refuse, or again allow, every write of every caller."""
        self._needs("deny", "to refuse writes")
        self.later(done("deny", denied=denied))

    def spoil(self, how: str, key: str) -> None:
        """Spoil the schema around a key, in one of the ways of `Subject.spoil`."""
        self._needs("probes", "a spoiled schema")
        self.later(done("spoil", how=how, key=key))
        self._spoiled = True  # nobody can say what a dump would show

    def unspoil(self) -> None:
        """Leave a database without our tables."""
        self.later(done("unspoil"))
        self._spoiled = False

    def later(self, part: Part) -> None:
        """Hold back what answers nothing, until something must be known."""
        self._later.append(part)
        self._dump = None

    def flush(self) -> None:
        """Ask what was held back."""
        if self._later:
            self._ask()

    def _ask(self, *parts: Part) -> list[Any]:
        together = (*self._later, *parts)
        self._later.clear()
        self._dump = None
        return self._client.ask(together)[len(together) - len(parts) :]

    def _needs(self, capability: str, what: str) -> None:
        if capability not in self.about.capabilities:
            raise wrong.NotAskable(what, capability)
