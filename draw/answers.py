"""What the operations answer, found by running them: everywhere, without tables, and under each fault."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from startonce.draw.automaton import ARGUMENTS, KEY, OTHER_RUN, RUN
from startonce.model.interleaving import Action, World, act
from startonce.model.operations import CREATE, PROGRAMS, READS, Fault, Holding, Raised, Reserved, Stopped
from startonce.model.predicates import GOES_ON
from startonce.model.reservation import NOTHING, Database, Lock, Reservation, State

HOLDER = "h1"


def small_databases() -> Iterator[Database]:
    """Give every database with the whole schema, one key, and a lock of its run or none."""
    rows = [None, *(Reservation(KEY, run, state, 0, 0) for run in (RUN, OTHER_RUN) for state in State)]
    kinds = [
        (HOLDER, False),
        (HOLDER, True),
        ("h2", False),
        ("h2", True),
        ("cancel", False),
        ("free", False),
    ]
    locks = [None, *(Lock(RUN, KEY, who, ended, "{}" if ended else None, 0) for who, ended in kinds)]
    for row, lock, closed in product(rows, locks, (False, True)):
        yield Database((row,) if row else (), (lock,) if lock else (), closed)


def everywhere(operation: str) -> list[str]:
    """Return every answer of an operation in small databases, in words, each once."""
    return _each(_run(operation, args, db) for args in ARGUMENTS[operation] for db in small_databases())


def without_tables(operation: str) -> list[str]:
    """Return what an operation answers where no table exists, and what it creates."""
    answers = _each(_run(operation, args, NOTHING) for args in ARGUMENTS[operation])
    made = [name.removeprefix("create ") for name in PROGRAMS[operation].creates]
    return [*answers, *([f"creates {', '.join(made)}"] if made else [])]


def refused_writes(operation: str) -> list[str]:
    """Return every answer of an operation while writes are refused."""
    return _each(
        _run(operation, args, db, denied=True) for args in ARGUMENTS[operation] for db in small_databases()
    )


def struck(operation: str, fault: Fault, reads: bool) -> list[str]:
    """Return every answer of an operation one of whose statements, a read or a write, a fault strikes."""
    return _each(
        _run(operation, args, db, strike=(name, fault))
        for name in PROGRAMS[operation].statements
        if (name in READS) == reads
        for args in ARGUMENTS[operation]
        for db in small_databases()
    )


def _each(answers: Iterator[Any]) -> list[str]:
    return list(dict.fromkeys(answer_words(answer) for answer in answers if answer is not GOES_ON))


def _run(
    operation: str,
    args: tuple[Any, ...],
    db: Database,
    denied: bool = False,
    strike: tuple[str, Fault] = ("", Fault.NONE),
) -> Any:
    """Run an operation with nobody in between; give its answer if the statement to be struck was run."""
    world = World(db, denied=denied)
    struck = not strike[0]
    for name in PROGRAMS[operation].creates if db in (NOTHING,) else ():
        world = world._replace(db=CREATE[name](world.db)[0])
    for name in PROGRAMS[operation].statements:
        fault = strike[1] if name == strike[0] else Fault.NONE
        struck = struck or name == strike[0]
        world, step = act(world, Action("run", "A", operation, args, 1, name, fault))
        if step is not None and step.answer is not GOES_ON:
            return step.answer if struck else GOES_ON
    raise AssertionError(f"{operation} came to no answer")


def answer_words(answer: Any) -> str:
    """Say an answer in a few words, without its values."""
    match answer:
        case None:
            return "nothing"
        case bool():
            return str(answer)
        case int():
            return "0" if answer == 0 else "how many"
        case Raised(error):
            return f"error: {error}"
        case Reserved(_, created):
            return f"the row, {'created' if created else 'not created'}"
        case Holding(mine, holder):
            return "mine" if mine else "another's" if holder else "not held"
        case Stopped(done, reason):
            return reason if done else f"refused: {reason}"
        case Reservation():
            return "the row"
        case Lock():
            return "the lock"
        case ():
            return "none"
        case tuple():
            return "what it found"
    raise TypeError(f"no words for {answer!r}")
