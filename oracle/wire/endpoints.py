"""Where an adapter is: in a process of ours, or at an address of this machine."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from ipaddress import ip_address

from startonce.model.errors import shown
from startonce.oracle.wire.misbehaviour import CannotStart, WireError
from startonce.oracle.wire.transport import GRACE, Lines


class Process(Lines):
    """An adapter that is a process of ours, in a group of its own so that nothing of it is left behind.

    `command` is run as it is, without a shell. Raises `CannotStart`.
    """

    def __init__(self, command: Sequence[str]) -> None:
        if not command:
            raise CannotStart("an empty command cannot be started: name the program of the adapter")
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise CannotStart(f"{shown(command[0], 200)} cannot be started: {why}") from error
        streams = (self._process.stdout, self._process.stdin, self._process.stderr)
        reads, writes, errors = (stream.fileno() for stream in streams if stream is not None)
        super().__init__(reads, writes, errors)

    @property
    def pid(self) -> int:
        """The process id, which is that of its group too."""
        return self._process.pid

    def fate(self) -> str:
        """Say how the process ended."""
        try:
            code = self._process.wait(1)
        except subprocess.TimeoutExpired:
            return "closed its standard output and goes on running"
        if code >= 0:
            return f"exited with code {code}"
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"

    def close(self, patience: float = GRACE) -> list[bytes]:
        """End the process and all of its group; give the lines that it said after its input ended.

        It has `patience` seconds to end by itself.
        """
        stdin = self._process.stdin
        assert stdin is not None
        self._out.clear()
        with contextlib.suppress(KeyError):
            self._poll.unregister(stdin.fileno())
        stdin.close()
        until = time.monotonic() + patience
        try:
            said = self.surplus(patience)
            self._wait(until - time.monotonic())
        finally:
            for name in (signal.SIGTERM, signal.SIGKILL):
                if self._process.returncode is None:
                    self._signal(name)
                    self._wait(GRACE)
            self._signal(signal.SIGKILL)  # whatever it started and left behind
            self._process.wait()
            for stream in (self._process.stdout, self._process.stderr):
                assert stream is not None
                stream.close()
            self._errors = None
        return said

    def _wait(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, seconds))

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


class Attached(Lines):
    """An adapter that its user started, listening on loopback. Raises `CannotStart`."""

    def __init__(self, address: str) -> None:
        host, port = loopback(address)
        try:
            self._socket = socket.create_connection((host, port), timeout=5)
        except OSError as error:
            why = error.strerror or str(error)
            raise CannotStart(
                f"nothing answers at {host}, port {port}: {why}; start the adapter first"
            ) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().__init__(self._socket.fileno(), self._socket.fileno())

    def close(self, patience: float = GRACE) -> list[bytes]:
        """End the connection; give the lines that were still said."""
        self._out.clear()
        try:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)
            return self.surplus(patience)
        finally:
            self._socket.close()


def loopback(address: str) -> tuple[str, int]:
    """Return host and port of an address on this machine. Raises `WireError` for any other."""
    host, _, port = address.rpartition(":")
    host = "127.0.0.1" if host == "localhost" else host.removeprefix("[").removesuffix("]")
    if not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 2**16):
        raise WireError(f"{shown(address)} is no address: give HOST:PORT, as 127.0.0.1:4711")
    try:
        here = ip_address(host).is_loopback
    except ValueError:
        here = False
    if not here:
        raise WireError(
            f"{shown(host)} is not this machine: an adapter listens on 127.0.0.1, ::1 or localhost"
        )
    return host, int(port)
