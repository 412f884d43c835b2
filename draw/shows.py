"""In which pictures one sees each clause. A test holds that none is left out, and that each exists."""

from collections.abc import Mapping

_TEXT = """
RSV-1 lifecycle reserve-race
RSV-2 reserve-race
RSV-3 operations reserve-race
RSV-4 reserve-race trouble
RSV-5 H4 start
RSV-6 operations trouble schema
RSV-7 inputs schema
CLM-1 lifecycle claim-race rows
CLM-2 claim-race release-race H1-durable H2-durable
CLM-3 claim-race rows
CLM-4 purge-race
CLM-5 trouble
CLM-6 faults trouble start
REL-1 lifecycle release-race rows
REL-2 lifecycle automaton
REL-3 start drain
REL-4 H1 H1-durable
REL-5 rows trouble
SET-1 rows lifecycle
SET-2 rows
SET-3 rows
SET-4 drain trouble
SET-5 lifecycle automaton
RD-1 operations rows
RD-2 trouble
RD-3 inputs trouble
RUN-1 rows
RUN-2 inputs
RUN-3 rows
PRG-1 rows lifecycle
PRG-2 purge-race
INV-1 rows
INV-2 started faults H7
DB-1 schema
LCK-1 automaton
LCK-2 start H9
LCK-3 automaton H8
LCK-4 start two-callers
LCK-5 H9 faults
FRE-1 started automaton
FRE-2 operations automaton
FRE-3 operations
FRE-4 automaton started
DUT-1 H5 H5-durable
DUT-2 H2 H2-durable
DUT-3 H3 H8
STA-1 start
STA-2 reserve-race
STA-3 start
STA-4 lifecycle start
STA-5 drain
STA-6 faults
STA-7 H6 faults
STA-8 started lifecycle
STA-9 two-callers H1 H2 H5 H1-durable H2-durable H3 H5-durable H8 H9
STA-10 H1-durable H2-durable
STA-11 drain
IN-1 inputs
IN-2 inputs rows
"""

SHOWS: Mapping[str, tuple[str, ...]] = {
    clause: tuple(names) for clause, *names in map(str.split, _TEXT.strip().splitlines())
}
"""For each clause the pictures in which one sees it, by name; the plainest one first."""
