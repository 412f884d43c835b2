"""Every public bug report that this protocol answers, as data that is played again.

What somebody met elsewhere is here an interleaving with the answers and tables that are right, written down
and not computed: the model is held against it, our store, whole starts, and the broken implementations that
make the very mistake. `docs/track-record.md` shows them all.
"""

from collections.abc import Mapping

from startonce.oracle.reports import databases, duplicates, failures, holes, inputs, releases, spent
from startonce.oracle.reports.kinds import Reported

_ALL = (
    *duplicates.REPORTS,
    *spent.REPORTS,
    *failures.REPORTS,
    *releases.REPORTS,
    *databases.REPORTS,
    *inputs.REPORTS,
    *holes.REPORTS,
)

REPORTED: Mapping[str, Reported] = {one.id: one for one in sorted(_ALL, key=lambda one: one.id)}
"""Every report by its id: B of public reports, X of holes in the protocol itself."""
