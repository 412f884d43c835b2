"""Values that show themselves in a notebook: pictures as SVG, verdicts as a table in HTML.

from startonce import notebook
notebook.picture("lifecycle")
notebook.trace(report.of("violated")[0].divergence)
notebook.verdicts(report)
"""

from collections.abc import Mapping
from html import escape
from typing import NamedTuple

from startonce import drawing
from startonce.checker.starts import Shown
from startonce.draw.engine import render
from startonce.draw.lanes import lanes_source
from startonce.draw.pictures import UnknownPicture
from startonce.drawing_traces import divergence_lanes
from startonce.model.clauses import CLAUSES
from startonce.oracle.ledger import Divergence, Verdict
from startonce.oracle.report import Report

MARKS: Mapping[str, str] = {
    "holds": "✓",
    "violated": "✗",
    "not applicable": "-",
    "not checked": "?",
}
"""A sign for each status, beside its words: colour is never needed."""


class Drawn(NamedTuple):
    """A picture that shows itself. `source` is its DOT source."""

    source: str

    def _repr_svg_(self) -> str:
        return render(self.source, "svg").decode()


class Table(NamedTuple):
    """Verdicts that show themselves."""

    heading: str
    verdicts: tuple[Verdict, ...]

    def _repr_html_(self) -> str:
        rows = "".join(map(_row, self.verdicts))
        return (
            f"<table><caption>{escape(self.heading)}</caption><thead><tr><th>clause</th><th>verdict</th>"
            f"<th>evaluated</th><th></th></tr></thead><tbody>{rows}</tbody></table>"
        )


def picture(name: str) -> Drawn:
    """Return a picture by its name. Raises `UnknownPicture`."""
    pictures = drawing.every()
    if name not in pictures:
        raise UnknownPicture(name, tuple(pictures))
    return Drawn(pictures[name].source())


def trace(found: Divergence | Shown) -> Drawn:
    """Return a divergence, or a hazard that was shown, as an interleaving."""
    lanes = divergence_lanes(found) if isinstance(found, Divergence) else drawing.hazard_lanes(found)
    return Drawn(lanes_source(lanes))


def automaton() -> Drawn:
    """Return the automaton of one key and its run's lock, with its counts."""
    return picture("automaton")


def verdicts(found: Report | Verdict) -> Table:
    """Return a report, or one verdict, as a table."""
    if isinstance(found, Verdict):
        return Table(found.clause, (found,))
    counts = [f"{len(found.of(status))} {status}" for status in MARKS]
    return Table(f"{found.subject}: {', '.join(counts)}", found.verdicts)


def _row(verdict: Verdict) -> str:
    said = CLAUSES[verdict.clause].sentence
    reason = f" ({verdict.reason})" if verdict.reason else ""
    cells = (
        verdict.clause,
        f"{MARKS[verdict.status]} {verdict.status}",
        f"{verdict.evaluated:,}",
        said + reason,
    )
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
