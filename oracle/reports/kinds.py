"""What a public bug report is here, and the kinds of scene in which it is played again."""

from typing import NamedTuple


class Trace(NamedTuple):
    """An interleaving of operations, with the answers and tables that are right: see `notation.py`.

    `driver` names the way in which a driver reports what a write did, where that is what went wrong.
    """

    text: str
    title: str = ""
    driver: str = ""


class Starts(NamedTuple):
    """An interleaving of whole starts under the durable lock, with what is there in the end.

    `attempts` is how many starts a caller may begin. `without` names duties that are not kept; where one is
    dropped the trace leads to harm, and `breaks` names the property that falls at its last step. `twice`:
    what starts the runs is ours, and what stands in front of it delivers a won claim twice.
    """

    text: str
    title: str = ""
    without: tuple[str, ...] = ()
    breaks: str = ""
    attempts: int = 1
    twice: bool = False


class Hazard(NamedTuple):
    """A hazard of the protocol, by its id: the model finds the shortest way to it."""

    id: str


class Probe(NamedTuple):
    """The probes of one clause (`oracle/probes.py`), and what they try."""

    clause: str
    sentence: str


class Scripted(NamedTuple):
    """What no trace can say, and a test does: in words."""

    sentence: str


Scene = Trace | Starts | Hazard | Probe | Scripted


class Reported(NamedTuple):
    """A bug report: where it was seen, what went wrong, what is right, and the scenes that show it.

    `seen_in` are issues as `owner/repo#number`: none for a small project, or for a hole that the protocol
    itself had when it was first described. `documented` is the page that says so, where what was asked
    for is refused here by design.
    """

    id: str
    seen_in: tuple[str, ...]
    symptom: str
    right: str
    clauses: tuple[str, ...]
    scenes: tuple[Scene, ...]
    documented: str = ""


def report(
    id: str, seen_in: str, symptom: str, right: str, clauses: str, *scenes: Scene, documented: str = ""
) -> Reported:
    """Return a report; `seen_in` and `clauses` are words with a space between them."""
    issues, ids = tuple(seen_in.split()), tuple(clauses.split())
    return Reported(id, issues, symptom, right, ids, scenes, documented)
