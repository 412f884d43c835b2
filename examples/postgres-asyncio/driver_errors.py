"""Which of PostgreSQL's errors means what."""

import re
from collections.abc import Sequence

import psycopg
from values import NotApplied, OutcomeUnknown, StoreError, Unreadable, ValueRefused

# The transaction was rolled back, or never begun: serialization failure, deadlock, lock not available,
# cancelled, read-only, no permission, starting up, no connection yet. Class 53 is want of resources.
NOT_APPLIED = ("40001", "40P01", "55P03", "57014", "25006", "42501", "57P03", "08001", "08004", "53")
REFUSED = ("22", "23")
ALREADY_THERE = ("42P07", "42710", "23505")
"""Of two that create the same thing at once the loser hears one of these, after the winner's commit."""


class NoTable(Exception):
    """A table of the statement's own does not exist; what that means, each operation says."""


def of_read(error: psycopg.Error, tables: Sequence[str]) -> Exception:
    """Say what an error of a read means."""
    return NoTable(missing) if (missing := _missing(error, tables)) else Unreadable(str(error))


def of_write(error: psycopg.Error, tables: Sequence[str]) -> Exception:
    """Say what an error of a write means. Whatever is not known to be harmless is an unknown outcome."""
    state = error.sqlstate or ""
    if missing := _missing(error, tables):
        return NoTable(missing)
    kind: type[StoreError] = OutcomeUnknown
    if state == "42P01":
        kind = Unreadable
    elif state.startswith(NOT_APPLIED):
        kind = NotApplied
    elif state.startswith(REFUSED):
        kind = ValueRefused
    return kind(str(error))


def _missing(error: psycopg.Error, tables: Sequence[str]) -> str | None:
    """Name the table of the statement's own that is missing; one behind a view or a function is not."""
    if error.sqlstate != "42P01" or error.diag.context is not None:
        return None
    said = error.diag.message_primary or ""
    return next((table for table in tables if re.search(rf"\b{table}\b", said)), None)
