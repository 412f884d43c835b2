"""One module per database: run one statement, report its rows, name its errors."""

import re
from typing import Protocol

from startonce.impl.store import Database
from startonce.model.errors import DatabaseUnusable

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://").match


class Connected(Database, Protocol):
    """A database as one caller sees it, made by `connect`."""

    dialect: str
    """Its name for people."""

    def missing(self, *tables: str) -> tuple[str, ...]:
        """Name those of some tables that do not exist, in their order."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


def connect(where: str, *, readonly: bool = False, create: bool = True, timeout: float = 5.0) -> Connected:
    """Connect one caller to the database that a path or a URL names.

    `readonly` never writes, nor creates; `create` lets a file come into being; `timeout` in seconds.
    Raises `DatabaseUnusable`, also for a scheme that there is not.
    """
    named = _SCHEME(where)
    if named is None:
        from startonce.impl.databases import sqlite

        return sqlite.connect(where, readonly=readonly, create=create, timeout=timeout)
    raise DatabaseUnusable(f"there is no database of the kind {named[1]}://: name a SQLite file")
