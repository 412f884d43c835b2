"""A start as a flow, found by executing the model's `PROGRAM`.

Nothing here says where a caller goes on. Every statement is applied in every small world: each row that the
key can have, of the caller's run and of another one, each lock, the fence open and closed. Each reply is
handed to the program, and so is its loss and its refusal; where a caller comes to, it goes on from there.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

from startonce.draw.replies import WORDS
from startonce.model.reservation import State
from startonce.model.start import PROGRAM, Next, Statement, Told
from startonce.model.world import CANCEL, FREE, Budget, Caller, Lock, Row, World

MINE, OTHER = 0, 1
"""The run that a caller goes by, and another one."""
ME = 0

AFTER: Mapping[str, str] = {
    "claim": "the claim lost",
    "lock": "the lock not mine",
    "release": "nothing released",
}
"""Why a caller looks at row and lock, in words."""


class Arrow(NamedTuple):
    """Where a caller goes on: from a statement, with a reply or a fault, to a statement or an answer."""

    before: str
    replies: tuple[str, ...]
    """What leads there, in words; the most specific one applies. Empty where every reply does."""
    faults: tuple[str, ...]
    after: str
    answers: bool
    """Whether `after` is an answer, which ends the start."""


class Flow(NamedTuple):
    """The statements in the order in which they are reached, the answers, and every arrow, once."""

    statements: Mapping[str, bool]
    """Each with whether it writes."""
    answers: tuple[str, ...]
    arrows: tuple[Arrow, ...]

    def leads(self, statement: str) -> list[Arrow]:
        """Return the arrows from a statement."""
        return [arrow for arrow in self.arrows if arrow.before == statement]

    def always(self, arrow: Arrow) -> bool:
        """Whether a statement leads along an arrow whatever it is told."""
        others = self.leads(arrow.before)
        return arrow == others[0] and not any(other.replies for other in others)


def small_worlds() -> Iterator[World]:
    """Give every world of one key and two runs that a statement of one caller can tell apart."""
    rows = [None, *(Row(run, state) for run in (MINE, OTHER) for state in State)]
    locks = [None, Lock(ME), Lock(ME, True), Lock(100), Lock(100, True), Lock(CANCEL), Lock(FREE)]
    for row, lock, closed in product(rows, locks, (False, True)):
        yield World((row,), (lock, lock), (0, 0), (0, 0), closed, False, (), (), None, Budget())


def flow(program: Mapping[str, Statement] = PROGRAM) -> Flow:
    """Follow a caller through a start, from its first statement to every answer."""
    worlds = list(small_worlds())
    first = Caller("insert", run=MINE)
    frontier = [first]
    seen = {_known(first)}
    statements: dict[str, bool] = {}
    comes: dict[str, list[_Come]] = {}
    for c in frontier:  # grows while it is walked
        at = _place(c)
        if c.at == "work":
            statements[at] = True
            came = [_Come((), "", c._replace(at="persist"))]
        else:
            statements[at] = program[c.at].writes
            came = list(dict.fromkeys(_comes(program[c.at], c, worlds)))
        comes.setdefault(at, []).extend(came)
        for one in came:
            if isinstance(one.then, Caller):
                then = one.then._replace(run=MINE)
                if _known(then) not in seen:
                    seen.add(_known(then))
                    frontier.append(then)
    arrows = [arrow for at, some in comes.items() for arrow in _arrows(at, some)]
    told = tuple(dict.fromkeys(arrow.after for arrow in arrows if arrow.answers))
    return Flow(statements, told, tuple(arrows))


def _known(c: Caller) -> tuple[str, bool, str]:
    return c.at, c.again, c.after


def _place(c: Caller) -> str:
    """Name the place of a caller in the flow: a settle by what is answered after it."""
    return f"settle, then {c.after}" if c.at == "settle" else c.at


class _Come(NamedTuple):
    """One way on: what a reply shows, each in words, or the fault; and where the caller goes on."""

    shows: tuple[str, ...]
    fault: str
    then: Next

    @property
    def target(self) -> tuple[str, bool]:
        if isinstance(self.then, Told):
            return self.then.answer, True
        return _place(self.then), False


def _comes(statement: Statement, c: Caller, worlds: list[World]) -> Iterator[_Come]:
    for world in worlds:
        _, reply = statement.effect(world, ME, c)
        yield _Come(_shows(c, reply), "", statement.then(c, reply))
    if statement.writes:
        yield _Come((), "reply lost", statement.unknown(c))
        yield _Come((), "not applied", statement.refused(c))
    else:
        yield _Come((), "cannot be read", statement.refused(c))


def _shows(c: Caller, reply: Any) -> tuple[str, ...]:
    """Say what a reply shows, and what its caller knows: nothing, a word, or a row and its lock."""
    if isinstance(reply, bool):
        return (WORDS[c.at][not reply],)
    if c.at not in ("read back", "look"):
        return ()
    row, lock = (reply, None) if c.at == "read back" else reply
    whose = "" if row is None else "same run" if row.run == MINE else "another run"
    state = "no row" if row is None else row.state.value
    return state, _lock(row, lock), AFTER.get(c.after, ""), "twice" if c.again else "once", whose


def _lock(row: Row | None, lock: Lock | None) -> str:
    if row is None:
        return ""
    if lock is None:
        return "no lock"
    if lock.holder in (CANCEL, FREE):
        return f"a {'cancel' if lock.holder == CANCEL else 'free'} holds its lock"
    return "ended" if lock.ended else "lock held"


# --- what leads where, in few words -----------------------------------------------------------------------


def _arrows(at: str, comes: Sequence[_Come]) -> Iterator[Arrow]:
    """Give an arrow for each place that a statement leads to, with the fewest words that tell."""
    replies: dict[tuple[str, bool], dict[str, None]] = {}
    faults: dict[tuple[str, bool], dict[str, None]] = {}
    heard = tuple(dict.fromkeys((come.shows, come.target) for come in comes if not come.fault))
    for come in comes:
        replies.setdefault(come.target, {})
        if come.fault:
            faults.setdefault(come.target, {})[come.fault] = None
        elif words := _telling(come.shows, come.target, heard):
            replies[come.target][words] = None
    for target, said in replies.items():
        yield Arrow(at, tuple(said), tuple(faults.get(target, ())), *target)


Target = tuple[str, bool]


def _telling(
    shows: tuple[str, ...], target: Target, heard: Sequence[tuple[tuple[str, ...], Target]]
) -> str:
    """Return the fewest things shown that lead to this place alone; the first one where it mostly does."""
    if len({other for _, other in heard}) == 1:
        return ""
    alike = Counter(other for what, other in heard if what[0] == shows[0])
    if alike.most_common(1)[0][0] == target:
        return shows[0]
    for size in range(1, len(shows) + 1):
        for some in combinations(range(len(shows)), size):
            if all(
                other == target
                for what, other in heard
                if all(what[place] == shows[place] for place in some)
            ):
                return ", ".join(shows[place] for place in some)
    raise AssertionError(f"{shows} leads to more than one place")
