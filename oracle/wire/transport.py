"""Lines to and from an adapter, over file descriptors that do not block.

Nothing blocks but `receive`, and it goes on writing while it waits: however much is in flight, neither
side can wait for the other to read. Memory is bounded, for a line and for what is kept of the standard
error.
"""

import os
import select
import time
from collections import deque

from startonce.oracle.wire.misbehaviour import plain

LONGEST = 16 * 1024 * 1024
"""Bytes that one line may have."""
CHUNK = 65536
"""Bytes that are read at once: as many as a pipe holds."""
TAIL = 8192
"""Bytes that are kept of the end of the standard error."""
GRACE = 2.0
"""Seconds that an adapter has to end, when its input ends and again when it is told to."""


class Silence(Exception):
    """Nothing came in time."""


class End(Exception):
    """There is no more to come; `half` is what came of a line that has no end."""

    def __init__(self, half: bytes) -> None:
        super().__init__()
        self.half = half


class Flood(Exception):
    """A line is longer than it may be; `begins` is how it begins."""

    def __init__(self, begins: bytes) -> None:
        super().__init__()
        self.begins = begins


class Lines:
    """Lines over file descriptors that do not block: one to read, one to write, one for errors."""

    def __init__(self, reads: int, writes: int, errors: int | None = None) -> None:
        self._reads, self._writes, self._errors = reads, writes, errors
        self._out: deque[memoryview] = deque()
        self._lines: deque[bytes] = deque()
        self._partial = bytearray()
        self._tail = bytearray()
        self._ended = False
        self._poll = select.poll()
        for descriptor in (reads, errors):
            if descriptor is not None:
                os.set_blocking(descriptor, False)
                self._poll.register(descriptor, select.POLLIN)
        os.set_blocking(writes, False)

    def send(self, line: bytes) -> None:
        """Send a line; what does not fit now goes out while an answer is waited for."""
        self._out.append(memoryview(line))
        if len(self._out) == 1:
            self._write()
            if self._out:
                self._watch_writing(True)

    def receive(self, seconds: float) -> bytes:
        """Return the next line, without its end. Raises `Silence`, `End`, `Flood`."""
        if self._lines:
            return self._lines.popleft()
        until = time.monotonic() + seconds
        while not self._lines:
            if self._ended:
                raise End(bytes(self._partial[:200]))
            left = until - time.monotonic()
            if left <= 0:
                raise Silence
            self._turn(left)
        return self._lines.popleft()

    def surplus(self, seconds: float) -> list[bytes]:
        """Wait for the other side to end; give the lines that it still said, or the first."""
        until = time.monotonic() + seconds
        while not self._ended and (left := until - time.monotonic()) > 0:
            if len(self._partial) + sum(map(len, self._lines)) > 16 * CHUNK:
                break
            self._turn(left)
        if self._partial:
            self._lines.append(bytes(self._partial))
        return list(self._lines)

    def fate(self) -> str:
        """Say how the other side ended."""
        return "closed the connection"

    def close(self, patience: float = GRACE) -> list[bytes]:
        """End it, the other side too; give what that still said. It has `patience` seconds to end."""
        raise NotImplementedError

    def errors(self) -> list[str]:
        """Return the last lines of the standard error, each safe to show."""
        self._drain_errors(0.2 if self._ended else 0)
        lines = self._tail.decode("utf-8", "replace").splitlines()
        return [plain(line, 160) for line in lines if line.strip()][-8:]

    def _turn(self, seconds: float) -> None:
        """Do once what can be done: read, write, keep what came on the standard error."""
        for descriptor, _ in self._poll.poll(max(1, int(seconds * 1000))):
            if descriptor == self._reads:
                self._read()
            if descriptor == self._errors:
                self._read_errors()
            if descriptor == self._writes and self._out:
                self._write()
                if not self._out:
                    self._watch_writing(False)

    def _watch_writing(self, wanted: bool) -> None:
        both = self._reads == self._writes
        if wanted or both:
            self._poll.register(self._writes, (select.POLLIN * both) | (select.POLLOUT * wanted))
        else:
            self._poll.unregister(self._writes)

    def _write(self) -> None:
        while self._out:
            try:
                written = os.write(self._writes, self._out[0])
            except BlockingIOError:
                return
            except OSError:  # nobody reads any more; what was said before that is read first
                self._out.clear()
                return
            if written < len(self._out[0]):
                self._out[0] = self._out[0][written:]
            else:
                self._out.popleft()

    def _read(self) -> None:
        try:
            chunk = os.read(self._reads, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._ended = True
            self._poll.unregister(self._reads)
            return
        *lines, rest = chunk.split(b"\n")
        if lines:
            if self._partial:
                lines[0] = bytes(self._partial) + lines[0]
            self._lines.extend(lines)
            self._partial = bytearray(rest)
        else:
            self._partial += rest
        if len(self._partial) > LONGEST or (lines and len(lines[0]) > LONGEST):
            raise Flood(bytes(self._partial[:200] or lines[0][:200]))

    def _read_errors(self) -> None:
        """Keep the end of what there is on the standard error."""
        assert self._errors is not None
        try:
            chunk = os.read(self._errors, CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self._poll.unregister(self._errors)
            self._errors = None
            return
        self._tail += chunk[-TAIL:]
        del self._tail[:-TAIL]

    def _drain_errors(self, seconds: float) -> None:
        """Keep what comes on the standard error, until it ends or these seconds are over."""
        until = time.monotonic() + seconds
        while (errors := self._errors) is not None:
            self._read_errors()
            left = until - time.monotonic()
            if left <= 0:
                return
            select.select([errors], [], [], left)
