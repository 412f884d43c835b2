"""Every way in which an adapter can misbehave, each a small class with a sentence of its own.

None of them says anything about the store under test: they end a run, they are no divergence. What came
from the adapter is always shown safely.
"""

from collections.abc import Iterable, Sequence

from startonce.model.errors import StartOnceError, shown

PROTOCOL = 1
"""The version of the protocol that is spoken here."""


def plain(text: str, limit: int) -> str:
    """Return a text as one line of ASCII that is safe to show, without quotes around it."""
    out = shown(text, limit)
    return out[1:].removesuffix(out[0])


class WireError(StartOnceError):
    """Base of what ends a conversation with an adapter."""


class CannotStart(WireError):
    """The adapter does not start, or nothing listens where it should."""


class Died(WireError):
    """The adapter ended while something was asked of it."""

    def __init__(self, where: str, fate: str, half: bytes, errors: Sequence[str]) -> None:
        within = f", in the middle of the line {_begins(half)}" if half else ""
        super().__init__(f"the adapter {fate} instead of answering {where}{within}{_tail(errors)}")


class Hung(WireError):
    """The adapter did not answer in time."""

    def __init__(self, where: str, seconds: float, errors: Sequence[str]) -> None:
        super().__init__(
            f"the adapter stopped answering: nothing came for {where} in {seconds:g} s{_tail(errors)}"
        )


class TooLong(WireError):
    """The adapter sent more in one line than a line may have."""

    def __init__(self, where: str, longest: int, line: bytes) -> None:
        super().__init__(
            f"the adapter answered {where} with a line of more than {longest:,} bytes, which was not "
            f"read to its end; it begins {_begins(line)}"
        )


class Stray(WireError):
    """Something that is no response was printed to standard output, as by accident."""

    def __init__(self, where: str, line: bytes) -> None:
        super().__init__(
            f"the adapter printed {_begins(line)} where {where} should be answered: standard output is for "
            "responses alone, print everything else to standard error"
        )


class NotJson(WireError):
    """A response is no JSON."""

    def __init__(self, where: str, why: str, line: bytes) -> None:
        super().__init__(
            f"the adapter answered {where} with what is not JSON ({plain(why, 80)}): {_begins(line)}"
        )


class AnsweredTwice(WireError):
    """A request was answered again."""

    def __init__(self, number: int) -> None:
        super().__init__(f"the adapter answered request {number:,} twice")


class OutOfOrder(WireError):
    """A later request was answered before an earlier one."""

    def __init__(self, number: int, due: int) -> None:
        super().__init__(
            f"the adapter answered request {number:,} before request {due:,}: responses come in the order "
            "of the requests"
        )


class WrongId(WireError):
    """A response names a request that was never sent, or none."""

    def __init__(self, found: object, due: int) -> None:
        super().__init__(
            f"the adapter answered with the id {shown(found)} where request {due:,} is due: a response "
            "repeats the id of its request"
        )


class SaidMore(WireError):
    """The adapter said something after its last response."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        many = f"{len(lines):,} more lines" if len(lines) > 1 else "one more line"
        super().__init__(
            f"the adapter printed {many} after its last response, beginning {_begins(lines[0])}: it "
            "answers each request once and says nothing else on standard output"
        )


class BadResponse(WireError):
    """A response that its request cannot have."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"the adapter's response to {where} cannot be: {why}")


class OtherProtocol(WireError):
    """The adapter speaks another version of the protocol."""

    def __init__(self, theirs: int) -> None:
        older = theirs < PROTOCOL
        super().__init__(
            f"the adapter speaks protocol {theirs}, this is protocol {PROTOCOL}: "
            f"update {'the adapter' if older else 'startonce'}"
        )


class UnknownCapability(WireError):
    """The adapter names a capability that there is not."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(
            f"the adapter names the capability {shown(name)}, which there is not; "
            f"known are {', '.join(known)}"
        )


class AdapterFailed(WireError):
    """The adapter says of itself, not of the store, that it failed."""

    def __init__(self, where: str, text: str) -> None:
        super().__init__(f"the adapter itself failed at {where}: {plain(text, 300)}")


class NotAskable(WireError):
    """What is asked for needs a capability that the adapter does not have; nothing was sent."""

    def __init__(self, what: str, capability: str) -> None:
        super().__init__(f"{what} needs the capability {capability}, which the adapter does not have")
        self.capability = capability


def _begins(line: bytes) -> str:
    return shown(line[:200].decode("utf-8", "replace"), 80)


def _tail(errors: Sequence[str]) -> str:
    if not errors:
        return "; its standard error is empty"
    return "".join(["; its standard error ends:", *(f"\n    {line}" for line in errors)])
