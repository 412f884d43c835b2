"""How much memory there is, and how much this process has taken, in bytes."""

import os
import resource
import sys
from pathlib import Path


def free() -> int:
    """Return the memory that is free to use, by the system's own estimate."""
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def peak() -> int:
    """Return the most that this process has taken so far."""
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return taken if sys.platform == "darwin" else taken * 1024
