"""Our own implementation on SQLite as an adapter: `python -m startonce.adapter`.

It says what it can do in the protocol of `docs/oracle-protocol.md`, over its standard streams or, with
`--listen`, to whoever connects to a port of this machine.
"""

import argparse
import sqlite3
import sys
from collections.abc import Sequence

from startonce import __version__
from startonce.oracle.mutants import STORES
from startonce.oracle.wire.serve import Server, serve_port, serve_streams
from startonce.own import SqlSubject


def server(database: str, mutant: str | None = None) -> Server:
    """Return a server of our implementation, or of a broken one, on a database: a path or `:memory:`."""
    broken = None if mutant is None else STORES[mutant]
    subject = SqlSubject(database) if broken is None else broken.subject(database, held=True)
    about = {
        "implementation": "startonce" if mutant is None else f"a mutant: {mutant}",
        "language": "Python",
        "version": __version__,
        "homepage": "",
        "database": f"SQLite {sqlite3.sqlite_version}, {'in memory' if subject.in_memory else 'a file'}",
    }
    if broken is not None:
        return Server(subject, about, named=not broken.own)
    if subject.in_memory:
        return Server(subject, about)
    return Server(subject, about, database, SqlSubject)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until the input ends; give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m startonce.adapter", description=__doc__)
    parser.add_argument(
        "--database", default=":memory:", help="a SQLite file of its own; by default in memory"
    )
    parser.add_argument(
        "--listen", type=int, metavar="PORT", help="listen on this port of 127.0.0.1; 0: any"
    )
    parser.add_argument("--mutant", choices=STORES, metavar="NAME", help="serve a broken implementation")
    chosen = parser.parse_args(arguments)
    serving = server(chosen.database, chosen.mutant)
    try:
        if chosen.listen is None:
            serve_streams(serving)
        else:
            serve_port(serving, chosen.listen, _listening)
    finally:
        serving.subject.close()
    return 0


def _listening(port: int) -> None:
    print(f"listening on 127.0.0.1:{port}", file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
