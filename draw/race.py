"""Callers racing through `reserve`: every interleaving of their statements, breadth first.

Each caller runs one `reserve` for the same key with a run of its own. The search takes one action
of the model at a time, from a table with no row, until every caller has its answer.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from startonce.model import interleaving
from startonce.model.interleaving import Action, World
from startonce.model.operations import Call, Reserved, upcoming
from startonce.model.predicates import GOES_ON, Step
from startonce.model.reservation import Database

KEY = "k1"
PROPOSALS = (("A", "r1"), ("B", "r2"))
"""The callers and the run that each proposes."""

Act = Callable[[World, Action], tuple[World, Step | None]]


class Situation(NamedTuple):
    """One state of the race: the world, and what the callers that are done were answered."""

    world: World
    answers: tuple[tuple[str, Any], ...] = ()

    def answer(self, caller: str) -> Any:
        """Return what a caller was answered; None while it has no answer."""
        return dict(self.answers).get(caller)


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

    proposals: tuple[tuple[str, str], ...]
    situations: tuple[Situation, ...]
    moves: tuple[Move, ...]

    def finals(self) -> list[int]:
        """Return the places of the situations in which every caller has its answer."""
        return [
            place
            for place, situation in enumerate(self.situations)
            if len(situation.answers) == len(self.proposals)
        ]

    def interleavings(self) -> int:
        """Return how many orders of statements there are: the paths from the first situation."""

        @cache
        def paths(place: int) -> int:
            return sum(paths(move.after) for move in self.moves if move.before == place) or 1

        return paths(0)

    def held_before(self, place: int, caller: str) -> str | None:
        """Name the statement that a caller runs next; None where it has its answer."""
        situation = self.situations[place]
        if situation.answer(caller) is not None:
            return None
        started = situation.world.call(caller)
        return upcoming(started or Call("reserve", (KEY, dict(self.proposals)[caller]), 0))

    def agreed(self, place: int) -> bool:
        """Whether every caller was answered the same run, and exactly one that it created it."""
        answers = [self.situations[place].answer(caller) for caller, _ in self.proposals]
        rows = [answer for answer in answers if isinstance(answer, Reserved)]
        one_run = len({answer.row.run_id for answer in rows}) == 1
        return len(rows) == len(answers) and one_run and sum(row.created for row in rows) == 1


def race(proposals: Sequence[tuple[str, str]] = PROPOSALS, act: Act = interleaving.act) -> Race:
    """Search every situation that the callers reach; each runs `reserve` once."""
    start = Situation(World(Database(rows=(), locks=())))
    places = {start: 0}
    situations = [start]
    moves = []
    for here in situations:  # grows while it is walked
        for caller, run_id in proposals:
            if here.answer(caller) is not None:
                continue
            world, step = act(here.world, Action("run", caller, "reserve", (KEY, run_id)))
            assert step is not None
            there = Situation(world, _answered(here, caller, step))
            if there not in places:
                places[there] = len(situations)
                situations.append(there)
            changed = step.before != step.after
            assert step.statement is not None
            moves.append(Move(places[here], caller, step.statement, changed, places[there]))
    return Race(tuple(proposals), tuple(situations), tuple(moves))


def _answered(here: Situation, caller: str, step: Step) -> tuple[tuple[str, Any], ...]:
    if step.answer is GOES_ON:
        return here.answers
    return tuple(sorted((*here.answers, (caller, step.answer)), key=lambda pair: pair[0]))
