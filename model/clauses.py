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
RSV-2 an existing key keeps its row untouched, whatever its state
RSV-3 insert and read-back happen at one moment each; the answer is the row read back
RSV-4 created only if this insert made the row that was read back; never "mine to start"
RSV-5 a read-back that finds no row is a retryable error, neither created nor absent
RSV-6 reserve creates the whole schema, half of one included; nothing else does
RSV-7 a value that the schema refuses is an error that names it, never an ignored row
CLM-1 a claim moves reserved to started for exactly this key and run, in one statement
CLM-2 of all claims on a row at most one wins until a release
CLM-3 a claim that answers False changed nothing
CLM-4 a row rewritten underneath the caller is not claimed
CLM-5 a claim never creates the schema; without the table it answers False
REL-1 a release moves started to reserved for exactly this key and run
REL-2 nothing but a release ever moves a row backwards
REL-5 on a reserved, terminal, absent or other run's row a release answers False
SET-1 a settle makes every row naming the run terminal and touches no other
SET-2 a repeated settle answers 0 and changes nothing
SET-3 a settle answers the number of rows that it settled
SET-4 a settle works whatever the fence says; without the table it answers 0
SET-5 a terminal row never changes again; it ends by deletion only
RD-1 a read writes nothing: no row, no table, no index
RD-2 without its table a read finds nothing; another missing table is an error
RD-3 a read works while writes are refused; an unreadable row is an error, never absent
RUN-1 for_runs gives every row naming one of the runs, each once
RUN-2 for_runs binds exactly what it is given, or refuses before any SQL
RUN-3 for_runs agrees with read on every row
PRG-1 a purge deletes the oldest terminal rows strictly before the horizon, and nothing else
PRG-2 a key reserved after its purge is a new row under a new run
INV-1 the inventory lists every live row and every run still held by an execution, in pages
INV-2 the inventory says of each entry what it means and who may end it
DB-1 reservations, fence and run locks are reached through one database handle
LCK-1 a run has one lock row for good: its holder never changes, ended is never unset
LCK-2 only a lock whose holder reads back as mine is mine
LCK-3 an execution takes the lock only while its row is started, in the same statement
FRE-1 a free takes the lock itself: the run never executed and never can
FRE-2 a free acts on started rows and on rows whose lock it holds; all else is refused
FRE-3 a free that finds the lock taken is refused and changes nothing
FRE-4 a free that crashed is completed by a second one; other keys of the run stay
IN-1 a key or run id outside the input rules is refused before any SQL, and shown safely
IN-2 keys and run ids are compared byte for byte
""",
)

_DUTIES = _clauses(
    "duty",
    """
CLM-6 an unknown outcome of a claim is raised as such: neither won nor lost
REL-3 release only after the fence refused this very start
REL-4 release at most once for a won claim, and never again after an unknown outcome
LCK-4 whoever does not hold the lock does not execute
LCK-5 after an unknown outcome of taking the lock, read the holder back and nothing else
DUT-1 a run id is minted fresh for every insert that is sent
DUT-2 a won claim is dispatched once
DUT-3 a settle is for a run that is over or can never begin
STA-1 only the winner of a claim goes to the fence
STA-3 the fence is read after the claim, from the primary, before anything else is written
""",
)

_CONSEQUENCES = _clauses(
    "consequence",
    """
STA-2 every caller of a key in one row lifetime is told the same run
STA-4 nothing but a fence refusal releases
STA-5 after close, drain and reopen every refused key starts the same run
STA-6 a crash between insert and claim heals itself
STA-7 a crash after the claim leaves started, and never executes again by itself
STA-8 no transition is enabled by time passing
STA-9 at most one execution per run and per row lifetime
STA-10 with a durable lock a broken duty makes two holders but no second execution
STA-11 with a durable lock nothing begins to execute once drained, until the fence opens
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
