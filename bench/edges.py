"""How fast the scopes are walked in which callers are held between their statements.

Every edge of both scopes is executed, in memory and on a WAL file. The time includes finding the states
and working out, from the model, what each edge must do.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import perf_counter, process_time

import pairs
from pairs import Figure

from startonce.oracle import scopes
from startonce.oracle.edges import walk_statements
from startonce.oracle.ledger import Ledger
from startonce.oracle.scopes import STATEMENTS
from startonce.own import SqlSubject


def walked(path: str | Path, bar: float | None) -> Iterator[Figure]:
    """Walk both scopes once, with nothing known of them from an earlier walk."""
    for known in (scopes.one_statement_edges, scopes.begin_edges, scopes.held_edge):
        known.cache_clear()
    with closing(SqlSubject(path)) as subject:
        mode = pairs.mode_of(subject.observer.connection)
        ledger = Ledger()
        seconds, edges, processor = 0.0, 0, process_time()
        for scope in STATEMENTS:
            begun = perf_counter()
            (report,) = walk_statements(subject, ledger, [scope])
            took = perf_counter() - begun
            assert report.executed == report.edges > 0
            yield Figure(f"{report.what}, {report.edges:,} edges", took, "s", mode)
            seconds, edges = seconds + took, edges + report.edges
        assert not ledger.divergences, ledger.divergences
        processor = process_time() - processor
    yield Figure("both scopes", seconds, "s", mode, at_most=bar)
    yield Figure("processor time", processor, "s", mode)
    yield Figure("edges", edges / seconds, "a second", mode)


def figures(folder: Path) -> Iterator[Figure]:
    """Measure in memory and on a file."""
    yield from walked(":memory:", bar=10)
    yield from walked(folder / "edges.db", bar=None)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=pairs.MEMORY_FILES) as folder:
        sys.exit(pairs.conclude("Both *statements* scopes, walked once", list(figures(Path(folder)))))
