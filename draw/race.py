"""Callers racing for one key: every interleaving of their statements, breadth first.

Each caller runs one operation after another. The search takes one action of the model at a time, from a
given table, until every caller has its answers.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from startonce.model import interleaving
from startonce.model.interleaving import Action, World
from startonce.model.operations import Call, Raised, Reserved, upcoming
from startonce.model.predicates import GOES_ON, Step
from startonce.model.reservation import Database, Reservation, State

KEY = "k1"

Act = Callable[[World, Action], tuple[World, Step | None]]
Asked = tuple[str, tuple[Any, ...]]
"""An operation and its arguments."""


class Racer(NamedTuple):
    """A caller, and the operations that it runs one after another."""

    name: str
    asks: tuple[Asked, ...]


class Situation(NamedTuple):
    """One state of the race: the world, and what each caller was answered so far."""

    world: World
    answers: tuple[tuple[Any, ...], ...]


class Move(NamedTuple):
    """One arrow: a caller ran a statement. The numbers are places in `Race.situations`."""

    before: int
    caller: str
    statement: str
    changed: bool
    """Whether the table changed."""
    after: int


class Race(NamedTuple):
    """Every reachable situation, in the order in which it was found, and every move."""

    racers: tuple[Racer, ...]
    situations: tuple[Situation, ...]
    moves: tuple[Move, ...]

    def answers(self, place: int, caller: str) -> tuple[Any, ...]:
        """Return what a caller was answered so far."""
        names = [racer.name for racer in self.racers]
        return self.situations[place].answers[names.index(caller)]

    def finals(self) -> list[int]:
        """Return the places of the situations in which every caller has all its answers."""
        return [
            place
            for place, situation in enumerate(self.situations)
            if all(map(_is_over, self.racers, situation.answers))
        ]

    def interleavings(self) -> int:
        """Return how many orders of statements there are: the paths from the first situation."""

        @cache
        def paths(place: int) -> int:
            return sum(paths(move.after) for move in self.moves if move.before == place) or 1

        return paths(0)

    def held_before(self, place: int, caller: str) -> str | None:
        """Name the statement that a caller runs next; None where it has all its answers."""
        racer = next(racer for racer in self.racers if racer.name == caller)
        answers = self.answers(place, caller)
        if _is_over(racer, answers):
            return None
        operation, args = racer.asks[len(answers)]
        begun = self.situations[place].world.call(caller)
        return upcoming(begun or Call(operation, args, 0))


def _is_over(racer: Racer, answers: tuple[Any, ...]) -> bool:
    return len(answers) == len(racer.asks)


def race(racers: Sequence[Racer], start: Database, act: Act = interleaving.act) -> Race:
    """Search every situation that the callers reach from a table."""
    first = Situation(World(start), ((),) * len(racers))
    places = {first: 0}
    situations = [first]
    moves = []
    for here in situations:  # grows while it is walked
        for number, racer in enumerate(racers):
            answers = here.answers[number]
            if _is_over(racer, answers):
                continue
            operation, args = racer.asks[len(answers)]
            world, step = act(here.world, Action("run", racer.name, operation, args))
            assert step is not None
            if step.answer is not GOES_ON:
                answers = (*answers, step.answer)
            there = Situation(world, (*here.answers[:number], answers, *here.answers[number + 1 :]))
            if there not in places:
                places[there] = len(situations)
                situations.append(there)
            changed = step.before != step.after
            assert step.statement is not None
            moves.append(Move(places[here], racer.name, step.statement, changed, places[there]))
    return Race(tuple(racers), tuple(situations), tuple(moves))


# --- the races that are drawn ---------------------------------------------------------------------------


class Judged(NamedTuple):
    """What is said of an end of a race, and whether it is as it must be."""

    words: str
    kept: bool


Judge = Callable[[Race, int], Judged]


class Setting(NamedTuple):
    """A race to be drawn: its words, who races from which table, and what is so in each of its ends."""

    title: str
    caption: str
    must: str
    racers: tuple[Racer, ...]
    start: Database
    judge: Judge


def one_run(graph: Race, place: int) -> Judged:
    """Every caller of `reserve` must have the same run, and exactly one must have seen `created`."""
    said = [answer for answers in graph.situations[place].answers for answer in answers]
    rows = [answer for answer in said if isinstance(answer, Reserved)]
    agreed = len({answer.row.run_id for answer in rows}) == 1
    kept = len(rows) == len(said) and agreed and sum(row.created for row in rows) == 1
    return Judged("same run, created once" if kept else "NOT AGREED", kept)


def _won(graph: Race, place: int) -> list[str]:
    return [
        racer.name
        for racer, answers in zip(graph.racers, graph.situations[place].answers, strict=True)
        for (operation, _), answer in zip(racer.asks, answers, strict=True)
        if operation == "claim" and answer is True
    ]


def one_wins(graph: Race, place: int) -> Judged:
    """Exactly one claim must have won."""
    won = _won(graph, place)
    return Judged(f"only {won[0]} won", True) if len(won) == 1 else Judged(f"{len(won)} WON", False)


def at_most_one_wins(graph: Race, place: int) -> Judged:
    """At most one claim may have won; where none did, the key must be there to be claimed."""
    won = _won(graph, place)
    row = graph.situations[place].world.db.row(KEY)
    if not won and row is not None and row.state is State.RESERVED:
        return Judged("nobody won, reserved again", True)
    return one_wins(graph, place)


def none_wins(graph: Race, place: int) -> Judged:
    """No claim may have won."""
    won = _won(graph, place)
    return Judged(f"{', '.join(won)} WON", False) if won else Judged("not claimed", True)


def _row(state: State) -> Database:
    return Database((Reservation(KEY, "r1", state, 0, 0),), ())


def reserves(*proposals: tuple[str, str]) -> tuple[Racer, ...]:
    """Return callers that each reserve the key, for a run of their own."""
    return tuple(Racer(name, (("reserve", (KEY, run_id)),)) for name, run_id in proposals)


_CLAIM: Asked = ("claim", (KEY, "r1"))

RACES: Mapping[str, Setting] = {
    "reserve-race": Setting(
        "A and B race through reserve for one key",
        "A proposes r1, B proposes r2.",
        "both have the same run, and one saw created",
        reserves(("A", "r1"), ("B", "r2")),
        Database((), ()),
        one_run,
    ),
    "claim-race": Setting(
        "A and B race to claim one reserved key",
        "Both were told r1.",
        "one claim has won",
        (Racer("A", (_CLAIM,)), Racer("B", (_CLAIM,))),
        _row(State.RESERVED),
        one_wins,
    ),
    "purge-race": Setting(
        "A claims r1 while B purges its row and reserves the key anew",
        "A was told r1 while it was reserved; its run is over by now.",
        "A has lost: the row that it was told of is gone",
        (Racer("A", (_CLAIM,)), Racer("B", (("purge", (1, 1)), ("reserve", (KEY, "r2"))))),
        _row(State.TERMINAL),
        none_wins,
    ),
    "release-race": Setting(
        "A, refused by the fence, releases while B and C claim",
        "A had won the claim of r1.",
        "at most one claim has won since",
        (Racer("A", (("release", (KEY, "r1")),)), Racer("B", (_CLAIM,)), Racer("C", (_CLAIM,))),
        _row(State.STARTED),
        at_most_one_wins,
    ),
}
"""The races that are drawn, by the name of their picture."""


def answer_words(operation: str, answer: Any) -> str:
    """Say what a caller has by an answer."""
    match answer:
        case Reserved(row, created):
            return f"has {row.run_id}, {'created' if created else 'not created'}"
        case Raised(error):
            return f"failed: {error}"
        case bool():
            done = {"claim": ("won", "lost"), "release": ("released", "released nothing")}
            return done[operation][not answer]
        case int():
            return f"{operation}d {answer}"
    raise TypeError(f"no words for {answer!r} of {operation}")
