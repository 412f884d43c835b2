"""The fixed words of the wire: capabilities, errors, reasons, kinds. The page lists them all."""

from collections.abc import Mapping

from startonce.model.operations import (
    INVALID,
    NOT_APPLIED,
    PROGRAMS,
    REFUSED,
    TOO_MANY,
    UNKNOWN,
    UNREADABLE,
    VANISHED,
)

CORE = frozenset({"reserve", "claim", "release", "settle", "read"})
"""Operations that every adapter has; the others are capabilities."""
LOCKS = frozenset({"take_lock", "lock_of", "persist", "cancel", "free"})
"""Whoever has one of these has run locks to put and to show."""
FENCE = frozenset({"fence", "close_fence", "open_fence"})
"""Whoever has one of these has a fence."""

CAPABILITIES: Mapping[str, tuple[str, ...]] = {
    **{name: () for name in PROGRAMS if name not in CORE},
    "callers": (),
    "clock": (),
    "absent": (),
    "surrogates": (),
    "stepping": ("callers",),
    "statements": ("stepping",),
    "faults": ("stepping",),
    "replica": ("stepping",),
    "deny": (),
    "probes": (),
    "race": ("callers",),
    "processes": (),
    "starts": (),
}
"""Every capability that an adapter can name, and those that it needs."""

CALLERS = "ABCD"

SPOILS = ("refused", "wanting", "state", "run id", "time", "elsewhere")
"""The ways in which a schema is spoiled: see `Subject.spoil`."""

ERRORS = {
    raised.error: raised
    for raised in (INVALID, VANISHED, UNKNOWN, NOT_APPLIED, UNREADABLE, REFUSED, TOO_MANY)
}
"""The kinds of error that an operation can end with; everything else is `other: ` and a text."""
OTHER = "other: "

REASONS = frozenset(
    {
        "cancelled", "freed", "no row", "it is reserved", "it is terminal", "it has ended",
        "nobody holds its lock", "an execution holds its lock", "a cancel holds its lock",
        "a free holds its lock",
    }
)  # fmt: skip
"""The words in which `cancel` and `free` say what they did, or why they refuse."""

KINDS = frozenset(
    {
        "reserved", "never reached the lock", "held by a cancel", "held by a free", "ended, not settled",
        "reached the lock, not ended", "settled or purged, still held",
    }
)  # fmt: skip
"""The kinds of entry in an inventory."""

STARTS = frozenset(
    {"started", "replayed", "pending", "settled", "retry", "fenced", "stranded", "not persisted"}
)
"""The answers of a whole start."""

LABELS = frozenset(name for p in PROGRAMS.values() for name in (*p.creates, *p.statements))
"""What a statement of the model can be called."""
