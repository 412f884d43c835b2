"""How much of the machine's time its subject takes, and how much of the scope *edges* it reaches.

The other side of each pair is the same machine, with the same seed, over a subject that does nothing:
it hands out, one after another, the replies that the real one gave in a run before. So both take the
very same steps, and the machine compares and judges equal values on both.
"""

import gc
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Any

import pairs
from pairs import Figure, Pair

from startonce.model.operations import Call, Ended, Fault
from startonce.model.reservation import Database
from startonce.oracle.ledger import Ledger
from startonce.oracle.machine import Tally, drive
from startonce.oracle.subject import Held, Subject
from startonce.own import SqlHeld, SqlSubject

EXAMPLES, STEPS = 60, 50
SHARE_EXAMPLES = 500
SEEDS = (1, 2, 3, 4, 5)


class RecordedHeld:
    """One of our operations, with everything that it shows put down on the subject's tape."""

    def __init__(self, held: SqlHeld, tape: list[Any]) -> None:
        self.held = held
        self.statement = held.statement
        self.refused = held.refused
        self._tape = tape
        tape.append((held.statement, held.refused))

    def step(self, fault: Fault = Fault.NONE) -> Ended | None:
        """Run the next statement."""
        outcome = self.held.step(fault)
        self.statement = self.held.statement
        self._tape.append((self.statement, outcome))
        return outcome

    def crash(self) -> None:
        """Forget the operation."""
        self.held.crash()


class Recorded(SqlSubject):
    """Our subject, with everything that it shows put down on a tape, in order."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self.tape: list[Any] = []

    def dump(self) -> Database:
        """Show everything in the database."""
        shown = super().dump()
        self.tape.append(shown)
        return shown

    def begin(self, caller: int, call: Call) -> Held:
        """Begin an operation."""
        held = super().begin(caller, call)
        assert isinstance(held, SqlHeld)
        return RecordedHeld(held, self.tape)

    def land(self, held: Held) -> None:
        """Apply a late statement."""
        assert isinstance(held, RecordedHeld)
        super().land(held.held)


class IdleHeld:
    """An operation that shows what is on the tape."""

    def __init__(self, tape: Iterator[Any]) -> None:
        self._tape = tape
        self.statement, self.refused = next(tape)

    def step(self, fault: Fault = Fault.NONE) -> Ended | None:
        """Give the next outcome."""
        outcome: Ended | None
        self.statement, outcome = next(self._tape)
        return outcome

    def crash(self) -> None:
        """Nothing is held."""


class Idle(Subject):
    """A subject that does nothing but show what is on a tape."""

    def __init__(self, recorded: Recorded) -> None:
        self.capabilities = recorded.capabilities
        self.tape = iter(recorded.tape)

    def put(self, db: Database) -> None:
        """Nothing is put anywhere."""

    def dump(self) -> Database:
        """Give the next database."""
        shown: Database = next(self.tape)
        return shown

    def begin(self, caller: int, call: Call) -> Held:
        """Give the next operation."""
        return IdleHeld(self.tape)

    def land(self, held: Held) -> None:
        """Nothing lands."""

    def pin(self) -> None:
        """Nothing stays behind."""

    def unpin(self) -> None:
        """Nothing stayed behind."""

    def deny(self, denied: bool) -> None:
        """Nothing is refused."""


def driven(subject: Subject, examples: int, seed: int) -> tuple[float, Tally]:
    """Run the machine; give the microseconds that a step took, and what it did."""
    gc.collect()
    gc.freeze()  # or one side would be charged for looking through what the other has left
    begun = perf_counter()
    tally, divergence = drive(subject, Ledger(), examples=examples, steps=STEPS, seed_=seed)
    took = perf_counter() - begun
    assert divergence is None, divergence
    return took / tally.steps * 1e6, tally


def measured(path: str | Path) -> Iterator[Figure]:
    """Measure the machine over our subject against the machine over nothing."""
    with closing(Recorded(path)) as recorded:
        _, first = driven(recorded, EXAMPLES, SEEDS[0])
        found = []
        with closing(SqlSubject(path)) as subject:
            mode = pairs.mode_of(subject.observer.connection)
            for _ in range(pairs.PAIRS):
                idle = Idle(recorded)
                one, tally = driven(idle, EXAMPLES, SEEDS[0])
                other, same = driven(subject, EXAMPLES, SEEDS[0])
                assert tally.steps == same.steps == first.steps
                assert next(idle.tape, None) is None, "the idle subject was not asked for everything"
                found.append(Pair(one, other))
    yield from pairs.compared(found, ("a step over nothing", "a step over ours"), mode)
    speed = statistics.median(1e6 / pair.other for pair in found)
    yield Figure("steps over ours", speed, "a second", mode)
    yield Figure("steps/s, ours / nothing", 1 / pairs.ratio(found), "times", mode, at_least=0.7)


def shares(path: Path) -> Iterator[Figure]:
    """Measure the share of the effective edges that whole runs reach."""
    found = []
    with closing(SqlSubject(path)) as subject:
        mode = pairs.mode_of(subject.observer.connection)
        for seed in SEEDS:
            _, tally = driven(subject, SHARE_EXAMPLES, seed)
            found.append(tally.share())
            yield Figure(f"effective edges reached, seed {seed}", found[-1], "of all", mode)
    yield Figure("their median", statistics.median(found), "of all", mode, at_least=0.95)


def figures(folder: Path) -> Iterator[Figure]:
    """Measure in memory and on a file."""
    yield from measured(":memory:")
    yield from measured(folder / "machine.db")
    yield from shares(folder / "shares.db")


if __name__ == "__main__":
    title = (
        f"The Hypothesis machine: median of {pairs.PAIRS} pairs of {EXAMPLES} examples, "
        f"shares over {SHARE_EXAMPLES} examples, of {STEPS} steps each"
    )
    with tempfile.TemporaryDirectory(dir=pairs.MEMORY_FILES) as folder:
        sys.exit(pairs.conclude(title, list(figures(Path(folder)))))
