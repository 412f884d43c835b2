"""How long `startonce check` takes, and how much memory: a process of its own, and that one's children."""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, sleep

import pairs
from pairs import Figure, Mode

MEGABYTE = 1024 * 1024
EVERY = 0.05
"""Seconds between two looks at the memory of all processes together."""


def figures(folder: Path) -> Iterator[Figure]:
    """Run the check once. Raises `RuntimeError` where it does not hold or cannot run."""
    begun = perf_counter()
    with (folder / "output").open("w+b") as output:
        check = subprocess.Popen(
            [sys.executable, "-m", "startonce", "check"], cwd=folder, stdout=output, stderr=output
        )
        together = 0
        while check.poll() is None:
            together = max(together, resident(check.pid))
            sleep(EVERY)
        took = perf_counter() - begun
        if check.returncode != 0:
            output.seek(0)
            said = output.read().decode("utf-8", "replace")
            raise RuntimeError(f"`startonce check` exited with {check.returncode}:\n{said}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    mode = Mode("wal", "off", pairs.file_system(str(folder / "output")))  # as `startonce.checking` has it
    yield Figure("startonce check", took, "s", mode, at_most=30)
    yield Figure("processor time of its processes", used.ru_utime + used.ru_stime, "s", mode)
    yield Figure("peak memory, its largest process", used.ru_maxrss * 1024 / MEGABYTE, "MB", at_most=300)
    if together:
        yield Figure("peak memory, its processes together", together / MEGABYTE, "MB", at_most=300)


def resident(process: int) -> int:
    """Return the memory of a process and all below it, in bytes; 0 where the system tells nothing."""
    here = Path("/proc") / str(process)
    try:
        pages = int((here / "statm").read_text().split()[1])
        below = (here / "task" / str(process) / "children").read_text().split()
    except (OSError, IndexError):
        return 0
    return pages * resource.getpagesize() + sum(resident(int(child)) for child in below)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        sys.exit(pairs.conclude("The whole check, once", list(figures(Path(name)))))
