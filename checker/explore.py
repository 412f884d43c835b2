"""Every reachable state of a transition system, and the shortest way to each violation.

Breadth-first search with plain dictionaries. It knows nothing of reservations: a system is an initial
state and a function that gives the steps out of a state; a property looks at one step. Because states
are visited in order of their distance from the initial one, the first step that breaks a property ends a
shortest trace to it.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

State = TypeVar("State", bound=Hashable)
Label = TypeVar("Label")

Step = tuple[Label, State]
"""What happened, and the state after it."""

Always = Callable[[State, Label, State], bool | None]
"""Whether a step keeps a property; None where the property says nothing about it."""


class Finding(NamedTuple, Generic[Label]):
    """What is known of a property: on how many steps it was evaluated, and a shortest trace against it."""

    evaluated: int
    trace: tuple[Label, ...] | None


class Explored(NamedTuple, Generic[State, Label]):
    """What an exploration found. `complete` is False where it stopped early."""

    states: int
    transitions: int
    depth: int
    complete: bool
    findings: Mapping[str, Finding[Label]]
    parents: Mapping[State, tuple[State, Label] | None]


def explore(
    initial: State,
    steps: Callable[[State], Iterable[Step[Label, State]]],
    always: Mapping[str, Always[State, Label]],
    *,
    stop_at: Iterable[str] = (),
    enough: Callable[[int], bool] = lambda states: False,
) -> Explored[State, Label]:
    """Visit every reachable state and evaluate every property on every step.

    `stop_at` names properties of which one violation is all that is wanted: the search ends when each
    has one. `enough` is asked after every thousand states, and ends the search with `complete` False.
    """
    parents: dict[State, tuple[State, Label] | None] = {initial: None}
    frontier: list[State] = [initial]
    evaluated = dict.fromkeys(always, 0)
    broken: dict[str, tuple[Label, ...]] = {}
    wanted = set(stop_at)
    checks = list(always.items())
    transitions = depth = 0
    looked = 0
    while frontier:
        reached: list[State] = []
        for state in frontier:
            looked += 1
            if looked % 1000 == 0 and enough(len(parents)):
                return _explored(parents, transitions, depth, False, evaluated, broken)
            for label, after in steps(state):
                transitions += 1
                for name, check in checks:
                    kept = check(state, label, after)
                    if kept is not None:
                        evaluated[name] += 1
                        if not kept and name not in broken:
                            broken[name] = (*path_to(parents, state), label)
                            if wanted and wanted <= broken.keys():
                                return _explored(parents, transitions, depth, False, evaluated, broken)
                came = (state, label)
                if parents.setdefault(after, came) is came:
                    reached.append(after)
        frontier = reached
        depth += bool(reached)
    return _explored(parents, transitions, depth, True, evaluated, broken)


def path_to(parents: Mapping[State, tuple[State, Label] | None], state: State) -> tuple[Label, ...]:
    """Return the labels that lead from the initial state to a visited one, by a shortest way."""
    labels: list[Label] = []
    while (parent := parents[state]) is not None:
        state, label = parent
        labels.append(label)
    return tuple(reversed(labels))


def _explored(
    parents: Mapping[State, tuple[State, Label] | None],
    transitions: int,
    depth: int,
    complete: bool,
    evaluated: Mapping[str, int],
    broken: Mapping[str, tuple[Label, ...]],
) -> Explored[State, Label]:
    findings = {name: Finding(count, broken.get(name)) for name, count in evaluated.items()}
    return Explored(len(parents), transitions, depth, complete, findings, parents)
