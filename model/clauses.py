"""The clauses: what is required, by id. An id is never given to another clause.

Kinds: a *store* clause binds an implementation; a *duty* binds its callers; a *consequence* follows
from the others. What evaluates a clause is in `predicates.py`.
"""

from typing import Literal, NamedTuple

Kind = Literal["store", "duty", "consequence"]


class Clause(NamedTuple):
    """One requirement."""

    id: str
    kind: Kind
    sentence: str


def _clauses(kind: Kind, text: str) -> list[Clause]:
    rows = (line.split(None, 1) for line in text.strip().splitlines())
    return [Clause(identifier, kind, sentence) for identifier, sentence in rows]


_STORE = _clauses(
    "store",
    """
RSV-1 a new key stores the proposed run as reserved
RSV-2 an existing key keeps its row, whatever its state
RSV-3 insert, then read-back; the answer is what was read
RSV-4 created only if this insert made the row read back
RSV-5 a read-back that finds no row is a retryable error
RSV-6 reserve creates the whole schema, nothing else does
RSV-7 a value that the schema refuses is a named error
CLM-1 a claim moves reserved to started for its key and run
CLM-2 of all claims on a row one wins, until a release
CLM-3 a claim that answers False changed nothing
CLM-4 a row rewritten underneath the caller is not claimed
CLM-5 without the table a claim answers False, makes nothing
REL-1 a release moves started back, for its key and run
REL-2 nothing but a release ever moves a row backwards
REL-5 with nothing to give back a release answers False
SET-1 a settle ends every row naming the run, and no other
SET-2 a repeated settle answers 0 and changes nothing
SET-3 a settle answers the number of rows that it settled
SET-4 a settle works behind a closed fence, without a table
SET-5 a terminal row never changes; it ends by deletion only
RD-1 a read writes nothing: no row, no table, no index
RD-2 only its own missing table reads as nothing there
RD-3 an unreadable row is an error; reads need no write
RUN-1 for_runs gives every row naming a run, each once
RUN-2 for_runs binds what it is given, or refuses before SQL
RUN-3 for_runs agrees with read on every row
PRG-1 a purge takes the oldest spent rows before a horizon
PRG-2 a key reserved after its purge is a new row lifetime
INV-1 the inventory lists every live row, every held run
INV-2 the inventory says what each entry means
DB-1 reservations, fence and locks share one handle
LCK-1 a run has one lock row for good; ended stays ended
LCK-2 only a lock whose holder reads back as mine is mine
LCK-3 the lock is taken only while its row is started
FRE-1 a free holds the lock: the run never ran, never can
FRE-2 a free acts on started rows or its own lock alone
FRE-3 a free that finds the lock taken changes nothing
FRE-4 a second free completes one that crashed
IN-1 what is no key or run id is refused before any SQL
IN-2 keys and run ids are compared byte for byte
""",
)

_DUTIES = _clauses(
    "duty",
    """
CLM-6 an unknown claim is raised, neither won nor lost
REL-3 release only after the fence refused this very start
REL-4 release once per won claim, never after an unknown one
LCK-4 whoever does not hold the lock does not execute
LCK-5 after an unknown take of the lock only read the holder
DUT-1 a run id is minted fresh for every insert that is sent
DUT-2 a won claim is dispatched once
DUT-3 settle only a run that is over or can never begin
STA-1 only the winner of a claim goes to the fence
STA-3 the fence is read after the claim, from the primary
""",
)

_CONSEQUENCES = _clauses(
    "consequence",
    """
STA-2 all callers in one row lifetime are told one run
STA-4 nothing but a fence refusal releases
STA-5 after close and reopen a refused key starts its run
STA-6 a crash between insert and claim heals itself
STA-7 a crash after the claim leaves started, not executed
STA-8 no transition is enabled by time passing
STA-9 at most one execution per run and per row lifetime
STA-10 with a durable lock two holders never execute twice
STA-11 once drained nothing begins until the fence opens
""",
)

_ORDER = ("RSV", "CLM", "REL", "SET", "RD", "RUN", "PRG", "INV", "DB", "LCK", "FRE", "DUT", "STA", "IN")


def _place(clause: Clause) -> tuple[int, int]:
    family, number = clause.id.split("-")
    return _ORDER.index(family), int(number)


CLAUSES: dict[str, Clause] = {
    clause.id: clause for clause in sorted(_STORE + _DUTIES + _CONSEQUENCES, key=_place)
}
"""Every clause by id, in the order of the specification."""
